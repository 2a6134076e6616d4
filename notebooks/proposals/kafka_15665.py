"""KAFKA-15665 as first proposed: a reassignment completes with min.insync.replicas members in the ISR.

The pull request (apache/kafka#14604, closed) kept the condition that the added replicas are in the ISR, and added one
line: ``if (newTargetIsr.size() < Math.min(minIsrCount, newTargetReplicas.size())) return Optional.empty();``. What
became of it in 3.8 (#15359) waits for all target replicas instead; KAFKA-19975 (4.3) loosened that. A cancellation is
as before, unlike with rule value ``min-isr``, the text of KIP-966.
"""

from __future__ import annotations

from typing import Final

from highwater.plugin import Plugin, Reassignment, RuleValue

API_VERSION = 1


def completes(_: bool, at: Reassignment) -> bool:
    """As the pull request has it."""
    return set(at.adding) <= set(at.isr) and len(at.isr) >= min(at.min_isr, len(at.replicas))


MODE: Final = """
schema = 1
name = "kafka-15665"
title = "a reassignment completes with the added replicas, and min.insync.replicas members, in the ISR"
base = "elr-4.3"
sources = ["KAFKA-15665", "apache/kafka#14604"]

[rules]
reassignment_completes = "adding-and-min-isr"
"""

PLUGIN: Final = Plugin(
    rule_values=[
        RuleValue(
            "reassignment_completes",
            "adding-and-min-isr",
            like="targets-if-fewer",
            decisions={"reassignment_completes": completes},
            meaning="once those that it adds are in the ISR, and the ISR has min.insync.replicas members",
            source="apache/kafka#14604",
        )
    ],
    modes=[MODE],
)
