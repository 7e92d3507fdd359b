"""Tests of what happens to the partials that killed workers left."""

from collections.abc import Collection, Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from shared.storage.local import LocalStorage
from tests.storage.forgetful import ForgetfulStorage

LIVE, DEAD = uuid4(), UUID("aaaaaaaa-0000-4000-8000-00000000000d")


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[LocalStorage]:
    """A storage at the test's folder."""
    with ForgetfulStorage(tmp_path) as storage:
        yield storage


def only_live(tokens: Collection[UUID]) -> Collection[UUID]:
    """Answer as the claim store would."""
    return {LIVE} & set(tokens)


def partials(root: Path) -> list[str]:
    """Every file and folder under `.partial/`, as relative paths."""
    return sorted(str(path.relative_to(root / ".partial")) for path in (root / ".partial").rglob("*"))


def test_only_partials_of_ended_leases_go(storage: LocalStorage, tmp_path: Path) -> None:
    """What a killed worker left goes; what a live worker writes, for the same job too, stays."""
    storage.start("job_demo", token=DEAD, name="00")
    live = storage.start("job_demo", token=LIVE, name="00")
    storage.start("job_gone", token=DEAD, name="00")
    assert storage.sweep_partials(only_live) == 2
    assert partials(tmp_path) == ["job_demo", f"job_demo/{LIVE}", f"job_demo/{LIVE}/00"]
    live.write(b"whole")
    assert storage.publish(live, "job_demo/00-a")


def test_a_lease_taken_while_sweeping_is_safe(storage: LocalStorage, tmp_path: Path) -> None:
    """A partial made after the folders were read is not of the leases that are asked about, so it stays."""
    storage.start("job_demo", token=DEAD, name="00")
    new = uuid4()

    def taken_meanwhile(tokens: Collection[UUID]) -> Collection[UUID]:
        storage.start("job_demo", token=new, name="00")
        return only_live(tokens)

    assert storage.sweep_partials(taken_meanwhile) == 1
    assert partials(tmp_path) == ["job_demo", f"job_demo/{new}", f"job_demo/{new}/00"]


def test_two_sweeps_at_once_are_harmless(storage: LocalStorage, tmp_path: Path) -> None:
    """Another scheduler that was faster is no error."""
    storage.start("job_demo", token=DEAD, name="00")

    def swept_meanwhile(_tokens: Collection[UUID]) -> Collection[UUID]:
        storage.sweep_partials(only_live)
        return ()

    storage.sweep_partials(swept_meanwhile)
    assert partials(tmp_path) == []


def test_nothing_is_asked_where_nothing_lies(storage: LocalStorage) -> None:
    """A storage without partials, or without a root, costs no question to the database."""

    def unexpected(_tokens: Collection[UUID]) -> Collection[UUID]:
        raise AssertionError

    assert storage.sweep_partials(unexpected) == 0


@pytest.mark.parametrize("name", ["notes", str(DEAD).upper(), DEAD.hex])
def test_what_is_not_ours_stays(storage: LocalStorage, tmp_path: Path, name: str) -> None:
    """A name that is no lease token as we write them is left alone."""
    (tmp_path / ".partial/job_demo" / name).mkdir(parents=True)
    assert storage.sweep_partials(only_live) == 0
    assert partials(tmp_path) == ["job_demo", f"job_demo/{name}"]


def test_a_partial_can_start_while_its_folder_is_removed(storage: LocalStorage, tmp_path: Path) -> None:
    """Discarding the last partial of a job removes folders that the next one makes again."""
    for _ in range(3):
        storage.start("job_demo", token=LIVE, name="00").discard()
        assert partials(tmp_path) == []
