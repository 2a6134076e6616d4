"""Keeps pyarrow from importing pandas and numpy, which takes longer than all that a sweep of few runs does.

pyarrow imports numpy when it is imported, if numpy is installed, and pandas when it converts its first value, to see
whether the value is a pandas Series. It does without either.
"""

from __future__ import annotations

import sys
from typing import Final

_IMPORTERS: Final = frozenset({"pyarrow", "sim", "faults", "scenarios", "reports", "highwater"})
"""Packages that are refused. pyarrow's compiled parts have no frame: that of their caller is looked at."""


def spare(*packages: str) -> None:
    """Refuse these packages to pyarrow and to this project in this process, for good.

    Plug-ins and pyspark still import them, but pyarrow then converts neither from nor to what they hold: it looks for
    them once. So the process of a library's user, who may want a data frame, must not call this.
    """
    for finder in sys.meta_path:
        if isinstance(finder, _Refusal):
            finder.packages.update(packages)
            return
    sys.meta_path.insert(0, _Refusal(packages))


class _Refusal:
    """A finder that raises for these packages if pyarrow or this project imports them."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self.packages = set(packages)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002 - a finder's
        if name not in self.packages:
            return
        frame = sys._getframe(1)  # noqa: SLF001 - the import of inspect would take a tenth of all imports
        while frame.f_back is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
            frame = frame.f_back
        if str(frame.f_globals.get("__package__")).partition(".")[0] in _IMPORTERS:
            raise ModuleNotFoundError(f"{name} is kept out of this process: pyarrow would import it in vain", name=name)
