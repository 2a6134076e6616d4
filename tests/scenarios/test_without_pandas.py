"""Tests who may still import pandas."""

from __future__ import annotations

import subprocess
import sys


def outcome(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def test_pyarrow_works_without_pandas_and_others_import_it() -> None:
    code = """
import sys
from scenarios.without_pandas import leave_out_pandas
leave_out_pandas()
import pyarrow as pa
import pyarrow.compute as pc
space = {"pa": pa, "pc": pc, "__name__": "scenarios.sweep.store"}
exec("rows = pa.table({'a': [1, 2]}).filter(pc.field('a') == 1).to_pylist()", space)
print(space["rows"], "pandas" in sys.modules)
import pandas
print(pandas.DataFrame({"a": [1]}).shape)
"""
    assert outcome(code) == "[{'a': 1}] False\n(1, 1)"
    # Else this tests nothing.
    assert outcome(code.replace("leave_out_pandas()\n", "")) == "[{'a': 1}] True\n(1, 1)"
