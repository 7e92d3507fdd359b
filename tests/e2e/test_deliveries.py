"""Deliveries and what becomes of them, on the whole system."""

from concurrent.futures import ThreadPoolExecutor

from shared.sandbox.system import System
from tests.e2e.conftest import assert_stored, wait_until


def test_two_deliveries_are_one_job_with_one_set_of_files(system: System) -> None:
    """Both are answered 204; one row, deliveries 2, one attempt, each file fetched once."""
    files = [system.sume.host(f"/two/{name}", bytes(name, "ascii") * 999) for name in ("a.png", "b.png")]
    system.sume.add_job("job_two", artifacts=files)
    assert [*system.sume.deliver("job_two"), system.sume.redeliver("job_two")] == [204, 204]
    job = wait_until(system, "job_two", "done")
    assert (job.deliveries, job.attempts, job.status) == (2, 1, "OK")
    assert_stored(system, job, files)
    assert [system.sume.media_requests.count(f"/two/{name}") for name in ("a.png", "b.png")] == [1, 1]


def test_fifty_deliveries_at_once_are_one_attempt(system: System) -> None:
    """50 times 204, deliveries 50, and the file is fetched once."""
    file = system.sume.host("/fifty/a.png", b"fifty" * 999)
    system.sume.add_job("job_fifty", artifacts=[file])
    assert system.sume.deliver("job_fifty", times=50, at_once=True) == [204] * 50
    job = wait_until(system, "job_fifty", "done")
    assert (job.deliveries, job.attempts) == (50, 1)
    assert_stored(system, job, [file])
    assert system.sume.media_requests.count("/fifty/a.png") == 1


def test_a_late_redelivery_downloads_nothing_again(system: System) -> None:
    """A done job never reopens by itself (I7)."""
    system.sume.add_job("job_late", artifacts=[system.sume.host("/late/a.png", b"late" * 99)])
    system.sume.deliver("job_late")
    wait_until(system, "job_late", "done")
    assert system.sume.redeliver("job_late") == 204
    job = wait_until(system, "job_late", "done")
    assert (job.deliveries, job.attempts) == (2, 1)
    assert system.sume.media_requests.count("/late/a.png") == 1


def test_failed_and_canceled_events_end_as_error(system: System) -> None:
    """They need no download and are done once handled."""
    for outcome in ("failed", "canceled"):
        system.sume.add_job(f"job_{outcome}", outcome=outcome)
        assert system.sume.deliver(f"job_{outcome}") == [204]
        job = wait_until(system, f"job_{outcome}", "done")
        assert (job.event, job.status, job.artifacts) == (f"job.{outcome}", "ERROR", ())


def test_a_test_event_leaves_no_row(system: System) -> None:
    """webhook.test is answered 204 and stored nowhere."""
    before = sum(system.store.stats().states.values())
    assert system.sume.send_test() == 204
    assert sum(system.store.stats().states.values()) == before


def test_webhook_and_poll_at_once_are_one_claim(system: System) -> None:
    """The job is asked for while its webhook arrives; one attempt, one set of files."""
    names = [f"job_race{n}" for n in range(8)]
    files = {name: system.sume.host(f"/race/{name}.png", name.encode() * 99) for name in names}
    for name in names:
        system.sume.add_job(name, artifacts=[files[name]])
        system.store.expect(name, status_url=None, due_in=system.settings.seconds("sweep_interval") * 0)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(system.sume.deliver, names)) == [[204]] * 8
    for name in names:
        job = wait_until(system, name, "done")
        assert (job.deliveries, job.attempts) == (1, 1)
        assert_stored(system, job, [files[name]])
        assert system.sume.media_requests.count(f"/race/{name}.png") == 1


def test_odd_but_real_json_is_kept_and_done(system: System) -> None:
    """Escapes of NUL and lone surrogates, a BOM and huge numbers go through claim, worker and alert like any body."""
    odd = {
        "nul": r'"\u0000"',
        "surrogates": r'"\ud800 \udfff"',
        "number": "9" * 400,
        "infinity": "1e400",
    }
    for name, value in odd.items():
        body = f'\ufeff{{"event": "job.failed", "job_id": "job_{name}", "error": {{"message": {value}}}, "x": {value}}}'
        assert system.sume.post(body.encode()) == 204
    for name in odd:
        job = wait_until(system, f"job_{name}", "done")
        assert (job.status, job.attempts) == ("ERROR", 1)
