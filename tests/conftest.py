"""What many tests need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from scenarios.format.catalogue import load

if TYPE_CHECKING:
    from scenarios.format.scenario import Scenario


# The same examples everywhere and every time; a machine under load fails nothing.
settings.register_profile("highwater", deadline=None, derandomize=True, database=None)
settings.load_profile("highwater")


@pytest.fixture(scope="session")
def power() -> Scenario:
    return load("power")
