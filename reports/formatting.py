"""Formatting of values for readers."""

from __future__ import annotations

from collections.abc import Container, Mapping
from decimal import Decimal
from typing import Any, Final

from scenarios.redaction import masked


def plain(text: str) -> str:
    r"""Text from outside made harmless: no secrets, and control characters become ``\x1b`` and the like."""
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in masked(text))


def pairs(fields: Mapping[str, Any], hide: Container[str] = ()) -> str:
    """Fields as ``name=value`` words, except hidden, None and empty ones; lists are joined by commas."""
    shown = {name: _word(value) for name, value in fields.items() if value not in (None, (), []) and name not in hide}
    return " ".join(f"{name}={word}" for name, word in shown.items())


def _word(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def seconds(us: int | None) -> str:
    """A simulated time in seconds; ``-`` when there is none."""
    return "-" if us is None or us < 0 else f"{us / 1_000_000:.6f} s"


def moment(us: int) -> str:
    """A simulated time in a sentence: seconds with milliseconds."""
    return f"{us / 1_000_000:.3f} s"


def percent(share: float | None) -> str:
    """A share in percent with three significant digits; ``-`` when there is none."""
    return "-" if share is None else f"{share * 100:.3g} %"


def side(inside: bool | None) -> str:
    """The side of the promise; None: the run ended with an error, and is not judged."""
    return "not judged" if inside is None else "inside" if inside else "outside"


def side_of_promise(inside: bool | None) -> str:
    """`side`, for sentences."""
    return side(inside) if inside is None else f"{side(inside)} the promise"


LEAST: Final = 20
"""Fewer cases have no share that would mean anything."""


def share(k: int, n: int, rest: str = "") -> str:
    """A share in percent, or of few cases as a count; `rest` names what it is a share of."""
    return f"{percent(k / n)}{rest}" if n >= LEAST else f"{k:,} of {n:,}"


def part_of(k: int, n: int) -> str:
    """``80 of 300 (26.7 %)``; of few cases without the share."""
    return f"{k:,} of {n:,}" + (f" ({percent(k / n)})" if k and n >= LEAST else "")


def number(value: float, sign: str = "") -> str:
    """A number with four significant digits, or all digits before the point; `sign` "+" always shows the sign."""
    return format(value, f"{sign}.0f" if abs(value) >= 1_000 else f"{sign}.4g")


SMALLEST: Final = 1e-6
"""Below, `decimal` prints no figure."""


def decimal(value: float, digits: int = 2) -> str:
    """A number that is not negative, with some significant digits and without an exponent."""
    if 0 < value < SMALLEST:
        return "less than 0.000001"
    text = f"{Decimal(f'{value:.{digits - 1}e}'):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
