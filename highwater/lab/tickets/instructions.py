"""A script's lines as instructions to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from highwater.lab.tickets.story import in_properties, listed
from sim.history import steps
from sim.protocol.kraft.metadata import ELR_FEATURE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from highwater.lab.tickets.story import TicketStory
    from scenarios.format.scenario import Pattern


LONG_US: Final = 1_000_000
"""Shorter times between two lines are left out."""


def instructions(story: TicketStory) -> list[str]:
    """One sentence or two for each line of the script that does something."""
    brokers = listed(range(1, story.replicas + 1))
    control = "the controller" if story.mode.rules.control_plane == "kraft" else "ZooKeeper"
    found = [f"Create a topic of one partition with replicas on brokers {brokers}, and wait until all are in the ISR."]
    for line, at_us in zip(story.lines, story.times, strict=True):
        params = {name: control if value == "control" else value for name, value in line.params.items()}
        said = _ACTIONS[line.do](params) if line.do in _ACTIONS else f"{line.do} {params}."
        if line.do == "power-loss":
            said = _lose_power(story, line.params["brokers"], at_us)
        parts = [_wait(line.when), _delay(line.after_us), said]
        if text := " ".join(filter(None, parts)):
            found.append(text)
    return found


def _wait(pattern: Pattern | None) -> str:
    if pattern is None:
        return ""
    match pattern.step:
        case steps.ISR.name:
            return f"Wait until the ISR is {listed(sorted(pattern.isr or ()))}."
        case steps.ELR.name:
            return f"Wait until the ELR is {listed(sorted(pattern.elr))}." if pattern.elr else ""
        case steps.DELETED.name:
            return f"Wait until broker {pattern.broker} has deleted its log."
        case steps.APPEND.name:
            return f"Wait until broker {pattern.broker} has {pattern.batch}."
        case steps.TRUNCATE.name:
            return f"Wait until broker {pattern.broker} has truncated its log to offset {pattern.offset}."
        case steps.ELECTED.name if pattern.broker:
            return f"Wait until broker {pattern.broker} is elected."
        case steps.LEAD.name:
            return f"Wait until broker {pattern.broker} leads."
        case steps.SESSION_END.name:
            return f"Wait until the session of broker {pattern.broker} has expired."
        case steps.UNFENCED.name:
            return f"Wait until broker {pattern.broker} is unfenced."
        case steps.SHUTDOWN.name:
            return f"Wait until broker {pattern.broker} has ended."
    return ""


def _delay(after_us: int) -> str:
    return f"Wait {after_us / 1_000_000:g} s." if after_us >= LONG_US else ""


def _produce(params: Mapping[str, Any]) -> str:
    return f"Produce {params['batch']} with acks={params.get('acks', 'all')}."


def _lose_power(story: TicketStory, brokers: Iterable[int], at_us: int) -> str:
    """Kill the brokers; of each, which batch on it had not flushed."""
    said = []
    for broker in brokers:
        batch = story.lost_from(broker, at_us)
        end = f"cut from its log what it appended from {batch} on" if batch else "leave its log: all of it was flushed"
        said.append(f"Let broker {broker} lose power: kill it (SIGKILL), and {end}.")
    return " ".join(said)


def _link(word: str) -> Callable[[Mapping[str, Any]], str]:
    def said(params: Mapping[str, Any]) -> str:
        if "from" not in params:
            return f"{word} all links."
        arrow = "and" if params.get("both_ways", True) else "to"
        late = f" by {params['by_ms']} ms" if "by_ms" in params else ""
        ends = [f"broker {end}" if isinstance(end, int) else end for end in (params["from"], params["to"])]
        return f"{word} the link {'between' if arrow == 'and' else 'from'} {ends[0]} {arrow} {ends[1]}{late}."

    return said


def _fail_directory(comes_back: str) -> Callable[[Mapping[str, Any]], str]:
    def said(params: Mapping[str, Any]) -> str:
        which = f"log directory {params['directory']}" if params.get("directory") else "the partition's log directory"
        text = f"Fail {which} of broker {params['broker']}: move it away, and put an empty file in its place."
        if params.get("repair_ms") is None:
            return text
        later = f"{params['repair_ms'] / 1000:g} s later, stop the broker, put {comes_back} back, and start the broker."
        return f"{text} {later}"

    return said


def _disk(params: Mapping[str, Any]) -> str:
    """What a fault of a disk strikes."""
    return f"log directory {params['directory']}" if "directory" in params else "disk"


def _start_later(params: Mapping[str, Any]) -> str:
    """The start of a broker that a line has stopped, if the line says when."""
    return f" Start it {params['restart_ms'] / 1000:g} s later." if params.get("restart_ms") is not None else ""


_ACTIONS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "produce": _produce,
    "controlled-restart": lambda params: f"Stop broker {params['broker']} (SIGTERM)." + _start_later(params),
    "kill": lambda params: f"Kill broker {params['broker']} (SIGKILL)." + _start_later(params),
    "start": lambda params: f"Start broker {params['broker']}.",
    "reassignment": lambda params: f"Reassign the partition to brokers {listed(params['replicas'])}.",
    "reassignment-cancel": lambda _: "Cancel the reassignment.",
    "preferred-election": lambda _: "Elect the preferred leader (kafka-leader-election.sh).",
    "cut": _link("Cut"),
    "slow": _link("Delay"),
    "heal": _link("Heal"),
    "pause": lambda params: f"Pause broker {params['node']} (SIGSTOP).",
    "resume": lambda params: f"Resume broker {params['node']} (SIGCONT).",
    "disk-replaced": lambda params: (
        f"Kill broker {params['broker']}, and give it an empty {_disk(params)}, formatted anew."
    ),
    "directory-failure": _fail_directory("the directory"),
    "directory-replaced": _fail_directory("an empty directory, formatted anew,"),
    "directory-unrepaired": _fail_directory(""),
    "directory-removed": lambda params: (
        f"Stop broker {params['broker']} (SIGTERM), and take its log directory with the partition out of log.dirs."
        + _start_later(params)
    ),
    "directory-move": lambda params: (
        f"Move the replica of broker {params['broker']} to another log directory (AlterReplicaLogDirs)."
    ),
    "move-throttle": lambda params: (
        f"Set replica.alter.log.dirs.io.max.bytes.per.second=1 for broker {params['broker']}."
        + (f" Delete it {params['for_ms'] / 1000:g} s later." if params.get("for_ms") is not None else "")
    ),
    "set-config": lambda params: " ".join(
        f"Set feature {key} to {value} (kafka-features.sh)."
        if key == ELR_FEATURE
        else f"Set {key}={in_properties(value)} for the topic."
        for key, value in params["config"].items()
    ),
    "delete-records": lambda params: f"Delete all records below offset {params['offset']} (DeleteRecords).",
    "metadata-lag": lambda params: (
        f"Let metadata reach broker {params['broker']} late, by {params['by_ms']} ms. All its other requests pass."
    ),
    "disk-stall": lambda params: (
        f"Let appends of broker {params['broker']}{' to its ' + _disk(params) if 'directory' in params else ''} stall "
        f"for {params['for_ms'] / 1000:g} s, as on a disk that hangs."
    ),
    "wait": lambda _: "",
    "pause-consumer": lambda _: "",
}
