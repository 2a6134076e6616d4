"""Translates to C what the compiled build compiles, and throws it away: says in seconds whether mypyc takes it all,
and how long the functions become.

No C compiler is needed. Some of what Python can say makes mypyc stop; only a translation shows it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from build_hook import PACKAGES, check_lengths, modules
from mypyc.build import mypycify


def main() -> None:
    """Translate a copy of the packages.

    Raises:
        SystemExit: mypyc does not take them, and the reason is on stderr; or a function becomes too long.
    """
    root = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for package in PACKAGES:
            shutil.copytree(root / package, Path(folder) / package, ignore=shutil.ignore_patterns("__pycache__"))
        os.chdir(folder)
        try:
            mypycify(modules(Path()), multi_file=True)
            check_lengths(Path("build"))
        finally:
            os.chdir(root)


if __name__ == "__main__":
    main()
