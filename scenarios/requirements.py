"""What every installation has: checked before a command works, not after minutes of work."""

from __future__ import annotations

import re
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec
from typing import Final

from sim.errors import UnavailableError

REQUIRED: Final = {
    "click": "click",
    "google-crc32c": "google_crc32c",
    "numpy": "numpy",
    "pyarrow": "pyarrow",
    "pydantic": "pydantic",
    "rich": "rich",
    "scipy": "scipy",
    "simpy": "simpy",
}
"""Package that every installation has -> its module."""
IN_BROWSER: Final = ("click", "pydantic", "rich", "simpy")
"""Those of them that the playground has, which is Python compiled to WebAssembly (`highwater.cli.in_browser`)."""


def is_browser() -> bool:
    """Whether this Python runs in WebAssembly, where there are no processes, threads or limits."""
    return sys.platform == "emscripten"


def check_required() -> None:
    """Check before a command works, in a millisecond, that what any command needs is installed.

    Raises:
        UnavailableError: names the missing packages.
    """
    needed = IN_BROWSER if is_browser() else REQUIRED
    if missing := [package for package in needed if not _is_there(REQUIRED[package])]:
        raise UnavailableError(
            f"not installed: {', '.join(missing)}; 'pip install .' in Highwater's folder installs it"
        )


def to_install(extra: str) -> str:
    """How to install an extra, in the versions that this release takes."""
    from importlib import metadata

    try:
        wanted = metadata.requires("highwater") or []
    except metadata.PackageNotFoundError:  # Only its folder is there.
        wanted = []
    packages = [one.partition(";")[0].strip() for one in wanted if re.search(rf"extra == ['\"]{extra}['\"]", one)]
    pip = f"pip install {' '.join(map(repr, packages))}, which is" if packages else "install"
    return f"{pip} the extra {extra!r} of Highwater"


def _is_there(module: str) -> bool:
    """Asks the folders of `sys.path` first: where the address space is limited, `scenarios.memory` refuses a library
    that is only looked for, too.
    """
    return bool(PathFinder.find_spec(module) or find_spec(module))
