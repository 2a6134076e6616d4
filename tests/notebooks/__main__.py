"""``python -m tests.notebooks``: run the notebooks anew, and keep what they show."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.notebooks.notebooks import NOTEBOOKS, run, to_text

if __name__ == "__main__":
    for notebook in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            notebook.write_text(to_text(run(notebook, Path(folder))), encoding="utf-8")
