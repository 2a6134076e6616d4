"""Checks that all brokers of a cluster use one control plane, ZooKeeper or KRaft.

The migration from one to the other (KIP-866) is not modelled.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from scenarios.format.scenario import Scenario
from sim.errors import InputError
from sim.protocol.modes import MODES, Mode
from sim.protocol.modes import mode as mode_named

NAMES: Final = {"zookeeper": "ZooKeeper", "kraft": "KRaft"}


def check(scenario: Scenario, modes: Collection[Mode]) -> None:
    """Check that modes have the control plane of all brokers with their own mode; raises InputError otherwise."""
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
