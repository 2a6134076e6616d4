"""Running notebooks without Jupyter: each cell's code in order, in one process, with what its last line shows.

What is kept as output is what Jupyter would keep, in the representations that GitHub shows.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any, Final

from tests.places import ROOT

NOTEBOOKS: Final = sorted((ROOT / "notebooks").glob("*.ipynb"))
REPRESENTATIONS: Final = {"image/svg+xml": "_repr_svg_", "text/html": "_repr_html_"}


def run(file: Path, folder: Path) -> dict[str, Any]:
    """The notebook with the outputs of its cells, which were run in a folder; raises what a cell raises."""
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    before = Path.cwd()
    os.chdir(folder)
    try:
        for cell in content["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                cell["execution_count"] = count
                cell["outputs"] = _outputs("".join(cell["source"]), names, count)
    finally:
        os.chdir(before)
    return content


def _outputs(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    said = io.StringIO()
    outputs: list[dict[str, Any]] = []
    with contextlib.redirect_stdout(said):
        exec(compile(tree, "cell", "exec"), names)  # noqa: S102
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last is not None else None  # type: ignore[attr-defined]  # noqa: S307
    if said.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(said.getvalue())})
    if value is not None:
        result = {"data": _data(value), "execution_count": count, "metadata": {}, "output_type": "execute_result"}
        outputs.append(result)
    return outputs


def _data(value: Any) -> dict[str, list[str]]:
    data = {
        kind: _lines(getattr(value, method)()) for kind, method in REPRESENTATIONS.items() if hasattr(value, method)
    }
    if data:
        return {**data, "text/plain": [f"<{type(value).__module__}.{type(value).__name__}>"]}
    return {"text/plain": _lines(repr(value))}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def to_text(content: dict[str, Any]) -> str:
    """The notebook as a file."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
