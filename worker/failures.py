"""How a download fails: the border where the network's errors become ours, naming host and path only (I9)."""

import http.client
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from shared.claims.states import Reason
from shared.errors import RetryableError
from worker.target import Target


class DownloadError(RetryableError):
    """The artifact host did not give the whole file."""

    def __init__(self, message: str, *, host: str | None = None) -> None:
        super().__init__(Reason.DOWNLOAD_FAILED, message)
        self.host = host
        """The host that may be failing for every job; None where this file alone may be at fault."""


class ExpiredUrlError(DownloadError):
    """The URL answers 401, 403, 404 or 410: ask Sume for a fresh one before this counts as a failed attempt."""


class CutError(DownloadError):
    """The connection ended before the file did, or the host is busy: what has arrived may be continued."""


class IntegrityError(RetryableError):
    """What arrived is not what was promised."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.INTEGRITY_FAILED, message)


@contextmanager
def network_failures(target: Target, *, stall: timedelta) -> Iterator[None]:
    """Translate what sockets, TLS and http.client raise; a wait that was too long is not to be continued."""
    host = target.authority
    try:
        yield
    except TimeoutError as error:
        raise DownloadError(f"{target.name}: no byte for {stall.total_seconds():g} s", host=host) from error
    except ssl.SSLCertVerificationError as error:
        raise DownloadError(f"{target.name}: certificate refused: {error.verify_message}", host=host) from error
    except http.client.IncompleteRead as error:
        raise CutError(f"{target.name}: the transfer was cut", host=host) from error
    except http.client.RemoteDisconnected as error:
        raise CutError(f"{target.name}: the connection was closed without an answer", host=host) from error
    except http.client.HTTPException as error:
        raise CutError(f"{target.name}: the answer is not HTTP ({type(error).__name__})", host=host) from error
    except OSError as error:
        raise CutError(f"{target.name}: {error.strerror or type(error).__name__}", host=host) from error
