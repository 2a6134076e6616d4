"""Recordings: a random run as a file that can be run again without drawing.

A recording contains resolved settings, fault plan, batches, mode, rules, the seed of latencies, and the violations. So
the run stays the same if scenarios or drawing change. A file with a fault plan alone, as earlier versions wrote it, is
used with a scenario, from which all else is drawn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field as DataclassField
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as dataclass_fields
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, create_model

from faults.kinds.reassignment import Reassignment
from faults.kinds.registry import KINDS
from faults.plan import (
    ALL_DIRECTORIES,
    FOLLOWERS,
    ITS_DIRECTORY,
    PLAN_VERSION,
    Fault,
    Plan,
    Trigger,
    plan_from_json,
)
from scenarios import paths
from scenarios.format import catalogue, converter, fields
from scenarios.format.scenario import (
    Expectation,
    PlannedSend,
    Recorded,
    Scenario,
    Topic,
)
from scenarios.format.validation import Table, checked, validated
from scenarios.single.result import RunResult
from sim.config import DIRECTORIES_MAX, Value, parse, resolve
from sim.environment.topology import Topology
from sim.errors import InputError, UserError, did_you_mean
from sim.history.steps import MOMENTS
from sim.kernel.streams import SEED_END
from sim.protocol.modes import Mode
from sim.protocol.modes import mode as mode_named
from sim.protocol.rules import check as check_rule

RECORDING_VERSION: Final = 1
_LINE_MAX: Final = 8
"""Most fields on one line."""
_SEND: Final = ("first_id", "records", "acks", "due_us")


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded run, with its seed of latencies, overridden rules and digest; a plan has a scenario only."""

    scenario: Scenario
    mode: Mode | None = None
    seed: int | None = None
    rules: Mapping[str, str] | None = None
    digest: str | None = None


def to_json(scenario: Scenario, result: RunResult) -> dict[str, Any]:
    """A random run as plain data; for a scripted run, an empty plan."""
    if result.horizon_us is None:
        return result.plan
    row = result.row
    further = {name: _sends(sends) for name, sends in result.further_sends.items()}
    return {
        "schema_version": RECORDING_VERSION,
        "scenario": scenario.name,
        "mode": result.mode.source or result.mode.name,
        "seed": row["seed"],
        "strict": scenario.strict,
        "rules": dict(result.rules),
        "kinds": row["violations"].split(",") if row["violations"] else [],
        "digest": row["digest"],
        "brokers": scenario.brokers,
        "first": scenario.first,
        "horizon_us": result.horizon_us,
        "settle_us": scenario.settle_us,
        **({"keeps_cluster": True} if scenario.recorded is not None and scenario.recorded.keeps_cluster else {}),
        **({} if scenario.topology is None else {"topology": asdict(scenario.topology)}),
        **({"topics": [_topic(topic, result.topics) for topic in scenario.topics]} if scenario.topics else {}),
        "config": dict(result.settings),
        "broker_config": {str(broker): dict(keys) for broker, keys in scenario.broker_config.items()},
        "broker_modes": {str(broker): mode for broker, mode in scenario.broker_modes.items()},
        "older_modes": {str(broker): mode for broker, mode in result.older.items()},
        "sends": _sends(result.sends),
        **({"further_sends": further} if further else {}),
        "plan": result.plan,
    }


def _topic(topic: Topic, drawn: Sequence[str]) -> dict[str, Any]:
    """A topic of a run, which has it or not."""
    plain = {**asdict(topic), "in_percent": 100 if topic.name in drawn else 0}
    if topic.directory is None:
        del plain["directory"]
    return plain


def _sends(sends: Sequence[PlannedSend]) -> list[dict[str, int]]:
    return [dict(zip(_SEND, send, strict=True)) for send in sends]


def of_run(scenario: Scenario, result: RunResult) -> Recording:
    """The recording of a random run."""
    found = _recording(json.loads(json.dumps(to_json(scenario, result))), ())
    return replace(found, scenario=replace(found.scenario, shown=scenario.shown))


def to_text(data: Mapping[str, Any]) -> str:
    """JSON text with a line for each setting, batch and fault."""
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
    """Read a ``plan.json`` of ``replay``: a recorded run, or a plan, which needs its scenario.

    Raises:
        InputError: the file does not exist, is invalid (names all problems), or belongs to another scenario.
        StorageError: it exists but cannot be read.
    """
    try:
        data = paths.parse_json(paths.read(file, paths.JSON_BYTES))
    except UserError as error:
        if file.suffix == ".toml" and file.is_file():
            raise InputError(f"--plan {file}: this is a scenario: leave out --plan") from None
        raise type(error)(f"--plan {file}: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"--plan {file}: it contains no JSON object")
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
        raise InputError("it contains only a plan: name its scenario")
    if not scenario.drawn:
        raise InputError(f"{scenario.name} draws no faults, so it cannot take a plan")
    plan = _plan(data, scenario.brokers)
    return replace(scenario, recorded=Recorded(plan, words=(scenario.source or scenario.name, *words)))


def _recording(data: dict[str, Any], words: tuple[str, ...]) -> Recording:
    version = data.get("schema_version")
    if not isinstance(version, int):
        raise InputError("it has no schema_version: highwater did not write it")
    if version > RECORDING_VERSION:
        raise InputError(f"it has schema_version {version}; this highwater reads up to {RECORDING_VERSION}: update it")
    return _built(validated(_RunTable, data, tables=_TABLES), words)


def _built(run: _RunTable, words: tuple[str, ...]) -> Recording:
    """Checks across keys."""
    named = {run.first, run.config["default.replication.factor"]}
    outside = {*named, *run.broker_config, *run.broker_modes, *run.older_modes}
    if max(outside) > run.brokers:
        raise InputError(f"there is no broker {max(outside)}: brokers is {run.brokers}")
    try:
        plan = _plan(run.plan, run.brokers)
    except InputError as error:
        raise InputError(*(f"plan: {problem}" for problem in error.problems)) from None
    kinds = tuple(run.kinds)
    mode = catalogue.mode(run.mode)
    sends = _planned(run.sends)
    further_sends = {name: _planned(planned) for name, planned in run.further_sends.items()}
    scenario = Scenario(
        name=run.scenario,
        title="a recorded run",
        description="",
        brokers=run.brokers,
        control="real",
        first=run.first,
        config=run.config,
        broker_config=run.broker_config,
        broker_modes=run.broker_modes,
        expect={mode.name: Expectation("violates", kinds) if kinds else Expectation("clean")},
        topology=None if run.topology is None else converter.of_plain(Topology, run.topology.model_dump()),
        topics=tuple([converter.of_plain(Topic, topic.model_dump()) for topic in run.topics]),
        settle_us=run.settle_us,
        strict=run.strict,
        recorded=Recorded(
            plan,
            sends,
            run.horizon_us,
            mode.name,
            kinds,
            words,
            run.older_modes,
            further_sends=further_sends,
            keeps_cluster=run.keeps_cluster,
        ),
    )
    return Recording(scenario, mode, run.seed, run.rules, run.digest)


def _planned(sends: Sequence[_Send]) -> tuple[PlannedSend, ...]:
    return tuple([(send.first_id, send.records, send.acks, send.due_us) for send in sends])


# Fields of the file. A check takes the value and returns the stored one.


def _word(words: Iterable[str], what: str) -> AfterValidator:
    return _by(lambda value: fields.one_of(value, words, what))


def _within(least: int, most: int) -> Any:
    return Field(ge=least, le=most)


def _by(check: Callable[[Any], object]) -> AfterValidator:
    return AfterValidator(checked(lambda value, _: check(value)))


def _keyed(check: Callable[[str], object]) -> AfterValidator:
    """For checks whose errors do not name the key."""

    def validate(value: str) -> object:
        try:
            return check(value)
        except InputError as error:
            raise ValueError(str(error)) from None

    return AfterValidator(validate)


def _rules(rules: dict[str, str]) -> dict[str, str]:
    for name, value in rules.items():
        check_rule(name, value)
    return rules


def _settings(settings: dict[str, Any]) -> dict[str, Value]:
    return {key: parse(key, value) for key, value in settings.items()}


def _broker(key: str) -> int:
    if not key.isdecimal() or key == "0":
        raise InputError(f"{key!r} is no broker")
    return int(key)


def _in_order(sends: list[_Send]) -> list[_Send]:
    for place, (one, following) in enumerate(pairwise(sends)):
        if following.first_id < one.first_id + one.records or following.due_us < one.due_us:
            raise InputError(f"sends {place + 2} is out of order: ids and times must ascend")
    return sends


Broker = Annotated[int, _within(1, fields.MAX_BROKERS)]
Time = Annotated[int, _within(0, 1 << 62)]
ModeName = Annotated[str, _keyed(lambda name: mode_named(name).name)]
BrokerKey = Annotated[int, BeforeValidator(checked(lambda key, _: _broker(key)))]
Settings = Annotated[dict[str, Any], _by(_settings)]


class _Send(Table):
    first_id: Time
    records: Annotated[int, _within(1, 1 << 20)]
    acks: Annotated[int, _within(-1, 1)]
    due_us: Time


class _Topology(Table):
    racks: dict[str, list[Broker]]
    power_domains: dict[str, list[Broker]]
    hosts: dict[str, list[Broker]]
    latency_within_rack_us: Time
    latency_between_racks_us: Time


class _Topic(Table):
    name: str
    partitions: Annotated[int, _within(1, fields.MAX_PARTITIONS)]
    replication_factor: Broker | None
    idle: bool
    created: bool = True
    in_percent: Annotated[int, _within(0, 100)] = 100
    config: Settings
    directory: Annotated[int, _within(1, DIRECTORIES_MAX)] | None = None


class _RunTable(Table):
    schema_version: int
    scenario: Annotated[str, _keyed(paths.name)]
    mode: Annotated[str, _keyed(lambda word: catalogue.mode(word) and word)]
    seed: Annotated[int, _within(0, SEED_END - 1)]
    strict: bool
    rules: Annotated[dict[str, str], _by(_rules)]
    kinds: list[Annotated[str, _word(fields.VIOLATIONS, "kind of violation")]]
    digest: str
    brokers: Broker
    first: Broker
    horizon_us: Time
    settle_us: Time
    keeps_cluster: bool = False
    topology: _Topology | None = None
    topics: list[_Topic] = Field(default_factory=list)
    config: Annotated[Settings, _by(resolve)]
    broker_config: dict[BrokerKey, Settings]
    broker_modes: dict[BrokerKey, ModeName]
    older_modes: dict[BrokerKey, ModeName]
    sends: Annotated[list[_Send], _by(_in_order)]
    further_sends: dict[str, Annotated[list[_Send], _by(_in_order)]] = Field(default_factory=dict)
    plan: dict[str, Any]


# Plans.

_TYPES: Final[dict[str, Any]] = {
    "str": str,
    "int": Time,
    "bool": bool,
    "tuple": list[Annotated[int, _within(-1 << 62, 1 << 62)]],
}
"""Type of a field of `Fault` or `Trigger`, as `_type` names it -> its type in a file."""
_LATER: Final[dict[str, Any]] = {
    "value": 0,
    "replicas": [],
    "trigger": None,
    "partition": "",
    "directory": ALL_DIRECTORIES,
    "sequence": 0,
}
"""Fields of a fault or trigger that plans of earlier versions lack -> default."""


def _type(field: DataclassField[Any]) -> str:
    """The key in `_TYPES`; compiled classes have types, sources have strings."""
    return getattr(field.type, "__name__", str(field.type)).partition("[")[0]


def _strikes(fault: Any, brokers: int) -> Any:
    """Check that a fault can strike these brokers."""
    if fault.kind not in KINDS:
        raise InputError(f"kind = {fault.kind!r}: no such kind of fault{did_you_mean(fault.kind, KINDS)}")
    for broker in (*fault.targets, *fault.replicas):
        if not FOLLOWERS <= broker <= brokers:
            raise InputError(f"{broker} is no broker: these are 1 to {brokers}")
    problem = KINDS[fault.kind].problem(tuple(fault.targets), fault.value)
    if problem:
        raise InputError(problem)
    if fault.directory != ALL_DIRECTORIES and not KINDS[fault.kind].of_directory:
        raise InputError(f"directory = {fault.directory}: {fault.kind!r} strikes no log directory alone")
    replicas = fault.replicas
    if fault.kind == Reassignment.name and (not replicas or min(replicas) < 1 or len(set(replicas)) < len(replicas)):
        raise InputError(f"replicas: {replicas}: distinct brokers are needed")
    delays_us, targets = fault.delays_us, fault.targets
    many = targets == [FOLLOWERS]
    # The last delay also applies to further targets.
    if delays_us and ((len(delays_us) > len(targets) and not many) or min(delays_us) < 0):
        raise InputError(f"delays_us: {delays_us} is not a delay for each of {targets}")
    return fault


def _model(kind: type, **types: Any) -> type[Table]:
    """The table of a dataclass in a file; `types` gives the types of fields that are not plain."""
    given = {field.name: types.get(field.name) or _TYPES[_type(field)] for field in dataclass_fields(kind)}
    filled: Any = {name: (found, _LATER.get(name, ...)) for name, found in given.items()}
    return create_model(kind.__name__, __base__=Table, **filled)


_Trigger: Final = _model(
    Trigger, moment=Annotated[str, _word(MOMENTS, "moment")], occurrence=Annotated[int, _within(1, 1 << 62)]
)
_Fault: Final = _model(
    Fault,
    lasts_us=Annotated[int, _within(-1, 1 << 62)],
    trigger=_Trigger | None,
    directory=Annotated[int, _within(ITS_DIRECTORY, DIRECTORIES_MAX)],
)


class _Plan(Table):
    schema_version: int
    faults: list[Annotated[_Fault, AfterValidator(checked(_strikes))]]  # type: ignore[valid-type]


_TABLES: Final[dict[str, type[Table]]] = {
    "": _RunTable,
    "sends": _Send,
    "plan": _Plan,
    "faults": _Fault,
    "trigger": _Trigger,
}


def _plan(data: dict[str, Any], brokers: int) -> Plan:
    """A plan whose faults can strike these brokers; raises InputError with what is wrong with each fault."""
    version = data.get("schema_version")
    if type(version) is int and version > PLAN_VERSION:
        raise InputError(f"plan has schema_version {version}; this highwater reads up to {PLAN_VERSION}: update it")
    validated(_Plan, data, brokers, {**_TABLES, "": _Plan})
    return plan_from_json(data)
