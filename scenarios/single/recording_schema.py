"""Finds every mistake of a recording or plan at once, with pydantic models.

Only files need it: `scenarios.single.recording` reads them, and imports this on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import Field as DataclassField
from dataclasses import fields as dataclass_fields
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, create_model

from faults.kinds.reassignment import ReassignmentFault
from faults.kinds.registry import KINDS
from faults.plan import ALL_DIRECTORIES, FOLLOWERS, ITS_DIRECTORY, PLAN_VERSION, Fault, Plan, Trigger, plan_from_json
from scenarios import paths
from scenarios.format import catalogue, fields
from scenarios.format.scenario import Topic
from scenarios.format.schema import model
from scenarios.format.validation import StrictTable, checked, validated
from sim.config import DIRECTORIES_MAX, Value, parse, resolve
from sim.environment.topology import Topology
from sim.errors import InputError, did_you_mean
from sim.history.steps import MOMENTS
from sim.hosts.control_plane import CONTROLLERS, FIRST_CONTROLLER
from sim.kernel.streams import SEED_END
from sim.protocol.modes import mode as mode_named
from sim.protocol.rules import check as check_rule

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
    for place, (send, following) in enumerate(pairwise(sends)):
        if following.first_id < send.first_id + send.records or following.due_us < send.due_us:
            raise InputError(f"sends {place + 2} is out of order: ids and times must ascend")
    return sends


Broker = Annotated[int, _within(1, fields.MAX_BROKERS)]
Time = Annotated[int, _within(0, 1 << 62)]
ModeName = Annotated[str, _keyed(lambda name: mode_named(name).name)]
BrokerKey = Annotated[int, BeforeValidator(checked(lambda key, _: _broker(key)))]
Settings = Annotated[dict[str, Any], _by(_settings)]


class _Send(StrictTable):
    first_id: Time
    records: Annotated[int, _within(1, 1 << 20)]
    acks: Annotated[int, _within(-1, 1)]
    due_us: Time


class _RunTable(StrictTable):
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
    controllers: Literal[1, 3, 5] | None = None
    topology: model(Topology) | None = None  # type: ignore[valid-type]
    topics: list[model(Topic)] = Field(default_factory=list)  # type: ignore[valid-type]
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
        if not FOLLOWERS <= broker <= brokers and not 0 <= broker - FIRST_CONTROLLER < max(CONTROLLERS):
            raise InputError(f"{broker} is no broker: these are 1 to {brokers}")
    problem = KINDS[fault.kind].problem(tuple(fault.targets), fault.value)
    if problem:
        raise InputError(problem)
    if fault.directory != ALL_DIRECTORIES and not KINDS[fault.kind].of_directory:
        raise InputError(f"directory = {fault.directory}: {fault.kind!r} strikes no log directory alone")
    replicas = fault.replicas
    if fault.kind == ReassignmentFault.name and (
        not replicas or min(replicas) < 1 or len(set(replicas)) < len(replicas)
    ):
        raise InputError(f"replicas: {replicas}: distinct brokers are needed")
    delays_us, targets = fault.delays_us, fault.targets
    many = targets == [FOLLOWERS]
    # The last delay also applies to further targets.
    if delays_us and ((len(delays_us) > len(targets) and not many) or min(delays_us) < 0):
        raise InputError(f"delays_us: {delays_us} is not a delay for each of {targets}")
    return fault


def _model(kind: type, **types: Any) -> type[StrictTable]:
    """The table of a dataclass in a file; `types` gives the types of fields that are not plain."""
    given = {field.name: types.get(field.name) or _TYPES[_type(field)] for field in dataclass_fields(kind)}
    filled: Any = {name: (found, _LATER.get(name, ...)) for name, found in given.items()}
    return create_model(kind.__name__, __base__=StrictTable, **filled)


_Trigger: Final = _model(
    Trigger, moment=Annotated[str, _word(MOMENTS, "moment")], occurrence=Annotated[int, _within(1, 1 << 62)]
)
_Fault: Final = _model(
    Fault,
    lasts_us=Annotated[int, _within(-1, 1 << 62)],
    trigger=_Trigger | None,
    directory=Annotated[int, _within(ITS_DIRECTORY, DIRECTORIES_MAX)],
)


class _Plan(StrictTable):
    schema_version: int
    faults: list[Annotated[_Fault, AfterValidator(checked(_strikes))]]  # type: ignore[valid-type]


_TABLES: Final[dict[str, type[StrictTable]]] = {
    "": _RunTable,
    "sends": _Send,
    "topology": model(Topology),
    "topics": model(Topic),
    "plan": _Plan,
    "faults": _Fault,
    "trigger": _Trigger,
}


def run_of(data: dict[str, Any]) -> dict[str, Any]:
    """A checked recording, with settings and broker ids as a run has them; raises InputError with all problems."""
    run = validated(_RunTable, data, fields.gather(data), _TABLES)
    outside = {
        run.first,
        run.config["default.replication.factor"],
        *run.broker_config,
        *run.broker_modes,
        *run.older_modes,
    }
    if max(outside) > run.brokers:
        raise InputError(f"there is no broker {max(outside)}: brokers is {run.brokers}")
    return run.model_dump(warnings=False)  # Checks change types of fields, of which it would warn.


def plan_of(data: dict[str, Any], brokers: int) -> Plan:
    """A plan whose faults can strike these brokers; raises InputError with what is wrong with each fault."""
    version = data.get("schema_version")
    if type(version) is int and version > PLAN_VERSION:
        raise InputError(f"plan has schema_version {version}; this highwater reads up to {PLAN_VERSION}: update it")
    validated(_Plan, data, brokers, {**_TABLES, "": _Plan})
    return plan_from_json(data)
