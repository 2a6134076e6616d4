"""Blows: faults that are drawn for a run after one of its early warnings, or where it begins to differ from another.

A run with blows has the history of the run without them up to the warning; then its own plan ends, and the drawn
one begins (`faults.stories.next_blow`). So scenario, mode, seed and blows name the run. A later blow follows a warning
that the earlier ones raised. A blow at a difference names the brokers that the difference is about, because the run
itself does not show it (`scenarios.single.differences`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sim.checkers.registry import FINDINGS
from sim.errors import InputError, did_you_mean


def early_warnings() -> list[str]:
    """Kinds of early warnings."""
    return [kind for kind, finding in FINDINGS.items() if finding.is_warning]


BLOWS_MAX: Final = 10_000
"""Most blows after one warning."""
DIFFERENCE: Final = "difference"
"""Stands for the kind of warning in a blow at a difference."""
_ONE: Final = re.compile(r"([a-z-]+)((?::[1-9][0-9]{0,3})*)@([0-9]{1,15})\.([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Blow:
    """A blow: the kind and time of the early warning that it follows, and its number among the blows after it; at a
    difference (`DIFFERENCE`), the brokers that this is about.
    """

    warning: str
    at_us: int
    variant: int
    brokers: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{':'.join([self.warning, *map(str, self.brokers)])}@{self.at_us}.{self.variant}"

    @property
    def stream(self) -> str:
        """Name of the random stream of its draws."""
        return f"blow:{self.warning}:{self.at_us}:{self.variant}"


def to_text(blows: Sequence[Blow]) -> str:
    """Blows as ``--blow`` and the column ``blow`` have them: ``WARNING@TIME_US.VARIANT``, or at a difference
    ``difference:BROKER:BROKER@TIME_US.VARIANT``, joined by ``+``.
    """
    return "+".join(map(str, blows))


def parse(text: str) -> tuple[Blow, ...]:
    """Read `to_text`; an empty text has no blows.

    Raises:
        InputError: it is malformed, names no early warning, or its times do not ascend.
    """
    found: list[Blow] = []
    for word in text.split("+") if text else ():
        parts = _ONE.fullmatch(word)
        if parts is None:
            raise InputError(f"--blow {word!r} is not valid: WARNING@TIME_US.VARIANT is needed, joined by +")
        kind, at_us, variant = parts[1], int(parts[3]), int(parts[4])
        brokers = tuple(map(int, parts[2].split(":")[1:]))
        if kind != DIFFERENCE and kind not in early_warnings():
            near = did_you_mean(kind, early_warnings())
            raise InputError(f"--blow {word!r}: no early warning is called {kind!r}{near}")
        if brokers and kind != DIFFERENCE:
            raise InputError(f"--blow {word!r} is not valid: only a difference names brokers")
        if found and at_us <= found[-1].at_us:
            raise InputError(f"--blow {text!r} is not valid: the times of its warnings must ascend")
        found.append(Blow(kind, at_us, variant, brokers))
    return tuple(found)
