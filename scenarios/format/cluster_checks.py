"""Refuses clusters of two control planes (KIP-866 is not modelled), and settings with which Kafka would not start
(`sim.config.NEEDED`), also drawn ones and those of one broker.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from typing import Final

from scenarios.format.scenario import Scenario
from sim.config import GROUP_OFFSETS, NEEDED, refusals
from sim.errors import InputError
from sim.protocol.modes import MODES, Mode
from sim.protocol.modes import mode as mode_named

NAMES: Final = {"zookeeper": "ZooKeeper", "kraft": "KRaft"}
IDEMPOTENCE: Final = "enable.idempotence"


def check_control_plane(scenario: Scenario, modes: Collection[Mode]) -> None:
    """Check that modes have the control plane of all brokers with their own mode; raises InputError otherwise."""
    misfits = [mode.name for mode in modes if scenario.controller_count and mode.rules.control_plane != "kraft"]
    if misfits:
        fits = [name for name, mode in MODES.items() if mode.rules.control_plane == "kraft"]
        raise InputError(
            f'{scenario.name} does not run in {", ".join(misfits)}: control = "quorum" is that of {NAMES["kraft"]}; '
            f"modes under {NAMES['kraft']}: {', '.join(fits)}"
        )
    own = {**scenario.broker_modes, **(scenario.recorded.older if scenario.recorded is not None else {})}
    for broker, own_mode in sorted(own.items()):
        plane = mode_named(own_mode).rules.control_plane
        misfits = [mode.name for mode in modes if mode.rules.control_plane != plane]
        if misfits:
            fits = [name for name, mode in MODES.items() if mode.rules.control_plane == plane]
            raise InputError(
                f"{scenario.name} does not run in {', '.join(misfits)}: its broker {broker} is in mode {own_mode}, "
                f"under {NAMES[plane]}, and a cluster has one control plane; modes under {NAMES[plane]}: "
                f"{', '.join(fits)}"
            )


def check_as_kafka(scenario: Scenario, about: Container[str] | None = None, later: Container[str] = ()) -> None:
    """Check a scenario's settings as Kafka does.

    With `about`, only what concerns these keys is checked, which were just set: so recorded runs of earlier versions
    can be replayed. What concerns a key that will be set `later` is skipped.

    Raises:
        InputError: names all settings with which Kafka would not start.
    """
    needs = [
        needed
        for needed in NEEDED
        if (about is None or any(key in about for key in needed.keys)) and not any(key in later for key in needed.keys)
    ]
    found = refusals(scenario.config, scenario.draw_config, needs)
    for broker, keys in scenario.broker_config.items():
        drawn = {key: values for key, values in scenario.draw_config.items() if key not in keys}
        own = [needed for needed in needs if any(key in keys for key in needed.keys)]
        found += [f"broker {broker}: {text}" for text in refusals({**scenario.config, **keys}, drawn, own)]
    if (about is None or IDEMPOTENCE in about) and not (IDEMPOTENCE in later or "acks" in later):
        found += _acks_of_idempotent_producer(scenario)
    if scenario.control == "scripted" and scenario.may_keep_offsets:
        found.append(
            f'{GROUP_OFFSETS} = partition: control = "scripted" decides for one partition, and there is another'
        )
    if found:
        raise InputError(*found)


def _acks_of_idempotent_producer(scenario: Scenario) -> list[str]:
    """Batches of an idempotent producer that no Kafka client sends, one line each."""
    if True not in scenario.draw_config.get(IDEMPOTENCE, (scenario.config.get(IDEMPOTENCE, False),)):
        return []
    needs = f"with {IDEMPOTENCE} = true, a producer sends all batches with acks = all"
    return [f"{text}: {needs}" for text in acks_besides_all(scenario)]


def acks_besides_all(scenario: Scenario) -> list[str]:
    """What makes batches be sent with acks of their own, other than all."""
    found = [
        f"script line {number}: acks = {line.params['acks']!r}"
        for number, line in enumerate(scenario.script, 1)
        if line.params.get("acks", "all") != "all"
    ]
    workload = scenario.workload
    if workload is not None and workload.acks_one_every:
        found.append(f"acks_one_every = {workload.acks_one_every} of {scenario.name} (the setting acks overrides it)")
    return found
