"""Plots as SVG, rendered by Vega-Lite when the page is written: the page needs no script.

Altair is imported only when a plot is drawn: its import takes a second.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from reports.analysis.statistics import interval
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.analysis.compare import Group

INSIDE: Final = "#d55e00"
OUTSIDE: Final = "#0072b2"
"""Colours that colour-blind readers can tell apart (Okabe and Ito); points differ in shape, too."""
WIDTH: Final = 560
ROW: Final = 20
"""Height of a group's row."""
FONT: Final = "system-ui, sans-serif"


def _altair() -> Any:
    try:
        import altair
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise InputError("a report needs altair and vl-convert-python: pip install 'highwater[report]'") from error
    return altair


def rates(groups: Sequence[Group], kinds: Sequence[str], *, inside: bool) -> str:
    """Rates with intervals, on a logarithmic axis: a row for each group, below the name of each kind.

    For a kind that did not occur, a triangle at the upper bound points down.
    """
    alt = _altair()
    found = [_point(group, kind, inside=inside) for kind in kinds for group in groups]
    names = [group.name for group in groups]
    least = min([row["low"] for row in found if row["low"] > 0] + [row["high"] for row in found])
    lowest = _floor_log(least)
    domain = [10**lowest, 1]
    scale = alt.Scale(type="log", domain=domain, clamp=True)
    ticks = [10**power for power in range(lowest, 1)]
    axis = alt.Axis(format="~%", title="share of runs, with 95 % interval", values=ticks, gridColor="#ddd")
    y = alt.Y("group:N", sort=names, title=None, scale=alt.Scale(domain=names), axis=alt.Axis(labelLimit=160))
    base = alt.Chart().encode(y=y)
    colour = INSIDE if inside else OUTSIDE
    seen, unseen = "datum.k > 0", "datum.k == 0"
    layers = [
        base.mark_rule(color=colour, strokeWidth=2)
        .transform_filter(seen)
        .encode(x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q"),
        base.mark_point(color=colour, filled=True, size=60, opacity=1, shape="circle" if inside else "square")
        .transform_filter(seen)
        .encode(x=alt.X("rate:Q", scale=scale)),
        base.mark_point(color="#666", filled=False, size=60, shape="triangle-left")
        .transform_filter(unseen)
        .encode(x=alt.X("high:Q", scale=scale)),
        base.mark_text(align="left", dx=9, fontSize=10, color="#333").encode(
            x=alt.X("high:Q", scale=scale), text="said:N"
        ),
    ]
    chart = (
        alt.layer(*layers, data=alt.Data(values=found))
        .properties(width=WIDTH - 190, height=ROW * len(groups))
        .facet(
            row=alt.Row(
                "kind:N",
                sort=list(kinds),
                title=None,
                header=alt.Header(
                    labelAngle=0, labelAlign="left", labelAnchor="start", labelOrient="top", labelFontWeight="bold"
                ),
            ),
            spacing=8,
        )
    )
    side = "inside" if inside else "outside"
    return _svg(chart, f"Rates of violations {side} the promise, with 95 % intervals")


def _point(group: Group, kind: str, *, inside: bool) -> dict[str, Any]:
    rate = next(rate for rate in group.rates if rate.kind == kind)
    k = rate.inside if inside else rate.outside
    low, high = interval(k, rate.n)
    return {
        "group": group.name,
        "kind": kind,
        "k": k,
        "rate": k / rate.n if rate.n else 0,
        "low": low,
        "high": high,
        "said": f"{k:,} of {rate.n:,}",
    }


def _floor_log(share: float) -> int:
    import math

    return min(math.floor(math.log10(share)), -1)


def trade(points: Sequence[dict[str, Any]], what: str) -> str:
    """Safety against availability: each point a mode, at a point of the grid.

    Args:
        points: each with ``name``, ``group``, ``wait_s``, ``rate``, ``low`` and ``high``.
        what: what the rate measures.
    """
    alt = _altair()
    names = list(dict.fromkeys(point["group"] for point in points))
    palette = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000", "#999999"]
    colour = alt.Color(
        "group:N",
        sort=names,
        legend=None,
        scale=alt.Scale(domain=names, range=[palette[place % len(palette)] for place in range(len(names))]),
    )
    shape = alt.Shape("group:N", sort=names, legend=None, scale=alt.Scale(domain=names))
    x = alt.X(
        "wait_s:Q", title="mean time without a leader, s a run", scale=alt.Scale(zero=False, nice=True, padding=40)
    )
    axis = alt.Axis(format="~%", title=f"{what}, share of runs")
    base = alt.Chart(alt.Data(values=list(points))).encode(x=x)
    layers = [
        base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q", axis=axis), y2="high:Q", color=colour),
        base.mark_point(filled=True, size=80, opacity=1).encode(y="rate:Q", color=colour, shape=shape),
        base.mark_text(align="left", dx=9, dy=-7, fontSize=11, color="#222").encode(y="rate:Q", text="name:N"),
    ]
    chart = alt.layer(*layers).properties(width=WIDTH - 90, height=260)
    return _svg(chart, "Safety against availability")


def _svg(chart: Any, title: str) -> str:
    """The chart's SVG for embedding in a page, with a title for screen readers."""
    import vl_convert

    chart = chart.configure(font=FONT, background="white").configure_view(stroke="#ccc")
    text = vl_convert.vegalite_to_svg(chart.to_json())
    text = re.sub(r"<svg ", f'<svg role="img" aria-label="{title}" ', text, count=1)
    return text.strip()
