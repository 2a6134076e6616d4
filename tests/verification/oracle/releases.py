"""The rules of each release of Kafka."""

from __future__ import annotations

from typing import Final

from sim.protocol.modes import MODES, SINCE_4_1_1
from sim.protocol.rules import Rules

_ELR_4_1_1: Final = MODES["elr"].rules.override(SINCE_4_1_1)
RULES: Final[dict[str, Rules]] = {
    "0.10.2.2": MODES["hw"].rules,
    "1.1.1": MODES["kip101"].rules,
    "2.0.0": MODES["kip279"].rules,
    "2.6.0": MODES["kip320"].rules,
    "3.9.0": MODES["kraft"].rules,
    "4.1.0": MODES["elr"].rules,
    "4.1.2": _ELR_4_1_1,
    "4.2.1": _ELR_4_1_1,
    "4.2.2": _ELR_4_1_1,
    "4.3.1": MODES["elr-4.3"].rules,
    "4.4.0": MODES["elr-4.3"].rules,
}
"""4.1.2, 4.2.1, 4.2.2 and 4.4.0 have no mode of their own."""
LIKE: Final = {"4.1.2": "4.2.1", "4.2.2": "4.2.1", "4.4.0": "4.3.1"}
"""Release whose answers are not recorded -> the one with the same rules, whose answers are."""


def rules(*releases: str) -> dict[str, Rules]:
    """Those of some releases."""
    return {release: RULES[release] for release in releases}


def since(first: str) -> dict[str, Rules]:
    """Those of a release and all later ones."""
    names = list(RULES)
    return rules(*names[names.index(first) :])
