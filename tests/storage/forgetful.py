"""A storage whose partials may be left behind, as a killed worker leaves them."""

from contextlib import ExitStack
from pathlib import Path
from typing import Self
from uuid import UUID

from shared.storage.local import LocalStorage
from shared.storage.local_partial import LocalPartial


class ForgetfulStorage(LocalStorage):
    """Closes, at the end of the test, the files that the system closes for a killed worker."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._open = ExitStack()

    def start(self, job_id: str, *, token: UUID, name: str) -> LocalPartial:
        """Begin a file that is closed with the test."""
        partial = super().start(job_id, token=token, name=name)
        self._open.callback(partial._file.close)
        return partial

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
