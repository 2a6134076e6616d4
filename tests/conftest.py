"""What many tests need."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from scenarios.format.catalogue import load

if TYPE_CHECKING:
    from scenarios.format.scenario import Scenario


# The same examples everywhere and every time; a machine under load fails nothing.
settings.register_profile("highwater", deadline=None, derandomize=True, database=None)
settings.load_profile("highwater")


def pytest_collection_finish() -> None:
    """The garbage collector leaves alone what lives as long as the tests do, and looks less often: a sixth of their
    time (see `scenarios.single.run.prepare_process`).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def power() -> Scenario:
    return load("power")
