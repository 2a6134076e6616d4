"""A comparison in sentences with figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from reports.analysis.compare import ANY, MODE, AvailabilityDifference, Comparison, Group, Pair, Rate, release_order
from reports.formatting import LEAST, number, percent, share
from scenarios.format.fields import VIOLATIONS
from scenarios.single.vacuity import VACUOUS
from sim.config import shown
from sim.errors import InputError, did_you_mean
from sim.plurals import counted

NO_PROGRESS: Final = "no-progress"
DOES: Final[Mapping[str, str]] = {
    ANY: "violates something",
    "committed-loss": "loses records acknowledged with acks=all",
    "exposed-loss": "loses records that consumers were shown",
    "divergence": "lets replicas diverge",
    "hw-regression": "shows clients a high watermark that goes back",
    "consumer-skip": "lets a consumer skip records",
    "committed-offset-back": "forgets what a group has committed",
    "reset-skip": "resets a consumer past records that it never reads",
    "deleted-records-back": "brings deleted records back",
    "duplicate": "keeps a batch of an idempotent producer twice",
    "duplicate-across-epochs": "writes a batch of an idempotent producer again in a new producer epoch",
    "reordered-across-epochs": "writes a batch of an idempotent producer behind a later one of another producer epoch",
    "sequence-gap": "accepts a batch of an idempotent producer without the one before it",
    "reordered": "keeps batches of an idempotent producer out of order",
    "ack-under-min-isr": "acknowledges below min.insync.replicas",
    "metadata-loss": "loses or changes committed metadata",
    "quorum-leaders": "has two controllers lead in one epoch",
    "quorum-stalled": "commits no metadata though no fault stops a majority of the controllers",
    "controller-crashes": "has controllers resign one after another by an exception",
    "stale-setting": "uses another value of a setting than the one that was set",
    "needless-wait": "waits longer than its settings explain",
    "needless-shrink": "removes a replica from the ISR that lags for less than its settings allow",
    "forbidden-election": "elects a leader from outside ISR and ELR, which no setting allows",
    "wrong-offset": "tells a producer an offset at which its record never was",
    "stuck-replica": "leaves a replica that never catches up",
    "stuck-consumer": "leaves a consumer that reads no further",
    NO_PROGRESS: "makes no progress after all faults have ended",
}
"""Kind of violation -> what the mode does, as a verb phrase; for early warnings, their names."""
LOSSES: Final = ("committed-loss", "exposed-loss")
"""Kinds of violation that lose records."""
FIRST: Final = (*LOSSES, "divergence")
"""Kinds for the first sentence, which is about the first of them that occurred."""
WAITS: Final[Mapping[str, tuple[str, float, str]]] = {
    "leaderless_ms": ("without a leader", 1_000, "s"),
    "hw_wait_ms": ("waiting acks=all writes", 1_000, "s"),
    "under_min_isr_ms": ("below min.insync.replicas", 1_000, "s"),
}
"""Measures of availability for sentences: the state that is measured, and its unit."""
MEASURES: Final[Mapping[str, tuple[str, float, str]]] = {
    "leaderless_ms": ("without a leader", 1_000, "s"),
    "hw_wait_ms": ("writes waited for the high watermark", 1_000, "s"),
    "hw_wait_max_ms": ("the longest of these waits", 1_000, "s"),
    "needless_wait_ms": ("waited without need", 1_000, "s"),
    "under_min_isr_ms": ("below min.insync.replicas", 1_000, "s"),
    "batches_refused": ("refused with NOT_ENOUGH_REPLICAS", 1, "batches"),
    "batches_refused_after_append": ("refused after the append", 1, "batches"),
    "acks1_hidden_ms": ("acknowledged with acks=1 and not readable yet", 1_000, "s"),
}
"""Measures of availability for tables: what is measured, its scale and its unit."""
BEYOND: Final = (
    "more brokers lost their disk or page cache, or ended uncleanly, than Kafka promises to survive with these settings"
)
"""What a violation outside the promise means for an operator."""
TERMS: Final[Mapping[str, str]] = {
    "inside the promise": "Kafka promises to survive these faults, so a violation is a failure of its protocol.",
    "outside the promise": "Kafka never promised to keep these: every in-sync replica lost its page cache or disk, or, "
    "with ELR, as many replicas as min.insync.replicas ended uncleanly. Other settings can help, and a "
    "protocol that promises more, such as ELR.",
    "tolerated": "The share of runs whose faults the mode promises to survive.",
}
LEGEND: Final = (
    "k/n: of n runs, k show it; exhausted ones count, those that ended with an error do not.",
    "95 % interval: Wilson's; <= is the exact upper bound where k is 0, and does not say never.",
    "inside: Kafka promises to survive these faults. outside: they were more than it promises to survive.",
    "tolerated: share of runs whose faults the mode promises to survive.",
    "clean: no violation, inside or outside, and neither stalled nor exhausted; early warnings do not count.",
    f"vacuous: {VACUOUS}; it may violate all the same, and stays in n.",
    "p: how often so uneven a split would occur if the modes did not differ (exact McNemar test).",
)


def check_kind(kind: str, seen: Iterable[str] = ()) -> str:
    """Check a kind of violation named by the user.

    Raises:
        InputError: there is no such kind.
    """
    known = [*VIOLATIONS, ANY, *seen]
    if kind not in known:
        raise InputError(f"--kind {kind!r} is no kind of violation{did_you_mean(kind, known)}")
    return kind


def does(kind: str) -> str:
    """Verb phrase for a mode that shows a kind of violation."""
    return DOES.get(kind, f"shows {kind}")


def about(comparison: Comparison, kind: str | None = None) -> str:
    """The kind for the first sentence."""
    rates = {rate.kind: rate for group in comparison.groups for rate in group.rates if rate.k}
    return kind or next((one for one in FIRST if one in rates), next((one for one in rates if one != ANY), ANY))


def first(comparison: Comparison, kind: str | None = None) -> str:
    """The result in one to five sentences: how often, how often inside the promise and why, runs that wait for an
    operator, and the price of safety; and one for each other kind of a plug-in that occurred.
    """
    if not any(group.runs for group in comparison.groups):
        return f"Each run of {_where(comparison)} ended with an error, so nothing can be compared."
    chosen = about(comparison, kind)
    others = [] if kind else [plugin for plugin in _of_plugins(comparison) if plugin != chosen]
    return " ".join(
        [
            _often(comparison, chosen),
            *_inside(comparison, chosen),
            *(_of_plugin(comparison, other) for other in others),
            *(_no_progress(comparison) if chosen != NO_PROGRESS else ()),
            *_stalled(comparison),
            *_costs(comparison),
        ]
    )


def _of_plugins(comparison: Comparison) -> list[str]:
    """Kinds of violation of plug-ins that occurred."""
    kinds = dict.fromkeys(rate.kind for group in comparison.groups for rate in group.rates if rate.k)
    return [kind for kind in kinds if kind in VIOLATIONS and kind not in DOES and not VIOLATIONS[kind].is_warning]


def _of_plugin(comparison: Comparison, kind: str) -> str:
    inside = sum(_rate(group, kind).inside for group in comparison.groups)
    return f"{_shares(comparison, kind)}; {f'{inside:,} runs' if inside else 'none of it'} inside the promise."


def _often(comparison: Comparison, kind: str) -> str:
    return f"{_on(comparison)} {_shares(comparison, kind)}."


def _shares(comparison: Comparison, kind: str) -> str:
    first, *others = in_order(comparison)
    parts = [f"{_named(comparison, first)} {does(kind)} in {_share(_rate(first, kind), ' of runs')}"]
    parts += [f"{_named(comparison, group)} in {_share(_rate(group, kind))}" for group in others]
    return joined(parts, "and")


def in_order(comparison: Comparison) -> list[Group]:
    """The groups in display order: modes in order of release."""
    if comparison.by != MODE:
        return list(comparison.groups)
    return sorted(comparison.groups, key=lambda group: release_order(group.name))


def _where(comparison: Comparison) -> str:
    fixed = [f"{name} = {shown(value)}" for name, value in comparison.fixed.items()]
    return " with ".join(filter(None, [comparison.scenario, ", ".join(fixed)]))


def _on(comparison: Comparison) -> str:
    where = _where(comparison)
    least = min((group.runs for group in comparison.groups), default=0)
    most = max((group.runs for group in comparison.groups), default=0)
    several = len(comparison.groups) > 1 and bool(comparison.pairs)
    if several and least == most == comparison.common_seeds:
        return f"On the same {most:,} seeds of {where},"
    common = f" ({comparison.common_seeds:,} seeds in common)" if several else ""
    return f"On {f'{least:,} to ' if least != most else ''}{most:,} runs of {where}{common},"


def _named(comparison: Comparison, group: Group) -> str:
    return group.name if comparison.by == MODE else f"{comparison.by} = {group.name}"


def _rate(group: Group, kind: str) -> Rate:
    return next(rate for rate in group.rates if rate.kind == kind)


def _share(rate: Rate, of: str = "") -> str:
    if rate.rate is None:
        return "no run that counts"
    if rate.k:
        return share(rate.k, rate.n, of)
    return f"none of {rate.n:,}" + (f" (<= {percent(rate.high)})" if rate.n >= LEAST else "")


def _inside(comparison: Comparison, kind: str) -> Iterator[str]:
    """How many of the runs that show a kind Kafka promises to prevent; where a mode promises more, so that its runs
    count and those of another do not, by how much.
    """
    seen = [(group, rate) for group in in_order(comparison) if (rate := _rate(group, kind)).k]
    if not seen:
        return
    what = "losses" if kind in LOSSES else "runs"
    guilty = [(group, rate) for group, rate in seen if rate.inside]
    rest = [group for group, rate in seen if not rate.inside]
    if not guilty:
        yield f"Kafka promises to prevent none of these {what}: {BEYOND}."
        return
    parts = [f"{rate.inside:,} with {_named(comparison, group)}" for group, rate in guilty]
    parts += [f"none with {joined([_named(comparison, group) for group in rest], 'or')}"] if rest else []
    yield f"Of these {what} Kafka promises to prevent {joined(parts, 'and')}."
    survived = {group.name: group.share_inside for group in comparison.groups if group.share_inside is not None}
    most = max((group for group, _ in guilty), key=lambda group: survived.get(group.name, 0.0))
    if rest and all(group.name in survived and survived[group.name] < survived[most.name] for group in rest):
        others = [group for group in comparison.groups if group is not most and group.name in survived]
        shares = [f"{percent(survived[group.name])} with {_named(comparison, group)}" for group in others]
        yield (
            f"{_named(comparison, most)} promises to survive the faults of {percent(survived[most.name])} of the runs, "
            f"against {joined(shares, 'and')}; where a mode promises more, it can break a promise that "
            f"{'the other does' if len(others) == 1 else 'others do'} not make."
        )


def _no_progress(comparison: Comparison) -> Iterator[str]:
    runs = [sum(rate.k for rate in group.rates if rate.kind == NO_PROGRESS) for group in in_order(comparison)]
    yield from _ending(comparison, runs, "make{s} no progress after all faults have ended (no-progress)")


def _stalled(comparison: Comparison) -> Iterator[str]:
    runs = [group.stalled for group in in_order(comparison)]
    yield from _ending(comparison, runs, "end{s} without a leader until an operator acts (stalled)")


def _ending(comparison: Comparison, runs: Sequence[int], ends: str) -> Iterator[str]:
    """How many runs of each group end in a state which Kafka does not leave by itself."""
    names = [_named(comparison, group) for group in in_order(comparison)]
    some = [f"{counted(count, 'run')} of {name}" for name, count in zip(names, runs, strict=True) if count]
    if some:
        none = [name for name, count in zip(names, runs, strict=True) if not count]
        rest = f"; with {joined(none, 'and')} none" if none else ""
        yield f"{joined(some, 'and')} {ends.format(s='s' if sum(runs) == 1 else '')}{rest}."


def _costs(comparison: Comparison) -> Iterator[str]:
    """Compare the newest mode with the oldest, in measures whose interval of the difference excludes 0."""
    if not comparison.pairs:
        return
    oldest, *_, newest = in_order(comparison)
    names = {oldest.name, newest.name}
    pair = next(pair for pair in comparison.pairs if {pair.a, pair.b} == names)
    if found := costs(pair, newest.name):
        what = "Price" if any(part.startswith("+") for part in found) else "Gain"
        of, against = _named(comparison, newest), _named(comparison, oldest)
        yield f"{what} of {of} against {against}, mean of a run: {', '.join(found)}."


def costs(pair: Pair, of: str) -> list[str]:
    """What one group of a pair costs or gains in availability, where the interval of the difference excludes 0."""
    sign = 1 if pair.a == of else -1
    parts = []
    for found in pair.availability:
        if found.measure in WAITS and found.low is not None and found.high is not None and found.low * found.high > 0:
            what, scale, unit = WAITS[found.measure]
            more = "+" if sign * found.mean > 0 else "-"
            parts.append(f"{more}{abs(found.mean) / scale:.2g} {unit} {what}")
    return parts


def joined(parts: list[str], word: str) -> str:
    """Join parts as in a sentence."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def measured(measure: str, values: Iterable[float], sign: str = "") -> tuple[str, list[str]]:
    """What a measure of availability says, with its unit, and values in this unit."""
    what, scale, unit = MEASURES.get(measure, (measure, 1, ""))
    return f"{what}, {unit}".removesuffix(", "), [number(value / scale, sign) for value in values]


def difference_cells(found: AvailabilityDifference) -> tuple[str, str, str, str]:
    """A measure with its unit, its means in groups a and b, and the mean of b - a with its 95 % interval."""
    measure, (mean_a, mean_b) = measured(found.measure, [found.mean_a, found.mean_b])
    values = [found.mean, *([] if found.low is None or found.high is None else [found.high, found.low])]
    mean, *ends = measured(found.measure, [0.0 - value for value in values], "+")[1]  # 0.0 - 0.0 is not -0.0.
    return measure, mean_a, mean_b, f"{mean} ({' to '.join(ends)})" if ends else mean


RATE: Final = ("k/n", "rate", "95 % interval", "inside", "outside")
"""Column titles of a rate."""


def rate_cells(rate: Rate) -> tuple[object, ...]:
    """A rate in the columns of `RATE`."""
    interval = f"{percent(rate.low)} .. {percent(rate.high)}" if rate.k else f"<= {percent(rate.high)}"
    return f"{rate.k}/{rate.n}", percent(rate.rate), interval, rate.inside, rate.outside
