"""A run's trace as text: one line per step, with faults and violations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reports.formatting import pairs, side_of_promise
from scenarios.single.rows import STORY_ERROR
from sim.history.steps import STEPS
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from scenarios.single.result import RunResult

_SHOWN_APART: Final = ("t", "step", "broker")
_LABELS: Final = {"lost": "lost_record_ids"}
"""Names of fields in step lines that differ from the trace's: ``lost=0`` would read as "nothing lost"."""
_WITHOUT_OFFSET: Final = {step for step, meaning in STEPS.items() if "offset" not in meaning}


def head(row: Mapping[str, Any]) -> Iterator[str]:
    """Lines that name the run and its outcome."""
    after = f", blow {row['blow']}" if row.get("blow") else ""
    yield f"{row['scenario']}, mode {row['mode']}, seed {row['seed']}{after}: {outcome(row)}"
    yield f"digest {row['digest']}, {row['events']} events, {row['sim_us'] / 1_000_000:.3f} s of simulated time"
    if row["error"]:
        yield from row["error"].splitlines()


def heading(result: RunResult) -> Iterator[str]:
    """`head` of a run, and which of several partitions is shown."""
    yield from head(result.row)
    if result.shown:
        yield f"shown: partition {result.shown}; violations of others are listed with their names"


def outcome(row: Mapping[str, Any]) -> str:
    """The verdict in words."""
    words = [row["verdict"]]
    if row["violations"]:
        words.append(f"({row['violations'].replace(',', ', ')})")
    agrees = "as expected" if row["expected"] else "not as expected"
    if row["expected"] and row["verdict"] == "exhausted":
        agrees = "undecided"
    return f"{' '.join(words)}, {agrees}; {_promise(row)}"


def _promise(row: Mapping[str, Any]) -> str:
    """Which violations are inside the promise; without any, whether the faults were."""
    inside = row["violations_inside"]
    if row["verdict"] == "error" and (row.get("blow") or not row["error"].startswith(STORY_ERROR)):
        return "not judged by the mode's promise"
    if not row["violations"]:
        return f"faults {'inside' if row['inside'] else 'outside'} the mode's promise"
    if inside in ("", row["violations"]):
        return f"{'inside' if inside else 'outside'} the mode's promise"
    return f"inside the mode's promise: {inside.replace(',', ', ')}"


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
