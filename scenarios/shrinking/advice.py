"""What a user can do about a failure: a setting that prevents it, or a release that has the repair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.protocol.modes import MODES, NO_RELEASE
from sim.protocol.rules import RULES, unmet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenarios.shrinking.cause import Repair
    from sim.protocol.modes import Mode

NO_RELEASE_YET: Final = "no release yet"
_UNREPAIRED: Final = f" (the bug is repaired in {NO_RELEASE_YET})"
UNKNOWN: Final = "no single repair"
_LACKS: Final = {("reassignment_completes", "targets-if-fewer")}
"""Later values of a rule that lack what an earlier value repaired."""


def advice(repairs: Iterable[Repair], mode: Mode) -> str:
    """What a user can do, in words: settings before a release.

    Args:
        repairs: settings that prevent the failure, and at most one rule, which identifies the bug.
        mode: the mode that fails.
    """
    repairs = list(repairs)
    found = " or ".join(str(repair) for repair in repairs if not repair.is_rule)
    rule = next((repair for repair in repairs if repair.is_rule), None)
    if rule is None:
        return found or UNKNOWN
    release = releases(rule.name, str(rule.value), mode)
    if not found:
        return release
    return f"{found}{_UNREPAIRED}" if release == NO_RELEASE_YET else f"{found}, or {release}"


def in_words(repair: str, found: str, *, is_bug: bool = True) -> str:
    """Advice as sentences.

    Args:
        repair: the repair that identifies the bug, ``NAME=VALUE``.
        found: what `advice` answers for it and the settings beside it.
        is_bug: whether what it repairs is known as a bug.
    """
    settings, _, release = found.partition(_UNREPAIRED)[0].partition(", or Kafka ")
    if found == NO_RELEASE_YET and not is_bug:
        return f"Rule {repair} would prevent it, which no release has"
    if found == NO_RELEASE_YET:
        return f"Unfixed in every release (rule {repair})"
    if found.endswith(_UNREPAIRED):
        return f"{settings} prevents it. So would rule {repair}, which no release has"
    if release:
        return f"{settings} prevents it; Kafka {release} has the repair (rule {repair})"
    if found.startswith("Kafka "):
        return f"Repaired in {found} (rule {repair})"
    return f"{found} prevents it"


def of_mode(mode: Mode) -> str:
    """The release of a mode, in the same words."""
    return NO_RELEASE_YET if mode.release == NO_RELEASE else f"Kafka {mode.release}"


def releases(rule: str, value: str, mode: Mode) -> str:
    """The modelled releases after a mode that have a repair, in words.

    A release has it if its rule has this value or a later one, or if the rule has no effect in it: the code with the
    bug is gone.
    """
    newer = sorted(
        (one for one in MODES.values() if one.release != NO_RELEASE and one.place > mode.place),
        key=lambda one: one.place,
    )
    having = [one for one in newer if _has(one, rule, value)]
    if not having:
        return NO_RELEASE_YET
    first, last = having[0], having[-1]
    moved = first.rules.control_plane != mode.rules.control_plane
    until = "and later" if last is newer[-1] else f"to {last.release}" if last is not first else ""
    return f"Kafka {first.release} {until}".rstrip() + (" (KRaft)" if moved else "")


def _has(release: Mode, rule: str, value: str) -> bool:
    spec, there = RULES[rule], release.rules.as_dict()[rule]
    if unmet(spec.where, [release.rules]):
        return True
    return spec.values.index(there) >= spec.values.index(value) and (there == value or (rule, there) not in _LACKS)
