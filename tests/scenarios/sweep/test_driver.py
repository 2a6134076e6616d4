from __future__ import annotations

import errno
import io
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.format.catalogue import load
from scenarios.format.scenario import Expectation
from scenarios.single import rows
from scenarios.sweep import claim, parts, store, summary, units
from scenarios.sweep import driver as sweep
from scenarios.sweep.driver import Interrupted, Progress
from scenarios.sweep.driver import run_sweep as run_whole_sweep
from scenarios.sweep.folder import Folder, open_folder
from scenarios.sweep.local import TRIES, LocalBackend
from scenarios.sweep.manifest import DamageError
from scenarios.sweep.ownership import CLAIM_START
from sim.config import NEVER
from sim.errors import InputError, StorageError, UnavailableError
from tests import named
from tests.named import run_row
from tests.scenarios.sweep.here import Here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from scenarios.sweep.driver import WavePlan

POWER = named.sweep((load("power"),), {"power": ("hw", "kip101")}, 10, 22)
FLUSHED = {"log.flush.interval.messages": 1}
CANARY = named.sweep((load("canary"),), {"canary": ("hw",)}, 0, 40)
run_sweep = partial(run_whole_sweep, wave_units=10)


def failing_in(wave: int, error: BaseException) -> Callable[[int], None]:
    def fail(number: int) -> None:
        if number == wave:
            raise error

    return fail


def read_summary(output: Path) -> dict[str, Any]:
    return store.read_json(open_folder(output), "summary.json")


@given(seconds=st.floats(0, 10**6), slots=st.integers(1, 64))
def test_every_slot_gets_equally_many_tasks(seconds: float, slots: int) -> None:
    count = units.chunk_count(seconds, slots, 3.0)
    assert count >= slots
    assert count % slots == 0
    assert seconds / count <= 1.5 * 3.0  # Rounding makes tasks half as long again at most.


def test_rows_come_seed_by_seed_of_one_scenario_after_the_other() -> None:
    both = named.sweep((load("canary"), load("power")), {"canary": ("hw",), "power": ("hw", "kip101")}, 7, 9)
    found = [
        (row["scenario"], row["mode"], row["seed"]) for row in units.rows_of(both.to_text(), both.extent().pieces())
    ]
    assert found == [
        ("canary", "hw", 7),
        ("canary", "hw", 8),
        ("power", "hw", 7),
        ("power", "kip101", 7),
        ("power", "hw", 8),
        ("power", "kip101", 8),
    ]
    assert both.count(both.extent().pieces()) == 6


def test_a_task_whose_time_is_over_stops_after_a_whole_unit() -> None:
    found = [(row["mode"], row["seed"]) for row in units.rows_of(POWER.to_text(), [(0, 10, 22)], 0.0)]
    assert found == [("hw", 10), ("kip101", 10)]


GRID = replace(POWER, end_seed=13, grid={"min.insync.replicas": (1, 2), "log.flush.interval.messages": (1, NEVER)})


def test_a_grid_is_every_combination_of_its_values() -> None:
    assert [variant.overrides for variant in GRID.variants] == [
        (f"min.insync.replicas={least}", f"log.flush.interval.messages={flush}")
        for least in (1, 2)
        for flush in (1, "never")
    ]
    assert not any(GRID.grid.keys() & variant.draw_config.keys() for variant in GRID.variants)
    assert GRID.extent().pieces() == [(variant, 10, 13) for variant in range(4)]
    assert GRID.count(GRID.extent().pieces()) == 24


def test_rows_of_a_grid_hold_its_settings_and_pair(tmp_path: Path) -> None:
    run_sweep(GRID, tmp_path, Here(), chunks=2)
    found = store.Store(tmp_path).rows()
    assert list(found) == [*rows.COLUMNS, *GRID.grid]
    keys = list(zip(*(found[name] for name in rows.key(GRID.grid)), strict=True))
    assert keys == sorted(set(keys))
    assert len(keys) == 24
    assert keys[0] == ("power", "hw", 1, 1, 10)
    plans = set(zip(found["seed"], found["plan_hash"], strict=True))
    assert len(plans) == 3  # One plan for each seed, whatever the settings.
    alone = run_row(POWER.scenarios[0].with_settings({"min.insync.replicas": 1, **FLUSHED}), "hw", 10)
    assert {**alone, "min.insync.replicas": 1, **FLUSHED} == {name: values[0] for name, values in found.items()}


def test_a_grid_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="enough"):
        run_sweep(GRID, tmp_path / "a", Here(failing_in(1, InputError("enough"))), chunks=1)
    whole = run_sweep(GRID, tmp_path / "a", Here(), chunks=3)
    assert (whole["complete"], whole["runs"]) == (True, 24)
    run_sweep(GRID, tmp_path / "b", Here(), chunks=1)
    assert store.Store(tmp_path / "a").rows() == store.Store(tmp_path / "b").rows()
    turned = {key: GRID.grid[key] for key in reversed(list(GRID.grid))}
    with pytest.raises(InputError, match=r"grid min.*: 1, never there, log.*: 1, 2 now"):
        run_sweep(replace(GRID, grid=turned), tmp_path / "a", Here(), chunks=1)
    with pytest.raises(InputError, match=r"grid min.insync.replicas: 1, 2; .* there, none now"):
        run_sweep(replace(GRID, grid={}), tmp_path / "a", Here(), chunks=1)


@pytest.mark.parametrize(("first", "end"), [(3, 3), (4, 3), (-1, 3), (0, 2**63 + 1)])
def test_seeds_that_are_no_range_are_refused(first: int, end: int) -> None:
    with pytest.raises(InputError, match=f"seeds {first}..{end}"):
        named.sweep((load("canary"),), {"canary": ("hw",)}, first, end)


@pytest.mark.world
def test_rows_do_not_depend_on_processes_and_chunks(tmp_path: Path) -> None:
    run_sweep(POWER, tmp_path / "here", Here(), chunks=1)
    run_sweep(POWER, tmp_path / "chunks", Here(), chunks=3)
    run_sweep(POWER, tmp_path / "two", LocalBackend(2))
    expected = store.Store(tmp_path / "here").rows()
    assert len(expected["seed"]) == 24
    assert store.Store(tmp_path / "chunks").rows() == store.Store(tmp_path / "two").rows() == expected


def test_progress_counts_what_was_done_before(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="enough"):
        run_sweep(CANARY, tmp_path, Here(failing_in(1, InputError("enough"))), chunks=1)
    seen: list[Progress] = []
    run_sweep(CANARY, tmp_path, Here(), chunks=1, report=seen.append)
    assert (seen[0].done, seen[0].violations["committed-loss"], seen[0].errors) == (10, 10, 0)
    assert (seen[-1].done, seen[-1].violations["committed-loss"], seen[-1].errors) == (40, 40, 0)


def test_progress_never_goes_back(tmp_path: Path) -> None:
    """Two waves are on their way at once, chunks of one are longer than those of the other, and tasks stop early."""

    class Two(Here):
        def run_waves(
            self,
            sweep: str,
            folder: Folder,
            plans: Iterator[WavePlan],
            tick: Callable[[Iterable[tuple[WavePlan, int]]], None],
        ) -> Iterator[WavePlan]:
            first = next(plans)
            tick([(first, 3)])
            second = next(plans, None)
            for done in (0, 1):
                tick([(first, 3), *([] if second is None else [(second, done)])])
            for plan in filter(None, (first, second)):
                for index, chunk in enumerate(plan.chunks):
                    early = chunk if plan is second else [(variant, begin, begin + 1) for variant, begin, _ in chunk]
                    parts.write_part(folder, plan.wave, index, list(units.rows_of(sweep, early)))
                yield plan

    def report(progress: Progress) -> None:
        seen.append(progress.done)

    seen: list[int] = []
    whole = run_whole_sweep(replace(CANARY, end_seed=35), tmp_path, Two(), chunks=4, wave_units=20, report=report)
    assert seen[:4] == [0, 15, 15, 19]  # Three of four chunks of 20 runs, and one of four of 15.
    assert seen == sorted(seen)
    assert (whole["runs"], seen[-1]) == (35, 35)


def test_no_memory_stops_a_sweep_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="out of memory; with fewer processes, finished waves are kept"):
        run_sweep(CANARY, tmp_path, Here(failing_in(2, MemoryError())))
    assert (read_summary(tmp_path)["exit_code"], read_summary(tmp_path)["runs"]) == (69, 20)


@pytest.mark.parametrize(("number", "words"), [(errno.EMFILE, "Too many open files"), (errno.EFBIG, "File too large")])
def test_an_error_of_the_system_names_the_folder(tmp_path: Path, number: int, words: str) -> None:
    with pytest.raises(OSError, match=words) as caught:
        run_sweep(CANARY, tmp_path, Here(failing_in(1, OSError(number, words))))
    assert caught.value.filename == str(tmp_path)


@pytest.mark.parametrize(
    ("error", "code"),
    [(InputError("no"), 2), (RuntimeError("bug"), 70), (KeyboardInterrupt(), 130), (Interrupted(), 130)],
)
def test_a_stopped_sweep_goes_on(tmp_path: Path, error: BaseException, code: int) -> None:
    with pytest.raises(type(error)):
        run_sweep(CANARY, tmp_path, Here(failing_in(2, error)), chunks=3)
    partial = read_summary(tmp_path)
    assert (partial["complete"], partial["exit_code"], partial["runs"], partial["runs_asked"]) == (False, code, 20, 40)
    assert len((tmp_path / "violations.jsonl").read_text().splitlines()) == 20
    rest = Here()
    # Other chunks and waves: the layout decides nothing.
    whole = run_whole_sweep(CANARY, tmp_path, rest, chunks=2, wave_units=15)
    assert [plan.chunks for plan in rest.waves] == [[((0, 20, 27),), ((0, 27, 35),)], [((0, 35, 37),), ((0, 37, 40),)]]
    assert (whole["complete"], whole["exit_code"], whole["runs"]) == (True, 0, 40)
    assert store.Store(tmp_path).rows(["seed"])["seed"] == list(range(40))


def test_a_complete_sweep_needs_no_backend(tmp_path: Path) -> None:
    first = run_sweep(CANARY, tmp_path, Here(), chunks=1)
    again = Here(failing_in(0, AssertionError()))
    assert run_sweep(CANARY, tmp_path, again, chunks=1) == first == read_summary(tmp_path)
    assert not again.waves


def test_another_sweep_is_refused(tmp_path: Path) -> None:
    run_sweep(CANARY, tmp_path, Here(), chunks=1)
    with pytest.raises(InputError, match=r"scenarios canary there, power now"):
        run_sweep(POWER, tmp_path, Here(), chunks=1)
    assert read_summary(tmp_path)["complete"]


def test_a_sweep_that_nobody_can_read_is_refused(tmp_path: Path) -> None:
    store.write_json(open_folder(tmp_path), "run.json", {"scenarios": [{}]})
    with pytest.raises(InputError, match=r"run.json: 'seeds' is missing"):
        run_sweep(CANARY, tmp_path, Here())


def test_more_seeds_extend_a_sweep(tmp_path: Path) -> None:
    run_sweep(CANARY, tmp_path, Here(), chunks=1)
    more, apart = Here(), Here()
    assert run_sweep(replace(CANARY, end_seed=50), tmp_path, more)["runs"] == 50
    run = [piece for plan in more.waves for chunk in plan.chunks for piece in chunk]
    assert [seed for _, first, end in run for seed in range(first, end)] == [*range(40, 50)]
    whole = run_sweep(replace(CANARY, first_seed=100, end_seed=110), tmp_path, apart)
    assert (whole["runs"], whole["runs_asked"], whole["complete"]) == (60, 60, True)
    assert store.Store(tmp_path).run["seeds"] == [[0, 50], [100, 110]]
    assert store.Store(tmp_path).rows(["seed"])["seed"] == [*range(50), *range(100, 110)]
    # The first range again: nothing is left to do of it.
    assert run_sweep(CANARY, tmp_path, Here(failing_in(0, AssertionError())))["runs"] == 60


def test_the_last_seeds_can_be_read_again(tmp_path: Path) -> None:
    last = replace(CANARY, first_seed=2**63 - 2, end_seed=2**63 - 1)
    run_sweep(last, tmp_path, Here())
    assert run_sweep(replace(last, end_seed=2**63), tmp_path, Here())["complete"]
    assert store.Store(tmp_path).rows(["seed"])["seed"] == [2**63 - 2, 2**63 - 1]


def test_an_incomplete_range_beside_a_complete_one_is_not_forgotten(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="enough"):
        run_sweep(replace(CANARY, end_seed=80), tmp_path, Here(failing_in(5, InputError("enough"))))
    whole = run_sweep(CANARY, tmp_path, Here())
    assert (whole["complete"], whole["runs"], whole["runs_asked"]) == (False, 50, 80)


def test_remains_of_a_dead_driver_are_cleared_away(tmp_path: Path) -> None:
    run_sweep(CANARY, tmp_path, Here(), chunks=1)
    folder = open_folder(tmp_path)
    parts.write_part(folder, "wave=0badc0de-00000", 0, [])
    parts.write_part(folder, "wave=0badcafe-00000", 0, [])
    dead = claim.Owner("elsewhere", "", 1, "1", "2026-01-01T00:00:00Z")
    folder.write("claims/0badc0de.json", json.dumps({"state": "working", **asdict(dead)}).encode(), CLAIM_START)
    os.utime(tmp_path / "claims" / "0badc0de.json", (0, 0))
    run_sweep(replace(CANARY, end_seed=50), tmp_path, Here())
    left = {path.parent.name for path in tmp_path.rglob("part-*")}
    assert "wave=0badc0de-00000" not in left
    assert "wave=0badcafe-00000" in left  # Of nobody known: `highwater doctor` names it.
    assert not (tmp_path / "claims").exists()


def test_a_second_driver_says_who_is_at_work(tmp_path: Path) -> None:
    def second(wave: int) -> None:
        if wave == 2:
            with pytest.raises(UnavailableError, match=rf"another driver is at work \(process {os.getpid()} on "):
                run_sweep(CANARY, tmp_path, Here())

    assert run_sweep(CANARY, tmp_path, Here(second))["complete"]


def test_a_driver_whose_claim_was_taken_stops(tmp_path: Path) -> None:
    def take(wave: int) -> None:
        if wave == 2:
            folder = open_folder(tmp_path)
            claim.take_over(folder, [name for name, *_ in claim.others(folder)])
            assert run_sweep(CANARY, tmp_path, Here())["complete"]

    with pytest.raises(UnavailableError, match="another driver has taken over"):
        run_sweep(CANARY, tmp_path, Here(take))
    assert store.Store(tmp_path).rows(["seed"])["seed"] == list(range(40))
    # What the other one has written stays.
    assert (read_summary(tmp_path)["complete"], read_summary(tmp_path)["runs"]) == (True, 40)


def test_a_driver_that_stood_still_finds_out_why_its_parts_are_gone(tmp_path: Path) -> None:
    """Whoever takes over removes what does not count; the parts are missed before the claim is looked at."""

    class Stopped(Here):
        def run_waves(
            self,
            sweep: str,
            folder: Folder,
            plans: Iterator[WavePlan],
            tick: Callable[[Iterable[tuple[WavePlan, int]]], None],
        ) -> Iterator[WavePlan]:
            for plan in super().run_waves(sweep, folder, plans, tick):
                claim.take_over(folder, [name for name, *_ in claim.others(folder)])
                shutil.rmtree(tmp_path / "results" / plan.wave)
                yield plan

    with pytest.raises(UnavailableError, match="another driver has taken over"):
        run_sweep(CANARY, tmp_path, Stopped())


class Copied(Here):
    """Keeps the seeds of each wave that it was given; raises in one of them."""

    def __init__(self, kept: dict[str, set[int]], failing: int = -1) -> None:
        super().__init__()
        self.copies = self
        self.kept = kept
        self.failing = failing
        self.told: list[tuple[str, bool]] = []

    def copy(self, folder: Folder, wave: str, grid: Sequence[str], *, again: bool) -> None:
        self.told.append((wave, again))
        if len(self.told) == self.failing:
            raise StorageError("the table is full")
        files = [file for file in folder.files(parts.wave_path(wave)) if parts.is_part(file.rpartition("/")[2])]
        tables = [pq.read_table(io.BytesIO(folder.read(file))) for file in files]
        assert wave not in self.kept or again
        self.kept[wave] = {int(seed) for table in tables for seed in table["seed"].to_numpy()}


def test_each_wave_is_copied_once_it_counts_and_again_by_a_driver_that_resumes(tmp_path: Path) -> None:
    kept: dict[str, set[int]] = {}
    with pytest.raises(StorageError, match="the table is full"):
        run_sweep(CANARY, tmp_path, Copied(kept, failing=3), chunks=1)
    assert len(kept) == 2
    assert len(store.Store(tmp_path).waves) == 3
    resumed = Copied(kept)
    run_sweep(CANARY, tmp_path, resumed, chunks=1)
    assert [again for _, again in resumed.told] == [True, True, True, False]
    assert sorted(seed for seeds in kept.values() for seed in seeds) == list(range(40))
    over = Copied(kept)
    assert run_sweep(CANARY, tmp_path, over)["complete"]
    assert [again for _, again in over.told] == [True] * 4


def test_seeds_of_a_damaged_wave_may_have_been_copied_when_they_run_again(tmp_path: Path) -> None:
    kept: dict[str, set[int]] = {}
    run_sweep(CANARY, tmp_path, Copied(kept), chunks=1)
    next(tmp_path.glob("results/*/part-*")).write_bytes(b"PAR1 torn")
    resumed = Copied(kept)
    run_sweep(CANARY, tmp_path, resumed, chunks=1)
    assert [again for _, again in resumed.told] == [True] * 4


@pytest.mark.world
def test_two_drivers_that_do_the_same_do_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without claims, each believing to be alone."""
    monkeypatch.setattr(claim, "others", lambda *_: [])

    def second(wave: int) -> None:
        if wave == 1:
            run_whole_sweep(CANARY, tmp_path, Here(), chunks=2, wave_units=7)

    run_sweep(CANARY, tmp_path, Here(second))
    alone = tmp_path / "alone"
    run_sweep(CANARY, alone, Here())
    assert store.Store(tmp_path).rows() == store.Store(alone).rows()
    assert run_sweep(CANARY, tmp_path, Here())["runs"] == 40


def test_unwritable_output_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    class Unwritable(Here):
        def start(self, folder: Folder, poll: Callable[[], None]) -> int:
            raise InputError("Spark cannot write")

    output = tmp_path / "a" / "b"
    with pytest.raises(InputError, match="Spark cannot write"):
        run_sweep(CANARY, output, Unwritable())
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot write to"):
        run_sweep(CANARY, tmp_path / "file" / "b", Here())
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_between_ticks(tmp_path: Path, number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Interrupted):
        run_sweep(CANARY, tmp_path, Here(lambda wave: os.kill(os.getpid(), number) if wave == 1 else None), chunks=1)
    assert signal.getsignal(number) is before
    assert read_summary(tmp_path)["exit_code"] == 130
    assert len(store.Store(tmp_path).rows(["seed"])["seed"]) == 10


def test_a_full_disk_keeps_what_is_done(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(StorageError, match=r"no space left for .*: finished waves are kept"):
        run_sweep(CANARY, tmp_path, Here(failing_in(3, full)), chunks=1)
    assert read_summary(tmp_path)["runs"] == 30


def test_keys_that_occur_twice_are_noticed(tmp_path: Path) -> None:
    class Twice(Here):
        def run_waves(
            self,
            sweep: str,
            folder: Folder,
            plans: Iterator[WavePlan],
            tick: Callable[[Iterable[tuple[WavePlan, int]]], None],
        ) -> Iterator[WavePlan]:
            for plan in super().run_waves(sweep, folder, plans, tick):
                parts.write_part(folder, plan.wave, 9, list(units.rows_of(sweep, plan.chunks[0])))
                yield plan

    with pytest.raises(RuntimeError, match=r"rows of canary/hw are missing or duplicate"):
        run_sweep(CANARY, tmp_path, Twice(), chunks=2)
    assert read_summary(tmp_path)["exit_code"] == 70
    assert not read_summary(tmp_path)["complete"]


def test_a_part_that_a_task_left_torn_does_not_count(tmp_path: Path) -> None:
    class Torn(Here):
        def run_waves(
            self,
            sweep: str,
            folder: Folder,
            plans: Iterator[WavePlan],
            tick: Callable[[Iterable[tuple[WavePlan, int]]], None],
        ) -> Iterator[WavePlan]:
            for plan in super().run_waves(sweep, folder, plans, tick):
                if len(self.waves) == 3:
                    (part,) = tmp_path.glob(f"results/{plan.wave}/part-*.parquet")
                    part.write_bytes(part.read_bytes()[:-9])
                yield plan

    with pytest.raises(DamageError, match="is no whole Parquet file") as raised:
        run_sweep(CANARY, tmp_path, Torn(), chunks=1)
    assert raised.value.exit_code == StorageError.exit_code
    assert store.Store(tmp_path).rows(["seed"])["seed"] == list(range(20))
    assert run_sweep(CANARY, tmp_path, Here())["runs"] == 40


def kill_a_worker() -> None:
    for process in multiprocessing.active_children()[:1]:
        process.kill()


@pytest.mark.world
def test_a_killed_worker_costs_nothing(tmp_path: Path) -> None:
    kills = iter([kill_a_worker, kill_a_worker])

    def report(_: Progress) -> None:
        if multiprocessing.active_children():
            next(kills, lambda: None)()

    whole = run_sweep(POWER, tmp_path, LocalBackend(2), chunks=4, report=report)
    assert whole["complete"]
    assert next(kills, None) is None


@pytest.mark.world
def test_workers_that_are_always_killed_end_the_sweep(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=f"worker processes were killed {TRIES} times"):
        run_sweep(POWER, tmp_path, LocalBackend(1), chunks=1, report=lambda _: kill_a_worker())
    assert not read_summary(tmp_path)["complete"]


DRIVER = """
import multiprocessing, sys
from pathlib import Path
from scenarios.format.catalogue import load
from scenarios.sweep.local import LocalBackend
from scenarios.sweep.driver import run_sweep
from tests import named

def report(_):
    print(*(process.pid for process in multiprocessing.active_children()), flush=True)

sweep = named.sweep((load("power"),), {"power": ("hw", "kip101")}, 0, 50)
run_sweep(sweep, Path(sys.argv[1]), LocalBackend(2), chunks=5, wave_units=10, report=report)
"""
"""A script as users of the library write them: no process may run it again."""


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.world
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at other processes in /proc")
def test_workers_end_with_a_killed_driver_and_the_sweep_goes_on(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    output = tmp_path / "output"
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    with subprocess.Popen(
        [sys.executable, script, output], stdout=subprocess.PIPE, text=True, env=environment
    ) as driver:
        assert driver.stdout is not None
        workers: list[int] = []
        while not (list(output.glob("results/*/_MANIFEST.json")) and workers):
            workers = [int(word) for word in driver.stdout.readline().split()]
        driver.kill()
    deadline = time.monotonic() + 10
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, workers))
    sweep = named.sweep((load("power"),), {"power": ("hw", "kip101")}, 0, 50)
    assert run_sweep(sweep, output, Here(), chunks=3)["runs"] == 100


def row(mode: str = "hw", **changes: Any) -> dict[str, Any]:
    plain = {"verdict": "ok", "expected": True, "inside": True, "violations": "", "violations_inside": ""}
    unknown = {"inside_unclean": -1, "inside_lossy": -1}
    same = {"vacuous": False, "warnings": "", "count_all": 10}
    return {"scenario": "power", "mode": mode, **same, **plain, **unknown, **changes}


def table(groups: list[dict[str, Any]]) -> pa.Table:
    """Rows of which `count_all` say how many there are, with what the groups leave open."""
    whole = run_row(load("canary"), "hw", 0)
    rows = []
    for group in groups:
        same = {name: value for name, value in group.items() if name != "count_all"}
        rows += [{**whole, "coverage": "", "rounds_1": 0, "rounds_2": 0, "rounds_more": 0, **same}] * group["count_all"]
    return pa.Table.from_pylist(rows, parts.schema())


LOST = {"verdict": "violation", "violations": "committed-loss,divergence", "violations_inside": "divergence"}


@pytest.mark.parametrize(
    ("expect", "groups", "code"),
    [
        ("may-violate", [row(), row(**LOST)], 0),
        ("violates", [row()], 1),
        ("violates", [row(), row(**LOST)], 0),
        ("clean", [row(**LOST, expected=False)], 1),
        ("may-violate", [row(), row("kip101", verdict="error", expected=False, vacuous=True)], 70),
        ("may-violate", [row(), row(verdict="error", expected=False, error=f"{rows.STORY_ERROR}no step")], 1),
        (
            "may-violate",
            [row(), row(verdict="error", expected=False, error="KeyError: 1 (plug-in, a.py:1 in f: x)")],
            1,
        ),
        ("may-violate", [row(count_all=189), row(vacuous=True, count_all=10)], 3),
        ("may-violate", [row(count_all=190), row(vacuous=True, count_all=10)], 0),
        ("violates", [row(vacuous=True)], 1),
        ("may-violate", [row(count_all=198), row(verdict="exhausted", count_all=2)], 0),
        ("may-violate", [row(count_all=197), row(verdict="exhausted", count_all=2)], 3),
        ("clean", [row(count_all=998), row(**LOST | {"verdict": "exhausted"}, expected=False, count_all=2)], 1),
        ("violates", [row(count_all=999), row(verdict="exhausted", count_all=1)], 3),
        ("violates", [row(count_all=999), row(**LOST | {"verdict": "exhausted"}, count_all=1)], 0),
    ],
)
def test_exit_codes(
    expect: str, groups: list[dict[str, Any]], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expectation = Expectation(expect, ("divergence",) if expect == "violates" else ())
    monkeypatch.setattr(summary, "_expectation", lambda _scenario, mode: expectation)
    modes = tuple(dict.fromkeys(group["mode"] for group in groups))
    counted = summary.SweepSummary(named.sweep((load("power"),), {"power": modes}, 0, 100))
    counted.add(table(groups))
    assert counted.exit_code() == code
    assert bool(counted.inconclusive()) or code != 3


@pytest.mark.parametrize(
    ("groups", "reason"),
    [
        ([row(count_all=189), row(vacuous=True, count_all=10)], "10 of 199 runs are vacuous, more than 5 %"),
        (
            [row(count_all=197), row(verdict="exhausted", count_all=2)],
            "2 of 199 runs are exhausted, more than 1 %",
        ),
    ],
)
def test_an_inconclusive_sweep_says_why(groups: list[dict[str, Any]], reason: str) -> None:
    counted = summary.SweepSummary(named.sweep((load("power"),), {"power": ("hw",)}, 0, 100))
    counted.add(table(groups))
    (said,) = counted.to_json()["inconclusive"]
    assert said.startswith(f"power: {reason}")


def test_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = row(**LOST, inside=False, inside_unclean=1, warnings="leader-incomplete,log-mismatch")
    counted = summary.SweepSummary(named.sweep((load("power"),), {"power": ("hw",)}, 0, 100))
    counted.add(table([row(count_all=9), row(count_all=1, rounds_1=7, rounds_2=1), lost]))
    assert counted.to_json()["results"] == [
        {
            "scenario": "power",
            "mode": "hw",
            "settings": {},
            "runs": 20,
            "verdicts": {"ok": 10, "violation": 10, "stalled": 0, "error": 0, "exhausted": 0},
            "kinds": {
                "committed-loss": {"n": 10, "inside": 0, "rate": 0.5, "runs_inside_share": 0.5},
                "divergence": {"n": 10, "inside": 10, "rate": 0.5, "runs_inside_share": 0.5},
            },
            "warnings": {"leader-incomplete": 10, "log-mismatch": 10},
            "rounds": {"1": 7, "2": 1, "more": 0},
            "inside": 10,
            "inside_share": 0.5,
            "inside_unclean": 10,
            "inside_lossy": None,
            "vacuous": 0,
            "unexpected": 0,
            "reused": 0,
            "expectation": "may-violate",
            "met": True,
        }
    ]


def test_runs_that_ended_with_an_error_are_in_no_rate() -> None:
    failed = row(**{**LOST, "verdict": "error"}, expected=False, vacuous=True, count_all=5)
    counted = summary.SweepSummary(named.sweep((load("power"),), {"power": ("hw",)}, 0, 100))
    counted.add(table([row(count_all=9), row(**LOST, inside=False, count_all=1), failed]))
    (found,) = counted.to_json()["results"]
    assert (found["runs"], found["verdicts"]["error"], found["unexpected"]) == (15, 5, 5)
    assert found["kinds"]["divergence"] == {"n": 1, "inside": 1, "rate": 0.1, "runs_inside_share": 0.9}
    assert (found["inside"], found["inside_share"], found["vacuous"]) == (9, 0.9, 0)


def test_the_list_of_failing_runs_is_capped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "FAILING_MAX", 15)
    whole = run_sweep(CANARY, tmp_path, Here(), chunks=1)
    lines = [json.loads(line) for line in (tmp_path / "violations.jsonl").read_text().splitlines()]
    assert (whole["failing"], whole["failing_listed"], whole["failing_capped"]) == (40, 15, True)
    assert [line["seed"] for line in lines] == list(range(15))
    assert lines[0]["kinds"] == ["committed-loss"]
    assert lines[0]["replay"].startswith("highwater replay canary --mode hw --seed 0 ")


@pytest.mark.parametrize(
    ("expect", "groups", "met"),
    [
        ("clean", [row(verdict="exhausted")], None),
        ("clean", [row(verdict="exhausted"), row()], True),
        ("violates", [row(verdict="exhausted"), row()], None),
        ("violates", [row(verdict="exhausted"), row(**LOST)], True),
        ("clean", [row(verdict="exhausted", expected=False), row()], False),
    ],
)
def test_exhausted_runs_leave_an_expectation_open(
    expect: str, groups: list[dict[str, Any]], met: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expectation = Expectation(expect, ("divergence",) if expect == "violates" else ())
    monkeypatch.setattr(summary, "_expectation", lambda _scenario, mode: expectation)
    counted = summary.SweepSummary(named.sweep((load("power"),), {"power": ("hw",)}, 0, 100))
    counted.add(table(groups))
    (found,) = counted.to_json()["results"]
    assert (found["runs"], found["verdicts"]["exhausted"], found["met"]) == (10 * len(groups), 10, met)


@pytest.mark.parametrize(("seconds", "build", "said"), [(70.0, "plain", 1), (50.0, "plain", 0), (70.0, "compiled", 0)])
def test_a_long_sweep_on_the_plain_build_is_told_what_would_halve_it(
    seconds: float, build: str, said: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_pilot_seconds", lambda *_: seconds)
    monkeypatch.setattr(sweep, "build", lambda: build)
    notices: list[str] = []
    ten_runs = named.sweep((load("canary"),), {"canary": ("hw",)}, 0, 10)
    run_sweep(ten_runs, tmp_path, Here(), note=notices.append)
    assert len(notices) == said
    assert all(text.startswith("this takes some 12 minutes with the plain build") for text in notices)
    assert "\n" not in "".join(notices)


def test_starting_spark_is_told_before_it_starts(tmp_path: Path) -> None:
    class Spark(Here):
        name = "spark"

        def start(self, folder: Folder, poll: Callable[[], None]) -> int:
            assert notices == ["starting Spark, which may take a minute"]
            return super().start(folder, poll)

    notices: list[str] = []
    ten_runs = named.sweep((load("canary"),), {"canary": ("hw",)}, 0, 10)
    assert run_sweep(ten_runs, tmp_path, Spark(), note=notices.append)["complete"]
    assert len(notices) == 1
