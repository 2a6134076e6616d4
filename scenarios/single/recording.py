"""Recordings: a random run as a file that can be run again without drawing.

A recording contains resolved settings, fault plan, batches, mode, rules, the seed of latencies, and the violations. So
the run stays the same if scenarios or drawing change. A file with a fault plan alone, as earlier versions wrote it, is
used with a scenario, from which all else is drawn.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from faults.plan import (
    Plan,
    plan_from_json,
)
from scenarios import paths
from scenarios.format import catalogue, converter, fields
from scenarios.format.scenario import (
    Controllers,
    Expectation,
    PlannedSend,
    Recorded,
    Scenario,
    Topic,
)
from scenarios.single.result import RunResult
from sim.environment.topology import Topology
from sim.errors import InputError, UserError
from sim.protocol.modes import Mode

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
        **({"controllers": scenario.controller_count} if scenario.controller_count else {}),
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
    run = json.loads(json.dumps(to_json(scenario, result)))
    found = _built(run, plan_from_json(run["plan"]), ())
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
    from scenarios.single.recording_schema import plan_of

    plan = plan_of(data, scenario.brokers)
    return replace(scenario, recorded=Recorded(plan, words=(scenario.source or scenario.name, *words)))


def _recording(data: dict[str, Any], words: tuple[str, ...]) -> Recording:
    version = data.get("schema_version")
    if not isinstance(version, int):
        raise InputError("it has no schema_version: highwater did not write it")
    if version > RECORDING_VERSION:
        raise InputError(f"it has schema_version {version}; this highwater reads up to {RECORDING_VERSION}: update it")
    from scenarios.single.recording_schema import plan_of, run_of

    run = run_of(data)
    try:
        plan = plan_of(run["plan"], run["brokers"])
    except InputError as error:
        raise InputError(*(f"plan: {problem}" for problem in error.problems)) from None
    return _built(run, plan, words)


def _built(run: Mapping[str, Any], plan: Plan, words: tuple[str, ...]) -> Recording:
    """The recording of a run whose values were checked, or made here."""
    broker_config = {int(broker): keys for broker, keys in run["broker_config"].items()}
    broker_modes, older = (
        {int(broker): mode for broker, mode in run[name].items()} for name in ("broker_modes", "older_modes")
    )
    kinds = tuple(run["kinds"])
    mode = catalogue.mode(run["mode"])
    sends = _planned(run["sends"])
    further_sends = {name: _planned(planned) for name, planned in run.get("further_sends", {}).items()}
    scenario = Scenario(
        name=run["scenario"],
        title="a recorded run",
        description="",
        brokers=run["brokers"],
        control=fields.QUORUM if run.get("controllers") else "real",
        controllers=Controllers(run["controllers"]) if run.get("controllers") else None,
        first=run["first"],
        config=run["config"],
        broker_config=broker_config,
        broker_modes=broker_modes,
        expect={mode.name: Expectation("violates", kinds) if kinds else Expectation("clean")},
        topology=converter.of_plain(Topology, run.get("topology")),
        topics=tuple([converter.of_plain(Topic, topic) for topic in run.get("topics", ())]),
        settle_us=run["settle_us"],
        strict=run["strict"],
        recorded=Recorded(
            plan,
            sends,
            run["horizon_us"],
            mode.name,
            kinds,
            words,
            older,
            further_sends=further_sends,
            keeps_cluster=run.get("keeps_cluster", False),
        ),
    )
    return Recording(scenario, mode, run["seed"], run["rules"], run["digest"])


def _planned(sends: Sequence[Mapping[str, int]]) -> tuple[PlannedSend, ...]:
    return tuple([(send["first_id"], send["records"], send["acks"], send["due_us"]) for send in sends])
