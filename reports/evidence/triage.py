"""Failures of a sweep, grouped into buckets by cause.

The repair that cures a failure by itself (`scenarios.shrinking.cause`) identifies its bug; the random faults do not.
Some repairs cure by chance, because they move a message, so sets of repairs hardly ever agree. A bucket is therefore
named by the one repair that cures most of the failures not yet in a bucket: rules that repair a known bug first, then
other rules, then settings. The smallest seed of each bucket is shrunk, for up to `SHRUNK` buckets, and its remaining
faults are the bucket's signature.

Failures are examined in an order that depends only on the failures, and up to a maximum number, so the result is the
same on any machine with any number of processes.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from scenarios.format.grid import words as point_words
from scenarios.shrinking.case import Case
from scenarios.shrinking.cause import Repair
from scenarios.shrinking.criterion import Criterion, OutOfTimeError, Symptom, Trials, symptom
from scenarios.shrinking.known_bugs import known
from scenarios.shrinking.shrink import shrink
from scenarios.single import recording
from scenarios.single.run import prepare_process
from scenarios.sweep.workers import Workers
from sim.errors import InputError, UnavailableError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from scenarios.format.scenario import Scenario
    from scenarios.sweep.store import Store
    from sim.protocol.modes import Mode

TRIAGE_VERSION: Final = 1
MOST: Final = 200
"""Failures to examine by default."""
SHRUNK: Final = 40
"""Buckets whose smallest seed is shrunk, inside the promise first, then by size; in most sweeps all."""
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
    """

    scenario: str
    mode: str
    seed: int
    point: str
    kind: str
    inside: bool
    replay: str


@dataclass(frozen=True, slots=True)
class Looked:
    """A failure and the repairs that each cure it; or why they are not known."""

    failure: Failure
    cures: tuple[Repair, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Small:
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
        bug: the known bug that `repair` fixes, and its ticket; empty if there is none.
        share: their share of all examined failures on the same side of the promise, in all modes.
        smallest: the failure with the smallest seed.
        small: that failure shrunk, or None.
    """

    scenario: str
    mode: str
    kind: str
    inside: bool
    repair: str | None
    others: tuple[str, ...]
    bug: str
    ticket: str
    count: int
    share: float
    smallest: Failure
    small: Small | None = None


@dataclass(frozen=True, slots=True)
class Triage:
    """The result of triage.

    Attributes:
        inside: number of failures inside the promise; `inside_looked` of them were examined.
        outside: number of failures outside the promise; `outside_looked` of them were examined.
        buckets: inside the promise first, then by size.
        unexplained: failures that could not be examined, and why.
    """

    inside: int
    inside_looked: int
    outside: int
    outside_looked: int
    buckets: tuple[Bucket, ...]
    unexplained: tuple[str, ...]
    cases: dict[tuple[str, str, str, bool, str], Case] = field(default_factory=dict, compare=False, repr=False)

    @property
    def several(self) -> bool:
        """Whether there are several scenarios, so that buckets are shown with theirs."""
        return len({bucket.scenario for bucket in self.buckets}) > 1

    @property
    def said(self) -> str:
        """Numbers of examined failures and of buckets, in a sentence."""
        sides = [(self.inside_looked, self.inside, "inside"), (self.outside_looked, self.outside, "outside")]
        parts = [f"{looked:,} of {there:,} {side} the promise" for looked, there, side in sides if there]
        small = sum(bucket.small is not None for bucket in self.buckets)
        which = "each" if small == len(self.buckets) else f"{small} of them"
        return f"{len(self.buckets)} buckets; looked at {' and '.join(parts)}; the smallest seed of {which} was shrunk"


class NoFailureError(InputError):
    """The sweep has no such failures; if it is incomplete, that means little."""


def failures(store: Store, kind: str | None = None) -> list[Failure]:
    """The failures of a sweep, in the order of examination.

    Raises:
        InputError: the sweep has no rows.
        NoFailureError: no run violated anything, or nothing of that kind.
    """
    columns = ["scenario", "mode", "seed", "verdict", "violations", "violations_inside", "replay", *store.grid]
    rows = [row for _, table in store.tables(columns) for row in _failing(table)]
    kinds = {one for row in rows for one in row["violations"].split(",")}
    if not store.covered:
        raise store.no_rows()
    if not rows:
        raise NoFailureError(f"{store.folder.shown}: no run violated anything")
    if kind is not None and kind not in kinds:
        raise NoFailureError(f"--kind {kind!r} was violated in no run{did_you_mean(kind, kinds)}")
    about = [row for row in rows if kind is None or kind in row["violations"].split(",")]
    return sorted((_failure(row, tuple(store.grid), kind) for row in about), key=_order)


def _failing(table: Any) -> list[dict[str, Any]]:
    places = [place for place, kinds in enumerate(table["violations"].to_pylist()) if kinds]
    rows: list[dict[str, Any]] = table.take(places).to_pylist() if places else []
    return [row for row in rows if row["verdict"] != "error"]


def _failure(row: dict[str, Any], keys: tuple[str, ...], kind: str | None) -> Failure:
    kept = symptom({**row, "error": ""}, kind)
    point = point_words({key: row[key] for key in keys})
    return Failure(row["scenario"], row["mode"], row["seed"], point, kept.kind, kept.inside, row["replay"])


def _order(failure: Failure) -> tuple[bytes, str]:
    """A pseudo-random but fixed order."""
    key = "/".join([failure.scenario, failure.mode, str(failure.seed), failure.point])
    return blake2b(key.encode(), digest_size=8).digest(), key


def sample(found: Sequence[Failure], most: int) -> list[Failure]:
    """Choose at most `most` failures: half of them from inside the promise, if there are enough."""
    inside = [failure for failure in found if failure.inside]
    outside = [failure for failure in found if not failure.inside]
    for_outside = min(len(outside), max(most // 2, most - len(inside)))
    return [*inside[: most - for_outside], *outside[:for_outside]]


def triage(
    store: Store,
    most: int = MOST,
    kind: str | None = None,
    processes: int = 1,
    shrunk: int = SHRUNK,
    tell: Callable[[int, int], None] = lambda _done, _all: None,
    tell_shrunk: Callable[[int, int], None] = lambda _done, _all: None,
) -> Triage:
    """Group the failures of a sweep into buckets.

    Args:
        store: the sweep.
        most: maximum number of failures to examine.
        kind: examine only this kind of violation.
        processes: number of worker processes.
        shrunk: number of buckets, from the first, whose smallest seed is shrunk.
        tell: called with the numbers of examined and of all failures.
        tell_shrunk: called with the numbers of shrunk and of all seeds to shrink.

    Raises:
        InputError: the sweep has no rows.
        NoFailureError: no run violated anything, or nothing of that kind.
    """
    found = failures(store, kind)
    chosen = sample(found, most)
    cases = _cases(store, chosen)
    looked = _each(_look, [(failure, cases[failure]) for failure in chosen], processes, tell)
    sides = {side: sum(one.failure.inside == side for one in looked if not one.problem) for side in (True, False)}
    buckets = [
        bucket for group in _grouped(looked).values() for bucket in _buckets(group, sides[group[0].failure.inside])
    ]
    buckets.sort(key=lambda one: (not one.inside, -one.count, one.scenario, one.mode, one.kind, one.repair or "~"))
    small = _each(_shrink, [(one.smallest, cases[one.smallest]) for one in buckets[:shrunk]], processes, tell_shrunk)
    small += [(None, None)] * (len(buckets) - len(small))
    pairs = list(zip(buckets, small, strict=True))
    return Triage(
        inside=sum(failure.inside for failure in found),
        inside_looked=sides[True],
        outside=sum(not failure.inside for failure in found),
        outside_looked=sides[False],
        buckets=tuple(replace(bucket, small=size) for bucket, (size, _) in pairs),
        unexplained=tuple(f"{one.failure.replay}: {one.problem}" for one in looked if one.problem),
        cases={key(bucket): case for bucket, (_, case) in pairs if case is not None},
    )


def key(bucket: Bucket) -> tuple[str, str, str, bool, str]:
    """The identity of a bucket."""
    return bucket.scenario, bucket.mode, bucket.kind, bucket.inside, bucket.repair or ""


def _cases(store: Store, chosen: Iterable[Failure]) -> dict[Failure, Case]:
    variants = {(variant.name, _point(variant, store)): variant for variant in store.sweep.variants}
    modes = {name: {mode.name: mode for mode in modes} for name, modes in store.sweep.modes.items()}
    found = {}
    for failure in chosen:
        mode: Mode = modes[failure.scenario][failure.mode]
        found[failure] = Case(variants[failure.scenario, failure.point], mode, failure.seed, store.run["rules"])
    return found


def _point(variant: Scenario, store: Store) -> str:
    return point_words({key: variant.config[key] for key in store.grid})


def _each(
    work: Callable[[Any], Any],
    tasks: list[Any],
    processes: int,
    tell: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[Any]:
    """The results of all tasks, in their order.

    Raises:
        UnavailableError: a process was killed.
    """
    found = []
    if processes == 1 or len(tasks) < 2:
        prepare_process()
        for task in tasks:
            found.append(work(task))
            tell(len(found), len(tasks))
        return found
    with Workers(processes) as workers:
        futures = [workers.pool.submit(work, task) for task in tasks]
        try:
            for future in futures:
                found.append(future.result())
                tell(len(found), len(tasks))
        except BrokenProcessPool:
            raise UnavailableError("a process was killed (out of memory?); fewer of them, --local, need less") from None
    return found


def _recorded(case: Case, failure: Failure) -> Case:
    """The run with its recorded plan in place of random generation.

    Raises:
        InputError: the run does not fail as in the sweep.
    """
    if not case.scenario.drawn:
        raise InputError("a script is not drawn, and has no cause to look for")
    result = case.run()
    kept = Symptom(failure.kind, failure.inside)
    if not kept.shown_by(result.row):
        raise InputError(f"{failure.kind} is not violated by this code")
    return replace(case, scenario=recording.of_run(case.scenario, result).scenario)


def _look(task: tuple[Failure, Case]) -> Looked:
    failure, case = task
    try:
        criterion = Criterion(Trials(), _recorded(case, failure), Symptom(failure.kind, failure.inside))
    except InputError as error:
        return Looked(failure, problem=error.problems[0])
    return Looked(failure, criterion.cause)


def _shrink(task: tuple[Failure, Case]) -> tuple[Small | None, Case | None]:
    failure, case = task
    trials = Trials(lambda: trials.runs >= SHRINK_RUNS)
    try:
        found = shrink(_recorded(case, failure), Symptom(failure.kind, failure.inside), trials)
    except (InputError, OutOfTimeError):
        return None, None
    faults = sorted(found.case.faults, key=lambda fault: fault.at_us)
    return Small(tuple(fault.kind for fault in faults), len(found.case.sends), found.whole), found.case


def _grouped(looked: Iterable[Looked]) -> dict[tuple[str, str, str, bool], list[Looked]]:
    groups: dict[tuple[str, str, str, bool], list[Looked]] = {}
    for one in looked:
        if not one.problem:
            about = one.failure
            groups.setdefault((about.scenario, about.mode, about.kind, about.inside), []).append(one)
    return groups


def _buckets(group: list[Looked], of: int) -> list[Bucket]:
    """Buckets of one scenario, mode, kind and side."""
    left, found = list(group), []
    for sort in range(3):
        while True:
            cures = Counter(repair for one in left for repair in one.cures if _sort(repair) == sort)
            if not cures:
                break
            best = min(cures, key=lambda repair: (-cures[repair], repair))
            found.append(_bucket([one for one in left if best in one.cures], best, of))
            left = [one for one in left if best not in one.cures]
    return found + ([_bucket(left, None, of)] if left else [])


def _sort(repair: Repair) -> int:
    """Sort key of repairs: known bugs first, then other rules, then settings."""
    if not repair.is_rule:
        return 2
    return 0 if known(repair.name, str(repair.value)) else 1


def _bucket(members: list[Looked], repair: Repair | None, of: int) -> Bucket:
    smallest = min((one.failure for one in members), key=lambda failure: (failure.seed, failure.point))
    common = set(members[0].cures).intersection(*(one.cures for one in members))
    bug = known(repair.name, str(repair.value)) if repair is not None and repair.is_rule else None
    return Bucket(
        scenario=smallest.scenario,
        mode=smallest.mode,
        kind=smallest.kind,
        inside=smallest.inside,
        repair=None if repair is None else str(repair),
        others=tuple(str(one) for one in sorted(common) if one != repair),
        bug=bug.name if bug else "",
        ticket=bug.ticket if bug else "",
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
    }
