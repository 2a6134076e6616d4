"""Each notebook's code runs from top to bottom on a small sweep."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep") / "store"
    words = ["sweep", "power", "--modes", "hw,kip101", "--seeds", "30..50", "--output", str(folder), "--local", "1"]
    subprocess.run([sys.executable, "-m", "reports.cli", "-q", *words], cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(notebook: Path, store: Path, tmp_path: Path) -> None:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]
    assert content["nbformat"] == 4
    assert cells
    script = tmp_path / "notebook.py"
    script.write_text("\n\n".join(cells), encoding="utf-8")
    environment = {**os.environ, "HIGHWATER_STORE": str(store), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script)], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "highwater replay power --mode hw" in done.stdout
