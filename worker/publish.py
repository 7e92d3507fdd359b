"""One artifact under its final name: found there, or downloaded, verified and published (I8)."""

from dataclasses import dataclass

from shared.claims.records import Lease
from shared.claims.states import Reason
from shared.errors import HeldError, RetryableError
from shared.event import Artifact, StoredArtifact
from shared.logs import get_logger
from shared.storage.paths import artifact_path
from shared.storage.storage import Check, Found, Storage
from worker.circuit import Circuits
from worker.download import Downloader
from worker.failures import DownloadError, IntegrityError
from worker.filenames import file_name
from worker.promise import Promise


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes artifacts; may be shared by threads."""

    storage: Storage
    downloader: Downloader
    min_free: int = 0
    """STORAGE_MIN_FREE_BYTES."""

    def publish(
        self, artifact: Artifact, *, lease: Lease, check: Check, circuits: Circuits, before_manifest: bool = False
    ) -> StoredArtifact:
        """Return the artifact as it lies under its final name.

        A file that is as recorded is reused. One without a record was published by a worker that died before it
        could record it: it is whole (I8) and is adopted, unless it contradicts the stated size or SHA-256. Any other
        is damaged: it is set aside and replaced. What a host did is told to its circuit. Raises as
        `Downloader.download`, CircuitOpenError, storage_failed, and HeldError (storage_full). `before_manifest` is as
        in `Storage.publish`.
        """
        recorded = next((known for known in lease.artifacts if known.index == artifact.index), None)
        path = (
            recorded.path if recorded else artifact_path(lease.job_id, index=artifact.index, name=file_name(artifact))
        )
        if (kept := self._keep(artifact, path, recorded, lease=lease, check=check)) is not None:
            return kept
        self._require_room(artifact)
        partial = self.storage.start(lease.job_id, token=lease.token, name=f"{artifact.index:02}")
        try:
            try:
                verified = self.downloader.download(artifact, partial, check=check, admit=circuits.admit)
            except DownloadError as error:
                circuits.failed(error)
                raise
            circuits.worked(verified.hosts)
            check()
            if self.storage.publish(partial, path, before_manifest=before_manifest):
                content_type = artifact.content_type or verified.content_type
                return StoredArtifact(
                    artifact.index, path, verified.bytes, verified.sha256, content_type, artifact.type
                )
        finally:
            partial.discard()
        if (kept := self._keep(artifact, path, recorded, lease=lease, check=check)) is not None:
            return kept  # a worker that slept past its lease was faster; what is published is never replaced
        raise RetryableError(Reason.STORAGE_FAILED, f"storage held a damaged file at {path} again")

    def _require_room(self, artifact: Artifact) -> None:
        """Raise HeldError (storage_full) when less would be free than must be; other jobs' files may come first."""
        if not self.min_free:
            return
        free = self.storage.free_bytes()
        if free - (artifact.size_bytes or 0) < self.min_free:
            message = f"storage has {free} bytes free, and STORAGE_MIN_FREE_BYTES ({self.min_free}) must stay so"
            raise HeldError(Reason.STORAGE_FULL, message)

    def _keep(
        self, artifact: Artifact, path: str, recorded: StoredArtifact | None, *, lease: Lease, check: Check
    ) -> StoredArtifact | None:
        check()
        found = self.storage.find(path, check=check)
        if found is None:
            return None
        if recorded is not None and (found.bytes, found.sha256) == (recorded.bytes, recorded.sha256):
            return recorded
        if recorded is None and keeps_promise(artifact, found):
            return StoredArtifact(artifact.index, path, found.bytes, found.sha256, artifact.content_type, artifact.type)
        check()
        self.storage.set_aside(path, found)
        get_logger().warning("artifact.set_aside", job_id=lease.job_id, path=path, bytes=found.bytes)
        return None


def keeps_promise(artifact: Artifact, found: Found) -> bool:
    """Whether a published file has the stated size and SHA-256, so far as any is stated, and is not empty."""
    try:
        promise = Promise.of(artifact, max_bytes=found.bytes)
        promise.verify(size=found.bytes, sha256=found.sha256, name="")
    except IntegrityError:
        return False
    return True
