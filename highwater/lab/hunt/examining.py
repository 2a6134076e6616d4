"""One failure of a hunt: what cures it, whether it is known, and the smallest run that fails in the same way.

A first look runs a failure's plan with the repairs of known findings, then with all repairs. What it looks like then
decides whether it is shrunk: the first few failures that look alike are, later only every second, fourth, eighth one.
All functions here are functions of scenario, mode and seed.

A repair may cure one run by chance, because it moves a message. So a shrunk run is repeated with other latencies, and
only repairs count that cure it each time it fails. If no rule value cures it, pairs of them are tried: with one known
bug repaired, another one may make the same run fail.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from highwater.lab.hunt import scripts
from highwater.lab.hunt.state import FINDING, REPAIRED
from highwater.lab.zoo import findings
from reports.drawing.explanation import told
from reports.drawing.observed_run import observe
from reports.evidence import triage
from reports.formatting import moment
from scenarios.format.findings import recognised
from scenarios.shrinking.criterion import Criterion, OutOfTimeError, Symptom, Trials
from scenarios.shrinking.known_bugs import known as known_bug
from scenarios.shrinking.pairs import pairs
from scenarios.shrinking.script_export import NotScriptedError, to_toml
from scenarios.shrinking.shrink import shrink
from scenarios.single.ended_run import replay_line
from sim.errors import InputError
from sim.protocol.modes import MODES, NO_RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from highwater.lab.hunt.arms import Arm
    from scenarios.format.findings import KnownFinding
    from scenarios.shrinking.case import Case
    from scenarios.shrinking.cause import Repair
    from scenarios.shrinking.shrink import ShrunkCase
    from scenarios.single.result import RunResult
    from scenarios.single.rows import Row
    from sim.protocol.modes import Mode

VARIANTS: Final = 8
"""Other latencies with which a shrunk run is repeated."""
ENOUGH: Final = 2
"""If it fails with fewer of them, they say nothing of its cure."""
SENTENCES: Final = 12
NO_PROGRESS: Final = "no-progress"
FIRST: Final = 3
"""So many failures that look alike are shrunk, then the fourth, the eighth and so on."""
OTHER: Final = "other causes"
WIDE: Final = ("isr_floor",)
"""Rules that prevent much besides one bug: they name a cause only where no other rule cures it."""
GROUPS: Final = {"committed-loss": "loss", "exposed-loss": "loss", "global-loss": "loss"}
"""Kinds of violation that are one kind of failure."""


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What a failure looks like before it is shrunk.

    Attributes:
        known: the known finding that it shows; empty: none.
        looks: equal for failures that probably have one cause.
        problem: why it could not be examined.
    """

    known: str = ""
    looks: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ShrunkFailure:
    """A failure that was shrunk.

    Attributes:
        key: of its cause.
        name: of its cause, for readers.
        known: see `highwater.lab.hunt.state.Cause`.
        cures: repairs that cure it, also with other latencies.
        together: two rule values that cure it only together; empty, or two.
        faults: kinds of its faults, in order of time.
        story: its story, a sentence each.
        replay: the command that runs the failed seed.
        plan: the shrunk run as a file, for ``highwater explain --plan``.
        script: the script for real brokers; empty: there is none, for the reason in `obstacle`.
        problem: why it could not be shrunk.
    """

    key: str
    name: str
    known: str
    cures: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    story: tuple[str, ...] = ()
    replay: str = ""
    plan: str = ""
    script: str = ""
    obstacle: str = ""
    problem: str = ""


def group(kind: str) -> str:
    """The kind of failure that a kind of violation is."""
    return GROUPS.get(kind, kind)


def kind_of(row: Row) -> str:
    """The violation inside the promise by which a run is examined; empty: it has none."""
    return str(row["violations_inside"]).split(",")[0]


def is_shrunk(number: int) -> bool:
    """Whether the failure of this number, of those that look alike, is shrunk."""
    return number <= FIRST or number & (number - 1) == 0


def look(arm: Arm, seed: int, kind: str, known: Sequence[KnownFinding]) -> FirstLook:
    """Examine a failure without shrinking it."""
    kept, trials = Symptom(kind, inside=True), Trials()
    try:
        case, result = _failed(arm, seed, kept)
    except InputError as error:
        return FirstLook(problem=error.problems[0])
    struck = [fault["kind"] for fault in result.faults if fault["effective"]]
    name = findings.recognise(known, case, kept, struck, trials)
    if name:
        return FirstLook(name, f"{group(kind)}: {name}")
    cause = Criterion(trials, case, kept).cause
    best = min(cause, key=lambda repair: (triage.rank(repair), repair), default=None)
    return FirstLook(looks=f"{group(kind)}: {best or 'no single repair'}")


def _failed(arm: Arm, seed: int, kept: Symptom) -> tuple[Case, RunResult]:
    from scenarios.shrinking.case import Case

    case = triage.recorded(Case(arm.scenario, arm.mode, seed, arm.rules), kept)
    return case, case.run()


def shrink_failure(
    arm: Arm, seed: int, kind: str, first: FirstLook, known: Sequence[KnownFinding], *, acts: bool
) -> ShrunkFailure:
    """Shrink a failure, and find out what causes it; `acts`: whether a script for real brokers is needed."""
    kept = Symptom(kind, inside=True)
    trials = Trials(lambda: trials.runs >= triage.SHRINK_RUNS)
    case, failed = _failed(arm, seed, kept)
    replay = replay_line(arm.scenario, arm.mode, seed, arm.rules, failed.row["digest"])
    try:
        found = shrink(case, kept, trials)
    except OutOfTimeError:
        return ShrunkFailure(f"{group(kind)}: {OTHER}", f"{group(kind)}, too long to shrink", "", replay=replay)
    faults = tuple(fault.kind for fault in sorted(found.case.faults, key=lambda fault: fault.at_us))
    more = Trials()
    cures = lasting(found, more)
    rules = [repair for repair in cures if repair.is_rule]
    name = first.known
    if name and findings.lacks_needed(name, faults):
        name = ""
    if not first.known:
        name = findings.recognise(known, found.case, kept, faults, more)
    together: tuple[Repair, ...] = ()
    if not name and not rules:
        together, name = _pair(known, found.case, kept, faults, more)
    observed = observe(found.case.scenario, found.case.mode, found.case.seed, found.case.rules, trace=True)
    story = [f"{moment(sentence.at_us)}: {sentence.text}" for sentence in told(observed, kind, SENTENCES)]
    script, obstacle = script_of(found) if acts and not name else ("", "")
    result = ShrunkFailure(
        f"{group(kind)}: {name}",
        name,
        FINDING,
        tuple(map(str, cures)),
        tuple(map(str, together)),
        faults,
        tuple(story),
        replay,
        _plan(found),
        script,
        obstacle,
    )
    if name:
        return result
    key, name, known_as = _named(group(kind), arm.mode, rules, cures, faults, together)
    if first.known:
        key, name = f"{key}; another story than {first.known}", f"{name}; cured as {first.known}, by another story"
    return replace(result, key=key, name=name, known=known_as)


def _pair(
    known: Sequence[KnownFinding], case: Case, symptom: Symptom, faults: Sequence[str], trials: Trials
) -> tuple[tuple[Repair, ...], str]:
    """Two rule values that cure a run only together, and the two known findings, of which each is left when the repair
    of the other is applied; a pair without a known finding, and no name; or nothing.
    """
    best: tuple[Repair, ...] = ()
    for pair in pairs(case, symptom, trials):
        left = {findings.recognise(known, repair.apply(case), symptom, faults, trials) for repair in pair}
        if len(left) == len(pair) and "" not in left:
            return pair, " and ".join(sorted(left))
        if not best or any(repair.name in WIDE for repair in best):
            best = pair
    return best, ""


def _named(
    kind: str,
    mode: Mode,
    rules: Sequence[Repair],
    cures: Sequence[Repair],
    faults: Iterable[str],
    together: Sequence[Repair] = (),
) -> tuple[str, str, str]:
    """Key and name of a cause that is no finding, and how it is known."""
    rules = [rule for rule in rules if rule.name not in WIDE] or rules
    for repair in sorted(rules, key=lambda repair: (triage.rank(repair), repair)):
        bug = known_bug(repair.name, str(repair.value))
        if bug is not None:
            return f"{kind}: {repair}", f"{bug.name} ({bug.ticket})", REPAIRED
        if release := _repaired_in(repair, mode):
            return f"{kind}: {repair}", f"{kind}, cured by {repair}, as of {release}", REPAIRED
    if together and not rules:
        words = " with ".join(map(str, together))
        return f"{kind}: by {words}", f"{kind}, cured only by {words}", ""
    if cures:
        words = " and ".join(f"by {rule}" for rule in rules or cures)
        return f"{kind}: {words}", f"{kind}, cured {words}", ""
    struck = ", ".join(sorted(set(faults))) or "no fault"
    return f"{kind}: after {struck}", f"{kind}, cured by no single repair, after {struck}", ""


def _repaired_in(repair: Repair, mode: Mode) -> str:
    """The first later release that has a repair; empty: none has, or it is that of a finding."""
    if any(finding.repair == (repair.name, repair.value) for finding in recognised().values()):
        return ""
    later = [one for one in MODES.values() if one.release != NO_RELEASE and one.place > mode.place]
    with_it = [one for one in later if one.rules.as_dict()[repair.name] == repair.value]
    return min(with_it, key=lambda one: one.place).release if with_it else ""


def lasting(found: ShrunkCase, trials: Trials) -> tuple[Repair, ...]:
    """The repairs of a shrunk run's cause that cure it also with other latencies, each time that it fails with them."""
    failing = []
    for number in range(1, VARIANTS + 1):
        variant = replace(found.case, seed=found.case.seed + number)
        if found.symptom.shown_by(trials.row(variant)):
            failing.append(variant)
    if len(failing) < ENOUGH:
        return found.cause
    return tuple(
        repair
        for repair in found.cause
        if all(found.symptom.cured_in(trials.row(repair.apply(variant))) for variant in failing)
    )


def script_of(found: ShrunkCase) -> tuple[str, str]:
    """The script of a shrunk run, of which lines wait for steps; or an empty text and the reason."""
    # A script has the mode of a release; the rules of a build are laid over it when it is acted out.
    case = replace(found.case, mode=found.case.mode.override(found.case.rules), rules={})
    try:
        text = to_toml(scripts.expressible(case, found.symptom, found.cause), found.symptom)
    except NotScriptedError as error:
        return "", str(error)
    try:
        return scripts.by_steps(text, case.mode), ""
    except ValueError as error:
        return "", f"as a script that waits for steps it ends with {error}"
    except InputError as error:
        return "", error.problems[0]


def _plan(found: ShrunkCase) -> str:
    from scenarios.single import recording  # Imports pydantic.

    return recording.to_text(recording.to_json(found.case.scenario, found.case.run()))
