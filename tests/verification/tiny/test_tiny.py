"""Two-sided facts about the modes, by trying every order of events at tiny scale."""

from __future__ import annotations

import pytest

from tests.verification.tiny.facts import FACTS, Fact


@pytest.mark.parametrize("fact", [fact for fact in FACTS if fact.quick], ids=lambda fact: fact.name)
def test_fact(fact: Fact) -> None:
    found = fact.check()
    assert set(found.paths) == fact.kinds, "\n".join(step for path in found.paths.values() for step in path)
    assert found.exhausted or found.stopped
