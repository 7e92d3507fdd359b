"""The log pipeline strikes out every secret, however it comes (I9)."""

import asyncio
import io
import json
import logging
import time
from collections.abc import Callable, Iterator

import pytest
import structlog

from shared import clock, logs
from shared.logs import Redactor
from tests.conftest import MakeSettings

HIDDEN_IN_BRACKETS = "(https://h/p?[secret]), [https://h/p?[secret]]. 'https://h/p?[secret]'"
AWKWARD = "pl\"ant'ed\\\u00fc"
SECRETS = ("planted-secret", "s3cr3t/with+specials")


@pytest.fixture
def _logging_as_before() -> Iterator[None]:
    """Leave logging as it was found."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("nothing to hide", "nothing to hide"),
        ("key planted-secret!", "key [secret]!"),
        ("https://media.sume.com/a/b.png?X-Sig=abc&exp=1 gone", "https://media.sume.com/a/b.png?[secret] gone"),
        ("see 'https://h/p?sig=1', and", "see 'https://h/p?[secret]', and"),
        ("https://h/p#token=1", "https://h/p?[secret]"),
        ("(https://h/p?sig=1), [https://h/p?sig=2]. 'https://h/p?sig=3'", HIDDEN_IN_BRACKETS),
        ("https://h/p?a=(x)&o=O'Brien&l=[1]&sig=1 gone", "https://h/p?[secret] gone"),
        ("https://h/p?planted-secret&sig=1", "https://h/p?[secret]"),
        ("https://h/it's?sig=1", "https://h/it's?[secret]"),
        ("https://h/p?[secret] and https://h/p?[secret]", "https://h/p?[secret] and https://h/p?[secret]"),
        ("postgresql://user:pw@h/db", "postgresql://[secret]@h/db"),
        ("postgresql://user:p/w:x@h/db", "postgresql://[secret]@h/db"),
        ("redis://:p'w@h/0 is away", "redis://[secret]@h/0 is away"),
        ("https://h:8080/a@2x.png and https://h/a@2x.png", "https://h:8080/a@2x.png and https://h/a@2x.png"),
        ("v1=" + "ab" * 32, "v1=[secret]"),
        ("s3cr3t/with+specials", "[secret]"),
        ("s3cr3t%2Fwith%2Bspecials", "[secret]"),
    ],
)
def test_what_must_not_be_seen_is_struck_out(text: str, wanted: str) -> None:
    """Known secrets, URL queries and passwords, signatures; hosts and paths stay."""
    assert Redactor(SECRETS).text(text) == wanted


def test_secrets_inside_containers_are_found() -> None:
    """Fields may hold lists and mappings."""
    assert Redactor(SECRETS).value({"a": ["planted-secret", 1, None], "b": ("x",), "planted-secret": 1}) == {
        "a": ["[secret]", 1, None],
        "b": ["x"],
        "[secret]": 1,
    }


def test_a_long_text_is_read_in_linear_time() -> None:
    """A text made to be slow to search holds up nobody's log."""
    started = time.monotonic()
    for part in ("a.", "a://", "x:", "'", "https://u:p", "?[secret]"):
        Redactor(SECRETS).text("a://b " + part * 100_000)
    assert time.monotonic() - started < 10


def test_a_very_short_secret_does_not_blank_every_line() -> None:
    """Striking out "a" would make logs useless without hiding anything."""
    assert Redactor(["a", ""]).text("a banana") == "a banana"


@pytest.mark.usefixtures("_logging_as_before")
@pytest.mark.parametrize("log_format", ["json", "console"])
def test_every_way_into_the_log_is_redacted(
    make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch, log_format: str
) -> None:
    """Our own lines, the standard library's with arguments, and tracebacks with their causes."""
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    logs.configure(make_settings(ops_token="planted-secret", log_format=log_format), process="test")
    logs.get_logger().info("job.done", url="https://h/p?sig=planted", key="planted-secret", nested=["planted-secret"])
    logging.getLogger("foreign").warning("calling %s with %s", "https://h/p?sig=planted", "planted-secret")
    try:
        raise_with_cause()
    except ValueError:
        logs.get_logger().exception("handler.failed")
        logging.getLogger("foreign").exception("it broke")
    shown = stderr.getvalue()
    assert "planted" not in shown
    assert "job.done" in shown
    assert "it broke" in shown
    if log_format == "json":
        lines = [json.loads(line) for line in shown.splitlines()]
        assert {line["process"] for line in lines} == {"test"}
        assert all({"event", "level", "timestamp"} <= set(line) for line in lines)


@pytest.mark.usefixtures("_logging_as_before")
@pytest.mark.parametrize("secret", ['pl"anted\\secret', "planted-\u00fc-secret", "planted\udcff-secret"])
def test_a_secret_is_found_however_json_spells_it(
    make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    """Quotes, backslashes, umlauts and undecodable bytes stand otherwise in a line than in a setting."""
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    logs.configure(make_settings(ops_token=secret), process="test")
    logs.get_logger().info("job.done", key=f"a {secret} b", deep=[{"x": ValueError(secret)}])
    assert "planted" not in stderr.getvalue()
    line = json.loads(stderr.getvalue())
    assert line["key"] == "a [secret] b"


@pytest.mark.parametrize("spell", [str, repr, json.dumps, lambda text: repr(text.encode())])
def test_a_secret_is_struck_out_as_python_and_json_spell_it(spell: Callable[[str], str]) -> None:
    """Somebody else's error may quote it."""
    text = Redactor([AWKWARD]).text(f"before {spell(AWKWARD)} after")
    assert "ant" not in text
    assert text.startswith("before ")
    assert text.endswith(" after")


@pytest.mark.usefixtures("_logging_as_before")
def test_any_value_can_be_logged(make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """What JSON has no word for is told as text: times, huge numbers, lone surrogates, keys that are no text."""
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    logs.configure(make_settings(), process="test")
    moment = clock.now()
    logs.get_logger().info("job.done", at=moment, big=2**70, torn="\ud800", keyed={1: "one"})
    line = json.loads(stderr.getvalue())
    assert line["at"] == str(moment)
    assert line["big"] == 2**70
    assert line["torn"] == "\ud800"
    logs.get_logger().info("job.done", keyed={1: "one"})
    assert json.loads(stderr.getvalue().splitlines()[-1])["keyed"] == {"1": "one"}


@pytest.mark.usefixtures("_logging_as_before")
def test_a_log_that_cannot_be_written_fails_nothing(
    make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk under the log must not refuse deliveries."""

    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("sys.stderr", Full())
    logs.configure(make_settings(), process="test")
    logs.get_logger().info("job.done")


@pytest.mark.usefixtures("_logging_as_before")
def test_info_lines_of_a_turn_are_written_together(
    make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is no info, or comes from another thread, waits for nothing; the order within a thread stays."""
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    logs.configure(make_settings(), process="test")

    def told() -> list[str]:
        return [json.loads(line)["event"] for line in stderr.getvalue().splitlines()]

    async def story() -> None:
        with logs.written_once_a_turn(asyncio.get_running_loop().call_soon):
            logs.get_logger().info("a.done")
            logs.get_logger().info("b.done")
            assert told() == []
            await asyncio.to_thread(logs.get_logger().info, "thread.done")
            assert sorted(told()) == ["a.done", "b.done", "thread.done"]
            logs.get_logger().info("c.done")
            logs.get_logger().warning("d.failed")
            assert told()[3:] == ["c.done", "d.failed"]
            logs.get_logger().info("e.done")
        assert told()[5:] == ["e.done"]
        logs.get_logger().info("f.done")
        assert told()[6:] == ["f.done"]

    asyncio.run(story())


def raise_with_cause() -> None:
    """Raise an error whose text and whose cause's text are secret."""
    raise ValueError("https://h/p?sig=planted") from KeyError("planted-secret")
