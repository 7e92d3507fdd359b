"""The log pipeline: structured lines on stderr with every secret struck out."""

import logging
import re
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any
from urllib.parse import quote

# structlog loads rich where that is installed, to colour tracebacks, which are plain text in our lines: 4 of the 95 MB
# of a receiver, and 5 % of its start (8 interleaved pairs). None is Python's own way to say that a module is not there.
RICH_IS_LOADED = sys.modules.setdefault("rich", None) is not None  # type: ignore[arg-type]  # typed for modules alone
import structlog  # noqa: E402 - the lines above are about this import

if not RICH_IS_LOADED:
    del sys.modules["rich"]

from shared.config import Settings  # noqa: E402 - the same

STRUCK = "[secret]"
MINIMUM_SECRET_LENGTH = 4
"""Shorter secrets are not struck out: striking "a" would make every line unreadable."""
URL = re.compile(r"""(\b[a-zA-Z][a-zA-Z0-9+.-]{0,30}://)([^\s"<>]*)""")
"""Found whole and taken apart afterwards: searching a long text for the parts would take its length squared."""
USER = re.compile(r"[^/?#]*@|[^/?#@:]*:(?![0-9]{1,5}/)[^?#]*@")
"""Up to the first slash or, where a password holds one, up to its @; digits after a colon are a port."""
QUERY = re.compile(r"[?#](.*)")
AFTER_URL = ")]}'.,;:"
"""What may stand between a URL and the next word; inside a query they are its own."""
SIGNATURE = re.compile(r"\bv1=[0-9a-fA-F]{16,}")


class Redactor:
    """Strikes known secrets, signatures, URL passwords and URL queries out of any text (I9)."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spelled = {form for s in secrets if len(s) >= MINIMUM_SECRET_LENGTH for form in (s, quote(s, safe=""))}
        known = sorted(spelled, key=len, reverse=True)
        self._known = re.compile("|".join(re.escape(secret) for secret in known)) if known else None

    def text(self, value: str) -> str:
        """Return the text with secrets struck out; host and path of a URL stay readable."""
        if self._known is not None:
            value = self._known.sub(STRUCK, value)
        if "://" in value:
            value = URL.sub(strike_url, value)
        return SIGNATURE.sub(f"v1={STRUCK}", value)

    def value(self, value: object) -> object:
        """Return any loggable value redacted, containers included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(inner) for key, inner in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.value(inner) for inner in value]
        if value is None or isinstance(value, (bool, int, float)):
            return value
        return self.text(str(value))

    def __call__(  # noqa: D102 - a processor is called by structlog
        self, _logger: Any, _method: str, line: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        return {key: inner if key.startswith("_") else self.value(inner) for key, inner in line.items()}


def strike_url(found: re.Match[str]) -> str:
    """Return a URL with its user and its query struck out, what follows it kept."""
    scheme, rest = found.groups()
    rest = USER.sub(f"{STRUCK}@", rest, count=1) if USER.match(rest) else rest
    query = QUERY.search(rest)
    if query is None:
        return f"{scheme}{rest}"
    after = query[1].removeprefix(STRUCK)  # a text may be struck out twice
    after = after[len(after.rstrip(AFTER_URL)) :]
    return f"{scheme}{rest[: query.start()]}?{STRUCK}{after}"


def configure(settings: Settings, *, process: str) -> Redactor:
    """Send structlog and the standard library's logging through one redacted pipeline on stderr."""
    redactor = Redactor(settings.secret_values())
    console = settings.log_format == "console"
    renderer: Any = structlog.dev.ConsoleRenderer() if console else structlog.processors.JSONRenderer()
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redactor, renderer],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    for noisy in ("httpx", "httpcore", "alembic", "apprise", "rq.worker", "uvicorn.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(process=process)
    return redactor


def get_logger() -> structlog.stdlib.BoundLogger:
    """Return the logger every module uses; event names are `noun.past_verb`."""
    logger: structlog.stdlib.BoundLogger = structlog.get_logger()
    return logger
