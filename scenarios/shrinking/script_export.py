"""Writes a shrunk run as a scripted scenario: TOML with story and expectation.

Faults must strike named brokers at fixed times. A script only draws latencies, so the scenario is run, and returned
only if it has the same violation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import accumulate
from typing import Any, Final

from faults.kind import LINK
from faults.kinds.injection import RealisedFault
from faults.kinds.registry import KINDS
from faults.plan import ALL_DIRECTORIES, Fault
from scenarios.format.scenario import Scenario, Topic
from scenarios.shrinking.case import Case
from scenarios.shrinking.cause import FACTOR
from scenarios.shrinking.criterion import STALLED, Symptom
from scenarios.shrinking.passes import SPARE, changed_settings
from scenarios.single.draws import producer_of
from scenarios.single.execution import CLIENTS_BEGIN_US, PAUSE_US
from scenarios.single.result import RunResult
from scenarios.single.run import run
from sim.config import shown
from sim.environment.topology import Topology
from sim.errors import InputError
from sim.history.steps import ACK, ELECTED, ENDS, LEAD, TRUNCATE

Line = tuple[int, dict[str, Any]]
"""Time, and the other fields of a script line."""
STORY_STEPS: Final[Mapping[str, tuple[str, ...]]] = {
    ACK.name: ("batch",),
    **{end.name: ("broker",) for end in ENDS},
    ELECTED.name: ("broker", "leader_epoch"),
    LEAD.name: ("broker", "offset"),
    TRUNCATE.name: ("broker", "offset"),
}
"""Step of a story -> the fields that identify it."""
STORY_MAX: Final = 20
"""Most steps of a story."""


class NotScriptedError(Exception):
    """The run cannot be written as a script; the text says why."""


def with_struck(case: Case, struck: Sequence[RealisedFault]) -> Case:
    """The case with the faults that struck in a run of it, at their times and with the brokers that had the roles, in
    place of those that waited for steps or named roles. Durations are whole milliseconds, as scripts have them.
    """
    return case.with_faults(tuple(_named(realised) for realised in struck))


def _named(realised: RealisedFault) -> Fault:
    fault = realised.fault
    lasts_us = fault.lasts_us if fault.lasts_us < 0 else -(-fault.lasts_us // 1_000) * 1_000
    return replace(fault, at_us=realised.at_us, targets=realised.targets, delays_us=(), trigger=None, lasts_us=lasts_us)


def to_toml(case: Case, symptom: Symptom | None, told: str = "Shrunk from a run", seed: int = 0) -> str:
    """The scenario file of a shrunk run, or of one without a violation; `told` begins its description.

    With the latencies of `seed` it has the same verdict.

    Raises:
        NotScriptedError: the run cannot be written as a script, or the script has another violation.
    """
    if case.rules:
        raise NotScriptedError("a scenario file cannot override rules")
    if symptom is not None and symptom.kind == STALLED:
        raise NotScriptedError("a script cannot expect a stall")
    if case.recorded.older:
        raise NotScriptedError("its brokers are upgraded when they restart")
    lines = sorted(_lines(case), key=lambda line: line[0])
    silent = _text(case, symptom, lines, told)
    result = _run(silent, case, seed)
    if result.row["verdict"] != "ok" if symptom is None else not symptom.shown_by(result.row):
        raise NotScriptedError(f"as a script it ends with {result.row['violations'] or result.row['verdict']}")
    text = "".join([silent, *_story(case, result, lines), *([] if symptom is None else _also(case, symptom, result))])
    again = _run(text, case, seed)
    if not again.row["expected"]:
        raise NotScriptedError(f"its story did not occur: {again.row['error'] or again.row['violations']}")
    return text


def _run(text: str, case: Case, seed: int) -> RunResult:
    from scenarios.format.schema import read  # Imports pydantic.

    try:
        scenario: Scenario = read(text, "the script")
    except InputError as error:
        raise NotScriptedError(error.problems[0]) from None
    return run(scenario, case.mode, seed, trace=True)


# Lines.


def _lines(case: Case) -> Iterator[Line]:
    producers = int(case.scenario.config.get("sim.producers", 1))

    def sender(first_id: int) -> dict[str, Any]:
        number = producer_of(first_id, producers)
        return {"producer": number} if number > 1 else {}

    for number, (first_id, records, acks, due_us) in enumerate(case.sends, start=1):
        params: dict[str, Any] = {"batch": f"m{number}", **sender(first_id)}
        if records > 1:
            params["records"] = records
        if acks != -1:
            params["acks"] = str(acks)
        yield due_us, {"do": "produce", **params}
    for name, sends in case.recorded.further_sends.items():
        for number, (first_id, records, acks, due_us) in enumerate(sends, start=1):
            own: dict[str, Any] = {**sender(first_id), **({"records": records} if records > 1 else {})}
            own |= {"acks": str(acks)} if acks != -1 else {}
            yield due_us, {"do": "produce", "batch": f"{name}-m{number}", **own, "partition": name}
    for fault in case.faults:
        yield from _of_fault(fault)


def _of_fault(fault: Fault) -> Iterator[Line]:
    """A line for each target; each is checked by reading it back."""
    kind = KINDS[fault.kind]
    if fault.trigger is not None:
        raise NotScriptedError(f"a {fault.kind} waits for a step")
    one_line = kind.targets is LINK or ("brokers" in kind.targets.params and not fault.delays_us)
    parts = [fault.targets] if one_line else [(target,) for target in fault.targets]
    for place, targets in enumerate(parts):
        params = params_of(fault, targets)
        if kind.scripted(params, fault.at_us) != replace(fault, targets=targets, delays_us=()):
            raise NotScriptedError(f"no script line can express this {fault.kind}")
        yield fault.at_us + fault.delay_us(place), {"do": fault.kind, **params}


def params_of(fault: Fault, targets: tuple[int, ...]) -> dict[str, Any]:
    """Parameters for `faults.kind.FaultKind.scripted`."""
    kind = KINDS[fault.kind]
    params: dict[str, Any] = {}
    for name in kind.params():
        if name in ("broker", "node"):
            params[name] = targets[0] or "control"
        elif name == "brokers":
            params[name] = list(targets)
        elif name in ("from", "to"):
            params[name] = targets[name == "to"] or "control"
        elif name == "both_ways":
            params[name] = fault.both_ways
        elif name == "replicas":
            params[name] = list(fault.replicas)
        elif name in ("partition", "topic") or (name == "directory" and kind.of_directory):
            params |= _if_named(fault, name)
        elif kind.amount is not None and name == kind.amount.param:
            given = kind.amount.given
            if fault.value or given.required or given.default is not None:
                params[name] = kind.param_of(fault.value)
        elif fault.lasts_us >= 0:
            params[name] = fault.lasts_us // 1_000
    return params


def _if_named(fault: Fault, name: str) -> dict[str, Any]:
    """A partition, topic or log directory, which a line has only if the fault names one."""
    if name == "topic" and not fault.partition:
        raise NotScriptedError(f"a {fault.kind} picks its topic by a number")
    value = max(ALL_DIRECTORIES, fault.directory) if name == "directory" else fault.partition
    return {name: value} if value else {}


# The file.


def _text(case: Case, symptom: Symptom | None, lines: list[Line], told: str) -> str:
    """The file without its story."""
    about, config = case.scenario, case.scenario.config
    struck = ", ".join(dict.fromkeys(fault.kind for fault in case.faults)) or "no fault"
    brokers = min(about.brokers, int(config[FACTOR]) + int(config[SPARE]))
    parts = [
        "schema = 1\n",
        f'name = "{about.name}-{case.seed}-{case.mode.name}"\n',
        f'title = "{symptom.kind if symptom else "No violation"} in mode {case.mode.name} after {struck}"\n',
        f'description = """\n{told} of {about.name}, seed {case.seed}.\n"""\n',
        f"brokers.count = {brokers}\n",
        f"brokers.first = {about.first}\n" if about.first != 1 else "",
        'control = "real"\n',
        f"settle_ms = {about.settle_us // 1_000}\n" if about.settle_us else "",
        _topology(about.topology, brokers),
        "\n[config]\n",
    ]
    parts += [f"{line}\n" for line in pairs({key: config[key] for key in (FACTOR, *changed_settings(case))})]
    for broker in sorted({*about.broker_config, *about.broker_modes}):
        mode = {"mode": about.broker_modes[broker]} if broker in about.broker_modes else {}
        own = {**mode, **about.broker_config.get(broker, {})}
        parts.append("\n".join(["", f"[brokers.{broker}]", *pairs(own), ""]))
    parts += [_topic(topic) for topic in about.topics if topic.in_percent]
    parts += _script(case, lines)
    expected = f"violates:{symptom.kind}" if symptom else "clean:committed-loss"
    parts.append(f'\n[expect]\n"{case.mode.name}" = "{expected}"\n')
    return "".join(parts)


def _topic(topic: Topic) -> str:
    """The table of a topic."""
    given: dict[str, Any] = {"name": topic.name, "partitions": topic.partitions}
    if topic.replication_factor is not None:
        given["replication_factor"] = topic.replication_factor
    if topic.directory is not None:
        given["directory"] = topic.directory
    given |= {key: getattr(topic, key) for key in ("idle", "created") if getattr(topic, key) != (key == "created")}
    return "\n".join(["", "[[topics]]", *pairs(given), *pairs({"config": topic.config} if topic.config else {}), ""])


def _topology(topology: Topology | None, brokers: int) -> str:
    """The table of racks, power domains and hosts, of the brokers that are left."""
    if topology is None:
        return ""
    given: dict[str, Any] = {}
    for key, value in asdict(topology).items():
        left = value
        if isinstance(value, dict):
            left = {name: [broker for broker in group if broker <= brokers] for name, group in value.items()}
            left = {name: group for name, group in left.items() if group}
        given |= {f"{key}.{name}": group for name, group in left.items()} if isinstance(left, dict) else {key: left}
    return "\n".join(["", "[topology]", *pairs({key: value for key, value in given.items() if value}), ""])


def _script(case: Case, lines: list[Line]) -> Iterator[str]:
    """The script lines, each with its time after the line before, and a wait until everything is healed."""
    before_us = 0
    end = (case.horizon_us - PAUSE_US, {"do": "wait"})
    for at_us, params in (*lines, end):
        after_us = at_us - before_us
        if after_us > 0 or params is not end[1]:
            after = {"after_us": after_us} if after_us % 1_000 else {"after_ms": after_us // 1_000}
            yield "\n".join(["", "[[script]]", *pairs(after if after_us else {}), *pairs(params), ""])
            before_us = at_us


def _value(value: Any) -> str:
    """A value in TOML, which equals JSON for strings, numbers and lists of them."""
    if isinstance(value, dict):
        return f"{{ {', '.join(pairs(value))} }}"
    return f'"{word}"' if isinstance(value, int) and (word := shown(value)) == "never" else json.dumps(value)


def _story(case: Case, result: RunResult, lines: Sequence[Line]) -> Iterator[str]:
    """Acknowledgements, ends of processes, elections and truncations of the partition that is shown."""
    sends = [params for _, params in lines if params["do"] == "produce"]
    ids = accumulate((params.get("records", 1) for params in sends), initial=0)
    names = {first_id: params["batch"] for first_id, params in zip(ids, sends, strict=False)}
    topics = [topic for topic in case.scenario.topics if topic.in_percent]
    about = {"partition": result.shown} if result.shown and result.shown != f"{topics[0].name}-0" else {}
    probes = 0
    for step in result.trace or ():
        fields = STORY_STEPS.get(step["step"], ())
        named = {**step, "batch": names.get(step.get("record", -1))}
        fields_shown = {name: named[name] for name in fields if named[name] is not None}
        nothing = step["step"] == TRUNCATE.name and not step["removed"]
        if fields_shown and not nothing and step["t"] >= CLIENTS_BEGIN_US and probes < STORY_MAX:
            probes += 1
            found = {"step": step["step"], **fields_shown, **about}
            yield "\n".join(["", "[[story]]", *pairs(found), ""])


def _also(case: Case, symptom: Symptom, result: RunResult) -> Iterator[str]:
    """Further violations."""
    for kind, inside in sorted({(entry["kind"], entry["inside"]) for entry in result.violations}):
        if kind != symptom.kind:
            label = "inside" if inside else "outside"
            also = {"kind": kind, "modes": [case.mode.name], "label": label, "reason": f"it comes with {symptom.kind}"}
            yield "\n".join(["", "[[also]]", *pairs(also), ""])


def pairs(fields: Mapping[str, Any]) -> Iterator[str]:
    """Lines of a TOML table."""
    return (f"{name} = {_value(value)}" for name, value in fields.items())
