"""The one tree of errors, each class saying what happens to the job or the command."""


class SumeJobsError(Exception):
    """Any error of ours; its text is safe to log, store and show (I9), whatever bytes a foreign error's text held."""

    def __init__(self, message: str = "") -> None:
        super().__init__(storable(message))


def storable(text: str) -> str:
    """Return a text that PostgreSQL and UTF-8 can hold: NUL and lone surrogates are written out."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


class SettingsError(SumeJobsError):
    """A setting is missing or unusable: the command stops with exit 2 and this one line."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name


class UsageError(SumeJobsError):
    """A command was called wrongly: exit 2 and this one line."""


class DeliveryError(SumeJobsError):
    """A delivery is refused with a 4xx or 5xx answer; nothing is claimed."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class QuarantinedError(DeliveryError):
    """A signed delivery that is not understood: its bytes are kept in quarantine before it is answered."""


class StoreUnavailableError(SumeJobsError):
    """Postgres cannot be reached, is locked, slow or full: nothing was stored that was not said to be."""

    def __init__(self, message: str, *, reachable: bool = False) -> None:
        super().__init__(message)
        self.reachable = reachable
        """The database answered: one row of a batch may be at fault, so writing them singly may help."""


class QueueUnavailableError(SumeJobsError):
    """Redis cannot be used: the claim stands and the sweep will send the message."""


class SumeApiError(SumeJobsError):
    """Sume's API gave no usable answer; ask again later."""

    def __init__(self, message: str, *, http_status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.http_status = http_status
        self.retry_after = retry_after
        """Seconds Sume asked us to wait, unbounded as received; None where it did not say."""


class AttemptError(SumeJobsError):
    """An attempt at a job failed for a documented reason (`shared.claims.reasons`)."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class RetryableError(AttemptError):
    """The attempt failed and may be repeated: the job is released with back-off."""


class PermanentError(AttemptError):
    """Repeating cannot help: the job is buried at once. A handler may raise it with a message alone."""

    def __init__(self, message: str, *, reason: str = "handler_failed") -> None:
        super().__init__(reason, message)


class ParkedError(AttemptError):
    """The job waits for a person to list a host in ARTIFACT_HOSTS: no attempt is counted."""

    def __init__(self, reason: str, message: str, *, host: str) -> None:
        super().__init__(reason, message)
        self.host = host
        """The host that is not listed, with its port where one was given."""


class HeldError(AttemptError):
    """The job cannot go on now and nothing is wrong with it: it waits, and no attempt is counted."""

    def __init__(self, reason: str, message: str, *, host: str | None = None) -> None:
        super().__init__(reason, message)
        self.host = host
        """The artifact host whose circuit is open; None when it waits for something else."""


class LeaseLostError(SumeJobsError):
    """Another worker may hold the job now: stop and change nothing (I5)."""


class ShutdownError(SumeJobsError):
    """The worker was asked to stop: the job is handed back and the attempt is not counted."""
