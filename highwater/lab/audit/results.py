"""The result of an audit as tables and sentences, and as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.audit.audit import AUDIT_VERSION, anonymous
from highwater.lab.audit.controller import listed
from highwater.lab.audit.restart import told as told_cause
from highwater.lab.audit.risks import ORDER, Severity, has_no_spare
from reports.document.blocks import Table
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from highwater.lab.audit.audit import Audit
    from highwater.lab.audit.broker_logs import BrokerLogs
    from highwater.lab.audit.distance import Distance, Nearest
    from highwater.lab.audit.explanations import RecordExplanation
    from highwater.lab.audit.image import Key, RegisteredPartition
    from highwater.lab.audit.restart import Restart
    from highwater.lab.audit.situations import Story

SEVERITIES: Final = {
    Severity.LOSS: "acknowledged records can be lost",
    Severity.LEADERLESS: "no leader",
    Severity.MARGIN: "no margin",
}
"""Severity -> words of its heading."""

_YEAR_10000_MS: Final = 253_402_300_800_000
NOTHING_LOST: Final = "The brokers' logs show no loss of committed records"


class Named:
    """Names of partitions as they are shown: of topics, or of their hashes."""

    def __init__(self, audit: Audit, *, hides: bool) -> None:
        self._audit = audit
        self._hides = hides

    def __call__(self, key: Key) -> str:
        image = self._audit.image
        return self.of_name(f"{image.topics.get(key[0], key[0])}-{key[1]}")

    def of_name(self, partition: str) -> str:
        """A partition that is known by its name, such as ``orders-0``."""
        topic, _, number = partition.rpartition("-")
        return f"{anonymous(topic)}-{number}" if self._hides else partition


def when(time_ms: int) -> str:
    """A time stamp for readers."""
    if not 0 <= time_ms < _YEAR_10000_MS:
        return "-" if time_ms < 0 else f"{time_ms} ms"
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def summary(audit: Audit) -> list[str]:
    """What was read, and by which rules."""
    image = audit.image
    fenced = sum(not broker.is_active for broker in image.brokers.values())
    inactive = "down, or lagging, as the ISRs show" if audit.is_moment else "fenced or shutting down"
    what = (
        f"{counted(len(image.topics), 'topic')}, {counted(len(image.partitions), 'partition')}, "
        f"{counted(len(image.brokers), 'broker')} ({fenced} {inactive})."
    )
    lines = [what]
    if moved := [key for key in audit.image.partitions if audit.image.partitions[key].is_reassigned]:
        lines.append(f"{counted(len(moved), 'partition')} being reassigned.")
    if audit.batches:
        begin = f"record {audit.first_offset}"
        lines.insert(
            0,
            f"Metadata log from {begin} to record {image.next_offset - 1} ({when(image.time_ms)} UTC), "
            f"{counted(audit.batches, 'batch', 'batches')}.",
        )
    how = f"{_recognised(audit)} with --release" if audit.recognised else "as you asked"
    lines.append(f"Judged as Kafka {audit.release} (mode {audit.mode.name}), {how}.")
    return lines


def _recognised(audit: Audit) -> str:
    """By what the release was recognised."""
    if not audit.is_moment:
        return "as its metadata.version says: another"
    if not audit.image.elr_enabled:
        return "the newest one before 4.0, since the text shows no ELRs: give yours"
    return "since the text names no release: give yours"


def restart_answer(audit: Audit, found: Restart) -> str:
    """Whether a broker can be restarted, in one sentence that names what it is about."""
    image = audit.image
    source = "text" if audit.is_moment else "log"
    partitions = counted(len(image.partitions), "partition")
    scope = f"{partitions} of the {counted(len(image.topics), 'topic')} in this {source}"
    if not found.is_active and audit.is_moment:
        return (
            f"Broker {found.broker} leads nothing and is in no ISR that has a leader, in the {scope}: it is down or "
            "lags behind, and a restart harms nothing"
        )
    if not found.is_active:
        return f"Broker {found.broker} is down, fenced or shutting down already: a start harms nothing"
    question = f"Can broker {found.broker} be restarted now?"
    if found.reasons:
        (effect, number), *others = found.by_effect().items()
        words = [f"{number} of {partitions} {effect}", *(f"{number} {effect}" for effect, number in others)]
        return f"{question} No: {', '.join(words)}"
    return f"{question} Yes, as far as the {scope} show ({found.replicas} with a replica on it)"


def restart_causes(found: Restart, name: Named) -> list[dict[str, Any]]:
    """What speaks against a restart, by cause."""
    causes = []
    for (cause, brokers), keys in found.by_cause().items():
        text, advice = told_cause(cause, brokers, len(keys), found.broker)
        partitions = [name(key) for key in keys]
        causes.append(
            {"cause": cause, "brokers": list(brokers), "text": text, "advice": advice, "partitions": partitions}
        )
    return causes


def _restart(found: Restart, name: Named) -> dict[str, Any]:
    return {
        "broker": found.broker,
        "replicas": found.replicas,
        "causes": restart_causes(found, name),
        "reasons": {name(key): [reason.text for reason in reasons] for key, reasons in found.reasons.items()},
    }


def risk_rows(audit: Audit, severity: Severity, name: Named) -> list[tuple[str, str, str, str, str]]:
    """Partition, check, what is so, what to do, and scenarios of FINDINGS.md, of each risk of a severity."""
    return [
        (name(key), risk.kind, risk.text, risk.advice, risk.finding)
        for key, found in audit.risks.items()
        for risk in found
        if risk.severity == severity
    ]


def answer(audit: Audit) -> str:
    """The result in one sentence."""
    total = counted(len(audit.image.partitions), "partition")
    parts = [
        f"{number} of {total} ({SEVERITIES[severity]})" for severity in ORDER if (number := at_risk(audit, severity))
    ]
    risk = f"At risk: {'; '.join(parts)}." if parts else "No partition is at risk."
    spare = len(without_spare(audit))
    return f"{risk} No spare in-sync replica: {spare} of {total}." if spare else risk


def at_risk(audit: Audit, severity: Severity) -> int:
    """How many partitions have a risk of this severity; one with risks of two severities counts in both."""
    return sum(any(risk.severity == severity for risk in found) for found in audit.risks.values())


def without_spare(audit: Audit) -> list[Key]:
    """Partitions without a risk, of which one in-sync replica less would let acks=all be refused."""
    image = audit.image
    return [
        key for key in sorted(image.partitions, key=image.order) if key not in audit.risks and has_no_spare(image, key)
    ]


def spare_lines(audit: Audit, name: Named, most: int) -> list[str]:
    """What it means that partitions have no spare in-sync replica, and which these are; empty if there are none."""
    keys = without_spare(audit)
    if not keys:
        return []
    more = f", and {len(keys) - most} more" if len(keys) > most else ""
    meaning = "the ISR is as small as min.insync.replicas, so that acks=all is refused once another member leaves it"
    return [f"No spare in-sync replica ({meaning}): {', '.join(map(name, keys[:most]))}{more}."]


def verdict(audit: Audit, logs: BrokerLogs | None) -> str:
    """The last line: the partitions at risk now, and all else for which the exit code is 1."""
    parts = [answer(audit)]
    if audit.unexplained:
        parts.append(explained(audit)[0])
    if logs is not None and logs.lost:
        parts.append(f"The brokers' logs show {counted(len(logs.lost), 'loss', 'losses')} of committed records.")
    return " ".join(parts)


def explained(audit: Audit) -> list[str]:
    """How many records of partitions have an explanation."""
    counts = audit.explained
    total = sum(counts[word] for word in ("one event", "several events", "no event"))
    if not total:
        return []
    writes = f"such as Kafka {audit.release} writes"
    if strange := counts["no event"]:
        lines = [f"{total - strange} of {counted(total, 'partition record')} are {writes}; {strange} are not."]
    else:
        lines = [f"All {total} partition records are {writes}." if total > 1 else f"The partition record is {writes}."]
    if counts["known bug"]:
        lines.append(f"{counted(counts['known bug'], 'record')} would differ without a known bug.")
    return lines


def tables(audit: Audit, name: Named) -> list[Table]:
    """What happened, and which records no event or a known bug explains; without empty tables."""
    happened = [(event.offset, when(event.time_ms), name(event.key), event.text) for event in audit.happened]
    record = ("record", "time (UTC)", "partition")
    found = (
        _table("Elections that lost records, or may have", (*record, "what happened"), happened),
        _table(
            f"Records that Kafka {audit.release} does not write",
            (*record, "problem", "change"),
            list(unexplained_rows(audit, name)),
        ),
        _table("Records that a known bug explains", (*record, "event", "rules"), list(bug_rows(audit, name))),
    )
    return [table for table in found if table.rows]


def _table(caption: str, headers: Sequence[str], rows: Sequence[tuple[object, ...]]) -> Table:
    return Table(headers, rows, ["record"], caption)


def lost_table(logs: BrokerLogs, name: Named) -> Table:
    """Committed records that were lost."""
    headers = ("partition", "offsets", "time", "what shows it")
    return _table("Committed records that were lost, by the brokers' logs", headers, lost_rows(logs, name))


def distance_table(found: Mapping[Key, tuple[Distance, Nearest | None]], name: Named) -> Table:
    """Distances; the last column only if it was asked for."""
    rows = distance_rows(found, name)
    headers = ("partition", "loss after", "no leader after", "nearest to a loss")
    width = len(headers) if any(row[-1] for row in rows) else len(headers) - 1
    caption = "How far from a loss (clean events: clean stops, starts, moves, preferred elections)"
    return _table(caption, headers[:width], [row[:width] for row in rows])


def story_table(found: Mapping[Key, tuple[Distance, Nearest | None]], name: Named) -> Table:
    """The shortest story of each partition to a loss and to no leader; the nearest partitions first."""
    rows = [
        (name(key), what, costs(stories[:1], now.within), told(stories[0]))
        for key, (now, _) in sorted(found.items(), key=lambda item: item[1][0].order)
        for what, stories in (("loss", now.loss), ("no leader", now.leaderless))
        if stories
    ]
    return _table("Shortest stories", ("partition", "ends with", "after", "events"), rows)


def at_risk_table(audit: Audit, name: Named) -> Table:
    """Each record with which a risk of a loss began or ended."""
    rows = [
        (risk.offset, when(risk.time_ms), name(key), risk.text or "no longer at risk")
        for key, begun in audit.at_risk.items()
        for risk in begun
    ]
    return _table("When records could be lost", ("record", "time (UTC)", "partition", "what was so"), rows)


def unexplained_rows(audit: Audit, name: Named) -> Iterator[tuple[object, ...]]:
    """Record, time, partition, problem, and the change, of each record without an explanation."""
    for explanation in audit.unexplained:
        change = difference(explanation) if explanation.after is not None else ""
        yield (
            explanation.offset,
            when(explanation.time_ms),
            name(explanation.key) if explanation.key else "",
            explanation.problem,
            change,
        )


def bug_rows(audit: Audit, name: Named) -> Iterator[tuple[object, ...]]:
    """Record, time, partition, event, and the rules that are known bugs."""
    for bug in audit.bugs:
        yield bug.offset, when(bug.time_ms), name(bug.key) if bug.key else "", bug.events[0], ", ".join(bug.bugs)


def distance_rows(found: Mapping[Key, tuple[Distance, Nearest | None]], name: Named) -> list[tuple[str, str, str, str]]:
    """Partition, events to a loss, to no leader, and when it was nearest to a loss; the nearest ones first."""
    rows = sorted(found.items(), key=lambda item: item[1][0].order)
    return [
        (name(key), costs(now.loss, now.within), costs(now.leaderless, now.within), _nearest(nearest))
        for key, (now, nearest) in rows
    ]


def costs(stories: Sequence[Story], within: int) -> str:
    """The cheapest stories' events for readers: unclean ends, and clean stops, starts, moves and elections."""
    if not stories:
        return f"at least {within + 1}"
    return ", or ".join(
        " + ".join(
            [
                *([counted(story.unclean, "unclean end")] if story.unclean else []),
                *([counted(story.others, "clean event")] if story.others else []),
            ]
        )
        or "none: it is so now"
        for story in stories
    )


def lost_rows(logs: BrokerLogs, name: Named) -> list[tuple[str, str, str, str]]:
    """Partition, offsets, time, and what shows it, of committed records that were lost."""
    return [
        (name.of_name(lost.partition), f"{lost.first} to {lost.end - 1}", lost.time or "-", lost.text)
        for lost in logs.lost
    ]


def told(story: Story) -> str:
    """A story's events in one sentence."""
    return "; ".join(step.text for step in story.steps) or "it is so now"


def _nearest(nearest: Nearest | None) -> str:
    if nearest is None:
        return ""
    what = costs(nearest.distance.loss, nearest.distance.within)
    return f"{what} (record {nearest.offset}, {when(nearest.time_ms)})"


def difference(one: RecordExplanation) -> str:
    """What a record changed."""
    before, after = one.before, one.after
    assert before is not None
    assert after is not None
    changes = [
        f"{word} {_shown(before, field)} to {_shown(after, field)}"
        for word, field in (
            ("leader", "leader"),
            ("ISR", "isr"),
            ("ELR", "elr"),
            ("last known ELR", "last_known_elr"),
            ("replicas", "replicas"),
            ("adding", "adding"),
            ("removing", "removing"),
        )
        if getattr(before, field) != getattr(after, field)
    ]
    return "; ".join(changes) or "nothing but the epochs"


def _shown(state: RegisteredPartition, field: str) -> str:
    value = getattr(state, field)
    return listed(value) if isinstance(value, tuple) else "none" if value < 0 else str(value)


def as_json(
    audit: Audit,
    name: Named,
    restart: Restart | None,
    distances: Mapping[Key, tuple[Distance, Nearest | None]],
    logs: BrokerLogs | None,
) -> dict[str, Any]:
    """The result, with ``schema_version``."""
    image = audit.image
    return {
        "schema_version": AUDIT_VERSION,
        "release": audit.release,
        "mode": audit.mode.name,
        "records": {"first": audit.first_offset, "next": image.next_offset, "batches": audit.batches},
        "time_ms": image.time_ms,
        "topics": len(image.topics),
        "partitions": len(image.partitions),
        "brokers": {str(number): {"active": state.is_active} for number, state in sorted(image.brokers.items())},
        "notes": audit.notes,
        "reassignments": [
            {"partition": name(key), **_state(image.partitions[key])}
            for key in sorted(image.partitions, key=image.order)
            if image.partitions[key].is_reassigned
        ],
        "at_risk": [
            {"partition": name(key), **_state(image.partitions[key]), "risks": [_risk(risk) for risk in found]}
            for key, found in audit.risks.items()
        ],
        "without_spare": [name(key) for key in without_spare(audit)],
        "was_at_risk": [
            {"partition": name(key), "begins": [_begins(begins) for begins in begun]}
            for key, begun in audit.at_risk.items()
        ],
        "happened": [
            {"record": event.offset, "time_ms": event.time_ms, "partition": name(event.key), "text": event.text}
            for event in audit.happened
        ],
        "explained": {word: audit.explained[word] for word in ("one event", "several events", "no event", "known bug")},
        "unexplained": _rows(("record", "time", "partition", "problem", "change"), unexplained_rows(audit, name)),
        "known_bugs": _rows(("record", "time", "partition", "event", "rules"), bug_rows(audit, name)),
        "distances": [
            {
                "partition": name(key),
                **_distance(now),
                "nearest": None
                if nearest is None
                else {"record": nearest.offset, "time_ms": nearest.time_ms, **_distance(nearest.distance)},
            }
            for key, (now, nearest) in distances.items()
        ],
        "broker_logs": None
        if logs is None
        else {
            "lost": _rows(("partition", "offsets", "time", "text"), iter(lost_rows(logs, name))),
            "high_watermarks": {name.of_name(one): hw for one, hw in sorted(logs.high_watermarks.items())},
        },
        "before_restart": None if restart is None else _restart(restart, name),
    }


def _rows(names: Sequence[str], rows: Iterator[tuple[object, ...]]) -> list[dict[str, object]]:
    return [dict(zip(names, row, strict=True)) for row in rows]


def _state(state: RegisteredPartition) -> dict[str, Any]:
    return {
        "leader": state.leader,
        "replicas": state.replicas,
        "isr": state.isr,
        "elr": state.elr,
        "last_known_elr": state.last_known_elr,
        "adding": state.adding,
        "removing": state.removing,
    }


def _distance(distance: Distance) -> dict[str, Any]:
    def of(stories: Sequence[Story]) -> list[dict[str, Any]]:
        return [
            {"unclean_ends": story.unclean, "others": story.others, "events": [step.text for step in story.steps]}
            for story in stories
        ]

    return {"loss": of(distance.loss), "leaderless": of(distance.leaderless), "within": distance.within}


def _risk(risk: Any) -> dict[str, Any]:
    return {
        "kind": risk.kind,
        "severity": str(risk.severity),
        "text": risk.text,
        "advice": risk.advice,
        "finding": risk.finding,
        "since_record": risk.since,
    }


def _begins(one: Any) -> dict[str, Any]:
    return {"record": one.offset, "time_ms": one.time_ms, "kind": one.kind, "text": one.text}
