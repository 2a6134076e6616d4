"""The audit of a metadata log as one self-contained page, with a time line of each partition that is or was at risk."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final

from highwater.lab.audit import describe, results
from highwater.lab.audit.log import open_log
from highwater.lab.audit.risks import FINDINGS, ORDER, Severity
from reports.page.build import jinja_environment
from reports.versions import version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from highwater.lab.audit.audit import Audit
    from highwater.lab.audit.broker_logs import BrokerLogs
    from highwater.lab.audit.distance import Distance, Nearest
    from highwater.lab.audit.image import Key, PartitionState
    from highwater.lab.audit.results import Named

LINES: Final = 20
"""Most partitions with a time line."""
ROWS: Final = 60
"""Most records of a time line: the last ones."""
TABLE: Final = 200
"""Most rows of a table."""


@dataclass(frozen=True, slots=True)
class Row:
    """A partition after one of its records.

    Attributes:
        record: its offset, or "snapshot".
        time: of its batch.
        cells: for each broker of the time line, what it is there: (style, words).
        risk: the risk that begins, or that it is over; empty if neither.
        is_at_risk: whether records could be lost then.
    """

    record: int | str
    time: str
    cells: tuple[tuple[str, str], ...]
    risk: str
    is_at_risk: bool


@dataclass(frozen=True, slots=True)
class Line:
    """The time line of a partition: name, brokers, last records, and how many earlier ones are not shown."""

    name: str
    brokers: tuple[int, ...]
    rows: tuple[Row, ...]
    earlier: int


def audit_page(
    found: Audit,
    paths: Sequence[Path],
    name: Named,
    distances: Mapping[Key, tuple[Distance, Nearest | None]] | None = None,
    logs: BrokerLogs | None = None,
) -> str:
    """The text of the HTML file.

    Args:
        found: the result.
        paths: what was read, which is read once more for the time lines.
        name: how partitions are named.
        distances: of the partitions from a loss, if asked for, and when they were nearest to one.
        logs: what the brokers' logs showed, if they were given.

    Raises:
        InputError: a library is missing.
    """
    environment = jinja_environment("highwater.lab.audit")
    style = resources.files("reports.page").joinpath("report.css").read_text(encoding="utf-8")
    at_risk = [
        (results.SEVERITIES[severity].capitalize(), results.risk_rows(found, severity, name)) for severity in ORDER
    ]
    keys = _shown(found)
    tables = [
        *([] if logs is None else [results.lost_table(logs, name)]),
        *results.tables(found, name),
        *([results.distance_table(distances, name), results.story_table(distances, name)] if distances else []),
    ]
    nothing_lost = [f"{results.NOTHING_LOST}."] if logs is not None and not logs.lost else []
    text: str = environment.get_template("audit.html").render(
        style=style,
        answer=results.answer(found),
        summary=[*results.summary(found), *results.explained(found), *nothing_lost],
        notes=[*found.notes, *([] if logs is None else logs.notes)],
        at_risk=[(title, rows) for title, rows in at_risk if rows],
        tables=[(table.caption, table.headers, table.rows) for table in tables if table.rows],
        lines=_lines(found, paths, keys[:LINES], name),
        others=max(0, len(keys) - LINES),
        most=TABLE,
        findings=FINDINGS,
        version=version(),
    )
    return text


def _shown(found: Audit) -> list[Key]:
    """Partitions with a time line; those at risk now come first."""
    serious = [key for key, risks in found.risks.items() if risks[0].severity != Severity.MARGIN]
    keys = [*serious, *(one.key for one in found.happened), *found.at_risk]
    return [key for key in dict.fromkeys(keys) if key in found.image.partitions]


def _lines(found: Audit, paths: Sequence[Path], keys: Sequence[Key], name: Named) -> list[Line]:
    """The log is read again, since an audit keeps no past states."""
    if not keys or describe.is_description(paths[0]):
        return []
    states: dict[Key, list[tuple[PartitionState, int]]] = {key: [] for key in keys}
    log = open_log(paths)
    image = log.start()
    for key, noted in states.items():
        if key in image.partitions:
            noted.append((image.partitions[key], image.time_ms))
    for batch in log.read(image.next_offset):
        if batch.base_offset >= found.image.next_offset:
            break  # Appended since the audit.
        for record in batch.records:
            image.replay(record)
            for key, noted in states.items():
                state = image.partitions.get(key)
                if state is not None and (not noted or noted[-1][0] is not state):
                    noted.append((state, batch.time_ms))
    return [_line(found, key, noted, name) for key, noted in states.items() if noted]


def _line(found: Audit, key: Key, noted: list[tuple[PartitionState, int]], name: Named) -> Line:
    kept = noted[-ROWS:]
    brokers = tuple(sorted({broker for state, _ in kept for broker in (*state.replicas, *state.isr, *state.elr)}))
    begins = {one.offset: one for one in found.at_risk.get(key, ())}
    rows = []
    kind = ""
    for state, time_ms in noted:
        one = begins.get(state.offset)
        kind = kind if one is None else one.kind
        risk = "" if one is None else one.text or "no longer at risk"
        cells = tuple(_cell(state, broker) for broker in brokers)
        record = "snapshot" if state.offset < 0 else state.offset
        rows.append(Row(record, results.when(time_ms), cells, risk, bool(kind)))
    return Line(name(key), brokers, tuple(rows[-ROWS:]), len(noted) - len(kept))


def _cell(state: PartitionState, broker: int) -> tuple[str, str]:
    if broker == state.leader:
        style, words = "isr leader", ["leader"]
    elif broker in state.isr:
        style, words = "isr", ["ISR"]
    elif broker in state.elr:
        style, words = "elr", ["ELR"]
    elif broker in state.last_known_elr:
        style, words = "out", ["last leader"]
    elif broker in state.replicas:
        style, words = "out", ["replica"]
    else:
        return "out", "-"
    words += [word for word, some in (("added", state.adding), ("removed", state.removing)) if broker in some]
    if broker not in state.replicas:
        words.append("no replica")
    return style, ", ".join(words)
