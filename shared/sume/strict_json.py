"""Which bytes are JSON: one verdict, whether the fast parser gave it or the strict one."""

import json
from typing import Any, NoReturn

import orjson

MAX_NESTING = 512
"""Deeper is absurd, and below what the parsers of every supported Python can follow."""
MAX_NUMBER_LENGTH = 4300
"""Longer is absurd; Python's own bound for reading an integer."""
WATCHED_KEY = "job_id"

NUMBERS_TO_ZERO = bytes.maketrans(b"123456789.eE+-", b"0" * 14)
LONG_NUMBER = b"0" * (MAX_NUMBER_LENGTH + 1)


def read_object(body: bytes) -> tuple[dict[str, Any], bool]:
    r"""Return the object a body holds, and whether its top level gives `job_id` twice.

    Of equal keys the last counts. A BOM, 1e400 and lone `\ud800` escapes are accepted. Raises ValueError, with a
    text that repeats none of the body, for anything that is not strict UTF-8 JSON, not an object, absurdly nested
    or with absurdly long numbers. Integers beyond 64 bits may come as floats; `read_object_exactly` keeps them.
    """
    if is_plain(body):
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            pass  # what orjson refuses may still be JSON
        else:
            return checked(value, body), False
    return read_object_exactly(body)


def read_object_exactly(body: bytes) -> tuple[dict[str, Any], bool]:
    """Do the same as `read_object`, slower, with integers of any size exact."""
    last: list[tuple[str, Any]] = []

    def remember(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal last
        last = pairs  # objects end from the inside out, so the outermost is the last one here
        return dict(pairs)

    text = body.decode("utf-8").removeprefix("\ufeff")  # json.loads(bytes) would take UTF-16 as well
    try:
        value = json.loads(
            text,
            object_pairs_hook=remember,
            parse_int=read_int,
            parse_float=read_float,
            parse_constant=refuse_constant,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return checked(value, body), sum(key == WATCHED_KEY for key, _ in last) > 1


def is_plain(body: bytes) -> bool:
    r"""Whether orjson can judge a body: no second job_id, not even spelled with `\u`, and no long number."""
    if b"\\u" in body or body.count(b"job_id") > 1:
        return False
    return len(body) <= MAX_NUMBER_LENGTH or LONG_NUMBER not in body.translate(NUMBERS_TO_ZERO)


def checked(value: object, body: bytes) -> dict[str, Any]:
    """Return a parsed body that is an object of sane depth."""
    if not isinstance(value, dict):
        raise ValueError("it is not an object")  # noqa: TRY004 - a fault of the body, not of our types
    may_be_deep = body.count(b"{") + body.count(b"[") > MAX_NESTING
    if may_be_deep and depth(value) > MAX_NESTING:
        raise ValueError("it is nested too deeply")
    return value


def depth(value: object) -> int:
    """Return how many containers stand in each other at most, without recursion."""
    levels, level = 0, [value]
    while level:
        levels += 1
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)  # type: ignore[attr-defined]  # only dicts and lists are kept
            if isinstance(child, (dict, list))
        ]
    return levels


def read_int(text: str) -> int:
    """Read an integer of sane length."""
    if len(text) > MAX_NUMBER_LENGTH:
        raise ValueError("it holds a number that is too long")
    return int(text)


def read_float(text: str) -> float:
    """Read any other number of sane length; 1e400 is infinite."""
    if len(text) > MAX_NUMBER_LENGTH:
        raise ValueError("it holds a number that is too long")
    return float(text)


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which the standard library would take."""
    raise ValueError(f"{name} is not JSON")
