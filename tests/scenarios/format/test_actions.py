from __future__ import annotations

import pytest

from faults.kinds.registry import KINDS
from faults.kinds.retention import RetentionFault
from scenarios.format.actions import ACTIONS, with_faults
from tests.plain import needs_sources


def test_every_kind_of_fault_is_an_action() -> None:
    assert KINDS.keys() < ACTIONS.keys()


@needs_sources
def test_a_kind_of_fault_cannot_replace_an_action() -> None:
    class DeleteRecords(RetentionFault):
        name = "delete-records"

    with pytest.raises(ValueError, match="the fault kind delete-records has the name of a script action"):
        with_faults(ACTIONS, [DeleteRecords()])
