"""Which build runs: compiled code and plain Python take different ways where each has a faster one of its own."""

from __future__ import annotations

from typing import Final

COMPILED: Final = __file__.endswith((".so", ".pyd"))
"""Whether this module, and so every module that asks, is compiled. The compiler takes the name for true
(`.ci/build_hook.py`) and drops the other branches.
"""
