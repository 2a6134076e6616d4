"""The folder of a sweep, and which of its waves count.

``run.json`` contains the request. ``results/wave=CLAIM-NNNNN/part-*.parquet`` contain the rows; a wave counts by its
manifest alone (`scenarios.sweep.manifest`). Every file carries `ROWS_VERSION`; readers accept
those from `OLDEST_VERSION` on and refuse newer ones.

For the next author. What must hold: no file that counts is ever written again; each driver writes only under the name
of its own claim; a manifest is written last, after the parts were read back, and lists the seeds that the rows contain;
a seed that two waves contain counts once, in the wave that is first by name, and only if that wave is sound; a damaged
wave never counts, and never hides another one. Only files that this program wrote are changed (`ownership`).

What was tried: a lock needs a rename, a conditional write or a clock that object stores lack, and a suspended driver
would still believe that it holds the lock. `pyarrow.dataset` cannot name a damaged part. Names alone do not prove
ownership: a user's ``claims/jan.json`` was once taken for a claim (`DESIGN.md`).

What breaks it: a row that depends on anything but its key, because two waves may then disagree; a reader that lists
parts without their manifest; an order of waves that changes as waves are added. `make hunt-stores` runs two drivers on
one folder and damages stores.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from scenarios.format.grid import Grid
from scenarios.paths import of_os, parse_json
from scenarios.single import rows as row_columns
from scenarios.single.rows import COLUMNS, OLDEST_VERSION, ROWS_VERSION
from scenarios.sweep import manifest, ownership
from scenarios.sweep.extent import Extent, Piece, runs_of
from scenarios.sweep.folder import FileInfo, Folder, open_folder
from scenarios.sweep.manifest import DamageError, Manifest, Part, digest_of
from scenarios.sweep.parts import RESULTS, VERSION_KEY, fields_of, is_part, schema, wave_path
from scenarios.sweep.store_checks import check_run
from scenarios.sweep.units import Sweep, from_run, seed_ranges
from sim import exit_codes
from sim.config import shown
from sim.errors import InputError, did_you_mean
from sim.kernel.streams import SEED_END

IDENTITY: Final = ("scenarios", "plugins", "code_version", "modes", "own_modes", "rules", "grid", "blows")
"""Fields of ``run.json`` that must not change; seeds may be added."""
_SPARK_KEY: Final = b"org.apache.spark.sql.parquet.row.metadata"


class AllDamagedError(InputError):
    """No wave of a sweep can be read, and all its rows are missing."""

    exit_code = exit_codes.INCONCLUSIVE


class StoredRuns(Enum):
    """The runs of a sweep whose rows are read. Rates of the first two are never mixed."""

    SEEDS = 1
    """One run for each seed."""
    BLOWS = 2
    """Runs that continue those with blows (`scenarios.format.blow`)."""
    ALL = 3


def write_json(folder: Folder, name: str, data: Mapping[str, Any]) -> None:
    """Write a JSON object with `schema_version`; raises InputError as `ownership.write`."""
    text = json.dumps({"schema_version": ROWS_VERSION, **data}, indent=1, ensure_ascii=False)
    ownership.write(folder, name, text.encode() + b"\n")


def read_json(folder: Folder, name: str) -> dict[str, Any]:
    """Read a file of `write_json`; raises InputError if it is missing, no JSON object, or of a newer version."""
    path = f"{folder.shown}/{name}"
    try:
        data = parse_json(folder.read(name), SEED_END)  # The end of a range may exceed 64 bits by one.
    except OSError as error:
        raise of_os(error, f"cannot read {path} (is {folder.shown} the folder of a sweep?)") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{path} contains no JSON object")
    _check_version(path, data.get("schema_version"))
    return data


def _check_version(path: str, version: object) -> int:
    if not isinstance(version, int):
        raise InputError(f"{path} has no schema_version: highwater did not write it")
    if version > ROWS_VERSION:
        raise InputError(f"{path} has schema_version {version}; this highwater reads up to {ROWS_VERSION}: update it")
    if version < OLDEST_VERSION:
        raise InputError(f"{path} has schema_version {version}; this highwater reads {OLDEST_VERSION} and later")
    return version


def _changed_modes(there: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The modes of one's own that have changed."""
    for name in sorted({*there, *now}):
        old, new = there.get(name), now.get(name)
        if old is None or new is None:
            yield f"mode {name!r} is {'new' if old is None else 'not asked for now'}"
        elif old != new:
            pairs = {**old, **old["rules"], **old["promise"]}, {**new, **new["rules"], **new["promise"]}
            changed = [
                key for key in pairs[1] if key not in ("rules", "promise") and pairs[0].get(key) != pairs[1][key]
            ]
            yield f"mode {name!r} has changed in {', '.join(changed)}"


def _changed_plugins(there: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*there, *now}):
        if name not in there:
            yield f"plug-in {name} is new"
        elif name not in now:
            yield f"plug-in {name} is not loaded now"
        elif there[name] != now[name]:
            yield f"plug-in {name} has changed"


def differences(there: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The differences that keep two sweeps from sharing a folder, one sentence each; seeds do not count."""
    # Tuples become lists in JSON, which is no difference.
    now = json.loads(json.dumps(now))
    names = [[scenario["name"] for scenario in run["scenarios"]] for run in (there, now)]
    if names[0] != names[1]:  # Modes are by scenario, so they differ as well.
        yield f"scenarios {', '.join(names[0])} there, {', '.join(names[1])} now"
        return
    for key in IDENTITY[1:]:
        # As text: the order of keys numbers the variants.
        before, after = (json.dumps(run.get(key, {})) for run in (there, now))
        if before != after and key == "own_modes":
            yield from _changed_modes(there.get(key, {}), now.get(key, {}))
        elif before != after and key == "plugins":
            yield from _changed_plugins(there.get(key, {}), now.get(key, {}))
        elif key == "code_version" and there.get("plugins", {}) != now.get("plugins", {}):
            continue  # They are part of it.
        elif before != after:
            yield f"{key} {_in_words(there.get(key))} there, {_in_words(now.get(key))} now"
    for old, new in zip(there["scenarios"], now["scenarios"], strict=True):
        if changed := [key for key in {**old, **new} if old.get(key) != new.get(key)]:
            yield f"scenario {new['name']!r} has changed in {', '.join(changed)}"


@dataclass(frozen=True)
class Wave:
    """The counting rows of a wave: those that no earlier wave contains.

    `parts` gives the digest of each file. `beside` are seeds that earlier waves contain.
    """

    folder: Folder
    name: str
    covers: Sequence[Piece]
    parts: Mapping[str, str]
    beside: Extent

    def table(self, sweep: Sweep, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows, in no particular order, with these columns or all.

        Raises:
            DamageError: a part was changed.
            InputError: a part has a newer version.
        """
        wanted = row_columns.names(sweep.grid) if columns is None else list(columns)
        needed = list(dict.fromkeys([*wanted, *row_columns.key(sweep.grid)])) if self.beside else wanted
        fields = fields_of(needed)
        parts = [self._part(name, digest, fields) for name, digest in self.parts.items()]
        found = pa.concat_tables([fields.empty_table(), *parts])
        return self._without_beside(found, sweep).select(wanted) if self.beside else found

    def verify(self) -> None:
        """Read every part; raises DamageError as `table`."""
        for name, digest in self.parts.items():
            self._content(name, digest)

    def _content(self, name: str, digest: str) -> bytes:
        path = f"{wave_path(self.name)}/{name}"
        try:
            content = self.folder.read(path)
        except FileNotFoundError:
            raise DamageError(path, "is missing") from None
        if digest_of(content) != digest:
            raise DamageError(path, "differs from what was written")
        return content

    def _part(self, name: str, digest: str, fields: pa.Schema) -> pa.Table:
        path = f"{wave_path(self.name)}/{name}"
        return parse_part(f"{self.folder.shown}/{path}", path, self._content(name, digest), fields)

    def _without_beside(self, rows: pa.Table, sweep: Sweep) -> pa.Table:
        variants = {key: variant for variant, keys in enumerate(sweep.row_keys()) for key in keys}
        keys = zip(*(rows[name].to_pylist() for name in row_columns.key(sweep.grid)), strict=True)
        mask = [not self.beside.has(variants[tuple(key)], seed) for *key, seed in keys]
        return rows.filter(pa.array(mask, pa.bool_()))


def parse_part(shown: str, path: str, content: bytes, fields: pa.Schema) -> pa.Table:
    """Read some columns of a part, which messages call `shown`; `path` is that in the sweep's folder.

    Raises:
        DamageError: it is no Parquet file, or lacks a column of its version.
        InputError: it has a newer version.
    """
    try:
        with pq.ParquetFile(pa.BufferReader(content)) as file:
            stored = file.schema_arrow
            version = _check_version(shown, _part_version(stored.metadata or {}))
            if lacking := [name for name in fields.names if name not in stored.names and _since(name) <= version]:
                raise DamageError(path, f"has no column {', '.join(lacking)}")
            table = file.read([name for name in fields.names if name in stored.names])
    except (pa.ArrowInvalid, OSError):
        raise DamageError(path, "is no whole Parquet file") from None
    for field in fields:
        if field.name not in stored.names:
            value = pa.scalar(COLUMNS[field.name].missing, field.type)
            table = table.append_column(field, pa.repeat(value, len(table)))
    # The cast drops Spark's column metadata and dictionary types.
    return table.select(fields.names).cast(fields)


def _since(name: str) -> int:
    """The version that introduced a column; 0 for a setting, which every part of its sweep has."""
    return COLUMNS[name].since if name in COLUMNS else 0


def read_back(folder: Folder, wave: str, sweep: Sweep) -> tuple[tuple[Part, ...], pa.Table]:
    """Read the parts that tasks wrote for a wave: parts for the manifest, and all rows."""
    fields = schema(sweep.grid)
    parts, tables = [], [fields.empty_table()]
    for path, entry in folder.files(wave_path(wave)).items():
        name = path.rpartition("/")[2]
        if is_part(name):
            content = folder.read(path)
            tables.append(parse_part(f"{folder.shown}/{path}", path, content, fields))
            parts.append(Part(name, len(tables[-1]), entry.size, digest_of(content)))
    return tuple(parts), pa.concat_tables(tables)


def _part_version(stored: Mapping[bytes, bytes]) -> int | None:
    if version := stored.get(VERSION_KEY.encode()):
        return int(version)
    # Spark does not write our key, but keeps the metadata of columns.
    fields = json.loads(stored.get(_SPARK_KEY, b"{}")).get("fields", [])
    return next((field["metadata"][VERSION_KEY] for field in fields if VERSION_KEY in field["metadata"]), None)


def pieces_in(rows: pa.Table, sweep: Sweep) -> list[Piece]:
    """The seeds of some rows, which have the columns of the key.

    Raises:
        ValueError: a row is duplicate, belongs to another sweep, or lacks its counterpart in another mode.
    """
    if "blow" in rows.column_names:
        rows = rows.filter(pc.field("blow") == "")
    by = [name for name in row_columns.key(sweep.grid) if name != "seed"]
    groups = rows.group_by(by, use_threads=False).aggregate([("seed", "list")]).to_pylist()
    seeds = {tuple(group[name] for name in by): sorted(group["seed_list"]) for group in groups}
    pieces: list[Piece] = []
    for variant, keys in enumerate(sweep.row_keys()):
        found = [seeds.pop(key, []) for key in keys]
        for key, one in zip(keys, found, strict=True):
            if one != found[0] or any(a == b for a, b in pairwise(one)):
                raise ValueError(f"rows of {'/'.join(map(str, key))} are missing or duplicate")
        pieces += [(variant, first, end) for first, end in runs_of(found[0])]
    if seeds:
        raise ValueError(f"rows of {'/'.join(map(str, min(seeds)))} belong to another sweep")
    return pieces


class Store:
    """A snapshot of a sweep's folder; its ``run.json`` is read, unless it is given.

    Attributes:
        sweep: its sweep (from the first to the last of several ranges of seeds).
        scenarios: names of the scenarios whose rows are read (`choose`).
        modes: names of the modes whose rows are read.
        runs: the runs whose rows are read.
        damage: wave -> damage found so far. A damaged wave does not count.
        tell: called with the number of waves that `tables` has given, and that of all.

    Raises:
        InputError: the folder is no sweep's, or of a newer version.
    """

    def __init__(self, folder: Folder | Path | str, run: Mapping[str, Any] | None = None) -> None:
        self.folder = open_folder(folder)
        self.run = check_run(
            f"{self.folder.shown}/run.json", read_json(self.folder, "run.json") if run is None else dict(run)
        )
        try:
            self.sweep = from_run(self.run)
            self.asked = Extent(
                (variant, first, end)
                for variant in range(len(self.sweep.variants))
                for first, end in seed_ranges(self.run)
            )
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise InputError(f"{self.folder.shown}/run.json is not what a sweep wrote: {error!r}") from None
        self.scenarios = list(self.sweep.modes)
        self.modes = self._modes()
        self.runs = StoredRuns.SEEDS
        self._chosen: dict[str, list[str]] = {}
        self.damage: dict[str, DamageError] = {}
        self.tell: Callable[[int, int], None] = lambda _done, _all: None

    def choose(
        self, scenario: str | None = None, modes: Iterable[str] | None = None, runs: StoredRuns = StoredRuns.SEEDS
    ) -> Self:
        """Read only rows of one scenario, of some modes, or of some runs.

        Raises:
            InputError: the sweep has no such scenario or mode.
        """
        if scenario is not None:
            self.scenarios = self._chosen["scenario"] = self._checked("scenario", [scenario], self.scenarios)
            self.modes = self._modes()
        if modes is not None:
            self.modes = self._chosen["mode"] = self._checked("mode", list(modes), self.modes)
        self.runs = runs
        return self

    def _checked(self, what: str, wanted: list[str], there: list[str]) -> list[str]:
        for name in wanted:
            if name not in there:
                raise InputError(f"{self.folder.shown} holds no {what} {name!r}{did_you_mean(name, there)}")
        return [name for name in there if name in wanted]

    def _modes(self) -> list[str]:
        return list(dict.fromkeys(mode.name for name in self.scenarios for mode in self.sweep.modes[name]))

    @property
    def grid(self) -> Grid:
        """The settings that vary, with their values."""
        return self.sweep.grid

    @cached_property
    def waves(self) -> list[Wave]:
        """The waves that count, in an order that does not change as waves are added."""
        files = self.folder.files(RESULTS)
        found = list(self._listed(files))
        counted, overlap = self._counted(found)
        if overlap:
            # A wave may leave shared seeds only to a sound one.
            for wave in counted:
                try:
                    wave.verify()
                except DamageError as error:
                    self.damage[wave.name] = error
            counted, _ = self._counted([one for one in found if one[0] not in self.damage])
        return counted

    def _counted(self, found: Iterable[tuple[str, Sequence[Piece], dict[str, str]]]) -> tuple[list[Wave], bool]:
        """The waves with new seeds, and whether two waves share seeds."""
        counted: list[Wave] = []
        covered = Extent()
        overlap = False
        for name, covers, parts in found:
            new = Extent(covers).minus(covered)
            beside = Extent(covers).minus(new)
            overlap |= bool(beside)
            if new:
                covered = covered.plus(new.pieces())
                counted.append(Wave(self.folder, name, covers, parts, beside))
        return counted, overlap

    def _listed(self, files: Mapping[str, FileInfo]) -> Iterator[tuple[str, Sequence[Piece], dict[str, str]]]:
        for path in files:
            wave, _, name = path.removeprefix(f"{RESULTS}/").partition("/")
            if name == manifest.NAME:
                try:
                    listed = self.manifest(wave, files)
                except DamageError as error:
                    self.damage[wave] = error
                else:
                    yield wave, listed.covers, {part.name: part.digest for part in listed.parts}

    def manifest(self, wave: str, files: Mapping[str, FileInfo]) -> Manifest:
        """The manifest of a wave, with the sizes of its parts compared.

        Raises:
            DamageError: it is no manifest, or another wave's, or a part is missing or has another size.
        """
        path = f"{wave_path(wave)}/{manifest.NAME}"
        try:
            listed = manifest.from_bytes(path, self.folder.read(path))
        except FileNotFoundError:
            raise DamageError(path, "is missing") from None
        if listed.wave != wave:
            raise DamageError(path, f"is of {listed.wave}")
        if any(differences(self.run, listed.run)):
            raise DamageError(path, "is of another sweep")
        for part in listed.parts:
            entry = files.get(f"{wave_path(wave)}/{part.name}")
            if entry is None:
                raise DamageError(f"{wave_path(wave)}/{part.name}", "is missing")
            if entry.size != part.bytes:
                raise DamageError(f"{wave_path(wave)}/{part.name}", f"has {entry.size} bytes in place of {part.bytes}")
        return listed

    @property
    def covered(self) -> Extent:
        """The seeds of the waves that count and were not found damaged."""
        return Extent(piece for wave in self.waves if wave.name not in self.damage for piece in wave.covers)

    @property
    def missing(self) -> Extent:
        """What was asked for and is not there."""
        return self.asked.minus(self.covered)

    def tables(
        self, columns: Sequence[str] | None = None, but: Collection[str] = ()
    ) -> Iterator[tuple[Wave, pa.Table]]:
        """The chosen rows of each wave but some, by name; damaged waves are recorded in `damage` and skipped."""
        needed = columns if columns is None else list(dict.fromkeys([*columns, *self._chosen, "blow"]))
        for done, wave in enumerate(self.waves):
            self.tell(done, len(self.waves))
            if wave.name not in self.damage and wave.name not in but:
                try:
                    table = wave.table(self.sweep, needed)
                except DamageError as error:
                    self.damage[wave.name] = error
                else:
                    for column, names in self._chosen.items():
                        table = table.filter(pc.is_in(table[column], pa.array(names)))
                    if self.runs is not StoredRuns.ALL:
                        is_seed = pc.field("blow") == ""
                        table = table.filter(is_seed if self.runs is StoredRuns.SEEDS else ~is_seed)
                    yield wave, table if columns is None else table.select(list(columns))
                    del table
                    # Arrow keeps what a wave took, which is several times its rows.
                    pa.default_memory_pool().release_unused()

    def table(self, columns: Sequence[str] | None = None, scenario: str | None = None) -> pa.Table:
        """All rows that count, in the order of their key and blows, with these columns or all; raises InputError if a
        part is too new.
        """
        key = (*row_columns.key(self.grid), "warning_us", "variant", "blow")
        wanted = row_columns.names(self.grid) if columns is None else list(columns)
        needed = list(dict.fromkeys([*wanted, *key]))
        parts = [
            table if scenario is None else table.filter(pc.field("scenario") == scenario)
            for _, table in self.tables(needed)
        ]
        fields = fields_of(needed)
        found = pa.concat_tables([fields.empty_table(), *parts])
        return found.sort_by([(name, "ascending") for name in key]).select(wanted)

    def rows(self, columns: Sequence[str] | None = None, scenario: str | None = None) -> dict[str, list[Any]]:
        """`table` as column name -> values."""
        return self.table(columns, scenario).to_pydict()

    def no_rows(self) -> InputError:
        """The error for a store without rows: no wave is done, or all are damaged."""
        torn = [f"{self.folder.shown}: {error}" for error in self.damage.values()]
        if torn:
            repair = f"'highwater doctor {shlex.quote(self.folder.shown)} --repair' runs them again"
            return AllDamagedError(*torn, f"{self.folder.shown} has no rows: its waves are damaged; {repair}")
        return InputError(f"{self.folder.shown} has no rows yet: no wave of its sweep is done")

    def shortcomings(self) -> list[str]:
        """Why the rows are incomplete, one sentence each; empty if they are complete."""
        found = [f"{self.folder.shown}: {error}; the wave does not count" for error in self.damage.values()]
        if missing := self.missing:
            runs, asked = self.sweep.count(missing.pieces()), self.sweep.count(self.asked.pieces())
            found.append(f"{self.folder.shown} is not complete: {runs:,} of {asked:,} runs are missing")
        return found


def _in_words(value: object) -> str:
    """JSON data in a sentence."""
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_in_words(one)}" for key, one in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(_in_words, value)) or "none"
    if isinstance(value, bool | int | str):
        return shown(value)
    return "none" if value is None else str(value)
