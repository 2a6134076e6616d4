"""Runs the tests of sweeps on Spark in several versions of pyspark: `python -m tests.verification.spark_versions`.

Versions to try may be named. Each has an environment in build/spark, which sees all other packages of this one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Final

from tests.places import ROOT

VERSIONS: Final = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
"""The newest of each minor version."""
TESTS: Final = (
    "tests/scenarios/sweep/test_spark.py",
    "tests/highwater/test_spark.py",
    "tests/highwater/test_spark_source.py",
)


def environment(version: str) -> Path:
    """The Python of an environment with that pyspark; made if there is none."""
    folder = ROOT / "build" / "spark" / version
    python = folder / "bin" / "python"
    if not (folder / "made").exists():
        venv.create(folder, clear=True, symlinks=True)
        words = ["install", "--quiet", "--no-compile", "--no-deps", f"pyspark=={version}", "py4j"]
        subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *words], check=True)
        (packages,) = folder.glob("lib/python*/site-packages")
        (packages / "others.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8")
        (folder / "made").touch()
    return python


def main() -> None:
    """Run the tests of each version; exits with 1 if one fails."""
    failed = []
    for version in sys.argv[1:] or VERSIONS:
        python = environment(version)
        # Older versions of pyspark warn of what Python deprecates, and leave sockets open.
        words = [str(python), "-m", "pytest", "-q", "-o", "addopts=", "-o", "filterwarnings=default", *TESTS]
        sys.stdout.write(f"pyspark {version}\n")
        sys.stdout.flush()
        done = subprocess.run([*words, "--disable-warnings"], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        failed += [version] if done.returncode else []
    sys.exit(f"tests failed with pyspark {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
