from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scenarios import rows, store
from scenarios.catalogue import load
from scenarios.grid import points
from scenarios.rows import AVAILABILITY, BY_DAMAGE, COLUMNS, SCHEMA_VERSION, UNKNOWN, Row
from scenarios.run import run_row
from scenarios.scenario import from_json
from scenarios.sweep import Sweep
from scenarios.version import code_version
from sim.config import NEVER
from sim.errors import InputError

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
RUN = {**Sweep((load("canary"),), {"canary": ("hw",)}, 0, 4).to_json(), "code_version": "c0de"}


def rows_of(seeds: range, mode: str = "hw") -> list[Row]:
    return [run_row(load("canary"), mode, seed) for seed in seeds]


def test_code_version_is_that_of_a_zip(tmp_path: Path) -> None:
    archive = tmp_path / "code.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for package in ("sim", "faults", "scenarios"):
            for path in (ROOT / package).rglob("*"):
                if path.suffix in (".py", ".toml"):
                    file.write(path, path.relative_to(ROOT))
    script = "import scenarios.version as v; print(v.__file__, v.code_version())"
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, env={"PYTHONPATH": str(archive)}, cwd=tmp_path, capture_output=True, text=True)
    place, version = done.stdout.split()
    assert place.startswith(str(archive))
    assert version == code_version()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    store.write_atomically(path, b"old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        store.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_same_sweep_finds_its_folder_again(tmp_path: Path) -> None:
    begun = store.begin(tmp_path / "new" / "sweep", {**RUN, "waves": [[0, 4]]})
    # Waves and arguments are those of the first time, whatever today's rule makes of them.
    assert store.begin(tmp_path / "new" / "sweep", {**RUN, "waves": [[0, 2], [2, 4]]}) == begun
    assert begun["waves"] == [[0, 4]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seeds": [0, 5]}, "seeds [0, 4] there, [0, 5] now"),
        ({"rules": {"follower_truncation": "leader-epoch"}}, 'rules {} there, {"follower_truncation"'),
        ({"modes": {"canary": ["hw", "kip101"]}}, 'modes {"canary": ["hw"]} there, {"canary": ["hw", "kip101"]} now'),
        ({"code_version": "f00"}, 'code_version "c0de" there, "f00" now'),
        ({"scenarios": []}, "scenarios canary there,  now"),
        ({"scenarios": [{**RUN["scenarios"][0], "brokers": 5}]}, "scenario 'canary' has changed in brokers"),
    ],
)
def test_another_sweep_is_refused_by_name(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    store.begin(tmp_path, RUN)
    with pytest.raises(InputError) as caught:
        store.begin(tmp_path, {**RUN, **change})
    assert words in str(caught.value)
    assert len(caught.value.problems) == 1


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(InputError, match="is not empty and holds no sweep"):
        store.begin(tmp_path, RUN)
    with pytest.raises(InputError, match="cannot write to"):
        store.begin(tmp_path / "thesis.txt", RUN)


def test_rows_come_back_sorted_whatever_the_chunks(tmp_path: Path) -> None:
    store.begin(tmp_path, RUN)
    expected = rows_of(range(4))
    for wave, chunks in enumerate(([expected[3:]], [expected[:1], expected[1:3]])):
        folder = store.wave_folder(tmp_path, wave)
        store.clear(folder)
        for index, chunk in enumerate(chunks):
            store.write_part(folder, index, chunk)
        store.mark_done(folder)
    # A wave without _SUCCESS does not count.
    store.clear(store.wave_folder(tmp_path, 2))
    store.write_part(store.wave_folder(tmp_path, 2), 0, expected)
    assert store.read_rows(tmp_path) == {name: [row[name] for row in expected] for name in COLUMNS}
    assert list(store.read_rows(tmp_path, ["digest", "seed"])) == ["digest", "seed"]


def test_rows_of_one_scenario() -> None:
    fixture = FIXTURES / "store-v3"
    every, power = store.read_rows(fixture), store.read_rows(fixture, scenario="power")
    place = every["scenario"].index("power")
    assert 0 < place < len(every["seed"])
    assert power == {name: values[place:] for name, values in every.items()}
    assert store.read_rows(fixture, ["seed"], "canary") == {"seed": every["seed"][:place]}


def test_columns_are_plain(tmp_path: Path) -> None:
    folder = tmp_path / "wave=00000"
    store.clear(folder)
    store.write_part(folder, 0, rows_of(range(2)))
    assert store.read([folder]).schema.equals(store.schema())
    assert not any(pa.types.is_dictionary(field.type) for field in store.read([folder]).schema)


def test_newer_versions_are_refused(tmp_path: Path) -> None:
    store.begin(tmp_path, RUN)
    folder = store.wave_folder(tmp_path, 0)
    store.clear(folder)
    metadata = {store.VERSION_KEY: str(SCHEMA_VERSION + 1)}
    pq.write_table(store.schema().empty_table().replace_schema_metadata(metadata), folder / "part-0.parquet")
    store.mark_done(folder)
    with pytest.raises(InputError, match=r"part-0.parquet has schema_version 5; this highwater reads up to 4"):
        store.read_rows(tmp_path)
    text = (tmp_path / "run.json").read_text().replace('"schema_version": 4', '"schema_version": 5')
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match=r"run.json has schema_version 5"):
        store.read_rows(tmp_path)


def test_what_highwater_did_not_write_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*run.json"):
        store.read_rows(tmp_path)
    for text, words in (("{", "is not JSON"), ("[]", "no JSON object"), ("{}", "has no schema_version")):
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(InputError, match=words):
            store.read_run(tmp_path)
    pq.write_table(pa.table({"seed": [1]}), tmp_path / "part-0.parquet")
    with pytest.raises(InputError, match="has no schema_version"):
        store.read([tmp_path])


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_every_version_stays_readable(version: int) -> None:
    fixture = FIXTURES / f"store-v{version}"
    run = store.read_run(fixture)
    assert (run["schema_version"], run["seeds"]) == (version, [0, 3])
    assert [from_json(scenario).name for scenario in run["scenarios"]] == ["canary", "power"]
    found = store.read_rows(fixture)
    grid = store.read_grid(fixture)
    assert list(found) == [*COLUMNS, *grid]
    assert list(zip(*(found[name] for name in rows.key(grid)), strict=True)) == [
        (scenario, mode, *point.values(), seed)
        for scenario in ("canary", "power")
        for mode in sorted(run["modes"][scenario])
        for point in points(grid)
        for seed in range(3)
    ]
    summary = store.read_json(fixture / "summary.json")
    assert summary["complete"]
    assert sum(result["runs"] for result in summary["results"]) == summary["runs"] == len(found["seed"])
    failing = [json.loads(line) for line in (fixture / "violations.jsonl").read_text().splitlines()]
    assert len(failing) == sum(verdict != "ok" for verdict in found["verdict"])
    assert {line["schema_version"] for line in failing} == {version}


def test_columns_that_did_not_exist_in_version_1_are_filled() -> None:
    found = store.read_rows(FIXTURES / "store-v1", ["warnings", "rounds_1"])
    assert {name: set(values) for name, values in found.items()} == {"warnings": {""}, "rounds_1": {0}}


@pytest.mark.parametrize("version", [1, 2])
def test_columns_that_came_with_version_3_are_filled(version: int) -> None:
    found = store.read_rows(FIXTURES / f"store-v{version}", ["window_ms", *AVAILABILITY, "coverage"])
    assert set(found.pop("coverage")) == {""}
    assert {number for numbers in found.values() for number in numbers} == {UNKNOWN}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_columns_that_came_with_version_4_are_filled(version: int) -> None:
    names = [*BY_DAMAGE, "last_standing", "under_min_isr_ms", "acks1_hidden_ms"]
    found = store.read_rows(FIXTURES / f"store-v{version}", names)
    assert {number for numbers in found.values() for number in numbers} == {UNKNOWN}


def test_version_4_tells_modes_with_elr_apart() -> None:
    found = store.read_rows(FIXTURES / "store-v4", ["mode", *BY_DAMAGE, "last_standing"])
    for name in BY_DAMAGE:
        known = [number for mode, number in zip(found["mode"], found[name], strict=True) if mode == "elr"]
        rest = [number for mode, number in zip(found["mode"], found[name], strict=True) if mode != "elr"]
        assert set(known) <= {0, 1}
        assert set(rest) == {UNKNOWN}
    assert min(found["last_standing"]) >= 0


def test_version_3_has_grid_availability_and_coverage() -> None:
    fixture = FIXTURES / "store-v3"
    found = store.read_rows(fixture)
    assert set(found["log.flush.interval.messages"]) == {1, NEVER}
    assert min(found["window_ms"]) > 0
    assert all(min(found[name]) == 0 < max(found[name]) for name in ("hw_wait_ms", "batches_refused"))
    assert all(int(text, 16) for text in found["coverage"])
    assert store.read_json(fixture / "summary.json")["coverage"]["runs"] == {"hw": 12, "kip320": 12}
