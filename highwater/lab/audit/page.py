"""The audit of a metadata log as one self-contained page, with a time line of each partition that is or was at risk."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from highwater.lab.audit import describe, results
from highwater.lab.audit.log import open_log
from highwater.lab.audit.risks import FINDINGS, ORDER, Severity
from reports.document.blocks import Cell, Contents, Document, Heading, Items, Table, Text
from reports.document.page import to_html
from reports.versions import version
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from highwater.lab.audit.audit import Audit
    from highwater.lab.audit.broker_logs import BrokerLogs
    from highwater.lab.audit.distance import Distance, Nearest
    from highwater.lab.audit.image import Key, RegisteredPartition
    from highwater.lab.audit.results import Named
    from reports.document.blocks import Block

LINES: Final = 20
"""Most partitions with a time line."""
ROWS: Final = 60
"""Most records of a time line: the last ones."""
TABLE: Final = 200
"""Most rows of a table."""
RISK: Final = ("partition", "what is so", "what to do")
"""Columns of partitions at risk."""


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
    what = "the output of kafka-topics.sh" if found.is_moment else "a metadata log"
    document = Document(
        f"Audit of {what}",
        list(_blocks(found, paths, name, distances, logs)),
        "Highwater audit",
        f"Highwater: audit of {what}",
    )
    return to_html(document)


def _blocks(
    found: Audit,
    paths: Sequence[Path],
    name: Named,
    distances: Mapping[Key, tuple[Distance, Nearest | None]] | None,
    logs: BrokerLogs | None,
) -> Iterator[Block]:
    nothing_lost = [f"{results.NOTHING_LOST}."] if logs is not None and not logs.lost else []
    notes = [*found.notes, *([] if logs is None else logs.notes)]
    yield Text(results.answer(found), "answer")
    yield Items(
        [*results.summary(found), *results.explained(found), *results.spare_lines(found, name, TABLE), *nothing_lost]
    )
    yield from (Text(note, "warning") for note in notes[:TABLE])
    yield Contents()
    for severity in ORDER:
        if rows := results.risk_rows(found, severity, name):
            yield from _table(Table(RISK, [*map(_risk, rows)], caption=results.SEVERITIES[severity].capitalize()))
    tables = [
        *([] if logs is None else [results.lost_table(logs, name)]),
        *results.tables(found, name),
        *([results.distance_table(distances, name), results.story_table(distances, name)] if distances else []),
    ]
    for table in tables:
        yield from _table(table)
    yield from _lines(found, paths, name)
    yield Text(
        f"Checks, rules and limits are explained in highwater/lab/audit/README.md. Highwater {version()}.", "note"
    )


def _table(table: Table) -> Iterator[Block]:
    """A table, if it has rows, with a heading in place of its caption."""
    if table.rows:
        yield Heading(table.caption, name=re.sub(r"[^a-z0-9]+", "-", table.caption.lower()))
        yield replace(table, rows=table.rows[:TABLE], caption="")
    if len(table.rows) > TABLE:
        yield Text(f"The first {TABLE} of {len(table.rows)}.", "note")


def _risk(row: tuple[str, str, str, str, str]) -> tuple[object, ...]:
    partition, kind, text, advice, finding = row
    return partition, f"{text} ({kind})", f"{advice} (scenarios {finding} of {FINDINGS})" if finding else advice


def _shown(found: Audit) -> list[Key]:
    """Partitions with a time line; those at risk now come first."""
    serious = [key for key, risks in found.risks.items() if risks[0].severity != Severity.MARGIN]
    keys = [*serious, *(event.key for event in found.happened), *found.at_risk]
    return [key for key in dict.fromkeys(keys) if key in found.image.partitions]


def _lines(found: Audit, paths: Sequence[Path], name: Named) -> Iterator[Block]:
    """Time lines. The log is read again, since an audit keeps no past states."""
    keys = _shown(found)
    if not keys or describe.is_description(paths[0]):
        return
    states: dict[Key, list[tuple[RegisteredPartition, int]]] = {key: [] for key in keys[:LINES]}
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
    yield Heading("Partitions over time")
    others = f" {counted(len(keys) - LINES, 'more partition')} not shown." if len(keys) > LINES else ""
    yield Text(
        "One row for each record of the partition, one column for each broker. Shaded rows: acknowledged records could "
        f"be lost by clean stops, elections or reassignments alone.{others}",
        "note",
    )
    for number, (key, noted) in enumerate(states.items(), start=1):
        if noted:
            yield Heading(f"{name(key)} over time", level=3, name=f"line{number}")
            yield from _line(found, key, noted)


def _line(found: Audit, key: Key, noted: list[tuple[RegisteredPartition, int]]) -> Iterator[Block]:
    """The time line of a partition: the last of its records, and what each broker is after it."""
    kept = noted[-ROWS:]
    brokers = sorted({broker for state, _ in kept for broker in (*state.replicas, *state.isr, *state.elr)})
    begins = {one.offset: one for one in found.at_risk.get(key, ())}
    rows = []
    kind = ""
    for state, time_ms in noted:
        one = begins.get(state.offset)
        kind = kind if one is None else one.kind
        style = "risk" if kind else ""
        risk = "" if one is None else one.text or "no longer at risk"
        record = Cell("snapshot" if state.offset < 0 else state.offset, style)
        rows.append((record, results.when(time_ms), *(_cell(state, broker) for broker in brokers), Cell(risk, style)))
    if len(noted) > len(kept):
        yield Text(f"{counted(len(noted) - len(kept), 'earlier record')} not shown.", "note")
    yield Table(["record", "time (UTC)", *(f"broker {broker}" for broker in brokers), "risk of a loss"], rows[-ROWS:])


def _cell(state: RegisteredPartition, broker: int) -> Cell:
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
        return Cell("-", "out")
    words += [word for word, some in (("added", state.adding), ("removed", state.removing)) if broker in some]
    if broker not in state.replicas:
        words.append("no replica")
    return Cell(", ".join(words), style)
