"""Tests of where a job's files lie."""

from hypothesis import given
from hypothesis import strategies as st

from shared.storage.paths import artifact_path, job_folder, manifest_path

JOB_IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}", fullmatch=True)


def test_a_job_lies_where_the_contract_says() -> None:
    """The contract's example and its manifest."""
    assert artifact_path("job_demo", index=0, name="picture.png") == "job_demo/00-picture.png"
    assert manifest_path("job_demo") == "job_demo/manifest.json"


def test_an_index_grows_past_two_digits() -> None:
    """The hundredth file is 99, the next 100."""
    assert artifact_path("j", index=99, name="a") == "j/99-a"
    assert artifact_path("j", index=100, name="a") == "j/100-a"


def test_a_colon_is_percent_encoded() -> None:
    """`:` cannot be in a file name on other systems."""
    assert job_folder("job:1.a_b-c") == "job%3A1.a_b-c"


@given(JOB_IDS)
def test_a_folder_is_one_safe_name(job_id: str) -> None:
    """Whatever the job_id: one visible name that a file system can hold."""
    folder = job_folder(job_id)
    assert "/" not in folder
    assert not folder.startswith(".")
    assert len(folder.encode()) <= 255


@given(JOB_IDS, JOB_IDS)
def test_two_jobs_never_share_a_folder(one: str, other: str) -> None:
    """Different job_ids have different folders."""
    assert (job_folder(one) == job_folder(other)) == (one == other)


def test_two_long_jobs_never_share_a_folder() -> None:
    """Job_ids too long to be encoded in full still differ."""
    long = "j" + ":" * 126
    assert job_folder(long + "a") != job_folder(long + "b")
    assert len(job_folder(long + "a")) <= 255
