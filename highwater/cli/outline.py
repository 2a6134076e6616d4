"""Output of a scenario: settings, faults, script, story and expectations."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from reports.document.blocks import Heading, Line, Table
from reports.formatting import pairs
from scenarios.format.converter import in_ms
from sim.config import KEYS, resolve, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reports.document.blocks import Block
    from scenarios.format.finding import FindingTable
    from scenarios.format.scenario import Expectation, FinalLog, Pattern, Scenario, ScriptLine


def as_json(scenario: Scenario) -> dict[str, Any]:
    """The scenario with its hash and every setting as one JSON-able object."""
    settings = [
        {"key": key, "value": value, "source": source, "meaning": meaning}
        for key, value, source, meaning in _settings(scenario)
    ]
    return {**scenario.to_json(), "scenario_hash": scenario.scenario_hash(), "settings": settings}


def blocks(scenario: Scenario, *, resolved: bool) -> Iterator[Block]:
    """A scenario; if `resolved` with every setting, not only those that it sets."""
    yield Heading(f"{scenario.name}: {scenario.title}")
    yield Line(scenario.description.strip())
    yield Line("")
    if scenario.finding is not None:
        yield from _finding(scenario.finding)
    yield Line(
        f"{scenario.brokers} brokers, broker {scenario.first} first, {scenario.control} control plane, "
        f"scenario hash {scenario.scenario_hash()}"
    )
    for title, lines in _sections(scenario).items():
        if lines:
            yield Heading(title)
            yield from (Line(f"  {line}") for line in lines)
    settings = [row for row in _settings(scenario) if resolved or row[2] != "default"]
    yield Table(["setting", "value", "source", "meaning"], settings)


def _finding(finding: FindingTable) -> Iterator[Block]:
    """What is known of the failure that a scenario shows."""
    if finding.of:
        yield Line(f"Cause, repair and what is known upstream: highwater scenarios show {finding.of}")
    if finding.cause:
        yield Line(f"Kafka: {', '.join(finding.kafka)}. {finding.cause}")
        yield Line(f"Known upstream: {finding.upstream}")
    if finding.text:
        yield Line("")
        yield Line(finding.text.strip())
    yield Line("")


def _sections(scenario: Scenario) -> dict[str, list[str]]:
    return {
        "Brokers of another mode": [f"{broker}: {mode}" for broker, mode in scenario.broker_modes.items()],
        "Modes before an upgrade": [", ".join(scenario.upgraded_from)] if scenario.upgraded_from else [],
        "Workload": [_bounds(asdict(scenario.workload))] if scenario.workload else [],
        "Faults, drawn from the seed": [_bounds(asdict(scenario.faults))] if scenario.faults else [],
        "Script": [_step(step) for step in scenario.script],
        "Story, in this order": [_pattern(line.pattern) + _where(line.rules) for line in scenario.story],
        "Final logs": [_final(final) for final in scenario.final],
        "Expected": [f"{mode}: {expectation(expected)}" for mode, expected in scenario.expect.items()],
        "It occurs with other rules": [f"{mode}: {pairs(rules)}" for mode, rules in scenario.broken_by.items()],
        "Known to occur as well": [
            f"{also.kind} in {', '.join(also.modes)} ({also.label} the promise): {also.reason}"
            for also in scenario.also
        ],
    }


def expectation(expected: Expectation) -> str:
    """The expectation for a mode, as in scenario files."""
    return ":".join(filter(None, (expected.verdict, "|".join(expected.kinds))))


def _bounds(fields: dict[str, Any]) -> str:
    """Fields whose pairs of numbers are bounds, with the keys and units of files."""
    times = {name for name in fields if name.endswith("_us")}
    in_file = {
        f"{name[:-2]}ms" if name in times else name: in_ms(value) if name in times else value
        for name, value in fields.items()
    }
    return pairs({name: _bound(value) for name, value in in_file.items()})


def _bound(value: Any) -> Any:
    is_pair = isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], int)
    return f"{value[0]}..{value[1]}" if is_pair else value


def _step(step: ScriptLine) -> str:
    when = f"when {_pattern(step.when)}: " if step.when else ""
    after = f"after {step.after_us / 1000:g} ms: " if step.after_us else ""
    return f"{when}{after}{step.do} {pairs(dict(step.params))}".rstrip()


def _final(final: FinalLog) -> str:
    leo = "" if final.leo is None else f" up to {final.leo}"
    return f"broker {final.broker}: {' '.join(final.batches) or 'nothing'}{leo}{_where(final.rules)}"


def _where(rules: Mapping[str, tuple[str, ...]]) -> str:
    """The rule values to which a line of the story or a final log is restricted."""
    alternatives = {name: "|".join(values) for name, values in rules.items()}
    return f" (where {pairs(alternatives)})" if rules else ""


def _pattern(pattern: Pattern) -> str:
    return f"{pattern.step} {pairs(asdict(pattern), hide=['step'])}".rstrip()


def _settings(scenario: Scenario) -> Iterator[tuple[str, str, str, str]]:
    """Rows of key, value, origin and meaning: the cluster's settings, then those of single brokers."""
    resolved = resolve(scenario.config)
    for key, spec in KEYS.items():
        if key in scenario.draw_config:
            yield key, " | ".join(map(shown, scenario.draw_config[key])), "drawn", spec.meaning
        else:
            source = "scenario" if key in scenario.config else "default"
            yield key, shown(resolved[key]), source, spec.meaning
    for broker, config in scenario.broker_config.items():
        for key, value in config.items():
            yield key, shown(value), f"broker {broker}", KEYS[key].meaning
