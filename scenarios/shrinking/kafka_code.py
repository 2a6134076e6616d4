"""Where Kafka's code decides a rule: classes and methods, releases and tickets, as far as the rule's data has them."""

from __future__ import annotations

from scenarios.format import findings
from scenarios.shrinking.known_bugs import known
from sim.protocol.rules import RULES


def in_kafka(rule: str, value: str) -> str:
    """Methods, sources and ticket of a rule's value in one line; empty if none is known.

    A finding names its deciding methods; of all others the sources of the rule are given.
    """
    parts = []
    table = findings.causes().get(rule)
    if table is not None and (rule, value) in {finding.repair for finding in findings.all_findings().values()}:
        parts.append(", ".join(method.replace("#", ".") for method in table.kafka))
    elif rule in RULES:
        parts.append(RULES[rule].source)
    if (bug := known(rule, value)) is not None:
        parts += [ticket for ticket in bug.ticket.split(", ") if not any(ticket in part for part in parts)]
    return "; ".join(filter(None, parts))
