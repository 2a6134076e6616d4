from __future__ import annotations

import pytest

from scenarios.shrinking.known import KNOWN, known, repair_of


def test_each_ticket_tells_its_repair() -> None:
    for (rule, value), bug in KNOWN.items():
        assert repair_of(bug.ticket) == {rule: value}
        assert known(rule, value) is bug


def test_a_ticket_that_is_not_there_is_none() -> None:
    with pytest.raises(ValueError, match="unpack"):
        repair_of("KAFKA-0")
