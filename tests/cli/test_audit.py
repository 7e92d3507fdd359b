"""What the audit proves."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from shared.audit import Auditor
from shared.claims.records import AuditRecord
from shared.claims.states import Reason
from shared.event import StoredArtifact
from shared.storage import open_storage
from shared.storage.storage import Check, Storage, never_stop
from tests.claims.postgres_subject import PostgresSubject
from tests.cli.conftest import Cli
from tests.conformance.leasing import bring_to
from tests.conformance.subject import STALE
from tests.conftest import MakeSettings

BODY = b"picture"


def store_job(subject: PostgresSubject, root: Path, job_id: str = "job_a") -> Path:
    """Bring a job to done with one file, as the worker does; return the file."""
    file = root / job_id / "00-a.png"
    file.parent.mkdir(parents=True)
    file.write_bytes(BODY)
    digest = hashlib.sha256(BODY).hexdigest()
    artifact = StoredArtifact(0, f"{job_id}/00-a.png", len(BODY), digest, "image/png", "image")
    write_manifest(root, job_id, asdict(artifact))
    subject.deliver(job_id)
    assert subject.store.finish(job_id, [artifact], token=subject.take(job_id).token, acknowledged=False)
    return file


def write_manifest(root: Path, job_id: str, *artifacts: object, status: str = "OK") -> None:
    """Write a manifest as the worker does."""
    content = {"job_id": job_id, "event": "job.completed", "status": status, "artifacts": artifacts}
    (root / job_id / "manifest.json").write_text(json.dumps(content))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The storage's folder: the default, below the folder that the commands run in."""
    return tmp_path / "artifacts"


def test_everything_in_place_is_proven(cli: Cli, subject: PostgresSubject, root: Path) -> None:
    """Done jobs with their files, and every kind of job that is visibly open or had nothing to store."""
    store_job(subject, root)
    subject.store.expect("job_expected", status_url=None, due_in=STALE)
    for state in ("claimed", "running", "dead"):
        bring_to(subject, f"job_{state}", state)
    subject.deliver("job_failed", "job.failed")
    subject.store.finish("job_failed", [], token=subject.take("job_failed").token, acknowledged=True)
    ran = cli("audit", "--json")
    assert (ran.code, ran.json()) == (0, {"ok": True, "checked": 5, "problems": []})
    assert cli("audit").out.startswith("ok: 5 jobs checked")


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda file: file.unlink(), "missing"),
        (lambda file: file.write_bytes(b"pictur"), "6 bytes where 7 were stored"),
        (lambda file: file.write_bytes(b"pictura"), "SHA-256 differs from the stored one"),
    ],
)
def test_a_damaged_file_is_named(
    cli: Cli, subject: PostgresSubject, root: Path, damage: Callable[[Path], object], problem: str
) -> None:
    """Deleted, truncated or changed by one bit: exit 1, and the other jobs are fine."""
    file = store_job(subject, root)
    store_job(subject, root, "job_b")
    damage(file)
    found = cli("audit", "--json")
    assert (found.code, found.err) == (1, "")
    expected = [{"job_id": "job_a", "path": "job_a/00-a.png", "problem": problem}]
    assert found.json() == {"ok": False, "checked": 2, "problems": expected}
    table = cli("audit")
    assert (table.code, "job_a/00-a.png" in table.out) == (1, True)
    assert table.err == "error: 1 problems in 2 jobs checked\n"


@pytest.mark.parametrize("manifest", [None, "", "[]", '{"job_id": "job_a"}', "[" * 10_000])
def test_a_manifest_must_be_there_and_be_one(
    cli: Cli, subject: PostgresSubject, root: Path, manifest: str | None
) -> None:
    """Missing or unreadable."""
    path = store_job(subject, root).with_name("manifest.json")
    path.unlink() if manifest is None else path.write_text(manifest)
    [problem] = cli("audit", "--json").json()["problems"]
    assert problem["path"] == "job_a/manifest.json"


def test_a_manifest_must_agree_with_the_record(cli: Cli, subject: PostgresSubject, root: Path) -> None:
    """Another job's, another status, or another list of files."""
    file = store_job(subject, root)
    good = file.with_name("manifest.json").read_text()
    for wrong in ("job_b", "ERROR"):
        changed = good.replace("job_a" if wrong == "job_b" else '"OK"', wrong if wrong == "job_b" else '"ERROR"', 1)
        file.with_name("manifest.json").write_text(changed)
        assert cli("audit").code == 1
    write_manifest(root, "job_a")
    assert cli("audit").code == 1
    file.with_name("manifest.json").write_text(good)
    assert cli("audit").code == 0


def test_a_pruned_job_has_nothing_left_to_compare(cli: Cli, subject: PostgresSubject, root: Path) -> None:
    """Its record of files is gone, so it is accounted for by its key alone."""
    store_job(subject, root).unlink()
    assert cli("audit").code == 1
    cli("prune", "--older-than", "0")
    assert cli("audit", "--json").json() == {"ok": True, "checked": 1, "problems": []}


class Meanwhile:
    """A storage in which something happens while a file is missing, before the audit looks again."""

    def __init__(self, storage: Storage, happens: Callable[[], object]) -> None:
        self._storage = storage
        self._happens: Callable[[], object] | None = happens

    def find_problem(self, artifact: StoredArtifact, *, check: Check = never_stop) -> str | None:
        """Look, and then let it happen, once."""
        problem = self._storage.find_problem(artifact, check=check)
        if problem is not None and self._happens is not None:
            happens, self._happens = self._happens, None
            happens()
        return problem

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)


def audited(subject: PostgresSubject, storage: object) -> bool:
    """Return what the audit says of a storage."""
    return Auditor(subject.store, storage).audit().ok  # type: ignore[arg-type] # Meanwhile has the rest by delegation


def test_a_job_reopened_meanwhile_is_no_false_alarm(
    subject: PostgresSubject, make_settings: MakeSettings, tmp_path: Path
) -> None:
    """It is open again, which `list` shows."""
    file = store_job(subject, tmp_path / "artifacts")
    file.unlink()
    storage = open_storage(make_settings())
    assert audited(subject, Meanwhile(storage, lambda: subject.store.requeue("job_a", force=True)))


def test_a_file_put_back_meanwhile_is_no_false_alarm(
    subject: PostgresSubject, make_settings: MakeSettings, tmp_path: Path
) -> None:
    """A rerun sets a damaged file aside and publishes it again."""
    file = store_job(subject, tmp_path / "artifacts")
    file.unlink()
    storage = open_storage(make_settings())
    assert audited(subject, Meanwhile(storage, lambda: file.write_bytes(BODY)))


def test_a_duplicate_delivery_meanwhile_hides_nothing(
    subject: PostgresSubject, make_settings: MakeSettings, tmp_path: Path
) -> None:
    """It changes no state, so the problem stands."""
    store_job(subject, tmp_path / "artifacts").unlink()
    storage = open_storage(make_settings())
    assert not audited(subject, Meanwhile(storage, lambda: subject.deliver("job_a")))


def test_an_unreadable_file_is_a_problem_and_not_the_end(
    subject: PostgresSubject, make_settings: MakeSettings, tmp_path: Path
) -> None:
    """What stands in the way is told of the one job."""
    file = store_job(subject, tmp_path / "artifacts")
    store_job(subject, tmp_path / "artifacts", "job_b")
    (file.with_name("manifest.json")).unlink()
    file.with_name("manifest.json").mkdir()
    found = Auditor(subject.store, open_storage(make_settings())).audit()
    assert [(problem.job_id, "storage could not read" in problem.problem) for problem in found.problems] == [
        ("job_a", True)
    ]


class Endless:
    """A storage whose every file takes as long as it is let."""

    place = "nowhere"

    def __init__(self) -> None:
        self.stopped = 0

    def find_problem(self, _artifact: StoredArtifact, *, check: Check) -> str | None:
        """Read until told to stop."""
        while True:
            try:
                check()
            except BaseException:
                self.stopped += 1
                raise

    def read(self, _path: str) -> bytes | None:
        """Have no manifest."""
        return None

    def read_id(self) -> None:
        """Have no id."""


class Interrupted:
    """A store that gives one job and is then interrupted, as by Ctrl-C."""

    def storage_id(self) -> None:
        """Know no storage."""

    def audit(self) -> Iterator[AuditRecord]:
        """Yield one job."""
        artifact = StoredArtifact(0, "job_a/00-a.png", 1, "00")
        yield AuditRecord("job_a", "done", "OK", None, pruned=False, artifacts=(artifact,))
        raise KeyboardInterrupt


def test_an_interrupted_audit_stops_reading() -> None:
    """Files of any size are let go at once."""
    storage = Endless()
    with pytest.raises(KeyboardInterrupt):
        Auditor(Interrupted(), storage).audit()  # type: ignore[arg-type] # fakes of the methods it asks
    assert storage.stopped == 1


def test_many_jobs_are_all_checked(subject: PostgresSubject, make_settings: MakeSettings, tmp_path: Path) -> None:
    """More than are read ahead, each counted once."""
    for number in range(150):
        bring_to(subject, f"job_{number}", "claimed")
    store_job(subject, tmp_path / "artifacts").unlink()
    steps: list[None] = []
    found = Auditor(subject.store, open_storage(make_settings())).audit(step=lambda: steps.append(None))
    assert (found.checked, len(steps), len(found.problems)) == (151, 151, 1)


def test_reasons_are_not_problems(cli: Cli, subject: PostgresSubject) -> None:
    """A parked job is visibly open."""
    subject.deliver("job_a")
    lease = subject.take("job_a")
    subject.store.hand_back("job_a", token=lease.token, reason=Reason.HOST_NOT_ALLOWED, error="x", wait=STALE)
    assert cli("audit").code == 0


def test_a_strange_storage_explains_what_is_missing(cli: Cli, subject: PostgresSubject) -> None:
    """Everything is audited all the same."""
    subject.store.keep_storage_id("another")
    bring_to(subject, "job_demo", "done")
    ran = cli("audit", "--json")
    problems = ran.json()["problems"]
    assert (ran.code, ran.json()["checked"]) == (1, 1)
    assert (problems[0]["job_id"], problems[0]["path"]) == ("", ".sume-storage-id")
    assert "not the storage this database knows" in problems[0]["problem"]
    assert {problem["job_id"] for problem in problems[1:]} == {"job_demo"}
