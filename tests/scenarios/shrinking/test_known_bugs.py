from __future__ import annotations

from scenarios.format.findings import documented
from scenarios.shrinking.known_bugs import KNOWN, known


def test_each_repair_tells_its_bug_and_each_ticket_its_repair() -> None:
    assert all(known(rule, value) is bug for (rule, value), bug in KNOWN.items())
    assert len({bug.ticket for bug in KNOWN.values()}) == len(KNOWN)


def test_no_repair_is_also_that_of_a_finding() -> None:
    assert KNOWN.keys() & documented().keys() == set()
