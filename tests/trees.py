"""What is in a folder, to be compared with what is in it later."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def tree(folder: Path) -> dict[str, object]:
    """Path -> bytes and time of each file, target of each link, kind of all else; links are not followed."""
    found: dict[str, object] = {}
    for above, folders, files in os.walk(folder):
        for path in (Path(above, name) for name in (*folders, *files)):
            state = path.lstat()
            if stat.S_ISLNK(state.st_mode):
                found[str(path)] = str(path.readlink())
            elif stat.S_ISREG(state.st_mode):
                found[str(path)] = (path.read_bytes(), state.st_mtime_ns)
            else:
                found[str(path)] = stat.S_IFMT(state.st_mode)
    return found
