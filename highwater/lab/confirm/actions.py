"""Script actions on real brokers: one function for each action that has a counterpart there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from faults.kind import node_of
from faults.kinds.file_damage import FileHalfWritten, FileLost, FileOld
from highwater.lab.confirm.milestones import OF_FILES
from highwater.lab.confirm.observer import SEEN
from highwater.lab.confirm.producer import REQUEST, RESPONSE, Send
from highwater.lab.confirm.proxy import CONTROL, EVERYTHING, HEARTBEAT
from highwater.lab.confirm.topics import alter_log_directory
from scenarios.single.script import HOLDS
from sim.config import integer
from sim.history import steps as kinds
from sim.hosts.settings import acks_number
from sim.protocol.kraft.metadata import ELR_FEATURE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from highwater.lab.confirm.clients import KafkaClients
    from highwater.lab.confirm.cluster import KafkaCluster
    from highwater.lab.confirm.release import InstalledRelease
    from highwater.lab.confirm.script_runner import Actor
    from scenarios.format.scenario import Scenario, ScriptLine, StoryLine
    from sim.history.steps import StepKind

    Action = Callable[[Actor, Mapping[str, Any]], None]

_SESSION_S: Final = 20.0
_ELECT_LEADERS: Final = (2, 4)
_REASSIGN: Final = (2, 4)
_ADMIN: Final = (0, 11)
_KRAFT: Final = (3, 3)
_ELR: Final = (4, 0)
_QUORUM: Final = (3, 9)
"""The first release in which a controller may advertise another address than its own (KIP-853)."""
_IDEMPOTENT: Final = (1, 0)
_MOVE_QUOTA: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
_NO_QUOTA: Final = 2**63 - 1
_DIRECTORIES: Final = (3, 9)
"""The first pinned release that reports failed log directories."""
OF_DIRECTORIES: Final = (
    *("directory-failure", "directory-replaced", "directory-unrepaired", "directory-removed", "directory-move"),
)
"""Actions that may name a log directory."""
OF_PARTITIONS: Final = (
    *("produce", "restart-producer", "seek", "end-offsets", "pause-consumer", "resume-consumer"),
    *("preferred-election", "admin-election", "reassignment", "reassignment-cancel", "delete-records"),
    *OF_DIRECTORIES,
    *OF_FILES,
)
"""Actions that may name a partition besides the first."""


def _produce(actor: Actor, params: Mapping[str, Any]) -> None:
    records = params.get("records", 1)
    acks = acks_number(str(params["acks"] if "acks" in params else actor.config["acks"]))
    actor.batches[params["batch"]] = actor.next_id
    _clients(actor, params).produce(Send(params["batch"], actor.next_id, records, acks))
    actor.next_id += records


def _clients(actor: Actor, params: Mapping[str, Any]) -> KafkaClients:
    """The clients of the partition that a line names, or of the first."""
    return actor.clients_of[actor.partition_of(params).name]


def _ends(params: Mapping[str, Any]) -> list[tuple[int, int]]:
    source, target = node_of(params["from"]), node_of(params["to"])
    return [(source, target), (target, source)] if params.get("both_ways", True) else [(source, target)]


def _links(actor: Actor, params: Mapping[str, Any]) -> list[tuple[int, int]]:
    return [link for ends in _ends(params) for link in actor.cluster.links(*ends)]


def _for_a_while(actor: Actor, params: Mapping[str, Any], undo: Callable[[], None]) -> None:
    if params.get("for_ms"):
        actor.later(actor.cluster.paced_ms(params["for_ms"]) / 1000, undo)


def _on_links(kind: StepKind, strike: Callable[[Actor, Mapping[str, Any], int, int], None]) -> Action:
    """An action on directed links, which heal after a while if the script says so."""

    def act(actor: Actor, params: Mapping[str, Any]) -> None:
        for source, target in _ends(params):
            for link in actor.cluster.links(source, target):
                strike(actor, params, *link)
            actor.note(kind.name, source=source, target=target)
        _for_a_while(actor, params, lambda: actor.heal(_links(actor, params)))

    return act


def _slow(actor: Actor, params: Mapping[str, Any], source: int, target: int) -> None:
    actor.cluster.proxies.slow(source, target, actor.cluster.paced_ms(params["by_ms"]) / 1000)


def _heal(actor: Actor, params: Mapping[str, Any]) -> None:
    ends = {node_of(params[end]) for end in ("from", "to") if end in params}
    if len(ends) == 2:
        actor.heal(_links(actor, params))
        return
    those = set(actor.cluster.controllers) if ends == {CONTROL} else ends
    actor.heal([link for link in actor.cluster.proxies.links() if not ends or those & set(link)])


def _ending(kind: StepKind, strike: Callable[[KafkaCluster, Mapping[str, Any]], None]) -> Action:
    """An action that ends processes, which start again after a while if the script says so."""

    def act(actor: Actor, params: Mapping[str, Any]) -> None:
        strike(actor.cluster, params)
        brokers = params.get("brokers", [params.get("broker")])
        for broker in brokers:
            if broker in actor.cluster.brokers:
                actor.note(kind.name, broker=broker)
            else:
                actor.note(kinds.CONTROLLER_END.name, broker=0, node=broker, cause=kind.name)
        if params.get("restart_ms") is not None:
            for broker in brokers:
                actor.later(actor.cluster.paced_ms(params["restart_ms"]) / 1000, partial(actor.start, broker))

    return act


def _controlled_restart(actor: Actor, params: Mapping[str, Any]) -> None:
    broker = params["broker"]
    actor.cluster.stop(broker)
    if params.get("restart_ms") is not None:
        delay_s = actor.cluster.paced_ms(params["restart_ms"]) / 1000
        actor.when_down(broker, lambda: actor.later(delay_s, lambda: actor.start(broker)))


def _pause(actor: Actor, params: Mapping[str, Any]) -> None:
    node = node_of(params["node"])
    for one in _processes(actor, node):
        actor.cluster.pause(one, paused=True)
    actor.note(kinds.PAUSE.name, broker=node)
    _for_a_while(actor, params, lambda: _resume(actor, params))


def _resume(actor: Actor, params: Mapping[str, Any]) -> None:
    node = node_of(params["node"])
    for one in _processes(actor, node):
        actor.cluster.pause(one, paused=False)
    actor.note(kinds.RESUME.name, broker=node)


def _processes(actor: Actor, node: int) -> list[int]:
    """The processes for which a node stands: all controllers for the control plane."""
    return list(actor.cluster.controllers) if node == CONTROL else [node]


def _session_expiry(actor: Actor, params: Mapping[str, Any]) -> None:
    """Block the broker's heartbeats until its session expires."""
    broker = params["broker"]
    _silence(actor, broker)
    actor.expiring = broker
    actor.wait_for(lambda step: step["step"] == kinds.SESSION_END.name and step.get("broker") == broker, _SESSION_S)
    actor.expiring = None
    actor.cluster.proxies.silence(broker, ())


def _zombie(actor: Actor, params: Mapping[str, Any]) -> None:
    broker = params["broker"]
    _silence(actor, broker)
    # A zombie has no session from the start.
    actor.wait_for(lambda step: step["step"] == kinds.SESSION_END.name and step.get("broker") == broker, _SESSION_S)
    _for_a_while(actor, params, lambda: actor.cluster.proxies.silence(broker, ()))


def _silence(actor: Actor, broker: int) -> None:
    actor.cluster.proxies.silence(broker, [HEARTBEAT if actor.cluster.release.kraft else EVERYTHING])


def _metadata_lag(actor: Actor, params: Mapping[str, Any]) -> None:
    broker, proxies = params["broker"], actor.cluster.proxies
    proxies.lag(broker, actor.cluster.paced_ms(params["by_ms"]) / 1000)
    _for_a_while(actor, params, lambda: proxies.lag(broker, 0.0))


def _disk_stall(actor: Actor, params: Mapping[str, Any]) -> None:
    """Hold the leader's responses to a follower, whose appends are what a stalled disk blocks."""
    broker, proxies = params["broker"], actor.cluster.proxies
    if broker == actor.cluster.leader:
        raise TimeoutError(f"broker {broker} leads: only a follower's disk can be stalled here")
    proxies.stall(broker, stalled=True)
    if params.get("for_ms"):
        actor.later_as_simulated(lambda: proxies.stall(broker, stalled=False))


def _place(actor: Actor, params: Mapping[str, Any]) -> int:
    """The number of the log directory that a line names, or of the one with its partition."""
    node, number = actor.cluster.node(params["broker"]), params.get("directory", 0)
    log = actor.partition_of(params).log
    return (number - 1) % node.directories + 1 if number else node.place_of(log)


def _directory_removed(actor: Actor, params: Mapping[str, Any]) -> None:
    broker, place = params["broker"], _place(actor, params)

    def remove() -> None:
        actor.cluster.remove_directory(broker, place)
        actor.note(kinds.DIRECTORY_REPLACED.name, broker=broker)
        if params.get("restart_ms") is not None:
            actor.later(actor.cluster.paced_ms(params["restart_ms"]) / 1000, lambda: actor.start(broker))

    actor.when_down(broker, remove)
    actor.cluster.stop(broker)


def _directory(kind: StepKind, *, repaired: bool, replaced: bool = False) -> Action:
    """An action that fails one log directory of a broker, and perhaps repairs it and restarts the broker."""

    def act(actor: Actor, params: Mapping[str, Any]) -> None:
        broker, place = params["broker"], _place(actor, params)
        actor.fail_directory(broker, place)
        actor.note(kind.name, broker=broker)
        if repaired:
            actor.unrepaired.append((broker, place, replaced))
            if params.get("repair_ms") is not None:
                delay_s = actor.cluster.paced_ms(params["repair_ms"]) / 1000
                actor.later(delay_s, lambda: actor.repair_directory(broker, place))

    return act


def _file_damage(how: str) -> Action:
    """An action that damages a file of a broker that is down; one that runs is shut down first."""

    def act(actor: Actor, params: Mapping[str, Any]) -> None:
        broker, file, partition = params["broker"], params["file"], actor.partition_of(params)

        def damage() -> None:
            if actor.cluster.damage_file(broker, partition, file, how):
                actor.note(kinds.FILE_DAMAGED.name, broker=broker, file=file, damage=how)
            if params.get("restart_ms") is not None:
                delay_s = actor.cluster.paced_ms(params["restart_ms"]) / 1000
                actor.later(delay_s, lambda: actor.repair_files(broker))

        if actor.cluster.node(broker).alive:
            actor.when_down(broker, damage)
            actor.cluster.stop(broker)
        else:
            damage()

    return act


def _directory_move(actor: Actor, params: Mapping[str, Any]) -> None:
    node = actor.cluster.node(params["broker"])
    partition = actor.partition_of(params)
    number = params.get("directory", 0) or node.place_of(partition.log) + 1
    alter_log_directory(node, (number - 1) % node.directories + 1, partition.topic, [partition.number])


def _move_throttle(actor: Actor, params: Mapping[str, Any]) -> None:
    """Let the first bytes that a future replica copies exceed the quota, until it is taken back."""
    broker = params["broker"]
    actor.administrator.set_broker_config(broker, {_MOVE_QUOTA: 1})
    _for_a_while(actor, params, lambda: actor.administrator.set_broker_config(broker, {_MOVE_QUOTA: _NO_QUOTA}))


def _controller_failover(actor: Actor, _: Mapping[str, Any]) -> None:
    if actor.cluster.release.kraft:
        actor.cluster.kill([CONTROL])
        actor.cluster.start(actor.cluster.control)
    else:
        actor.zookeeper().delete("/controller")


def _min_isr_change(actor: Actor, params: Mapping[str, Any]) -> None:
    before = actor.config["min.insync.replicas"]
    actor.administrator.set_config({"min.insync.replicas": params["value"]})
    _for_a_while(actor, params, lambda: actor.administrator.set_config({"min.insync.replicas": before}))


def _feature_change(actor: Actor, params: Mapping[str, Any]) -> None:
    """Set the other level of the ELR feature."""
    before = integer(actor.config, ELR_FEATURE)
    actor.administrator.set_config({ELR_FEATURE: 1 - before})
    _for_a_while(actor, params, lambda: actor.administrator.set_config({ELR_FEATURE: before}))


def _preferred_election(actor: Actor, params: Mapping[str, Any]) -> None:
    partition = actor.partition_of(params)
    if actor.cluster.release.number >= _ELECT_LEADERS:
        actor.administrator.elect(0, partition)
    else:
        actor.elect_preferred_by_znode(partition)


ACTIONS: Final[dict[str, Action]] = {
    "produce": _produce,
    "wait": lambda _actor, _params: None,
    "start": lambda actor, params: actor.start(params["broker"]),
    "kill": _ending(kinds.KILL, lambda cluster, params: cluster.kill([params["broker"]])),
    "power-loss": _ending(kinds.POWER_LOSS, lambda cluster, params: cluster.lose_power(params["brokers"])),
    "disk-replaced": _ending(kinds.DISK_REPLACED, lambda cluster, params: cluster.replace_disk(params["broker"])),
    "quorum-state-lost": _ending(kinds.KILL, lambda cluster, params: cluster.lose_quorum_state(params["broker"])),
    "corrupt-tail": _ending(
        kinds.CORRUPT_TAIL, lambda cluster, params: cluster.corrupt_tail(params["broker"], params.get("batches", 1))
    ),
    "controlled-restart": _controlled_restart,
    "directory-failure": _directory(kinds.DIRECTORY_FAILED, repaired=True),
    "directory-replaced": _directory(kinds.DIRECTORY_FAILED, repaired=True, replaced=True),
    "directory-unrepaired": _directory(kinds.DIRECTORY_FAILED, repaired=False),
    "directory-removed": _directory_removed,
    **{kind.name: _file_damage(kind.damage) for kind in (FileLost, FileOld, FileHalfWritten)},
    "directory-move": _directory_move,
    "move-throttle": _move_throttle,
    "pause": _pause,
    "resume": _resume,
    "cut": _on_links(kinds.CUT, lambda actor, _params, source, target: actor.cluster.proxies.cut(source, target)),
    "slow": _on_links(kinds.SLOW, _slow),
    "heal": _heal,
    "session-expiry": _session_expiry,
    "zombie": _zombie,
    "metadata-lag": _metadata_lag,
    "disk-stall": _disk_stall,
    "controller-failover": _controller_failover,
    "set-config": lambda actor, params: actor.administrator.set_config(params["config"]),
    "min-isr-change": _min_isr_change,
    "feature-change": _feature_change,
    "preferred-election": _preferred_election,
    "admin-election": lambda actor, params: actor.administrator.elect(1, actor.partition_of(params)),
    "reassignment": lambda actor, params: actor.administrator.reassign(params["replicas"], actor.partition_of(params)),
    "reassignment-cancel": lambda actor, params: actor.administrator.reassign(None, actor.partition_of(params)),
    "delete-records": lambda actor, params: actor.administrator.delete_records(
        params["offset"], actor.partition_of(params)
    ),
    "restart-producer": lambda actor, params: _clients(actor, params).producer.restart(),
    "seek": lambda actor, params: _clients(actor, params).seek(params["offset"]),
    "end-offsets": lambda actor, params: _clients(actor, params).ask_end_offset(),
    "pause-consumer": lambda actor, params: _clients(actor, params).pause(),
    "resume-consumer": lambda actor, params: _clients(actor, params).resume(),
    "hold-messages": lambda actor, params: actor.clients.producer.hold(params["message"], params["broker"]),
    "deliver-message": lambda actor, params: actor.clients.producer.deliver(
        params["message"], params["broker"], newest=params.get("newest", False)
    ),
    "release-messages": lambda actor, params: actor.clients.producer.release(params["message"], params["broker"]),
    "elect": lambda actor, params: actor.decide(params["broker"], params["isr"]),
    "isr": lambda actor, params: actor.decide(actor.cluster.leader, params["isr"]),
}
"""Value of ``do`` -> its action on real brokers."""

SINCE: Final = {
    "reassignment": _REASSIGN,
    "reassignment-cancel": _REASSIGN,
    "set-config": _ADMIN,
    "min-isr-change": _ADMIN,
    "feature-change": _ELR,
    "delete-records": _ADMIN,
    "metadata-lag": _KRAFT,
    **dict.fromkeys((*OF_DIRECTORIES, "move-throttle"), _DIRECTORIES),
}
"""Action -> the first release that has a request for it."""


def missing(scenario: Scenario, lines: Iterable[ScriptLine], release: InstalledRelease) -> list[str]:
    """Actions of a script without a counterpart on brokers of a release, one sentence each."""
    found = []
    if scenario.control == "quorum" and release.number < _QUORUM:
        found.append(f"control = quorum has no counterpart in {release.name}: only releases from 3.9 on take it")
    if scenario.control == "scripted" and release.kraft:
        found.append(f"control = scripted has no counterpart in {release.name}: only ZooKeeper's releases take it")
    if scenario.config.get("enable.idempotence") and release.number < _IDEMPOTENT:
        found.append(f"enable.idempotence has no counterpart in {release.name}: it takes brokers from 1.0 on")
    if scenario.broker_modes:
        found.append("brokers of several releases in one cluster have no counterpart")
    found += [
        f"[[topics]]: {topic.name}: a topic that is created later, or has settings of its own, has no counterpart"
        for topic in scenario.topics
        if topic.config or not topic.created
    ]
    first = {"", f"{scenario.topics[0].name}-0" if scenario.topics else ""}
    for line in lines:
        if line.params.get("partition", "") not in first and line.do not in OF_PARTITIONS:
            found.append(f"do = {line.do!r} has no counterpart for another partition than the first")
        found += _held(scenario, line)
        if line.do == "controller-failover" and scenario.controller_count:
            found.append("do = 'controller-failover' has no counterpart with control = quorum: kill the controller")
        if line.do not in ACTIONS:
            found.append(f"do = {line.do!r} has no counterpart")
        elif release.number < SINCE.get(line.do, ()):
            since = ".".join(map(str, SINCE[line.do]))
            found.append(f"do = {line.do!r} has no counterpart in {release.name}: brokers take it from {since} on")
        elif parameter := _parameter_without_counterpart(line):
            found.append(f"do = {line.do!r} has no counterpart for {parameter}")
        if line.when is not None and line.when.step not in SEEN:
            found.append(f"when.step = {line.when.step!r} cannot be seen on real brokers")
    return list(dict.fromkeys(found))


def _held(scenario: Scenario, line: ScriptLine) -> Iterator[str]:
    """What cannot be held back: messages of other types, and anything that is about one of several partitions."""
    several = scenario.partitions > 1
    if line.do in HOLDS and (line.params["message"] not in (REQUEST, RESPONSE) or several):
        yield (
            f"do = {line.do!r}, message = {line.params['message']!r} has no counterpart: only {REQUEST} and "
            f"{RESPONSE} of a scenario with one partition are held"
        )
    if line.do == "disk-stall" and several:
        yield "do = 'disk-stall' has no counterpart in a scenario with several partitions"


def _parameter_without_counterpart(line: ScriptLine) -> str:
    """What a line says that its action cannot do on brokers; empty: nothing."""
    if line.do == "admin-election" and line.params.get("election") != "unclean":
        return f"election = {line.params.get('election')!r}"
    if line.params.get("producer", 1) > 1:
        return "a second producer"
    if line.do == "seek" and "epoch" in line.params:
        return "an epoch"
    return "one log directory" if "directory" in line.params and line.do not in OF_DIRECTORIES else ""


def unseen(lines: Iterable[StoryLine]) -> list[str]:
    """Expected steps that cannot be observed on real brokers."""
    return sorted({line.pattern.step for line in lines} - SEEN)
