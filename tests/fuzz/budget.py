"""How long to generate: FUZZ_SECONDS for each target, or one short round."""

import os
import time
from collections.abc import Callable

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))  # noqa: TID251 - a fact about the test run, not a setting of ours


def explore(one_round: Callable[[], None]) -> None:
    """Run a hypothesis test again and again, each round with new examples, until the time is over."""
    deadline = time.monotonic() + SECONDS
    one_round()
    while time.monotonic() < deadline:
        one_round()
