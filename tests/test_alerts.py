"""Alerts reach people once, hold nothing secret, and never stop a job."""

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from shared.alerts import AppriseAlerts, apprise_sender
from shared.burial import bury
from shared.claims.states import Reason
from shared.errors import StoreUnavailableError
from tests.claims.postgres_subject import PostgresSubject
from tests.conformance.leasing import bring_to
from tests.conformance.subject import STALE


class Ledger:
    """An AlertStore in memory that may be away."""

    def __init__(self, *, away: bool = False) -> None:
        self.away = away
        self.seen: set[tuple[str, str]] = set()

    def may_alert(self, kind: str, subject: str, *, every: timedelta) -> int | None:
        """Let the first of a kind and subject through."""
        assert every > timedelta(hours=1)
        if self.away:
            raise StoreUnavailableError("away")
        if (kind, subject) in self.seen:
            return None
        self.seen.add((kind, subject))
        return 0


class People:
    """Somebody to tell."""

    def __init__(self, *, reached: bool = True, broken: bool = False) -> None:
        self.told: list[str] = []
        self.reached = reached
        self.broken = broken

    def __call__(self, title: str, body: str) -> bool:
        """Listen, or fail as a plugin may."""
        if self.broken:
            raise RuntimeError("plugin")
        self.told.append(f"{title}\n{body}")
        return self.reached


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A real endpoint for Apprise's json:// URLs, and what it was sent."""
    received: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        """Keeps what is posted."""

        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if self.path == "/ok" else 500)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"json://127.0.0.1:{server.server_port}", received
        server.shutdown()
        thread.join(10)


def test_apprise_reaches_people_when_one_url_does(webhook: tuple[str, list[dict[str, str]]]) -> None:
    """Reached means that one of the URLs took it."""
    url, received = webhook
    assert apprise_sender([f"{url}/broken", f"{url}/ok"])("title", "body")
    assert [message["title"] for message in received] == ["title", "title"]
    assert not apprise_sender([f"{url}/broken"])("title", "body")


def test_without_a_url_nobody_is_reached() -> None:
    """And nothing is pretended."""
    assert not apprise_sender([])("title", "body")


def test_an_alert_says_what_to_run() -> None:
    """Job, reason and the command that helps."""
    people = People()
    alerts = AppriseAlerts(people, Ledger())
    assert alerts.job_dead("job_a", reason="integrity_failed", error="wrong sha256")
    assert alerts.job_failed("job_b", event="job.failed", error=None)
    assert "sume-jobs requeue job_a" in people.told[0]
    assert "integrity_failed" in people.told[0]
    assert "sume-jobs show job_b" in people.told[1]


def test_an_unlisted_host_is_told_once() -> None:
    """However many jobs it parks."""
    people = People()
    alerts = AppriseAlerts(people, Ledger())
    assert alerts.host_not_allowed("cdn.example", job_id="job_a")
    assert not alerts.host_not_allowed("cdn.example", job_id="job_b")
    assert alerts.host_not_allowed("other.example", job_id="job_c")
    assert len(people.told) == 2


@pytest.mark.parametrize("people", [People(reached=False), People(broken=True)])
def test_an_alert_that_fails_never_stops_its_job(people: People) -> None:
    """False, never an error."""
    alerts = AppriseAlerts(people, Ledger())
    assert not alerts.job_dead("job_a", reason="worker_lost", error="")
    assert not AppriseAlerts(people, Ledger(away=True)).host_not_allowed("h", job_id="job_a")


def test_a_burial_is_told_only_when_it_happened(database_url: str) -> None:
    """A lost lease buries nothing and tells nobody."""
    subject, people = PostgresSubject(database_url), People()
    alerts = AppriseAlerts(people, subject.store)
    bring_to(subject, "job_a", "claimed")
    lease = subject.take("job_a")
    subject.let_pass(STALE)
    subject.store.lose_leases(limit=9)
    give_up = partial(bury, "job_a", store=subject.store, alerts=alerts, reason=Reason.TOO_LARGE, error="11 GiB")
    assert not give_up(token=lease.token)
    assert people.told == []
    assert give_up(token=subject.take("job_a").token)
    assert len(people.told) == 1
    assert subject.state("job_a") == "dead"
    subject.store.close()
