"""Plots as SVG that scales to any width: positions are in percent and letters in pixels, so no text shrinks or is cut.

Colours are variables of the page, which has others in the dark; `alone` makes a plot a file.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from reports.analysis.statistics import interval
from reports.document.escape import html
from reports.formatting import percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reports.analysis.compare import Group

WIDTH: Final = 560
"""Width of a file, in pixels; a page stretches the plot."""
ROW: Final = 34
"""Height of a group: its name and count, and the interval below them."""
MARGIN: Final = 2
"""Space on both sides of an axis, in percent of the width."""
STYLE: Final = """
.plot text { font: 12px system-ui, sans-serif; fill: var(--ink, #1c1c1c) }
.plot .kind { font-weight: 700; paint-order: stroke; stroke: var(--paper, #fff); stroke-width: 3px }
.plot .end { text-anchor: end }
.plot .middle { text-anchor: middle }
.plot .soft { fill: var(--soft, #5a5a5a) }
.plot .grid { stroke: var(--line, #d6d6d6) }
.plot .inside { stroke: var(--inside, #c04d00); fill: var(--inside, #c04d00); stroke-width: 2 }
.plot .outside { stroke: var(--outside, #0072b2); fill: var(--outside, #0072b2); stroke-width: 2 }
.plot .unseen { stroke: var(--soft, #5a5a5a); fill: none; stroke-width: 1.5 }
"""
"""Inside and outside differ in colours that colour-blind readers can tell apart, and in shape."""
SHAPES: Final = {
    "inside": '<circle class="inside" r="4"/>',
    "outside": '<rect class="outside" x="-4" y="-4" width="8" height="8"/>',
    "unseen": '<path class="unseen" d="M-5 0 L4 -5 L4 5 z"/>',
}


def alone(plot: str) -> str:
    """A plot as the text of an SVG file."""
    style = re.sub(r"var\(--\w+, (#\w+)\)", r"\1", STYLE)
    begin, tag, rest = plot.partition(">")
    return f'{begin}{tag}<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>{rest}'


def decade(groups: Iterable[Group], kinds: Sequence[str], *, inside: bool) -> int:
    """The power of ten at which an axis has to begin to show these rates and bounds; at most -1."""
    bounds = [_bounds(group, kind, inside=inside) for kind in kinds for group in groups]
    shares = [low if k else high for k, _, low, high in bounds]
    return min([-1, *(math.floor(math.log10(share)) for share in shares)])


def rates(groups: Sequence[Group], kinds: Sequence[str], *, inside: bool, lowest: int | None = None) -> str:
    """Rates with 95 % intervals on a logarithmic axis: below the name of each kind, a row for each group.

    For a kind that did not occur, an open triangle is at the upper bound.

    Args:
        groups: the groups.
        kinds: the kinds of violation.
        inside: whether violations inside the promise are counted, or those outside it.
        lowest: power of ten at which the axis begins; None: see `decade`.
    """
    lowest = decade(groups, kinds, inside=inside) if lowest is None else lowest

    def x(share: float) -> float:
        return 1 - max(math.log10(share), lowest) / lowest if share > 0 else 0

    side = "inside" if inside else "outside"
    body, y = "", 0
    for kind in kinds:
        body += _text(0, y + 16, kind, "kind")
        y += 22
        for group in groups:
            k, n, low, high = _bounds(group, kind, inside=inside)
            body += _text(0, y + 13, group.name) + _text(100, y + 13, f"{k:,} of {n:,}", "end")
            if k:
                body += _line(x(low), x(high), y + 21, side) + _mark(x(k / n), y + 21, SHAPES[side])
            else:
                body += _mark(x(high), y + 21, SHAPES["unseen"])
            y += ROW
    ticks = [(x(10.0**power), percent(10.0**power)) for power in range(lowest, 1)]
    lines = "".join(f'<line class="grid" x1="{_x(at)}" x2="{_x(at)}" y1="22" y2="{y}"/>' for at, _ in ticks[1:-1])
    label = f"Rates of violations {side} the promise, with 95 % intervals: {', '.join(kinds)}"
    return _svg(label, lines + body + _axis(ticks, y, "share of runs, logarithmic scale"), y + 36)


def trade(
    points: Sequence[tuple[float, tuple[int, int, float, float]]], *, inside: bool, most: tuple[float, float]
) -> str:
    """Rates against the time without a leader: numbered points with 95 % intervals.

    Args:
        points: of each, seconds without a leader, and k, n and the bounds of the rate.
        inside: whether the rates are inside the promise.
        most: greatest time and share to show, which equal plots have in common.
    """
    top, height = 24, 240
    right, upper = (_ceiling(one) for one in most)
    side = "inside" if inside else "outside"

    def y(share: float) -> float:
        return top + height * (1 - share / upper)

    shares = [upper * part / 4 for part in range(5)]
    body = _text(0, 14, "share of runs")
    body += "".join(
        f'<line class="grid" x1="0" x2="100%" y1="{y(share):.1f}" y2="{y(share):.1f}"/>'
        + _text(100, y(share) - 3, percent(share), "end soft")
        for share in shares
    )
    labels: list[tuple[float, float, str]] = []
    for number, (seconds, (k, n, low, high)) in enumerate(points, 1):
        at, middle = seconds / right, y(k / n)
        body += f'<line class="{side}" x1="{_x(at)}" x2="{_x(at)}" y1="{y(low):.1f}" y2="{y(high):.1f}"/>'
        body += _mark(at, middle, SHAPES[side])
        # Points in one place share a label.
        near = (
            place
            for place, (left, down, _) in enumerate(labels)
            if abs(left - at) < 0.04 and abs(down - middle) < ROW / 2
        )
        if (place := next(near, None)) is None:
            labels.append((at, middle, str(number)))
        else:
            labels[place] = (*labels[place][:2], f"{labels[place][2]}, {number}")
    for at, middle, numbers in labels:
        css, beside = ("end", -8) if at > 0.6 else ("", 8)
        body += _mark(at, middle, f'<text class="kind {css}" x="{beside}" y="-6">{numbers}</text>')
    ticks = [(part / 4, f"{right * part / 4:g}") for part in range(5)]
    label = f"Share of runs with violations {side} the promise against the time without a leader"
    axis = _axis(ticks, top + height, "mean time without a leader in a run, s")
    return _svg(label, body + axis, top + height + 36)


def _bounds(group: Group, kind: str, *, inside: bool) -> tuple[int, int, float, float]:
    """k, n and the bounds of the rate."""
    rate = next(rate for rate in group.rates if rate.kind == kind)
    k = rate.inside if inside else rate.outside
    return (k, rate.n, *interval(k, rate.n))


def _ceiling(number: float) -> float:
    """A number above, a quarter of which has few digits; 1 for 0."""
    if number <= 0:
        return 1
    unit: float = 10.0 ** math.floor(math.log10(number))
    return unit * next(step for step in (2, 4, 8, 12) if step * unit > number * 1.05)


def _x(place: float) -> str:
    """A place on an axis, 0 to 1, in percent of the width."""
    return f"{MARGIN + (100 - 2 * MARGIN) * place:.2f}%"


def _text(x: float, y: float, text: str, css: str = "") -> str:
    return f'<text x="{x}%" y="{y:.1f}" class="{css}">{html(text)}</text>'


def _line(begin: float, end: float, y: float, css: str) -> str:
    return f'<line class="{css}" x1="{_x(begin)}" x2="{_x(end)}" y1="{y}" y2="{y}"/>'


def _mark(place: float, y: float, shape: str) -> str:
    return f'<svg x="{_x(place)}" y="{y:.1f}" overflow="visible">{shape}</svg>'


def _axis(ticks: Sequence[tuple[float, str]], y: float, title: str) -> str:
    css = {0: "soft", len(ticks) - 1: "soft end"}
    marks = [
        f'<text x="{_x(at)}" y="{y + 16}" class="{css.get(place, "soft middle")}">{text}</text>'
        for place, (at, text) in enumerate(ticks)
    ]
    return _line(0, 1, y + 2, "grid") + "".join(marks) + _text(50, y + 32, title, "soft middle")


def _svg(label: str, body: str, height: float) -> str:
    head = f'role="img" aria-label="{html(label)}" xmlns="http://www.w3.org/2000/svg" class="plot"'
    return f'<svg {head} width="{WIDTH}" height="{height}">{body}</svg>'
