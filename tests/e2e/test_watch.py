"""What the whole system tells people, through a real alert URL."""

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from shared.sandbox.system import System
from tests.e2e.conftest import SETTINGS, SOON, wait_until


class Told:
    """What people were told, by title."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def of(self, *words: str) -> list[str]:
        """Return the messages that hold all of these words."""
        return [message for message in self.messages if all(word in message for word in words)]


@pytest.fixture(scope="module")
def told() -> Iterator[tuple[Told, str]]:
    """An endpoint for Apprise's json:// URLs, and that URL."""
    told = Told()

    class Handler(BaseHTTPRequestHandler):
        """Keeps what is posted."""

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.messages.append(f"{message['title']}\n{message['message']}")
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield told, f"json://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(10)


@pytest.fixture(scope="module")
def system(folder: Path, told: tuple[Told, str]) -> Iterator[System]:
    """A system whose people can be reached."""
    with System(folder, settings=SETTINGS | {"ALERT_URLS": told[1]}) as system:
        yield system


def test_what_needs_a_person_is_told(system: System, told: tuple[Told, str]) -> None:
    """Refusals before anything was accepted, a body that is not understood, and jobs that failed: one alert a kind."""
    people, _ = told

    def wait_for(*words: str) -> str:
        system.until(lambda: bool(people.of(*words)), what=" ".join(words), within=SOON)
        [message] = people.of(*words)
        return message

    system.until(lambda: system.store.stats().alive == {"scheduler": 1, "worker": 1}, what="signs of life", within=SOON)
    assert system.sume.post(b"{}", headers={"X-Sume-Signature": "none", "X-Sume-Sig": "v1=00"}) == 401
    assert "headers of the last: " in wait_for("Deliveries are refused", "missing_signature", "x-sume-sig")
    assert system.sume.post(b'{"event": "job.exploded", "job_id": "job_x"}') == 204
    assert "sume-jobs quarantine show" in wait_for("quarantine", "unknown_event")
    for number in range(3):
        system.sume.add_job(f"job_failed{number}", outcome="failed")
        system.sume.deliver(f"job_failed{number}")
    jobs = [wait_until(system, f"job_failed{number}", "done") for number in range(3)]
    assert sum(job.acknowledged_at is not None for job in jobs) == 1, "who was held back reached nobody"
    assert len(people.of("job.failed")) == 1
    assert system.store.stats().last_accepted_at is not None
    system.until(lambda: system.store.intake_facts().accepted == 4, what="the counts", within=timedelta(seconds=10))
