from __future__ import annotations

import re

import pytest

from scenarios.single import rows
from scenarios.single.rows import (
    AVAILABILITY,
    BY_DAMAGE,
    COLUMNS,
    KEY,
    OLDEST_VERSION,
    ROUNDS,
    ROWS_VERSION,
    Column,
    ColumnGroup,
)

TYPES = {"string": str, "bigint": int, "int": int, "boolean": bool}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=list(COLUMNS))
def test_a_column_is_declared_in_full(column: Column) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", column.name)
    assert column.type in TYPES
    assert column.meaning
    assert "|" not in column.meaning
    assert column.meaning[-1] != "."
    assert 1 <= column.since <= ROWS_VERSION
    if unit := re.search(r"_(us|ms)$", column.name):
        assert f" in {unit[1]}" in column.meaning
    if column.since > OLDEST_VERSION:
        assert type(column.missing) is TYPES[column.type]
    else:
        assert column.missing is None


def test_no_column_is_declared_twice() -> None:
    parts = (
        rows._columns_of_key(),
        rows._columns_of_outcome(),
        rows._columns_of_events(),
        rows._columns_of_availability(),
    )
    assert len(COLUMNS) == sum(map(len, parts))


def test_groups_list_columns_in_the_order_of_the_row() -> None:
    assert KEY == ("scenario", "mode", "seed")
    assert ROUNDS == ("rounds_1", "rounds_2", "rounds_more")
    assert BY_DAMAGE == ("inside_unclean", "inside_lossy")
    assert {column.group for column in COLUMNS.values()} == {None, *ColumnGroup}
    assert [name for name in COLUMNS if name in AVAILABILITY] == list(AVAILABILITY)


def test_settings_that_vary_are_columns_after_all_others() -> None:
    grid = ["min.insync.replicas", "acks"]
    assert rows.names(grid) == [*COLUMNS, *grid]
    assert rows.key(grid) == ("scenario", "mode", *grid, "seed")
    assert rows.ddl(grid).startswith("`scenario` string, `mode` string, `seed` bigint, ")
    assert rows.ddl(grid).endswith(", `replay` string, `min.insync.replicas` bigint, `acks` string")
