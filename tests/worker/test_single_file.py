"""A job of one file is recorded and finished in fewer steps than others, and as safely (I8)."""

import os
import stat
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.worker.bench import FIRST, Bench


@pytest.mark.parametrize("handled", [False, True])
def test_a_single_file_is_recorded_when_its_name_is_durable(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, handled: bool
) -> None:
    """Also when only the file was lost, so that record and manifest say already what they are to say."""
    if handled:
        bench.handled_by(lambda _job: None)
    steps = watch_steps(bench, monkeypatch)
    bench.claim("job_demo", artifacts=[FIRST])
    for recorded in (False, True):
        steps.clear()
        assert bench.attempt() is None
        written = ["file"] if recorded else ["file", "file"]
        told = ["finish"] if recorded or not handled else ["record_artifact", "finish"]
        assert [step for step in steps if step != "root"] == [*written, "folder", *told]
        (file,) = bench.record().artifacts
        Path(bench.pipeline.tools.locate(file.path)).unlink()
        bench.subject.store.requeue("job_demo", force=True)


def watch_steps(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that fills with what is synced and what the database is told of a job's files."""
    steps: list[str] = []
    fsync, store = os.fsync, bench.pipeline.tools.store
    root = Path(bench.pipeline.tools.locate("."))

    def watched_fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        folder = "root" if status.st_ino == root.stat().st_ino else "folder"
        steps.append(folder if stat.S_ISDIR(status.st_mode) else "file")
        fsync(descriptor)

    class Watched:
        def __getattr__(self, name: str) -> object:
            if name in {"record_artifact", "finish"}:
                steps.append(name)
            return getattr(store, name)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    bench.change_tools(store=Watched())
    return steps


def test_a_single_file_is_recorded_before_its_handler_runs(bench: Bench) -> None:
    """Without a handler `finish` comes next, and records it; with one hours may pass."""
    bench.claim("job_demo", artifacts=[FIRST])
    seen: list[int] = []
    bench.handled_by(lambda _job: seen.extend(kept.bytes for kept in bench.record().artifacts))
    bench.attempt()
    assert seen == [len(FIRST)]


def test_a_single_file_without_its_manifest_is_kept_for_the_next_attempt(bench: Bench) -> None:
    """It is whole, whoever recorded it or not, is not fetched again, and is told of once."""
    job = bench.claim("job_demo", artifacts=[FIRST])
    manifest = Path(bench.pipeline.tools.locate("job_demo/manifest.json"))
    manifest.mkdir(parents=True)
    with capture_logs() as lines:
        bench.attempt()
        assert bench.outcome() == ("claimed", "storage_failed", 1)
        manifest.rmdir()
        bench.due()
        bench.attempt()
    assert [line["event"] for line in lines].count("artifact.published") == 1
    assert bench.outcome() == ("done", None, 2)
    paths = [request.path for request in bench.sume.media_requests.all()]
    assert paths.count(job.artifacts[0].path) == 1  # type: ignore[union-attr]  # bytes are hosted as a File
