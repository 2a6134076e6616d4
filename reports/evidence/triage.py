"""Failures of a sweep, grouped into buckets by cause.

The repair that cures a failure by itself (`scenarios.shrinking.cause`) identifies its bug; the random faults do not.
Some repairs cure by chance, because they move a message, so sets of repairs hardly ever agree. A bucket is therefore
named by the one repair that cures most of the failures not yet in a bucket: rules that repair a known bug first, then
other rules, then settings. The smallest seed of each bucket is shrunk, for up to `SHRUNK` buckets, and its remaining
faults are the bucket's signature.

Failures are examined in an order that depends only on the failures, and up to a maximum number, so the result is the
same on any machine with any number of processes. A time limit decides only how many are examined and shrunk. Kinds of
violation take turns, so that a sample has equal parts of each; shares are those of all failures, whatever part of each
kind was examined.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from reports.formatting import LEAST, percent, share
from scenarios import plugged
from scenarios.campaign.runner import LocalRunner
from scenarios.format import findings
from scenarios.format.blow import parse
from scenarios.format.grid import words as point_words
from scenarios.shrinking.advice import advice
from scenarios.shrinking.case import Case
from scenarios.shrinking.cause import Repair
from scenarios.shrinking.criterion import Criterion, OutOfTimeError, Symptom, Trials, has_effect, symptom
from scenarios.shrinking.kafka_code import in_kafka
from scenarios.shrinking.known_bugs import known
from scenarios.shrinking.shrink import shrink
from scenarios.single import recording
from scenarios.sweep.error_groups import of_store
from sim.errors import InputError, did_you_mean
from sim.plurals import counted
from sim.protocol.rules import RULES, unmet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from scenarios.sweep.store import Store
    from sim.protocol.modes import Mode

TRIAGE_VERSION: Final = 1
_SIDES: Final = (True, False)
"""Inside the promise, outside."""
MOST: Final = 200
"""Failures to examine by default."""
LIMIT_S: Final = 120
"""Seconds that triage for a report takes by default."""
LOOKING: Final = 0.5
"""The part of them in which failures are examined; in the rest, the smallest seeds are shrunk."""
SHRUNK: Final = 40
"""Buckets whose smallest seed is shrunk, inside the promise first, then by size; in most sweeps all."""
DOCUMENTED: Final = "documented in FINDINGS.md"
"""The bug of a bucket whose ticket is scenarios that show a finding."""
BATCH: Final = 10_000
"""Rows that are dictionaries at a time."""
SHRINK_RUNS: Final = 400
"""Maximum number of runs to shrink one seed: a count, since times differ from machine to machine."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A run of a sweep that violated something.

    Attributes:
        point: the settings that varied, as command line options.
        kind: the violation examined: the first inside the promise, otherwise the first.
        inside: whether that is inside the promise.
        replay: the command that replays the run.
        blow: the blows with which it continues; empty in the run of a seed.
    """

    scenario: str
    mode: str
    seed: int
    point: str
    kind: str
    inside: bool
    replay: str
    blow: str = ""


@dataclass(frozen=True, slots=True)
class ExaminedFailure:
    """A failure and the repairs that each cure it; or why they are not known; or that FINDINGS.md documents it."""

    failure: Failure
    cures: tuple[Repair, ...] = ()
    problem: str = ""
    documented: bool = False


@dataclass(frozen=True, slots=True)
class ShrunkSize:
    """The smallest seed of a bucket, shrunk: kinds of its remaining faults, in order of time, and its batches."""

    faults: tuple[str, ...]
    batches: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Bucket:
    """Failures of one cause, all of one scenario, mode, kind of violation and side of the promise.

    Attributes:
        repair: the repair that cures them all; None if no single repair does.
        others: other repairs that cure them all.
        advice: what a user can do (`scenarios.shrinking.advice`).
        bug: the known bug that `repair` fixes, and its ticket, or the scenarios of FINDINGS.md that show it.
        share: their estimated share of all failures on the same side of the promise, in all modes.
        smallest: the failure with the smallest seed.
        small: that failure shrunk, or None.
    """

    scenario: str
    mode: str
    kind: str
    inside: bool
    repair: str | None
    others: tuple[str, ...]
    advice: str
    bug: str
    ticket: str
    count: int
    share: float
    smallest: Failure
    small: ShrunkSize | None = None


@dataclass(frozen=True, slots=True)
class Triage:
    """The result of triage.

    Attributes:
        inside: number of failures inside the promise; `inside_looked` of them were examined.
        outside: number of failures outside the promise; `outside_looked` of them were examined.
        documented: number of failures that were skipped because FINDINGS.md documents them.
        buckets: inside the promise first, then by size.
        unexplained: failures that could not be examined, and why.
    """

    inside: int
    inside_looked: int
    outside: int
    outside_looked: int
    buckets: tuple[Bucket, ...]
    unexplained: tuple[str, ...]
    documented: int = 0
    cases: dict[tuple[str, str, str, bool, str], Case] = field(default_factory=dict, compare=False, repr=False)

    @property
    def several(self) -> bool:
        """Whether there are several scenarios, so that buckets are shown with theirs."""
        return len({bucket.scenario for bucket in self.buckets}) > 1

    def share(self, bucket: Bucket) -> str:
        """A bucket's share of the failures on its side of the promise; of few examined ones, their count."""
        looked = self.inside_looked if bucket.inside else self.outside_looked
        return percent(bucket.share) if looked >= LEAST else share(bucket.count, looked)

    @property
    def looked(self) -> str:
        """Numbers of examined failures."""
        return (
            f"looked at {self.inside_looked + self.outside_looked:,} of {self.inside + self.outside:,} failures: "
            f"{self.inside_looked:,} of {self.inside:,} inside the promise, "
            f"{self.outside_looked:,} of {self.outside:,} outside it"
        )

    @property
    def said(self) -> str:
        """Numbers of examined failures and of buckets, in a sentence."""
        sides = [(self.inside_looked, self.inside, "inside"), (self.outside_looked, self.outside, "outside")]
        parts = [f"{looked:,} of {there:,} {side} the promise" for looked, there, side in sides if there]
        small = sum(bucket.small is not None for bucket in self.buckets)
        which = "each" if small == len(self.buckets) else f"{small} of them"
        buckets = counted(len(self.buckets), "bucket")
        said = f"{buckets}; looked at {' and '.join(parts)}; the smallest seed of {which} was shrunk"
        return f"{said}; skipped {self.documented:,} that FINDINGS.md documents" if self.documented else said


class NoFailureError(InputError):
    """The sweep has no such failures; if it is incomplete, that means little."""


def failures(store: Store, kind: str | None = None) -> list[Failure]:
    """The failures of a sweep, in the order of examination.

    Raises:
        InputError: the sweep has no rows.
        NoFailureError: no run violated anything, or nothing of that kind.
    """
    columns = ["scenario", "mode", "seed", "verdict", "violations", "violations_inside", "replay", "blow", *store.grid]
    kinds: set[str] = set()
    found = []
    # Wave by wave: of a million runs, rows as dictionaries would take more memory than all else.
    for _, table in store.tables(columns):
        for row in _failing(table):
            violated = row["violations"].split(",")
            kinds.update(violated)
            if kind is None or kind in violated:
                found.append(_failure(row, tuple(store.grid), kind))
    if not store.covered:
        raise store.no_rows()
    if not kinds:
        ended = " that came to its end" if of_store(store) else ""
        raise NoFailureError(f"{store.folder.shown}: no run{ended} violated anything")
    if not found:
        raise NoFailureError(f"--kind {kind!r} was violated in no run{did_you_mean(str(kind), kinds)}")
    return sorted(found, key=_order)


def _failing(table: Any) -> Iterator[dict[str, Any]]:
    told = zip(table["violations"].to_pylist(), table["verdict"].to_pylist(), strict=True)
    places = [place for place, (kinds, verdict) in enumerate(told) if kinds and verdict != "error"]
    for first in range(0, len(places), BATCH):
        yield from table.take(places[first : first + BATCH]).to_pylist()


def _failure(row: dict[str, Any], keys: tuple[str, ...], kind: str | None) -> Failure:
    kept = symptom({**row, "error": ""}, kind)
    point = point_words({key: row[key] for key in keys})
    about = row["scenario"], row["mode"], row["seed"], point
    return Failure(*about, kept.kind, kept.inside, row["replay"], row["blow"])


def _order(failure: Failure) -> tuple[bytes, str]:
    """A pseudo-random but fixed order."""
    key = "/".join([failure.scenario, failure.mode, str(failure.seed), failure.point, *filter(None, [failure.blow])])
    return blake2b(key.encode(), digest_size=8).digest(), key


def sample(found: Sequence[Failure], most: int | None) -> list[Failure]:
    """Choose at most `most` failures, None: all. Of any number of the first, half are inside the promise, if there are
    enough, and on each side equally many are of each kind.
    """
    inside = _in_turn(failure for failure in found if failure.inside)
    outside = _in_turn(failure for failure in found if not failure.inside)
    chosen: list[Failure] = []
    of_outside = 0
    for number in range(1, len(found[:most]) + 1):
        if of_outside < min(len(outside), max(number // 2, number - len(inside))):
            chosen.append(outside[of_outside])
            of_outside += 1
        else:
            chosen.append(inside[number - 1 - of_outside])
    return chosen


def for_report(
    store: Store,
    most: int | None = None,
    processes: int = 1,
    tell: Callable[[int, int], None] = lambda _done, _all: None,
    tell_shrunk: Callable[[int, int], None] = lambda _done, _all: None,
    kind: str | None = None,
) -> Triage | None:
    """Group the failures of a sweep for its report; None if there are none.

    Args:
        store: the sweep.
        most: maximum number of failures to examine, 0: none; None: as many as `LIMIT_S` allows.
        processes: number of worker processes.
        tell: see `triage`.
        tell_shrunk: see `triage`.
        kind: examine only this kind of violation.

    Raises:
        InputError: the sweep has no rows.
    """
    begin = time.monotonic()

    def is_late(part: float) -> bool:
        return most is None and time.monotonic() - begin > part * LIMIT_S

    try:
        return None if most == 0 else triage(store, most, kind, processes, SHRUNK, tell, tell_shrunk, is_late)
    except NoFailureError:
        return None


def _in_turn(found: Iterable[Failure]) -> list[Failure]:
    """The failures, with kinds and sides of the promise taking turns."""
    turns = Counter[tuple[bool, str]]()
    ranked = []
    for failure in found:
        ranked.append((turns[failure.inside, failure.kind], failure))
        turns[failure.inside, failure.kind] += 1
    return [failure for _, failure in sorted(ranked, key=itemgetter(0))]


def triage(
    store: Store,
    most: int | None = MOST,
    kind: str | None = None,
    processes: int = 1,
    shrunk: int = SHRUNK,
    tell: Callable[[int, int], None] = lambda _done, _all: None,
    tell_shrunk: Callable[[int, int], None] = lambda _done, _all: None,
    is_late: Callable[[float], bool] = lambda _part: False,
    *,
    all_but_known: bool = False,
) -> Triage:
    """Group the failures of a sweep into buckets.

    Args:
        store: the sweep.
        most: maximum number of failures to examine; None: all.
        kind: examine only this kind of violation.
        processes: number of worker processes.
        shrunk: number of buckets, from the first, whose smallest seed is shrunk.
        tell: called with the numbers of examined and of all failures.
        tell_shrunk: called with the numbers of shrunk and of all seeds to shrink.
        is_late: whether this part of the time limit is over. At least one failure is examined, and one seed shrunk.
        all_but_known: skip failures that FINDINGS.md documents, and examine `most` others.

    Raises:
        InputError: the sweep has no rows.
        NoFailureError: no run violated anything, or nothing of that kind.
    """
    found = failures(store, kind)
    chosen = sample(found, None if all_but_known else most)
    runs = cases(store, chosen)
    tasks = [(failure, runs[failure], all_but_known) for failure in chosen]

    def is_enough(done: Iterable[ExaminedFailure]) -> bool:
        return most is not None and sum(not failure.documented for failure in done) >= most

    looked = _each(_look, tasks, processes, tell, lambda: is_late(LOOKING), is_enough)
    known_to = {side: [one for one in looked if one.failure.inside == side and not one.problem] for side in _SIDES}
    sides = {side: sum(not one.documented for one in known_to[side]) for side in _SIDES}
    buckets = [
        bucket
        for (_, _, kind, inside), group in _grouped(looked).items()
        for bucket in _buckets(group, _whole(found, known_to[inside], kind), runs[group[0].failure].mode)
    ]
    buckets.sort(key=lambda one: (not one.inside, -one.count, one.scenario, one.mode, one.kind, one.repair or "~"))
    smallest = [(bucket.smallest, runs[bucket.smallest]) for bucket in buckets[:shrunk]]
    small = _each(_shrink, smallest, processes, tell_shrunk, lambda: is_late(1))
    small += [(None, None)] * (len(buckets) - len(small))
    pairs = list(zip(buckets, small, strict=True))
    return Triage(
        inside=sum(failure.inside for failure in found),
        inside_looked=sides[True],
        outside=sum(not failure.inside for failure in found),
        outside_looked=sides[False],
        buckets=tuple(replace(bucket, small=size) for bucket, (size, _) in pairs),
        unexplained=tuple(f"{one.failure.replay}: {one.problem}" for one in looked if one.problem),
        documented=sum(one.documented for one in looked),
        cases={key(bucket): case for bucket, (_, case) in pairs if case is not None},
    )


def _whole(found: Iterable[Failure], looked: Iterable[ExaminedFailure], kind: str) -> float:
    """How many failures of a kind would have been examined if all failures were of that kind.

    Args:
        found: all failures.
        looked: the examined ones on one side of the promise.
        kind: the kind.
    """
    looked = list(looked)
    there = Counter((failure.inside, failure.kind) for failure in found)
    tried = Counter(one.failure.kind for one in looked)
    each = {one.failure.kind: there[one.failure.inside, one.failure.kind] / tried[one.failure.kind] for one in looked}
    return sum(each[one.failure.kind] for one in looked if not one.documented) / each[kind]


def key(bucket: Bucket) -> tuple[str, str, str, bool, str]:
    """The identity of a bucket."""
    return bucket.scenario, bucket.mode, bucket.kind, bucket.inside, bucket.repair or ""


def explains(bucket: Bucket, folder: str, *, several: bool) -> str:
    """The command that explains the smallest seed of a bucket; `several`: the folder holds several scenarios."""
    one = bucket.smallest
    words = [folder, *(["--scenario", one.scenario] if several else []), "--mode", one.mode, "--seed", str(one.seed)]
    for pair in one.point.split():
        words += ["--set", pair]
    if one.blow:
        words += ["--blow", one.blow]
    return plugged.command(["explain", *words, "--kind", one.kind])


def cases(store: Store, chosen: Iterable[Failure]) -> dict[Failure, Case]:
    """The runs of failures."""
    variants = {
        (variant.name, point_words({key: variant.config[key] for key in store.grid})): variant
        for variant in store.sweep.variants
    }
    modes = {(name, mode.name): mode for name, modes in store.sweep.modes.items() for mode in modes}
    found = {}
    for failure in chosen:
        scenario = replace(variants[failure.scenario, failure.point], blows=parse(failure.blow))
        found[failure] = Case(scenario, modes[failure.scenario, failure.mode], failure.seed, store.run["rules"])
    return found


def _each(
    work: Callable[[Any], Any],
    tasks: Sequence[Any],
    processes: int,
    tell: Callable[[int, int], None] = lambda _done, _all: None,
    is_late: Callable[[], bool] = lambda: False,
    is_enough: Callable[[list[Any]], bool] = lambda _done: False,
) -> list[Any]:
    """The results of the tasks, in their order, until it is late or they are enough.

    Raises:
        UnavailableError: a process was killed.
    """
    found: list[Any] = []
    with LocalRunner(min(processes, max(1, len(tasks)))) as runner:
        for result in runner.map(work, tasks, ahead=2):
            found.append(result)
            tell(len(found), len(tasks))
            if is_enough(found) or is_late():
                break
    return found


def recorded(case: Case, kept: Symptom) -> Case:
    """The run with its recorded plan in place of random generation.

    Raises:
        InputError: the run does not fail as in the sweep.
    """
    if not case.scenario.drawn:
        raise InputError("a script is not drawn, and has no cause to look for")
    result = case.run()
    if not kept.shown_by(result.row):
        raise InputError(f"{kept.kind} is not violated by this code")
    return replace(case, scenario=recording.of_run(case.scenario, result).scenario)


def _look(task: tuple[Failure, Case, bool]) -> ExaminedFailure:
    failure, case, skips_documented = task
    trials, kept = Trials(), Symptom(failure.kind, failure.inside)
    try:
        plan = recorded(case, kept)
    except InputError as error:
        return ExaminedFailure(failure, problem=error.problems[0])
    if skips_documented and documented_by(plan, kept, trials):
        return ExaminedFailure(failure, documented=True)
    return ExaminedFailure(failure, Criterion(trials, plan, kept).cause)


def documented_by(case: Case, kept: Symptom, trials: Trials) -> tuple[str, ...]:
    """The scenarios of FINDINGS.md that show the cause of a recorded run; none if no finding's repair cures it."""
    failed, rules = trials.row(case), case.mode.rules.override(case.rules)
    for (rule, value), kinds in findings.documented().items():
        if (kinds and kept.kind not in kinds) or unmet(RULES[rule].where, [rules]):
            continue
        row = trials.changed_row(case, case.with_rule(rule, value))
        if has_effect(row, failed) and kept.cured_in(row):
            return findings.shown_by(rule, value)
    return ()


def _shrink(task: tuple[Failure, Case]) -> tuple[ShrunkSize | None, Case | None]:
    failure, case = task
    trials = Trials(lambda: trials.runs >= SHRINK_RUNS)
    try:
        kept = Symptom(failure.kind, failure.inside)
        found = shrink(recorded(case, kept), kept, trials)
    except (InputError, OutOfTimeError):
        return None, None
    faults = sorted(found.case.faults, key=lambda fault: fault.at_us)
    return ShrunkSize(tuple(fault.kind for fault in faults), len(found.case.sends), found.whole), found.case


def _grouped(looked: Iterable[ExaminedFailure]) -> dict[tuple[str, str, str, bool], list[ExaminedFailure]]:
    groups: dict[tuple[str, str, str, bool], list[ExaminedFailure]] = {}
    for failure in looked:
        if not (failure.problem or failure.documented):
            about = failure.failure
            groups.setdefault((about.scenario, about.mode, about.kind, about.inside), []).append(failure)
    return groups


def _buckets(group: list[ExaminedFailure], of: float, mode: Mode) -> list[Bucket]:
    """Buckets of one scenario, mode, kind and side.

    Args:
        group: the examined failures.
        of: the number of which they are a share (`_whole`).
        mode: their mode.
    """
    left, found = list(group), []
    for sort in range(3):
        while True:
            cures = Counter(repair for failure in left for repair in failure.cures if rank(repair) == sort)
            if not cures:
                break
            best = min(cures, key=lambda repair: (-cures[repair], repair))
            found.append(_bucket([failure for failure in left if best in failure.cures], best, of, mode))
            left = [failure for failure in left if best not in failure.cures]
    return found + ([_bucket(left, None, of, mode)] if left else [])


def rank(repair: Repair) -> int:
    """Sort key of repairs: known bugs first, then other rules, then settings."""
    if not repair.is_rule:
        return 2
    return 0 if any(_bug(repair)) else 1


def _bug(repair: Repair | None) -> tuple[str, str]:
    """The known bug that a repair fixes, and its ticket, or the scenarios of FINDINGS.md that show it."""
    if repair is None or not repair.is_rule:
        return "", ""
    rule = repair.name, str(repair.value)
    if scenarios := findings.shown_by(*rule):
        return DOCUMENTED, ", ".join(scenarios)
    bug = known(*rule)
    return (bug.name, bug.ticket) if bug else ("", "")


def bug_of(bucket: Bucket) -> str:
    """The bug of a bucket in words, with its ticket or the finding that shows it; empty if none is known.

    Findings with one repair have different stories: only one with the bucket's kind of violation may be its.
    """
    if bucket.bug != DOCUMENTED:
        return f"{bucket.bug} ({bucket.ticket})" if bucket.bug else ""
    shown = [findings.all_findings()[name] for name in bucket.ticket.split(", ")]
    alike = [found for found in shown if bucket.kind in found.table.kinds]
    if alike:
        return f"{alike[0].title} (finding {alike[0].name})"
    return f"The cause of finding {shown[0].main}, with another outcome"


def code_of(bucket: Bucket) -> str:
    """Where Kafka's code decides the rule that repairs a bucket; empty if that is unknown or no rule does."""
    name, _, value = (bucket.repair or "").partition("=")
    return in_kafka(name, value) if name in RULES else ""


def _bucket(members: list[ExaminedFailure], repair: Repair | None, of: float, mode: Mode) -> Bucket:
    smallest = min(
        (member.failure for member in members), key=lambda failure: (failure.seed, failure.point, failure.blow)
    )
    common = set(members[0].cures).intersection(*(member.cures for member in members))
    helps = [one for one in sorted(common) if one == repair or not one.is_rule]
    bug, ticket = _bug(repair)
    return Bucket(
        scenario=smallest.scenario,
        mode=smallest.mode,
        kind=smallest.kind,
        inside=smallest.inside,
        repair=None if repair is None else str(repair),
        others=tuple(str(one) for one in sorted(common) if one != repair),
        advice=advice(helps, mode),
        bug=bug,
        ticket=ticket,
        count=len(members),
        share=len(members) / of,
        smallest=smallest,
    )


def as_json(found: Triage) -> dict[str, Any]:
    """The triage as one JSON-able object."""
    return {
        "schema_version": TRIAGE_VERSION,
        "said": found.said,
        "inside": {"failures": found.inside, "looked_at": found.inside_looked},
        "outside": {"failures": found.outside, "looked_at": found.outside_looked},
        "buckets": [asdict(bucket) for bucket in found.buckets],
        "unexplained": list(found.unexplained),
        "documented": found.documented,
    }
