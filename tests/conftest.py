"""What many tests need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scenarios.catalogue import load

if TYPE_CHECKING:
    from scenarios.scenario import Scenario


@pytest.fixture(scope="session")
def power() -> Scenario:
    return load("power")
