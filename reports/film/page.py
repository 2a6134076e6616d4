"""The page of a film: one HTML file with its own script and style, and no network access.

The page's Content-Security-Policy allows only this script and style, by their hashes, so that text of a run could not
execute even if it were not escaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from importlib import resources
from string import Template
from typing import Any, Final

from reports.document.escape import html
from reports.document.markdown import blocks_as_markdown
from reports.document.page import colours
from reports.drawing.picture import picture
from reports.drawing.svg import to_svg
from reports.evidence.run_document import story_blocks
from reports.evidence.sentences import sentence
from reports.film.film import Film, as_json, first_difference
from reports.formatting import moment, side_of_promise
from sim.history import steps

CURVE_NOTE: Final = (
    "Curve: replay up to here, draw the rest anew: how many of these runs fail? Red: violations; amber: early warnings."
)
MARKS_NOTE: Final = "Red: violations; amber: early warnings."


def policy() -> str:
    """What the page may load and run (Content-Security-Policy): its own script and style."""
    script, style = _hash(_file("film.js")), _hash(colours() + _file("film.css"))
    return f"default-src 'none'; img-src data:; script-src 'sha256-{script}'; style-src 'sha256-{style}'"


def page(
    films: Sequence[Film],
    notes: Sequence[str] = (),
    links: Sequence[tuple[str, str]] = (),
    choose: str = "",
) -> str:
    """The page of one run, or of two runs of one seed beside each other, as the text of an HTML file.

    Args:
        films: the films.
        notes: sentences at the top.
        links: text and relative address of links at the top, which the program made.
        choose: the address at which the next event is chosen, to which the script appends the number of a step of the
            first run; empty: nowhere.
    """
    runs = [as_json(film) for film in films]
    difference = first_difference(films[0].observed, films[1].observed) if len(films) > 1 else None
    concerned = sorted(films[0].observed.concerned)[:1]
    data = {
        "runs": runs,
        "records": concerned,
        "offset": _offset(runs[0], concerned),
        "difference": difference,
        "choice": bool(films[0].label),
        "markdown": "\n".join(blocks_as_markdown(story_blocks(film.observed.result, film.story)) for film in films),
    }
    script, style = _file("film.js"), colours() + _file("film.css")
    row = films[0].observed.result.row
    modes = " and ".join(dict.fromkeys(run["mode"] for run in runs))
    note = CURVE_NOTE if films[0].curve is not None else MARKS_NOTE
    if len(films) > 1:
        note += " Dashed: the first difference."
    return Template(_file("film.html")).substitute(
        title=html(f"{row['scenario']}, seed {row['seed']}: {modes}"),
        links=_links(links),
        choose=f'<a id="choose" class="button" href="{html(choose)}1">Choose the next event</a>' if choose else "",
        heads="\n".join([*(f"<p>{html(note)}</p>" for note in notes), *_heads(films, difference)]),
        two="two" if len(films) > 1 else "",
        stages="\n".join(_stage(number, film) for number, film in enumerate(films)),
        asides="\n".join(_aside(number, run) for number, run in enumerate(runs)),
        replays="\n".join(f'<p class="mono">{html(run["replay"])}</p>' for run in runs),
        pictures="\n".join(_picture(film) for film in films),
        strip=html(note),
        data=_embedded(data),
        script=script,
        style=style,
        policy=policy(),
    )


def _file(name: str) -> str:
    return resources.files("reports.film").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embedded(data: dict[str, Any]) -> str:
    """JSON that is safe to embed in HTML."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _offset(run: dict[str, Any], concerned: Sequence[int]) -> int:
    """Where the record that a violation is about was first appended; -1 if there is none."""
    for _, _, name, _, delta in run["frames"]:
        for fields in delta.get("b", {}).values() if name == steps.APPEND.name else ():
            for base, last, _, first in fields["log"][2] if "log" in fields else ():
                if concerned and first <= concerned[0] <= first + last - base:
                    return int(base + concerned[0] - first)
    return -1


def _links(links: Sequence[tuple[str, str]]) -> str:
    if not links:
        return ""
    parts = "".join(f'<li><a href="{html(target)}">{html(text)}</a></li>' for text, target in links)
    return f'<nav aria-label="Pages"><ul class="links">{parts}</ul></nav>'


def _heads(films: Sequence[Film], difference: tuple[int, int] | None) -> Iterator[str]:
    for film in films:
        partition = film.observed.result.shown
        label = f"<b>{html(film.label)}</b>: " if film.label else ""
        yield f"<p>{label}{html(next(film.heads))}</p>" + (f"<p>shown: {html(partition)}</p>" if partition else "")
    if len(films) < 2:
        return
    if difference is None:
        yield '<p class="difference-note">The two histories are equal.</p>'
        return
    steps_there = [film.observed.observations[place].step for film, place in zip(films, difference, strict=True)]
    since = moment(min(step["t"] for step in steps_there))
    yield f'<p class="difference-note">From {since} on the runs differ.</p>\n<ul class="difference">'
    for film, step in zip(films, steps_there, strict=True):
        yield f"<li><b>{html(film.name)}</b>, {moment(step['t'])}: {html(sentence(step))}</li>"
    yield "</ul>"


def _stage(number: int, shown: Film) -> str:
    return f'<section class="stage" id="stage-{number}" aria-label="{html(shown.name)}"></section>'


def _aside(number: int, run: dict[str, Any]) -> str:
    """Story and violations, readable without scripts; with scripts each entry leads to its step."""
    sentences = "\n".join(
        f'<li><button type="button" class="sentence" data-run="{number}" data-frame="{frame}">'
        f"<time>{moment(at_us)}</time>{html(text)}</button></li>"
        for at_us, frame, text in run["story"]
    )
    marks = "\n".join(_mark(number, mark) for mark in run["marks"])
    name = html(run["name"])
    found = f"<h2>Violations and early warnings, {name}</h2>\n{marks}" if marks else ""
    return f'<section><h2>Story, {name}</h2>\n<ol class="story">\n{sentences}\n</ol>\n{found}</section>'


def _mark(number: int, mark: dict[str, Any]) -> str:
    promise = side_of_promise(mark["inside"])
    css = "violation" if mark["violation"] else "warning"
    cause = (
        f'<button type="button" class="cause" data-run="{number}" data-frame="{mark["cause"]}">Show its cause</button>'
        if mark["cause"] >= 0
        else ""
    )
    return (
        f'<div><button type="button" class="mark {css}" data-run="{number}" data-frame="{mark["frame"]}">'
        f"<time>{moment(mark['at'])}</time><b>{html(mark['kind'])}</b> ({promise}): "
        f"{html(mark['detail'])}</button>{cause}</div>"
    )


def _picture(shown: Film) -> str:
    """The run's picture as an image, whose own styles the page's policy does not block."""
    row = shown.observed.result.row
    svg = to_svg(picture(shown.observed, list(shown.heads), everything=False))
    text = base64.b64encode(svg.encode()).decode()
    alt = html(f"Lanes of brokers, control plane and clients of {row['scenario']} in mode {row['mode']}")
    return f'<img alt="{alt}" src="data:image/svg+xml;base64,{text}">'
