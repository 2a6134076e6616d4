"""What an experiment shows: a table of changes and releases, prices, recommendations, and the shortest loss."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final

from faults.kinds.groups import GROUPINGS
from highwater.lab.advise.experiment import (
    ACKS,
    ELR,
    FACTOR,
    FLUSH,
    MIN_ISR,
    PRESENT,
    UNCLEAN,
    Change,
    ExperimentOutcome,
    has_elr,
    has_lost,
)
from reports.analysis.statistics import CONFIDENCE, interval, mcnemar
from reports.drawing import explanation
from reports.drawing.observed_run import observe
from reports.formatting import percent
from scenarios.format import catalogue
from scenarios.format.findings import all_findings
from scenarios.properties import known, releases
from scenarios.shrinking.case import Case
from scenarios.shrinking.ddmin import ddmin
from scenarios.single import recording
from sim.config import KEYS
from sim.plurals import counted
from sim.protocol.modes import MODES, NO_RELEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from faults.kinds.injection import RealisedFault
    from highwater.lab.advise.experiment import Experiment, ExperimentCell
    from scenarios.format.findings import KnownFinding
    from scenarios.format.scenario import Scenario
    from sim.protocol.modes import Mode

FINDINGS: Final = "highwater/lab/confirm/FINDINGS.md"
LEVEL: Final = 1 - CONFIDENCE
TRIED: Final = 3
"""Losing runs that are made smaller."""


@dataclass(frozen=True, slots=True)
class ChangeEffect:
    """One change in one mode, against the present settings in the present mode, on the same seeds.

    Attributes:
        lost: runs that lost acknowledged records.
        low: lower end of the interval of their share.
        saved: runs that only the present settings lose.
        cost: runs that only the changed ones lose.
        p: of a split as uneven as that of `saved` and `cost`, if the change made no difference.
        leaderless: share of the time without a leader that accepts writes.
        refused: batches with acks=all that a too small ISR refused at least once, per acknowledged batch.
    """

    change: str
    mode: str
    release: str
    lost: int
    runs: int
    low: float
    high: float
    saved: int
    cost: int
    p: float
    leaderless: float
    refused: float

    @property
    def name(self) -> str:
        """The single change: of a setting, or of the release."""
        return f"Kafka {self.release} (mode {self.mode})" if self.change == PRESENT else self.change

    def is_shown(self, comparisons: int) -> bool:
        """Whether the difference is shown, as one of so many comparisons (Bonferroni)."""
        return self.p * comparisons < LEVEL

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def findings(outcome: ExperimentOutcome) -> list[ChangeEffect]:
    """One for each change in each mode, the present ones first."""
    experiment = outcome.experiment
    now = outcome.cell(experiment.changes[0], experiment.modes[0])
    return [_finding(outcome, change, mode, now.lost) for change in experiment.changes for mode in experiment.modes]


@dataclass(frozen=True, slots=True)
class Row:
    """A change in releases that agree: `found` is that of the first of them."""

    change: Change
    releases: str
    found: ChangeEffect


def rows(outcome: ExperimentOutcome, agree: Callable[[ExperimentCell], object]) -> list[Row]:
    """A row for each change and the releases in which `agree` says the same of its runs."""
    experiment = outcome.experiment
    found = {(finding.change, finding.mode): finding for finding in findings(outcome)}
    told = []
    for change in experiment.changes:
        groups: dict[str, list[Mode]] = {}
        for mode in experiment.modes:
            groups.setdefault(repr(agree(outcome.cell(change, mode))), []).append(mode)
        told += [
            Row(change, _releases(group, experiment.modes), found[change.name, group[0].name])
            for group in groups.values()
        ]
    return told


def _releases(group: Sequence[Mode], modes: Sequence[Mode]) -> str:
    """Releases by their first two numbers, in few characters."""
    names = [".".join(mode.release.split(".")[:2]) for mode in group]
    first = modes.index(group[0])
    if len(group) > 2 and [*group] == [*modes[first : first + len(group)]]:
        return f"{names[0]} to {names[-1]}"
    return ", ".join(names)


def _finding(outcome: ExperimentOutcome, change: Change, mode: Mode, now: list[bool]) -> ChangeEffect:
    cell = outcome.cell(change, mode)
    pairs = list(zip(now, cell.lost, strict=True))
    saved = sum(before and not after for before, after in pairs)
    cost = sum(after and not before for before, after in pairs)
    lost, runs = sum(cell.lost), len(cell.lost)
    low, high = interval(lost, runs)
    return ChangeEffect(
        change.name,
        mode.name,
        mode.release,
        lost,
        runs,
        low,
        high,
        saved,
        cost,
        mcnemar(saved, cost),
        cell.leaderless_ms / max(cell.window_ms, 1),
        cell.refused / max(cell.acked, 1),
    )


def price(outcome: ExperimentOutcome, change: Change) -> str:
    """What a change costs that no rate of losses shows; empty for the present settings."""
    if change.racks:
        return "a further rack with its power supply, and replication between racks"
    now = outcome.experiment.scenario.config
    for key, value in change.settings.items():
        if key == FLUSH and value == 1:
            return (
                "an fsync for each batch at each replica before it is fetched or acknowledged; the simulation does not "
                "let it take time: expect some ms a batch, and the throughput of the disk's fsyncs"
            )
        if key == FLUSH:
            return "saves the fsyncs; data is durable once the kernel writes it back, after up to 35 s"
        if key == MIN_ISR:
            return _min_isr_price(int(value), int(now.get(FACTOR, 1)))
        if key == ELR and not value:
            return "saves waits for a member of the ELR to return, where the ISR is too small"
        if key == ELR:
            return "nothing while the ISR is large enough; then a partition may wait for a member of the ELR to return"
        if key == FACTOR:
            return "disk and network for another replica"
        if key == UNCLEAN:
            return (
                "the partition leads again sooner, with a replica that may lack records"
                if value
                else ("the partition waits for a replica that has everything")
            )
        if key == ACKS:
            return "no wait for followers" if value != "all" else "each write waits for the ISR"
    return ""


def _min_isr_price(size: int, factor: int) -> str:
    """Until when writes with acks=all succeed."""
    if size == 1:
        return "saves refused writes: with acks=all they succeed as long as there is a leader, which may be alone"
    out = factor - size + 1
    return f"writes with acks=all fail while {'any' if out == 1 else counted(out, 'replica')} of {factor} " + (
        "replicas is outside the ISR" if out == 1 else "or more are outside the ISR"
    )


def _is_elr_on(experiment: Experiment) -> bool:
    return bool(experiment.scenario.config.get(ELR, KEYS[ELR].default))


def _release(mode: Mode, experiment: Experiment) -> str:
    """A newer release in words: the last one of its line that the mode models, with the feature that it needs for what
    it saves.
    """
    elr = _is_elr_on(experiment) and has_elr(mode) and not has_elr(experiment.modes[0])
    feature = f", with the feature {ELR}=1, which an upgrade does not turn on (kafka-features.sh)" if elr else ""
    last = known.last_of(known.minor(mode.release))
    if last == mode.release or releases.find(last, mode.rules.control_plane).mode is not mode:
        return f"Run Kafka {mode.release} (mode {mode.name}{feature})"
    return f"Run Kafka {last} (simulated as {mode.release}, mode {mode.name}{feature})"


def shown_with_elr(mode: Mode) -> int:
    """How many of the findings that FINDINGS.md lists concern a release with ELR: it lies between the oldest and the
    newest release that show them, in a simulation or, as their scenarios say, on brokers.
    """
    own = known.place_of(mode.release)
    numbered = [finding for finding in all_findings().values() if finding.table.number is not None]
    return sum(min(places) <= own <= max(places) for places in map(_places, numbered))


def _places(finding: KnownFinding) -> list[int]:
    """The places among minor releases of those that show a finding."""
    modes = [MODES[name] for name, expected in finding.expect.items() if expected.startswith("violates")]
    confirm = catalogue.load(finding.name).confirm
    on_brokers = () if confirm is None else confirm.shown_on
    return [
        *(known.place_of(mode.release) for mode in modes if mode.release != NO_RELEASE),
        *map(known.place_of, on_brokers),
    ]


def _known_losses(mode: Mode, experiment: Experiment) -> str:
    """What to read before a newer release is installed."""
    if not (_is_elr_on(experiment) and has_elr(mode)):
        return f"First read {FINDINGS}: how each release can lose records"
    minor = known.minor(mode.release)
    return f"First read {FINDINGS}: {counted(shown_with_elr(mode), 'finding')} of Kafka {minor} with ELR"


def advised(outcome: ExperimentOutcome) -> list[tuple[ChangeEffect, Change, Mode]]:
    """Single settings and releases that are shown to save runs, the best first."""
    changes = {change.name: change for change in outcome.experiment.changes}
    modes = {mode.name: mode for mode in outcome.experiment.modes}
    helping = sorted(
        (finding for finding in _shown(findings(outcome)) if finding.saved > finding.cost),
        key=lambda finding: (finding.cost - finding.saved, finding.lost),
    )
    return [(finding, changes[finding.change], modes[finding.mode]) for finding in helping]


def _best_of_two(outcome: ExperimentOutcome) -> list[tuple[ChangeEffect, Change, Mode]]:
    """The best change of a setting with a newer release, if it is shown to save more runs than all single changes do
    that are advised; without flushes of each batch, which save most anyway and cost most.
    """
    now, *others = findings(outcome)
    both = [
        finding
        for finding in others
        if finding.mode != now.mode and finding.change != PRESENT and finding.is_shown(len(others))
    ]
    changes = {change.name: change for change in outcome.experiment.changes if FLUSH not in change.settings}
    modes = {mode.name: mode for mode in outcome.experiment.modes}
    best = min((one for one in both if one.change in changes), key=lambda one: one.lost, default=now)
    single = [one.lost for one, change, _ in advised(outcome) if FLUSH not in change.settings]
    return [(best, changes[best.change], modes[best.mode])] if best.lost < min(single, default=now.lost) else []


def _shown(found: list[ChangeEffect]) -> list[ChangeEffect]:
    """The single changes and releases that are shown to make a difference."""
    now = found[0]
    single = [finding for finding in found[1:] if (finding.change == PRESENT) != (finding.mode == now.mode)]
    return [finding for finding in single if finding.is_shown(len(single))]


def recommendations(outcome: ExperimentOutcome) -> list[str]:
    """Sentences: what is advised, with its price; or that nothing is; and what is not to be set."""
    found = findings(outcome)
    now, release = found[0], outcome.experiment.modes[0].release
    lines = []
    for finding, change, mode in [*advised(outcome), *_best_of_two(outcome)]:
        what = change.advised if finding.mode == now.mode else _release(mode, outcome.experiment)
        if finding.mode != now.mode and finding.change != PRESENT:
            what = f"{what}, and {change.advised[0].lower()}{change.advised[1:]}"
        costs = price(outcome, change)
        lines.append(
            f"{what}: {percent(finding.lost / finding.runs)} of the runs lose records instead of "
            f"{percent(now.lost / now.runs)} (only before: {finding.saved}, only after: {finding.cost}, "
            f"p {finding.p:.2g}){f'. Price: {costs}' if costs else ''}"
            + ("" if finding.mode == now.mode else f". {_known_losses(mode, outcome.experiment)}")
        )
    if not now.lost:
        lines.append(
            f"The present settings lose nothing in {now.runs} runs with Kafka {release}: at most "
            f"{percent(now.high)} of such runs do (95 %)"
        )
    elif not lines:
        lines.append("No single setting and no release is shown to help; more --seeds may decide")
    lines += [
        f"Do not set {finding.change}: more runs lose records (p {finding.p:.2g})"
        for finding in _shown(found)
        if finding.cost > finding.saved and finding.mode == now.mode
    ]
    return lines


@dataclass(frozen=True, slots=True)
class Loss:
    """The shortest loss found: its seed, size and story, and the run as a file for ``run --plan``.

    Attributes:
        is_whole: whether the time sufficed to try each fault and batch.
        brokers: number of brokers that the faults struck; one fault may strike several.
    """

    seed: int
    faults: int
    batches: int
    story: tuple[str, ...]
    plan: str
    is_whole: bool = True
    brokers: int = 0

    @property
    def size(self) -> tuple[int, int]:
        """Fewer faults count before fewer batches."""
        return self.faults, self.batches


def unsaving(outcome: ExperimentOutcome, loss: Loss) -> str:
    """Changes and newer releases that save other losses, but not the seed of this one; empty if there are none."""
    experiment = outcome.experiment
    now = experiment.modes[0]
    names = [
        finding.name
        for finding in findings(outcome)[1:]
        if (finding.change == PRESENT) != (finding.mode == now.name)
        and finding.saved
        and outcome.cells[finding.change, finding.mode].lost[loss.seed]
    ]
    if not names:
        return ""
    return f"These changes save other seeds, but not this one: {'; '.join(names)}"


def shortest_loss(outcome: ExperimentOutcome, until_s: float = inf) -> Loss | None:
    """Take faults and batches away from the losing runs with the fewest faults, under the present settings, until none
    is left without which the run still loses records, or the time is over; None if no run loses any.

    Args:
        outcome: the losing runs.
        until_s: when the time is over (`time.monotonic`).
    """
    experiment = outcome.experiment
    found: list[Loss] = []
    for _, seed in sorted(outcome.losing)[:TRIED]:
        if not found or time.monotonic() < until_s:
            found.append(_smallest(experiment.scenario, experiment.modes[0], seed, until_s))
    return min(found, key=lambda loss: loss.size, default=None)


def _smallest(scenario: Scenario, mode: Mode, seed: int, until_s: float) -> Loss:
    """The cluster and its settings stay as they are, here and when ``highwater explain`` shrinks the loss further."""
    drawn = Case(scenario, mode, seed, {})
    case = Case(recording.of_run(scenario, drawn.run()).scenario, mode, seed, {}).keeping_cluster()

    def loses(smaller: Case) -> bool:
        return time.monotonic() < until_s and has_lost(smaller.row())

    case = case.with_faults(ddmin(case.faults, lambda faults: loses(case.with_faults(faults))))
    fewer = case
    case = case.with_sends(ddmin(case.sends, lambda sends: loses(fewer.with_sends(sends))))
    is_whole = time.monotonic() < until_s
    observed = observe(case.scenario, case.mode, case.seed, case.rules, trace=True)
    kinds = observed.result.row["violations"].split(",")
    kind = "committed-loss" if "committed-loss" in kinds else kinds[0]
    story = explanation.told(observed, kind) if kind else []
    plan = recording.to_text(recording.to_json(case.scenario, observed.result))
    lines = tuple(f"{sentence.at_us / 1_000_000:.3f} s  {sentence.text}" for sentence in story)
    brokers = len(_struck(case.scenario, observed.result.struck))
    return Loss(seed, len(case.faults), len(case.sends), lines, plan, is_whole, brokers)


def _struck(scenario: Scenario, realised: Iterable[RealisedFault]) -> set[int]:
    """The brokers that faults struck, each with its group if a fault strikes a rack, a host or a power domain."""
    found: set[int] = set()
    for fault in realised:
        grouping = GROUPINGS.get(fault.kind)
        named = {} if grouping is None or scenario.topology is None else getattr(scenario.topology, grouping)
        for target in fault.targets if fault.effective else ():
            found.update(next((group for group in named.values() if target in group), (target,)))
    return found & set(range(1, scenario.brokers + 1))
