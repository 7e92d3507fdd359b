"""The picture shows every row."""

from itertools import pairwise
from xml.etree import ElementTree as ET

from tests.bench.picture import BAR_LEFT, BAR_RIGHT, WIDTH, draw
from tests.bench.row import Row, Target
from tests.bench.samples import FAR, MISSED, PLAIN, RATIO, report

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*rows: Row) -> ET.Element:
    return ET.fromstring(draw(report(*rows)))  # noqa: S314 - our own


def of_class(picture: ET.Element, name: str) -> list[ET.Element]:
    return [element for element in picture.iter() if name in element.get("class", "").split()]


def texts(picture: ET.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}text")]


def test_each_ratio_has_a_bar_as_long_as_it_is() -> None:
    """One that is beyond the scale is cut at its end, and says so with a gap; a missed one has another colour."""
    picture = drawn(RATIO, MISSED, FAR, PLAIN)
    met, missed, far = of_class(picture, "bar")
    assert float(met.get("width", 0)) == 2 * float(missed.get("width", 0))
    assert float(far.get("width", 0)) == BAR_RIGHT - BAR_LEFT
    assert len(of_class(picture, "gap")) == 2
    assert ["met" in bar.get("class", "") for bar in (met, missed, far)] == [True, False, True]
    assert len(of_class(picture, "limit")) == 1 + 3  # one in the legend
    assert len(of_class(picture, "target")) == 1 + 2  # the far target is beyond the scale


def test_names_and_figures_stand_there_as_they_are() -> None:
    """Whatever is markup in XML; a plain figure has its unit."""
    shown = texts(drawn(RATIO, PLAIN))
    assert {"ours <a> & b | c", "1.00", "≥ 0.9 met", "1,200 / 1,150 jobs/s", "82.1 MB", "≤ 90 met"} <= set(shown)
    assert "≥ 0.9 missed" in texts(drawn(MISSED))


def test_nothing_is_outside_or_over_another_line() -> None:
    """A long name goes on in the next line, and what follows moves down."""
    long = Row(" ".join(["a very long name"] * 8), Target(at_most=1), (1,), 0, "s", 1, 1)
    picture = drawn(long, RATIO, PLAIN, Row(long.name, Target(at_most=1), (1,), 0, "s"))
    height = float(picture.get("height", 0))
    names = of_class(picture, "name")
    lines = [float(element.get("y", 0)) for element in names]
    assert all(later - earlier >= 18 for earlier, later in pairwise(lines))
    assert max(float(element.get("y", 0)) for element in picture.iter(f"{SVG}text")) < height - 10
    assert all(len(element.text or "") <= 76 for element in names)
    for element in picture.iter():
        assert 0 <= float(element.get("x", 0)) <= WIDTH


def test_a_report_without_ratios_has_no_scale() -> None:
    picture = drawn(PLAIN)
    assert not of_class(picture, "bar")
    assert not of_class(picture, "limit")
