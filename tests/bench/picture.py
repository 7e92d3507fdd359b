"""The figures as a picture: a bar for each ratio beside its limit, plain figures below."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from xml.sax.saxutils import escape

from tests.bench.report import Report, made_of, shown, spread
from tests.bench.row import Row

SVG = "http://www.w3.org/2000/svg"
WIDTH, MARGIN = 720, 24
BAR_LEFT, BAR_RIGHT = MARGIN, 560
TEXT_RIGHT = WIDTH - MARGIN
HEAD, ROW, LINE, PLAIN, FOOT = 92, 30, 18, 42, 20
NAME_CHARACTERS, PLAIN_CHARACTERS = 76, 56
LEAST_END, MOST_END = 1.25, 2.0
"""Where the scale ends: every limit is 1.0, and the one ratio of twenty must not make the others unreadable."""

# The card has a background of its own: a picture in a document follows the system's colours, not the page's.
STYLE = """
:root { --card: #ffffff; --edge: #d0d7de; --text: #1f2328; --soft: #59636e; --track: #eaeef2;
        --met: #2f81c7; --missed: #d1741f; --mark: #1f2328; }
@media (prefers-color-scheme: dark) {
:root { --card: #0d1117; --edge: #3d444d; --text: #f0f6fc; --soft: #9198a1; --track: #21262d;
        --met: #3b8eea; --missed: #d9822b; --mark: #f0f6fc; }
}
text { font: 13px -apple-system, BlinkMacSystemFont, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
.card { fill: var(--card); stroke: var(--edge); } .track { fill: var(--track); }
.met { fill: var(--met); } .missed { fill: var(--missed); }
.title { font-size: 16px; font-weight: 600; } .title, .name { fill: var(--text); }
.soft { fill: var(--soft); font-size: 12px; } .figure { fill: var(--text); font-weight: 600; }
.limit { stroke: var(--mark); stroke-dasharray: 2 2; } .target { stroke: var(--mark); stroke-width: 2.5; }
.whisker { stroke: var(--mark); stroke-width: 1.2; fill: none; } .gap { stroke: var(--card); stroke-width: 3; }
.end { text-anchor: end; } .middle { text-anchor: middle; }
""".strip()


def draw(report: Report) -> str:
    """Return the picture as SVG, which GitHub shows in a README."""
    ratios = [row for row in report.rows if row.limit is not None]
    plain = [row for row in report.rows if row.limit is None]
    scale = Scale(ratios)
    body: list[str] = []
    y = float(HEAD)
    for row in ratios:
        lines = wrap(row.name, NAME_CHARACTERS)
        body += bar(row, lines, y, scale)
        y += LINE * len(lines) + ROW
    y += LINE / 2
    for row in plain:
        lines = wrap(row.name, PLAIN_CHARACTERS)
        body += figure(row, lines, y)
        y += LINE * (len(lines) - 1) + PLAIN
    height = round(y + FOOT)
    head = header(report, scale if ratios else None)
    label = escape(f"Benchmark of {report.days}: " + "; ".join(f"{row.name}: {shown(row)}" for row in report.rows))
    return "\n".join(
        (
            f'<svg xmlns="{SVG}" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{label}</title>",
            f"<style>\n{STYLE}\n</style>",
            f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>',
            *head,
            *body,
            "</svg>\n",
        )
    )


class Scale:
    """Where a ratio lies on the picture; what is beyond the end is drawn at the end."""

    def __init__(self, rows: Sequence[Row]) -> None:
        largest = max((value for row in rows for value in (*row.kept, row.target.bound) if value < MOST_END), default=1)
        self._end = min(MOST_END, max(LEAST_END, largest * 1.05))

    def holds(self, ratio: float) -> bool:
        """Whether it is not beyond the end."""
        return ratio <= self._end

    def x(self, ratio: float) -> float:
        """Return its place."""
        return BAR_LEFT + (BAR_RIGHT - BAR_LEFT) * min(ratio, self._end) / self._end


def header(report: Report, scale: Scale | None) -> Iterator[str]:
    """Yield what it is, of when and what, and how to read it."""
    yield text(MARGIN, 34, "What the system costs, beside limits measured in the same run", "title")
    yield text(MARGIN, 54, f"{report.days} · {report.machine}", "soft")
    if scale is None:
        return
    x, y = MARGIN, 74
    yield tick("limit", x + 4, y - 11, y + 3)
    yield text(x + 14, y, "the limit (1.0)", "soft")
    yield tick("target", x + 126, y - 11, y + 3)
    yield text(x + 136, y, "target", "soft")
    yield whisker(x + 196, x + 220, y - 4)
    yield text(x + 228, y, "smallest to largest", "soft")
    yield swatch("met", x + 362, y - 10)
    yield text(x + 380, y, "target met", "soft")
    yield swatch("missed", x + 462, y - 10)
    yield text(x + 480, y, "missed", "soft")


def bar(row: Row, lines: Sequence[str], y: float, scale: Scale) -> Iterator[str]:
    """Yield one ratio: its name, what it is made of, its bar with target and spread, and the figure."""
    for number_of_line, line in enumerate(lines):
        yield text(MARGIN, y + 12 + LINE * number_of_line, line, "name")
    yield text(TEXT_RIGHT, y + 12, made_of(row), "soft end")
    top = y + LINE * len(lines) + 1
    yield f'<rect class="track" x="{BAR_LEFT}" y="{top:.1f}" width="{BAR_RIGHT - BAR_LEFT}" height="12" rx="2"/>'
    yield (
        f'<rect class="bar {judgement(row)}" x="{BAR_LEFT}" y="{top:.1f}" '
        f'width="{scale.x(row.figure) - BAR_LEFT:.1f}" height="12" rx="2"/>'
    )
    if scale.holds(row.figure):
        yield whisker(scale.x(min(row.kept)), scale.x(max(row.kept)), top + 6)
    else:
        yield from (
            f'<line class="gap" x1="{x}" y1="{top + 14:.1f}" x2="{x + 6}" y2="{top - 2:.1f}"/>'
            for x in (BAR_RIGHT - 34, BAR_RIGHT - 26)
        )
    yield tick("limit", scale.x(1), top - 3, top + 15)
    if scale.holds(row.target.bound):
        yield tick("target", scale.x(row.target.bound), top - 3, top + 15)
    yield text(BAR_RIGHT + 12, top + 11, shown(row), "figure")
    yield text(TEXT_RIGHT, top + 11, wanted(row), "soft end")


def figure(row: Row, lines: Sequence[str], y: float) -> Iterator[str]:
    """Yield one plain figure: its name, its spread, and the figure."""
    for number_of_line, line in enumerate(lines):
        yield text(MARGIN, y + 12 + LINE * number_of_line, line, "name")
    yield text(MARGIN, y + 12 + LINE * len(lines), f"{spread(row)} {row.unit}", "soft")
    yield swatch(judgement(row), BAR_RIGHT - 128, y + 2)
    yield text(BAR_RIGHT - 108, y + 12, shown(row), "figure")
    yield text(TEXT_RIGHT, y + 12, wanted(row), "soft end")


def wanted(row: Row) -> str:
    """Return the target, and whether it is met, for whoever cannot tell the colours apart."""
    return f"{row.target} {judgement(row)}"


def judgement(row: Row) -> str:
    """Return the word for it, which also names the colour."""
    return "met" if row.met else "missed"


def swatch(style: str, x: float, y: float) -> str:
    """Return a spot of a colour."""
    return f'<rect class="{style}" x="{x:g}" y="{y:g}" width="10" height="10" rx="2"/>'


def tick(style: str, x: float, top: float, bottom: float) -> str:
    """Return a mark across a bar."""
    return f'<line class="{style}" x1="{x:.1f}" y1="{top:g}" x2="{x:.1f}" y2="{bottom:g}"/>'


def whisker(left: float, right: float, y: float) -> str:
    """Return the mark of a spread."""
    caps = "".join(f"M{x:.1f} {y - 4:.1f}V{y + 4:.1f}" for x in (left, right))
    return f'<path class="whisker" d="M{left:.1f} {y:.1f}H{right:.1f}{caps}"/>'


def text(x: float, y: float, words: str, style: str) -> str:
    """Return words at a place."""
    return f'<text class="{style}" x="{x:g}" y="{y:g}">{escape(words)}</text>'
