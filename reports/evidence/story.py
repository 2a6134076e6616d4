"""A run's trace as text: one line per step, with faults and violations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from reports.formatting import pairs, side_of_promise
from scenarios.single.rows import STORY_ERROR
from sim.history.steps import STEPS
from sim.plurals import counted
from sim.protocol.modes import MODES, NO_RELEASE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from scenarios.single.result import RunResult

_SHOWN_APART: Final = ("t", "step", "broker")
_LABELS: Final = {"lost": "lost_record_ids"}
"""Names of fields in step lines that differ from the trace's: ``lost=0`` would read as "nothing lost"."""
VERDICTS: Final[Mapping[str, str]] = {
    "ok": "no violation",
    "violation": "violation",
    "stalled": "no leader until an operator acts (stalled)",
    "exhausted": "stopped at the event limit (exhausted)",
    "error": "the run did not play to its end (error)",
}
"""Verdict -> what happened."""
HAPPENED: Final[Mapping[str, str]] = {
    "committed-loss": "acknowledged record LOST",
    "exposed-loss": "record that a consumer read LOST",
    "divergence": "replicas DIVERGED",
    "hw-regression": "high watermark that clients saw went BACK",
    "metadata-loss": "committed metadata LOST or changed",
    "quorum-leaders": "TWO controllers led in one epoch",
    "quorum-stalled": "no fault stopped a majority of the controllers, and they committed NOTHING",
    "consumer-skip": "a consumer SKIPPED records",
    "reset-skip": "a consumer that reset its position SKIPPED records",
    "committed-offset-back": "a group's committed offset went BACK",
    "deleted-records-back": "deleted records came BACK",
    "duplicate": "batch of an idempotent producer stored TWICE",
    "duplicate-across-epochs": "batch of an idempotent producer stored TWICE",
    "reordered": "batches of an idempotent producer OUT OF ORDER",
    "reordered-across-epochs": "batches of an idempotent producer OUT OF ORDER",
    "sequence-gap": "batch of an idempotent producer accepted WITHOUT the one before it",
    "ack-under-min-isr": "acknowledged BELOW min.insync.replicas",
    "stale-setting": "another value of a setting IN FORCE than the one that was set",
    "controller-crashes": "controllers CRASHED one after another",
    "forbidden-election": "a leader from OUTSIDE ISR and ELR, which no setting allows",
    "wrong-offset": "a producer was told a WRONG offset",
    "needless-wait": "a wait LONGER than its bound",
    "needless-shrink": "a replica left the ISR WITHOUT need",
    "stuck-replica": "a replica NEVER caught up",
    "stuck-consumer": "a consumer READS NO FURTHER",
    "no-progress": "NO progress after healing",
}
"""Kind of violation -> what happened, the worst first."""
_WITHOUT_OFFSET: Final = {step for step, meaning in STEPS.items() if "offset" not in meaning}


def head(row: Mapping[str, Any]) -> Iterator[str]:
    """Lines that name the run and its outcome."""
    after = f", blow {row['blow']}" if row.get("blow") else ""
    yield f"{row['scenario']}, mode {row['mode']}, seed {row['seed']}{after}: {outcome(row)}"
    yield f"digest {row['digest']}, {row['events']} events, {row['sim_us'] / 1_000_000:.3f} s of simulated time"
    if row["error"]:
        first, *rest = row["error"].splitlines()
        if first.startswith(STORY_ERROR):
            first = f"the script did not play as written: {first.removeprefix(STORY_ERROR)}"
        yield from (first, *rest)


def heading(result: RunResult) -> Iterator[str]:
    """`head` of a run, and which of several partitions is shown."""
    yield from head(result.row)
    if result.shown:
        yield f"shown: partition {result.shown}"


def outcome(row: Mapping[str, Any]) -> str:
    """What happened, whether the scenario expects it, and whether Kafka promises to survive such faults."""
    happened = what_happened(row)
    if row["expected"] and row["verdict"] == "exhausted":
        return f"{happened}. Expected or not: undecided ({_promised(row)})"
    if not row["violations"]:
        return f"{happened}, {'as expected' if row['expected'] else 'NOT as expected'}. {_capital(_promised(row))}"
    if not row["expected"]:
        return f"{happened}. NOT expected here ({_promised(row)})"
    if row["violations_inside"]:
        return f"{happened}. Expected here: {_kafka(row)} has this bug ({_promised(row, 'it')})"
    if row["inside"]:
        return f"{happened}. Expected here: {_kafka(row)} makes no promise against this"
    return f"{happened}. Expected here: {_promised(row)}"


def what_happened(row: Mapping[str, Any]) -> str:
    """The verdict in words, with the kinds of violation."""
    if not row["violations"]:
        return VERDICTS[row["verdict"]]
    kinds = row["violations"].split(",")
    after = "" if row["verdict"] == "violation" else f"; {VERDICTS[row['verdict']]}"
    worst = next((text for kind, text in HAPPENED.items() if kind in kinds), "violation")
    return f"{worst} ({', '.join(kinds)}){after}"


def worst_kind(violations: Iterable[Mapping[str, Any]]) -> str:
    """The kind that the outcome names, which a story is about; empty without violations."""
    kinds = [violation["kind"] for violation in violations]
    return next((kind for kind in (*HAPPENED, *kinds) if kind in kinds), "")


def _kafka(row: Mapping[str, Any]) -> str:
    """The release that a run is about, or its mode where none has these rules."""
    mode = MODES.get(row["mode"])
    if mode is None or mode.release == NO_RELEASE or " --rule " in row["replay"]:
        return f"mode {row['mode']}"
    return f"Kafka {mode.release}"


def _promised(row: Mapping[str, Any], kafka: str = "") -> str:
    """What Kafka promises under the faults of a run; `kafka` stands for its release."""
    inside, kafka = row["violations_inside"], kafka or _kafka(row)
    has_ended_early = not row["violations"] or row.get("blow") or not row["error"].startswith(STORY_ERROR)
    if row["verdict"] == "error" and has_ended_early:
        return "inside or outside of the promise was not judged"
    if row["violations"] and inside and inside != row["violations"]:
        return f"{kafka} promises to prevent {inside.replace(',', ', ')}, and not the others"
    survives = bool(inside) if row["violations"] else row["inside"]
    if survives:
        return f"{kafka} promises to survive these faults"
    return f"{kafka} does not promise to survive these faults"


def _capital(text: str) -> str:
    """A sentence's beginning; the name of a mode stays as it is."""
    return f"{text[0].upper()}{text[1:]}"


def history(result: RunResult, past: Collection[int] | None = None, *, everything: bool = True) -> Iterator[str]:
    """All lines of ``history.txt``. Times are simulated seconds.

    Args:
        result: a traced run.
        past: indices of the steps that may have led to violations, which come first; None: all steps.
        everything: whether the other steps follow.
    """
    yield from heading(result)
    yield ""
    trace = list(enumerate(result.trace or ()))
    steps = [(step["t"], step_line(step)) for place, step in trace if past is None or place in past]
    others = [(step["t"], step_line(step)) for place, step in trace if past is not None and place not in past]
    early = [warning for warning in result.warnings if warning not in result.violations]
    marks = [(violation["at_us"], violation_line(violation)) for violation in result.violations]
    marks += [(warning["at_us"], violation_line(warning, "early warning")) for warning in early]
    yield from _timed(sorted([*steps, *marks], key=lambda line: line[0]))
    if others:
        yield ""
        where = ":" if everything else "; --all shows them here, and trace.jsonl has all"
        count = counted(len(others), "step is", "steps are")
        yield f"{count} about other records, or did not lead to it{where}"
        yield from _timed(others if everything else ())


def _timed(lines: Iterable[tuple[int, str]]) -> Iterator[str]:
    for at_us, text in lines:
        yield f"{at_us / 1_000_000:12.6f}  {text}"


def step_line(step: Mapping[str, Any]) -> str:
    """One step: broker, kind, and the step's own fields."""
    who = f"broker {step['broker']}" if step.get("broker") else ""
    return f"{who:<10} {step['step']:<12} {_fields(step)}".rstrip()


def _fields(step: Mapping[str, Any]) -> str:
    named = {_LABELS.get(name, name): value for name, value in step.items()}
    return pairs(named, (*_SHOWN_APART, "offset") if step["step"] in _WITHOUT_OFFSET else _SHOWN_APART)


def violation_line(violation: Mapping[str, Any], what: str = "VIOLATION") -> str:
    """One violation or early warning, marked to stand out."""
    promise = side_of_promise(violation["inside"])
    return f"*** {what} {violation['kind']} ({promise}): {violation['detail']}"


def batches(log: Iterable[tuple[int, int, int, int]]) -> str:
    """A log in one line: ``0-2@1 3@2`` holds offsets 0 to 2 of leader epoch 1, then 3 of leader epoch 2."""
    runs: list[tuple[int, int, int]] = []
    for base, last, epoch, _ in log:
        if runs and runs[-1][1:] == (base - 1, epoch):
            base = runs.pop()[0]
        runs.append((base, last, epoch))
    return " ".join(f"{base}@{epoch}" if base == last else f"{base}-{last}@{epoch}" for base, last, epoch in runs)
