"""Carries out command lines in the worker of the playground, in a folder for the user's files.

Requests and answers are JSON: so nothing of JavaScript stays alive in Python, or the other way round.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from highwater.cli import completing, main

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_BYTES = 20_000_000
"""A larger file is not passed on to the page."""


class Session:
    """A folder, and the words that complete a line.

    Args:
        index: what `highwater.cli.completion.index` makes, as JSON.
    """

    def __init__(self, folder: str, index: str) -> None:
        self._folder = Path(folder)
        self._index: Mapping[str, Any] = json.loads(index)
        self._folder.mkdir(parents=True, exist_ok=True)
        os.chdir(self._folder)

    def answer(self, request: str) -> str:
        """The answer to a request: its `kind` is "run" or "complete", the rest are arguments."""
        asked = json.loads(request)
        kind = asked.pop("kind")
        return json.dumps(self._run(**asked) if kind == "run" else self._complete(**asked))

    def _run(self, line: str, columns: int, files: Mapping[str, str | None]) -> dict[str, Any]:
        """Write the user's files (None removes one) and carry out a line.

        Returns the exit code, and the files that are new or changed.
        """
        for name, text in files.items():
            file = self._folder / name
            if text is None:
                file.unlink(missing_ok=True)
            elif not file.is_file() or file.read_text(encoding="utf-8", errors="replace") != text:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
        before = dict(self._states())
        os.environ["COLUMNS"] = str(columns)
        try:
            words = shlex.split(line)
        except ValueError as error:
            return {"code": 2, "problem": f"{error}: {line}", "files": []}
        code = main.main(words)
        after = dict(self._states())
        changed = [name for name, state in after.items() if before.get(name) != state and state[1] <= MOST_BYTES]
        return {"code": code, "files": [[name, self._text(name)] for name in changed]}

    def _complete(self, line: str) -> dict[str, Any]:
        """The words that may stand in the place of the line's last one."""
        before, _, begun = line.rpartition(" ")
        try:
            words = shlex.split(before)
        except ValueError:  # An open quotation mark.
            words = before.split()
        found = list(completing.completions(self._index, words, begun))
        names = [word for kind, word in found if kind == completing.PLAIN]
        if any(kind != completing.PLAIN for kind, _ in found):
            names += [name for name, _ in self._states() if name.startswith(begun)]
        return {"begun": begun, "words": names}

    def _states(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """The files of the folder, each with its time and size."""
        for file in sorted(self._folder.rglob("*")):
            name = file.relative_to(self._folder)
            if file.is_file() and not name.parts[0].startswith("."):
                state = file.stat()
                yield name.as_posix(), (state.st_mtime_ns, state.st_size)

    def _text(self, name: str) -> str:
        return (self._folder / name).read_text(encoding="utf-8", errors="replace")
