"""The figures are published in three places at once, and nothing else is touched."""

from pathlib import Path

import pytest

from tests.bench.picture import draw
from tests.bench.publish import BEGIN, DOCUMENT, END, PICTURE, RESULTS, publish, with_table
from tests.bench.report import read_report
from tests.bench.samples import PLAIN, RATIO, report

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a document that has markers."""
    (tmp_path / RESULTS).parent.mkdir(parents=True)
    (tmp_path / DOCUMENT).write_text(f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n", encoding="utf-8")
    return tmp_path


def test_the_table_goes_between_the_markers(checkout: Path) -> None:
    made = report(RATIO, PLAIN)
    publish(made, checkout)
    text = (checkout / DOCUMENT).read_text(encoding="utf-8")
    assert text.startswith(f"before\n\n{BEGIN}\nMeasured 2026-01-02")
    assert text.endswith(f"|\n{END}\n\nafter\n")
    assert "old" not in text
    assert read_report(checkout / RESULTS) == made
    assert (checkout / PICTURE).read_text(encoding="utf-8").startswith("<svg ")
    publish(made, checkout)
    assert (checkout / DOCUMENT).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("text", ["none", f"{BEGIN} only", f"{END} before {BEGIN}"])
def test_without_markers_nothing_is_written(checkout: Path, text: str) -> None:
    (checkout / DOCUMENT).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="no markers"):
        publish(report(RATIO), checkout)
    assert (checkout / DOCUMENT).read_text(encoding="utf-8") == text
    assert not (checkout / RESULTS).exists()


def test_the_readme_says_what_was_measured() -> None:
    """Table and picture are those of the published results."""
    published = read_report(ROOT / RESULTS)
    readme = (ROOT / DOCUMENT).read_text(encoding="utf-8")
    assert with_table(readme, published) == readme
    assert f"]({PICTURE})" in readme


def test_the_picture_is_of_the_published_results() -> None:
    assert (ROOT / PICTURE).read_text(encoding="utf-8") == draw(read_report(ROOT / RESULTS))
