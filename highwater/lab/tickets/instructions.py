"""A script's lines as instructions to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from highwater.lab.tickets.story import in_properties, listed
from scenarios.format.actions import ACTIONS
from sim.history import steps
from sim.plurals import counted
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
        said = action(line.do, line.params, control)
        if line.do == "power-loss":
            said = _lose_power(story, line.params["brokers"], at_us) + _start_later(line.params)
        parts = [wait(line.when), _delay(line.after_us), said]
        if text := " ".join(filter(None, parts)):
            found.append(text)
    return found


def action(do: str, params: Mapping[str, Any], control: str) -> str:
    """What a person does for an action of a script; empty if nothing.

    Args:
        do: the action.
        params: its parameters.
        control: the name of the control plane.
    """
    named = {name: control if value == "control" else value for name, value in params.items()}
    if do in _ACTIONS:
        return _ACTIONS[do](named)
    meaning = ACTIONS[do].meaning
    values = (f"{name} {listed(value) if isinstance(value, tuple) else value}" for name, value in named.items())
    return f"{meaning[0].upper()}{meaning[1:]}" + (f" ({', '.join(values)})." if named else ".")


def wait(pattern: Pattern | None) -> str:
    """What a person waits for, if a line of a script waits for this; empty if it waits for nothing."""
    return _WAITS[pattern.step](pattern) if pattern is not None and pattern.step in _WAITS else ""


def _to_offset(pattern: Pattern, word: str) -> str:
    return "" if pattern.offset is None else f" {word}{pattern.offset}"


def _delay(after_us: int) -> str:
    return f"Wait {after_us / 1_000_000:g} s." if after_us >= LONG_US else ""


def _produce(params: Mapping[str, Any]) -> str:
    records = f" ({params['records']} records)" if params.get("records", 1) > 1 else ""
    producer = f" by producer {params['producer']}" if "producer" in params else ""
    return f"Produce {params['batch']}{records}{producer} with acks={params.get('acks', 'all')}."


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
        way = f"{'between' if arrow == 'and' else 'from'} {ends[0]} {arrow} {ends[1]}"
        return f"{word} the link {way}{late}{_lasting(params)}."

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


def _node(node: int | str) -> str:
    """A process that a line strikes."""
    return f"broker {node}" if isinstance(node, int) else node


def _disk(params: Mapping[str, Any]) -> str:
    """What a fault of a disk strikes."""
    return f"log directory {params['directory']}" if "directory" in params else "disk"


def _lasting(params: Mapping[str, Any]) -> str:
    """How long a line holds, if it says so."""
    return f" for {params['for_ms'] / 1000:g} s" if params.get("for_ms") is not None else ""


def _elect(params: Mapping[str, Any]) -> str:
    leader = (
        f"make broker {params['broker']} the leader" if params["broker"] else "leave the partition without a leader"
    )
    return f"As the controller, {leader}, with the ISR {listed(params['isr'])} (LeaderAndIsr)."


def _hold(params: Mapping[str, Any]) -> str:
    way = f"{params['message']} that broker {params['broker']} sends or receives"
    return f"From now on, hold back each {way}; let all other messages pass."


def _deliver(params: Mapping[str, Any]) -> str:
    peer = f" and that is from or to broker {params['peer']}" if "peer" in params else ""
    which = "newest" if params.get("newest") else "oldest"
    held = f"{params['message']} of broker {params['broker']} that is held back{peer}"
    return f"Let the {which} {held} arrive. If none is, let the next one pass."


def _release(params: Mapping[str, Any]) -> str:
    return (
        f"Let every {params['message']} of broker {params['broker']} that is held back arrive, and hold back no more."
    )


def _seek(params: Mapping[str, Any]) -> str:
    epoch = f", with leader epoch {params['epoch']} of the record before it" if params.get("epoch") is not None else ""
    return f"Let the consumer seek to offset {params['offset']}{epoch}."


def _start_later(params: Mapping[str, Any]) -> str:
    """The start of a broker that a line has stopped, if the line says when."""
    return f" Start it {params['restart_ms'] / 1000:g} s later." if params.get("restart_ms") is not None else ""


_WAITS: Final[Mapping[str, Callable[[Pattern], str]]] = {
    steps.RAFT_LEADER.name: lambda _: "Wait until a controller leads the metadata quorum.",
    steps.VOTERS_CHANGED.name: lambda _: "Wait until the change of the quorum's voters is committed.",
    steps.ISR.name: lambda pattern: f"Wait until the ISR is {listed(sorted(pattern.isr or ()))}.",
    steps.ELR.name: lambda pattern: f"Wait until the ELR is {listed(sorted(pattern.elr))}." if pattern.elr else "",
    steps.DELETED.name: lambda pattern: f"Wait until broker {pattern.broker} has deleted its log.",
    steps.APPEND.name: lambda pattern: f"Wait until broker {pattern.broker} has {pattern.batch}.",
    steps.TRUNCATE.name: lambda pattern: (
        f"Wait until broker {pattern.broker} has truncated its log{_to_offset(pattern, 'to offset ')}."
    ),
    steps.ACK.name: lambda pattern: f"Wait until {pattern.batch} is acknowledged.",
    steps.READ.name: lambda pattern: f"Wait until the consumer has read {pattern.batch}.",
    steps.COMMIT.name: lambda pattern: f"Wait until the consumer has committed offset {pattern.offset}.",
    steps.COMMITTED_OFFSET.name: lambda _: "Wait until the consumer has been answered what is committed.",
    steps.NO_RECORD_IN_TIME.name: lambda _: "Wait until the consumer has found no record in the time of by_duration.",
    steps.HELD_BACK.name: lambda _: "Wait until the producer has sent the batch that it held back.",
    steps.HW.name: lambda pattern: f"Wait until the high watermark of broker {pattern.broker} is {pattern.offset}.",
    steps.REPLICATED.name: lambda pattern: (
        f"Wait until leader {pattern.broker} knows that a follower has all below offset {pattern.offset}."
    ),
    steps.END_OFFSET.name: lambda pattern: f"Wait until the consumer has the end offset{_to_offset(pattern, '')}.",
    steps.FOLLOW.name: lambda pattern: f"Wait until broker {pattern.broker} follows the leader.",
    steps.SETTLED.name: lambda pattern: f"Wait until broker {pattern.broker} has removed what the leader's log lacks.",
    steps.RECOVERED.name: lambda pattern: f"Wait until broker {pattern.broker} has loaded its log.",
    steps.REGISTERED.name: lambda pattern: f"Wait until broker {pattern.broker} has registered.",
    steps.ELECTED.name: lambda pattern: (
        f"Wait until broker {pattern.broker} is elected." if pattern.broker else "Wait until there is no leader."
    ),
    steps.LEAD.name: lambda pattern: f"Wait until broker {pattern.broker} leads.",
    steps.SESSION_END.name: lambda pattern: f"Wait until the session of broker {pattern.broker} has expired.",
    steps.UNFENCED.name: lambda pattern: f"Wait until broker {pattern.broker} is unfenced.",
    steps.SHUTDOWN.name: lambda pattern: f"Wait until broker {pattern.broker} has ended.",
    steps.CONTROLLER.name: lambda _: "Wait until the next controller is elected.",
    steps.HEAL.name: lambda _: "Wait until the link works again.",
}
"""Step that a line waits for -> what a person waits for."""
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
    "pause": lambda params: f"Pause {_node(params['node'])} (SIGSTOP){_lasting(params)}.",
    "resume": lambda params: f"Resume {_node(params['node'])} (SIGCONT).",
    "disk-replaced": lambda params: (
        f"Kill broker {params['broker']}, and give it an empty {_disk(params)}, formatted anew." + _start_later(params)
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
        f"Let metadata reach broker {params['broker']} late, by {params['by_ms']} ms{_lasting(params)}. All its other "
        "requests pass."
    ),
    "disk-stall": lambda params: (
        f"Let appends of broker {params['broker']}{' to its ' + _disk(params) if 'directory' in params else ''} stall "
        f"for {params['for_ms'] / 1000:g} s, as on a disk that hangs."
    ),
    "wait": lambda _: "",
    "elect": _elect,
    "isr": lambda params: f"As the controller, set the ISR to {listed(params['isr'])} (LeaderAndIsr).",
    "end-offsets": lambda _: "Ask for the end offset (ListOffsets, latest).",
    "hold-messages": _hold,
    "deliver-message": _deliver,
    "release-messages": _release,
    "message-hold": lambda params: (
        f"Hold back the next {params['message']} that broker {params['broker']} sends or receives{_lasting(params)}, "
        "while others pass."
    ),
    "restart-producer": lambda _: "Restart the producer: it gets another producer id, and forgets unsent batches.",
    "seek": _seek,
    "pause-consumer": lambda _: "Let the consumer stop fetching.",
    "resume-consumer": lambda _: "Let the consumer fetch again.",
    "zombie": lambda params: (
        f"Let the session of broker {params['broker']} end unnoticed: drop its heartbeats (ZooKeeper: its pings)"
        f"{_lasting(params)}, and let all its other messages pass."
    ),
    "session-expiry": lambda params: f"Let the session of broker {params['broker']} expire while its process runs.",
    "corrupt-tail": lambda params: (
        f"Kill broker {params['broker']} (SIGKILL), and make the newest "
        f"{counted(params['batches'], 'batch', 'batches')} of its log unreadable." + _start_later(params)
    ),
    "controller-failover": lambda _: (
        "Let another controller be elected: delete the znode /controller, or let the active KRaft controller resign."
    ),
    "topic-deletion": lambda params: (
        f"Delete topic {params['topic']}."
        + (f" Create it again {params['for_ms'] / 1000:g} s later." if params.get("for_ms") is not None else "")
    ),
}
