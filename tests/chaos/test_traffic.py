"""Deliveries are repeated until they are answered 2xx, and each answer is kept."""

import json
import threading
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from shared.errors import StoreUnavailableError
from tests.chaos.jobs import PlannedJob
from tests.chaos.traffic import Traffic
from tests.chaos.world import World

CODES = {"job_a": [503, 0, 204], "job_b": [204]}
DEADLINE_SECONDS = 10


class Receiver:
    """Answers as it is told, and registers at the second attempt."""

    def __init__(self) -> None:
        self.left = {job_id: list(codes) for job_id, codes in CODES.items()}
        self.registered = 0
        self._lock = threading.Lock()

    def post(self, body: bytes) -> int:
        with self._lock:
            codes = self.left[json.loads(body)["job_id"]]
            return codes.pop(0) if len(codes) > 1 else codes[0]

    def expect(self, _job_id: str, *, status_url: str | None, due_in: timedelta) -> bool:
        assert status_url is None
        assert not due_in
        self.registered += 1
        if self.registered == 1:
            raise StoreUnavailableError("away")
        return True


def test_every_delivery_is_repeated_until_it_is_accepted(tmp_path: Path) -> None:
    receiver = Receiver()
    bodies = tmp_path / "bodies.jsonl"
    bodies.write_text("".join(json.dumps([job_id, json.dumps({"job_id": job_id})]) + "\n" for job_id in CODES))
    jobs = [PlannedJob("job_a", "plain"), PlannedJob("job_b", "plain", at_once=3), PlannedJob("job_c", "expected")]
    world = SimpleNamespace(seed=1, jobs=jobs, bodies=bodies, deliveries=receiver, store=receiver)
    traffic = Traffic(cast("World", world), length=timedelta(seconds=0.2), again=timedelta(milliseconds=10))
    traffic.start()
    traffic.stop_replaying()
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not traffic.delivered():
            assert time.monotonic() < deadline
            threading.Event().wait(0.01)
    finally:
        traffic.close()
    assert [answer.code for answer in traffic.answers if answer.job_id == "job_a"] == CODES["job_a"]
    assert [answer.accepted for answer in traffic.answers if answer.job_id == "job_b"] == [True] * 3
    assert traffic.expected == {"job_c"}
    assert all(answer.begun <= answer.ended for answer in traffic.answers)
