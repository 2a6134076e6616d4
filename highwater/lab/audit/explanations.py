"""Which event of a controller explains each record of a partition: by one release's rules, or by none.

A batch may hold the records of several events. A partition's record is explained by each event after which the
release's controller would leave the partition in exactly this state. Other records are checked for what the controller
must have known: a broker's epoch, its fencing, a partition's first state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

from highwater.lab.audit import controller
from highwater.lab.audit.controller import listed, outcome
from highwater.lab.audit.image import ClusterImage, RegisteredPartition, changed
from highwater.lab.audit.records import NO_LEADER, MetadataBatch
from sim.protocol.kraft.metadata import ELR_FEATURE, MIN_ISR
from sim.protocol.kraft.partition_change_builder import DESIGNATED, PREFERRED, UNCLEAN
from sim.protocol.kraft.replication_control_manager import UNCLEAN_ELECTION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from highwater.lab.audit.controller import ControllerEvent
    from highwater.lab.audit.image import Key
    from highwater.lab.audit.records import MetadataRecord
    from sim.protocol.rules import Rules

MOST_PER_BATCH: Final = 10_000
"""Records of an event that is not atomic: the controller cuts up what is longer, and the record of the broker may come
in another batch than a partition's. Kafka: QuorumController#DEFAULT_MAX_RECORDS_PER_BATCH."""
_MOST_REMOVED: Final = 4
"""Of so many replicas that leave the assignment, each subset may have been in the proposed ISR."""
CREATION: Final = "PARTITION_RECORD"
CHANGE: Final = "PARTITION_CHANGE_RECORD"
CLEAR: Final = "CLEAR_ELR_RECORD"


@dataclass(frozen=True, slots=True)
class RecordExplanation:
    """Of one record.

    Attributes:
        offset: of the record.
        time_ms: of its batch.
        key: the partition; None for records of brokers.
        events: texts of the events that explain it; empty if none does.
        before: the partition's state before.
        after: its state after.
        problem: what is wrong with a record that no event explains.
        bugs: names of the rules without whose historical value no event would explain it.
    """

    offset: int
    time_ms: int
    key: Key | None
    events: tuple[str, ...]
    before: RegisteredPartition | None = None
    after: RegisteredPartition | None = None
    problem: str = ""
    bugs: tuple[str, ...] = ()


class Explainer:
    """Explains the records of a log in order, by one set of rules.

    Args:
        rules: the release's.
        repairs: rule -> the value that repairs a known bug of this release.
    """

    def __init__(self, rules: Rules, repairs: Mapping[str, str]) -> None:
        self._rules = rules
        self._repairs = repairs
        self._repeated: dict[Key, tuple[str, list[RegisteredPartition]]] = {}
        """Partition -> the event that has explained its last record, and the states that are still to come of it."""
        self._batch = MetadataBatch(0, 0, -1, -1, [])
        self._preceding = _Brokers()
        """Of the full batches right before."""
        self.begin(self._batch)

    def begin(self, batch: MetadataBatch, following: Sequence[MetadataBatch] = ()) -> None:
        """Begin with the records of a batch.

        Args:
            batch: the next one of the log.
            following: the batches after it, up to the first that is not full, if it is full itself.
        """
        self._repeated.clear()
        self._neighbours = _Brokers()
        if len(self._batch.records) >= MOST_PER_BATCH:
            self._preceding.add(self._batch.records)
            self._neighbours.include(self._preceding)
        else:
            self._preceding = _Brokers()
        for other in following:
            self._neighbours.add(other.records)
        self._batch = batch
        self._brokers = _Brokers()
        self._brokers.add(batch.records)

    def explain(self, image: ClusterImage, record: MetadataRecord) -> RecordExplanation | None:
        """Explain the batch's next record, which the image does not have yet.

        None for records that need no event, because anybody may set at any time what they set.
        """
        if not record.is_known:
            return None
        if record.type == CHANGE:
            return self._change(image, self._brokers, record, self._batch.time_ms)
        return _other(image, self._batch, record)

    def _change(
        self, image: ClusterImage, brokers: _Brokers, record: MetadataRecord, time_ms: int
    ) -> RecordExplanation | None:
        fields = record.fields
        key = fields["topicId"], fields["partitionId"]
        before = image.partitions.get(key)
        if before is None:
            problem = f"it changes partition {key[1]} of topic {key[0]}, which does not exist"
            return RecordExplanation(record.offset, time_ms, key, (), problem=problem)
        after = changed(before, fields, record.offset)
        events = self._events(image, brokers, key, before, after)
        if events:
            return RecordExplanation(record.offset, time_ms, key, events, before, after, bugs=self._bugs)
        problem = "no event leads to this state"
        return RecordExplanation(record.offset, time_ms, key, (), before, after, problem)

    def _events(
        self, image: ClusterImage, brokers: _Brokers, key: Key, before: RegisteredPartition, after: RegisteredPartition
    ) -> tuple[str, ...]:
        self._bugs: tuple[str, ...] = ()
        wanted = content(after)
        pending = self._repeated.pop(key, None)
        if pending is not None and content(pending[1][0]) == wanted:
            if pending[1][1:]:
                self._repeated[key] = pending[0], pending[1][1:]
            return (pending[0],)
        found: list[str] = []
        first: ControllerEvent | None = None
        for events in (
            candidates(image, brokers, key, before, after),
            _side_effects(image, before, after),
            _of_brokers(self._neighbours),
        ):
            for event in events:
                states = outcome(image, key, before, self._rules, event)
                if states and content(states[0]) == wanted and event.text not in found:
                    found.append(event.text)
                    if len(states) > 1 and key not in self._repeated:
                        self._repeated[key] = event.text, states[1:]
                    first = first or event
            if found:
                break
        if first is not None:
            self._bugs = self._shown_bugs(image, key, before, wanted, first)
        return tuple(found)

    def _shown_bugs(
        self, image: ClusterImage, key: Key, before: RegisteredPartition, wanted: object, event: ControllerEvent
    ) -> tuple[str, ...]:
        """Rules whose repaired value would lead to another state."""
        bugs = []
        for rule, value in self._repairs.items():
            states = outcome(image, key, before, self._rules.override({rule: value}), event)
            if not states or content(states[0]) != wanted:
                bugs.append(rule)
        return tuple(bugs)


class _Brokers:
    """What the records of a batch say about brokers, from which events are recognised."""

    def __init__(self) -> None:
        self.fenced: set[int] = set()
        self.unfenced: set[int] = set()
        self.stopping: set[int] = set()
        self.registered: set[int] = set()

    def include(self, other: _Brokers) -> None:
        self.fenced |= other.fenced
        self.unfenced |= other.unfenced
        self.stopping |= other.stopping
        self.registered |= other.registered

    def add(self, records: Sequence[MetadataRecord]) -> None:
        for record in records:
            fields = record.fields
            if not record.is_known:
                continue
            if record.type == "FENCE_BROKER_RECORD":
                self.fenced.add(fields["id"])
            elif record.type == "UNFENCE_BROKER_RECORD":
                self.unfenced.add(fields["id"])
            elif record.type == "REGISTER_BROKER_RECORD":
                self.registered.add(fields["brokerId"])
            elif record.type == "BROKER_REGISTRATION_CHANGE_RECORD":
                broker = fields["brokerId"]
                if fields["fenced"]:
                    (self.fenced if fields["fenced"] > 0 else self.unfenced).add(broker)
                if fields["inControlledShutdown"] > 0:
                    self.stopping.add(broker)


def candidates(
    image: ClusterImage, brokers: _Brokers, key: Key, before: RegisteredPartition, after: RegisteredPartition
) -> Iterator[ControllerEvent]:
    """Events that may have led from one state to another; the most frequent ones first."""
    if before.leader != NO_LEADER:
        for isr in _proposals(before, after):
            yield controller.alter_partition(before, isr)
    yield from _of_brokers(brokers)
    if (after.replicas, after.adding, after.removing) != (before.replicas, before.adding, before.removing):
        yield from _reassignments(before, after)
    elif before.directories != after.directories:
        for broker, old, new in zip(before.replicas, before.directories, after.directories, strict=False):
            if old != new:
                yield controller.assign_directory(broker)
    if after.leader not in (before.leader, NO_LEADER):
        yield from _elections(after)
    if before.elr and not after.elr:
        yield controller.set_min_isr(image.min_isr_setting(key))
    if after.recovering and not image.unclean_enabled(key):
        for event in _of_brokers(brokers):
            text = f"{event.text}, with {UNCLEAN_ELECTION}=true in server.properties"
            yield replace(event, text=text, unclean=True)


def _of_brokers(brokers: _Brokers) -> Iterator[ControllerEvent]:
    for broker in sorted(brokers.fenced):
        yield controller.fence(broker)
    for broker in sorted(brokers.stopping):
        yield controller.shut_down(broker)
    for broker in sorted(brokers.unfenced):
        yield controller.unfence(broker)
    for broker in sorted(brokers.registered):
        yield controller.register(broker, clean=False)
        yield controller.register(broker, clean=True)


def _reassignments(before: RegisteredPartition, after: RegisteredPartition) -> Iterator[ControllerEvent]:
    yield controller.reassign(after.target)
    if before.adding or before.removing:
        yield controller.cancel_reassignment()
        yield controller.reassign(after.replicas)


def _elections(after: RegisteredPartition) -> Iterator[ControllerEvent]:
    yield controller.elect(PREFERRED)
    yield controller.elect(UNCLEAN)
    if after.leader != NO_LEADER:
        yield controller.elect(DESIGNATED, after.leader)


def _side_effects(
    image: ClusterImage, before: RegisteredPartition, after: RegisteredPartition
) -> Iterator[ControllerEvent]:
    """Events that change something else than what was asked for, or without a record of their own.

    Kafka updates leader, ELR and last known ELR with any change of a partition: when an election elects nobody, a
    broker reports the log directory that is known, or a reassignment asks for the present replicas. The report of a
    replica that leaves can complete its reassignment. A broker that was unfenced during its controlled shutdown stays
    marked as shutting down, so that its next controlled shutdown has no record but the partitions'. These events are
    tried only if no other one explains a record.
    """
    if after.leader in (before.leader, NO_LEADER):
        yield from _elections(after)
    for broker in before.replicas:
        yield controller.assign_directory(broker)
    yield controller.reassign(after.target)
    for broker in before.isr:
        if (known := image.brokers.get(broker)) is not None and known.shutting_down:
            yield controller.shut_down(broker)


def _proposals(before: RegisteredPartition, after: RegisteredPartition) -> Iterator[tuple[int, ...]]:
    """ISRs that the leader may have proposed: of replicas that leave the assignment, any may have been among them."""
    yield after.isr
    gone = [broker for broker in before.replicas if broker not in after.replicas][:_MOST_REMOVED]
    for count in range(1, len(gone) + 1):
        for some in combinations(gone, count):
            yield (*after.isr, *some)


def content(state: RegisteredPartition) -> tuple[object, ...]:
    """What a record says, without directories; the order of ISR and ELR says nothing."""
    return (
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        state.replicas,
        state.recovering,
        *(frozenset(some) for some in (state.isr, state.elr, state.last_known_elr, state.adding, state.removing)),
    )


# Other records.


def _other(image: ClusterImage, batch: MetadataBatch, record: MetadataRecord) -> RecordExplanation | None:
    """An explanation if the record is impossible, or if it is a partition's first one."""
    check = _CHECKS.get(record.type)
    problem = "" if check is None else check(image, batch, record)
    if problem:
        return RecordExplanation(record.offset, batch.time_ms, None, (), problem=problem)
    if record.type != CREATION:
        return None
    key = record.fields["topicId"], record.fields["partitionId"]
    return RecordExplanation(record.offset, batch.time_ms, key, ("the partition is created",))


def _partition_problem(image: ClusterImage, _: MetadataBatch, record: MetadataRecord) -> str:
    fields = record.fields
    if (fields["topicId"], fields["partitionId"]) in image.partitions:
        return "it creates a partition that exists"
    if fields["leaderEpoch"] or fields["partitionEpoch"]:
        return f"a new partition begins with leader epoch {fields['leaderEpoch']} and epoch {fields['partitionEpoch']}"
    if not fields["isr"] or fields["leader"] != fields["isr"][0]:
        return f"leader {fields['leader']} of a new partition is not the first of its ISR {listed(fields['isr'])}"
    idle = [broker for broker in fields["isr"] if not image.is_active(broker)]
    if idle:
        return f"the ISR of a new partition has broker {idle[0]}, which is fenced or shutting down"
    active = [broker for broker in fields["replicas"] if image.is_active(broker)]
    if list(fields["isr"]) != active:
        return f"the ISR {listed(fields['isr'])} of a new partition is not its active replicas, {listed(active)}"
    further = ("removingReplicas", "addingReplicas", "eligibleLeaderReplicas", "lastKnownElr", "leaderRecoveryState")
    wrong = next((name for name in further if fields[name]), None)
    return f"a new partition has {wrong} {fields[wrong]}" if wrong is not None else ""


def _register_problem(image: ClusterImage, batch: MetadataBatch, record: MetadataRecord) -> str:
    """A new incarnation's epoch is the offset at which its event began, with changes of partitions or at once.

    Kafka: QuorumController#registerBroker.
    """
    broker, epoch = record.fields["brokerId"], record.fields["brokerEpoch"]
    known = image.brokers.get(broker)
    if known is not None and known.incarnation == record.fields["incarnationId"]:
        expected = known.broker_epoch
        return "" if epoch == expected else f"broker {broker} registers with epoch {epoch} instead of {expected}"
    since = [one for one in batch.records if epoch <= one.offset < record.offset]
    if batch.base_offset <= epoch <= record.offset and all(one.type == CHANGE for one in since):
        return ""
    return f"broker {broker} registers with epoch {epoch}; its registration is not the event that began there"


def _epoch_problem(image: ClusterImage, _: MetadataBatch, record: MetadataRecord) -> str:
    fields = record.fields
    broker: int = fields["id"] if "id" in fields else fields["brokerId"]
    epoch = fields["epoch"] if "epoch" in fields else fields["brokerEpoch"]
    known = image.brokers.get(broker)
    if known is None:
        return f"broker {broker} is not registered"
    if known.broker_epoch != epoch:
        return f"broker {broker} has broker epoch {known.broker_epoch}, the record says {epoch}"
    fences = fields.get("fenced", 0)
    if fences < 0 and not known.fenced:
        return f"broker {broker} is unfenced already"
    return ""


def _clear_problem(_: ClusterImage, batch: MetadataBatch, record: MetadataRecord) -> str:
    for other in batch.records:
        fields = other.fields
        if other.type == "CONFIG_RECORD" and fields["name"] == MIN_ISR:
            return ""
        if other.type == "FEATURE_LEVEL_RECORD" and fields["name"] == ELR_FEATURE:
            return ""
    return f"the ELRs of {record.fields['topicName'] or 'all topics'} are cleared, but {MIN_ISR} is not changed with it"


_CHECKS: Final = {
    CREATION: _partition_problem,
    "REGISTER_BROKER_RECORD": _register_problem,
    "UNREGISTER_BROKER_RECORD": _epoch_problem,
    "FENCE_BROKER_RECORD": _epoch_problem,
    "UNFENCE_BROKER_RECORD": _epoch_problem,
    "BROKER_REGISTRATION_CHANGE_RECORD": _epoch_problem,
    CLEAR: _clear_problem,
}
