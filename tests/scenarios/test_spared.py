"""Tests who may still import what is spared."""

from __future__ import annotations

import subprocess
import sys

import pytest


def outcome(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


@pytest.mark.world
def test_pyarrow_works_without_pandas_and_numpy_and_others_import_them() -> None:
    code = """
import sys
from scenarios.spared import spare
spare("pandas")
spare("numpy")
import pyarrow as pa
import pyarrow.compute as pc
space = {"pa": pa, "pc": pc, "__package__": "scenarios.sweep"}
exec("rows = pa.table({'a': [1, 2]}).filter(pc.field('a') == 1).to_pylist()", space)
print(space["rows"], sorted({"numpy", "pandas"} & set(sys.modules)))
import pandas
print(pandas.DataFrame({"a": [1]}).shape)
"""
    assert outcome(code) == "[{'a': 1}] []\n(1, 1)"
    spared = code.replace('spare("pandas")\n', "").replace('spare("numpy")\n', "")
    assert outcome(spared) == "[{'a': 1}] ['numpy', 'pandas']\n(1, 1)"  # Else the test above tests nothing.


@pytest.mark.world
def test_spark_is_found_where_pandas_is_spared() -> None:
    """The command line spares pandas; a sweep on Spark needs it to be installed, and no more."""
    code = """
import sys
from scenarios.spared import spare
spare("numpy", "pandas")
from scenarios.sweep.spark import active_session
print(active_session(), "pandas" in sys.modules)
"""
    assert outcome(code) == "None False"
