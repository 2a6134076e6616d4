"""What concerns the compiler (mypyc) alone.

`mypyc_attr` marks classes that plain Python derives from, in plug-ins and tests: otherwise a compiled class has no
subclasses there. So is a class that inherits `__init__` from one of them: a compiled one would call it twice, and keep
what it was given for ever. Objects of native classes cost nothing for it. This module stays plain, so that the mark
needs no package at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_: Any) -> Any:
        """Leave a class as it is."""
        return lambda kind: kind


__all__ = ["mypyc_attr"]
