"""Every page shows our messages."""

from collections.abc import Callable

from flask.testing import FlaskClient

from tests.dashboard.conftest import OPS, data, listed

PAGES = (
    "/",
    "/0/view/queues",
    "/0/view/workers",
    "/0/view/jobs",
    *(
        f"/0/view/jobs/sume/{registry}/8/asc/1"
        for registry in ("queued", "started", "finished", "failed", "deferred", "scheduled", "canceled")
    ),
)


def test_pages_while_a_worker_is_busy(browser: FlaskClient, work_through: Callable[[Callable[[], None]], None]) -> None:
    """Queued, started and failed messages, the busy worker and each message's own page can be read."""
    looked = []

    def look() -> None:
        for page in PAGES:
            assert browser.get(page, auth=OPS, follow_redirects=True).status_code == 200, page
        [queue] = data(browser, "/0/data/queues.json")["queues"]
        assert (queue["name"], queue["count"], queue["started_job_registry_count"]) == ("sume", 1, 1)
        assert [row["description"] for row in listed(browser, "queued")] == ["job.completed OK job_later (attempt 2)"]
        [started] = listed(browser, "started")
        assert started["description"] == "job.completed OK job_demo.1 (attempt 0)"
        [failed] = listed(browser, "failed")
        assert failed["exc_info"] == "MessageFailedError: handler_failed: <b>not bold</b>"
        [worker] = data(browser, "/0/data/workers.json")["workers"]
        assert worker["queues"] == ["sume"]
        assert worker["current_job"]["job_id"] == started["id"]
        assert browser.get(f"/0/view/job/{started['id']}", auth=OPS).status_code == 200
        own = data(browser, f"/0/data/job/{started['id']}.json")
        assert own["status"] == "started"
        assert "job.completed" in own["metadata"]
        looked.append(True)

    work_through(look)
    assert looked == [True]


def test_pages_while_all_is_idle(browser: FlaskClient, work_through: Callable[[Callable[[], None]], None]) -> None:
    """Finished and failed messages can be read when no worker is there."""
    work_through(lambda: None)
    for page in PAGES:
        assert browser.get(page, auth=OPS, follow_redirects=True).status_code == 200, page
    assert len(listed(browser, "finished")) == 2
    assert data(browser, "/0/data/workers.json") == {"workers": []}
    for row in listed(browser, "finished") + listed(browser, "failed"):
        assert browser.get(f"/0/view/job/{row['id']}", auth=OPS).status_code == 200
        assert data(browser, f"/0/data/job/{row['id']}.json")["id"] == row["id"]


def test_a_text_is_no_markup(browser: FlaskClient, work_through: Callable[[Callable[[], None]], None]) -> None:
    """A text that the page of a message inserts as it is arrives escaped."""
    work_through(lambda: None)
    [failed] = listed(browser, "failed")
    own = data(browser, f"/0/data/job/{failed['id']}.json")
    assert own["exc_info"] == "MessageFailedError: handler_failed: &lt;b&gt;not bold&lt;/b&gt;"


def test_a_message_that_is_gone(browser: FlaskClient) -> None:
    """The page of a forgotten message says so."""
    answer = browser.get("/0/view/job/job_old-123456abcdef", auth=OPS)
    assert (answer.status_code, "gone" in answer.text) == (404, True)
