"""The border where what a storage meets becomes one of our errors."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from shared.claims.states import Reason
from shared.errors import RetryableError


@contextmanager
def storage_failures(doing: str) -> Iterator[None]:
    """Translate an OSError into `storage_failed`, saying what was being done and what the system said."""
    try:
        yield
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno else type(error).__name__
        raise RetryableError(Reason.STORAGE_FAILED, f"storage could not {doing}: {problem}") from error


def without_hard_links() -> RetryableError:
    """Say that a file system cannot publish: without link() nothing keeps a published file from being replaced."""
    return RetryableError(
        Reason.STORAGE_FAILED,
        "storage could not publish: its file system has no hard links; STORAGE_URL must be on one that has",
    )


def on_two_file_systems() -> RetryableError:
    """Say that a file cannot be published because it would have to be copied, which is not atomic."""
    return RetryableError(
        Reason.STORAGE_FAILED,
        "storage could not publish: .partial and the job's folder lie on two file systems; STORAGE_URL must be one",
    )


def outside_root(path: str) -> RetryableError:
    """Say that a recorded path is none of ours."""
    return RetryableError(Reason.STORAGE_FAILED, f"path {path!r} leads out of the storage")
