"""Proposals of smaller cases, the simplest first; `scenarios.shrinking.shrink` decides which to take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from faults.kinds.groups import GROUPINGS
from faults.kinds.registry import KINDS, LINKS
from faults.kinds.topic_changes import OF_TOPICS
from faults.plan import ALL_DIRECTORIES, FOLLOWERS, ITS_DIRECTORY, LAST_TARGET, STEP_BROKER, Fault
from scenarios.format.scenario import PlannedSend, Topic
from scenarios.shrinking.case import Case
from scenarios.shrinking.cause import FACTOR
from scenarios.single.execution import broker_count
from sim.config import KEYS, Value, resolve
from sim.protocol.messages import topic_partition

RealisedFault = dict[str, object]
MS: Final = 1_000
SECOND: Final = 1_000_000
ROUND_US: Final = (10 * SECOND, SECOND, 100 * MS, 10 * MS, MS)
"""Units of round times, the roundest first."""
SHORT_US: Final = (SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 20 * SECOND, 30 * SECOND, 60 * SECOND)
"""Durations that a person would choose."""
EARLIEST_US: Final = SECOND
"""Earliest time of a fault or batch: brokers are up, and clients have started."""
SPARE: Final = "sim.spare.brokers"
SHAPE: Final = (FACTOR, SPARE)
"""Settings that `smaller_clusters` changes."""
DIRECTORIES: Final = "sim.log.dirs"
"""The setting that `fewer_directories` changes."""
DIRECTORY: Final = "directory"
"""The parameter of faults that is the number of a log directory; 0: the fault chooses it."""
FACTOR_LEAST: Final = 2
"""Replicas of a shrunk run, at least, if the failed one had so many: what the only replica of a partition loses, no
protocol could have kept, so it is another failure.
"""


def moments(case: Case) -> list[int]:
    """Times of faults and batches."""
    return sorted({fault.at_us for fault in case.faults} | {due_us for _, _, _, due_us in case.sends})


# Settings.


def changed_settings(case: Case) -> tuple[str, ...]:
    """Keys with other values than the default."""
    defaults = resolve()
    return tuple(key for key in KEYS if case.scenario.config[key] != defaults[key] and key not in SHAPE)


def only_settings(case: Case, keys: Sequence[str]) -> Case:
    """The case with default values of all settings, except these and the cluster's size."""
    config = case.scenario.config
    kept: dict[str, Value] = {key: config[key] for key in (*SHAPE, DIRECTORIES, *keys)}
    return case.with_scenario(config=resolve(kept))


# Brokers.


def smaller_clusters(case: Case) -> Iterator[Case]:
    """Cases with fewer brokers and replicas, the smallest cluster first; at least `FACTOR_LEAST` replicas."""
    config, brokers = case.scenario.config, case.scenario.brokers
    factor = int(config[FACTOR])
    named = sorted({broker for fault in case.faults for broker in (*fault.targets, *fault.replicas) if broker > 0})
    for fewer in range(min(FACTOR_LEAST, factor), factor + 1):
        for count in range(fewer, brokers + 1):
            spare = count - fewer
            if (fewer, count) == (factor, brokers) and spare == config[SPARE]:
                continue
            smaller = case.with_scenario(
                brokers=count,
                first=min(case.scenario.first, count),
                config={**config, FACTOR: fewer, SPARE: spare},
                broker_config={one: keys for one, keys in case.scenario.broker_config.items() if one <= count},
                broker_modes={one: mode for one, mode in case.scenario.broker_modes.items() if one <= count},
                topics=tuple(_at_most(topic, count) for topic in case.scenario.topics),
            ).with_older({one: mode for one, mode in case.recorded.older.items() if one <= count})
            yield smaller
            if named and named[-1] > count >= len(named):
                yield _renumbered(smaller, {broker: number for number, broker in enumerate(named, start=1)})


def _at_most(topic: Topic, brokers: int) -> Topic:
    """A topic whose replicas fit on so many brokers."""
    factor = topic.replication_factor
    return topic if factor is None or factor <= brokers else replace(topic, replication_factor=brokers)


def _renumbered(case: Case, numbers: dict[int, int]) -> Case:
    def changed(brokers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(numbers.get(broker, broker) for broker in brokers)

    return case.with_faults(
        tuple(replace(fault, targets=changed(fault.targets), replicas=changed(fault.replicas)) for fault in case.faults)
    )


# Topics.


def fewer_partitions(case: Case) -> Iterator[Case]:
    """Cases with fewer topics and partitions: one partition alone, then without each topic, each partition, the
    batches of each, and what a topic has of its own.
    """
    topics = case.scenario.topics
    if not topics:
        return
    names = [f"{topic.name}-{number}" for topic in topics for number in range(topic.partitions)]
    yield from filter(None, (_alone(case, name) for name in (*names[1:], names[0])))
    for topic in topics[1:]:
        yield _without_partitions(case, tuple(one for one in topics if one is not topic), topic.name)
    for topic in topics:
        if topic.partitions > 1:
            fewer = replace(topic, partitions=topic.partitions - 1)
            kept = tuple(fewer if one is topic else one for one in topics)
            yield _without_partitions(case, kept, f"{topic.name}-{fewer.partitions}")
    further = case.recorded.further_sends
    for name, sends in further.items():
        if sends:
            yield case.with_further_sends({**further, name: ()})
    for place, topic in enumerate(topics):
        for plainer in _plainer(topic, int(case.scenario.config[FACTOR])):
            yield case.with_scenario(topics=(*topics[:place], plainer, *topics[place + 1 :]))


def _plainer(topic: Topic, factor: int) -> Iterator[Topic]:
    """The topic without its own log directory, settings, or replication factor; the cluster's may not be larger."""
    if topic.directory is not None:
        yield replace(topic, directory=None)
    if topic.config:
        yield replace(topic, config={})
    if (topic.replication_factor or 0) >= factor:
        yield replace(topic, replication_factor=None)


def _without_partitions(case: Case, topics: tuple[Topic, ...], gone: str) -> Case:
    """The case with these topics, without the batches of a topic or partition that is gone, and the changes of it;
    faults that were about it are about the first partition.
    """
    left = {
        name: sends
        for name, sends in case.recorded.further_sends.items()
        if gone not in (topic_partition(name), topic_partition(name).rpartition("-")[0])
    }
    faults = [fault for fault in case.faults if not (fault.kind in OF_TOPICS and fault.partition == gone)]
    about = [fault.about("") if _is_of(fault, gone) else fault for fault in faults]
    return case.with_scenario(topics=topics).with_further_sends(left).with_faults(tuple(about))


def _is_of(fault: Fault, gone: str) -> bool:
    name = topic_partition(fault.partition)
    return fault.kind not in OF_TOPICS and gone in (name, name.rpartition("-")[0])


def _alone(case: Case, name: str) -> Case | None:
    """The case with only one of its partitions, which becomes the first: brokers are renumbered as its replicas need;
    None if it is not among the partitions that exist from the start.
    """
    about = case.scenario
    there = [topic for topic in about.topics if topic.created and topic.in_percent]
    names = [f"{topic.name}-{number}" for topic in there for number in range(topic.partitions)]
    if name not in names or (about.topology is not None and name != names[0]):
        return None
    topic = next(topic for topic in there if name.rpartition("-")[0] == topic.name)
    place = names.index(name)
    sends = case.recorded.further_sends.get(name, ()) if place else case.sends
    config = dict(about.config)
    config |= topic.config
    if topic.replication_factor is not None:
        config |= {FACTOR: topic.replication_factor, SPARE: about.brokers - topic.replication_factor}
    faults = tuple(fault.about("") for fault in case.faults if fault.kind not in OF_TOPICS)
    alone = case.with_scenario(topics=(), config=config).with_further_sends({}).with_sends(sends).with_faults(faults)
    brokers = broker_count(about, config)
    return _renumbered(alone, {(place + number) % brokers + 1: number + 1 for number in range(brokers)})


# Log directories and places of brokers.


def fewer_directories(case: Case) -> Iterator[Case]:
    """Cases with fewer log directories for each broker, the fewest first. A fault that names one of the others chooses
    its directory then, and a topic that names one is placed anywhere.
    """
    about = case.scenario
    for count in range(1, int(about.config[DIRECTORIES])):
        topics = [replace(topic, directory=None) if (topic.directory or 0) > count else topic for topic in about.topics]
        faults = [_of_any_directory(fault) if _directory(fault) > count else fault for fault in case.faults]
        smaller = case.with_scenario(config={**about.config, DIRECTORIES: count}, topics=tuple(topics))
        yield smaller.with_faults(tuple(faults))


def _directory(fault: Fault) -> int:
    """The number of the log directory that a fault names; 0: none."""
    kind = KINDS[fault.kind]
    if kind.of_directory:
        return max(0, fault.directory)
    return fault.value if kind.amount is not None and kind.amount.param == DIRECTORY else 0


def _of_any_directory(fault: Fault) -> Fault:
    return fault.within(ALL_DIRECTORIES) if KINDS[fault.kind].of_directory else replace(fault, value=0)


def without_topology(case: Case) -> Case | None:
    """The case without racks, power domains and hosts; None if there are none, or if a fault strikes such a group."""
    if case.scenario.topology is None or any(fault.kind in GROUPINGS for fault in case.faults):
        return None
    return case.with_scenario(topology=None)


# Batches.


def simpler_sends(case: Case) -> Iterator[Case]:
    """Cases with one record per batch, acks=all, and ids from 0: for all batches, then for each one."""
    sends = case.sends
    for change in (_one_record, _all_acks):
        yield case.with_sends(tuple(map(change, sends)))
        if len(sends) > 1:
            for place, send in enumerate(sends):
                yield case.with_sends((*sends[:place], change(send), *sends[place + 1 :]))
    counted, next_id = [], 0
    for _, count, acks, due_us in sends:
        counted.append((next_id, count, acks, due_us))
        next_id += count
    yield case.with_sends(tuple(counted))


def _one_record(send: PlannedSend) -> PlannedSend:
    return (send[0], 1, *send[2:])


def _all_acks(send: PlannedSend) -> PlannedSend:
    return (*send[:2], -1, send[3])


# Faults.


def simpler_faults(fault: Fault, realised: Sequence[RealisedFault]) -> Iterator[Fault]:
    """Faults that strike fewer targets, or named brokers at fixed times, those of the run's realised faults."""
    yield from _with_fixed_form(fault, [entry for entry in realised if entry["kind"] == fault.kind])
    if len(fault.targets) > 1 and fault.kind not in LINKS:
        yield from (_without_target(fault, place) for place in range(len(fault.targets)))
    if fault.delays_us:
        yield replace(fault, delays_us=())
    if fault.both_ways:
        yield replace(fault, both_ways=False)
    if _directory(fault):
        yield _of_any_directory(fault)
    if fault.directory == ITS_DIRECTORY:
        yield fault.within(ALL_DIRECTORIES)
        yield from (fault.within(number) for number in (1, 2))
    if fault.partition and fault.kind not in OF_TOPICS:
        yield fault.about("")


def _without_target(fault: Fault, place: int) -> Fault:
    left = fault.targets[:place] + fault.targets[place + 1 :]
    delays_us = fault.delays_us[:place] + fault.delays_us[place + 1 :]
    sooner = tuple(delay_us - delays_us[0] for delay_us in delays_us)
    return replace(fault, targets=left, delays_us=sooner if any(sooner) else ())


def _with_fixed_form(fault: Fault, struck: Sequence[RealisedFault]) -> Iterator[Fault]:
    """Copies with a fixed time and named brokers."""
    implied = not KINDS[fault.kind].targets.params
    if fault.trigger is None and (implied or min(fault.targets) >= 0):
        return
    times = [int(str(entry["at_us"])) for entry in struck]
    if fault.targets == (FOLLOWERS,):
        brokers = tuple(broker for entry in struck for broker in _brokers(entry))
        if brokers and len(set(brokers)) == len(brokers):
            delays_us = tuple(at_us - times[0] for at_us in times)
            found = replace(fault, targets=brokers, delays_us=delays_us if any(delays_us) else ())
            yield from _at_times(found, times[:1])
        return
    for entry, at_us in zip(struck, times, strict=True):
        is_named = not implied and len(fault.targets) == len(_brokers(entry))
        found = replace(fault, targets=_brokers(entry)) if is_named else fault
        yield from _at_times(found, [at_us])
    if fault.trigger is not None and not {STEP_BROKER, LAST_TARGET} & set(fault.targets):
        yield from _at_times(fault, times)


def _at_times(fault: Fault, times: Sequence[int]) -> Iterator[Fault]:
    if fault.trigger is None:
        yield fault
        return
    for at_us in times:
        # A fault triggered by a step strikes after it, in the same microsecond.
        yield replace(fault, at_us=at_us, trigger=None)
        yield replace(fault, at_us=at_us + 1, trigger=None)


def _brokers(entry: RealisedFault) -> tuple[int, ...]:
    targets = entry["targets"]
    assert isinstance(targets, list)
    return tuple(targets)


# Times.


def rounder(us: int, *, least_us: int = 0) -> Iterator[int]:
    """Rounder times near a time, the roundest first."""
    for unit in ROUND_US:
        below = us // unit * unit
        if below == us:
            return
        yield from (near for near in (below, below + unit) if near >= least_us)


def shorter(us: int) -> Iterator[int]:
    """Shorter or rounder times."""
    yield from (short for short in SHORT_US if short < us)
    if us not in SHORT_US:
        yield from rounder(us, least_us=MS)


def shorter_faults(fault: Fault) -> Iterator[Fault]:
    """Copies with shorter or rounder durations, delays and waits."""
    if fault.lasts_us > 0:
        yield from (replace(fault, lasts_us=us) for us in shorter(fault.lasts_us))
    for place, delay_us in enumerate(fault.delays_us):
        for us in (0, *rounder(delay_us)):
            if us != delay_us:
                yield replace(fault, delays_us=(*fault.delays_us[:place], us, *fault.delays_us[place + 1 :]))
    trigger = fault.trigger
    if trigger is not None:
        for us in (0, *rounder(trigger.after_us)):
            if us != trigger.after_us:
                yield replace(fault, trigger=replace(trigger, after_us=us))
        yield from (replace(fault, trigger=replace(trigger, until_us=us)) for us in rounder(trigger.until_us))
        yield from (
            replace(fault, trigger=replace(trigger, occurrence=number)) for number in range(1, trigger.occurrence)
        )


def compressed(case: Case) -> Iterator[Callable[[Case], Case | None]]:
    """Changes that shorten one gap after the other, the shortest gaps first."""
    for number in range(len(moments(case))):
        for gap_us in SHORT_US:

            def sooner(now: Case, number: int = number, gap_us: int = gap_us) -> Case | None:
                return _with_gap(now, number, gap_us)

            yield sooner


def _with_gap(case: Case, number: int, gap_us: int) -> Case | None:
    """The case with a shorter gap before one of the `moments`; None if the gap is not longer than that."""
    times = moments(case)
    if number >= len(times):
        return None
    before_us = EARLIEST_US if number == 0 else times[number - 1]
    by_us = times[number] - before_us - gap_us
    return _earlier(case, times[number], by_us) if by_us > 0 else None


def _earlier(case: Case, from_us: int, by_us: int) -> Case:
    faults = []
    for fault in case.faults:
        if fault.at_us >= from_us:
            fault = replace(fault, at_us=fault.at_us - by_us)
            if fault.trigger is not None:
                fault = replace(fault, trigger=replace(fault.trigger, until_us=fault.trigger.until_us - by_us))
        faults.append(fault)
    sends = [(*send[:3], send[3] - by_us if send[3] >= from_us else send[3]) for send in case.sends]
    moved = case.with_faults(tuple(faults)).with_sends(tuple(sends))
    return moved.with_horizon(case.horizon_us - by_us)


def shorter_horizons(case: Case) -> Iterator[Case]:
    """Cases that are healed sooner after the last fault or batch."""
    last_us = max(moments(case), default=0)
    whole_us = -(-last_us // SECOND) * SECOND
    for more_us in SHORT_US:
        if whole_us + more_us < case.horizon_us:
            yield case.with_horizon(whole_us + more_us)
    for us in rounder(case.horizon_us):
        if us > last_us:
            yield case.with_horizon(us)


def prefixes(case: Case) -> tuple[int, ...]:
    """Horizons after each number of faults and batches."""
    return tuple((first + second) // 2 for first, second in pairwise([*moments(case), case.horizon_us]))
