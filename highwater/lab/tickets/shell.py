"""A shell script that repeats a story with Kafka's own tools, on a fresh cluster on loopback."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from faults.kind import node_of
from highwater.lab.confirm.proxy import CONTROL
from highwater.lab.tickets.story import in_properties
from highwater.lab.tickets.templates import filled, in_here_document, shell_comment, shell_text
from sim.errors import InputError
from sim.history import steps
from sim.protocol.kraft.metadata import ELR_FEATURE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from highwater.lab.tickets.story import TicketStory
    from scenarios.format.scenario import Pattern, ScriptLine
    from sim.config import Value

_BROKER_KEYS: Final = ("min.insync.replicas", "auto.leader.rebalance.enable", "unclean.leader.election.enable")
_END: Final = """\
[ $failed = 0 ] && echo "KEPT: $acknowledged"
exit $failed
"""
SESSION_MS: Final = 9_000
LONG_MS: Final = 60_000
"""Where a paused follower has to stay in the ISR."""
_LAG_MS: Final = 30_000


def shell(story: TicketStory) -> str:
    """The script.

    Raises:
        InputError: a line of the story has no counterpart among Kafka's tools.
    """
    return _Writer(story).text()


class _Writer:
    """Translates a script line by line.

    A cut link to a follower outside the ISR becomes a throttle, one to a member of the ISR a pause of that member.
    """

    def __init__(self, story: TicketStory) -> None:
        self._story = story
        self._paused: int | None = None
        # Brokers that lost all batches in a power loss, and are down.
        self._emptied: set[int] = set()
        self._divergence = False
        self._now_us = 0
        self._deleted = False

    def text(self) -> str:
        story = self._story
        body = [self._line(line, at_us) for line, at_us in zip(story.lines, story.times, strict=True)]
        ids = range(1, story.scenario.brokers + 1)
        settings = story.result.settings
        own = {key: settings[key] for key in _BROKER_KEYS if key in settings}
        paused = self._paused is not None
        elr = story.mode.rules.elr == "on"
        values = {
            "title": shell_comment(story.scenario.title),
            "release": story.release,
            "name": quote(story.scenario.name),
            "brokers": " ".join(map(str, ids)),
            "servers": ",".join(f"127.0.0.1:$((base + {one}))" for one in ids),
            "session_ms": str(LONG_MS if paused else SESSION_MS),
            "lag_ms": str(4 * LONG_MS if paused else _LAG_MS),
            "properties": "\n".join(in_here_document(f"{key}={in_properties(found)}") for key, found in own.items()),
            "feature": f"--feature {quote(f'{ELR_FEATURE}={settings[ELR_FEATURE]}')} " if elr else "",
            "assignment": ":".join(map(str, range(1, story.replicas + 1))),
            "topic_configs": self._topic_configs(settings["min.insync.replicas"]),
            "isr": " ".join(map(str, range(1, story.replicas + 1))),
            "judged": " ".join([] if self._deleted else map(quote, story.batches)),
        }
        foot = filled("foot.sh", values) + (filled("divergence.sh", values) if self._deleted else "") + _END
        return filled("head.sh", values) + "\n".join(filter(None, body)) + "\n" + foot

    def _topic_configs(self, min_isr: Value) -> str:
        """Options that give the topic min.insync.replicas, unless the script sets it: brokers have it by default."""
        key = "min.insync.replicas"
        if any(line.do == "set-config" and key in line.params["config"] for line in self._story.lines):
            return ""
        return f"--config {quote(f'{key}={in_properties(min_isr)}')} "

    def _line(self, line: ScriptLine, at_us: int) -> str:
        self._now_us = at_us
        wait = self._wait(line.when) if line.when is not None else []
        return "\n".join([*wait, *self._act(line)])

    def _wait(self, pattern: Pattern) -> list[str]:
        broker = pattern.broker
        match pattern.step:
            case steps.ISR.name:
                isr = " ".join(map(str, sorted(pattern.isr or ())))
                return [f'note "wait until the ISR is {isr}"', f'await 120 "the ISR is {isr}" isr_is "{isr}"']
            case steps.DELETED.name:
                return [f'await 120 "broker {broker} deletes its log" has_no_log {broker}']
            case steps.LEAD.name if broker:
                return [f'await 120 "broker {broker} leads" leader_is {broker}']
            case steps.SESSION_END.name:
                return [f"session_over {broker}", "sleep 2"]
            case steps.HW.name | steps.FOLLOW.name:
                return ["sleep 3"]
        return ["sleep 2"]  # Acknowledgements, ends and starts of brokers are waited for where they are asked for.

    def _act(self, line: ScriptLine) -> list[str]:
        acting = _ACTIONS.get(line.do)
        if acting is None:
            missing = [other.do for other in self._story.lines if other.do not in _ACTIONS]
            do = next((each for each in missing if each not in _TOOLS_HAVE), None)
            lacks = f"{do} has no counterpart among Kafka's tools" if do else f"no script performs {missing[0]}"
            raise InputError(
                f"{self._story.scenario.name}: {lacks}; "
                f"repeat it by highwater confirm {self._story.scenario.name} --kafka {self._story.release}"
            )
        return acting(self, line.params)

    # Actions.

    def produce(self, params: Mapping[str, Any]) -> list[str]:
        """Send a batch with a producer of its own, if the simulation acknowledges it."""
        story, batch = self._story, params["batch"]
        acks = str(params.get("acks", story.result.settings["acks"]))
        record = story.batches[batch]
        if not any(step["step"] == steps.ACK.name and step["record"] == record for step in story.trace):
            return []
        return [f"note {shell_text(f'produce {batch}, acks={acks}')}", f"produce {quote(batch)} {quote(acks)}"]

    def stop(self, params: Mapping[str, Any]) -> list[str]:
        """Stop the broker by SIGTERM, a controlled shutdown, and start it again if the script says so."""
        said = [f'note "stop broker {params["broker"]}"', f"stop {params['broker']}"]
        if params.get("restart_ms") is None:
            return said
        return [*said, f"sleep {params['restart_ms'] / 1000:g}", *self.start(params)]

    def kill(self, params: Mapping[str, Any]) -> list[str]:
        """Kill the broker, and resume the follower that `cut` paused."""
        said = [f'note "kill broker {params["broker"]}"', f"crash {params['broker']}"]
        if self._paused is not None and self._paused != params["broker"]:
            said.append(f'kill -CONT "$(node {self._paused})"')
        return said

    def start(self, params: Mapping[str, Any]) -> list[str]:
        """Start the broker, and wait until it is unfenced."""
        self._emptied.discard(params["broker"])
        return [f'note "start broker {params["broker"]}"', f"run {params['broker']}"]

    def reassign(self, params: Mapping[str, Any]) -> list[str]:
        """Reassign the partition by the Admin client."""
        replicas = ",".join(map(str, params["replicas"]))
        return [f'note "reassign to {replicas}"', f"reassign {replicas}", "describe"]

    def cancel(self, _: Mapping[str, Any]) -> list[str]:
        """Cancel the reassignment by the Admin client."""
        return ['note "cancel the reassignment"', "reassign", "describe"]

    def cut(self, params: Mapping[str, Any]) -> list[str]:
        """Throttle replication, or pause a follower that is in the ISR."""
        ends = {node_of(params["from"]), node_of(params["to"])}
        leader, isr = self._state()
        if CONTROL in ends or leader not in ends:
            raise InputError(f"{self._story.scenario.name}: a cut link without the leader has no counterpart")
        (follower,) = ends - {leader}
        if follower not in isr:
            said = ['note "throttle replication"', f"throttle {leader}"]
            if follower in self._emptied:  # The leader's first batch has to be one that fills the quota.
                said.append(f'truncate -s 0 "$(log_of {follower})/00000000000000000000.log" # The filler is lost, too.')
            return said
        self._paused = follower
        return [f'note "pause broker {follower}"', f'kill -STOP "$(node {follower})"', "sleep 2"]

    def heal(self, _: Mapping[str, Any]) -> list[str]:
        """End the throttle that `cut` began; a paused follower goes on when the leader is killed."""
        return [] if self._paused is not None else ['note "end the throttle"', "unthrottle"]

    def pause(self, params: Mapping[str, Any]) -> list[str]:
        """Stop the process by SIGSTOP."""
        return [f'note "pause broker {params["node"]}"', f'kill -STOP "$(node {params["node"]})"']

    def resume(self, params: Mapping[str, Any]) -> list[str]:
        """Resume the process by SIGCONT."""
        return [f'note "resume broker {params["node"]}"', f'kill -CONT "$(node {params["node"]})"', "sleep 10"]

    def lose_power(self, params: Mapping[str, Any]) -> list[str]:
        """Kill the brokers, and cut from their logs what the simulation loses."""
        brokers = list(params["brokers"])
        first = next(iter(self._story.batches))
        self._emptied.update(broker for broker in brokers if self._story.lost_from(broker, self._now_us) == first)
        ends = " ".join(quote(f"{broker}:{self._story.lost_from(broker, self._now_us)}") for broker in brokers)
        ids = " ".join(map(str, brokers))
        return [f'note "brokers {ids} lose power, and what they have not flushed"', f"lose_power {ends}"]

    def replace(self, params: Mapping[str, Any]) -> list[str]:
        """Kill the broker, and give it an empty disk."""
        broker = params["broker"]
        return [f'note "broker {broker} gets a new disk"', f"replace_disk {broker}"]

    def set(self, params: Mapping[str, Any]) -> list[str]:
        """Set settings of the topic, or the level of a feature."""
        said = []
        for key, found in params["config"].items():
            if key == ELR_FEATURE:
                level = f"{'upgrade' if found else 'downgrade'} {quote(f'{key}={found}')}"
                said += [f"note {shell_text(level)}", f"set_feature {level}"]
            else:
                said.append(f"set_topic {quote(f'{key}={in_properties(found)}')}")
        return said

    def delete(self, params: Mapping[str, Any]) -> list[str]:
        """Delete the records below an offset by kafka-delete-records.sh."""
        self._deleted = True
        return ['note "delete all records"', f"delete_records {params['offset'] + 1} # The filler is one more."]

    def nothing(self, _: Mapping[str, Any]) -> list[str]:
        """Do nothing: only the simulation needs this line."""
        return []

    # The simulation.

    def _state(self) -> tuple[int, tuple[int, ...]]:
        leader, isr = 1, tuple(range(1, self._story.replicas + 1))
        for step in self._story.trace:
            if step["t"] > self._now_us:
                break
            if step["step"] == steps.ELECTED.name:
                leader = step["broker"]
            elif step["step"] == steps.ISR.name:
                isr = tuple(step["isr"])
        return leader, isr


_ACTIONS: Final[Mapping[str, Callable[[_Writer, Mapping[str, Any]], list[str]]]] = {
    "produce": _Writer.produce,
    "controlled-restart": _Writer.stop,
    "kill": _Writer.kill,
    "start": _Writer.start,
    "reassignment": _Writer.reassign,
    "reassignment-cancel": _Writer.cancel,
    "cut": _Writer.cut,
    "heal": _Writer.heal,
    "pause": _Writer.pause,
    "resume": _Writer.resume,
    "power-loss": _Writer.lose_power,
    "disk-replaced": _Writer.replace,
    "set-config": _Writer.set,
    "delete-records": _Writer.delete,
    "pause-consumer": _Writer.nothing,
    "wait": _Writer.nothing,
}
_TOOLS_HAVE: Final = ("directory-move", "move-throttle", "preferred-election")
"""Actions that kafka-reassign-partitions (`--replica-alter-log-dirs-throttle`) and kafka-leader-election perform, and
no script does so far.
"""
