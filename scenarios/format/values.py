"""Types of a scenario's fields, each with its check, its form in a file, and what is stored.

A field is declared once, by its type: ``near_percent: Percent = 0``. By the type `scenarios.format.converter` reads and
writes files and stores, and `scenarios.format.schema` makes the models that name every mistake. This module needs no
pydantic, because bundled scenarios are read for each run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from enum import Enum
from typing import Annotated, Any, Final

from faults.bounds import SHARES, FaultBounds
from faults.kinds.registry import KINDS, LINKS
from faults.stories import copies
from faults.stories.reassignments import MOVES
from scenarios.format import fields, json_parts
from sim.config import DIRECTORIES_MAX, PRODUCERS_MAX, Value
from sim.environment.file_damage import FILES
from sim.environment.topology import Topology
from sim.hosts.control_plane import CONTROLLERS, ELECTIONS, FIRST_CONTROLLER
from sim.hosts.interceptions import MESSAGES
from sim.protocol.modes import MODES
from sim.protocol.modes import mode as mode_named


class Mark(Enum):
    """What files, stores and hashes have of a field."""

    ABOUT = "it is about the scenario, which runs the same without it: the hash lacks it"
    LATER = "it is newer than the hash: stored if it differs from its default"
    NEVER = "it is never stored, and in no file"
    REQUEST = "the request for the scenario: in no file"
    ELSEWHERE = "another field reads and writes it"
    FLAT = "its own fields stand in the table"
    IN_MS = "us here, ms in files"
    REQUIRED = "files need it"


@dataclass(frozen=True, slots=True, eq=False)
class FileKey:
    """The key of a field in a file, if it differs, or its default there."""

    name: str = ""
    default: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class InFile:
    """What a file has in place of the value: data of type `form`; `write` makes it from the value."""

    form: Any
    write: Callable[[Any], object] | None = None


# What follows is also read by pydantic, when it makes a model.


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Bounds of numbers and lengths, and the pattern of a text, as pydantic calls them."""

    ge: int | None = None
    le: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        given = {field.name: getattr(self, field.name) for field in dataclass_fields(self)}
        return {**handler(source), **{name: bound for name, bound in given.items() if bound is not None}}


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """A check of a value against the facts of its file, which returns the value to use (`scenarios.format.fields`).

    Attributes:
        words: the words of which the value is one.
        first: whether it sees the value before its type is checked.
    """

    check: Callable[[Any, fields.Facts], object]
    words: Collection[str] = ()
    first: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from scenarios.format.validation import before_or_after

        return before_or_after(self.check, handler(source), before=self.first)

    def __get_pydantic_json_schema__(self, core: Any, handler: Callable[[Any], Any]) -> Any:
        return {**handler(core), "enum": list(self.words)} if self.words else handler(core)


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """A check of a value beside those of the fields before it, by their names in the file's model."""

    check: Callable[[Any, Mapping[str, Any]], object]

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from scenarios.format.validation import beside

        return beside(self.check, handler(source))


class InSchema:
    """Adds keywords to the JSON Schema of a field, for a check that pydantic does not know."""

    def __init__(self, **keywords: Any) -> None:
        self._keywords = keywords

    def __get_pydantic_json_schema__(self, core: Any, handler: Callable[[Any], Any]) -> Any:
        return {**handler(core), **self._keywords}


@dataclass(frozen=True, slots=True, eq=False)
class AsSchema:
    """The JSON Schema of a field, in place of what pydantic makes of its type."""

    schema: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, core: Any, handler: Callable[[Any], Any]) -> Any:
        return dict(self.schema)


def word(what: str, words: Collection[str]) -> Check:
    """A check for one of some words."""
    return Check(lambda value, _: fields.one_of(value, words, what), words)


# Numbers, words and pairs.

MINUTE_US: Final = 60_000_000
FIRST_HORIZON_MS: Final = 6_000
"""The first fault strikes after 5 s."""
Positive = Annotated[int, Bounds(ge=1)]
Natural = Annotated[int, Bounds(ge=0)]
Percent = Annotated[int, Bounds(ge=0, le=100)]
Producer = Annotated[int, Bounds(ge=1, le=PRODUCERS_MAX)]
Permille = Annotated[int, Bounds(ge=0, le=1_000)]
Ms = Annotated[int, Bounds(ge=0, le=(1 << 62) // 1_000)]
"""A time that fits into 64 bits in us."""
Words = Annotated[str, Bounds(min_length=1)]
Name = Annotated[str, Bounds(pattern=r"^[a-z0-9.-]+$")]
Violation = Annotated[str, word("kind of violation", fields.VIOLATIONS)]
FaultName = Annotated[str, word(fields.FAULT_KIND, KINDS)]
_CONTROLS: Final = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
"""Characters that end a line or change how the rest of it reads: controls, separators, changes of direction."""
_CONTROL: Final = re.compile(f"[{_CONTROLS}]")


def _one_line(text: str, _: fields.Facts) -> str:
    """Refuse control characters: titles stand in comments of scripts, where an end of line would begin a command."""
    if found := _CONTROL.search(text):
        raise ValueError(
            f"one line without control characters is needed, and character {found.start() + 1} is {found[0]!a}"
        )
    return text


OneLine = Annotated[Words, Check(_one_line), InSchema(pattern=f"^[^{_CONTROLS}]*$")]
"""A text of one line."""
_PAIR: Final = Check(fields.pair)
_TWO: Final = InSchema(minItems=2, maxItems=2)
Pair = Annotated[tuple[int, int], InFile(list[Natural]), _PAIR, _TWO]
PositivePair = Annotated[tuple[int, int], InFile(list[Positive]), _PAIR, _TWO]

# Brokers and their groups.

_DISTINCT: Final = InSchema(uniqueItems=True)
_ID: Final = InSchema(minimum=1, maximum=json_parts.BROKERS_MAX)
_ID_OR_NONE: Final = InSchema(minimum=0, maximum=json_parts.BROKERS_MAX)
Broker = Annotated[int, Check(fields.broker), _ID]
BrokerOrNone = Annotated[int, Check(fields.broker_or_none), _ID_OR_NONE]
Replica = Annotated[int, Check(fields.replica), _ID]
AnyReplicas = Annotated[tuple[Replica, ...], Check(fields.distinct), _DISTINCT]
_NODE: Final = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": json_parts.BROKERS_MAX},
        {"type": "integer", "minimum": FIRST_CONTROLLER, "maximum": FIRST_CONTROLLER + max(CONTROLLERS) - 1},
    ]
}
Machine = Annotated[int, Check(fields.machine), AsSchema(_NODE)]
Controller = Annotated[int, Check(fields.controller), AsSchema(_NODE["anyOf"][1])]
_Members = Annotated[tuple[Machine, ...], Bounds(min_length=1), Check(fields.distinct), _DISTINCT]
Groups = Annotated[Mapping[Name, _Members], Check(fields.disjoint)]
Latency = Annotated[int, Bounds(ge=0, le=MINUTE_US)]

# Settings, rules and modes.

_KEYED: Final = Check(fields.keyed, first=True)
_Settings = Mapping[str, Annotated[Value, InFile(Any), Check(fields.setting)]]
Settings = Annotated[_Settings, _KEYED, AsSchema(json_parts.part("settings"))]
TopicSettings = Annotated[_Settings, _KEYED, Check(fields.of_topic), AsSchema(json_parts.settings(fields.OF_TOPIC))]
Draws = Annotated[
    Mapping[str, Annotated[tuple[Value, ...], InFile(Any), Check(fields.choices)]],
    _KEYED,
    AsSchema(json_parts.part("draws")),
]
RuleValue = Annotated[
    Mapping[str, Annotated[str, InFile(Any), Check(fields.rule)]], _KEYED, AsSchema(json_parts.part("rule"))
]
RuleValues = Annotated[
    Mapping[str, Annotated[tuple[str, ...], InFile(Any), Check(fields.rule_values)]],
    _KEYED,
    AsSchema(json_parts.part("rules")),
]
"""Rule -> values; stores of earlier versions have one value each."""


def _mode(value: str, _: fields.Facts) -> str:
    """A mode, or one with changed rules (`sim.protocol.modes.changed`)."""
    return mode_named(value).name if "+" in value else fields.one_of(value, MODES, "mode")


ModeName = Annotated[str, Check(_mode, MODES)]

# Topics, and the parameters of script lines.

Directory = Annotated[int, Check(fields.directory), InSchema(minimum=1, maximum=DIRECTORIES_MAX)]
Batch = Annotated[str, Check(fields.batch)]
_Partition = Annotated[str, Check(fields.partition)]
FurtherPartition = Annotated[_Partition | None, Check(fields.further_partition), Mark.LATER]
_END: Final = {"anyOf": [{"const": "control"}, *_NODE["anyOf"]]}
_Replicas = Annotated[list[Replica], Bounds(min_length=1), Check(fields.distinct), _DISTINCT]
PARAMS: Final[dict[str, Any]] = {
    "batch": Annotated[Name, Check(fields.new_batch)],
    "sent": Annotated[Name, Check(fields.batch)],
    "count": Positive,
    "producer": Producer,
    "directory": Directory,
    "acks": Annotated[Any, Check(fields.acks), AsSchema(json_parts.ACKS)],
    "broker": Broker,
    "brokers": Annotated[list[Broker], Bounds(min_length=1), Check(fields.distinct), _DISTINCT],
    "machine": Machine,
    "machines": Annotated[list[Machine], Bounds(min_length=1), Check(fields.distinct), _DISTINCT],
    "controller": Controller,
    "leader": Annotated[int, Check(fields.leader), _ID_OR_NONE],
    "replicas": _Replicas,
    "endpoint": Annotated[Any, Check(fields.endpoint), AsSchema(_END)],
    "offset": Natural,
    "ms": Ms,
    "election": Annotated[str, word("election", ELECTIONS)],
    "message": Annotated[str, word("message", MESSAGES)],
    "file": Annotated[str, word("file", FILES)],
    "permille": Permille,
    "flag": bool,
    "partition": _Partition,
    "topic": Annotated[str, Check(fields.topic)],
    "deletable-topic": Annotated[str, Check(fields.deletable_topic)],
    "dynamic": Annotated[
        _Settings,
        Bounds(min_length=1),
        _KEYED,
        Check(fields.dynamic),
        AsSchema(json_parts.settings(fields.DYNAMIC, 1)),
    ],
}
"""Kind of a parameter in `scenarios.format.actions` -> its type."""


# Random faults and places of brokers, whose classes are compiled, and know nothing of files.


def _sum(others: Iterable[str]) -> Beside:
    """Check that shares add up to at most 100."""
    others = list(others)

    def check(value: int, given: Mapping[str, Any]) -> int:
        if value + sum(given.get(other, 0) for other in others) > 100:
            raise ValueError(f"with {' and '.join(others)} that is more than 100")
        return value

    return Beside(check)


def _standing(value: int, given: Mapping[str, Any]) -> int:
    """Incidents of a last replica standing need a kind that makes brokers leave the ISR."""
    kinds = given.get("kinds", [])
    if value and kinds and set(kinds) <= set(LINKS):
        raise ValueError(f"it needs a kind that strikes brokers, and {', '.join(kinds)} strike links alone")
    return value


def _needs(*needed: str) -> Beside:
    """Check that a file has the kinds of which an incident consists."""

    def check(value: int, given: Mapping[str, Any]) -> int:
        kinds = given.get("kinds", [])
        missing = [kind for kind in needed if kind not in kinds]
        if value and kinds and missing:
            raise ValueError(f"it needs the kind '{missing[0]}'")
        return value

    return Beside(check)


_NEEDS: Final = {
    "standing_percent": (Beside(_standing),),
    "moving_percent": (_needs(MOVES),),
    "copying_percent": (_needs(*copies.NEEDS),),
}
_LATER: Final = ("others_percent", "copying_percent", "one_directory_percent", "controllers_percent")
_DRAWN: Final[dict[str, Any]] = {
    "horizon_us": Annotated[int, Bounds(ge=FIRST_HORIZON_MS), Mark.IN_MS],
    "count": Pair,
    "kinds": Annotated[tuple[FaultName, ...], Bounds(min_length=1)],
}
"""Types of fields that are not pairs of bounds."""
_UNITS: Final[dict[str, Any]] = {
    "_us": Annotated[tuple[int, int], InFile(list[Ms]), _PAIR, _TWO, Mark.IN_MS],
    "_permille": Annotated[tuple[int, int], InFile(list[Permille]), _PAIR, _TWO],
    "_percent": Percent,
}


def _drawn(name: str) -> Any:
    """The type of a field of `FaultBounds`, by its unit."""
    found = _DRAWN.get(name) or next(kind for unit, kind in _UNITS.items() if name.endswith(unit))
    marks = [_sum(SHARES[: SHARES.index(name)]), *_NEEDS.get(name, ())] if name in SHARES else []
    marks += [Mark.LATER] if name in _LATER else []
    for mark in marks:
        found = Annotated[found, mark]
    return found


TYPES: Final[dict[type, dict[str, Any]]] = {
    FaultBounds: {field.name: _drawn(field.name) for field in dataclass_fields(FaultBounds)},
    Topology: {
        "racks": Annotated[Groups, Check(fields.racks)],
        "power_domains": Groups,
        "hosts": Groups,
        "latency_within_rack_us": Latency,
        "latency_between_racks_us": Latency,
    },
}
"""Compiled class -> types of its fields."""
