"""``python -m tests.scenarios.single.page``: rewrite the table of columns in scenarios/single/README.md."""

from __future__ import annotations

import re
import sys
from typing import Final

from scenarios.single.rows import COLUMNS
from tests.places import ROOT

PAGE: Final = ROOT / "scenarios" / "single" / "README.md"
HEAD: Final = "| column | type | since | before | meaning |\n|---|---|---|---|---|\n"


def table() -> str:
    """The columns as Markdown."""
    lines = [
        f"| `{one.name}` | {one.type} | {one.since} | {'' if one.before is None else one.before} | {one.meaning} |\n"
        for one in COLUMNS.values()
    ]
    return HEAD + "".join(lines)


def updated(page: str) -> str:
    """The page with the current table."""
    return re.sub(rf"{re.escape(HEAD)}(\|.*\n)*", lambda _: table(), page)


def main() -> int:
    """Rewrite the page."""
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
