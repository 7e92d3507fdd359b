"""The arguments that several commands share, and what is checked about them."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated

import typer

from shared.errors import UsageError

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

LONGEST_DAYS = 36_500
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def check_job_ids(job_ids: Iterable[str]) -> None:
    """Raise UsageError for the first that can be no job_id."""
    from shared.sume.payload import is_job_id  # noqa: PLC0415 - `--help` answers without loading it

    for job_id in job_ids:
        if not is_job_id(job_id):
            raise UsageError(
                f"{job_id[:140]!r} is no job_id: 1-128 of A-Z a-z 0-9 . _ : - starting with a letter or digit"
            )


def read_since(text: str, *, now: datetime) -> timedelta:
    """Return how long ago `2h`, `30m`, `1d` or an RFC 3339 time was; raises UsageError for anything else."""
    unit = UNITS.get(text[-1:])
    if unit and text[:-1].isascii() and text[:-1].isdigit() and len(text) <= len("31536000s"):
        return timedelta(**{unit: int(text[:-1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise UsageError(f"--since {text!r} is neither like 30m, 2h or 1d nor like 2026-01-31T12:00:00Z")
    if moment > now:
        raise UsageError(f"--since {text} is in the future")
    return now - moment
