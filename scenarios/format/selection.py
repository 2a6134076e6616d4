"""What a request chooses: a scenario with settings laid over it, and modes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from scenarios.format import control_planes, kafka_checks
from scenarios.format.catalogue import load
from sim.config import KEYS, parse
from sim.errors import InputError, parse_pairs
from sim.protocol.modes import MODES, mode

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from scenarios.format.scenario import Scenario
    from sim.config import Value
    from sim.protocol.modes import Mode


def settings(pairs: Iterable[str]) -> dict[str, Value]:
    """Read ``KEY=VALUE`` words.

    Raises:
        InputError: all that is wrong with them.
    """

    def read(key: str, text: str) -> Value:
        if key in KEYS and "," in text:
            raise InputError(f"--set {key}={text}: only a sweep takes several values; name one of them")
        return parse(key, text)

    return parse_pairs(pairs, "--set", "KEY=VALUE", read)


def scenario(
    word: str, overrides: Mapping[str, Value], *, strict: bool = False, later: Container[str] = ()
) -> Scenario:
    """Load a scenario by name or path, with some settings overridden; what is set is not drawn any more.

    With `strict`, early warnings count as violations. Keys of which others are to be laid over it are named by `later`.

    Raises:
        InputError: no such scenario, all that is wrong with its file, more replicas than brokers, or settings that no
            Kafka would start with.
    """
    found = load(word)
    check_settings(found, overrides, later)
    return replace(found.with_settings(overrides), source=word, strict=strict)


def check_settings(scenario: Scenario, overrides: Mapping[str, Value], later: Container[str] = ()) -> None:
    """Check settings that are to be laid over a scenario's own; `later` as in `scenario`.

    Raises:
        InputError: more replicas than brokers, or settings that no Kafka would start with.
    """
    factor = overrides.get("default.replication.factor", 1)
    if int(factor) > scenario.brokers:
        raise InputError(
            f"default.replication.factor = {factor} is not valid: {scenario.name} has {scenario.brokers} brokers"
        )
    kafka_checks.check(scenario.with_settings(overrides), overrides, later)


def modes(
    scenario: Scenario, names: Iterable[str] = (), *, everyone: bool = False, own: Iterable[Mode] = ()
) -> tuple[Mode, ...]:
    """The modes to run: those named, every one, or those of the scenario's [expect].

    Variants of a release are run only where something names them: the default compares what a scenario is about. Modes
    that only a sweep's folder knows are its `own`.

    Raises:
        InputError: unknown mode, modes named where every one is asked for, or one that the scenario's brokers cannot be
            under together.
    """
    if everyone and names:
        raise InputError("--all-modes and named modes exclude each other")
    if everyone:
        names = MODES
    known = {**MODES, **{mode.name: mode for mode in own}}
    chosen = tuple(mode(name, known) for name in dict.fromkeys(names or scenario.expect))
    control_planes.check(scenario, chosen)
    return chosen
