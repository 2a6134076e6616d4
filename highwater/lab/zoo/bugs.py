"""Bugs of Kafka, of earlier releases and of today's, as the zoo hunts them: a mode that has each, and its repair.

A violation shows a bug if the repair cures it. Several bugs may lead to one kind of violation; they are told apart by
what other repairs do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from highwater.lab.zoo.runs import Rules, TargetRuns
from scenarios.format.catalogue import load
from scenarios.format.finding import pairs
from scenarios.format.findings import KnownFinding, recognised
from scenarios.shrinking.known_bugs import KNOWN
from sim.config import Value


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug of Kafka.

    Attributes:
        name: what the zoo calls it; that of the scripted scenario that shows it, if its repair is in no release.
        source: tickets and proposals, or the command that prints what is known of a finding.
        tier: 1: random runs should find it within 10,000 seeds; 2: within 1,000,000.
        runs: where runs hunt it, in a mode that has it, with its repair as counterpart.
        title: what goes wrong, in a few words; empty: it is the title of the scripted scenario.
    """

    name: str
    source: str
    tier: int
    runs: TargetRuns
    title: str = ""

    @property
    def sentence(self) -> str:
        """What goes wrong."""
        text = self.title or load(self.name).title
        return f"{text if '.' in text.split()[0] else text[0].upper() + text[1:]}."


def _historical(
    name: str,
    mode: str,
    kinds: tuple[str, ...],
    repair: tuple[str, str],
    scenario: str,
    *,
    settings: tuple[tuple[str, Value], ...] = (),
    not_by: Rules = (),
) -> Bug:
    """A bug that a later release repaired."""
    runs = TargetRuns(scenario, mode, right=(repair,), settings=settings, kinds=kinds, not_by=not_by)
    return Bug(name, KNOWN[repair].ticket, 1, runs, KNOWN[repair].name)


def _found(finding: KnownFinding) -> Bug | None:
    """A bug that was found with this testbed; None: no random runs hunt it."""
    table = finding.table
    if table.hunt is None:
        return None
    runs = TargetRuns(
        table.hunt.scenario,
        table.hunt.mode,
        right=(finding.repair,),
        settings=tuple(table.hunt.settings.items()),
        kinds=table.kinds,
        also_by=(*pairs(table.also_by), *pairs(table.hunt.also_by)),
        not_by=pairs(table.not_by),
        lossy_ends=table.hunt.lossy_ends,
    )
    return Bug(finding.name, f"highwater scenarios show {finding.name}", table.hunt.tier, runs, finding.title)


_LOSS: Final = ("committed-loss", "exposed-loss")
_DIVERGENCE: Final = ("divergence",)
_LOSS_OR_DIVERGENCE: Final = (*_LOSS, *_DIVERGENCE)
_THREE_REPLICAS: Final[tuple[tuple[str, Value], ...]] = (("default.replication.factor", 3),)
_LEADER_EPOCHS: Final = ("follower_truncation", "leader-epoch")
_ALIVE: Final = ("isr_eligibility", "alive")
_EPOCH_MISSED: Final = ("fetcher_restart", "epoch-missed")

REPAIRED: Final[dict[str, Bug]] = {
    bug.name: bug
    for bug in (
        _historical("hw-truncation", "hw", _LOSS, _LEADER_EPOCHS, "power", settings=_THREE_REPLICAS),
        _historical("hw-truncation-divergence", "hw", _DIVERGENCE, _LEADER_EPOCHS, "power"),
        _historical(
            "misaligned-batches", "hw", ("stuck-replica", *_DIVERGENCE), ("append_check", "first-offset"), "chaos"
        ),
        _historical(
            "kip101-divergence", "kip101", _DIVERGENCE, ("follower_truncation", "leader-epoch-rounds"), "chaos"
        ),
        _historical(
            "kip279-join", "kip279", _LOSS, ("isr_join", "leader-epoch-start"), "chaos", settings=_THREE_REPLICAS
        ),
        _historical("missed-epoch", "kip279", _LOSS_OR_DIVERGENCE, _EPOCH_MISSED, "chaos"),
        _historical(
            "fetch-of-former-epoch",
            "kip279",
            _LOSS_OR_DIVERGENCE,
            ("fetch_fencing", "leader-epoch"),
            "chaos",
            not_by=(_EPOCH_MISSED,),
        ),
        _historical("offsets-go-back", "kip279", ("hw-regression",), ("list_offsets_guard", "yes"), "chaos"),
        _historical("consumer-skip", "kip279", ("consumer-skip",), ("consumer_validation", "yes"), "chaos"),
        _historical("leader-epoch-kept", "kip320", _DIVERGENCE, ("registration_epoch", "bumped"), "sessions"),
        _historical("fenced-in-isr", "kip320", _LOSS, _ALIVE, "chaos"),
        _historical(
            "stale-broker-epoch", "kip320", _LOSS, ("isr_eligibility", "registered"), "chaos", not_by=(_ALIVE,)
        ),
        Bug(
            "last-replica-standing",
            "KIP-966",
            1,
            TargetRuns(
                "elr-chaos",
                "kraft",
                right=(("elr", "on"), ("clean_shutdown", "checked")),
                kinds=("committed-loss",),
                is_promised=False,
            ),
        ),
    )
}
"""Name -> bug, of those that a later release repaired or a proposal names."""


@cache
def bugs() -> dict[str, Bug]:
    """Name -> bug."""
    found = {bug.name: bug for bug in map(_found, recognised().values()) if bug is not None}
    return {**REPAIRED, **found}
