"""Modes: named sets of rules, each what one Kafka release did.

A mode sets rules only; configuration comes from the scenario, with one default table for all (`sim.config`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sim.errors import InputError, did_you_mean
from sim.protocol.rules import RULES, Rules, RuleSpec, parse_overrides

__all__ = ["MODES", "RULES", "Mode", "RuleSpec", "mode", "parse_overrides"]


@dataclass(frozen=True, slots=True)
class Mode:
    """A mode: its name, the release that it equals, one line about it, and its rules."""

    name: str
    release: str
    summary: str
    rules: Rules


_HW: Final = Rules(
    follower_truncation="high-watermark",
    truncate_at_leo="keeps-epochs",
    epoch_recorded_at="first-append",
    fetcher_restart="leader-id-changed",
    late_reply="offset",
    append_check="last-offset",
    append_error="thread-dies",
    overlap_recovery="fails",
    out_of_range="halts",
    hw_needs_min_isr="no",
    isr_join="high-watermark",
    isr_eligibility="any",
    list_offsets_guard="no",
    fetch_fencing="no",
)
_KIP101: Final = _HW.override({"follower_truncation": "leader-epoch", "append_check": "first-offset"})

MODES: Final[dict[str, Mode]] = {
    entry.name: entry
    for entry in (
        Mode("hw", "0.10.2", "a new follower truncates to its own high watermark", _HW),
        Mode("kip101", "1.1", "a new follower asks the leader where its latest leader epoch ended (KIP-101)", _KIP101),
    )
}


def mode(name: str) -> Mode:
    """The mode of that name.

    Raises:
        InputError: there is none; names the nearest.
    """
    if name not in MODES:
        raise InputError(f"unknown mode {name!r}{did_you_mean(name, MODES)}")
    return MODES[name]
