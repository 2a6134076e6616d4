"""For tests that put something in the place of what a run consists of: compiled, it lets nobody do that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import pytest

from scenarios.version import PLAIN, build

if TYPE_CHECKING:
    from argparse import ArgumentParser

_REASON: Final = "stands in for, or patches, what is compiled"
needs_sources: Final = pytest.mark.skipif(build() != PLAIN, reason=_REASON)


def skip_if_compiled() -> None:
    """For a case that finds out on its way that it needs the sources."""
    if build() != PLAIN:
        pytest.skip(_REASON)


def refuse_compiled(parser: ArgumentParser) -> None:
    """For a hunt that patches what it looks at."""
    if build() != PLAIN:
        parser.error(f"it {_REASON}: run it on the sources")


class StandsIn:
    """First base of a class whose other base is compiled, which is found out only when an object is made."""

    __slots__ = ()

    def __new__(cls, *_: object) -> Self:
        skip_if_compiled()
        return super().__new__(cls)
