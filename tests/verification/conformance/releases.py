"""The rules of the metadata versions in the table about partition changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sim.protocol.modes import MODES
from sim.protocol.rules import Rules
from tests.verification.conformance.cases import Case

SNAPSHOT: Final = MODES["elr-4.0-snapshot"].rules
"""What the table was read from."""
FIXED_SINCE: Final[Mapping[str, str]] = {
    "elr-29": "a fenced last leader is not elected any more (KAFKA-19522)",
    "elr-40": "a change of min ISR clears the ELR (KAFKA-16540)",
}
"""Cases that do not hold in 4.1, and why."""


def _version(version: str) -> tuple[int, ...]:
    release, _, level = version.partition("-IV")
    return (*(int(part) for part in release.split(".")), int(level))


def marks_recovery(version: str) -> bool:
    """Whether an unclean election is marked until the leader has confirmed it."""
    return _version(version) >= _version("3.2-IV0")


def quorum_rules(case: Case) -> Mapping[str, Rules]:
    """The rules of a case: the snapshot's, also where ELR is off, unless it names an older metadata version.

    Cases with ELR are run with those of 4.1, too, unless something was mended since.
    """
    given = case.given
    version = _version(given.get("metadata_version", "4.0-IV1"))
    values = {"elr": "on" if given.get("elr_enabled", False) else "off"}
    if version < _version("3.6-IV0"):
        values["isr_shrink_epoch"] = "bumped"
    if version < _version("3.3-IV3"):
        values["isr_eligibility"] = "any"
    if not given.get("use_last_known_leader", True):
        values["last_known_elr"] = "ejected-members"
    if version >= _version("4.3-IV0"):
        return {"elr-4.3": MODES["elr-4.3"].rules.override(values)}
    runs = {"snapshot": SNAPSHOT.override(values)}
    if values["elr"] == "on" and case.id not in FIXED_SINCE:
        runs["elr"] = MODES["elr"].rules.override(values)
    return runs
