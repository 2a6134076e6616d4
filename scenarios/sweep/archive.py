"""Packs what runs here, and all that it needs but Python and Spark, into one archive for the workers of a cluster."""

from __future__ import annotations

import io
import os
import re
import secrets
import sys
import tarfile
import zlib
from contextlib import suppress
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scenarios.paths import of_os
from scenarios.version import PACKAGES, check_build, compiled_files
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LEFT_OUT: Final = frozenset({"__pycache__", "tests"})
"""Folders that nobody needs there."""
BY_SPARK: Final = frozenset({"pyspark", "py4j"})
"""What every worker has from Spark."""
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
# Another one: Spark tells the driver which.
exec python3 "$@"
"""


def write_archive(path: Path) -> None:
    """Write ``bin/python`` and the packages as they are here, for this system and this minor version of Python.

    Args:
        path: of the archive, gzipped tar.

    Raises:
        InputError: a package is not installed as pip installs it, or another file is there.
        StorageError: the archive cannot be written.
    """
    check_build()
    if os.path.lexists(path) and not _is_archive(path):
        raise InputError(f"{path} is there, and is no archive of highwater's; name another folder")
    minor = "{}.{}".format(*sys.version_info)
    needed = closure(requirements("highwater", "spark"))
    files = {**_own(), **{name: file for need in needed if need not in BY_SPARK for name, file in _installed(need)}}
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Most of it is machine code, which a higher level hardly makes smaller.
        with tarfile.open(unfinished, "x:gz", compresslevel=1) as archive:
            script = tarfile.TarInfo(_SCRIPT)
            script.mode, content = 0o755, _PYTHON.format(minor=minor).encode()
            script.size = len(content)
            archive.addfile(script, io.BytesIO(content))
            for name, file in sorted(files.items()):
                archive.add(file, f"packages/{name}", recursive=False, filter=_nobodys)
        unfinished.replace(path)
    except OSError as error:
        raise of_os(error, f"cannot write {path}") from None
    finally:
        with suppress(OSError):  # There is none, or its folder is no folder, which was said above.
            unfinished.unlink()


def _is_archive(path: Path) -> bool:
    """Whether a file is what `write_archive` writes: what its first member holds tells."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with tarfile.open(path) as archive:
            first = archive.next()
            script = archive.extractfile(first) if first is not None and first.name == _SCRIPT else None
            return script is not None and script.read().decode().startswith(_PYTHON.partition("{")[0])
    except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error):
        return False


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _own() -> dict[str, Path]:
    """Our packages as they are imported here, and what tells their version."""
    root = Path(str(resources.files("scenarios"))).parent
    found = [file for package in PACKAGES for file in (root / package).rglob("*") if file.is_file()]
    names = [str(file.relative_to(root)) for file in found if LEFT_OUT.isdisjoint(file.parts)]
    files = {name: root / name for name in (*names, *compiled_files())}
    return files | {name: file for name, file in _installed("highwater") if name.endswith(".dist-info/METADATA")}


def closure(names: Iterable[str]) -> list[str]:
    """Packages and all that they need, as far as they are installed; what is not is for another system or Python."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in found and _is_installed(name):
            found.add(name)
            todo += requirements(name)
    return sorted(found)


def requirements(name: str, extra: str = "") -> list[str]:
    """Names of the packages that an installed package, and its extra, ask for.

    Raises:
        InputError: it is not installed.
    """
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
        raise InputError(f"{name} was not installed by pip: what belongs to it is not known")
    for file in files:
        if ".." not in file.parts and LEFT_OUT.isdisjoint(file.parts):
            yield str(file), Path(str(file.locate()))
