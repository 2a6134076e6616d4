"""`make compiled`: the packages in a directory of their own, with what a run consists of compiled by mypyc.

Digests, rows and code version are those of the sources; only the time that runs take differs. Needs a C compiler and
the headers of Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
PACKAGES: Final = ("sim", "faults", "scenarios", "reports")
COMPILED: Final = ("sim/**/*.py", "faults/*.py", "scenarios/run.py", "scenarios/workload.py")
NOT_COMPILED: Final = ("slow.py", "__init__.py")
"""The independent checker must not share the fate of what it checks."""
SETUP: Final = """
from mypyc.build import mypycify
from setuptools import setup

setup(name="highwater-compiled", packages=[], ext_modules=mypycify({modules!r}, opt_level={level!r}, debug_level="0"))
"""


def modules(directory: Path) -> list[str]:
    """Sources that are compiled, relative to the directory."""
    files = sorted(file for pattern in COMPILED for file in directory.glob(pattern))
    return [str(file.relative_to(directory)) for file in files if file.name not in NOT_COMPILED]


def build(directory: Path, level: str = "1") -> None:
    """Copy the packages and compile.

    Args:
        directory: where to; what is there is replaced.
        level: of the C compiler's optimisation.

    Raises:
        subprocess.CalledProcessError: there is no compiler, or it failed.
    """
    shutil.rmtree(directory, ignore_errors=True)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, directory / package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    (directory / "setup.py").write_text(SETUP.format(modules=modules(directory), level=level), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": "", "MYPYPATH": ""}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    subprocess.run(command, cwd=directory, env=environment, check=True)


def main() -> int:
    """Build into the directory that is named; 1 if that cannot be done here."""
    directory = Path(sys.argv[1]).resolve()
    try:
        build(directory)
    except (subprocess.CalledProcessError, OSError) as error:
        sys.stderr.write(f"sim cannot be compiled here (a C compiler and Python's headers are needed): {error}\n")
        return 1
    sys.stdout.write(f"compiled; put {directory.name} first on PYTHONPATH to use it\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
