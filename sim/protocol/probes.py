"""Probes: places in the protocol that a run can reach. `sim.history.coverage` records which were reached.

There are three sorts. A *transition* is an event of a replica, a controller, a log or a client. A *branch* is one value
of one rule: it is reached when the rule has an effect, that is, when another value would have acted differently
(`sim.protocol.decisions`). A *check* is reached when a checker met a case in which its property could fail.

Transitions are by subject, in `replica_probes`, `controller_probes` and `broker_probes`; branches and checks are here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final

from sim.config import ELR, KRAFT, RECOVERS_UNCLEANLY, SEVERAL_DIRECTORIES, ZOOKEEPER, Where
from sim.protocol.decisions import VALUES
from sim.protocol.rules import RULES, Rules

# Probes are numbered in this order.
# isort: split
from sim.protocol.probe import *

# isort: split
from sim.protocol.replica_probes import *

# isort: split
from sim.protocol.controller_probes import *

# isort: split
from sim.protocol.broker_probes import *

_WHERE: Final[Mapping[Where, Collection[str]]] = {
    ZOOKEEPER: (
        *("decision-outdated", "decision-dead-leader", "stale-broker-epoch", "stale-controller-epoch"),
        *("isr-refused-version", "isr-refused-member", "elected-offline", "elected-again", "elected-nobody"),
        *("preferred-unfit", "elected-shutdown", "shutdown-nobody", "elected-reassigned", "leader-removed"),
        *("controller-write-refused", "controller-write-accepted", "controller-finishes", "bounce", "missed-bounce"),
        *("expiry-heard", "request-repeated"),
    ),
    KRAFT: (
        *("isr-change-waits", "metadata-mismatch", "recovery-quorum"),
        *(known.name for known in PROBES if known.group == "kraft"),
    ),
    ELR: ("elected-from-elr", "elr-grows", "elr-cleared", "elr-ejected"),
    SEVERAL_DIRECTORIES: (
        *("directory-assigned", "directory-offline", "offline-assigned", "directory-unreported", "replica-elsewhere"),
        *("replica-moved", "move-continued", "future-recovered", "copy-held-back", "assigned-behind", "copy-behind"),
        *("directory-cordoned", "log-skipped", "directory-fails", "directory-lost", "last-directory"),
        *("starts-without-directory", "replica-offline", "directory-stalls"),
    ),
    RECOVERS_UNCLEANLY: ("recovery-begins", "recovery-elects", "recovery-dropped", "recovery-reply-stale"),
}
"""Rules -> the probes that can be reached under these alone."""


def _with_where(known: Probe) -> Probe:
    return known._replace(
        where=tuple([rule for where, names in _WHERE.items() if known.name in names for rule in where])
    )


PROBES[:] = map(_with_where, PROBES)
TRANSITIONS: Final = len(PROBES)
"""Number of transitions; probes from this number on are branches."""
BRANCHES: Final[dict[tuple[str, str], int]] = {}
"""(rule, value) -> number."""
CHECKS: Final[dict[str, int]] = {}
"""First kind of a checker's findings -> number."""
_CHECKED: Final[Mapping[str, str]] = {
    "committed-loss": "a batch was acknowledged",
    "exposed-loss": "a consumer was shown a record",
    "duplicate": "the final log has a batch of an idempotent producer",
    "sequence-gap": "an idempotent producer gave up a batch of an epoch of which the final log has others",
    "consumer-skip": "a consumer passed offsets",
    "deleted-records-back": "a broker led after all ISR members had a log start above 0",
    "divergence": "two replicas of one leader epoch had records below both HWs",
    "hw-regression": "a consumer that knew an end offset was told another",
    "ack-under-min-isr": "a leader answered success for acks=all",
    "controller-crashes": "the active controller threw an exception (KRaft)",
    "stale-setting": "an administrator changed a setting",
    "two-leaders-one-epoch": "a broker began to lead",
    "log-mismatch": "a batch was copied to another log",
    "leader-incomplete": "a broker led or could be elected when a record was committed",
    "inconsistent-read": "a broker began to lead after a consumer was shown a record",
    "global-loss": "a committed batch was removed from a log",
    "quorum-not-superset": "a leader's quorum met the persisted ISR and ELR",
    "metadata-mismatch": "a broker replayed a metadata record (KRaft)",
    "recovery-quorum": "the ISR was smaller than min.insync.replicas (KRaft)",
    "ack-above-hw": "a leader answered success for acks=all",
    "hw-above-isr": "an HW was compared with the LEOs of the ISR",
    "flushed-loss": "a broker loaded a log of which batches had been flushed",
    "epoch-cache-mismatch": "a log was truncated or loaded",
    "metadata-loss": "a second process knew a record of a replicated quorum to be committed",
    "quorum-leaders": "a second controller led a replicated quorum",
    "committed-offset-back": "a new process of a consumer that had committed was answered what is committed",
    "quorum-stalled": "no fault stopped a majority of the controllers or touched their links",
    "forbidden-election": "a leader was elected where no setting allows one that may lack records",
}
"""First kind of a checker's findings -> when it has decided."""


@lru_cache(maxsize=256)
def branches(rules: Rules) -> list[int]:
    """For each of `sim.protocol.decisions.VALUES`, the number of the branch of its rule's value in these rules."""
    return [BRANCHES[rule, rules.value(rule)] for rule, _ in VALUES]


def rebuild(added: Iterable[Probe] = ()) -> None:
    """Number the branches of all rules anew, and after them the probes of plug-ins."""
    del PROBES[TRANSITIONS:]
    branches.cache_clear()
    BRANCHES.clear()
    for rule, spec in RULES.items():
        for value in spec.values:
            name, meaning = f"{rule}={value}", f"rule {rule} had an effect by its value {value}"
            BRANCHES[rule, value] = probe(RULE_BRANCH, name, meaning)
    for kind, meaning in _CHECKED.items():
        CHECKS[kind] = probe(CHECK, kind, meaning)
        PROBES[-1] = _with_where(PROBES[-1])
    PROBES.extend(added)


rebuild()
