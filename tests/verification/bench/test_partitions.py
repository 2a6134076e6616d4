from __future__ import annotations

import pytest

from tests.verification.bench import partitions


@pytest.mark.parametrize("idle", [True, False])
def test_the_first_partition_is_busy_and_the_others_are_as_asked(*, idle: bool) -> None:
    busy, others = partitions.scenario(10, idle=idle).topics
    assert (busy.partitions, busy.idle) == (1, False)
    assert (others.partitions, others.idle) == (9, idle)


def test_one_partition_has_no_others() -> None:
    assert partitions.scenario(1, idle=True).partitions == 1
