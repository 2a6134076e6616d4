"""Finds every mistake of a scenario file at once, with pydantic models that are made from the dataclasses on first use.

Only files of users, stores and plug-ins need them. Runs on the driver only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, replace
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, Self, Union, get_args, get_origin

from pydantic import Field, ValidationInfo, create_model, model_validator

from faults.kinds.registry import ADDED
from scenarios import paths
from scenarios.format import converter, fields, values
from scenarios.format.actions import ACTIONS
from scenarios.format.cluster_checks import check_as_kafka, check_control_plane
from scenarios.format.finding import repair_of
from scenarios.format.scenario import SCENARIO_VERSION, Pattern, Scenario, ScriptLine, from_json, of_file
from scenarios.format.validation import OpenTable, StrictTable, checked, validated
from scenarios.format.values import InFile, Mark
from sim.errors import InputError
from sim.protocol.modes import mode as mode_named


@cache
def model(owner: type) -> type[StrictTable]:
    """The model of a dataclass's table in a file."""
    check = getattr(owner, "check_table", None)
    validators: Any = {} if check is None else {"whole": model_validator(mode="after")(_whole(check))}
    return create_model(
        owner.__name__, __base__=StrictTable, __validators__=validators, **_given(converter.in_file(owner))
    )


def _whole(check: Any) -> Any:
    def validate(table: StrictTable) -> StrictTable:
        check(table)
        return table

    return validate


def _given(declared: Any) -> dict[str, Any]:
    """Types and defaults of a model's fields."""
    given: dict[str, Any] = {}
    for one in declared:
        default = one.default
        if default is not MISSING and Mark.IN_MS in one.marks:
            default = converter.in_ms(default)
        given[one.name] = (_in_model(one.kind), Field(... if default is MISSING else default, alias=one.key))
    return given


def _in_model(kind: Any) -> Any:
    """The type of a value in a file: what its metadata names, with lists, dictionaries and models."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        form = next((arg.form for arg in args if isinstance(arg, InFile)), args[0])
        found = _in_model(form)
        for arg in args[1:]:
            found = Annotated[found, arg]
        return found
    if converter.is_table(kind):
        return model(kind)
    if origin is Union or origin is UnionType:
        return Union[tuple(_in_model(arg) for arg in args)]  # noqa: UP007
    if origin in (tuple, list):
        return list[_in_model(args[0])]  # type: ignore[misc]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[_in_model(args[0]), _in_model(args[1])]  # type: ignore[misc]
    return kind


class _Line(StrictTable):
    when: model(Pattern) | None = None  # type: ignore[valid-type]
    after_ms: values.Natural = 0
    after_us: values.Natural = 0
    rules: _in_model(values.RuleValues) = {}  # type: ignore[valid-type]

    @model_validator(mode="after")
    def _is_whole(self, info: ValidationInfo) -> Self:
        checked(_two_ends)(self, info)
        return self


def _two_ends(line: object, _: fields.Facts) -> object:
    """A line of a link names both ends, or neither for all links."""
    if (getattr(line, "from", None) is None) != (getattr(line, "to", None) is None):
        raise InputError("a link has two ends, 'from' and 'to'")
    return line


def line(do: str) -> type[StrictTable]:
    """The model of an action's script lines."""
    return _line(do) if do in ADDED else _own_line(do)


def _line(do: str) -> type[StrictTable]:
    given: dict[str, Any] = {"do": (Annotated[Literal[do], values.Check(fields.action)], ...)}
    for name, param in ACTIONS[do].params.items():
        kind = _in_model(values.PARAMS[param.kind])
        given[name] = (kind, ...) if param.required else (kind | None, param.default)
    return create_model(do, __base__=_Line, **given)


_own_line: Final = cache(_line)
"""Plug-ins come and go, and so do their kinds of fault."""


class _File(StrictTable):
    schema_version: Literal[1] = Field(alias="schema")


def file_model(actions: Iterable[str]) -> type[StrictTable]:
    """The model of a file with script lines of these actions."""
    known = frozenset(actions)
    return _file(known) if known & ADDED else _own_file(known)


def _file(actions: frozenset[str]) -> type[StrictTable]:
    lines = tuple([line(do) for do in ACTIONS if do in actions])
    given = _given(converter.in_file(Scenario))
    given["script"] = (list[Annotated[Union[lines], Field(discriminator="do")]], [])  # type: ignore[valid-type]  # noqa: UP007
    return create_model("Scenario", __base__=_File, **given)


_own_file: Final = cache(_file)


def tables(actions: Iterable[str]) -> dict[str, type[StrictTable]]:
    """The models of a file with script lines of these actions: last name in the path of a table -> its model."""
    return {**dict(_tables(Scenario)), **{do: line(do) for do in actions}, "": file_model(actions)}


def _actions(data: Mapping[str, Any]) -> set[str]:
    """What the script of a file does, which may be invalid in any way: only these actions need a model."""
    script = data.get("script")
    found = [line.get("do") for line in script if isinstance(line, Mapping)] if isinstance(script, list) else []
    return {do for do in found if isinstance(do, str)}


def _tables(owner: type) -> Iterator[tuple[str, type[StrictTable]]]:
    """The models of the tables in a table, by their keys."""
    for field in converter.in_file(owner):
        for inner in dataclasses_in(field.kind):
            yield field.key, _Line if inner is ScriptLine else model(inner)
            yield from _tables(inner)


def dataclasses_in(kind: Any) -> Iterator[type]:
    """The dataclasses in a type that are tables of their own."""
    if converter.is_table(kind):
        yield kind
    elif not any(isinstance(arg, InFile) for arg in get_args(kind)):
        for arg in get_args(kind):
            yield from dataclasses_in(arg)


_ASKED: Final = [field for field in converter.declared(Scenario) if Mark.REQUEST in field.marks]


@cache
def _request() -> type[OpenTable]:
    """The model of the request for a stored scenario."""
    return create_model("Request", __base__=OpenTable, **{**_given(_ASKED), "source": (str, ...)})


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
        found = from_json(stored)  # Refuses newer versions.
        if found.control == "simple":  # Its first name.
            found = replace(found, control="real")
        scenario = _scenario(found.as_file())
    except (AttributeError, KeyError, TypeError):
        raise InputError("it contains a scenario that highwater did not write") from None
    except ValueError as error:
        raise InputError(str(error)) from None
    validated(_request(), stored)
    return replace(scenario, **{field.name: getattr(found, field.name) for field in _ASKED})


def _scenario(data: dict[str, Any]) -> Scenario:
    version = data.get("schema")
    if isinstance(version, int) and version > SCENARIO_VERSION:
        raise InputError(f"schema = {version} is newer than this version reads ({SCENARIO_VERSION})")
    facts = fields.gather(data)
    found = fields.whole(data, facts)
    try:
        known = tables({"produce", "wait", *_actions(data)} & ACTIONS.keys())
        validated(known[""], data, facts, known)
    except InputError as error:
        found += error.problems
    if found:
        raise InputError(*dict.fromkeys(found))
    scenario = of_file(data)
    check_control_plane(scenario, [mode_named(name) for name in scenario.expect])
    check_as_kafka(scenario)
    _check_finding(scenario)
    return scenario


def _check_finding(scenario: Scenario) -> None:
    """A finding has a repair."""
    one = scenario.finding
    if one is not None and not one.of and repair_of(one, scenario.broken_by) is None:
        raise InputError("finding: no rule value cures it: give 'repair', or one rule of a repaired mode in broken_by")
