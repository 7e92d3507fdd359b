"""The user's own function, called with a job once its files are stored."""

import asyncio
import importlib
import inspect
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rq.timeouts import BaseTimeoutException

from shared.claims.states import Reason
from shared.errors import PermanentError, RetryableError, SettingsError
from shared.logs import Redactor, get_logger

MAX_ERROR = 500


@dataclass(frozen=True, slots=True)
class JobArtifact:
    """One stored file."""

    index: int
    path: str
    """Absolute path, for a storage of files."""
    bytes: int
    sha256: str
    content_type: str | None
    type: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """What a handler is given. It may be given the same job again, so whatever it does must be idempotent."""

    job_id: str
    event: str
    status: str
    payload: dict[str, Any]
    error: str | None
    """Sume's error in one line, for an ERROR event."""
    artifacts: tuple[JobArtifact, ...]
    attempt: int


@dataclass(frozen=True, slots=True)
class Handler:
    """A loaded handler."""

    function: Callable[[Job], object]
    redactor: Redactor

    def call(self, job: Job) -> None:
        """Run it to its end, awaiting it where it is async.

        Whatever it raises, SystemExit included, ends the attempt as RetryableError (handler_failed), or as
        PermanentError where it raised that; the traceback goes to the log and nowhere else (I2).
        """
        try:
            result = self.function(job)
            if inspect.isawaitable(result):
                asyncio.run(finish(result))
        except BaseTimeoutException:
            raise  # RQ's timeout, raised by a signal wherever the handler was
        except PermanentError as error:
            raise PermanentError(self._text(error), reason=Reason.HANDLER_FAILED) from None
        except BaseException as error:  # noqa: BLE001 - it is the user's code, and SystemExit must not end the worker
            get_logger().exception("handler.failed", error=type(error).__name__)
            raise RetryableError(Reason.HANDLER_FAILED, f"{type(error).__name__}: {self._text(error)}") from None

    def _text(self, error: BaseException) -> str:
        try:
            text = str(error)
        except Exception:  # noqa: BLE001 - it is the user's code too
            text = "its text cannot be read"
        return self.redactor.text(" ".join(text.split()))[:MAX_ERROR]


async def finish(result: Awaitable[object]) -> None:
    """Await what an async handler returned."""
    await result


def load_handler(name: str, *, redactor: Redactor) -> Handler:
    """Import `package.module:function`, the working directory included, but after all that is installed.

    Raises SettingsError for what cannot be imported or called.
    """
    module_name, _, function_name = name.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        module = importlib.import_module(module_name)
    except BaseException as error:  # noqa: BLE001 - importing runs the user's code, SystemExit included
        problem = redactor.text(" ".join(str(error).split()))[:MAX_ERROR]
        raise SettingsError("HANDLER", f"cannot import {module_name}: {type(error).__name__}: {problem}") from None
    function = getattr(module, function_name, None)
    if not callable(function):
        raise SettingsError("HANDLER", f"{module_name} has no function {function_name}")
    return Handler(function, redactor)
