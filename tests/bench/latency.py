"""How long a delivery waits for its answer while 1,000 a second come at random moments."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from shared.claims.schema import migrate
from shared.sandbox.postgres import Postgres
from shared.sandbox.valkey import Valkey
from tests.bench import receivers
from tests.bench.bench import Bench
from tests.bench.deliveries import signed_requests
from tests.bench.load import open_loop
from tests.bench.receivers import SECRET, Receiver
from tests.bench.rounds import interleave
from tests.bench.row import Row, Target

RATE, REQUESTS, WARM_UP, CONNECTIONS = 1_000, 6_000, 1_000, 64
SHARE = 0.99
OURS, NOOP = "p99 ours", "p99 no-op"


def measure(bench: Bench) -> Iterator[Row]:
    """Deliver new jobs with fsync on and Redis there, so with everything that a delivery costs."""
    numbers = itertools.count()
    with ExitStack() as opened:
        postgres, valkey = opened.enter_context(Postgres()), opened.enter_context(Valkey())
        migrate(postgres.url)
        compared = {
            OURS: receivers.ours("ours", folder=bench.folder, database_url=postgres.url, redis_url=valkey.url),
            NOOP: receivers.other("noop", folder=bench.folder),
        }
        for receiver in compared.values():
            opened.callback(receiver.process.kill)
            percentile(receiver, numbers, count=WARM_UP)
        runs = {name: partial(percentile, receiver, numbers) for name, receiver in compared.items()}
        found = interleave(runs, compare=[(OURS, NOOP)], pairs=bench.pairs, say=bench.say)[OURS, NOOP]
    kept = tuple(milliseconds for milliseconds, _ in found.kept)
    yield Row("p99 at 1,000 deliveries/s", Target(at_most=5), kept, found.discarded, "ms")
    note = "a no-op waits for no disk; a delivery waits for its commit"
    yield found.row("p99 at 1,000 deliveries/s / FastAPI no-op", target=Target(at_most=5), unit="ms", note=note)


def percentile(receiver: Receiver, numbers: Iterator[int], *, count: int = REQUESTS) -> float:
    """Return the latency that 99 of 100 deliveries of new jobs stay below, in ms."""
    job_ids = [f"job_bench_{next(numbers):08}" for _ in range(count)]
    requests = signed_requests(job_ids, secret=SECRET.encode())
    return 1_000 * open_loop(receiver.port, requests, rate=RATE, connections=CONNECTIONS).percentile(SHARE)
