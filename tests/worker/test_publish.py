"""Tests of artifacts on their way under their final names (I8)."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from shared.claims.records import Lease
from shared.errors import AttemptError, LeaseLostError, ParkedError, PermanentError
from shared.event import Artifact, StoredArtifact
from shared.storage.local import LocalStorage
from shared.storage.storage import never_stop
from tests.worker.downloads import PNG, downloader, sha256
from tests.worker.hosts import circuits_of
from tests.worker.scripted_host import Answerer, Request, ScriptedHost, silent, whole
from worker.artifacts import store_artifacts, weightiest
from worker.failures import DownloadError, ExpiredUrlError
from worker.publish import Publisher

LEASE = Lease(
    job_id="job_demo",
    token=UUID("00000000-0000-4000-8000-000000000001"),
    event="job.completed",
    status="OK",
    payload="{}",
    status_url=None,
    attempt=1,
    strikes=0,
    exhausted=False,
    previous_reason=None,
    previous_error=None,
    claimed_for=timedelta(),
    acknowledged=False,
    artifacts=(),
)


class Job:
    """One job's attempts against one host and one storage."""

    def __init__(self, root: Path, host: ScriptedHost) -> None:
        self.root, self.host = root, host
        self.recorded: list[StoredArtifact] = []
        self.publisher = Publisher(LocalStorage(root), downloader())

    def artifact(self, index: int = 0, name: str = "picture.png", **announced: str | int) -> Artifact:
        """Announce one file."""
        return Artifact(index, f"{self.host.url}/{name}", type="image", **announced)  # type: ignore[arg-type] # mixed

    def store(self, *artifacts: Artifact, check: object = never_stop, token: UUID | None = None) -> list[str]:
        """Run one attempt; return the paths."""
        lease = replace(LEASE, artifacts=tuple(self.recorded), token=token or LEASE.token)
        stored = store_artifacts(
            artifacts or (self.artifact(),),
            lease=lease,
            publisher=self.publisher,
            circuits=circuits_of(lease),
            concurrency=4,
            check=check,  # type: ignore[arg-type] # any check of a test
            record=self.recorded.append,
        )
        return [artifact.path for artifact in stored]

    def files(self) -> dict[str, bytes]:
        """Every file under the root but those of `.damaged/`."""
        files = (path for path in self.root.rglob("*") if path.is_file())
        content = {str(path.relative_to(self.root)): path.read_bytes() for path in files}
        return {name: data for name, data in content.items() if not name.startswith(".damaged")}


@pytest.fixture
def host() -> Iterator[ScriptedHost]:
    """A host that serves one picture."""
    with ScriptedHost([whole(PNG, content_type="image/png")]) as host:
        yield host


@pytest.fixture
def job(tmp_path: Path, host: ScriptedHost) -> Job:
    """A job of that host."""
    return Job(tmp_path, host)


def test_files_come_first_and_then_the_manifest(job: Job) -> None:
    """The contract's layout, with nothing left in progress."""
    assert job.store(job.artifact(1, "b.png"), job.artifact(0)) == ["job_demo/00-picture.png", "job_demo/01-b.png"]
    files = job.files()
    assert sorted(files) == ["job_demo/00-picture.png", "job_demo/01-b.png", "job_demo/manifest.json"]
    assert json.loads(files["job_demo/manifest.json"]) == {
        "job_id": "job_demo",
        "event": "job.completed",
        "status": "OK",
        "artifacts": [
            {
                "index": index,
                "path": path,
                "bytes": len(PNG),
                "sha256": sha256(PNG),
                "content_type": "image/png",
                "type": "image",
            }
            for index, path in enumerate(["job_demo/00-picture.png", "job_demo/01-b.png"])
        ],
    }


def test_equal_names_do_not_collide(job: Job) -> None:
    """Names that differ not at all, or only by case, are different files."""
    paths = job.store(job.artifact(0, "a.png"), job.artifact(1, "a.png"), job.artifact(2, "A.png"))
    assert paths == ["job_demo/00-a.png", "job_demo/01-a.png", "job_demo/02-A.png"]


HOSTILE_NAMES = (
    "../../../../etc/passwd",
    "/etc/passwd",
    "..\\..\\evil.png",
    "a\0b.png",
    "a\nb.png",
    "x" * 300 + ".png",
    "漢" * 120 + ".png",
    "\u00e9.png",
    "e\u0301.png",
    "PICTURE.png",
    "picture.png",
    ".sume-storage-id",
    "manifest.json",
    ".",
)


def test_hostile_names_lie_beside_each_other_in_the_jobs_folder(job: Job) -> None:
    """None leaves the folder, replaces another or the manifest, or is lost, whatever the file system folds."""
    job.store(*(replace(job.artifact(index), filename=name) for index, name in enumerate(HOSTILE_NAMES)))
    names = [path.name for path in (job.root / "job_demo").iterdir()]
    assert sorted(name[:2] for name in names) == [*(f"{n:02}" for n in range(len(HOSTILE_NAMES))), "ma"]
    assert {path.name for path in job.root.iterdir()} == {"job_demo", ".partial"}
    assert all(len(name.encode()) <= 123 for name in names)
    assert "manifest.json" in names


def test_a_job_without_files_has_a_manifest(job: Job) -> None:
    """Zero files are an answer too."""
    empty = store_artifacts(
        (),
        lease=LEASE,
        publisher=job.publisher,
        circuits=circuits_of(LEASE),
        concurrency=4,
        check=never_stop,
        record=job.recorded.append,
    )
    assert empty == ()
    assert json.loads(job.files()["job_demo/manifest.json"])["artifacts"] == []


def test_a_rerun_reuses_what_is_stored(job: Job) -> None:
    """What is recorded and unchanged is not downloaded, recorded or written again."""
    job.store()
    manifest = (job.root / "job_demo/manifest.json").stat().st_ino
    job.store(token=uuid4())
    assert len(job.host.requests) == 1
    assert len(job.recorded) == 1
    assert (job.root / "job_demo/manifest.json").stat().st_ino == manifest


def test_a_file_published_but_not_recorded_is_adopted(job: Job) -> None:
    """A worker that died between publishing and recording has done its work (I8)."""
    job.store()
    recorded, job.recorded = job.recorded, []
    job.store(token=uuid4())
    assert len(job.host.requests) == 1
    assert [(a.path, a.bytes, a.sha256) for a in job.recorded] == [(a.path, a.bytes, a.sha256) for a in recorded]


@pytest.mark.parametrize("damage", [b"", b"damaged", PNG[:-1], PNG[:-1] + b"x"])
@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_damaged_file_is_set_aside_and_fetched_again(job: Job, damage: bytes, is_recorded: object) -> None:
    """A file that contradicts its record, or what Sume stated, is kept for a person and replaced by a good one."""
    artifact = job.artifact(sha256=sha256(PNG), size_bytes=len(PNG))
    job.store(artifact)
    path = job.root / "job_demo/00-picture.png"
    path.write_bytes(damage)
    job.recorded = job.recorded if is_recorded else []
    job.store(artifact, token=uuid4())
    assert path.read_bytes() == PNG
    assert [aside.read_bytes() for aside in job.root.glob(".damaged/job_demo/*")] == [damage]


def test_a_deleted_file_is_fetched_again_to_the_same_place(job: Job) -> None:
    """The record decides the path, whatever the announcement says now."""
    job.store()
    (job.root / "job_demo/00-picture.png").unlink()
    assert job.store(job.artifact(name="renamed.png"), token=uuid4()) == ["job_demo/00-picture.png"]
    assert job.files()["job_demo/00-picture.png"] == PNG


def by_path(**answers: Answerer) -> Answerer:
    """Answer by the requested path."""

    def answer(request: Request, connection: object) -> None:
        answers[request.target.strip("/").partition(".")[0]](request, connection)  # type: ignore[arg-type] # a socket

    return answer


def test_one_failing_file_does_not_lose_the_others(tmp_path: Path) -> None:
    """Three of four are kept, the job is not done, and a rerun fetches the one that failed."""
    good = whole(PNG)
    with ScriptedHost([by_path(a=good, b=whole(b"", status=500), c=good, d=good)]) as host:
        job = Job(tmp_path, host)
        four = [job.artifact(index, f"{name}.png") for index, name in enumerate("abcd")]
        with pytest.raises(DownloadError, match=r"b\.png: answered 500"):
            job.store(*four)
        assert sorted(artifact.index for artifact in job.recorded) == [0, 2, 3]
        assert sorted(job.files()) == ["job_demo/00-a.png", "job_demo/02-c.png", "job_demo/03-d.png"]
        host.answers = [good]
        assert len(job.store(*four, token=uuid4())) == 4
        assert len(host.requests) == 5


def test_the_weightiest_failure_decides() -> None:
    """Dead at once, else a fresh URL, else a setting to change, else another attempt."""
    retry, parked = DownloadError("retry"), ParkedError("host_not_allowed", "parked", host="example.com")
    expired, permanent = ExpiredUrlError("expired"), PermanentError("permanent")
    failures: list[AttemptError] = [retry, parked, expired, permanent]
    while failures:
        assert weightiest(failures) is failures.pop()


def test_a_worker_that_slept_past_its_lease_replaces_nothing(tmp_path: Path) -> None:
    """What another worker published meanwhile stays, and the late one takes it for what it is (I8)."""
    other = PNG + b"other"

    def overtaken(request: Request, connection: object) -> None:
        folder = tmp_path / "job_demo"
        folder.mkdir()
        (folder / "00-picture.png").write_bytes(other)
        whole(PNG)(request, connection)  # type: ignore[arg-type] # a socket

    with ScriptedHost([overtaken]) as host:
        job = Job(tmp_path, host)
        job.store()
    assert job.files()["job_demo/00-picture.png"] == other
    assert job.recorded[0].sha256 == sha256(other)


def test_a_stopped_attempt_leaves_nothing_visible(tmp_path: Path) -> None:
    """All threads have ended when the error is raised, and no partial is left."""
    stopped, stop = threading.Event(), threading.Event()

    def check() -> None:
        if stop.is_set():
            raise LeaseLostError("gone")

    def answer(request: Request, connection: object) -> None:
        stop.set()
        silent(stopped, b"HTTP/1.1 200 OK\r\n\r\nsome")(request, connection)  # type: ignore[arg-type] # a socket

    with ScriptedHost([answer], stopped=stopped) as host:
        job = Job(tmp_path, host)
        with pytest.raises(LeaseLostError):
            job.store(*(job.artifact(index) for index in range(6)), check=check)
        assert job.files() == {}
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("download")]


def test_a_lease_lost_while_recording_stops_the_others(tmp_path: Path) -> None:
    """A record that is refused ends every transfer of the attempt, and the manifest is not written."""
    stopped = threading.Event()
    stalled = silent(stopped, b"HTTP/1.1 200 OK\r\n\r\nsome")
    with ScriptedHost([by_path(a=whole(PNG), b=stalled)], stopped=stopped) as host:
        job = Job(tmp_path, host)

        def refuse(_artifact: StoredArtifact) -> None:
            raise LeaseLostError("gone")

        began = time.monotonic()
        with pytest.raises(LeaseLostError):
            store_artifacts(
                [job.artifact(0, "a.png"), job.artifact(1, "b.png")],
                lease=LEASE,
                publisher=job.publisher,
                circuits=circuits_of(LEASE),
                concurrency=4,
                check=never_stop,
                record=refuse,
            )
        assert time.monotonic() - began < 3  # the stalled host is given 5 s
        assert sorted(job.files()) == ["job_demo/00-a.png"]
