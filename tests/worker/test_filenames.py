"""Tests of the names that artifacts get."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.event import Artifact
from worker.filenames import file_name, safe_name


@pytest.mark.parametrize(
    ("artifact", "name"),
    [
        (Artifact(0, "https://h/x/other.png", filename="picture.png"), "picture.png"),
        (Artifact(0, "https://h/x/picture.png?sig=a/b.txt#c"), "picture.png"),
        (Artifact(0, "https://h/my%20picture%2Epng"), "my picture.png"),
        (Artifact(0, "https://h/a%2F..%2F..%2Fetc%2Fpasswd"), "passwd"),
        (Artifact(0, "https://h/", filename="..."), "artifact"),
        (Artifact(0, "https://h/", content_type="image/webp; q=1"), "artifact.webp"),
        (Artifact(0, "https://h", type="video"), "artifact.mp4"),
        (Artifact(0, "https://h/a/", content_type="image/unheard-of"), "artifact.png"),
        (Artifact(0, "https://h/fallback.png", filename=" / "), "fallback.png"),
        (Artifact(0, "http://[broken/a.png"), "artifact"),
    ],
)
def test_a_name_comes_from_filename_url_or_type(artifact: Artifact, name: str) -> None:
    """The filename first, else the last part of the URL's path, else the type."""
    assert file_name(artifact) == name


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\windows\\evil.exe", "evil.exe"),
        ("/", ""),
        ("..", ""),
        (".htaccess", "htaccess"),
        ("a\0b.png", "a_b.png"),
        ("a\nb\r.png", "a_b_.png"),
        ("a\u202egnp.exe", "a_gnp.exe"),
        ("a.png. . ", "a.png"),
        ('a<b>:"|?*.png', "a_b______.png"),
        ("con", "_con"),
        ("NUL.txt", "_NUL.txt"),
        ("com1 .tar.gz", "_com1 .tar.gz"),
        ("console.txt", "console.txt"),
        ("e\u0301.png", "\u00e9.png"),
        ("a\u00a0b.png", "a b.png"),
        ("\ud800.png", "_.png"),
    ],
)
def test_a_name_is_made_safe(given: str, name: str) -> None:
    """No path, no control or bidi characters, no leading dots, nothing Windows keeps for itself, NFC."""
    assert safe_name(given) == name


@pytest.mark.parametrize(
    ("given", "length", "suffix"),
    [
        ("x" * 300 + ".png", 120, ".png"),
        ("漢" * 120 + ".jpeg", 119, ".jpeg"),
        ("x" * 300, 120, "xxx"),
        ("x." + "y" * 300, 120, "yyy"),
        ("🎬" * 40 + ".mp4", 120, ".mp4"),
    ],
)
def test_a_long_name_is_cut_between_characters(given: str, length: int, suffix: str) -> None:
    """At most 120 bytes of UTF-8, the extension kept."""
    name = safe_name(given)
    assert len(name.encode()) == length
    assert name.endswith(suffix)


@given(st.text(st.characters(codec=None)))
def test_any_text_becomes_a_safe_name(text: str) -> None:
    """Whatever was announced, the name is one that every file system holds, and naming it again changes nothing."""
    name = safe_name(text)
    assert len(name.encode()) <= 120
    assert not re.search(r"[/\\\x00-\x1f\x7f<>:\"|?*]", name)
    assert not name.startswith((".", " "))
    assert not name.endswith((".", " "))
    assert unicodedata.normalize("NFC", name) == name
    assert safe_name(name) == name


@given(st.text(), st.text(), st.text(max_size=10), st.text(max_size=10))
def test_every_artifact_has_a_name(filename: str, path: str, content_type: str, kind: str) -> None:
    """No announcement leaves a file without a name."""
    artifact = Artifact(0, f"https://h/{path}", filename=filename, content_type=content_type, type=kind)
    assert file_name(artifact)
