"""Alerts reach people once, hold nothing secret, and never stop a job."""

import json
import os
import signal
import threading
import time
from collections.abc import Collection, Iterator
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from shared.alerts import MOST_HANGING, AppriseAlerts, apprise_sender
from shared.burial import bury
from shared.claims.states import Reason
from shared.claims.watch import HeldBack
from shared.errors import StoreUnavailableError
from tests.claims.postgres_subject import PostgresSubject
from tests.conformance.leasing import bring_to
from tests.conformance.subject import STALE


class Ledger:
    """An AlertStore in memory that may be away; its time passes when it is told."""

    def __init__(self, *, away: bool = False) -> None:
        self.away = away
        self.held: dict[tuple[str, str], int] = {}
        self.due: set[tuple[str, str]] = set()

    def may_alert(self, kind: str, subject: str, *, every: timedelta) -> int | None:
        """Let the first of a kind and subject through, and then one after each `pass_time`."""
        assert every == (timedelta(days=1) if subject else timedelta(minutes=5))
        if self.away:
            raise StoreUnavailableError("away")
        key = (kind, subject)
        if key in self.held and key not in self.due:
            self.held[key] += 1
            return None
        self.due.discard(key)
        before, self.held[key] = self.held.get(key, 0), 0
        return before

    def take_held_back(self, kinds: Collection[str], *, every: timedelta) -> list[HeldBack]:
        """Give what is due."""
        assert every == timedelta(minutes=5)
        taken = [(k, n) for (k, s), n in self.held.items() if k in kinds and not s and n and (k, s) in self.due]
        for kind, _ in taken:
            self.held[kind, ""] = 0
            self.due.discard((kind, ""))
        return [HeldBack(kind, count) for kind, count in taken]

    def pass_time(self) -> None:
        """Let five minutes pass."""
        self.due = {key for key in self.held if not key[1]}


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
    assert len(people.told) == 1


def test_one_alert_of_a_kind_goes_out_and_the_next_tells_how_many_were_held_back() -> None:
    """A thousand failed jobs are not a thousand alerts; who was held back reached nobody, and is counted."""
    people, ledger = People(), Ledger()
    alerts = AppriseAlerts(people, ledger)
    assert alerts.job_failed("job_0", event="job.failed", error="nsfw")
    assert [alerts.job_failed(f"job_{n}", event="job.failed", error="nsfw") for n in range(1, 8)] == [False] * 7
    assert alerts.job_dead("job_8", reason="too_large", error="11 GiB"), "another kind has its own turn"
    ledger.pass_time()
    assert alerts.job_failed("job_9", event="job.failed", error="nsfw")
    assert len(people.told) == 3
    assert "7 more of this kind were held back" in people.told[2]
    assert "sume-jobs list --status ERROR" in people.told[2]
    assert "held back" not in people.told[0] + people.told[1]


def test_many_unlisted_hosts_are_one_alert() -> None:
    """Hosts are told once a day each, and once in five minutes all together."""
    people, ledger = People(), Ledger()
    alerts = AppriseAlerts(people, ledger)
    assert [alerts.host_not_allowed(f"{n}.example", job_id="job_a") for n in range(5)] == [True, *[False] * 4]
    ledger.pass_time()
    alerts.tell_held_back()
    assert len(people.told) == 2
    assert "4 more" in people.told[1]


def test_what_was_held_back_is_told_when_no_other_alert_follows() -> None:
    """Two failures within five minutes and then silence: the second is told of too, once."""
    people, ledger = People(), Ledger()
    alerts = AppriseAlerts(people, ledger)
    for job_id in ("job_a", "job_b"):
        alerts.job_dead(job_id, reason="too_large", error="11 GiB")
    alerts.tell("workers_silent", "No worker", "Start one")
    alerts.tell("workers_silent", "No worker", "Start one")
    alerts.tell_held_back()
    assert len(people.told) == 2
    ledger.pass_time()
    alerts.tell_held_back()
    alerts.tell_held_back()
    assert len(people.told) == 3
    assert "1 more" in people.told[2]
    assert "sume-jobs list --state dead" in people.told[2]


def test_an_alert_that_hangs_is_left_behind() -> None:
    """Whatever a plugin does, the caller goes on; and a service that always hangs takes a bounded number of threads."""
    hanging, entered = threading.Event(), threading.Semaphore(0)

    def hang(_title: str, _body: str) -> bool:
        entered.release()
        return hanging.wait(60)

    ledger = Ledger()
    alerts = AppriseAlerts(hang, ledger, within=timedelta(milliseconds=20))
    for _ in range(MOST_HANGING + 3):
        assert not alerts.job_dead("job_a", reason="too_large", error="")
        ledger.pass_time()
    started = sum(entered.acquire(blocking=False) for _ in range(MOST_HANGING + 3))
    assert started == MOST_HANGING
    hanging.set()
    ledger.pass_time()
    deadline = time.monotonic() + 10
    while not alerts.job_dead("job_a", reason="too_large", error="") and time.monotonic() < deadline:
        ledger.pass_time()
    assert time.monotonic() < deadline, "threads that ended make room"


def test_a_signals_exception_is_not_swallowed_with_what_a_plugin_raises() -> None:
    """RQ's timeout is raised once, by a signal, in the thread that waits for the alert: it must come out of there."""

    class OneShotTimeoutError(Exception):
        """As RQ's is: a plain Exception."""

    def strike(_number: int, _frame: object) -> None:
        raise OneShotTimeoutError

    finish = threading.Event()

    def slow(_title: str, _body: str) -> bool:
        os.kill(os.getpid(), signal.SIGUSR1)
        return finish.wait(60)

    before = signal.signal(signal.SIGUSR1, strike)
    try:
        with pytest.raises(OneShotTimeoutError):
            AppriseAlerts(slow, Ledger()).job_dead("job_a", reason="too_large", error="")
    finally:
        signal.signal(signal.SIGUSR1, before)
        finish.set()


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
