"""A JUnit test that repeats the controller's part of a story in Kafka's own test context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from highwater.lab.tickets.story import in_properties, listed
from highwater.lab.tickets.templates import filled, java_comment, java_string
from sim.config import integer
from sim.errors import InputError
from sim.history import steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from highwater.lab.tickets.story import TicketStory
    from scenarios.format.scenario import ScriptLine

_CONTROLLERS: Final = ("elr_outside_assignment", "reassignment_completes", "resubmitted_reassignment")
_CHECKS: Final = {
    "elr_outside_assignment": """\
        assertTrue(replicas.containsAll(set(state.elr)),
            "after " + what + ", the ELR has a broker that is no replica: " + state);""",
    "reassignment_completes": """\
        if (!replicas.containsAll(set(before.replicas)))
            assertTrue(state.isr.length >= Math.min(Math.min(MIN_ISR, state.replicas.length), before.isr.length),
                "after " + what + ", replicas are removed, and the ISR shrinks below its minimum: " + state);""",
    "resubmitted_reassignment": """\
        TreeSet<Integer> both = set(state.addingReplicas);
        both.retainAll(set(state.removingReplicas));
        assertTrue(both.isEmpty(), "after " + what + ", a replica is marked as added and as removed: " + state);""",
}
"""Rule -> what must hold after each event."""


def junit(story: TicketStory) -> tuple[str, str]:
    """The name of the class, and its source.

    Raises:
        InputError: none of these rules decides the story.
    """
    rules = [rule for rule in story.rules() if rule in _CONTROLLERS]
    if not rules:
        raise InputError(f"{story.scenario.name}: no JUnit test, because none of {', '.join(_CONTROLLERS)} decides")
    name = "".join(part.capitalize() for part in story.scenario.name.split("-"))
    values = {
        "name": story.scenario.name,
        "title": java_comment(story.scenario.title),
        "class": f"{name}Test",
        "method": f"test{name}",
        "min_isr": str(integer(story.result.settings, "min.insync.replicas")),
        "brokers": listed(range(1, story.scenario.brokers + 1)),
        "replicas": listed(range(1, story.replicas + 1)),
        "checks": "\n".join(_CHECKS[rule] for rule in rules),
    }
    text = filled("head.java", values)
    calls = "".join(f"        {call};\n" for call in _calls(story))
    return f"{name}Test", f"{text}{calls}    }}\n}}\n"


def _calls(story: TicketStory) -> Iterator[str]:
    """What reaches the controller, in order: of the script, its requests; of the trace, what brokers do."""
    asked = [(at_us, 0, call) for line, at_us in zip(story.lines, story.times, strict=True) for call in _asked(line)]
    done = [(at_us, 1, call) for at_us, call in _done(story)]
    yield from (call for _, _, call in sorted(asked + done, key=lambda one: one[:2]))


def _asked(line: ScriptLine) -> list[str]:
    match line.do:
        case "reassignment":
            return [f"reassign({listed(line.params['replicas'])})"]
        case "reassignment-cancel":
            return ["reassign()"]
        case "controlled-restart":
            return [f"stop({line.params['broker']})"]
        case "set-config":
            pairs = line.params["config"].items()
            return [f"setConfig({java_string(key)}, {java_string(in_properties(value))})" for key, value in pairs]
    return []


def _done(story: TicketStory) -> Iterator[tuple[int, str]]:
    isr, elr = set(range(1, story.replicas + 1)), set[int]()
    by_controller = {step["t"] for step in story.trace if step["step"] in (steps.UNFENCED.name, steps.SESSION_END.name)}
    elected = {step["t"]: step["broker"] for step in story.trace if step["step"] == steps.ELECTED.name}
    first = min(elected)
    unclean: set[int] = set()
    for step in story.trace:
        broker, at_us = step.get("broker", 0), step["t"]
        if step["step"] == steps.ISR.name:
            joined = set(step["isr"]) - isr
            if joined and at_us not in by_controller and elected.get(at_us) not in joined & elr:
                yield at_us, f"proposeIsr({listed(sorted(isr | joined))})"
            isr = set(step["isr"])
        elif step["step"] == steps.ELR.name:
            elr = set(step["elr"])
        elif at_us <= first:
            continue
        elif step["step"] in (steps.KILL.name, steps.POWER_LOSS.name):
            unclean.add(broker)
        elif step["step"] == steps.SESSION_END.name and broker in unclean:
            yield at_us, f"endUncleanly({broker})"
        elif step["step"] == steps.UNFENCED.name:
            yield at_us, f"start({broker}, {'false' if broker in unclean else 'true'})"
            unclean.discard(broker)
