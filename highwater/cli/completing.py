"""Shell completion from an index in the user's cache folder: it takes little longer than Python's start.

This module imports nothing of the commands, and not pathlib, which would take as long as all the rest.
`highwater.cli.completion` makes the index, anew for each state of the code and of the installed packages.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REQUEST: Final = "_HIGHWATER_COMPLETE"
"""Environment variable by which a shell requests completions."""
PLAIN, FILE, FOLDER = "plain", "file", "dir"
"""Types of words, as click's shell functions know them."""
NAME: Final = "completion.json"
_MADE_FROM: Final = (
    "highwater",
    "scenarios/files",
    "scenarios/properties",
    "sim/protocol",
    "sim/checkers",
    "faults/kinds",
)
_JOINED: Final = ("modes", "kinds", "faults")
"""Names that commas may join."""
_ROOT: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def state() -> list[Any]:
    """What changes when the index has to be made anew: with the code, and with installed packages."""
    newest = count = 0
    for part in _MADE_FROM:
        for folder, _, names in os.walk(os.path.join(_ROOT, part)):
            for name in names:
                if name.endswith((".py", ".toml")):
                    newest = max(newest, os.stat(os.path.join(folder, name)).st_mtime_ns)
                    count += 1
    packages = [
        os.stat(path).st_mtime_ns for path in sys.path if path.endswith("site-packages") and os.path.isdir(path)
    ]
    return [_ROOT, newest, count, *packages]


def kept() -> Mapping[str, Any] | None:
    """The index, if it is that of this state."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    try:
        with open(os.path.join(base, "highwater", NAME), encoding="utf-8") as file:
            found = json.load(file)
        return found["index"] if found["state"] == state() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def answer(index: Mapping[str, Any], request: str) -> str | None:
    """What a shell prints for its completion; None: another kind of request."""
    shell, _, what = request.partition("_")
    if what != "complete" or shell not in ("bash", "zsh", "fish"):
        return None
    words, begun = _words(shell)
    prefix = ""
    if shell == "bash":  # It takes "=" for a word of its own, and replaces what follows.
        if begun == "=" and words:
            words, begun, prefix = words[:-1], f"{words[-1]}=", f"{words[-1]}="
        elif len(words) > 1 and words[-1] == "=":
            words, begun, prefix = words[:-2], f"{words[-2]}={begun}", f"{words[-2]}="
    found = [(kind, word.removeprefix(prefix)) for kind, word in completions(index, words, begun)]
    if shell == "zsh":
        return "".join(f"{kind}\n{word}\n_\n" for kind, word in found)
    return "".join(f"{kind},{word}\n" for kind, word in found)


def _words(shell: str) -> tuple[list[str], str]:
    """The words before the one that is completed, without the program's name, and that one."""
    text = os.environ.get("COMP_WORDS", "")
    try:
        words = shlex.split(text)
    except ValueError:  # An open quotation mark.
        words = text.split()
    if shell == "fish":
        begun = os.environ.get("COMP_CWORD", "")
        before = words[1:]
        return (before[:-1] if before and before[-1] == begun else before), begun
    place = int(os.environ.get("COMP_CWORD", "1"))
    return words[1:place], words[place] if place < len(words) else ""


def completions(index: Mapping[str, Any], words: Sequence[str], begun: str) -> Iterator[tuple[str, str]]:
    """Types and words that complete `begun` after other words."""
    node, pending, places = index["commands"], None, 0
    for word in words:
        if pending is not None:
            pending = None
        elif word.startswith("-"):
            name, equals, _ = word.partition("=")
            pending = None if equals else node["options"].get(name)
        elif word in node["commands"]:
            node, places = node["commands"][word], 0
        else:
            places += 1
    if pending is None and begun.startswith("--") and "=" in begun:
        name, _, begun = begun.partition("=")
        yield from ((kind, f"{name}={word}") for kind, word in _of(index, node["options"].get(name), begun))
    elif pending is not None:
        yield from _of(index, pending, begun)
    elif begun.startswith("-"):
        yield from ((PLAIN, name) for name in node["options"] if name.startswith(begun))
    else:
        yield from ((PLAIN, name) for name in node["commands"] if name.startswith(begun))
        arguments = node["arguments"]
        if arguments:
            yield from _of(index, arguments[min(places, len(arguments) - 1)], begun)


def _of(index: Mapping[str, Any], what: Any, begun: str) -> Iterator[tuple[str, str]]:
    """Completions of one value: of a list of choices, of a named one, or a file or folder."""
    if isinstance(what, list):
        yield from ((PLAIN, word) for word in what if word.startswith(begun))
        return
    if what in (FILE, FOLDER):
        yield what, begun
        return
    found = index["words"].get(what, ())
    before, comma, last = begun.rpartition(",") if what in _JOINED else ("", "", begun)
    name, equals, _ = last.partition("=")
    values = index["values"].get(what, {})
    shown = [f"{name}={value}" for value in values.get(name, ())] if equals else found
    yield from ((PLAIN, f"{before}{comma}{word}") for word in shown if word.startswith(last))
    if what == "scenarios":  # In place of a name, or a folder.
        yield FILE, begun
