"""Where the list of a job's files comes from, and what happens when its URLs have expired."""

from datetime import timedelta

import pytest

from shared.sandbox.sume import Answer
from tests.worker.bench import FIRST, SECOND, Bench


@pytest.mark.parametrize("listed_at", [None, "artifacts"])
def test_a_list_that_is_missing_or_empty_is_asked_for(bench: Bench, listed_at: str | None) -> None:
    job = bench.claim("job_demo", artifacts=[], listed_at=listed_at)
    job.artifacts = [bench.sume.host("late.png", FIRST)]
    assert bench.attempt() is None
    assert list(bench.files().values()) == [FIRST]


def test_a_job_without_files_is_done_when_sume_says_so_and_only_then(bench: Bench) -> None:
    bench.claim("job_demo", artifacts=[])
    bench.sume.override("job_demo", Answer.error(503, "unavailable"), times=1)
    bench.attempt()
    assert bench.outcome() == ("claimed", "sume_api_failed", 1)
    bench.due()
    assert bench.attempt() is None
    assert bench.outcome() == ("done", None, 2)
    assert bench.record().artifacts == ()

    bench.claim("job_gone", artifacts=[])
    bench.sume.override("job_gone", Answer.error(404, "not_found"))
    bench.attempt("job_gone")
    assert bench.outcome("job_gone") == ("dead", "no_artifact_list", 1)


USUAL = timedelta(seconds=5)


@pytest.mark.parametrize(
    ("retry_after", "longest"),
    [
        ("-5", USUAL),
        ("0", USUAL),
        ("soon", USUAL),
        ("1e9", USUAL),
        ("Wed, 21 Oct 2015 07:28:00 GMT", USUAL),
        ("Fri, 31 Dec 9999 23:59:59 GMT", timedelta(minutes=10)),
        ("120", timedelta(minutes=2)),
        ("1000000", timedelta(minutes=10)),
        ("9" * 400, USUAL),
    ],
)
def test_retry_after_delays_the_job_within_bounds(bench: Bench, retry_after: str, longest: timedelta) -> None:
    """Whatever it says: at least as the usual back-off, at most POLL_MAX_SECONDS."""
    bench.change_settings(poll_max_seconds=600.0)
    bench.claim("job_demo", artifacts=[])
    bench.sume.override("job_demo", Answer.error(429, "slow_down", retry_after=retry_after))
    bench.attempt()
    assert bench.outcome() == ("claimed", "sume_api_failed", 1)
    record = bench.record()
    assert record.next_look_at is not None
    assert longest / 2 <= record.next_look_at - record.updated_at <= longest + timedelta(seconds=1)


@pytest.mark.parametrize(
    "answer",
    [Answer.html(), Answer.html(200), Answer.truncated(), Answer(200, b"{}"), Answer(200, b'{"data": []}')],
    ids=["html 5xx", "html 200", "truncated", "empty", "no object"],
)
def test_a_result_that_is_no_answer_is_asked_for_again(bench: Bench, answer: Answer) -> None:
    """It neither makes the job done without files nor kills it."""
    bench.claim("job_demo", artifacts=[])
    bench.sume.override("job_demo", answer, times=1)
    bench.attempt()
    assert bench.outcome() == ("claimed", "sume_api_failed", 1)
    bench.due()
    assert bench.attempt() is None
    assert bench.outcome() == ("done", None, 2)


def test_the_files_of_another_job_are_not_taken(bench: Bench) -> None:
    """An answer that names another job says nothing about this one."""
    job = bench.claim("job_demo", artifacts=[FIRST], listed_at=None)
    job.answers_as = "job_other"
    bench.attempt()
    assert bench.outcome() == ("claimed", "sume_api_failed", 1)
    assert bench.files() == {}


def test_expired_urls_are_exchanged_for_fresh_ones_within_the_attempt(bench: Bench) -> None:
    """What was published before the exchange is kept as it was recorded, though Sume names it differently now."""
    untyped = bench.sume.host("first.png", FIRST, stated={"content_type": None})
    job = bench.claim("job_demo", artifacts=[untyped, SECOND])
    good, expired = job.artifacts
    expired.expire()  # type: ignore[union-attr]  # bytes are hosted as a File
    good.filename = "renamed.png"  # type: ignore[union-attr]  # the same
    assert bench.attempt() is None
    assert bench.outcome() == ("done", None, 1)
    assert sorted(bench.files().values()) == [FIRST, SECOND]
    assert bench.record().artifacts[0].content_type == "image/png"  # as the host said, not the list
    assert bench.sume.media_requests.count(untyped.path) == 1


def test_a_list_that_was_just_asked_for_is_not_asked_for_again(bench: Bench) -> None:
    job = bench.claim("job_demo", artifacts=[FIRST], listed_at=None)
    job.artifacts[0].status = 403  # type: ignore[union-attr]  # bytes are hosted as a File
    bench.attempt()
    assert bench.outcome() == ("claimed", "download_failed", 1)
    assert bench.sume.api_requests.count() == 1


def test_urls_that_stay_expired_are_a_failed_download(bench: Bench) -> None:
    """Asked once, and not at all without a key; an empty answer does not make the job done."""
    job = bench.claim("job_demo", artifacts=[FIRST])
    job.artifacts[0].expire()  # type: ignore[union-attr]  # bytes are hosted as a File
    job.artifacts = []
    bench.attempt()
    assert bench.outcome() == ("claimed", "download_failed", 1)
    assert bench.sume.api_requests.count() == 1
    bench.due()
    bench.change_tools(api=None)
    bench.attempt()
    assert bench.outcome() == ("claimed", "download_failed", 2)
