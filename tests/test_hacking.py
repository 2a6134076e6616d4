"""HACKING.md names what is there, and draws the rooms as the imports have them."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.places import ROOT
from tests.test_architecture import FILES, imports

PAGE = (ROOT / "HACKING.md").read_text(encoding="utf-8")
TWELVE = re.findall(r"^\| (\d+) \| \[(.+?)\]\((.+?)\) \| (.+) \|$", PAGE, re.MULTILINE)


def test_there_are_twelve_files_in_order() -> None:
    assert [int(number) for number, *_ in TWELVE] == list(range(1, 13))
    assert all(name == target for _, name, target, _ in TWELVE)


def test_every_file_that_the_page_names_exists() -> None:
    named = {*re.findall(r"\]\(([^)#]+)\)", PAGE), *re.findall(r"`?\b((?:sim|faults|scenarios|tests)/[\w./]+)", PAGE)}
    assert len(named) > 15
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(("file", "text"), [(file, text) for _, file, _, text in TWELVE])
def test_what_a_row_says_to_look_for_is_in_its_file(file: str, text: str) -> None:
    source = (ROOT / file).read_text(encoding="utf-8")
    words = [word for name in re.findall(r"`([\w.]+)`", text) for word in name.split(".")]
    modes = {"kraft", "run_modes"}  # `run_modes` is what another file calls.
    assert words
    assert [word for word in words if not re.search(rf"\b{word}\b", source) and word not in modes] == []


# The drawing.


def room(name: str) -> str:
    """The room of a module: its folder, two deep; all faults are one, and all instruments."""
    folder = name if FILES[name].name == "__init__.py" else name.rpartition(".")[0]
    return "faults" if folder.startswith("faults") else ".".join(folder.split(".")[:2])


@cache
def needed(one: str) -> frozenset[str]:
    """The rooms that a room imports from; the library's names of instruments, for type checkers, do not count."""
    modules = [name for name in FILES if room(name) == one and name not in ("highwater", "highwater.__main__")]
    return frozenset(room(other) for name in modules for other in imports(name) if other in FILES) - {one}


@cache
def below(one: str) -> frozenset[str]:
    return needed(one).union(*map(below, needed(one)))


@cache
def height(one: str) -> int:
    return 1 + max(map(height, needed(one)), default=0)


def drawing() -> str:
    """A line for each arrow, the highest room first."""
    rooms = sorted({room(name) for name in FILES}, key=lambda one: (-height(one), one))
    width = max(map(len, rooms))
    lines = []
    for one in rooms:
        direct = sorted(other for other in needed(one) if not any(other in below(third) for third in needed(one)))
        for place, other in enumerate(direct):
            ends = place == len(direct) - 1
            joint = "───" if len(direct) == 1 else ("└─" if ends else "├─") if place else "─┬─"
            lines.append(f"{'' if place else one:{width}} {joint if not place else ' ' + joint} {other}")
        lines += [] if direct else [one]
    return "\n".join(lines)


def test_the_rooms_are_drawn_as_the_imports_have_them() -> None:
    shown = PAGE.partition("```text\n")[2].partition("\n```")[0]
    assert shown == drawing(), f"HACKING.md is to show\n\n{drawing()}\n"
