"""`make wheel`: a plain wheel, and a compiled one for each supported Python that is here, into ``dist``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Final

from scenarios.sweep.archive import closure, requirements

ROOT: Final = Path(__file__).parent.parent
LOCK: Final = ROOT / ".ci" / "constraints.txt"
MINORS: Final = ("3.11", "3.12", "3.13", "3.14")
VERSION: Final = metadata.version("highwater")
TOOLS: Final = ("hatchling", "mypy", "setuptools")


def main() -> int:
    """Build; 1 if one could not be compiled."""
    for old in (ROOT / "dist").glob(f"highwater-{VERSION}-*.whl"):
        if _is_ours(old):
            old.unlink()
    _build(sys.executable, "0")
    failed = False
    for minor in MINORS:
        python = _python(minor)
        if python is None:
            sys.stdout.write(f"no Python {minor} here: no compiled wheel for it\n")
            continue
        try:
            _build(_with_tools(python, ROOT / "build" / f"python{minor}"), "profiled")
        except subprocess.CalledProcessError as error:
            sys.stdout.write(f"no compiled wheel for Python {minor}: {error}\n")
            failed = True
    return int(failed)


def _is_ours(file: Path) -> bool:
    """Whether a wheel was built here: other files of such a name stay."""
    if file.is_symlink() or not zipfile.is_zipfile(file):
        return False
    with zipfile.ZipFile(file) as wheel:
        return f"highwater-{VERSION}.dist-info/RECORD" in wheel.namelist()


def _python(minor: str) -> str | None:
    """The interpreter of a minor version, None if there is none."""
    found = shutil.which(f"python{minor}")
    if found is None:
        return None
    # pyenv's python3.12 is there even where it would start another version, or none.
    words, environment = [found, "-c", "import sys; print(sys.executable)"], {**os.environ, "PYENV_VERSION": minor}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _with_tools(python: str, folder: Path) -> str:
    """A virtual environment with what a build needs, as locked; its interpreter."""
    blocks = re.split(r"\n(?=[\w.-]+==)", LOCK.read_text(encoding="utf-8"))
    needed = set(closure([*TOOLS, *requirements("highwater")]))
    locked = [block for block in blocks if block.partition("==")[0].lower().replace("_", "-") in needed]
    subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
    (folder / "requirements.txt").write_text("\n".join(locked) + "\n", encoding="utf-8")
    made = str(folder / "bin" / "python")
    words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r"]
    subprocess.run([made, *words, str(folder / "requirements.txt")], check=True)
    return made


def _build(python: str, compiled: str) -> None:
    words = [python, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    subprocess.run(words, cwd=ROOT, env={**os.environ, "HIGHWATER_COMPILE": compiled}, check=True)


if __name__ == "__main__":
    raise SystemExit(main())
