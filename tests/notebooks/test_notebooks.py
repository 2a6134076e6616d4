"""Each notebook runs from top to bottom, and shows what is kept in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.notebooks.notebooks import NOTEBOOKS, run

if TYPE_CHECKING:
    from pathlib import Path

DRAWN = "image/svg+xml"


def shown(content: dict[str, Any]) -> list[Any]:
    """What cells show, but for the coordinates of plots, which fonts move."""
    outputs = [cell["outputs"] for cell in content["cells"] if cell["cell_type"] == "code"]
    return [
        [
            output["output_type"],
            {k: text for k, text in output.get("data", {}).items() if k != DRAWN},
            output.get("text"),
        ]
        for cell in outputs
        for output in cell
    ]


@pytest.mark.world
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_shows_what_is_kept_in_it(notebook: Path, tmp_path: Path) -> None:
    kept = json.loads(notebook.read_text(encoding="utf-8"))
    assert kept["nbformat"] == 4
    found = run(notebook, tmp_path)
    assert shown(found) == shown(kept), "python -m tests.notebooks runs them anew"
    drawn = [DRAWN in output.get("data", {}) for cell in found["cells"] for output in cell.get("outputs", ())]
    assert any(drawn)


def test_there_are_five_that_pages_name() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == [
        "kip-101",
        "on-spark",
        "one-seed",
        "reading-a-sweep",
        "what-each-bought",
    ]
