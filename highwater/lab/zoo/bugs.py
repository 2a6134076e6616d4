"""Bugs of Kafka, of earlier releases and of today's, as the zoo hunts them: a mode that has each, and its repair.

A violation shows a bug if the repair cures it. Several bugs may lead to one kind of violation; they are told apart by
what other repairs do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from highwater.lab.zoo.findings import FINDINGS, LOSS
from highwater.lab.zoo.runs import Rules, Runs
from scenarios.format.catalogue import load
from scenarios.shrinking.known_bugs import KNOWN
from sim.config import Value

_FINDINGS_PAGE: Final = "highwater/lab/confirm/FINDINGS.md"


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug of Kafka.

    Attributes:
        name: what the zoo calls it; that of the scripted scenario that shows it, if its repair is in no release.
        source: tickets and proposals, or the page that documents it.
        tier: 1: random runs should find it within 10,000 seeds; 2: within 1,000,000.
        runs: where runs hunt it, in a mode that has it, with its repair as counterpart.
    """

    name: str
    source: str
    tier: int
    runs: Runs

    @property
    def sentence(self) -> str:
        """What goes wrong: in a few words, or as the title of the scripted scenario that shows it."""
        known = KNOWN.get(self.runs.right[0])
        text = load(self.name).title if known is None or self.name in FINDINGS else known.name
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
    runs = Runs(scenario, mode, right=(repair,), settings=settings, kinds=kinds, not_by=not_by)
    return Bug(name, KNOWN[repair].ticket, 1, runs)


def _finding(
    name: str,
    scenario: str,
    *,
    tier: int = 2,
    mode: str = "elr-4.3",
    also_by: Rules = (),
    lossy_ends: int | None = None,
) -> Bug:
    """A bug that was found with this testbed; `also_by` adds to what its finding says."""
    one = FINDINGS[name]
    runs = Runs(
        scenario,
        mode,
        right=(one.repair,),
        kinds=one.kinds,
        also_by=(*one.also_by, *also_by),
        not_by=one.not_by,
        lossy_ends=lossy_ends,
    )
    return Bug(name, _FINDINGS_PAGE, tier, runs)


_DIVERGENCE: Final = ("divergence",)
_LOSS_OR_DIVERGENCE: Final = (*LOSS, *_DIVERGENCE)
_THREE_REPLICAS: Final[tuple[tuple[str, Value], ...]] = (("default.replication.factor", 3),)
_LEADER_EPOCHS: Final = ("follower_truncation", "leader-epoch")
_ALIVE: Final = ("isr_eligibility", "alive")
_EPOCH_MISSED: Final = ("fetcher_restart", "epoch-missed")
_TARGETS_IN_ISR: Final = ("reassignment_completes", "targets-in-isr")
"""As up to 4.2."""

BUGS: Final[dict[str, Bug]] = {
    one.name: one
    for one in (
        _historical("hw-truncation", "hw", LOSS, _LEADER_EPOCHS, "power", settings=_THREE_REPLICAS),
        _historical("hw-truncation-divergence", "hw", _DIVERGENCE, _LEADER_EPOCHS, "power"),
        _historical(
            "misaligned-batches", "hw", ("stuck-replica", *_DIVERGENCE), ("append_check", "first-offset"), "chaos"
        ),
        _historical(
            "kip101-divergence", "kip101", _DIVERGENCE, ("follower_truncation", "leader-epoch-rounds"), "chaos"
        ),
        _historical(
            "kip279-join", "kip279", LOSS, ("isr_join", "leader-epoch-start"), "chaos", settings=_THREE_REPLICAS
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
        _historical("fenced-in-isr", "kip320", LOSS, _ALIVE, "chaos"),
        _historical("stale-broker-epoch", "kip320", LOSS, ("isr_eligibility", "registered"), "chaos", not_by=(_ALIVE,)),
        Bug(
            "last-replica-standing",
            "KIP-966",
            1,
            Runs(
                "elr-chaos",
                "kraft",
                right=(("elr", "on"), ("clean_shutdown", "checked")),
                kinds=("committed-loss",),
                is_promised=False,
            ),
        ),
        _finding("directory-assignment", "elr-chaos", tier=1, mode="elr"),
        _finding("elr-cleared", "elr-chaos", tier=1),
        _finding("elr-cleared-power-loss", "elr-chaos", tier=1),
        _finding("elr-disabled", "operations"),
        _finding("elr-disabled-loss", "operations"),
        _finding("elr-enabled", "operations"),
        _finding("elr-kept-while-disabled", "operations"),
        _finding("elr-kept-after-unclean-shutdown", "operations"),
        _finding("min-isr-of-first-partition", "topics"),
        _finding("min-isr-raised-late", "messages"),
        _finding("min-isr-applied-last", "operations"),
        _finding("forgotten-expansion", "operations", mode="kraft"),
        _finding("leo-of-skipped-epoch", "windows"),
        _finding("counted-after-removal", "windows"),
        _finding("recreated-topic", "topics"),
        _finding("removed-directory", "removals", tier=1),
        _finding("offline-directory", "directories", tier=1),
        _finding("throttled-move", "directories", tier=1),
        _finding("skipped-log", "directories"),
        _finding("leader-in-failed-directory", "directories"),
        _finding("isr-with-failed-directory", "directories"),
        _finding("stale-log-start", "operations"),
        Bug(
            "kafka-15591",
            "KAFKA-15591, KAFKA-14312, KAFKA-19880",
            1,
            Runs(
                "chaos",
                "kip320",
                right=(FINDINGS["kafka-15591"].repair,),
                settings=(("enable.idempotence", True), ("acks", "all")),
                kinds=FINDINGS["kafka-15591"].kinds,
            ),
        ),
        _finding("duplicates-across-epochs", "messages", mode="kraft"),
        _finding("reassignment-back", "reassignments", lossy_ends=0),
        _finding("reassignment-again", "reassignments"),
        _finding("reassignment-shrinks-isr", "reassignments"),
        _finding("reassignment-cancelled", "reassignments", lossy_ends=0),
        _finding("reassignment-cancelled-power-loss", "reassignments", lossy_ends=1),
        _finding("elr-outside-assignment", "reassignments", also_by=(_TARGETS_IN_ISR,)),
        _finding("reassignment-stuck", "reassignments", tier=1),
        _finding("reassignment-to-one", "reassignments", lossy_ends=0),
    )
}
"""Name -> bug."""
