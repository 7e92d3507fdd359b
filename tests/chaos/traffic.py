"""Sume's deliveries in a chaos run: paced, repeated until each is answered 2xx, every answer kept."""

import heapq
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from shared import clock
from shared.errors import StoreUnavailableError
from tests.chaos.jobs import PlannedJob
from tests.chaos.world import World

SENDERS = 12
AGAIN = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Answer:
    """One attempt at a delivery; `code` is 0 where nothing was answered, times are Unix seconds."""

    job_id: str
    begun: float
    ended: float
    code: int

    @property
    def accepted(self) -> bool:
        """Whether Sume counts it as delivered."""
        return self.code // 100 == 2

    @property
    def word(self) -> str:
        """What the table calls it."""
        return str(self.code) if self.code else "no answer"


class Traffic:
    """Delivers every job over `length`, then old ones again until stopped; `answers` is the ledger."""

    def __init__(self, world: World, *, length: timedelta, again: timedelta = AGAIN) -> None:
        self._world = world
        self._length, self._again = length.total_seconds(), again.total_seconds()
        self._chance = Random(f"traffic {world.seed}")
        self._lock = threading.Condition()
        self._due: list[tuple[float, int, PlannedJob]] = []
        self._count = 0
        self._open = 0
        self._stopping = threading.Event()
        self._replaying = threading.Event()
        self._pool = ThreadPoolExecutor(SENDERS + 1, thread_name_prefix="sume")
        self._bodies: dict[str, bytes] = {}
        self.answers: list[Answer] = []
        self.expected: set[str] = set()
        """Jobs that were registered; the call that did so has returned."""

    def start(self) -> None:
        """Begin."""
        lines = map(json.loads, self._world.bodies.read_text(encoding="utf-8").splitlines())
        self._bodies = {job_id: body.encode() for job_id, body in lines}
        begin = time.monotonic()
        jobs = self._world.jobs
        for number, job in enumerate(jobs):
            for _ in range(job.at_once if job.delivered else 1):
                self._push(begin + self._length * number / len(jobs), job)
        self._replaying.set()
        for _ in range(SENDERS):
            self._pool.submit(self._send)
        self._pool.submit(self._replay)

    def stop_replaying(self) -> None:
        """Deliver nothing anew; what was begun is still repeated until it is answered 2xx."""
        self._replaying.clear()

    def delivered(self) -> bool:
        """Whether everything that was begun has been answered 2xx."""
        with self._lock:
            return not self._open

    def close(self) -> None:
        """Stop."""
        self._stopping.set()
        with self._lock:
            self._lock.notify_all()
        self._pool.shutdown()

    def body(self, job_id: str) -> bytes:
        """Return what is delivered for a job."""
        return self._bodies[job_id]

    def _push(self, due: float, job: PlannedJob, *, again: bool = False) -> None:
        with self._lock:
            self._count += 1
            self._open += not again
            heapq.heappush(self._due, (due, self._count, job))
            self._lock.notify()

    def _pop(self) -> PlannedJob | None:
        with self._lock:
            while not self._stopping.is_set():
                now = time.monotonic()
                if self._due and self._due[0][0] <= now:
                    return heapq.heappop(self._due)[2]
                self._lock.wait(self._due[0][0] - now if self._due else 1)
        return None

    def _send(self) -> None:
        while (job := self._pop()) is not None:
            if self._deliver(job) if job.delivered else self._register(job):
                with self._lock:
                    self._open -= 1
            else:
                self._push(time.monotonic() + self._again * self._chance.uniform(0.5, 1.5), job, again=True)

    def _deliver(self, job: PlannedJob) -> bool:
        begun = clock.unix_seconds()
        code = self._world.deliveries.post(self._bodies[job.job_id])
        answer = Answer(job.job_id, begun, clock.unix_seconds(), code)
        self.answers.append(answer)
        return answer.accepted

    def _register(self, job: PlannedJob) -> bool:
        try:
            self._world.store.expect(job.job_id, status_url=None, due_in=timedelta(0))
        except StoreUnavailableError:
            return False
        self.expected.add(job.job_id)
        return True

    def _replay(self) -> None:
        """Press Redeliver for old jobs now and then, and go on with it until the faults are over."""
        pause = min(0.25, self._length / len(self._world.jobs) * 4)
        delivered = [job for job in self._world.jobs if job.delivered]
        begin = time.monotonic()
        while not self._stopping.wait(pause):
            if self._replaying.is_set():
                gone = min(1.0, (time.monotonic() - begin) / self._length)
                self._push(time.monotonic(), self._chance.choice(delivered[: max(1, int(gone * len(delivered)))]))
