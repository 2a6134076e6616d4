"""Resolves a request's scenario, overridden settings and modes."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import replace

from scenarios.format import catalogue
from scenarios.format.cluster_checks import IDEMPOTENCE, acks_besides_all, check_as_kafka, check_control_plane
from scenarios.format.scenario import Scenario
from scenarios.properties.releases import Release
from sim.config import KEYS, Value, parse
from sim.errors import InputError, did_you_mean, parse_pairs
from sim.hosts.cluster import TOPIC
from sim.protocol.group.group_messages import OFFSETS
from sim.protocol.messages import topic_partition
from sim.protocol.modes import MODES, Mode


def settings(pairs: Iterable[str]) -> dict[str, Value]:
    """Read ``KEY=VALUE`` words; raises InputError with all problems."""

    def read(key: str, text: str) -> Value:
        if key in KEYS and "," in text:
            raise InputError(f"--set {key}={text}: only a sweep takes several values; give one")
        return parse(key, text)

    return parse_pairs(pairs, "--set", "KEY=VALUE", read)


def scenario(
    word: str,
    overrides: Mapping[str, Value],
    *,
    strict: bool = False,
    later: Container[str] = (),
    release: Release | None = None,
    without: Collection[str] = (),
) -> Scenario:
    """Load a scenario by name or path, with overridden settings, which are not drawn then.

    With `strict`, early warnings count as violations. `later` names the keys that a grid will override. The defaults of
    a `release` hold for keys that are neither overridden nor set by the scenario. Faults of kinds in `without` do not
    strike.

    Raises:
        InputError: there is no such scenario, its file is invalid, it has more replicas than brokers, Kafka would not
            start with its settings, or it has no such kind of fault.
    """
    found = catalogue.load(word)
    if release is not None:
        own = {**found.draw_config, **found.config, **{key: () for key in KEYS if key in later}}
        defaults = release.beside(overrides, own)
        if acks_besides_all(found.with_settings(overrides)):  # A producer that is told so is not idempotent by default.
            defaults.pop(IDEMPOTENCE, None)
        overrides = {**defaults, **overrides}
    check_settings(found, overrides, later)
    _check_without(found, without)
    chosen = found.with_settings(overrides)
    return replace(chosen, source=word, strict=strict, without_faults=tuple(dict.fromkeys(without)))


def _check_without(scenario: Scenario, without: Collection[str]) -> None:
    if without and scenario.faults is None:
        raise InputError(f"--without-fault is for random faults, and {scenario.name} is scripted")
    for kind in without:
        if scenario.faults is not None and kind not in scenario.faults.kinds:
            raise InputError(
                f"--without-fault {kind!r}: {scenario.name} has no such kind of fault"
                f"{did_you_mean(kind, scenario.faults.kinds)}"
            )


def showing(scenario: Scenario, partition: str | None) -> Scenario:
    """A scenario whose results show this partition; None: as the scenario is.

    Raises:
        InputError: it has no topic with that partition, which may be created while the cluster runs.
    """
    if partition is None:
        return scenario
    topic, dash, number = topic_partition(partition).rpartition("-")
    names = [f"{one.name}-{place}" for one in scenario.topics for place in range(one.partitions)] or [TOPIC]
    if scenario.may_keep_offsets:
        names.append(OFFSETS)
    if partition not in names and not (dash and number.isdecimal() and topic in {one.name for one in scenario.topics}):
        raise InputError(
            f"--partition {partition!r}: {scenario.name} has no such partition{did_you_mean(partition, names)}"
        )
    return replace(scenario, shown=partition)


def check_settings(scenario: Scenario, overrides: Mapping[str, Value], later: Container[str] = ()) -> None:
    """Check settings that override a scenario's own; `later` as in `scenario`.

    Raises:
        InputError: there are more replicas than brokers, or Kafka would not start with the settings.
    """
    factor = overrides.get("default.replication.factor", 1)
    if int(factor) > scenario.brokers:
        raise InputError(
            f"default.replication.factor = {factor} is not valid: {scenario.name} has {scenario.brokers} brokers"
        )
    check_as_kafka(scenario.with_settings(overrides), overrides, later)


def modes(
    scenario: Scenario, names: Iterable[str] = (), *, everyone: bool = False, own: Iterable[Mode] = ()
) -> tuple[Mode, ...]:
    """The modes to run: the named ones, which may be mode files, all, or those of the scenario's [expect].

    Variants run only if they are named. `own` are modes that only a sweep's folder defines.

    Raises:
        InputError: a mode is unknown, modes are named besides all, or a mode has another control plane than the
            scenario's brokers.
    """
    if everyone and names:
        raise InputError("--all-modes and named modes exclude each other")
    if everyone:
        names = MODES
    known = {**MODES, **{mode.name: mode for mode in own}}
    chosen = tuple(catalogue.mode(name, known) for name in dict.fromkeys(names or scenario.expect))
    check_control_plane(scenario, chosen)
    return chosen
