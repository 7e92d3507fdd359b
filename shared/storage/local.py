"""The storage behind `file://`: one folder tree on one file system that has hard links.

`os.link` is what publishes: it is atomic and fails where a name exists (I8). Without hard links (FAT, some network
mounts) nothing equally safe is left, so publishing there fails with a clear text instead of falling back.
"""

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

from shared.event import StoredArtifact
from shared.storage.durable import make_folder, sync_folder
from shared.storage.failures import on_two_file_systems, outside_root, storage_failures, without_hard_links
from shared.storage.local_partial import LocalPartial
from shared.storage.measure import identity, measure
from shared.storage.paths import DAMAGED, ID_FILE, PARTIAL, job_folder
from shared.storage.storage import Check, Found, LiveTokens, Partial, never_stop
from shared.storage.sweep import remove_ended_leases

STARTS = 5
"""Tries to make a folder that a sweep may be removing at the same moment."""
IDENTITY, PROBE = "identity", "probe"
"""Folders below `.partial/` for what belongs to no job."""
NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS})
"""What link() answers on file systems that have none."""


class LocalStorage:
    """Files under one root folder, which is made when first needed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._partials = root / PARTIAL

    @property
    def place(self) -> str:
        """The root folder."""
        return str(self._root)

    def start(self, job_id: str, *, token: UUID, name: str) -> LocalPartial:
        """Begin a file under `.partial/<folder of the job>/<token>/`."""
        folder = self._partials / job_folder(job_id) / str(token)
        with storage_failures(f"start {name} of {job_id}"):
            for _ in range(STARTS):
                with suppress(FileNotFoundError):
                    make_folder(self._partials)
                    folder.mkdir(parents=True, exist_ok=True)  # not synced: nobody looks for what a power cut takes
                    return LocalPartial(folder / name, stop=self._partials)
            raise FileNotFoundError(errno.ENOENT, "swept away each time")

    def publish(self, partial: Partial, path: str, *, before_manifest: bool = False) -> bool:
        """Link a partial to its final name; True also when a lost answer hid that it was (NFS)."""
        local, final = self._own(partial), self._final(path)
        with storage_failures(f"publish {path}"):
            local.make_durable()
            self._make_folder_of(final)
            try:
                link(local.path, final)
                published = True
            except FileExistsError:
                published = final.samefile(local.path)
            if not before_manifest:
                self._make_name_durable(final)
        if published:
            local.discard()
        return published

    def replace(self, partial: Partial, path: str) -> None:
        """Rename a partial over its final name."""
        local, final = self._own(partial), self._final(path)
        with storage_failures(f"write {path}"):
            local.make_durable()
            self._make_folder_of(final)
            local.path.replace(final)
            self._make_name_durable(final)
        local.discard()

    def settle(self, path: str) -> None:
        """Sync the folder, and that above it."""
        with storage_failures(f"publish {path}"):
            self._make_name_durable(self._final(path))

    def read(self, path: str) -> bytes | None:
        """Return a small published file."""
        with storage_failures(f"read {path}"):
            try:
                return self._final(path).read_bytes()
            except FileNotFoundError:
                return None

    def find(self, path: str, *, check: Check) -> Found | None:
        """Hash what is published, and sync its folder: a worker may have died between link and fsync."""
        final = self._final(path)
        with storage_failures(f"read {path}"):
            found = measure(final, check=check)
            if found is not None:
                self._make_name_durable(final)
            return found

    def set_aside(self, path: str, found: Found) -> None:
        """Move a damaged file to `.damaged/`; one that took its place since is put back."""
        final = self._final(path)
        aside = self._root / DAMAGED / f"{path}.{found.sha256[:12]}"
        with storage_failures(f"set {path} aside"):
            make_folder(aside.parent)
            with suppress(FileNotFoundError):
                final.replace(aside)
                if identity(aside.stat()) != found.identity:
                    link(aside, final)
                    aside.unlink()

    def find_problem(self, artifact: StoredArtifact, *, check: Check = never_stop) -> str | None:
        """Compare a file with its record; a wrong size spares the reading."""
        final = self._final(artifact.path)
        with storage_failures(f"read {artifact.path}"):
            if not final.is_file():
                return "missing"
            size = final.stat().st_size
            if size != artifact.bytes:
                return f"{size} bytes where {artifact.bytes} were stored"
            found = measure(final, check=check)
        return None if found is not None and found.sha256 == artifact.sha256 else "SHA-256 differs from the stored one"

    def sweep_partials(self, live: LiveTokens) -> int:
        """Delete `.partial/*/<token>` of every lease that has ended."""
        with storage_failures("sweep partial files"):
            return remove_ended_leases(self._partials, live=live)

    def free_bytes(self) -> int:
        """Ask the file system; a root that is not made yet will lie on that of its parent."""
        with storage_failures("say how much is free"):
            return shutil.disk_usage(existing(self._root)).free

    def read_id(self) -> str | None:
        """Read `.sume-storage-id`."""
        content = self.read(ID_FILE)
        return None if content is None else content.decode("ascii", "replace").strip()

    def make_id(self) -> str:
        """Publish the id as any file, so that the first of several makers wins."""
        while (found := self.read_id()) is None:
            partial = self.start(IDENTITY, token=uuid4(), name="id")
            try:
                partial.write(f"{uuid4()}\n".encode())
                self.publish(partial, ID_FILE)
            finally:
                partial.discard()
        return found

    def is_fresh(self) -> bool:
        """Look for anything but the id and what its makers leave while they are at it."""
        with storage_failures("look into the storage"):
            names = {path.name for path in self._root.iterdir()} if self._root.is_dir() else set()
            at_work = {path.name for path in self._partials.iterdir()} if self._partials.is_dir() else set()
        return names <= {ID_FILE, PARTIAL, "lost+found"} and at_work <= {IDENTITY, PROBE}

    def probe(self) -> None:
        """Write, link and delete a file, as publishing does; what a kill leaves of it is swept."""
        partial = self.start(PROBE, token=uuid4(), name="probe")
        linked = partial.path.with_name("linked")
        try:
            partial.write(b"probe")
            with storage_failures("publish a file"):
                partial.make_durable()
                link(partial.path, linked)
                linked.unlink()
        finally:
            partial.discard()

    def _final(self, path: str) -> Path:
        final = self._root / path
        if ".." in Path(path).parts or not final.is_relative_to(self._root):
            raise outside_root(path)
        return final

    @staticmethod
    def _own(partial: Partial) -> LocalPartial:
        if not isinstance(partial, LocalPartial):
            raise TypeError("this partial was started by another storage")
        return partial

    @staticmethod
    def _make_folder_of(final: Path) -> None:
        """Make it so that `_make_name_durable`, which must follow, makes it durable with what is in it."""
        make_folder(final.parent.parent)
        final.parent.mkdir(exist_ok=True)

    @staticmethod
    def _make_name_durable(final: Path) -> None:
        sync_folder(final.parent)
        sync_folder(final.parent.parent)  # whoever made the folder may have died before its own sync


def link(source: Path, name: Path) -> None:
    """Give a file a second name; FileExistsError where one stands."""
    try:
        os.link(source, name)
    except OSError as error:
        if error.errno in NO_HARD_LINKS:
            raise without_hard_links() from error
        if error.errno == errno.EXDEV:
            raise on_two_file_systems() from error
        raise


def existing(folder: Path) -> Path:
    """Return the folder, or the nearest above it that there is."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder
