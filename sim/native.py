"""What concerns the compiler (mypyc) alone.

`mypyc_attr` marks classes that plain Python derives from, in plug-ins and tests: otherwise a compiled class has no
subclasses there. Objects of native classes cost nothing for it. This module stays plain, so that the mark needs no
package at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_: Any) -> Any:
        """Leave a class as it is."""
        return lambda kind: kind


COMPILED: bool = False
"""Whether this is a compiled build: the compiler takes it for true (`.ci/build_hook.py`), and drops other branches."""

__all__ = ["COMPILED", "mypyc_attr"]
