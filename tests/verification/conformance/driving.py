"""Runs cases: operations by name, expectations compared key by key, unknown keys refused."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sim.errors import did_you_mean
from sim.protocol.log.log import UnexpectedAppendOffsetError
from sim.protocol.raft.batch_accumulator import NotLeaderError
from sim.protocol.raft.raft_log import IllegalRaftStateError
from sim.protocol.rules import Rules
from tests.verification.conformance.cases import Case, Fields, TableError

PROSE: Final = {
    "then": "tells how the story goes on; `logs_equal_at_end` and `diverged_range` say it in data",
    "sequence": "repeats in words what the operations' names say",
    "cluster": "describes the source test's cluster; leader and follower are named by each operation",
    "leader_on": "describes the source test's cluster",
}
"""Fields that are sentences, with the reason why nothing is compared with them."""
LATER: Final = {
    "last_fetched_epoch": "part of the fetch state with truncation on fetch only, and compared only there by its tests",
    "fetch_hw": "high watermark in a fetch of the metadata log, from KIP-1166 on",
}
"""Expectations of later releases beside earlier ones, not compared where rules are earlier, with the reason why."""
RAISES: Final[dict[type[Exception], str]] = {
    UnexpectedAppendOffsetError: "unexpected offset",
    ValueError: "illegal state",
    IllegalRaftStateError: "illegal state",
    NotLeaderError: "not leader",
}
"""The tables' words for errors."""


class Seen(dict[str, Any]):
    """The observable values after an operation; a table names some of them."""


@dataclass(frozen=True)
class Matching:
    """A value that a table describes by a property."""

    value: object
    holds: Callable[[Any], bool] = field(repr=False)

    def __eq__(self, expected: object) -> bool:
        return self.holds(expected)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Kind:
    """A driver for cases of one kind.

    Attributes:
        begin: makes the state of a case from what is given.
        ops: carries out an operation and returns what it shows, by the operation's name.
        observe: what can be seen of the state at any time.
        unmodelled: expected keys that nothing here could show, each with the reason why.
    """

    begin: Callable[[Fields, Rules], Any]
    ops: Mapping[str, Callable[[Any, Fields], object]]
    observe: Callable[[Any], Mapping[str, object]] = lambda _: {}
    unmodelled: Mapping[str, str] = field(default_factory=dict)


def run_case(case: Case, kind: Kind, rules: Rules, sights: list[object] | None = None) -> int:
    """Run a case to its end.

    Args:
        case: the case.
        kind: its driver.
        rules: of all brokers.
        sights: takes all that there is to see after each operation, whether the case names it or not.

    Returns:
        How many expectations were compared.

    Raises:
        AssertionError: an expectation is not met.
        TableError: something in the case is not understood, or nothing was compared.
    """
    given = Fields(case.given, "given")
    state = kind.begin(given, rules)
    compared = 0
    for number, content in enumerate(case.ops, 1):
        op = Fields(content, f"op {number}")
        seen = _act(kind, state, op)
        if sights is not None:
            sights.append(plain(seen))
        if "expect" in op:
            compared += compare(op["op"], plain(op["expect"]), seen, kind.unmodelled)
        _refuse_unread(op)
    _refuse_unread(given)
    if not compared:
        raise TableError("the case compares nothing")
    return compared


def _act(kind: Kind, state: Any, op: Fields) -> object:
    """Run an operation; its own result or, without one, all observable values."""
    act = kind.ops.get(op["op"])
    if act is None:
        raise TableError(f"unknown operation {op['op']!r}{did_you_mean(op['op'], kind.ops)}")
    expected = op.get("expect")
    raised = None
    shown: object = None
    try:
        shown = act(state, op)
    except tuple(RAISES) as error:
        if not isinstance(expected, Fields) or "raises" not in expected:
            raise
        raised = RAISES[type(error)]
    if not isinstance(expected, Fields) and not isinstance(shown, Seen) and "expect" in op:
        return shown
    seen = Seen(kind.observe(state), raises=raised)
    seen.update(shown if isinstance(shown, Mapping) else {})
    return seen


def compare(what: str, expected: object, actual: object, unmodelled: Container[str] = ()) -> int:
    """Compare, going down into `Seen`; returns the number of comparisons.

    Raises:
        AssertionError: they differ.
        TableError: a key that no driver knows.
    """
    if isinstance(expected, dict) and isinstance(actual, Seen):
        compared = 0
        for key, value in expected.items():
            if key in PROSE or key in unmodelled or (key in LATER and key not in actual):
                continue
            if key not in actual:
                raise TableError(f"{what} does not show {key!r}{did_you_mean(key, actual)}")
            compared += compare(f"{what}: {key}", value, actual[key], unmodelled)
        return compared
    actual = plain(actual)
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected}, got {actual}")
    return 1


def plain(value: object) -> object:
    """Convert tuples to lists and mappings to dicts, as JSON does."""
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value


def _refuse_unread(fields: Fields) -> None:
    unread = [name for name in fields.unread() if name.rsplit(".", 1)[-1] not in PROSE]
    if unread:
        raise TableError(f"fields that no driver understands: {', '.join(unread)}")
