"""Where things are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
"""Of the checkout."""
FIXTURES: Final = ROOT / "tests" / "fixtures"
