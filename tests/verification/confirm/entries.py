"""The scenarios to perform, and the releases to perform them on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Entry:
    """A scenario on a release.

    Attributes:
        scenario: its name.
        release: of Kafka.
        pace: seconds of the scenario per real second.
    """

    scenario: str
    release: str
    pace: int = 5


ENTRIES: Final = tuple(
    Entry(scenario, release, pace)
    for scenario, pace, releases in (
        ("kip101-scenario-1", 1, ("0.10.2.2", "1.1.1", "2.0.0", "2.6.0")),
        ("kip101-scenario-2", 5, ("0.10.2.2", "1.1.1", "2.0.0", "2.6.0")),
        ("kip101-appendix", 5, ("0.10.2.2", "1.1.1", "2.0.0", "2.6.0")),
        ("kip279-scenario-1-below", 5, ("1.1.1", "2.0.0")),
        ("kip279-scenario-1-equal", 5, ("1.1.1", "2.0.0")),
        ("kip279-scenario-1-above", 5, ("1.1.1", "2.0.0")),
        ("kip279-scenario-3", 5, ("1.1.1", "2.0.0")),
        ("kip320-consumer-skip", 5, ("2.0.0",)),
        ("kafka-2334", 5, ("0.10.2.2",)),
        ("kafka-6880", 5, ("2.0.0", "2.6.0")),
        ("kafka-7128", 5, ("2.0.0", "2.6.0")),
        ("kafka-7164", 5, ("2.0.0", "2.6.0")),
        ("hw-two-failovers", 5, ("0.10.2.2", "1.1.1")),
        ("canary", 1, ("0.10.2.2",)),
        ("idempotent-retry", 5, ("1.1.1", "2.6.0", "3.9.0", "4.3.1", "4.4.0")),
        ("jepsen-2013", 5, ("0.10.2.2", "4.1.0")),
        ("jepsen-2013-clean", 5, ("0.10.2.2", "3.9.0")),
        ("last-replica-standing", 5, ("2.6.0", "3.9.0", "4.1.0", "4.3.1", "4.4.0")),
        ("fsync-demo", 5, ("3.9.0",)),
        ("fsync-demo-other-order", 5, ("3.9.0",)),
        ("kip841", 5, ("2.6.0", "3.9.0")),
        ("kip903", 5, ("2.6.0",)),
        ("missed-bounce", 5, ("2.6.0",)),
        ("all-min-isr-unclean", 5, ("4.1.0",)),
        ("min-isr-change", 5, ("4.1.0", "4.3.1", "4.4.0")),
        ("kip966-walk", 5, ("4.1.0", "4.3.1", "4.4.0")),
        ("kip966-soft-min-isr", 5, ("4.1.0",)),
        ("kip966-first-replies", 5, ("4.1.0",)),
        ("kip966-heartbeat-cut", 3, ("4.1.0",)),
        ("kip966-hw-with-elr-member", 3, ("4.1.0",)),
        ("directory-assignment", 5, ("4.1.0", "4.1.2", "4.2.1", "4.2.2", "4.3.1", "4.4.0")),
        ("reassignment-back", 5, ("4.1.2", "4.2.1", "4.2.2", "4.3.1", "4.4.0")),
        ("reassignment-again", 5, ("4.1.2", "4.2.1", "4.2.2", "4.3.1", "4.4.0")),
        ("reassignment-shrinks-isr", 5, ("4.1.2", "4.2.1", "4.2.2", "4.3.1", "4.4.0")),
        ("reassignment-cancelled", 5, ("4.1.0", "4.1.2", "4.2.1", "4.2.2", "4.3.1", "4.4.0")),
        ("reassignment-cancelled-power-loss", 5, ("4.1.2", "4.2.1", "4.2.2", "4.3.1", "4.4.0")),
        ("elr-outside-assignment", 5, ("4.1.2", "4.2.1", "4.2.2", "4.3.1", "4.4.0")),
        ("reassignment-stuck", 5, ("4.1.2", "4.2.1", "4.2.2", "4.3.1", "4.4.0")),
        ("reassignment-to-one", 5, ("4.1.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("forgotten-expansion", 1, ("3.9.0", "4.1.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("forgotten-expansion-behind", 1, ("3.9.0", "4.1.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("forgotten-expansion-fenced", 1, ("3.9.0", "4.1.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("directory-of-last-member", 3, ("3.9.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("removed-directory", 2, ("4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("offline-directory", 2, ("4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("throttled-move", 2, ("3.9.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("throttled-move-killed", 2, ("3.9.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("isr-with-failed-directory", 1, ("3.9.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("skipped-log", 5, ("3.9.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("kafka-20961", 2, ("4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("leader-in-failed-directory", 2, ("4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("elr-cleared", 2, ("4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("elr-cleared-power-loss", 2, ("4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("elr-disabled", 2, ("4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("elr-disabled-loss", 2, ("4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("elr-enabled", 2, ("4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("elr-kept-while-disabled", 2, ("4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("elr-kept-after-unclean-shutdown", 2, ("4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("min-isr-raised-late", 3, ("4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("leo-of-skipped-epoch", 3, ("3.9.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("leo-of-skipped-epoch-paused", 1, ("3.9.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("leo-of-skipped-epoch-zookeeper", 3, ("2.6.0",)),
        ("min-isr-applied-last", 2, ("4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("counted-after-removal", 2, ("4.1.2", "4.2.2", "4.3.1", "4.4.0")),
        ("kafka-15591", 5, ("3.9.0", "4.4.0")),
        ("kafka-15591-dead-leader", 5, ("3.9.0", "4.4.0")),
        ("kafka-15591-min-isr", 5, ("3.9.0", "4.4.0")),
        ("kafka-15591-other-producer", 5, ("3.9.0", "4.4.0")),
        ("kafka-15591-reordered", 5, ("3.9.0", "4.4.0")),
        ("kafka-20507", 5, ("3.9.0", "4.4.0")),
        ("duplicates-across-epochs", 5, ("3.9.0",)),
        ("stale-log-start", 5, ("2.0.0", "2.6.0", "4.1.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0")),
    )
    for release in releases
)
"""In the order of the catalogue's pages."""

WITHOUT: Final = {
    "hw-under-min-isr": "about releases of KRaft before 3.6, of which none is pinned",
    "kip101-scenario-2-batches": "relies on when the controller goes back to the preferred leader, which is left out",
    "recreated-topic": (
        "`confirm` deletes no topics; `python -m tests.verification.confirm.recreated_topic` runs it: m2 was lost on "
        "3.9.0, 4.1.0, 4.1.2, 4.2.2, 4.3.1 and 4.4.0, in 3 of 3 runs each "
        "([finding](../highwater/lab/confirm/FINDINGS.md))"
    ),
    "min-isr-of-first-partition": (
        "`confirm` observes the first partition only; "
        "`python -m tests.verification.confirm.min_isr_of_first_partition` runs it: m1 was lost on "
        "4.1.2, 4.2.2, 4.3.1 and 4.4.0, in 3 of 3 runs each "
        "([finding](../highwater/lab/confirm/FINDINGS.md))"
    ),
    "mixed-versions": "brokers of several releases in one cluster have no counterpart",
    "returning-leader": "a broker would have to stand still between its registration and its first answer",
}
"""Scripted scenarios that are not acted out -> why."""
