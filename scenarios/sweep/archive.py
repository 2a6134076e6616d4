"""Packs the running code and its requirements, except Python and Spark, into an archive for a cluster's workers."""

from __future__ import annotations

import io
import os
import re
import sys
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from importlib import metadata, resources
from pathlib import Path
from typing import Final

from scenarios.own_files import make_folder, replaced
from scenarios.paths import of_os
from scenarios.version import PACKAGES, check_build, compiled_files
from sim.errors import InputError

EXCLUDED: Final = frozenset({"__pycache__", "tests"})
"""Folders that are not archived."""
BY_SPARK: Final = frozenset({"pyspark", "py4j"})
"""Packages that every worker has from Spark."""
OF_PAGES: Final = frozenset({"numpy", "scipy"})
"""Packages of statistics and pages, which workers need at most for other packages."""
_SCRIPT: Final = "bin/python"
_PYTHON: Final = """\
#!/bin/sh
# The machine's own Python {minor}, with the packages of this archive.
packages=$(cd "$(dirname "$0")/../packages" && pwd)
for python in python{minor} python3 python; do
    if "$python" -c 'import sys; sys.exit("{minor}" != "%d.%d" % sys.version_info[:2])' 2>/dev/null; then
        PYTHONPATH="$packages${{PYTHONPATH:+:$PYTHONPATH}}" exec "$python" "$@"
    fi
done
# Another version: Spark reports it to the driver.
exec python3 "$@"
"""


def write_archive(path: Path) -> None:
    """Write a gzipped tar of ``bin/python`` and the installed packages, for this system and minor version of Python.

    Raises:
        InputError: pip did not install a package, or a foreign file is at the path.
        StorageError: the archive cannot be written.
    """
    check_build()
    if os.path.lexists(path) and not _is_archive(path):
        raise InputError(f"{path} was not written by highwater; name another folder")
    minor = "{}.{}".format(*sys.version_info)
    needed = closure(need for need in requirements("highwater", "spark") if need not in OF_PAGES)
    files = {**_own(), **{name: file for need in needed if need not in BY_SPARK for name, file in _installed(need)}}
    try:
        make_folder(path.parent)
        # Most of it is machine code, which a higher level hardly compresses further.
        with replaced(path) as file, tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as archive:
            script = tarfile.TarInfo(_SCRIPT)
            script.mode, content = 0o755, _PYTHON.format(minor=minor).encode()
            script.size = len(content)
            archive.addfile(script, io.BytesIO(content))
            for name, source in sorted(files.items()):
                archive.add(source, f"packages/{name}", recursive=False, filter=_without_owner)
    except OSError as error:
        raise of_os(error, f"cannot write {path}", has_folder=True) from None


def _is_archive(path: Path) -> bool:
    """Whether `write_archive` wrote a file, by its first member."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with tarfile.open(path) as archive:
            first = archive.next()
            script = archive.extractfile(first) if first is not None and first.name == _SCRIPT else None
            return script is not None and script.read().decode().startswith(_PYTHON.partition("{")[0])
    except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error):
        return False


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _own() -> dict[str, Path]:
    """Our packages as imported here, and their version metadata."""
    root = Path(str(resources.files("scenarios"))).parent
    found = [file for package in PACKAGES for file in (root / package).rglob("*") if file.is_file()]
    names = [str(file.relative_to(root)) for file in found if EXCLUDED.isdisjoint(file.parts)]
    files = {name: root / name for name in (*names, *compiled_files())}
    return files | {name: file for name, file in _installed("highwater") if name.endswith(".dist-info/METADATA")}


def closure(names: Iterable[str]) -> list[str]:
    """Packages and their requirements, if installed; others are for another system or Python."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in found and _is_installed(name):
            found.add(name)
            todo += requirements(name)
    return sorted(found)


def requirements(name: str, extra: str = "") -> list[str]:
    """Requirements of an installed package and its extra; raises InputError if it is not installed."""
    needs = [need.partition(";") for need in _distribution(name).requires or ()]
    wanted = [need for need, _, marker in needs if "extra ==" not in marker or (extra and f"'{extra}'" in marker)]
    return [re.split(r"[^\w.-]", need.strip())[0].lower().replace("_", "-") for need in wanted]


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _distribution(name: str) -> metadata.Distribution:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise InputError(f"{name} is not installed here: pip install it first") from None


def _installed(name: str) -> Iterator[tuple[str, Path]]:
    files = _distribution(name).files
    if files is None:
        raise InputError(f"{name} was not installed by pip: its files are not known")
    for file in files:
        if ".." not in file.parts and EXCLUDED.isdisjoint(file.parts):
            yield str(file), Path(str(file.locate()))
