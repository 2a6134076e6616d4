"""The folder that a sweep leaves behind, written so that a killed process never leaves half a file.

``run.json`` says what was asked, ``results/wave=NNNNN/part-*.parquet`` hold the rows, ``_SUCCESS`` marks a wave as
done. Every file carries `SCHEMA_VERSION`; readers take older ones and refuse newer ones.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from scenarios import rows as row_columns
from scenarios.grid import sql_type
from scenarios.rows import AVAILABILITY, BY_DAMAGE, COLUMNS, SCHEMA_VERSION, UNKNOWN, Row
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from scenarios.grid import Grid

VERSION_KEY: Final = "highwater.schema_version"
_SPARK_KEY: Final = b"org.apache.spark.sql.parquet.row.metadata"
_ARROW_TYPES: Final[dict[str, pa.DataType]] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
}

_NEUTRAL: Final = {"string": "", "bigint": 0, "boolean": False, "int": 0}
"""SQL type -> what stands in a column that did not exist when a row was written."""
_UNKNOWN: Final = frozenset({*AVAILABILITY, "window_ms", *BY_DAMAGE, "last_standing"})
"""Columns of numbers of which an older row says nothing, which is not the same as 0."""


def schema(grid: Iterable[str] = ()) -> pa.Schema:
    """`scenarios.rows.columns` for Arrow."""
    fields = [(name, _ARROW_TYPES[kind]) for name, kind in row_columns.columns(grid).items()]
    return pa.schema(fields, metadata={VERSION_KEY: str(SCHEMA_VERSION)})


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that is there as a whole or not at all, also after a power cut."""
    # A leading dot: neither `read` nor Spark takes a forgotten one for data.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write one JSON object, its `schema_version` first."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, **data}, indent=1, ensure_ascii=False)
    write_atomically(path, text.encode() + b"\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote.

    Raises:
        InputError: the file is missing, is no JSON object or is of a newer version.
    """
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path} ({error.strerror}): is {path.parent} the folder of a sweep?") from None
    except ValueError:
        raise InputError(f"{path} is not JSON") from None
    if not isinstance(data, dict):
        raise InputError(f"{path} holds no JSON object")
    _check_version(path, data.get("schema_version"))
    return data


def _check_version(path: Path, version: object) -> None:
    if not isinstance(version, int):
        raise InputError(f"{path} has no schema_version: highwater did not write it")
    if version > SCHEMA_VERSION:
        raise InputError(f"{path} has schema_version {version}; this highwater reads up to {SCHEMA_VERSION}: update it")


def read_run(output: Path) -> dict[str, Any]:
    """``run.json`` of a sweep's folder; raises InputError as `read_json`."""
    return read_json(output / "run.json")


def begin(output: Path, run: Mapping[str, Any]) -> dict[str, Any]:
    """Make the folder of a sweep, or find it again.

    Args:
        output: the folder.
        run: what to put into ``run.json``.

    Returns:
        ``run.json`` as it was written when the sweep began.

    Raises:
        InputError: the folder holds something else (every difference is named), or cannot be made.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        used = [entry.name for entry in output.iterdir() if not entry.name.startswith(".")]
    except OSError as error:
        raise InputError(f"cannot write to {output}: {error.strerror}") from None
    if "run.json" in used:
        if problems := list(_differences(read_run(output), run)):
            raise InputError(*(f"{output} holds another sweep: {problem}" for problem in problems))
    elif used:
        raise InputError(f"{output} is not empty and holds no sweep; name another folder")
    else:
        write_json(output / "run.json", run)
    return read_run(output)


def _differences(there: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    # What JSON has no word for (tuples) must not count as a difference.
    now = json.loads(json.dumps(now))
    for key in ("code_version", "modes", "seeds", "rules", "grid"):
        # As text: the order of keys decides what a unit is.
        before, after = (json.dumps(run.get(key, {})) for run in (there, now))
        if before != after:
            yield f"{key} {before} there, {after} now"
    names = [[scenario["name"] for scenario in run["scenarios"]] for run in (there, now)]
    if names[0] != names[1]:
        yield f"scenarios {', '.join(names[0])} there, {', '.join(names[1])} now"
        return
    for old, new in zip(there["scenarios"], now["scenarios"], strict=True):
        if changed := [key for key in new if old.get(key) != new[key]]:
            yield f"scenario {new['name']!r} has changed in {', '.join(changed)}"


def wave_folder(output: Path, wave: int) -> Path:
    """Where the rows of a wave are."""
    return output / "results" / f"wave={wave:05d}"


def is_done(folder: Path) -> bool:
    """Whether all rows of a wave are there."""
    return (folder / "_SUCCESS").exists()


def mark_done(folder: Path) -> None:
    """Say that all rows of a wave are there (Spark has said so itself, on most platforms)."""
    if not is_done(folder):
        write_atomically(folder / "_SUCCESS", b"")


def clear(folder: Path) -> None:
    """Make an empty wave: parts of an attempt with other chunks would be rows that occur twice."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def write_part(folder: Path, chunk: int, rows: Sequence[Row]) -> None:
    """Write the rows of one chunk; the name depends on the chunk only, so a second try replaces the first."""
    content = io.BytesIO()
    grid = [name for name in rows[0] if name not in COLUMNS] if rows else []
    pq.write_table(pa.Table.from_pylist(list(rows), schema(grid)), content, compression="zstd")
    write_atomically(folder / f"part-{chunk:05d}.parquet", content.getvalue())


def read(folders: Iterable[Path], columns: Sequence[str] | None = None, grid: Sequence[str] = ()) -> pa.Table:
    """Rows of waves in the order of their key.

    Args:
        folders: folders of waves.
        columns: which columns; None: all.
        grid: settings that vary; they are part of the key.

    Raises:
        InputError: a part is of a newer version.
    """
    wanted = list(row_columns.columns(grid)) if columns is None else list(columns)
    key = row_columns.key(grid)
    needed = [*wanted, *(name for name in key if name not in wanted)]
    fields = pa.schema([(name, _ARROW_TYPES[_kind(name)]) for name in needed])
    parts = [_read_part(path, fields) for folder in folders for path in sorted(folder.glob("part-*.parquet"))]
    table = pa.concat_tables([fields.empty_table(), *parts])
    return table.sort_by([(name, "ascending") for name in key]).select(wanted)


def _kind(name: str) -> str:
    """SQL type of a column; what is no column of every row is a setting."""
    return COLUMNS[name] if name in COLUMNS else sql_type(name)


def _read_part(path: Path, schema: pa.Schema) -> pa.Table:
    with pq.ParquetFile(path) as file:
        _check_version(path, _part_version(file.schema_arrow.metadata or {}))
        table = file.read([name for name in schema.names if name in file.schema_arrow.names])
    for name in schema.names:
        if name not in table.column_names:  # A part of an older version.
            value = UNKNOWN if name in _UNKNOWN else _NEUTRAL[_kind(name)]
            table = table.append_column(name, pa.array([value] * len(table), schema.field(name).type))
    # The cast drops what Spark says about columns and would undo dictionary types.
    return table.select(schema.names).cast(schema)


def _part_version(stored: Mapping[bytes, bytes]) -> int | None:
    if version := stored.get(VERSION_KEY.encode()):
        return int(version)
    # Spark writes no key of ours, but it keeps what a column is told.
    fields = json.loads(stored.get(_SPARK_KEY, b"{}")).get("fields", [])
    return next((field["metadata"][VERSION_KEY] for field in fields if VERSION_KEY in field["metadata"]), None)


def done_folders(output: Path) -> list[Path]:
    """Folders of the waves that are done, in order."""
    return [folder for folder in sorted((output / "results").glob("wave=*")) if is_done(folder)]


def read_rows(output: Path, columns: Sequence[str] | None = None, scenario: str | None = None) -> dict[str, list[Any]]:
    """The rows of a sweep as far as it got, sorted by key.

    Args:
        output: folder of the sweep.
        columns: which columns; None: all.
        scenario: only the rows of this one; None: all.

    Returns:
        Column name -> values.

    Raises:
        InputError: `output` holds no sweep, or one of a newer version.
    """
    grid = list(read_grid(output))
    if scenario is None:
        return read(done_folders(output), columns, grid).to_pydict()
    wanted = list(row_columns.columns(grid)) if columns is None else list(columns)
    needed = dict.fromkeys(["scenario", *wanted])
    rows = read(done_folders(output), list(needed), grid).filter(pc.field("scenario") == scenario)
    return rows.select(wanted).to_pydict()


def read_grid(output: Path) -> Grid:
    """The settings that vary in a sweep, with their values; raises InputError as `read_json`."""
    return {key: tuple(values) for key, values in read_run(output).get("grid", {}).items()}


def groups(folder: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Distinct values of `columns` in a wave, each with ``count_all``."""
    return read([folder], columns).group_by(list(columns), use_threads=False).aggregate([([], "count_all")]).to_pylist()


def values(folder: Path, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """What some columns of a wave hold, row by row."""
    found = read([folder], columns)
    return zip(*(found[name].to_pylist() for name in columns), strict=True)


def sums(folder: Path, by: Sequence[str], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Distinct values of `by` in a wave, each with the sums of `columns` under their names."""
    found = read([folder], [*by, *columns]).group_by(list(by), use_threads=False)
    rows = found.aggregate([(name, "sum") for name in columns]).to_pylist()
    return [{name.removesuffix("_sum"): value for name, value in row.items()} for row in rows]


def seed_ranges(output: Path) -> dict[tuple[Any, ...], tuple[int, int, int, int]]:
    """Per scenario, mode and settings that vary: how many rows, how many distinct seeds, smallest and largest."""
    grid = list(read_grid(output))
    key = row_columns.key(grid)
    by = [name for name in key if name != "seed"]
    groups = read(done_folders(output), key, grid).group_by(by)
    found = groups.aggregate([("seed", how) for how in ("count", "count_distinct", "min", "max")]).to_pylist()
    return {
        tuple(row[name] for name in by): (
            row["seed_count"],
            row["seed_count_distinct"],
            row["seed_min"],
            row["seed_max"],
        )
        for row in found
    }


def failing(folder: Path, columns: Sequence[str], grid: Sequence[str] = ()) -> list[Row]:
    """The rows of a wave whose verdict, one of `columns`, is not ``ok``, with the settings that vary; sorted by key."""
    failed: list[Row] = read([folder], [*columns, *grid], grid).filter(pc.field("verdict") != "ok").to_pylist()
    return failed
