"""A run in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.


A node is a process. Its steps are instants of one thread, its states are slices of other threads; a message is a flow
from the slice in which it was sent to the one in which it arrived. Times are simulated microseconds.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reports.drawing.bands import Band
    from reports.drawing.picture import Arrow, Picture, PictureRow

STEPS: Final = 1
"""Thread for steps and messages."""
THREADS: Final = {"up": 2, "down": 2, "leader": 3, "isr": 4, "elr": 5, "fenced": 6, "replica": 7, "still": 8}
"""Kind of band -> its thread."""
NAMES: Final = {STEPS: "steps", 2: "process", 3: "leader", 4: "ISR", 5: "ELR", 6: "fenced", 7: "replica", 8: "paused"}
MARKS: Final = 0
"""Process for events without a lane: link faults, violations."""
FIRST: Final = 1
"""Process id of the first lane."""


def to_perfetto(picture: Picture) -> str:
    """The picture as the text of a JSON trace."""
    processes = {node: FIRST + place for place, node in enumerate(picture.lanes)}
    end_us = max((row.at_us for row in picture.rows), default=0)
    events = [*_names(picture, processes), *(_instant(row, processes) for row in picture.rows)]
    for number, arrow in enumerate(picture.arrows):
        if arrow.message.source in processes and arrow.message.target in processes:
            events += _flow(arrow, number, processes)
    for band in picture.bands:
        if band.node in processes and band.kind in THREADS:
            events.append(_slice(band, end_us, processes))
    return json.dumps({"displayTimeUnit": "ms", "otherData": {"title": picture.title[0]}, "traceEvents": events})


def _names(picture: Picture, processes: dict[int, int]) -> Iterator[dict[str, Any]]:
    yield _name("process_name", MARKS, 0, "links, violations")
    for node, name in picture.lanes.items():
        yield _name("process_name", processes[node], 0, name)
        threads = {STEPS} | {THREADS[band.kind] for band in picture.bands if band.node == node and band.kind in THREADS}
        for thread in sorted(threads):
            yield _name("thread_name", processes[node], thread, NAMES[thread])


def _name(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


def _instant(row: PictureRow, processes: dict[int, int]) -> dict[str, Any]:
    process = processes.get(row.node, MARKS)
    scope = "t" if process else "g"
    name = row.mark if row.kind is None else row.kind.name
    return {
        "ph": "i", "name": name, "cat": "step", "ts": row.at_us, "pid": process, "tid": STEPS, "s": scope,
        "args": {"text": row.text},
    }  # fmt: skip


def _flow(arrow: Arrow, number: int, processes: dict[int, int]) -> Iterator[dict[str, Any]]:
    """A message: a short slice where it is sent, another where it arrives, and a flow that joins them."""
    message = arrow.message
    name = message.name
    for phase, node, at_us in (("s", message.source, message.sent_us), ("f", message.target, message.arrived_us)):
        if phase == "f" and message.lost:
            return
        place = {"ts": at_us, "pid": processes[node], "tid": STEPS}
        yield {"ph": "X", "name": name, "cat": "message", "dur": 1, **place, "args": {"lost": message.lost}}
        yield {"ph": phase, "name": name, "cat": "message", "id": number, "bp": "e", **place}


def _slice(band: Band, end_us: int, processes: dict[int, int]) -> dict[str, Any]:
    until_us = max(end_us, band.since_us) if band.until_us is None else band.until_us
    name = f"leader in epoch {band.epoch}" if band.kind == "leader" else band.kind
    return {
        "ph": "X", "name": name, "cat": "state", "ts": band.since_us, "dur": until_us - band.since_us,
        "pid": processes[band.node], "tid": THREADS[band.kind],
    }  # fmt: skip
