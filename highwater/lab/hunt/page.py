"""The page of a hunt: what was done, found and confirmed, and how likely something new is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from highwater.lab.hunt import acting, estimate
from highwater.lab.hunt import state as states
from highwater.lab.hunt.examining import NO_PROGRESS
from highwater.lab.hunt.hunter import defects, new_causes
from highwater.lab.hunt.state import FINDING, REPAIRED
from reports.document.blocks import Commands, Document, Heading, Items, Table, Text
from reports.document.markdown import to_markdown
from reports.document.page import to_html
from reports.formatting import percent
from scenarios import plugged
from scenarios.format.findings import recognised
from scenarios.version import build
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from highwater.lab.hunt.hunter import Hunt
    from highwater.lab.hunt.state import FailureCause
    from reports.document.blocks import Block

CAUSES_SHOWN: Final = 40
"""Most new causes with a section of their own."""
SHORT_S: Final = 60.0
"""CPU seconds of a hunt below which the page gives no probability."""
NARROW: Final = 0.01
"""An interval that comes closer than this to both 0 and 1 says nothing."""
NOTHING_LOST: Final = "Nothing acknowledged is lost, but after all faults are over, "
UNKNOWN: Final = "a defect of Highwater, or a bug without a repair"
_TITLE: Final = "Hunt over Kafka "


def write(hunt: Hunt) -> None:
    """Write the page as Markdown and HTML."""
    document = Document(f"{_TITLE}{hunt.state.about['kafka']}", list(_blocks(hunt)), "Highwater hunt")
    states.write(hunt.folder, states.MARKDOWN, to_markdown(document))
    states.write(hunt.folder, states.HTML, to_html(document))


def answer(hunt: Hunt) -> list[str]:
    """The answer in a few sentences."""
    state = hunt.state
    new, ours = new_causes(state), defects(state)
    classes = [
        acting.judged(state.written[cause.finding], hunt.repeat, hunt.lacks)[0] for cause in new if cause.finding
    ]
    runs = sum(arm.runs for arm in state.arms.values())
    seen = [cause for cause in state.causes.values() if cause.known == FINDING and not cause.control]
    found = (
        f"{counted(len(new), 'new cause')} of violations inside the promise, and {counted(len(seen), 'known finding')}"
    )
    told = [f"{runs:,} random runs in mode {state.about['mode']} and in control arms: {found}."]
    if classes:
        there = (acting.CONFIRMED, acting.DIFFERS, acting.UNDECIDED, acting.NOT_EXPRESSIBLE, acting.NOT_TRIED)
        words = [f"{classes.count(name)} {name}" for name in there if name in classes]
        told.append(f"On real brokers: {', '.join(words)}.")
    if state.oracle:
        told += [_compared(one) for one in state.oracle if one["differ"] or one["problem"]] or [
            "The classes of the build answer as the mode does, as far as they were compared."
        ]
    if ours:
        told.append(f"Control arms show {counted(len(ours), 'cause')} that may be a defect of Highwater.")
    likely = _discovery(hunt)
    if likely is not None and _is_short(hunt, likely):
        told.append(f"How likely something new is in the next CPU hour cannot be said after {_cpu(hunt)}.")
    elif likely is not None:
        told.append(
            f"Probability of something new in the next CPU hour: {percent(likely.probability)} "
            f"({percent(likely.low)} to {percent(likely.high)})."
        )
    return told


def _discovery(hunt: Hunt) -> estimate.Discovery | None:
    counts = [cause.count for cause in hunt.state.causes.values() if not cause.control]
    return estimate.discovery(counts, hunt.state.times.get("cpu", 0.0) / 3600)


def _is_short(hunt: Hunt, found: estimate.Discovery) -> bool:
    """Whether the hunt was too short for a probability."""
    return hunt.state.times.get("cpu", 0.0) < SHORT_S or (found.low < NARROW and found.high > 1 - NARROW)


def _cpu(hunt: Hunt) -> str:
    return f"{hunt.state.times.get('cpu', 0.0):.0f} CPU s of hunting"


def _blocks(hunt: Hunt) -> Iterator[Block]:
    state = hunt.state
    yield Items(answer(hunt))
    if state.about["build"]:
        yield from _oracle(hunt)
    yield Heading("New")
    new = sorted(new_causes(state), key=lambda one: one.runs)
    if new:
        yield Table(
            ["finding", "cause", "failures", "first seen after", "CPU s each", "on real brokers"],
            [_new_row(hunt, cause) for cause in new],
        )
    else:
        yield Text("Nothing: every failure inside the promise is known.")
    for cause in [one for one in new if one.finding][:CAUSES_SHOWN]:
        yield from _section(hunt, cause)
    yield from _known(hunt)
    yield from _control(hunt)
    yield from _likely(hunt)
    yield from _done(hunt)


def _compared(one: Mapping[str, Any]) -> str:
    if one["problem"]:
        return f"{one['subject']}: not compared: {one['problem']}."
    if not one["differ"]:
        return f"{one['subject']}: none of {one['cases']:,} cases differs."
    told = f"{one['subject']}: {one['differ']:,} of {one['cases']:,} cases differ; the smallest: {one['smallest']}."
    return f"{told} {_explained(one['explained'])}"


def _explained(words: Sequence[str]) -> str:
    """What explains all answers of a build that differ."""
    if not words:
        return "No single rule explains them."
    repaired = [finding.name for finding in recognised().values() if "=".join(finding.repair) in words]
    told = f"As with rule {' or '.join(words)}"
    return f"{told}: the repair of {', '.join(repaired)}." if repaired else f"{told}."


def _oracle(hunt: Hunt) -> Iterator[Block]:
    yield Heading("The classes of the build beside the mode")
    if not hunt.subjects:
        yield Text("Not compared: the oracle is in the source tree, and not in the installed package.")
        return
    if len(hunt.state.oracle) < len(hunt.subjects):
        yield Text(f"{len(hunt.state.oracle)} of {len(hunt.subjects)} comparisons have been made.")
    yield Items([_compared(one) for one in hunt.state.oracle])
    details = [line for one in hunt.state.oracle for line in one["lines"]]
    if details:
        yield Text(
            "The smallest cases, one for each way of differing; Kafka is what the build answers, core is the mode:"
        )
        yield Commands(details)
    if hunt.rules:
        words = ", ".join(f"{name}={value}" for name, value in sorted(hunt.rules.items()))
        yield Text(f"The random runs follow the mode with {words}, as the build's classes do.")
    elif details:
        yield Text("No rule says what the build does, so the random runs follow the mode, and not the build.")


def _first(hunt: Hunt, cause: FailureCause) -> str:
    state = hunt.state
    key = next(key for key, one in state.causes.items() if one is cause)
    return f"{cause.runs:,} runs, {state.times.get(f'first {key}', 0.0):.0f} CPU s"


def _each(hunt: Hunt, cause: FailureCause) -> str:
    return f"{hunt.state.times.get('cpu', 0.0) / cause.count:.0f}"


def _new_row(hunt: Hunt, cause: FailureCause) -> tuple[object, ...]:
    if not cause.finding:
        return "", cause.name, cause.count, _first(hunt, cause), _each(hunt, cause), ""
    name, why = acting.judged(hunt.state.written[cause.finding], hunt.repeat, hunt.lacks)
    return cause.finding, cause.name, cause.count, _first(hunt, cause), _each(hunt, cause), f"{name}: {why}"


def _section(hunt: Hunt, cause: FailureCause) -> Iterator[Block]:
    one = hunt.state.written[cause.finding]
    folder = hunt.folder / states.FINDINGS / one.folder
    yield Heading(f"{cause.finding}: {cause.name}")
    struck = ", ".join(one.faults) or "no fault"
    cured = "Cured, each by itself, by " + ", ".join(one.cures) if one.cures else "No single repair cures it"
    if one.together:
        cured += f"; {' and '.join(one.together)} cure it together"
    where = ", ".join(f"{name} ({count:,})" for name, count in sorted(cause.arms.items()))
    yield Text(f"{one.kind}, after: {struck}. {cured}. Seen in: {where}.")
    if one.kind == NO_PROGRESS:
        yield Text(_what_never_completes(one.story))
    if one.earlier:
        yield Items([f"The script of another failure of this cause: {told}" for told in one.earlier])
    if one.story:
        yield Items(one.story)
    arm = hunt.arms[cause.arm]
    rules = [word for name, value in sorted(arm.rules.items()) for word in ("--rule", f"{name}={value}")]
    lines = [one.replay, plugged.command(["explain", "--plan", str(folder / states.PLAN)])]
    if one.script:
        lines.append(plugged.command(["confirm", str(folder / states.SCRIPT), "--kafka", hunt.kafka, *rules]))
    yield Commands([line for line in lines if line])


def _what_never_completes(story: Sequence[str]) -> str:
    """What never completes, by the end of the story."""
    end = story[-1] if story else ""
    what = next((words for words, text in _NEVER_COMPLETES.items() if text in end), "")
    return f"{NOTHING_LOST}{what or 'work of the partition, such as a reassignment or a write, never completes'}."


_NEVER_COMPLETES: Final = {
    "the partition never gets a leader": "no leader at the deadline",
    "no write with acks=all is acknowledged": "no acks=all write was acknowledged",
    "a reassignment never completes": "a reassignment adds",
    "the leader waits for an ISR change that never completes": "waits for an ISR change",
    "writes are never answered": "writes are not answered",
}
"""What never completes -> words of the violation, which ends the story."""


def _known(hunt: Hunt) -> Iterator[Block]:
    yield Heading("Known, counted only")
    found = [cause for cause in hunt.state.causes.values() if cause.known and not cause.control]
    if not found:
        yield Text("None was seen.")
        return
    rows = [
        (
            cause.name,
            {FINDING: "FINDINGS.md", REPAIRED: "a later release repairs it"}[cause.known],
            cause.count,
            _first(hunt, cause),
            _each(hunt, cause),
        )
        for cause in sorted(found, key=lambda cause: -cause.count)
    ]
    yield Table(["cause", "known from", "failures", "first seen after", "CPU s each"], rows)
    yield Text(
        "A finding is recognised by the repairs that cure a failure, each by itself, and by the faults that its story "
        "needs. The first failures that look alike are shrunk, then every second, fourth, eighth; others are counted "
        "with the last one of these."
    )
    if hidden := hunt.state.about["hidden"]:
        yield Text(f"Taken off the list of known findings: {', '.join(hidden)}.")


def _control(hunt: Hunt) -> Iterator[Block]:
    yield Heading("Control arms")
    found = [one for one in hunt.state.causes.values() if one.control]
    if found:
        rows = [
            (
                one.control.strip("()"),
                one.name,
                one.known or UNKNOWN,
                one.count,
            )
            for one in found
        ]
        yield Table(["control", "cause", "known", "failures"], rows)
        for cause in [one for one in found if one.finding][:CAUSES_SHOWN]:
            yield from _section(hunt, cause)
    else:
        yield Text("No control arm violated its promise: repaired modes, and runs without faults.")
    if hunt.state.errors:
        yield Text("Runs that ended with an error:")
        yield Commands([f"{where}  # {error}" for where, error in hunt.state.errors])


def _likely(hunt: Hunt) -> Iterator[Block]:
    yield Heading("How likely something new is")
    found = _discovery(hunt)
    if found is None:
        yield Text("There was no time to say.")
        return
    if _is_short(hunt, found):
        yield Text(f"Too short to tell: {_cpu(hunt)}.")
        return
    yield Text(
        f"Causes seen once: {found.once}, twice: {found.twice}, in {hunt.state.times['cpu'] / 3600:.2g} CPU hours. The "
        f"next CPU hour is expected to find {found.per_hour:.2g} causes that this hunt has not seen, 95 % interval "
        f"{found.low_per_hour:.2g} to {found.high_per_hour:.2g}; the probability of at least one is "
        f"{percent(found.probability)} ({percent(found.low)} to {percent(found.high)})."
    )
    yield Text(f"Estimator: {estimate.SOURCE}. Arms that find more are run more, so it holds for a hunt that goes on.")


def _done(hunt: Hunt) -> Iterator[Block]:
    yield Heading("What was done")
    state, times = hunt.state, hunt.state.times
    events = sum(arm.events for arm in state.arms.values())
    rows = [
        (
            name,
            f"{arm.runs:,}",
            percent(arm.events / events if events else None),
            arm.inside,
            arm.outside,
            arm.stalled,
            arm.errors,
        )
        for name, arm in sorted(state.arms.items(), key=lambda item: -item[1].events)
    ]
    yield Table(["arm", "runs", "of all events", "inside the promise", "outside it", "stalled", "errors"], rows)
    parts = [f"{name} {times[key]:.0f} s" for key, name in _PARTS.items() if key in times]
    yield Text(
        f"{times.get('wall', 0.0):.0f} s, of them {times.get('brokers wall', 0.0):.0f} s on brokers; "
        f"{times.get('cpu', 0.0):.0f} CPU s of hunting. CPU time: {', '.join(parts)}."
    )
    if hunt.left_out:
        yield Text(
            f"{counted(hunt.left_out, 'new cause')} waited for brokers when the time was over: runs on brokers take at "
            f"most half of the time, and the next one, of about {hunt.expected_s:.0f} s, did not fit. A longer "
            "--budget continues the hunt."
        )
    yield Text(" ".join((*_about(state.about), f"Code version {state.about['code']}, {build()}.")))


def _about(about: Mapping[str, Any]) -> Iterator[str]:
    """Sentences on what was asked for."""
    of_build = f", build {about['build']}" if about["build"] else ""
    scenarios = ", ".join(about.get("scenarios") or ()) or "all random scenarios"
    yield f"Kafka {about['kafka']}{of_build}: mode {about['mode']}, {scenarios}, seeds from {about['seed']:,}."
    yield "New causes are tried on brokers." if about["acts"] else "Nothing is tried on brokers (--confirm 0)."
    hidden = ", ".join(about["hidden"])
    yield f"Taken off the list of known findings: {hidden}." if hidden else "All known findings are recognised."


_PARTS: Final = {
    "oracle": "comparing classes",
    "sweep": "random runs",
    "look": "first looks at failures",
    "shrink": "shrinking",
    "brokers": "real brokers",
}
