"""The log pipeline: structured lines on stderr with every secret struck out."""

import json
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, TextIO, TypeAlias
from urllib.parse import quote

import orjson

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
COMPACT = (",", ":")
"""As orjson writes."""
Later: TypeAlias = Callable[[Callable[[], None]], object]
"""Calls something a little later, in the same thread."""
AS_TEXT = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


class Redactor:
    """Strikes known secrets, signatures, URL passwords and URL queries out of any text (I9)."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spelled = {form for secret in secrets if len(secret) >= MINIMUM_SECRET_LENGTH for form in spellings(secret)}
        known = sorted(spelled, key=len, reverse=True)
        self._spelled = known
        self._known = re.compile("|".join(re.escape(secret) for secret in known)) if known else None

    def text(self, value: str) -> str:
        """Return the text with secrets struck out; host and path of a URL stay readable."""
        if self._known is not None:
            value = self._known.sub(STRUCK, value)
        if "://" in value:
            value = URL.sub(strike_url, value)
        return SIGNATURE.sub(f"v1={STRUCK}", value)

    def spelled_in_json(self) -> list[bytes]:
        """Return the known secrets as they stand inside JSON; those with lone surrogates cannot stand there."""
        return [json.dumps(form, ensure_ascii=False)[1:-1].encode() for form in self._spelled if is_unicode(form)]

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


def spellings(secret: str) -> set[str]:
    """Return a secret as it stands in URLs, in JSON, and in what Python prints of lists and bytes."""
    raw = secret.encode(errors="surrogateescape")
    in_json = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    return {secret, quote(raw, safe=""), repr(secret)[1:-1], repr(raw)[2:-1], *in_json}


def is_unicode(text: str) -> bool:
    """Whether a text can be encoded; one from the environment may hold bytes that are no UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


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


class JsonLine:
    """Renders a line as JSON with secrets struck out, searching the line once before its values one by one.

    Rendering first and looking for the few things that could have to be struck out is what lets the receiver
    afford a line for each delivery: 7 µs where a regular expression for each value took 45.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._suspicious = (b"://", b"v1=", *redactor.spelled_in_json())

    def __call__(  # noqa: D102 - a processor is called by structlog
        self, logger: Any, method: str, line: MutableMapping[str, Any]
    ) -> str:
        try:
            rendered = orjson.dumps(line, default=str, option=AS_TEXT)
        except TypeError:  # a lone surrogate, a number beyond 64 bits, a key that is no text: rare, and slower
            return json.dumps(self._redactor(logger, method, line), separators=COMPACT)
        for part in self._suspicious:
            if part in rendered:
                return json.dumps(self._redactor(logger, method, line), separators=COMPACT)
        return rendered.decode()


class LineWriter:
    """Writes whole lines, from any thread.

    What cannot be written (a full disk, a pipe nobody reads) is lost: no delivery and no job may fail for its log.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._held: list[str] = []
        self._later: Later | None = None
        self._thread = 0

    def hold(self, later: Later | None) -> None:
        """Have `later` write the info lines of this thread from now on; None ends that."""
        self.flush()
        self._later, self._thread = later, threading.get_ident()

    def info(self, line: str) -> None:
        """Write a line, now or with others of this turn."""
        if self._later is None or threading.get_ident() != self._thread:
            self._write(line)
            return
        if not self._held:
            self._later(self.flush)
        self._held.append(line)

    def msg(self, line: str) -> None:
        """Write a line now, after those that are held."""
        if threading.get_ident() == self._thread:
            self.flush()
        self._write(line)

    debug = warning = error = critical = exception = log = msg

    def flush(self) -> None:
        """Write what is held."""
        if self._held:
            held, self._held = self._held, []
            self._write("\n".join(held))

    def _write(self, lines: str) -> None:
        try:
            self._stream.write(f"{lines}\n")
            self._stream.flush()
        except (OSError, ValueError):
            pass


@contextmanager
def written_once_a_turn(later: Later) -> Iterator[None]:
    """Write the info lines of an event loop's thread once a turn of the loop, whose `call_soon` this is given.

    Each write lets another thread have the interpreter: a tenth of the receiver's time (4 interleaved pairs). A
    process that is killed loses the info lines of the turn it is in; warnings and errors are written at once.
    """
    writer = structlog.get_config()["logger_factory"]()
    if not isinstance(writer, LineWriter):  # not configured by us
        yield
        return
    writer.hold(later)
    try:
        yield
    finally:
        writer.hold(None)


def configure(settings: Settings, *, process: str) -> Redactor:
    """Send our lines and the standard library's logging through one redacted pipeline on stderr."""
    redactor = Redactor(settings.secret_values())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    render: list[Any] = [JsonLine(redactor)]
    if settings.log_format == "console":
        render = [redactor, structlog.dev.ConsoleRenderer()]
    # The lines of libraries come by the standard library; ours do not, which would double what they cost.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    for noisy in ("httpx", "httpcore", "alembic", "apprise", "rq.worker", "uvicorn.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    writer = LineWriter(sys.stderr)
    structlog.configure(
        processors=[*shared, *render],
        wrapper_class=structlog.make_filtering_bound_logger(settings.log_level),
        logger_factory=lambda *_: writer,
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(process=process)
    return redactor


def get_logger() -> structlog.typing.FilteringBoundLogger:
    """Return the logger every module uses; event names are `noun.past_verb`."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return logger
