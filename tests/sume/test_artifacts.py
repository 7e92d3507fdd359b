"""Where a body lists its artifacts, and what each entry may hold."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.claims.states import Reason
from shared.errors import PermanentError
from shared.event import Artifact
from shared.sume.artifacts import MALFORMED_SHA256, PLACES, artifacts

URL = "https://media.sume.com/a%2Fb.png?sig=%2f+~&x={}"
SHA = "0123456789abcdef" * 4
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def read(document: object) -> list[Artifact] | None:
    """Return the artifacts of a document."""
    return artifacts(json.dumps(document))


def one(**entry: Any) -> Artifact:
    """Return the only artifact of a list."""
    found = read({"artifacts": [{"url": URL, **entry}]})
    assert found is not None
    return found[0]


def placed(place: tuple[str, ...], entries: object) -> dict[str, Any]:
    """Return a document with a list at one place."""
    document: dict[str, Any] = {"artifacts": entries}
    for key in reversed(place):
        document = {key: document}
    return document


@pytest.mark.parametrize("place", PLACES)
def test_a_list_is_found_at_each_of_the_six_places(place: tuple[str, ...]) -> None:
    """The list may stand at the top, or in result, payload or data, with or without a result between."""
    assert read(placed(place, [{"url": URL}])) == [Artifact(0, URL)]
    assert read(placed(place, [])) == []


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"artifacts": None},
        {"artifacts": {"url": URL}},
        {"artifacts": URL},
        {"result": [{"artifacts": []}]},
        {"result": None, "payload": "x", "data": 17},
        {"output": {"artifacts": []}},
        {"result": {"payload": {"artifacts": []}}},
    ],
)
def test_no_list_is_none(document: object) -> None:
    """What is not a list, or stands elsewhere, is no artifact list."""
    assert read(document) is None


def test_the_first_list_that_holds_anything_counts() -> None:
    """Earlier places come first, and an empty list never hides a paid file further on."""
    entries = {place: [{"url": f"https://{number}/"}] for number, place in enumerate(PLACES)}
    document = {
        "artifacts": entries["payload",],
        "result": {"artifacts": entries["data",]},
        "data": {"artifacts": entries[()]},
    }
    assert read(document) == [Artifact(0, entries["payload",][0]["url"])]
    assert read({**document, "artifacts": []}) == [Artifact(0, entries["data",][0]["url"])]
    assert read({**document, "artifacts": None}) == [Artifact(0, entries["data",][0]["url"])]


def test_an_entry_is_read_whole_and_its_url_untouched() -> None:
    """All six keys are kept, the URL byte for byte."""
    entry = {"type": "image", "content_type": "image/png", "filename": "a b.png", "size_bytes": 17, "sha256": SHA}
    assert one(**entry, more="ignored") == Artifact(0, URL, "image", "image/png", "a b.png", 17, SHA)


@pytest.mark.parametrize(
    "entry", [None, "https://media.sume.com/x", 17, [], {}, {"url": None}, {"url": 17}, {"url": "\ud800"}]
)
def test_an_entry_without_a_url_keeps_its_index(entry: object) -> None:
    """It has the URL "", for the worker to bury with its reason, and its neighbours keep their numbers."""
    assert read({"artifacts": [entry, {"url": URL}]}) == [Artifact(0, ""), Artifact(1, URL)]


@pytest.mark.parametrize(
    ("stated", "size"),
    [
        (0, 0),
        (17, 17),
        (2**70, 2**70),
        (17.0, 17),
        ("18", 18),
        ("9" * 20, None),
        ("", None),
        ("-1", None),
        (" 17", None),
        ("\u0661", None),
        ("1_7", None),
        (-3, None),
        (1.5, None),
        (True, None),
        (False, None),
        (None, None),
        ([17], None),
    ],
)
def test_a_size_is_a_whole_number_of_bytes(stated: object, size: int | None) -> None:
    """Digits in a string count as a size, and anything that is no size counts as not stated."""
    assert one(size_bytes=stated).size_bytes == size


def test_an_infinite_size_is_none() -> None:
    """1e400 is JSON, and no size."""
    assert artifacts('{"artifacts":[{"url":"u","size_bytes":1e400}]}') == [Artifact(0, "u")]


@pytest.mark.parametrize(
    ("stated", "sha256"),
    [
        (SHA, SHA),
        (SHA.upper(), SHA),
        (None, None),
        ("", None),
        ("x", MALFORMED_SHA256),
        (SHA[1:], MALFORMED_SHA256),
        (SHA + "0", MALFORMED_SHA256),
        (SHA + "\n", MALFORMED_SHA256),
        (17, MALFORMED_SHA256),
        ([SHA], MALFORMED_SHA256),
    ],
)
def test_a_stated_sha256_is_never_dropped(stated: object, sha256: str | None) -> None:
    """One that is malformed becomes a value that no file matches, so the file is not called verified."""
    assert one(sha256=stated).sha256 == sha256


@pytest.mark.parametrize("label", ["", 17, None, ["image"], "a\nb", "a\0", "\ud800", "x" * 256])
def test_a_label_is_short_and_printable(label: object) -> None:
    """A type or media type that could not be stored or shown counts as not stated."""
    assert one(type=label, content_type=label) == Artifact(0, URL)


def test_a_filename_is_kept_as_given() -> None:
    """Making it safe is the storage's work; only what cannot be encoded is dropped."""
    assert one(filename="../a\n\0b").filename == "../a\n\0b"
    assert one(filename="a\ud800").filename is None


@given(
    st.sampled_from(PLACES), st.lists(JSON | st.dictionaries(st.sampled_from(["url", "sha256", "size_bytes"]), JSON))
)
def test_no_list_crashes(place: tuple[str, ...], entries: list[object]) -> None:
    """Whatever the entries are, each is an artifact of its index."""
    found = read(placed(place, entries))
    assert found is not None
    assert [artifact.index for artifact in found] == list(range(len(entries)))


def test_a_payload_that_is_no_object_is_permanent() -> None:
    """A plain insert of something else buries the job with its reason."""
    with pytest.raises(PermanentError) as caught:
        artifacts("[]")
    assert caught.value.reason == Reason.INVALID_PAYLOAD
