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


LONGEST = (
    "tests/reports/test_readme.py",
    "tests/scenarios/sweep/test_driver.py",
    "tests/tiny/test_tiny.py",
    "tests/scenarios/sweep/test_spark.py",
    "tests/reports/page/test_report.py",
    "tests/test_metamorphic.py",
    "tests/test_determinism.py",
    "tests/sim/checkers/test_seeded_client_bugs.py",
    "tests/scenarios/format/test_catalogue.py",
    "tests/sim/checkers/test_reference.py",
)
"""Files that take longest: they come first, so that no process is left with one of them in the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {file: place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


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
