"""The dashboard's application on a real Redis, and a real worker to look at."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.datastructures import Authorization

from shared.claims.records import Message
from shared.config import Settings
from shared.dashboard.app import create_app
from shared.queue import Queue, connect
from tests.conftest import MakeSettings
from worker.message import MessageFailedError
from worker.rq_worker import JobWorker
from worker.stop import StopFlag

TOKEN = "t0ken-øf-ops"
OPS = Authorization("basic", {"username": "ops", "password": TOKEN})
OK = Message("job_demo.1", "job.completed", "OK", 0)
BAD = Message("job_bad", "job.failed", "ERROR", 0)
LATER = Message("job_later", "job.completed", "OK", 2)
ERROR_TEXT = "handler_failed: <b>not bold</b>"

Look = Callable[[], None]


@pytest.fixture
def settings(make_settings: MakeSettings, redis_url: str) -> Settings:
    """Settings that hold what the dashboard needs."""
    return make_settings(redis_url=redis_url, ops_token=TOKEN, database_url="postgresql://nowhere/none")


@pytest.fixture
def browser(settings: Settings) -> Iterator[FlaskClient]:
    """Return a client of the application; it gives no password by itself."""
    client = connect(settings)
    with create_app(settings, client=client).test_client() as browser:
        yield browser
    client.close()


@pytest.fixture
def queue(settings: Settings) -> Iterator[Queue]:
    """The queue, with a message that fails, one that is looked at while it runs, and one that waits meanwhile."""
    queue = Queue(settings)
    queue.enqueue_many([OK, LATER, BAD])
    yield queue
    queue.close()


@pytest.fixture
def work_through(settings: Settings, queue: Queue) -> Callable[[Look], None]:  # noqa: ARG001 - filled before
    """Return a worker that works through the queue and calls back while it is busy with the job `job_demo.1`."""

    def run(look: Look) -> None:
        def work(job_id: str) -> None:
            if job_id == BAD.job_id:
                raise MessageFailedError(ERROR_TEXT)
            if job_id == OK.job_id:
                look()

        JobWorker(settings, work=work, stop=StopFlag()).run(burst=True, max_messages=10)

    return run


def data(browser: FlaskClient, path: str) -> Any:
    """Return the JSON that a page asks for."""
    answer = browser.get(path, auth=OPS)
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def listed(browser: FlaskClient, registry: str) -> list[dict[str, Any]]:
    """Return the messages that the page of one registry lists."""
    rows: list[dict[str, Any]] = data(browser, f"/0/data/jobs/sume/{registry}/8/asc/1.json")["jobs"]
    return rows
