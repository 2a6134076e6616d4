"""The code behind a result: a hash of its sources, the build, and versions of its environment."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from scenarios import plugged
from sim import errors
from sim.errors import InputError

CODE: Final = ("faults", "scenarios", "sim")
"""The packages that determine a row."""
PACKAGES: Final = (*CODE, "reports", "highwater")
PLAIN: Final = "plain"
RECORD: Final = "build.json"
"""The record of a compiled build, beside this module (``.ci/build_hook.py`` writes it)."""


def code_version() -> str:
    """Hash over the sources of sim, faults, scenarios and the loaded plug-ins, equal in a checkout, a wheel and a zip
    (16 hex digits).

    Raises:
        InputError: the running code was compiled from other sources.
    """
    plug_ins = plugged.hashes()
    if not plug_ins:
        return own_version()
    return hashlib.blake2b(json.dumps([own_version(), plug_ins]).encode(), digest_size=8).hexdigest()


@cache
def own_version() -> str:
    """`code_version` without plug-ins; raises InputError as it does."""
    found = _hash(map(resources.files, CODE))
    record = _record()
    if record is not None:
        _check(record, found)
    return found


def judging_version() -> str:
    """Hash of all that decides what a campaign's judge says of a case: `code_version`, and the sources of all packages,
    because judges are no part of the packages that determine a row.

    Raises:
        InputError: as `code_version`.
    """
    return hashlib.blake2b(f"{code_version()} {_all_sources()}".encode(), digest_size=8).hexdigest()


@cache
def _all_sources() -> str:
    return _hash(map(resources.files, PACKAGES))


@cache
def build() -> str:
    """The running build: ``plain``, or ``compiled (mypyc 2.4.1, cp311)``. Rows are the same."""
    record = _record()
    return PLAIN if record is None else f"compiled (mypyc {record['mypy']}, {record['python']})"


def compiled_files() -> list[str]:
    """Files of machine code, relative to the folder of the packages; none in the plain build."""
    record = _record()
    return [] if record is None else list(record["files"])


@cache
def check_build() -> None:
    """Check a compiled build before anything runs, as `code_version` does; free in a plain build."""
    if _record() is not None:
        code_version()


def _record() -> dict[str, Any] | None:
    """The record of a compiled build; None for a plain build."""
    if str(errors.__file__).endswith((".py", ".pyc")):
        return None
    file = resources.files("scenarios") / RECORD
    try:
        record: dict[str, Any] = json.loads(file.read_bytes())
    except (OSError, ValueError):
        raise InputError(f"{file} cannot be read, so the compiled sources are not known; reinstall") from None
    return record


def _check(record: dict[str, Any], found: str) -> None:
    here = Path(str(resources.files("scenarios"))).parent
    if record.get("code_version") != found:
        raise InputError(f"the sources in {here} are not those that were compiled there: reinstall")
    prefix = Path(sys.prefix)
    if here.is_relative_to(prefix) and _differs(prefix.parent, here):
        raise InputError(f"the sources in {prefix.parent} have changed since `make fast`: repeat it, or `make plain`")


def _differs(checkout: Path, here: Path) -> bool:
    """Whether a folder is a checkout with other sources than the installed ones.

    `make fast` installs a copy into a checkout's environment, which edits of the checkout make outdated.
    """
    if not all((checkout / name).is_dir() for name in PACKAGES):
        return False
    there, copied = (_hash(root / name for name in PACKAGES) for root in (checkout, here))
    return there != copied


def _hash(packages: Iterable[Traversable]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for name, content in sorted(pair for package in packages for pair in _sources(package, package.name)):
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _sources(entry, name)
        elif name.endswith((".py", ".toml")):
            yield name, entry.read_bytes()


def versions() -> dict[str, str]:
    """The build and versions of the environment, for readers; they are not compared."""
    return {
        "highwater": _version("highwater"),
        "build": build(),
        "python": platform.python_version(),
        "simpy": _version("simpy"),
    }


def _version(package: str) -> str:
    from importlib import metadata  # Slower than all the rest here.

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # run from a checkout or a zip
        return "not installed"
