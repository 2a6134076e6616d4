"""A mode reviewed against another one: what a KIP's author wants to know before the vote.

Scripted scenarios and Kafka's own cases run in both modes. Then all random scenarios that fit run on the same seeds in
both, as many as the time allows, and others in which brokers are upgraded from the base to the mode, and back, one
after the other.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.review import conformance
from highwater.lab.review.pace import Pace, PacedRun
from highwater.lab.review.result import Review, SeedCounts, StoryEnd, SweptScenario
from reports import starts
from reports.analysis import coverage_table, paired
from scenarios import own_files, paths, plugged
from scenarios.format import catalogue
from scenarios.format.cluster_checks import check_control_plane
from scenarios.shrinking.cause import later_values
from scenarios.single.ended_run import replay_line
from scenarios.single.rows import STORY_ERROR
from scenarios.single.run import run, run_row
from scenarios.sweep import local
from scenarios.sweep.driver import run_sweep
from scenarios.sweep.store import Store
from scenarios.sweep.units import Sweep
from sim.checkers.registry import FINDINGS
from sim.errors import InputError, did_you_mean
from sim.plurals import counted
from sim.protocol.decisions import to_values
from sim.protocol.modes import MODES, changed
from sim.protocol.probes import CHECK
from sim.protocol.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from scenarios.format.scenario import Scenario
    from sim.protocol.modes import Mode

ROLLING: Final = "rolling"
UPGRADE: Final = "-upgrade"
DOWNGRADE: Final = "-downgrade"
"""Ends of the names of scenarios in which brokers are upgraded, or downgraded."""
LATER: Final = "99"
"""Release of the mode to which a downgraded broker returns: brokers restart in a later one."""
FEW: Final = 8
"""A kind that the base never shows, and the mode on fewer seeds, is tried with other latencies."""
VARIANTS: Final = 24
"""Other latencies that are tried with the same faults."""
KNOWN: Final = 4
"""Seeds of the base on which a repair has to prevent a kind to be that of a cause which the base has."""
STALLED: Final = "stalled"


def review(
    mode: Mode,
    base: Mode,
    folder: Path,
    *,
    claim: str = "",
    claim_kind: str = "",
    budget_s: float = 600.0,
    seeds: int | None = None,
    processes: int = 1,
    scenarios: Sequence[str] = (),
    conforms: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> Review:
    """Review a mode against another.

    Args:
        mode: the mode.
        base: the mode that it is compared with.
        folder: gets the sweeps, and the scenarios of upgrades and downgrades.
        claim: what the author claims.
        claim_kind: the kind of violation or early warning that contradicts the claim.
        budget_s: time of the whole review.
        seeds: seeds of each random scenario; None: as many as the time allows.
        processes: number of worker processes.
        scenarios: only these random scenarios; empty: all that fit.
        conforms: whether Kafka's own cases are tried.
        tell: called with what is done next.

    Raises:
        InputError: see `check`.
    """
    pace = Pace(budget_s, processes)
    rules, fitting = check(mode, base, claim_kind, scenarios)
    found = Review(base, mode, claim, claim_kind, rules)
    tell("scripted scenarios")
    _run_stories(found)
    if conforms:
        tell("Kafka's own tests and recorded answers")
        found.conformance = conformance.changed(base, mode)
    else:
        found.conformance = "Kafka's own tests were not asked for"
    drawn = [PacedRun(scenario, (base, mode)) for scenario in fitting]

    def sweep(one: PacedRun, number: int, into: list[SweptScenario]) -> None:
        name = one.scenario.name
        tell(f"{name}, {counted(number, 'seed')}")
        begin_s = time.perf_counter()
        into.append(_sweep(found, folder / name, one, number, processes))
        pace.learn(one, number, time.perf_counter() - begin_s)

    if seeds is None:
        tell("a few seeds of each random scenario")
        differing = {(name, value) for name, _, value in rules}
        pace.try_out(drawn, differing)
        moves = list(_moves(found, folder, drawn))
        pace.try_out(moves, differing)
        ahead = pace.in_order([*drawn, *moves])
        while ahead:
            if pace.left_s <= 0 and found.swept:
                left = ", ".join(sorted(one.scenario.name for one in ahead))
                found.skipped.append(f"Not run, because the time was over: {left}.")
                break
            sweep(ahead[0], pace.seeds(ahead), found.moved if ahead[0] in moves else found.swept)
            del ahead[0]
    else:
        for one in drawn:
            sweep(one, seeds, found.swept)
            one.touched = found.swept[-1].touched / seeds
        for one in _moves(found, folder, drawn):
            sweep(one, seeds, found.moved)
    for results in (found.swept, found.moved):
        results.sort(key=lambda swept: swept.name)
    found.seconds = time.perf_counter() - pace.begin_s
    return found


def check(
    mode: Mode, base: Mode, claim_kind: str, scenarios: Sequence[str]
) -> tuple[list[tuple[str, str, str]], list[Scenario]]:
    """The rules that differ, with both values, and the random scenarios that run.

    Raises:
        InputError: the modes have the same rules, or another control plane; or there is no such kind or scenario.
    """
    mine, theirs = mode.rules.as_dict(), base.rules.as_dict()
    rules = [(name, theirs[name], mine[name]) for name in RULES if mine[name] != theirs[name]]
    if not rules:
        raise InputError(f"{mode.name} and {base.name} have the same rules: there is nothing to review")
    if mode.rules.control_plane != base.rules.control_plane:
        raise InputError(f"{mode.name} and {base.name} have different control planes: no scenario compares them")
    return rules, _drawn(base, scenarios, claim_kind)


def _drawn(base: Mode, chosen: Sequence[str], claim_kind: str) -> list[Scenario]:
    """The random scenarios that run; raises InputError if one of those chosen, or the kind, is not known."""
    if claim_kind and claim_kind not in FINDINGS:
        raise InputError(f"{claim_kind!r} is no kind of violation or warning{did_you_mean(claim_kind, FINDINGS)}")
    fitting = [scenario for scenario in _fitting(base) if scenario.faults is not None]
    names = [scenario.name for scenario in fitting]
    if wrong := next((name for name in chosen if name not in names), ""):
        if paths.is_path(wrong):
            raise InputError(
                f"--scenarios {wrong}: names of scenarios are needed, not files{did_you_mean(wrong, names)}"
            )
        raise InputError(f"{wrong} is no random scenario that {base.name} can run{did_you_mean(wrong, names)}")
    return [scenario for scenario in fitting if scenario.name in chosen or not chosen]


def _fitting(base: Mode) -> Iterator[Scenario]:
    for name in catalogue.names():
        scenario = catalogue.load(name)
        try:
            check_control_plane(scenario, [base])
        except InputError:
            continue
        yield scenario


def word(mode: Mode) -> str:
    """A mode as the command line takes it."""
    return mode.source or mode.name


def command(*words: str) -> str:
    """A command line, with the plug-ins that are loaded."""
    return plugged.command(words)


def _run_stories(found: Review) -> None:
    for scenario in _fitting(found.base):
        if scenario.drawn or scenario.broker_modes:
            continue
        found.story_count += 1
        rows = [run_row(scenario, mode, 0) for mode in (found.base, found.mode)]
        if [found.claim_kind in _kinds(row, *_ALL) for row in rows] == [False, True]:
            found.claim_stories.append(scenario.name)
        told = [_ending(row) for row in rows]
        if told[0] != told[1]:
            inside = [_kinds(row, "violations_inside") for row in rows]
            # In a run that lacks a step, what it violates counts; what it does not violate may be due to that.
            worse = bool(inside[1] - inside[0]) and all(map(_is_judged, rows))
            better = bool(inside[0] - inside[1]) and not rows[1]["error"]
            words = "show", scenario.name, "--mode", word(found.base), "--against", word(found.mode)
            shown = command(*words, "--output", f"{scenario.name}.html")
            stopped = rows[1]["error"].startswith(STORY_ERROR)
            gone = tuple(sorted(inside[0] - inside[1])) if stopped else ()
            unanswered = stopped and not rows[0]["error"] and _ANSWER.search(rows[1]["error"]) is not None
            end = StoryEnd(scenario.name, told[0], told[1], shown, worse, better, gone, stopped, unanswered)
            found.stories.append(end)


_ALL: Final = ("violations", "warnings")
_ANSWER: Final = re.compile(r"waited in vain for '(?:ack|read)\b")


def _kinds(row: dict[str, Any], *columns: str) -> set[str]:
    return {kind for column in columns for kind in filter(None, row[column].split(","))}


def _is_judged(row: dict[str, Any]) -> bool:
    """Whether a run came to its end, perhaps without all steps of its script or story."""
    return not row["error"] or str(row["error"]).startswith(STORY_ERROR)


def _ending(row: dict[str, Any]) -> str:
    """How a scripted run ends: what it violates, and the step that did not occur."""
    error = str(row["error"])
    if not _is_judged(row):
        return error
    inside = row["violations_inside"].split(",")
    kinds = [f"{kind} (inside)" if kind in inside else kind for kind in filter(None, row["violations"].split(","))]
    if error:
        return f"{', '.join(kinds) or 'no violation'}; {error}"
    return ", ".join(kinds) or str(row["verdict"])


def _moves(found: Review, folder: Path, drawn: Sequence[PacedRun]) -> Iterator[PacedRun]:
    """Scenarios in which brokers begin in one of the modes and restart in the other, and the modes to compare.

    Besides rolling restarts, the random scenario in which the rules have an effect most often.
    """
    base, mode = found.base, found.mode
    if MODES.get(base.name) != base or base.place >= mode.place:
        found.skipped.append(
            f"Upgrade and downgrade were not tried: {mode.name} does not come after {base.name}, or {base.name} is no "
            "mode that a scenario can name."
        )
        return
    older = mode.name if MODES.get(mode.name) == mode else ""
    if not older:
        try:
            older = changed(base, {name: value for name, _, value in found.rules}).name
        except InputError as error:
            found.skipped.append(f"Downgrade was not tried: {error}.")
    file = folder / "back.toml"
    text = f'schema = 1\nname = "back"\ntitle = "{base.name} again, after a downgrade"\nbase = "{base.name}"\n'
    own_files.write(file, f'{text}release = "{LATER}"\n', starts.REVIEWED)
    back = catalogue.mode(str(file))
    most = max(drawn, key=lambda one: one.touched, default=None)
    for name in {ROLLING: 0, **({most.scenario.name: 0} if most and most.touched else {})}:
        yield PacedRun(_written(folder, name, UPGRADE, base.name, base), (base, mode))
        if older:
            yield PacedRun(_written(folder, name, DOWNGRADE, older, base), (base, back))


def _written(folder: Path, name: str, end: str, older: str, base: Mode) -> Scenario:
    """A random scenario with brokers that begin in another mode, as a file."""
    lines = []
    for line in catalogue.text(name).splitlines():
        if line.startswith("[expect]"):
            lines += [line, f'"{base.name}" = "may-violate"', ""]
            break
        if line == f'name = "{name}"':
            lines.append(f'name = "{name}{end}"')
        elif not line.startswith("brokers.upgraded_from"):
            lines.append(line)
        if line.startswith("brokers.count"):
            lines.append(f'brokers.upgraded_from = ["{older}"]')
    file = folder / f"{name}{end}.toml"
    own_files.write(file, "\n".join(lines), starts.REVIEWED)
    return replace(catalogue.load(str(file)), source=str(file))


def _sweep(found: Review, folder: Path, one: PacedRun, number: int, processes: int) -> SweptScenario:
    scenario, modes = one.scenario, one.modes
    run_sweep(Sweep((scenario,), {scenario.name: modes}, 0, number), str(folder), local.LocalBackend(processes))
    stores = Store(str(folder)), Store(str(folder))
    (answer,) = paired.of_stores(stores, None, [mode.name for mode in modes])
    (pair,) = answer.comparison.pairs
    rows = _Rows(found, one, folder, stores[0])
    where = scenario.source or scenario.name
    # An earlier review may have run more seeds in this folder, and all of them count.
    seeds = f"0..{max(number, pair.n)}"
    sweep = ["sweep", where, "--modes", ",".join(map(word, modes)), "--seeds", seeds, "--output", str(folder)]
    return SweptScenario(
        scenario.name,
        answer,
        pair,
        {group.name: group for group in answer.comparison.groups},
        {name: rows.effects[name] for name, *_ in found.rules},
        rows.touched,
        rows.changed,
        {kind: rows.counts(kind, rows.inside) for kind in sorted({kind for of in rows.inside for kind in of})},
        rows.counts(STALLED, rows.verdicts),
        rows.counts(found.claim_kind, rows.all) if found.claim_kind else SeedCounts(),
        _checks(stores[0]),
        command(*sweep, "--local", str(processes)),
    )


def _checks(store: Store) -> dict[str, int]:
    """Checker, by its first kind -> runs in which it had something to decide."""
    groups = coverage_table.read(store).groups
    return {name: sum(runs.values()) for group in groups if group.name == CHECK for name, runs in group.probes.items()}


Seeds = tuple[dict[str, set[int]], dict[str, set[int]]]
"""Word -> seeds of the base with it; the same of the mode."""


class _Rows:
    """The rows of a sweep in two modes.

    Attributes:
        inside: kinds of violation inside the promise -> seeds; so for `all`, with early warnings, and `verdicts`.
        effects: differing rule -> runs of the base in which it would have acted differently.
        touched: runs of the base in which any would.
        changed: seeds on which both modes have different histories.
    """

    def __init__(self, found: Review, one: PacedRun, folder: Path, store: Store) -> None:
        self._one = one
        self._folder = folder
        self.inside: Seeds = {}, {}
        self.all: Seeds = {}, {}
        self.verdicts: Seeds = {}, {}
        self.effects = Counter[str]()
        self.touched = 0
        self._digests: dict[int, str] = {}
        base_digests: dict[int, str] = {}
        self._decided: dict[int, int] = {}
        self._differing = {name for name, *_ in found.rules}
        differing = {(name, value) for name, _, value in found.rules}
        columns = ["mode", "seed", "violations_inside", "violations", "warnings", "verdict", "decided", "digest"]
        for mode, seed, inside, outside, warnings, verdict, decided, digest in zip(
            *store.rows(columns).values(), strict=True
        ):
            place = int(mode != one.modes[0].name)
            for seeds, words in (
                (self.inside, inside),
                (self.all, f"{outside},{warnings}"),
                (self.verdicts, verdict),
            ):
                for kind in filter(None, words.split(",")):
                    seeds[place].setdefault(kind, set()).add(seed)
            if place:
                self._digests[seed] = digest
                continue
            base_digests[seed] = digest
            self._decided[seed] = int(decided, 16)
            asked = {name for name, _ in to_values(int(decided, 16)) & differing}
            self.effects.update(asked)
            self.touched += bool(asked)
        self.changed = sum(self._digests.get(seed) != digest for seed, digest in base_digests.items())

    def counts(self, kind: str, seeds: Seeds) -> SeedCounts:
        """The seeds with a word; the first that only the mode has is replayed."""
        base, mode = (of.get(kind, set()) for of in seeds)
        only = mode - base
        if not only:
            return SeedCounts(len(base & mode), len(base - mode))
        first = min(only)
        own = self._one.modes[1]
        replay = replay_line(self._one.scenario, own, first, {}, self._digests[first])
        explain = command("explain", str(self._folder), "--mode", own.name, "--seed", str(first))
        again = None
        if seeds is self.inside and not base and len(only) < FEW:
            again = self._again(kind, first)
        counts = SeedCounts(len(base & mode), len(base - mode), len(only), again, None, replay, explain)
        known = self._known(kind, base, only) if seeds is self.inside and base and counts.is_sure else None
        return replace(counts, known=known)

    def _known(self, kind: str, base: set[int], only: set[int]) -> tuple[str, int] | None:
        """The repair that prevents most (`SeedCounts.known`); None if none prevents the kind on all tried seeds of
        the base.
        """
        scenario, (before, mode) = self._one.scenario, self._one.modes

        def prevents(repair: tuple[str, str], of: Mode, seed: int) -> bool:
            row = run_row(scenario, of, seed, dict([repair]))
            return row["verdict"] not in ("error", "exhausted") and kind not in _kinds(row, "violations_inside")

        repairs = {repair for repair in later_values(before) if repair[0] not in self._differing}
        for seed in sorted(base)[:KNOWN]:
            asked = to_values(self._decided[seed])
            repairs = {repair for repair in repairs & asked if prevents(repair, before, seed)}
        prevented = {
            f"{name}={value}": sum(prevents((name, value), mode, seed) for seed in only)
            for name, value in sorted(repairs)
        }
        return max(prevented.items(), key=lambda one: one[1], default=None)

    def _again(self, kind: str, seed: int) -> tuple[int, int, int]:
        """In how many runs with other latencies, and the faults of a seed, either mode shows a kind."""
        from scenarios.single import recording  # Imports pydantic, which only this call needs.

        scenario, modes = self._one.scenario, self._one.modes
        recorded = recording.of_run(scenario, run(scenario, modes[1], seed)).scenario
        shown = [
            sum(kind in _kinds(run_row(recorded, mode, other), "violations_inside") for other in range(VARIANTS))
            for mode in modes
        ]
        return shown[0], shown[1], VARIANTS
