"""What many tests need."""

from __future__ import annotations

import gc
import json
import signal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from highwater.cli.main import main
from scenarios.format.catalogue import load
from scenarios.shrinking import no_return
from scenarios.sweep import local
from tests.scenarios.sweep.here import Here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scenarios.format.scenario import Scenario


# The same examples everywhere and every time; a machine under load fails nothing.
settings.register_profile("highwater", deadline=None, derandomize=True, database=None)
settings.load_profile("highwater")


LONGEST = (
    "tests/highwater/cli/test_readme.py",
    "tests/scenarios/sweep/test_spark.py",
    "tests/scenarios/single/test_any_cluster.py",
    "tests/scenarios/sweep/test_driver.py",
    "tests/highwater/lab/explore/zookeeper/test_facts.py",
    "tests/reports/page/test_report.py",
    "tests/test_metamorphic.py",
    "tests/test_determinism.py",
    "tests/sim/checkers/test_seeded_client_bugs.py",
    "tests/scenarios/format/test_catalogue.py",
    "tests/verification/test_reference.py",
    "tests/scenarios/format/test_expectations.py",
    "tests/golden/test_golden.py",
    "tests/reports/evidence/test_triage.py",
    "tests/scenarios/single/test_run.py",
    "tests/highwater/cli/commands/test_shrink.py",
)
"""Files that take longest: they come first, so that no process is left with one of them in the end."""


SPARK = "tests/scenarios/sweep/test_spark.py"
"""Tests in other files that need a session of Spark, which takes seconds to start, guard the world."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "session" in getattr(item, "fixturenames", ()) and not item.nodeid.startswith(SPARK):
            item.add_marker(pytest.mark.world)
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


class Call:
    """What a call of the command line left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self) -> dict[str, Any]:
        """stdout as one object."""
        data: dict[str, Any] = json.loads(self.out)
        return data


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing of the developer's terminal reaches a test, and no failed run of a test the developer's --last-failed."""
    monkeypatch.setattr("highwater.cli.last_failed.cache_folder", tmp_path_factory.getbasetemp)
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def highwater(capfd: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Call]]:
    """Calls ``highwater`` with words."""
    before = signal.getsignal(signal.SIGTERM)

    def call(*words: object) -> Call:
        code = main([str(word) for word in words])
        return Call(code, *capfd.readouterr())

    yield call
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def few_continuations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The curve of a point of no return takes a tenth of its runs: for tests that do not look at its shares."""
    monkeypatch.setattr(no_return, "EVENTS", no_return.EVENTS // 10)
    monkeypatch.setattr(no_return, "PILOT_EVENTS", no_return.PILOT_EVENTS // 10)


@pytest.fixture
def sweeps_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps with --local are done in this process: for tests of what comes of them."""
    monkeypatch.setattr(local, "LocalBackend", lambda _: Here())


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small sweep of two scenarios."""
    folder = tmp_path_factory.mktemp("sweep") / "out"
    words = ["sweep", "power", "canary", "--seeds", "0..20", "--output", str(folder), "--local", "1", "-q", "--json"]
    assert main(words) == 0
    return folder
