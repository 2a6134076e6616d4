"""Names that the files of the working folder declare: a mode file, or a plug-in that is not loaded."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Final

from scenarios import plugged

FILES: Final = 200
"""Python files of the folder that are read, at most."""
FILE_BYTES: Final = 200_000
_UNKNOWN: Final = re.compile(
    r"(?P<what>unknown (mode|rule|scenario) |has no value |\w = |--kind )'(?P<name>[^']+)'(?P<rest>.*)"
)
_NEEDED: Final = re.compile(r"the sweep has plug-in (\S+): load it with --plugin$")
_HINT: Final = re.compile(r"; (did you mean |one of: ).*")
_IMPORT: Final = "highwater.plugin"


def with_hint(problem: str) -> str:
    """A problem about an unknown name, with the file that declares the name in place of the nearest name; about a
    plug-in that is not loaded, with its file. Problems of a plug-in's own declarations stay as they are.
    """
    needed = _NEEDED.search(problem)
    if needed is not None and _is_file(f"{needed[1]}.py"):
        return f"{problem} {shlex.quote(f'{needed[1]}.py')}"
    found = None if problem.startswith("--plugin ") else _UNKNOWN.search(problem)
    if found is None or not _HINT.search(found["rest"]):
        return problem
    name = found["name"].partition("+")[0]
    hint = ""
    if found["what"] == "unknown mode " and _is_file(f"{name}.toml"):
        hint = f"; a mode file is named by its path: ./{shlex.quote(f'{name}.toml')}"
    elif plugin := _plugin_with(name):
        hint = f"; {plugin} has it: --plugin {shlex.quote(plugin)}"
    return _HINT.sub("", problem) + hint if hint else problem


def _is_file(name: str) -> bool:
    with suppress(OSError, ValueError):
        return "/" not in name and Path(name).is_file()
    return False


def _plugin_with(name: str) -> str:
    """The first plug-in of the working folder whose text has this name between quotes; empty if none has."""
    with suppress(OSError):
        loaded = {plugin.word for plugin in plugged.LOADED.values()}
        for file in sorted(Path().glob("*.py"))[:FILES]:
            if str(file) in loaded:
                continue
            with suppress(OSError, UnicodeDecodeError):
                text = file.read_text("utf-8") if file.stat().st_size <= FILE_BYTES else ""
                if _IMPORT in text and re.search(rf"""(["']){re.escape(name)}\1""", text):
                    return file.name
    return ""
