"""What somebody wrote into Redis is never run by looking at it."""

import base64
import pickle
from pathlib import Path
from typing import Any

import redis
from flask.testing import FlaskClient
from rq.job import Job

from shared.queue import Queue
from tests.dashboard.conftest import OPS, listed


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._mark,)


def test_no_pickle_is_opened(browser: FlaskClient, queue: Queue, redis_url: str, tmp_path: Path) -> None:
    """A pickle as a message, its meta or its result stays closed on every page that shows it."""
    assert queue.depth() == 3
    mark = tmp_path / "opened"
    trap = pickle.dumps(Trap(mark))
    pages = ["/0/data/jobs/sume/queued/8/asc/1.json", "/0/data/workers.json"]
    with redis.Redis.from_url(redis_url) as client:
        for row in listed(browser, "queued"):
            client.hset(Job.key_for(row["id"]), mapping={"meta": trap, "data": trap})
            client.xadd(f"rq:results:{row['id']}", {"type": "1", "return_value": base64.b64encode(trap)})
            pages += [f"/0/view/job/{row['id']}", f"/0/data/job/{row['id']}.json"]
        browser.application.config["PROPAGATE_EXCEPTIONS"] = False
        answers = [browser.get(page, auth=OPS).status_code for page in pages]
    assert not mark.exists(), answers
    pickle.loads(trap)  # noqa: S301 - our own, to see that the trap works
    assert mark.exists()
