"""Keeps pyarrow from importing pandas, which takes longer than all that a sweep of few runs does.

pyarrow imports it when it converts its first value, to see whether the value is a pandas Series.
"""

from __future__ import annotations

import sys
from typing import Final

_IMPORTERS: Final = frozenset({"pyarrow", "sim", "faults", "scenarios", "reports", "highwater"})
"""Packages that do without pandas. pyarrow's compiled parts have no frame: that of their caller is looked at."""


def leave_out_pandas() -> None:
    """Refuse pandas to pyarrow in this process, for good; others, as plug-ins and pyspark, still import it.

    Not for a process of a user of the library, who may want a data frame.
    """
    if not any(isinstance(finder, _Refusal) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Refusal())


class _Refusal:
    """A finder of modules."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002 - a finder's
        if name != "pandas":
            return
        frame = sys._getframe(1)  # noqa: SLF001 - inspect takes a tenth of all imports
        while frame.f_back is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
            frame = frame.f_back
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _IMPORTERS:
            raise ModuleNotFoundError("pandas is left out in this process", name=name)
