from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scenarios.format.catalogue import load
from scenarios.format.grid import points
from scenarios.format.scenario import from_json
from scenarios.single import rows
from scenarios.single.rows import COLUMNS, OLDEST_VERSION, ROWS_VERSION, Row
from scenarios.sweep import parts, store
from scenarios.sweep.driver import run_sweep
from scenarios.sweep.folder import open_folder
from scenarios.sweep.manifest import DamageError
from scenarios.sweep.units import seed_ranges
from scenarios.version import code_version
from sim.errors import InputError
from tests import named
from tests.named import run_row
from tests.places import ROOT
from tests.scenarios.sweep.here import Here

FIXTURES = ROOT / "tests" / "fixtures"
CANARY = named.sweep((load("canary"),), {"canary": ("hw",)}, 0, 4)
RUN = {**CANARY.to_json(), "code_version": "c0de"}


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


def swept(output: Path, end_seed: int = 4, **options: Any) -> Path:
    run_sweep(replace(CANARY, end_seed=end_seed), output, Here(), **options)
    return output


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return swept(tmp_path_factory.mktemp("store") / "expected", wave_units=2, chunks=2)


@pytest.fixture
def output(expected: Path, tmp_path: Path) -> Path:
    shutil.copytree(expected, tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rules": {"follower_truncation": "leader-epoch"}}, "rules none there, follower_truncation: "),
        ({"modes": {"canary": ["hw", "kip101"]}}, "modes canary: hw there, canary: hw, kip101 now"),
        ({"code_version": "f00"}, "code_version c0de there, f00 now"),
        ({"scenarios": []}, "scenarios canary there,  now"),
        ({"scenarios": [{**RUN["scenarios"][0], "brokers": 5}]}, "scenario 'canary' has changed in brokers"),
    ],
)
def test_another_sweep_is_told_by_name(change: dict[str, Any], words: str) -> None:
    (told,) = store.differences(RUN, {**RUN, **change})
    assert words in told


def test_other_seeds_are_the_same_sweep() -> None:
    assert not list(store.differences(RUN, {**RUN, "seeds": [[0, 5]]}))


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(InputError, match="is not empty and contains no sweep"):
        swept(tmp_path)
    with pytest.raises(InputError, match="cannot write to"):
        swept(tmp_path / "thesis.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_rows_come_back_sorted_whatever_the_chunks(output: Path) -> None:
    rows = rows_of(range(4))
    # A wave without a manifest does not count.
    parts.write_part(open_folder(output), "wave=00c0ffee-00000", 0, rows)
    assert store.Store(output).rows() == {name: [row[name] for row in rows] for name in COLUMNS}
    assert list(store.Store(output).rows(["digest", "seed"])) == ["digest", "seed"]


def waves_of(output: Path) -> list[Path]:
    return sorted((output / "results").iterdir())


def test_a_damaged_wave_does_not_count(output: Path) -> None:
    part = waves_of(output)[0] / "part-00001.parquet"
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    found = store.Store(output)
    assert len(found.rows(["seed"])["seed"]) == 2
    damage, missing = found.shortcomings()
    path = part.relative_to(output)
    assert damage == f"{output}: {path} differs from what was written; the wave does not count"
    assert missing == f"{output} is not complete: 2 of 4 runs are missing"


def test_waves_that_overlap_count_once(output: Path, tmp_path: Path) -> None:
    """Two drivers, each believing to be alone, did some seeds both."""
    other = swept(tmp_path / "other", 6, wave_units=3)
    for wave in waves_of(other):
        shutil.copytree(wave, output / "results" / wave.name)
    run = json.loads((output / "run.json").read_text())
    (output / "run.json").write_text(json.dumps({**run, "seeds": [[0, 6]]}))
    found = store.Store(output)
    assert found.rows() == store.Store(other).rows()
    assert not found.missing
    # If the wave that counted is damaged, the other one takes its place.
    damaged = next(wave for wave in found.waves if not wave.beside)
    (output / "results" / damaged.name / next(iter(damaged.parts))).write_bytes(b"")
    again = store.Store(output)
    rows = again.rows(["seed", "digest"])
    assert set(zip(*rows.values(), strict=True)) <= set(
        zip(*store.Store(other).rows(["seed", "digest"]).values(), strict=True)
    )
    assert sorted(rows["seed"]) == [seed for seed in range(6) if again.covered.has(0, seed)]


def test_a_sound_double_takes_the_place_of_a_damaged_wave(output: Path, tmp_path: Path) -> None:
    other = swept(tmp_path / "other", chunks=2, wave_units=2)
    for wave in waves_of(other):
        shutil.copytree(wave, output / "results" / wave.name)
    damaged = store.Store(output).waves[0]
    part = output / "results" / damaged.name / next(iter(damaged.parts))
    part.write_bytes(part.read_bytes()[::-1])
    found = store.Store(output)
    assert found.rows() == store.Store(other).rows()
    assert len(found.shortcomings()) == 1


def test_rows_of_one_scenario() -> None:
    fixture = FIXTURES / "store-v8"
    every, power = store.Store(fixture).rows(), store.Store(fixture).rows(scenario="power")
    place = every["scenario"].index("power")
    assert 0 < place < len(every["seed"])
    assert power == {name: values[place:] for name, values in every.items()}
    assert store.Store(fixture).rows(["seed"], "canary") == {"seed": every["seed"][:place]}


def test_columns_are_plain(output: Path) -> None:
    found = store.Store(output).table()
    assert found.schema.equals(parts.schema())
    assert not any(pa.types.is_dictionary(field.type) for field in found.schema)


def test_newer_versions_are_refused(tmp_path: Path) -> None:
    metadata = {parts.VERSION_KEY: str(ROWS_VERSION + 1)}
    content = io.BytesIO()
    pq.write_table(parts.schema().empty_table().replace_schema_metadata(metadata), content)
    words = f"has schema_version {ROWS_VERSION + 1}; this highwater reads up to {ROWS_VERSION}"
    with pytest.raises(InputError, match=f"part-0.parquet {words}"):
        store.parse_part("out/part-0.parquet", "part-0.parquet", content.getvalue(), parts.schema())
    (tmp_path / "run.json").write_text(json.dumps({**RUN, "schema_version": ROWS_VERSION + 1}))
    with pytest.raises(InputError, match=f"run.json {words}"):
        store.Store(tmp_path).rows()


def test_versions_that_are_too_old_are_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({**RUN, "schema_version": OLDEST_VERSION - 1}))
    words = f"run.json has schema_version {OLDEST_VERSION - 1}; this highwater reads {OLDEST_VERSION} and later"
    with pytest.raises(InputError, match=words):
        store.Store(tmp_path)


def test_file_that_highwater_did_not_write_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*run.json \(is .* the folder of a sweep\?\): No such file"):
        store.Store(tmp_path).rows()
    for text, words in (("{", "is not JSON"), ("[]", "no JSON object"), ("{}", "has no schema_version")):
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(InputError, match=words):
            store.Store(tmp_path)
    content = io.BytesIO()
    pq.write_table(pa.table({"seed": [1]}), content)
    with pytest.raises(InputError, match="has no schema_version"):
        store.parse_part("out/part-0.parquet", "part-0.parquet", content.getvalue(), parts.schema())


@pytest.mark.parametrize("version", range(OLDEST_VERSION, ROWS_VERSION + 1))
def test_every_version_stays_readable(version: int) -> None:
    fixture = FIXTURES / f"store-v{version}"
    whole = store.Store(fixture)
    run = whole.run
    assert (run["schema_version"], seed_ranges(run)) == (version, [(0, 3)])
    assert not whole.shortcomings()
    assert [from_json(scenario).name for scenario in run["scenarios"]] == ["canary", "power"]
    found = whole.rows()
    grid = whole.grid
    assert list(found) == [*COLUMNS, *grid]
    assert list(zip(*(found[name] for name in rows.key(grid)), strict=True)) == [
        (scenario, mode, *point.values(), seed)
        for scenario in ("canary", "power")
        for mode in sorted(run["modes"][scenario])
        for point in points(grid)
        for seed in range(3)
    ]
    summary = store.read_json(whole.folder, "summary.json")
    assert summary["complete"]
    assert sum(result["runs"] for result in summary["results"]) == summary["runs"] == len(found["seed"])
    failing = [json.loads(line) for line in (fixture / "violations.jsonl").read_text().splitlines()]
    assert len(failing) == sum(verdict != "ok" for verdict in found["verdict"])
    assert {line["schema_version"] for line in failing} == {version}


@pytest.mark.parametrize("version", range(OLDEST_VERSION, ROWS_VERSION))
def test_columns_that_came_later_are_filled(version: int) -> None:
    later = {name: column for name, column in COLUMNS.items() if column.since > version}
    found = store.Store(FIXTURES / f"store-v{version}").rows(list(later))
    assert {name: set(values) for name, values in found.items()} == {
        name: {column.missing} for name, column in later.items()
    }


@pytest.mark.parametrize("version", range(OLDEST_VERSION, ROWS_VERSION + 1))
def test_a_version_has_the_columns_that_came_with_it_or_before(version: int) -> None:
    whole = store.Store(FIXTURES / f"store-v{version}")
    for part in (FIXTURES / f"store-v{version}").rglob("*.parquet"):
        known = {name for name, column in COLUMNS.items() if column.since <= version}
        assert set(pq.read_schema(part).names) == {*known, *whole.grid}


def test_a_part_that_lacks_a_column_of_its_version_is_damaged() -> None:
    part, *_ = sorted((FIXTURES / "store-v8").rglob("*.parquet"))
    content = io.BytesIO()
    pq.write_table(pq.read_table(part).drop_columns(["warnings", "digest"]), content)
    with pytest.raises(DamageError, match=r"part-0.parquet has no column warnings, digest"):
        store.parse_part("out/part-0.parquet", "part-0.parquet", content.getvalue(), parts.schema())


def test_version_9_names_the_mode_that_ran() -> None:
    found = store.Store(FIXTURES / "store-v9").rows(["scenario", "mode", "reused"])
    assert set(zip(*found.values(), strict=True)) == {
        ("canary", "kip320", ""),
        ("canary", "kip320-2.6.1", ""),
        ("power", "kip320", ""),
        ("power", "kip320-2.6.1", ""),
        ("power", "kip320-2.6.1", "kip320"),
    }
