"""Recorded runs: a drawn run as a file that needs nothing drawn to be run again.

It holds the settings as resolved, the fault plan, the batches, mode and rules, the seed (which latencies still come
from), and what was violated. Scenarios and drawing may change; the run stays. Files that hold only a fault plan, as
earlier versions wrote them, go with a scenario, from which everything else is drawn.
"""

from __future__ import annotations

import json
from dataclasses import Field, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from faults.kinds import KINDS
from faults.plan import FOLLOWERS, Fault, Plan, Trigger, plan_from_json
from scenarios import paths
from scenarios.format.fields import MAX_BROKERS, VIOLATIONS
from scenarios.format.scenario import Expectation, Recorded, Scenario
from sim.config import parse, resolve
from sim.errors import InputError, UserError, did_you_mean
from sim.history.steps import MOMENTS
from sim.protocol.modes import mode as mode_named
from sim.protocol.rules import check as check_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from scenarios.single.run import RunResult
    from sim.config import Value

SCHEMA_VERSION: Final = 1
_LINE_MAX: Final = 8
"""Fields that may share a line."""
_SEND: Final = ("first_id", "records", "acks", "due_us")


@dataclass(frozen=True, slots=True)
class Recording:
    """What to run.

    Attributes:
        scenario: holds all but the following.
        mode: None where the file is only a plan, as below.
        seed: what latencies are drawn from.
        rules: rules that were overridden.
        digest: of the run that was recorded.
    """

    scenario: Scenario
    mode: str | None = None
    seed: int | None = None
    rules: Mapping[str, str] | None = None
    digest: str | None = None


def to_json(scenario: Scenario, result: RunResult) -> dict[str, Any]:
    """A drawn run as plain data; of a scripted one the scenario says all, and this is an empty plan."""
    if result.horizon_us is None:
        return result.plan
    row = result.row
    return {
        "schema_version": SCHEMA_VERSION,
        "scenario": scenario.name,
        "mode": row["mode"],
        "seed": row["seed"],
        "strict": scenario.strict,
        "rules": dict(result.rules),
        "kinds": row["violations"].split(",") if row["violations"] else [],
        "digest": row["digest"],
        "brokers": scenario.brokers,
        "first": scenario.first,
        "horizon_us": result.horizon_us,
        "settle_us": scenario.settle_us,
        "config": dict(result.settings),
        "broker_config": {str(broker): dict(keys) for broker, keys in scenario.broker_config.items()},
        "broker_modes": {str(broker): mode for broker, mode in scenario.broker_modes.items()},
        "older_modes": {str(broker): mode for broker, mode in result.older.items()},
        "sends": [dict(zip(_SEND, send, strict=True)) for send in result.sends],
        "plan": result.plan,
    }


def to_text(data: Mapping[str, Any]) -> str:
    """Plain data as JSON with a line for each setting, batch and fault."""
    return _block(data, "") + "\n"


def _block(data: Any, indent: str) -> str:
    values = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    nested = any(isinstance(value, dict | list) for value in values)
    if not nested and len(values) <= _LINE_MAX:
        return json.dumps(data)
    inner = f"{indent} "
    if isinstance(data, dict):
        lines = [f"{inner}{json.dumps(key)}: {_block(value, inner)}" for key, value in data.items()]
        return "\n".join(["{", ",\n".join(lines), f"{indent}}}"])
    return "\n".join(["[", ",\n".join(f"{inner}{json.dumps(value)}" for value in data), f"{indent}]"])


def read(file: Path, scenario: Scenario | None = None) -> Recording:
    """Read a recorded run, or a plan.

    Args:
        file: what ``replay`` writes as ``plan.json``.
        scenario: the scenario that it is of; needed for a plan only.

    Returns:
        What to run.

    Raises:
        InputError: there is no such file, all that is wrong with it, or it is of another scenario.
        StorageError: it is there and cannot be read.
    """
    try:
        data = paths.parse_json(paths.read(file, paths.JSON_BYTES))
    except UserError as error:
        raise type(error)(f"--plan {file}: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"--plan {file}: it holds no JSON object")
    words = ("--plan", str(file))
    try:
        if "faults" in data:
            return Recording(_with_plan(data, scenario, words))
        found = _recording(data, words)
    except InputError as error:
        raise InputError(*(f"{file}: {problem}" for problem in error.problems)) from None
    if scenario is not None and scenario.name != found.scenario.name:
        raise InputError(f"{file} is a run of {found.scenario.name}, not of {scenario.name}")
    return found


def _with_plan(data: dict[str, Any], scenario: Scenario | None, words: tuple[str, ...]) -> Scenario:
    if scenario is None:
        raise InputError("it holds a plan and no run: name the scenario that it is for")
    if not scenario.drawn:
        raise InputError(f"{scenario.name} draws no faults, so a plan has no place in it")
    plan = _plan(data, scenario.brokers)
    return replace(scenario, recorded=Recorded(plan, words=(scenario.source or scenario.name, *words)))


def _recording(data: dict[str, Any], words: tuple[str, ...]) -> Recording:
    version = data.get("schema_version")
    if not isinstance(version, int):
        raise InputError("it has no schema_version: highwater did not write it")
    if version > SCHEMA_VERSION:
        raise InputError(f"it has schema_version {version}; this highwater reads up to {SCHEMA_VERSION}: update it")
    problems = [f"unknown key {key!r}{did_you_mean(key, _KEYS)}" for key in data if key not in _KEYS]
    problems += [f"{key!r} is missing" for key in _KEYS if key not in data]
    checked: dict[str, Any] = {}
    for key in _KEYS:
        if key in data:
            try:
                checked[key] = _KEYS[key](data[key])
            except InputError as error:
                problems += [f"{key}: {problem}" for problem in error.problems]
    if problems:
        raise InputError(*problems)
    return _built(checked, words)


def _built(data: dict[str, Any], words: tuple[str, ...]) -> Recording:
    """What the keys say together."""
    brokers, config = data["brokers"], data["config"]
    outside = {data["first"], config["default.replication.factor"], *data["broker_config"], *data["broker_modes"]}
    outside |= {*data["older_modes"]}
    if max(outside) > brokers:
        raise InputError(f"there is no broker {max(outside)}: brokers is {brokers}")
    try:
        plan = _plan(data["plan"], brokers)
    except InputError as error:
        raise InputError(*(f"plan: {problem}" for problem in error.problems)) from None
    mode, kinds = data["mode"], data["kinds"]
    scenario = Scenario(
        name=data["scenario"],
        title="a recorded run",
        description="",
        brokers=brokers,
        control="real",
        first=data["first"],
        config=config,
        broker_config=data["broker_config"],
        broker_modes=data["broker_modes"],
        expect={mode: Expectation("violates", kinds) if kinds else Expectation("clean")},
        settle_us=data["settle_us"],
        strict=data["strict"],
        recorded=Recorded(plan, data["sends"], data["horizon_us"], mode, kinds, words, data["older_modes"]),
    )
    return Recording(scenario, mode, data["seed"], data["rules"], data["digest"])


# Checks of single keys: each takes what the file holds and gives what is kept.


def _number(least: int, most: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise InputError(f"{value!r} is not a whole number from {least} to {most}")
        return value

    return check


def _of(kind: type, word: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise InputError(f"{value!r} is no {word}")
        return value

    return check


_text = _of(str, "text")
_table = _of(dict, "table")
_list = _of(list, "list")
_broker = _number(1, MAX_BROKERS)
_time = _number(0, 1 << 62)


def _mode(value: Any) -> str:
    return mode_named(_text(value)).name


def _rules(value: Any) -> dict[str, str]:
    for name, word in _table(value).items():
        check_rule(name, _text(word))
    return dict(value)


def _settings(value: Any) -> dict[str, Value]:
    return {key: parse(key, found) for key, found in _table(value).items()}


def _config(value: Any) -> dict[str, Value]:
    return resolve(_settings(value))


def _per_broker(check: Callable[[Any], Any]) -> Callable[[Any], dict[int, Any]]:
    def checked(value: Any) -> dict[int, Any]:
        wrong = [broker for broker in _table(value) if not broker.isdecimal() or broker == "0"]
        if wrong:
            raise InputError(f"{wrong[0]!r} is no broker")
        return {int(broker): check(found) for broker, found in value.items()}

    return checked


def _kinds(value: Any) -> tuple[str, ...]:
    for kind in _list(value):
        if kind not in VIOLATIONS:
            raise InputError(f"no such kind of violation {kind!r}{did_you_mean(str(kind), VIOLATIONS)}")
    return tuple(value)


def _sends(value: Any) -> tuple[tuple[int, int, int, int], ...]:
    ranges = {"first_id": _time, "records": _number(1, 1 << 20), "acks": _number(-1, 1), "due_us": _time}
    sends: list[tuple[int, int, int, int]] = []
    for place, send in enumerate(_list(value)):
        if type(send) is not dict or set(send) != set(_SEND):
            raise InputError(f"batch {place} must have {', '.join(_SEND)} and nothing else")
        first_id, records, acks, due_us = (ranges[name](send[name]) for name in _SEND)
        if sends and (first_id < sends[-1][0] + sends[-1][1] or due_us < sends[-1][3]):
            raise InputError(f"batch {place} is out of order: ids and times must ascend")
        sends.append((first_id, records, acks, due_us))
    return tuple(sends)


_KEYS: Final[dict[str, Callable[[Any], Any]]] = {
    "schema_version": _number(1, SCHEMA_VERSION),
    "scenario": paths.name,
    "mode": _mode,
    "seed": _number(0, (1 << 63) - 1),
    "strict": _of(bool, "true or false"),
    "rules": _rules,
    "kinds": _kinds,
    "digest": _text,
    "brokers": _broker,
    "first": _broker,
    "horizon_us": _time,
    "settle_us": _time,
    "config": _config,
    "broker_config": _per_broker(_settings),
    "broker_modes": _per_broker(_mode),
    "older_modes": _per_broker(_mode),
    "sends": _sends,
    "plan": _table,
}

# Plans.

_TYPES: Final[dict[str, Callable[[Any], Any]]] = {
    "str": _text,
    "int": _time,
    "bool": _of(bool, "true or false"),
    "tuple": lambda value: [_number(-1 << 62, 1 << 62)(entry) for entry in _list(value)],
}


def _type(field: Field[Any]) -> str:
    """As `_TYPES` calls it; a compiled class has types where sources have words."""
    return getattr(field.type, "__name__", str(field.type)).partition("[")[0]


_TRIGGER: Final = {field.name: _TYPES[_type(field)] for field in fields(Trigger)} | {"occurrence": _number(1, 1 << 62)}


def _trigger(value: Any) -> Any:
    if value is None:
        return None
    _check_fields(_table(value), _TRIGGER)
    if value.keys() != _TRIGGER.keys():
        raise InputError(f"it must have {', '.join(_TRIGGER)}")
    if value["moment"] not in MOMENTS:
        raise InputError(f"no such moment {value['moment']!r}{did_you_mean(value['moment'], MOMENTS)}")
    return value


_FIELDS: Final = {field.name: _TYPES.get(_type(field), _trigger) for field in fields(Fault)} | {
    "lasts_us": _number(-1, 1 << 62)
}
"""Field of a fault -> its check."""


def _check_fields(data: Mapping[str, Any], checks: Mapping[str, Callable[[Any], Any]]) -> None:
    for name, value in data.items():
        if name not in checks:
            raise InputError(f"unknown key {name!r}{did_you_mean(name, checks)}")
        try:
            checks[name](value)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None


def _plan(data: dict[str, Any], brokers: int) -> Plan:
    """A plan whose faults can strike these brokers.

    Raises:
        InputError: the first thing that is wrong with each fault.
    """
    problems = []
    for place, fault in enumerate(_list(data.get("faults"))):
        try:
            _check_fault(fault, brokers)
        except InputError as error:
            problems.append(f"fault {place}: {error.problems[0]}")
    if problems:
        raise InputError(*problems)
    try:
        return plan_from_json(data)
    except KeyError as error:
        raise InputError(f"{error} is missing") from None
    except (TypeError, ValueError) as error:
        raise InputError(str(error)) from None


def _check_fault(fault: Any, brokers: int) -> None:
    _check_fields(_table(fault), _FIELDS)
    kind, targets, delays_us = fault.get("kind"), fault.get("targets", []), fault.get("delays_us", [])
    if kind not in KINDS:
        raise InputError(f"kind: no such kind of fault {kind!r}{did_you_mean(str(kind), KINDS)}")
    for broker in (*targets, *fault.get("replicas", [])):
        if not FOLLOWERS <= broker <= brokers:
            raise InputError(f"{broker} is no broker: these are 1 to {brokers}")
    problem = KINDS[kind].problem(tuple(targets), fault.get("value", 0))
    if problem:
        raise InputError(problem)
    many = tuple(targets) == (FOLLOWERS,)  # The last delay is that of all others.
    if delays_us and ((len(delays_us) != len(targets) and not many) or min(delays_us) < 0):
        raise InputError(f"delays_us: {delays_us} is not a delay for each of {targets}")
