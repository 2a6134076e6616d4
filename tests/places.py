"""Where things are."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
"""Of the checkout."""
FIXTURES: Final = ROOT / "tests" / "fixtures"


def ci_program(name: str) -> Any:
    """A program of ``.ci`` as a module."""
    sys.path.insert(0, str(ROOT / ".ci"))
    try:
        return import_module(name)
    finally:
        sys.path.pop(0)
