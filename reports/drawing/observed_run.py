"""An observed run: its steps, its messages, and the log of the step's broker after each step."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reports.evidence.messages import about, name_of
from reports.formatting import pairs
from scenarios.format.scenario import Scenario
from scenarios.single.result import RunResult
from scenarios.single.run import Watch, run
from sim.history.trace import Shown
from sim.hosts.client import CLIENTS_EACH, PRODUCER, like_first
from sim.hosts.cluster import Cluster
from sim.kernel import message
from sim.kernel.scheduler import ObservedEvent, Watcher
from sim.protocol.modes import Mode

ZOOKEEPER: Final = "ZooKeeper"
"""Name of a control plane that is not a quorum of controllers."""


@dataclass(frozen=True, slots=True)
class LogView:
    """A broker's log at one time.

    Attributes:
        batches: (base offset, last offset, leader epoch, first record) of each.
        high_watermark: as the broker knows it.
        flushed: the offset below which everything is on disk.
    """

    batches: tuple[tuple[int, int, int, int], ...]
    high_watermark: int
    flushed: int


@dataclass(frozen=True, slots=True)
class Observation:
    """A step and its surroundings.

    Attributes:
        step: as a trace shows it.
        call: number of the call in which it happened; -1 for none.
        log: its broker's log right after it; None if it belongs to no broker.
    """

    step: Shown
    call: int
    log: LogView | None

    @property
    def at_us(self) -> int:
        """Time of the step."""
        at_us: int = self.step["t"]
        return at_us


@dataclass(frozen=True, slots=True)
class DrawnMessage:
    """A message between two nodes.

    Attributes:
        name: its type, in Kafka's terms.
        type: its class.
        arrived_us: when its receiver handled it; if lost, when it would have arrived.
        sent_in: number of the call in which it was sent; -1 for none.
        call: number of the call that delivers it.
        about: its fields that matter to stories, as text.
    """

    name: str
    source: int
    target: int
    sent_us: int
    arrived_us: int
    lost: bool
    sent_in: int
    call: int
    type: str
    about: str


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run with everything that was observed of it.

    Attributes:
        partition: the partition that is shown.
        messages: in the order of their arrival; clients are those of the partition that is shown, numbered as the first
            partition's.
        concerned: ids of the records that violations are about.
        first_of: kind of violation -> ids of the records that its first violation is about.
        isr: the ISR with which the topic is created.
        control: name of the control plane.
        causes: call number -> numbers of its direct predecessors: the call that scheduled it, and the latest calls of
            the nodes that it concerns. A call cannot depend on calls that are not reachable through predecessors.
    """

    result: RunResult
    partition: str
    observations: list[Observation]
    messages: list[DrawnMessage]
    concerned: frozenset[int]
    first_of: Mapping[str, frozenset[int]]
    isr: tuple[int, ...]
    control: str
    causes: Mapping[int, tuple[int, ...]]

    def about(self, kind: str) -> frozenset[int]:
        """Ids of the records that the first violation of a kind is about; if it names none, those of all."""
        return self.first_of.get(kind) or self.concerned


def observe(
    scenario: Scenario,
    mode: Mode,
    seed: int,
    rules: Mapping[str, str],
    *,
    trace: bool = False,
    sample: Watch | None = None,
) -> ObservedRun:
    """Run a scenario and observe it; `rules` replace values of the mode's, `trace`: the result includes a trace.

    `sample` is called with the cluster and each partition that may be shown before its first step, and returns what is
    called after each of its steps.
    """
    watcher = Watcher()
    clusters: list[Cluster] = []
    observed: dict[str, _ObservedPartition] = {}

    def watch(cluster: Cluster, name: str) -> Callable[[Shown], None]:
        cluster.kernel.watcher = watcher
        clusters.append(cluster)
        observed[name] = _ObservedPartition(cluster, name, watcher, None if sample is None else sample(cluster, name))
        return observed[name].see

    result = run(scenario, mode, seed, rules, trace=trace, watch=watch)
    cluster = clusters[0]
    shown = result.shown or cluster.name
    observations, isr = observed[shown].observations, observed[shown].isr
    found = cluster.recorder.history.findings.violations
    violations = [violation for violation in found if (violation.partition or cluster.name) == shown]
    concerned = frozenset(record for violation in violations for record in violation.ids)
    first_of: dict[str, frozenset[int]] = {}
    for violation in violations:
        first_of.setdefault(violation.kind, frozenset(violation.ids))
    control = ZOOKEEPER if mode.rules.control_plane == "zookeeper" else "controller"
    made_in = _made_in(watcher)
    partition = next(one for one in cluster.partitions if one.name == shown)
    first = partition.producer_node
    clients = {*range(first, first + CLIENTS_EACH), *partition.producer_nodes}
    messages, causes = list(_messages(watcher, made_in, clients)), _causes(watcher, made_in, observations)
    return ObservedRun(result, shown, observations, messages, concerned, first_of, isr, control, causes)


class _ObservedPartition:
    """What is observed of a partition.

    Attributes:
        isr: the ISR with which it is created.
    """

    def __init__(self, cluster: Cluster, name: str, watcher: Watcher, sampler: Callable[[Shown], None] | None) -> None:
        self._cluster = cluster
        self._name = name
        self._watcher = watcher
        self._sampler = sampler
        self.observations: list[Observation] = []
        self.isr: tuple[int, ...] = ()
        self._note_isr()

    def _note_isr(self) -> None:
        if not self.isr and self._cluster.control.exists(self._name):
            self.isr = self._cluster.control.state_of(self._name).replicas

    def see(self, step: Shown) -> None:
        """Observe a step."""
        self._note_isr()
        current = self._watcher.current
        log = _log(self._cluster, self._name, step.get("broker", 0))
        self.observations.append(Observation(step, -1 if current is None else current.number, log))
        if self._sampler is not None:
            self._sampler(step)


def _log(cluster: Cluster, name: str, broker: int) -> LogView | None:
    if broker not in cluster.settings:
        return None
    storage, partition = cluster.files(broker, name), cluster.replica(broker, name)
    batches = storage.log.batches
    synced = storage.synced
    return LogView(
        tuple([(batch.base_offset, batch.last_offset, batch.leader_epoch, batch.first_id) for batch in batches]),
        partition.hw if partition is not None else storage.hw_file.content or 0,
        batches[synced - 1].last_offset + 1 if 0 < synced <= len(batches) else storage.log.log_start,
    )


def _made_in(watcher: Watcher) -> dict[int, ObservedEvent]:
    """Entry number -> the call that scheduled it: the innermost call whose range of numbers contains it."""
    found: dict[int, ObservedEvent] = {}
    for call in watcher.calls:
        found.update(dict.fromkeys(range(call.first, call.end), call))
    return found


def _causes(
    watcher: Watcher, made_in: Mapping[int, ObservedEvent], observations: Iterable[Observation]
) -> dict[int, tuple[int, ...]]:
    """See `ObservedRun`. A call outside of any node's gate (a fault, a start) concerns nodes that its steps name."""
    named: dict[int, set[int]] = {}
    for observation in observations:
        nodes = (observation.step.get(key) for key in ("broker", "source", "target"))
        named.setdefault(observation.call, set()).update(node for node in nodes if node is not None)
    last: dict[int, int] = {}
    found: dict[int, tuple[int, ...]] = {}
    for call in watcher.calls:
        number, asked = call.number, made_in.get(call.number)
        concerned = [call.gate.owner] if call.gate.owner >= 0 else sorted(named.get(number, ()))
        before = [last[node] for node in concerned if node in last]
        found[number] = tuple(before if asked is None else [asked.number, *before])
        last.update(dict.fromkeys(concerned, number))
    return found


def _messages(
    watcher: Watcher, sent_in: Mapping[int, ObservedEvent], clients: Container[int]
) -> Iterator[DrawnMessage]:
    """The calls that were delivered over a connection, but for those of other partitions' clients."""
    dropped = {call.number for call in watcher.dropped}
    for call in sorted([*watcher.calls, *watcher.dropped], key=_noticed):
        ends = call.gate.source, call.gate.owner
        if isinstance(call.event, message.Message) and all(end < PRODUCER or end in clients for end in ends):
            sender = sent_in.get(call.number)
            yield DrawnMessage(
                name_of(call.event),
                like_first(call.gate.source),
                like_first(call.gate.owner),
                call.at_us if sender is None else sender.made_us,
                max(call.at_us, call.made_us),
                call.number in dropped,
                -1 if sender is None else sender.number,
                call.number,
                type(call.event).__name__,
                pairs(about(call.event)),
            )


def _noticed(call: ObservedEvent) -> tuple[int, int]:
    return max(call.at_us, call.made_us), call.number
