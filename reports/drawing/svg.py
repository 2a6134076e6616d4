"""A picture as one self-contained SVG file, whose texts can be searched and copied."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from textwrap import wrap
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from reports.drawing.bands import Band
from reports.drawing.observed_run import LogView
from reports.drawing.picture import FAULTS, Arrow, Picture, PictureRow
from sim.history.steps import CLIENTS

WIDTH: Final = 1_200
GUTTER: Final = 84
"""Width of the column of times."""
MARGIN: Final = 14
"""Distance between the middle of a broker's lane and the log beside it."""
TEXT: Final = 360
"""Width of the text beside the lanes."""
TITLE: Final = 118
"""Characters per line of the title."""
SMALL_LETTER: Final = 5.8
"""Width of a letter of a message's name."""
LETTER: Final = 7.2
"""Width of a letter, in the widest of usual fonts (DejaVu Sans)."""
LINE: Final = 14
"""Height of a line of text."""
CELL: Final = (11, 12)
NARROW: Final = 74
"""Width of a lane without a log."""
EPOCHS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00", "#7a5195", "#8c6d31")
"""Colours of successive leader epochs; the first six can be told apart by colour-blind readers (Okabe and Ito). None is
used for stopped processes or the ISR. Further epochs get paler shades."""
PALER: Final = 0.45
"""How far a reused colour is blended towards white."""
DARK: Final = frozenset({"#0072b2", "#009e73", "#d55e00", "#7a5195", "#8c6d31"})
"""Colours that need white text."""
STYLE: Final = """
text { font: 11px system-ui, sans-serif; fill: #222 }
.title { font-size: 14px; font-weight: 600 }
.lane { font-weight: 600; text-anchor: middle }
.time { font-variant-numeric: tabular-nums; text-anchor: end; fill: #555 }
.cell { font-size: 9px; text-anchor: middle }
.small { font-size: 9px; fill: #666 }
.violation { fill: #b00020; font-weight: 700 }
.warning { fill: #a35200 }
.mark-violation { fill: #fbdde2 }
.mark-warning { fill: #fdeedd }
.fault { fill: #7b3f00; font-weight: 600 }
.life { stroke: #888; stroke-width: 1 }
.down { fill: #aaa }
.isr { fill: #cfe3f3 }
.elr { fill: url(#elr) }
.fenced { stroke: #b00020; stroke-width: 2; stroke-dasharray: 3 3 }
.still { fill: none; stroke: #222; stroke-width: 1.5; stroke-dasharray: 2 2 }
.replica { stroke: #6d93b5; stroke-width: 1 }
.message { stroke: #777; stroke-width: 1; fill: none }
.lost { stroke-dasharray: 4 3; stroke: #b00020 }
.gap { stroke: #bbb; stroke-dasharray: 1 3 }
.hw { stroke: #000; stroke-width: 2 }
.flushed { stroke: #555; stroke-width: 3 }
.acked { fill: #000 }
"""
MARKS: Final = ("head", "elr")
"""Ids of elements that are drawn in several places."""
FINAL: Final = 56
"""Height of the logs below the last row."""
GAP_US: Final = 1_000_000
"""Rows further apart in time than this get a mark: the time between them is compressed most."""


@dataclass(frozen=True, slots=True)
class _Measures:
    """The layout, in pixels.

    Attributes:
        picture: the picture.
        tops: upper edge of each row, then the lower edge of the last.
        texts: lines of text of each row.
        epochs: leader epoch -> its index among those shown.
    """

    picture: Picture
    tops: list[float]
    texts: list[list[str]]
    epochs: dict[int, int]

    @property
    def brokers(self) -> list[int]:
        return [node for node in self.picture.lanes if 0 < node < CLIENTS]

    @property
    def wide(self) -> float:
        """Width of a broker's lane."""
        others = len(self.picture.lanes) - len(self.brokers)
        return (WIDTH - GUTTER - TEXT - NARROW * others - MARGIN) / max(len(self.brokers), 1)

    @property
    def cells(self) -> int:
        """Number of batches of a log that fit; of a longer log the newest are drawn."""
        return max(int((self.wide - 2 * MARGIN) / CELL[0]), 1)

    def colour(self, epoch: int) -> str:
        """Colour of a leader epoch; epochs share a colour only if there are more epochs than colours."""
        place = self.epochs.get(epoch, epoch)
        colour = EPOCHS[place % len(EPOCHS)]
        return colour if place < len(EPOCHS) else _paler(colour, place // len(EPOCHS))

    def x(self, node: int) -> float:
        place = list(self.picture.lanes).index(node)
        others = len(self.picture.lanes) - len(self.brokers)
        if place < others:
            return GUTTER + (place + 0.5) * NARROW
        return GUTTER + others * NARROW + (place - others) * self.wide + 2 * MARGIN

    def row_y(self, place: int) -> float:
        return self.tops[place] + LINE / 2 + 2

    def y(self, at_us: int) -> float:
        """Vertical position of a time, interpolated between the rows around it."""
        rows = self.picture.rows
        place = bisect_right(rows, at_us, key=lambda row: row.at_us)
        if place == 0:
            return self.tops[0]
        above = self.row_y(place - 1)
        if place == len(rows):
            return above
        since_us, until_us = rows[place - 1].at_us, rows[place].at_us
        return above + (self.row_y(place) - above) * (at_us - since_us) / (until_us - since_us)


def to_svg(picture: Picture, part: str = "") -> str:
    """The picture as the text of an SVG file.

    Args:
        picture: the picture.
        part: name of the picture on a page with several, which scopes its styles and ids.
    """
    titles = [line for title in picture.title for line in wrap(title, TITLE)]
    head = 20 * len(titles) + 76
    texts = [wrap(row.text, int(TEXT / LETTER), subsequent_indent="  ") for row in picture.rows]
    tops = [float(head)]
    for row, lines in zip(picture.rows, texts, strict=True):
        log = CELL[1] + 16 if row.log is not None else 0
        tops.append(tops[-1] + max(LINE * len(lines) + 4, log + 6))
    measures = _Measures(picture, tops, texts, _epochs(picture))
    end = round(tops[-1] + (FINAL if picture.logs else 16))
    svg = Element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH} {end}", role="img")
    # Without a height, browsers would scale it to the window.
    svg.attrib |= {"width": str(WIDTH), "height": str(end)}
    _title(svg, picture.title[0])
    SubElement(svg, "style").text = STYLE
    _definitions(svg)
    _rect(svg, 0, 0, WIDTH, end, style="fill:#fff")
    for place, line in enumerate(titles):
        _text(svg, 12, 22 + 20 * place, line, "title" if place == 0 else "")
    _legend(svg, 20 * len(titles) + 18)
    _lanes(svg, measures, head - 12)
    for place, row in enumerate(picture.rows):
        if row.mark:
            height = tops[place + 1] - tops[place] - 2
            _rect(svg, GUTTER, tops[place], WIDTH - GUTTER - 8, height, f"mark-{row.mark}")
    for band in picture.bands:
        _band(svg, measures, band)
    labels = _Labels(measures)
    for arrow in picture.arrows:
        _arrow(svg, measures, arrow, labels)
    for place, row in enumerate(picture.rows):
        _row(svg, measures, place, row)
    if picture.logs:
        _final(svg, measures)
    indent(svg, " ")
    if part:
        return _bound(svg, part)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(svg, encoding="unicode") + "\n"


def _bound(svg: Element, part: str) -> str:
    """Scope the picture's styles and ids to its own element, and return its text."""
    svg.set("id", part)
    style = next(svg.iter("style"))
    style.text = re.sub(r"^(?=[.\w])", f"#{part} ", style.text or "", flags=re.MULTILINE)
    text = tostring(svg, encoding="unicode")
    for mark in MARKS:
        text = text.replace(f'id="{mark}"', f'id="{part}-{mark}"').replace(f"url(#{mark})", f"url(#{part}-{mark})")
    return text


def _definitions(svg: Element) -> None:
    definitions = SubElement(svg, "defs")
    head = SubElement(definitions, "marker", id="head", viewBox="0 0 8 8", refX="8", refY="4", orient="auto")
    head.attrib |= {"markerWidth": "6", "markerHeight": "6"}
    SubElement(head, "path", d="M0 0 L8 4 L0 8 z", fill="#777")
    hatch = SubElement(definitions, "pattern", id="elr", width="5", height="5", patternUnits="userSpaceOnUse")
    hatch.set("patternTransform", "rotate(45)")
    SubElement(hatch, "rect", width="5", height="5", fill="#fff3d6")
    SubElement(hatch, "rect", width="2", height="5", fill="#e69f00")


def _legend(svg: Element, y: float) -> None:
    """Explain colours and lines."""
    x = 12.0
    _line(svg, x + 2, y - 9, x + 2, y + 2, "replica")
    _line(svg, x + 12, y - 9, x + 12, y + 2, "replica")
    x = _draw_label(svg, x + 18, y, "replica")
    for kind, said in (("isr", "in the ISR"), ("elr", "in the ELR"), ("down", "process down")):
        _rect(svg, x, y - 9, 14, 11, kind)
        x = _draw_label(svg, x + 18, y, said)
    _rect(svg, x, y - 9, 6, 11, style=f"fill:{EPOCHS[0]}")
    x = _draw_label(svg, x + 10, y, "leader (colour: epoch)")
    _line(svg, x, y - 4, x + 14, y - 4, "fenced")
    x = _draw_label(svg, x + 18, y, "session ended")
    _rect(svg, x, y - 9, 14, 11, "still")
    x = _draw_label(svg, x + 18, y, "paused")
    x, y = 12.0, y + 18
    _cell(svg, x, y - 10, (EPOCHS[0], 1), acked=True)
    x = _draw_label(svg, x + 16, y, "batch and leader epoch, ● acknowledged")
    _line(svg, x, y - 11, x, y + 3, "hw")
    x = _draw_label(svg, x + 5, y, "HW")
    _line(svg, x, y + 1, x + 14, y + 1, "flushed")
    x = _draw_label(svg, x + 18, y, "flushed")
    _line(svg, x, y - 4, x + 22, y - 4, "message lost")
    x = _draw_label(svg, x + 26, y, "message lost")
    for mark in ("violation", "warning"):
        _rect(svg, x, y - 9, 14, 11, f"mark-{mark}")
        x = _draw_label(svg, x + 18, y, mark)


def _draw_label(svg: Element, x: float, y: float, text: str) -> float:
    _text(svg, x, y, text)
    return x + LETTER * len(text) + 10


def _lanes(svg: Element, measures: _Measures, y: float) -> None:
    for node in measures.picture.lanes:
        x = measures.x(node)
        _text(svg, x, y, measures.picture.lanes[node], "lane")
        if not 0 < node < CLIENTS:
            _line(svg, x, measures.tops[0], x, measures.tops[-1], "life")


def _band(svg: Element, measures: _Measures, band: Band) -> None:
    if band.node not in measures.picture.lanes or not measures.picture.rows:
        return
    top = measures.y(band.since_us)
    bottom = measures.tops[-1] if band.until_us is None else measures.y(band.until_us)
    x = measures.x(band.node)
    if bottom <= top:
        return
    if band.kind == "up":
        _line(svg, x, top, x, bottom, "life")
    elif band.kind == "fenced":
        _line(svg, x + 11, top, x + 11, bottom, "fenced")
    elif band.kind == "still":
        _rect(svg, x - 6, top, 12, bottom - top, "still")
    elif band.kind == "replica":
        _line(svg, x - 10, top, x - 10, bottom, "replica")
        _line(svg, x + 10, top, x + 10, bottom, "replica")
    elif band.kind == "leader":
        bar = _rect(svg, x - 3, top, 6, bottom - top, style=f"fill:{measures.colour(band.epoch)}")
        _title(bar, f"{measures.picture.lanes[band.node]} is leader in epoch {band.epoch}")
    else:
        half = 5 if band.kind == "down" else 9
        _rect(svg, x - half, top, 2 * half, bottom - top, band.kind)


class _Labels:
    """Tracks free space for message names, so that none overlaps a log or another name."""

    def __init__(self, measures: _Measures) -> None:
        self._taken: list[tuple[float, float, float, float]] = []
        for place, row in enumerate(measures.picture.rows):
            if row.log is not None:
                x, y = measures.x(row.node), measures.row_y(place)
                self._taken.append((x, y - 12, x + measures.wide, y + 24))

    def fits(self, x: float, y: float, width: float) -> bool:
        """Reserve the space of a name; return whether it was free."""
        box = x, y - 9, x + width, y + 2
        for left, top, right, bottom in self._taken:
            if box[0] < right and left < box[2] and box[1] < bottom and top < box[3]:
                return False
        self._taken.append(box)
        return True


def _arrow(svg: Element, measures: _Measures, arrow: Arrow, labels: _Labels) -> None:
    message, lanes = arrow.message, measures.picture.lanes
    if message.source not in lanes or message.target not in lanes:
        return
    begin, end = measures.x(message.source), measures.x(message.target)
    top = measures.y(message.sent_us) if arrow.source_row is None else measures.row_y(arrow.source_row)
    bottom = measures.y(message.arrived_us) if arrow.target_row is None else measures.row_y(arrow.target_row)
    css = "message lost" if message.lost else "message"
    line = _line(svg, begin, top, end, max(bottom, top), css)
    if not message.lost:
        line.set("marker-end", "url(#head)")
    what = message.name
    width = SMALL_LETTER * len(what)
    x, y = (begin + end - width) / 2, (top + max(bottom, top)) / 2 - 3
    if abs(end - begin) > width + 24 and labels.fits(x, y, width):
        _text(svg, x, y, what, "small")
    _title(
        line,
        f"{message.name}: {lanes[message.source]} to {lanes[message.target]}, sent at {message.sent_us / 1e6:.6f} s, "
        f"{'lost' if message.lost else f'there at {message.arrived_us / 1e6:.6f} s'}",
    )


def _row(svg: Element, measures: _Measures, place: int, row: PictureRow) -> None:
    y = measures.row_y(place)
    if place and row.at_us - measures.picture.rows[place - 1].at_us > GAP_US:
        _line(svg, GUTTER, measures.tops[place], WIDTH - 12, measures.tops[place], "gap")
    css = row.mark
    _text(svg, GUTTER - 10, y + 4, f"{row.at_us / 1e6:.6f}", "time")
    for number, line in enumerate(measures.texts[place]):
        _text(svg, WIDTH - TEXT + 8, y + 4 + LINE * number, line, css or ("fault" if row.kind in FAULTS else ""))
    if row.node in measures.picture.lanes:
        x = measures.x(row.node)
        circle = SubElement(svg, "circle", cx=_n(x), cy=_n(y), r="3.5")
        circle.set("style", "fill:#fff;stroke:#222;stroke-width:1.5")
        _title(circle, row.text)
    if row.log is not None:
        _log(svg, measures, measures.x(row.node) + MARGIN, y - 5, row.log, row.acked)


def _final(svg: Element, measures: _Measures) -> None:
    """Draw the logs at the last row."""
    y = measures.tops[-1] + 24
    _text(svg, GUTTER - 10, y + 5, "logs", "time")
    for broker, log in measures.picture.logs.items():
        if broker in measures.picture.lanes:
            _log(svg, measures, measures.x(broker) + MARGIN, y - 5, log, measures.picture.acked)


def _log(svg: Element, measures: _Measures, x: float, y: float, log: LogView, acked: frozenset[int]) -> None:
    """Draw the newest batches of a log, each as a cell with its leader epoch."""
    left = max(len(log.batches) - measures.cells, 0)
    if left:
        _text(svg, x, y + CELL[1] + 10, f"… {left} before", "small")
    if not log.batches:
        _text(svg, x, y + 9, "empty", "small")
    hw_x = x
    for place, (base, last, epoch, first) in enumerate(log.batches[left:]):
        at = x + place * CELL[0]
        cell = _cell(svg, at, y, (measures.colour(epoch), epoch), acked=first in acked)
        _title(cell, f"offsets {base} to {last}, leader epoch {epoch}, first record {first}")
        if last < log.flushed:
            _line(svg, at, y + CELL[1] + 2, at + CELL[0], y + CELL[1] + 2, "flushed")
        if last < log.high_watermark:
            hw_x = at + CELL[0]
    _line(svg, hw_x, y - 2, hw_x, y + CELL[1] + 3, "hw")


def _cell(svg: Element, x: float, y: float, epoch: tuple[str, int], *, acked: bool) -> Element:
    """Draw a batch with the colour and number of its leader epoch."""
    colour, written = epoch
    cell = _rect(svg, x, y, *CELL, style=f"fill:{colour};stroke:#fff")
    number = _text(svg, x + CELL[0] / 2, y + CELL[1] - 2.5, str(written), "cell")
    if colour in DARK:
        number.set("style", "fill:#fff")
    if acked:
        SubElement(svg, "circle", cx=_n(x + CELL[0] / 2), cy=_n(y - 2), r="1.8").set("class", "acked")
    return cell


def _epochs(picture: Picture) -> dict[int, int]:
    """Leader epochs shown -> their indices."""
    logs = [*picture.logs.values(), *(row.log for row in picture.rows if row.log is not None)]
    shown = {epoch for log in logs for _, _, epoch, _ in log.batches}
    shown |= {band.epoch for band in picture.bands if band.kind == "leader"}
    return {epoch: place for place, epoch in enumerate(sorted(shown))}


def _paler(colour: str, times: int) -> str:
    parts = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    left = (1 - PALER) ** times
    return "#" + "".join(f"{round(255 - (255 - part) * left):02x}" for part in parts)


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _rect(svg: Element, x: float, y: float, width: float, height: float, css: str = "", style: str = "") -> Element:
    rect = SubElement(svg, "rect", x=_n(x), y=_n(y), width=_n(width), height=_n(height))
    for name, value in (("class", css), ("style", style)):
        if value:
            rect.set(name, value)
    return rect


def _line(svg: Element, x1: float, y1: float, x2: float, y2: float, css: str) -> Element:
    line = SubElement(svg, "line", x1=_n(x1), y1=_n(y1), x2=_n(x2), y2=_n(y2))
    line.set("class", css)
    return line


def _text(svg: Element, x: float, y: float, text: str, css: str = "") -> Element:
    element = SubElement(svg, "text", x=_n(x), y=_n(y))
    if css:
        element.set("class", css)
    element.text = _printable(text)
    return element


def _title(element: Element, text: str) -> None:
    """Add a tooltip to an element."""
    SubElement(element, "title").text = _printable(text)


def _printable(text: str) -> str:
    """Replace characters that XML does not allow."""
    return "".join(character if character.isprintable() else "�" for character in text)
