"""The dashboard's web application: who may see it, and what it never does."""

import hmac
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, Response, jsonify, request
from markupsafe import escape
from redis import Redis
from redis.exceptions import RedisError
from rq.exceptions import NoSuchJobError

from shared.config import Settings
from shared.dashboard.pages import pages, reads_only
from shared.logs import get_logger

USER = "ops"
LIVEZ = "/livez"
POLL_MILLISECONDS = 2500
RETRY_AFTER_SECONDS = 5
CONTENT_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""rq-dashboard's pages are inline templates, so scripts cannot be forbidden; what they can reach is."""
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
ESCAPED_BY_THE_PAGE = {"rq_dashboard.list_jobs": {"description", "exc_info"}}
STYLE = b"""<style>
#compact-btn, #requeue-all-btn, #requeue-job-btn, #jobs th:nth-child(3), #jobs .actions { display: none !important }
.section { overflow-x: auto }
</style>"""
"""The buttons of what is refused; a dead job is reopened with `sume-jobs requeue`."""


def create_app(settings: Settings, *, client: Redis) -> Flask:
    """Return the application; every page but /livez wants the user `ops` and OPS_TOKEN as password.

    The settings must hold OPS_TOKEN and REDIS_URL. Nothing is connected before the first page.
    """
    assert settings.ops_token is not None  # noqa: S101 - loaded as needed
    assert settings.redis_url is not None  # noqa: S101 - the same
    blueprint = pages()
    app = Flask(__name__, static_folder=str(files("rq_dashboard") / "static"))
    app.config["RQ_DASHBOARD_REDIS_URL"] = (label(settings.redis_url.get_secret_value()),)
    app.config["RQ_DASHBOARD_POLL_INTERVAL"] = POLL_MILLISECONDS
    app.config["RQ_DASHBOARD_DISABLE_DELETE"] = True
    app.redis_conn = client  # type: ignore[attr-defined]  # where rq-dashboard looks for it
    guard(app, password=settings.ops_token.get_secret_value())
    app.register_blueprint(blueprint)
    app.register_error_handler(RedisError, redis_away)
    app.register_error_handler(NoSuchJobError, message_gone)
    app.after_request(finish)
    return app


def label(redis_url: str) -> str:
    """Return what the page's corner shows of a Redis URL: neither user, password nor options (I9)."""
    parts = urlsplit(redis_url)
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname or ""
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"


def guard(app: Flask, *, password: str) -> None:
    """Refuse whoever does not know the password, and then whatever would change something."""

    @app.before_request
    def refuse() -> Response | None:
        if request.path == LIVEZ:
            return Response("ok\n", mimetype="text/plain")
        if not knows(password):
            headers = {"WWW-Authenticate": 'Basic realm="sume-jobs", charset="UTF-8"'}
            return Response(f"The user is {USER}, the password OPS_TOKEN.\n", 401, headers, mimetype="text/plain")
        if request.endpoint in {None, "static"}:
            return None  # Flask's own 404 or 405, or a file of the page
        if not reads_only(request.endpoint, request.view_args):
            text = "This dashboard changes nothing; use sume-jobs requeue.\n"
            return Response(text, 403, mimetype="text/plain")
        return None


def knows(password: str) -> bool:
    """Whether the request gives the user and the password, compared in constant time."""
    given = request.authorization
    if given is None or given.type != "basic":
        return False
    sent = f"{given.username}:{given.password}"
    return hmac.compare_digest(sent.encode(), f"{USER}:{password}".encode())


def redis_away(error: RedisError) -> Response:
    """Say that Redis cannot be asked; the jobs themselves are in Postgres (I1)."""
    get_logger().warning("redis.lost", error=type(error).__name__)
    text = (
        "<!doctype html><meta http-equiv=refresh content=5><title>Redis is away</title>"
        "<h1>Redis cannot be reached</h1><p>No job is lost: claims are in Postgres, see <code>sume-jobs stats</code>. "
        "This page tries again by itself.</p>"
    )
    return Response(text, 503, {"Retry-After": str(RETRY_AFTER_SECONDS)})


def message_gone(_error: NoSuchJobError) -> Response:
    """Say that RQ has forgotten a message, as it does minutes after its end."""
    text = (
        "<!doctype html><title>Gone</title><h1>This message is gone</h1><p>See <code>sume-jobs show JOB_ID</code>.</p>"
    )
    return Response(text, 404)


def finish(response: Response) -> Response:
    """Add the headers, hide the buttons of what is refused, and escape what the pages insert as it is."""
    response.headers.update(HEADERS)
    if response.mimetype == "text/html" and not response.direct_passthrough:
        response.set_data(response.get_data().replace(b"</head>", STYLE + b"</head>", 1))
    elif response.is_json:
        unescaped = ESCAPED_BY_THE_PAGE.get(request.endpoint or "", set())
        response.set_data(jsonify(escaped(response.get_json(), but=unescaped)).get_data())
    return response


def escaped(value: Any, *, but: set[str]) -> Any:
    """Return JSON data with every text in it safe to insert into HTML, except under the keys of `but`."""
    if isinstance(value, str):
        return str(escape(value))
    if isinstance(value, list):
        return [escaped(inner, but=but) for inner in value]
    if isinstance(value, dict):
        return {key: inner if key in but else escaped(inner, but=but) for key, inner in value.items()}
    return value
