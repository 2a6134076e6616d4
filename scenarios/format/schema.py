"""Scenario files: TOML in, `scenarios.format.scenario.Scenario` out, every mistake named at once.

Runs on the driver only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, replace
from dataclasses import Field as DataclassField
from dataclasses import fields as dataclass_fields
from typing import Annotated, Any, Final, Literal, Self, Union

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    create_model,
    model_validator,
)

from faults.bounds import SHARES, FaultBounds
from faults.kinds.registry import ADDED, KINDS, LINKS
from faults.stories import copies
from faults.stories.reassignments import MOVES
from scenarios import paths
from scenarios.format import fields, json_parts
from scenarios.format.actions import ACTIONS, Action
from scenarios.format.cluster_checks import check_as_kafka, check_control_plane
from scenarios.format.finding import GROUPS, folded, repair_of
from scenarios.format.scenario import SCENARIO_VERSION, Scenario, from_json
from scenarios.format.validation import InSchema, OneLine, OneOf, OpenTable, Table, checked, validated
from sim.config import DIRECTORIES_MAX
from sim.errors import InputError
from sim.history.steps import ACK, APPEND, ELR, ISR, READ, SETTLED, STEPS
from sim.hosts.control_plane import ELECTIONS
from sim.hosts.interceptions import MESSAGES
from sim.protocol.modes import MODES
from sim.protocol.modes import mode as mode_named


def _check(check: Callable[[Any, fields.Facts], object]) -> AfterValidator:
    return AfterValidator(checked(check))


def _word(what: str, words: Iterable[str]) -> OneOf:
    return OneOf(lambda value: fields.one_of(value, words, what), words)


def _only_for(*steps: str) -> AfterValidator:
    def validate(value: object, info: ValidationInfo) -> object:
        if info.data.get("step", steps[0]) not in steps:
            raise ValueError(f"step {info.data['step']!r} has none; steps that have one: {', '.join(steps)}")
        return value

    return AfterValidator(validate)


def _shares(*others: str) -> AfterValidator:
    """Check that shares add up to at most 100."""

    def validate(value: int, info: ValidationInfo) -> int:
        if value + sum(info.data.get(other, 0) for other in others) > 100:
            raise ValueError(f"with {' and '.join(others)} that is more than 100")
        return value

    return AfterValidator(validate)


def _standing(value: int, info: ValidationInfo) -> int:
    """Incidents of a last replica standing need a kind that makes brokers leave the ISR."""
    kinds = info.data.get("kinds", [])
    if value and kinds and set(kinds) <= set(LINKS):
        raise ValueError(f"it needs a kind that strikes brokers, and {', '.join(kinds)} strike links alone")
    return value


def _moving(value: int, info: ValidationInfo) -> int:
    """Incidents of reassignments need that kind."""
    kinds = info.data.get("kinds", [])
    if value and kinds and MOVES not in kinds:
        raise ValueError(f"it needs the kind '{MOVES}'")
    return value


def _copying(value: int, info: ValidationInfo) -> int:
    """Incidents of copies need the kinds of which they consist."""
    kinds = info.data.get("kinds", [])
    missing = [kind for kind in copies.NEEDS if kind not in kinds]
    if value and kinds and missing:
        raise ValueError(f"it needs the kind '{missing[0]}'")
    return value


def _ms_name(name: str) -> str:
    return name.removesuffix("us") + "ms" if name.endswith("_us") else name


def _ms(us: Any) -> Any:
    if isinstance(us, list | tuple):
        return [_ms(bound) for bound in us]
    if us % 1_000:
        raise ValueError(f"{us} us is no whole number of ms")
    return us // 1_000


FIRST_HORIZON_MS: Final = 6_000
"""The first fault strikes after 5 s."""
MINUTE_US: Final = 60_000_000
Positive = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Percent = Annotated[int, Field(ge=0, le=100)]
Words = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9.-]+$")]
Permille = Annotated[int, Field(ge=0, le=1_000)]
Ms = Annotated[int, Field(ge=0, le=(1 << 62) // 1_000)]
"""A time that fits into 64 bits in us."""
_TWO: Final = InSchema(minItems=2, maxItems=2)
_DISTINCT: Final = InSchema(uniqueItems=True)
_ID: Final = InSchema(minimum=1, maximum=json_parts.BROKERS_MAX)
_ID_OR_NONE: Final = InSchema(minimum=0, maximum=json_parts.BROKERS_MAX)
Pair = Annotated[list[Natural], _check(fields.pair), _TWO]
MsPair = Annotated[list[Ms], _check(fields.pair), _TWO]
PermillePair = Annotated[list[Permille], _check(fields.pair), _TWO]
Broker = Annotated[int, _check(fields.broker), _ID]
Replica = Annotated[int, _check(fields.replica), _ID]
Replicas = Annotated[list[Replica], Field(min_length=1), _check(fields.distinct), _DISTINCT]
AnyReplicas = Annotated[list[Replica], _check(fields.distinct), _DISTINCT]
_KEYED = BeforeValidator(checked(fields.keyed))
_Settings = Annotated[dict[str, Annotated[Any, _check(fields.setting)]], _KEYED]
Settings = Annotated[_Settings, WithJsonSchema(json_parts.part("settings"))]
Draws = Annotated[
    dict[str, Annotated[Any, _check(fields.choices)]],
    _KEYED,
    WithJsonSchema(json_parts.part("draws")),
]
RuleValue = Annotated[
    dict[str, Annotated[Any, _check(fields.rule)]],
    _KEYED,
    WithJsonSchema(json_parts.part("rule")),
]
RuleValues = Annotated[
    dict[str, Annotated[Any, _check(fields.rule_values)]],
    _KEYED,
    WithJsonSchema(json_parts.part("rules")),
]


def _mode(value: str) -> str:
    """A mode, or one with changed rules (`sim.protocol.modes.changed`)."""
    return mode_named(value).name if "+" in value else fields.one_of(value, MODES, "mode")


ModeName = Annotated[str, OneOf(_mode, MODES)]

Directory = Annotated[int, _check(fields.directory), InSchema(minimum=1, maximum=DIRECTORIES_MAX)]
PartitionName = Annotated[str, _check(fields.partition)]
FurtherPartition = Annotated[PartitionName | None, _check(fields.further_partition)]
PARAMS: Final[dict[str, Any]] = {
    "batch": Annotated[Name, _check(fields.new_batch)],
    "sent": Annotated[Name, _check(fields.batch)],
    "count": Positive,
    "directory": Directory,
    "acks": Annotated[Any, _check(fields.acks), WithJsonSchema(json_parts.ACKS)],
    "broker": Broker,
    "brokers": Annotated[list[Broker], Field(min_length=1), _check(fields.distinct), _DISTINCT],
    "leader": Annotated[int, _check(fields.leader), _ID_OR_NONE],
    "replicas": Replicas,
    "endpoint": Annotated[
        Any,
        _check(fields.endpoint),
        WithJsonSchema(
            {"anyOf": [{"const": "control"}, {"type": "integer", "minimum": 1, "maximum": json_parts.BROKERS_MAX}]}
        ),
    ],
    "offset": Natural,
    "ms": Ms,
    "election": Annotated[str, _word("election", ELECTIONS)],
    "message": Annotated[str, _word("message", MESSAGES)],
    "permille": Permille,
    "flag": bool,
    "partition": PartitionName,
    "topic": Annotated[str, _check(fields.topic)],
    "other-topic": Annotated[str, _check(fields.other_topic)],
    "dynamic": Annotated[
        _Settings,
        Field(min_length=1),
        _check(fields.dynamic),
        WithJsonSchema(json_parts.settings(fields.DYNAMIC, 1)),
    ],
}
"""Kind of a parameter in `scenarios.format.actions` -> its type."""


class _Section(Table):
    mode: ModeName | None = None
    keys: Settings


class _Brokers(Table):
    count: Annotated[int, Field(ge=1, le=fields.MAX_BROKERS)]
    first: Broker = 1
    upgraded_from: list[ModeName] = []
    sections: dict[Annotated[str, _check(fields.section)], _Section] = {}


Members = Annotated[list[Broker], Field(min_length=1), _check(fields.distinct), _DISTINCT]
Groups = Annotated[dict[Name, Members], _check(fields.disjoint)]


class _Topology(Table):
    racks: Annotated[Groups, _check(fields.racks)] = {}
    power_domains: Groups = {}
    hosts: Groups = {}
    latency_within_rack_us: Annotated[int, Field(ge=0, le=MINUTE_US)] = 0
    latency_between_racks_us: Annotated[int, Field(ge=0, le=MINUTE_US)] = 0


class _Topic(Table):
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]+$", max_length=fields.TOPIC_MAX)]
    partitions: Annotated[int, Field(ge=1, le=fields.MAX_PARTITIONS)] = 1
    replication_factor: Annotated[int, Field(ge=1), _check(fields.factor)] | None = None
    idle: bool = False
    created: bool = True
    in_percent: Percent = 100
    directory: Directory | None = None
    config: Annotated[
        _Settings,
        _check(fields.of_topic),
        WithJsonSchema(json_parts.settings(fields.OF_TOPIC)),
    ] = {}


class _Workload(Table):
    bursts: Pair
    batches: Pair
    gap_ms: Pair
    records: Annotated[list[Positive], _check(fields.pair), _TWO]
    acks_one_every: Natural = 0
    near_percent: Percent = 0


def _drawn(name: str) -> Any:
    """The type of a field of `FaultBounds` in a file, by its unit."""
    if name in SHARES:
        return Annotated[Percent, _shares(*SHARES[: SHARES.index(name)]), *_NEEDS.get(name, ())]
    return _DRAWN.get(name) or next(kind for unit, kind in _UNITS.items() if name.endswith(unit))


_UNITS: Final[dict[str, Any]] = {"_us": MsPair, "_permille": PermillePair, "_percent": Percent}
_DRAWN: Final[dict[str, Any]] = {
    "horizon_us": Annotated[int, Field(ge=FIRST_HORIZON_MS)],
    "count": Pair,
    "kinds": Annotated[list[Annotated[str, _word(fields.FAULT_KIND, KINDS)]], Field(min_length=1)],
}
"""Types of fields that are not pairs of bounds."""
_NEEDS: Final = {
    "standing_percent": (AfterValidator(_standing),),
    "moving_percent": (AfterValidator(_moving),),
    "copying_percent": (AfterValidator(_copying),),
}


def _in_file(field: DataclassField[Any]) -> tuple[Any, Any]:
    """Type and default of a field of `FaultBounds` in a file; times are in ms there."""
    default = ... if field.default is MISSING else field.default
    if not field.name.endswith("_us"):
        return _drawn(field.name), default
    return Annotated[_drawn(field.name), AfterValidator(_in_us)], Field(default, alias=_ms_name(field.name))


def _in_us(ms: Any) -> Any:
    return 1_000 * ms if isinstance(ms, int) else tuple(1_000 * bound for bound in ms)


_FAULT_FIELDS: Final[dict[str, Any]] = {field.name: _in_file(field) for field in dataclass_fields(FaultBounds)}
_Faults: Final = create_model("_Faults", __base__=Table, **_FAULT_FIELDS)
"""The table ``[faults]``: what `FaultBounds` holds, in ms."""


ONLY_FOR: Final = {
    "batch": (APPEND.name, ACK.name, READ.name),
    "isr": (ISR.name,),
    "elr": (ELR.name,),
    "last_known_elr": (ELR.name,),
    "rounds": (SETTLED.name,),
}
"""Key of a pattern -> the steps that have it."""


class _Pattern(Table):
    step: Annotated[str, _word("step", STEPS)]
    broker: Annotated[int, _check(fields.broker_or_none), _ID_OR_NONE] | None = None
    batch: Annotated[str, _only_for(*ONLY_FOR["batch"]), _check(fields.batch)] | None = None
    offset: Natural | None = None
    leader_epoch: Natural | None = None
    isr: Annotated[AnyReplicas, _only_for(*ONLY_FOR["isr"])] | None = None
    elr: Annotated[AnyReplicas, _only_for(*ONLY_FOR["elr"])] | None = None
    last_known_elr: Annotated[AnyReplicas, _only_for(*ONLY_FOR["last_known_elr"])] | None = None
    rounds: Annotated[Natural, _only_for(*ONLY_FOR["rounds"])] | None = None
    partition: FurtherPartition = None


class _StoryLine(_Pattern):
    rules: RuleValues = {}


class _FinalLog(Table):
    broker: Broker
    batches: list[Annotated[str, _check(fields.batch)]]
    leo: Natural | None = None
    partition: FurtherPartition = None
    rules: RuleValues = {}


class _Also(Table):
    kind: Annotated[str, _word("kind of violation", fields.VIOLATIONS)]
    modes: Annotated[list[ModeName], Field(min_length=1)]
    label: Literal["inside", "outside"]
    reason: Words


class _Confirm(Table):
    releases: list[Annotated[str, Field(pattern=r"^[0-9]+([.][0-9]+)+$")]] = []
    pace: Positive = 5
    without: Words = ""

    @model_validator(mode="after")
    def _says_one(self) -> Self:
        if bool(self.releases) == bool(self.without):
            raise ValueError("it has either 'releases', or 'without', the reason why there are none")
        return self


def _fault(value: str) -> str:
    return value if value in GROUPS else fields.one_of(value, [*GROUPS, *KINDS], fields.FAULT_KIND)


class _Needs(Table):
    kinds: Annotated[list[Annotated[str, OneOf(_fault, [*GROUPS, *KINDS])]], Field(min_length=1)]
    least: Positive = 1


class _Hunt(Table):
    scenario: Name
    mode: ModeName = "elr-4.3"
    tier: Literal[1, 2] = 2
    settings: Settings = {}
    also_by: RuleValues = {}
    lossy_ends: Natural | None = None


class _Walks(Table):
    mode: ModeName = "elr-repaired"
    bounds: dict[Name, Natural] = {}
    strict: bool = True


Paragraph = Annotated[Words, AfterValidator(folded)]


class _Finding(Table):
    number: Positive | None = None
    of: Name = ""
    kinds: list[Annotated[str, _word("kind of violation", fields.VIOLATIONS)]] = []
    any_kind: bool = False
    needs: list[_Needs] = []
    repair: RuleValue = {}
    also_by: RuleValues = {}
    not_by: RuleValues = {}
    contradicts: list[Name] = []
    kafka: list[Annotated[str, Field(pattern=r"^\w+#\w+$")]] = []
    cause: Paragraph = ""
    upstream: Paragraph = ""
    text: Words = ""
    hunt: _Hunt | None = None
    walks: _Walks | None = None

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        if self.number is None and not self.of:
            raise ValueError("'number' is missing, its place among the findings, or 'of', the one with the same cause")
        return self


class _Line(Table):
    when: _Pattern | None = None
    after_ms: Natural = 0
    after_us: Natural = 0
    rules: RuleValues = {}

    @model_validator(mode="after")
    def _is_whole(self, info: ValidationInfo) -> Self:
        checked(_two_ends)(self, info)
        return self


def _two_ends(line: object, _: fields.Facts) -> object:
    """A line of a link names both ends, or neither for all links."""
    if (getattr(line, "from", None) is None) != (getattr(line, "to", None) is None):
        raise InputError("a link has two ends, 'from' and 'to'")
    return line


def _line(do: str, action: Action) -> type[_Line]:
    """The model of an action's script lines."""
    given: dict[str, Any] = {"do": (Annotated[Literal[do], _check(fields.action)], ...)}
    for name, param in action.params.items():
        kind = PARAMS[param.kind]
        given[name] = (kind, ...) if param.required else (kind | None, param.default)
    return create_model(do, __base__=_Line, **given)


LINES: Final = {do: _line(do, action) for do, action in ACTIONS.items() if do not in ADDED}
"""Value of `do` -> model of its script lines; those of plug-ins are not in it."""


_BROKERS: Final = json_parts.brokers(
    {"type": "integer", "minimum": 1, "maximum": fields.MAX_BROKERS},
    {"type": "integer", "minimum": 1, "maximum": fields.MAX_BROKERS},
    {"type": "array", "items": {"enum": list(MODES)}},
    {"enum": list(MODES)},
)


class _File(Table):
    schema_version: Literal[1] = Field(alias="schema")
    name: Annotated[
        Name,
        _check(fields.scenario_name),
        InSchema(maxLength=paths.NAME_MAX, pattern="^[a-z0-9.-]*[a-z0-9-][a-z0-9.-]*$"),
    ]
    title: OneLine
    description: str = ""
    brokers: Annotated[_Brokers, BeforeValidator(checked(fields.sections)), WithJsonSchema(_BROKERS)]
    control: Annotated[str, _word("control plane", ("real", "scripted"))]
    settle_us: Annotated[Natural, AfterValidator(_in_us)] = Field(default=0, alias="settle_ms")
    config: Settings = {}
    draw_config: Draws = Field(default={}, alias="draw")
    topology: _Topology | None = None
    topics: Annotated[list[_Topic], _check(fields.topics)] = []
    workload: _Workload | None = None
    faults: _Faults | None = None  # type: ignore[valid-type]
    script: list[Annotated[Union[tuple(LINES.values())], Field(discriminator="do")]] = []  # type: ignore[valid-type]  # noqa: UP007
    story: list[_StoryLine] = []
    final: list[_FinalLog] = []
    expect: Annotated[dict[ModeName, Annotated[str, _check(fields.expectation)]], Field(min_length=1)]
    broken_by: dict[ModeName, RuleValue] = {}
    also: list[_Also] = []
    confirm: _Confirm | None = None
    finding: _Finding | None = None


TABLES: Final[dict[str, type[Table]]] = {
    "": _File,
    "topology": _Topology,
    "topics": _Topic,
    "workload": _Workload,
    "faults": _Faults,
    "when": _Pattern,
    "story": _StoryLine,
    "final": _FinalLog,
    "also": _Also,
    "confirm": _Confirm,
    "finding": _Finding,
    "needs": _Needs,
    "hunt": _Hunt,
    "walks": _Walks,
    **LINES,
}
"""Last name in the path of a table -> its model."""


def _models() -> tuple[type[_File], dict[str, type[Table]]]:
    """The models of a file and of its tables, with the kinds of fault of plug-ins."""
    if not ADDED:
        return _File, TABLES
    lines = {**LINES, **{do: _line(do, action) for do, action in ACTIONS.items() if do in ADDED}}
    of_lines: Any = Union[tuple(lines.values())]  # noqa: UP007
    given: dict[str, Any] = {"script": (list[Annotated[of_lines, Field(discriminator="do")]], [])}
    file = create_model("_File", __base__=_File, **given)
    return file, {**TABLES, "": file, **lines}


class _Asked(OpenTable):
    """The request for a stored scenario."""

    source: str
    overrides: list[str] = []
    strict: bool = False
    without_faults: list[Annotated[str, _word(fields.FAULT_KIND, KINDS)]] = []


def read(text: str, source: str) -> Scenario:
    """Read a scenario file, which messages call `source`; raises InputError with all problems."""
    try:
        return _scenario(paths.parse_toml(text))
    except InputError as error:
        raise InputError(*(f"{source}: {problem}" for problem in error.problems)) from None


def of_store(stored: Mapping[str, Any]) -> Scenario:
    """A scenario that this version or an older one stored (`Scenario.to_json`), checked like a file.

    Raises:
        InputError: names all problems.
    """
    try:
        from_json(stored)  # Refuses newer versions.
        scenario = _scenario(_as_file(stored))
    except (AttributeError, KeyError, TypeError):
        raise InputError("it contains a scenario that highwater did not write") from None
    except ValueError as error:
        raise InputError(str(error)) from None
    asked = validated(_Asked, stored)
    return replace(
        scenario,
        source=asked.source,
        overrides=tuple(asked.overrides),
        strict=asked.strict,
        without_faults=tuple(asked.without_faults),
    )


def _scenario(data: dict[str, Any]) -> Scenario:
    version = data.get("schema")
    if isinstance(version, int) and version > SCENARIO_VERSION:
        raise InputError(f"schema = {version} is newer than this version reads ({SCENARIO_VERSION})")
    facts = fields.gather(data)
    found = fields.whole(data, facts)
    try:
        model, tables = _models()
        file = validated(model, data, facts, tables)
    except InputError as error:
        found += error.problems
    if found:
        raise InputError(*dict.fromkeys(found))
    scenario = from_json(_plain(file))
    check_control_plane(scenario, [mode_named(name) for name in scenario.expect])
    check_as_kafka(scenario)
    _check_finding(scenario)
    return scenario


def _check_finding(scenario: Scenario) -> None:
    """A finding has a repair."""
    one = scenario.finding
    if one is not None and not one.of and repair_of(one, scenario.broken_by) is None:
        raise InputError("finding: no rule value cures it: give 'repair', or one rule of a repaired mode in broken_by")


def _as_file(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The data of the corresponding file; the inverse of `_plain`."""
    given = {_FILE_KEYS.get(key, key): value for key, value in stored.items() if value is not None}
    for key in (
        "source",
        "overrides",
        "strict",
        "without_faults",
        "first",
        "upgraded_from",
        "broker_config",
        "broker_modes",
    ):
        given.pop(key, None)
    sections = {broker: dict(keys) for broker, keys in stored["broker_config"].items()}
    for broker, mode in stored.get("broker_modes", {}).items():
        sections.setdefault(broker, {})["mode"] = mode
    brokers = {"count": stored["brokers"], "first": stored.get("first", 1)}
    for table in ("confirm", "finding"):
        if stored.get(table) is not None:
            given[table] = _given(stored[table])
    if stored["faults"] is not None:
        given["faults"] = {
            _ms_name(name): _ms(value) if name.endswith("_us") else value for name, value in stored["faults"].items()
        }
    return {
        **given,
        "schema": SCENARIO_VERSION,
        "brokers": {**brokers, "upgraded_from": stored.get("upgraded_from", []), **sections},
        "control": "real" if stored["control"] == "simple" else stored["control"],  # Its first name.
        "settle_ms": _ms(stored["settle_us"]),
        "script": [_line_of(step) for step in stored["script"]],
        "story": [{**_without_none(line["pattern"]), "rules": line["rules"]} for line in stored["story"]],
        "final": [_without_none(final) for final in stored.get("final", ())],
        "expect": {mode: _words(expectation) for mode, expectation in stored["expect"].items()},
    }


_FILE_KEYS: Final = {"draw_config": "draw", "schema_version": "schema", "settle_us": "settle_ms"}
"""Stored key -> key in a file."""


def _line_of(step: Mapping[str, Any]) -> dict[str, Any]:
    line = {"do": step["do"], "after_us": step["after_us"], "rules": step.get("rules", {}), **step["params"]}
    return line if step["when"] is None else {**line, "when": _without_none(step["when"])}


def _words(expectation: Mapping[str, Any]) -> str:
    return ":".join(filter(None, (expectation["verdict"], "|".join(expectation["kinds"]))))


def _without_none(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value is not None}


def _given(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table and those in it without keys that have no value."""
    return {
        key: _given(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
        if value not in (None, "")
    }


def _plain(file: _File) -> dict[str, Any]:
    """The file in the shape of `Scenario.to_json`, with times in us."""
    plain = file.model_dump(warnings=False)  # Checks change types of fields, of which it would warn.
    brokers = plain.pop("brokers")
    return {
        **plain,
        "brokers": brokers["count"],
        "first": brokers["first"],
        "upgraded_from": brokers["upgraded_from"],
        "broker_config": {broker: part["keys"] for broker, part in brokers["sections"].items() if part["keys"]},
        "broker_modes": {broker: part["mode"] for broker, part in brokers["sections"].items() if part["mode"]},
        "script": [_step(line) for line in plain["script"]],
        "story": [{"rules": line.pop("rules"), "pattern": line} for line in plain["story"]],
    }


def _step(line: dict[str, Any]) -> dict[str, Any]:
    after_us = line.pop("after_ms") * 1000 + line.pop("after_us")
    step = {"do": line.pop("do"), "when": line.pop("when"), "after_us": after_us, "rules": line.pop("rules")}
    return {**step, "params": {name: value for name, value in line.items() if value is not None}}
