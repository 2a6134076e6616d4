"""Parts: files with the rows of a chunk.

A worker process imports this module instead of `scenarios.sweep.store`, without the imports for reading, and starts in
three quarters of the time.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from scenarios.single import rows as row_columns
from scenarios.single.rows import COLUMNS, ROWS_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scenarios.single.rows import Row
    from scenarios.sweep.folder import Folder

VERSION_KEY: Final = "highwater.schema_version"
RESULTS: Final = "results"
PARQUET: Final = b"PAR1"
"""First and last bytes of a Parquet file."""
PARQUET_START: Final = re.compile(rb"\A" + PARQUET)
_ARROW_TYPES: Final[dict[str, pa.DataType]] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
}


def schema(grid: Iterable[str] = ()) -> pa.Schema:
    """The Arrow schema of rows."""
    return fields_of(row_columns.names(grid)).with_metadata({VERSION_KEY: str(ROWS_VERSION)})


def fields_of(names: Iterable[str]) -> pa.Schema:
    """The Arrow schema of some columns."""
    return pa.schema([(name, _ARROW_TYPES[row_columns.type_of(name)]) for name in names])


def wave_path(wave: str) -> str:
    """Path of a wave's folder."""
    return f"{RESULTS}/{wave}"


def write_part(folder: Folder, wave: str, chunk: int, rows: Sequence[Row]) -> None:
    """Write the rows of a chunk; its name depends on the chunk only, so a retry replaces it."""
    content = io.BytesIO()
    grid = [name for name in rows[0] if name not in COLUMNS] if rows else []
    pq.write_table(pa.Table.from_pylist(list(rows), schema(grid)), content, compression="zstd")
    folder.write(f"{wave_path(wave)}/part-{chunk:05d}.parquet", content.getvalue(), PARQUET_START)


def is_part(name: str) -> bool:
    """Whether a file of a wave contains rows."""
    return name.startswith("part-") and name.endswith(".parquet")
