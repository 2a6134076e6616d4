"""faults/README.md has a place for each kind."""

from __future__ import annotations

import re
from pathlib import Path

import faults
from faults.kinds.registry import KINDS


def test_the_page_names_every_kind() -> None:
    page = (Path(faults.__file__).parent / "README.md").read_text(encoding="utf-8")
    groups = page.partition("| kinds | what they are |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"`([a-z-]+)`", groups)) == sorted(KINDS)
