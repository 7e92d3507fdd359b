"""Who may see the dashboard, and what nobody can do there."""

from datetime import timedelta

import pytest
import redis
from flask.testing import FlaskClient
from rq_dashboard.web import blueprint  # type: ignore[import-untyped]  # the package has no types
from werkzeug.datastructures import Authorization

from shared.dashboard.app import create_app, label
from shared.queue import Queue, connect
from shared.sandbox.ports import LOOPBACK, free_port
from tests.conftest import MakeSettings
from tests.dashboard.conftest import OPS, TOKEN, data, listed


@pytest.mark.parametrize(
    "auth",
    [
        None,
        Authorization("basic", {"username": "ops", "password": "wrong"}),
        Authorization("basic", {"username": "admin", "password": TOKEN}),
        Authorization("basic", {"username": "", "password": f"ops:{TOKEN}"}),
        Authorization("bearer", token=TOKEN),
    ],
)
@pytest.mark.parametrize("path", ["/", "/0/data/queues.json", "/static/css/main.css", "/nowhere"])
def test_nothing_without_the_password(browser: FlaskClient, path: str, auth: Authorization | None) -> None:
    """Every path but /livez wants the user and the password, files and unknown paths too."""
    answer = browser.get(path, auth=auth)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")
    assert TOKEN not in answer.text


def test_livez_is_open(browser: FlaskClient) -> None:
    """A health check needs no password."""
    assert browser.get("/livez").status_code == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nothing_can_be_changed(browser: FlaskClient, queue: Queue, method: str) -> None:
    """No request of rq-dashboard's own deletes, empties or requeues anything, with the right password either."""
    [message, *_] = [row["id"] for row in listed(browser, "queued")]
    for path in (
        f"/job/{message}/delete",
        f"/job/{message}/requeue",
        "/requeue/sume",
        "/queue/sume/queued/empty",
        "/queue/sume/compact",
    ):
        assert browser.open(path, method=method, auth=OPS).status_code in {403, 405}, path
    assert queue.depth() == 3


def test_every_endpoint_is_known(browser: FlaskClient) -> None:
    """A later rq-dashboard with another endpoint is looked at by a person before it is let through."""
    changing = {"compact_queue", "delete_job_view", "empty_queue", "requeue_all", "requeue_job_view"}
    from shared.dashboard.pages import READING  # noqa: PLC0415 - beside what it is compared with

    rules = browser.application.url_map.iter_rules()
    endpoints = {rule.endpoint for rule in rules if rule.endpoint.startswith(blueprint.name)}
    assert {endpoint.removeprefix(f"{blueprint.name}.") for endpoint in endpoints} == READING | changing


@pytest.mark.parametrize("path", ["/1/view/queues", "/7/data/queues.json", "/0/view/jobs/sume/odd/8/asc/1"])
def test_no_other_redis_and_no_odd_registry(browser: FlaskClient, path: str) -> None:
    """What rq-dashboard would fail on is refused."""
    assert browser.get(path, auth=OPS).status_code == 403


def test_pages_reach_nobody_else(browser: FlaskClient) -> None:
    """Scripts of a page can talk to the dashboard alone."""
    policy = browser.get("/", auth=OPS).headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'self';")
    assert "http" not in policy


def test_redis_away(make_settings: MakeSettings) -> None:
    """While Redis refuses connections each page says so with 503; the application starts all the same."""
    url = f"redis://:pass-of-redis@{LOOPBACK}:{free_port()}/0"
    settings = make_settings(redis_url=url, ops_token=TOKEN)
    client = connect(settings)
    browser = create_app(settings, client=client).test_client()
    for path in ("/0/view/workers", "/0/view/jobs", "/0/data/queues.json", "/0/data/workers.json", "/0/view/job/a"):
        answer = browser.get(path, auth=OPS)
        assert (answer.status_code, "pass-of-redis" in answer.text) == (503, False), path
    client.close()


def test_no_password_of_redis_on_a_page(make_settings: MakeSettings, redis_url: str) -> None:
    """The corner that names the Redis shows host and database alone."""
    settings = make_settings(redis_url=redis_url.replace("//", "//u:pass-of-redis@"), ops_token=TOKEN)
    client = redis.Redis.from_url(redis_url, socket_timeout=timedelta(seconds=5).total_seconds())
    page = create_app(settings, client=client).test_client().get("/0/view/jobs", auth=OPS)
    assert (page.status_code, redis_url in page.text, "pass-of-redis" in page.text) == (200, True, False)
    client.close()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("rediss://u:p@cache.example:6380/2?ssl_cert_reqs=none&password=p", "rediss://cache.example:6380/2"),
        ("redis://[::1]:6379", "redis://[::1]:6379"),
        ("unix://u:p@/run/redis.sock?db=1", "unix:///run/redis.sock"),
    ],
)
def test_label(url: str, shown: str) -> None:
    """Neither user, password nor options of a Redis URL are shown."""
    assert label(url) == shown


def test_data_is_for_reading_now(browser: FlaskClient) -> None:
    """An empty Redis is an empty list of queues."""
    assert data(browser, "/0/data/queues.json") == {"queues": []}
