"""What a message from Redis can make a worker do."""

from collections.abc import Callable

from shared.errors import SumeJobsError
from shared.queue import FUNCTION, InertJob


class MessageFailedError(SumeJobsError):
    """What RQ is told about a failed attempt: a code and one line, since it keeps the text in Redis (I2)."""


class ForeignMessageError(SumeJobsError):
    """A message names something other than our one function with one job_id: nothing of it is imported or run."""


class Message(InertJob):
    """A message whose only possible effect is the work on one job_id."""

    work: Callable[[str], None]

    def perform(self) -> None:
        """Do the work, whatever the message asks for being exactly our function with one text."""
        if (self.func_name, self.instance, self.kwargs) != (FUNCTION, None, {}):
            raise ForeignMessageError(f"message names {self.func_name!r}; only {FUNCTION} is run")
        match self.args:
            case [str(job_id)]:
                self.work(job_id)
            case _:
                raise ForeignMessageError(f"message for {FUNCTION} does not hold exactly one job_id")


def describe(error: BaseException | None) -> str:
    """Return one bounded line about an error, without a traceback."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
