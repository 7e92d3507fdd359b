"""Replaying what was in quarantine: read again, and claimed through the same door as any delivery."""

import sys
from collections.abc import Sequence

import structlog

from shared.claims.store import Store
from shared.cli.requeue import Sending
from shared.cli.session import full_session
from shared.cli.terminal import complain, note, progress_bar, say
from shared.errors import QuarantinedError
from shared.event import Event
from shared.intake import Intake
from shared.sume.payload import Ping, Quarantined, parse_delivery


def replay_all(quarantine_ids: Sequence[int] | None) -> int:
    """Replay these, None for all that were not yet; return the exit status."""
    replayed, problems = 0, list[str]()
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))  # where a conflict is told
    with full_session() as (_settings, store, queue):
        sending = Sending(queue)
        intake = Intake(store, sending)
        numbers = store.open_quarantine_ids() if quarantine_ids is None else quarantine_ids
        with progress_bar("replay", total=len(numbers)) as step:
            for number in numbers:
                outcome = replay(number, store=store, intake=intake)
                if isinstance(outcome, str):
                    problems.append(f"{number} {outcome}")
                else:
                    replayed += outcome
                step()
    say(f"replayed: {replayed}")
    if sending.failure is not None:
        note(f"{sending.failure}; the scheduler's sweep will queue what was claimed")
    for problem in problems:
        complain(problem)
    return 1 if problems else 0


def replay(number: int, *, store: Store, intake: Intake) -> bool | str:
    """Replay one; return whether it was (False: it had been before), or why it cannot be.

    The claim comes before the note that it was replayed: ended in between, a body is claimed again the next time,
    which counts one more delivery and changes nothing else.
    """
    kept = store.get_quarantined(number)
    if kept is None:
        return "is not in quarantine"
    if kept.entry.replayed_at is not None:
        return False
    try:
        understood = parse_delivery(kept.body)
    except QuarantinedError as error:
        return f"is still not understood ({error.code}); it stays"
    match understood:
        case Quarantined(reason=reason):
            return f"is still not understood ({reason}); it stays"
        case Event():
            intake.claim([understood])
        case Ping():
            pass  # a test is understood, and asks for nothing
    return store.mark_replayed(number)
