"""The table of kinds in faults/README.md is what the kinds declare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import faults
from faults.kind import REPLICAS
from faults.kinds.registry import KINDS

if TYPE_CHECKING:
    from faults.kind import FaultKind

README = Path(faults.__file__).parent / "README.md"
HEAD = ("kind", "strikes", "what a script gives", "how much is drawn", "how long", "needs", "what it does")


def bounds(kind: FaultKind) -> str:
    amount = kind.amount
    if amount is None:
        return ""
    if amount.bounds == REPLICAS:
        drawn = "1 to the number of replicas"
    elif isinstance(amount.bounds, str):
        drawn = f"`{amount.bounds.removesuffix('_us')}{'_ms' if amount.bounds.endswith('_us') else ''}`"
    else:
        drawn = f"{amount.bounds[0]} to {amount.bounds[1]}"
    return f"{drawn} ({amount.unit})"


def row(kind: FaultKind) -> tuple[str, ...]:
    params = ", ".join(f"`{name}`" if param.required else f"[`{name}`]" for name, param in kind.params().items())
    lasts = kind.remains if kind.duration is None else f"`{kind.duration.bounds.removesuffix('_us')}_ms`"
    needs = ", ".join(kind.needs)
    return f"`{kind.name}`", kind.targets.label, params, bounds(kind), lasts, needs, kind.meaning


def table() -> str:
    rows = [HEAD, ("---",) * len(HEAD), *map(row, KINDS.values())]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def test_the_table_is_what_kinds_declare() -> None:
    page = README.read_text(encoding="utf-8")
    lacking = [line for line in table().splitlines(keepends=True) if line not in page]
    assert not lacking, f"the table lacks\n\n{''.join(lacking)}"
    assert table() in page, f"the table has other lines, or another order; it is to be\n\n{table()}"
