"""The one place where steps of the protocol are noted: for the digest, the checkers, and whoever observes.

Every method stands for one kind of step. It packs the step into the buffer that is hashed at the end of the run, tells
ledger and checkers, and, only if somebody observes, makes the dict that a trace shows (`sim.history.trace.STEPS`).
Observers see steps in order and must not change anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from struct import Struct
from typing import Final

from sim.checkers import ack_under_min_isr, hw_regression
from sim.checkers.completeness import Completeness
from sim.checkers.consistent_reads import ConsistentReads
from sim.checkers.divergence import Divergence
from sim.checkers.epoch_leaders import EpochLeaders
from sim.checkers.global_loss import GlobalLoss
from sim.checkers.log_matching import LogMatching
from sim.checkers.metadata_matching import MetadataMatching
from sim.checkers.quorum import Quorum
from sim.checkers.recovery_quorum import RecoveryQuorum
from sim.history.availability import Availability
from sim.history.coverage import Coverage
from sim.history.last_standing import LastStanding
from sim.history.ledger import Ack, End, Exposed, Ledger, Shown
from sim.history.metrics import Metrics
from sim.history.trace import STEPS, Step
from sim.kernel.scheduler import BudgetError, Kernel
from sim.protocol import probes
from sim.protocol.batch import Batch
from sim.protocol.kraft.metadata import PartitionRegistration, Record
from sim.protocol.messages import NO_EPOCH, LeaderAndIsr, ProduceReply, ProduceRequest
from sim.protocol.replica.partition import Partition
from sim.protocol.replica.replica import Replica

CLIENTS: Final = 1_000
"""Clients have node ids above this."""
_PACK: Final = Struct("<qBhiqq").pack
_CODE: Final = {step: code for code, step in enumerate(STEPS)}
_APPEND: Final = _CODE["append"]
_TRUNCATE: Final = _CODE["truncate"]
_REPLICATED: Final = _CODE["replicated"]
_HW: Final = _CODE["hw"]
_ELECTED: Final = _CODE["elected"]
_ISR: Final = _CODE["isr"]
_LEAD: Final = _CODE["lead"]
_FOLLOW: Final = _CODE["follow"]
_SETTLED: Final = _CODE["settled"]
_ACK: Final = _CODE["ack"]
_ACKNOWLEDGES: Final = _CODE["acknowledges"]
_PRODUCER_ID: Final = _CODE["producer-id"]
_READ: Final = _CODE["read"]
_END_OFFSET: Final = _CODE["end-offset"]
_RECOVERED: Final = _CODE["recovered"]
_CONTROLLER: Final = _CODE["controller"]
_EPOCH_RAISED: Final = _CODE["epoch-raised"]
_ELR: Final = _CODE["elr"]
_STANDS_STILL: Final = {"pause": 1, "disk-stalled": 1, "resume": -1, "disk-works": -1}
_LOSSES: Final = {
    "power-loss": probes.SUFFIX_LOST,
    "corrupt-tail": probes.CRC_DROPS,
    "disk-replaced": probes.DISK_LOST,
}


class Journal:
    """Notes the steps of one run.

    Args:
        kernel: for the time.
        record_budget: records that may be appended to logs, shown to consumers, and replayed from a metadata log.

    Attributes:
        ledger: the facts for verdicts.
        availability: what clients had to wait for.
        metrics: Kafka's, of the partition.
        coverage: what was reached.
        armed: who waits for which of `sim.history.trace.MOMENTS`; empty while nobody does.
        divergence: the incremental checker of that name.
        observers: called with each step as a dict.
        elections: leaders chosen by the control plane.
        last_standing: what leaders lacked who had been the last members of the ISR.
        rounds: completed truncations that took one, two, and more answers about epochs.
        truncations: truncations that removed records.
    """

    __slots__ = (
        "_buffer",
        "_completeness",
        "_consistent_reads",
        "_epoch_leaders",
        "_global_loss",
        "_kernel",
        "_log_matching",
        "_metadata_matching",
        "_nothing_removed",
        "_quorum",
        "_record_budget",
        "_records_left",
        "_recovery_quorum",
        "armed",
        "availability",
        "coverage",
        "divergence",
        "elections",
        "last_standing",
        "ledger",
        "metrics",
        "observers",
        "rounds",
        "truncations",
    )

    def __init__(self, kernel: Kernel, record_budget: int = 1_000_000) -> None:
        self._kernel = kernel
        self._record_budget = self._records_left = record_budget
        self._buffer = bytearray()
        self.ledger = Ledger()
        self.availability = Availability()
        self.metrics = Metrics()
        self.coverage = Coverage(kernel)
        self.divergence = Divergence(self.ledger)
        self._completeness = Completeness(self.ledger)
        self._consistent_reads = ConsistentReads(self.ledger)
        self._epoch_leaders = EpochLeaders(self.ledger)
        self._global_loss = GlobalLoss(self.ledger)
        self._log_matching = LogMatching(self.ledger)
        self._metadata_matching = MetadataMatching(self.ledger)
        self._quorum = Quorum(self.ledger)
        self.last_standing = LastStanding(self.ledger)
        self._recovery_quorum = RecoveryQuorum(self.ledger)
        self._nothing_removed: dict[int, tuple[int, int]] = {}
        self.observers: list[Callable[[Step], None]] = []
        self.armed: dict[str, list[Callable[[int], None]]] = {}
        self.elections = 0
        self.rounds = [0, 0, 0]
        self.truncations = 0

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        self.observers.clear()
        self.armed.clear()
        self.divergence.dispose()
        self._quorum.dispose()
        self.last_standing.dispose()

    def digest(self) -> str:
        """Hash of all steps so far (32 hex digits)."""
        return blake2b(self._buffer, digest_size=16).hexdigest()

    def _tell(self, step: str, **fields: object) -> None:
        entry: Step = {"t": self._kernel.now_us, "step": step, **fields}
        for observer in self.observers:
            observer(entry)

    # Moments.

    def arm(self, moment: str, waits: Callable[[int], None]) -> None:
        """Let somebody know of a kind of moment: the broker where it happened, 0 where that is no broker's.

        Called from within the protocol's own step, so it may only put something on the kernel's queue.
        """
        self.armed.setdefault(moment, []).append(waits)

    def disarm(self, moment: str, waits: Callable[[int], None]) -> None:
        """Take that back; nothing if it was done."""
        waiting = self.armed.get(moment, [])
        if waits in waiting:
            waiting.remove(waits)
            if not waiting:
                del self.armed[moment]

    def _fire(self, moment: str, broker: int) -> None:
        for waits in tuple(self.armed.get(moment, ())):
            waits(broker)

    def _give_up(self) -> None:
        raise BudgetError("sim.record.budget", self._record_budget, "records", f"{self._kernel.now_us / 1e6:.6f} s")

    # Logs.

    def append(self, broker: int, replica: Replica, batch: Batch) -> None:
        """A batch entered a log.

        Raises:
            BudgetError: there are more records than a run may have.
        """
        now_us = self._kernel.now_us
        self._records_left -= batch.last_offset - batch.base_offset + 1
        if self._records_left < 0:
            self._give_up()
        self._buffer += _PACK(now_us, _APPEND, broker, batch.leader_epoch, batch.base_offset, batch.first_id)
        if self.ledger.missing:
            self.ledger.appended(broker, batch, now_us)
        if self.ledger.follows_leos:
            self.ledger.leo(broker, batch.last_offset + 1, now_us)
        self._log_matching.appended(broker, replica.log, batch, now_us)
        if self.armed:
            self._fire("append", broker)
        if self.observers:
            sequence = {
                "producer_id": batch.producer_id,
                "producer_epoch": batch.producer_epoch,
                "sequence": batch.base_sequence,
            }
            self._tell(
                "append",
                broker=broker,
                offset=batch.base_offset,
                last=batch.last_offset,
                leader_epoch=batch.leader_epoch,
                record=batch.first_id,
                leo=replica.log.leo,
                **(sequence if batch.producer_id >= 0 else {}),
            )

    def truncate(self, broker: int, partition: Partition, removed: list[Batch]) -> None:
        """A log was cut at its LEO; that nothing is removed there again and again is noted once."""
        leo = partition.log.leo
        if not removed:
            if self._nothing_removed.get(broker) == (leo, partition.leader_epoch):
                return
            self._nothing_removed[broker] = (leo, partition.leader_epoch)
        self._buffer += _PACK(self._kernel.now_us, _TRUNCATE, broker, partition.leader_epoch, leo, len(removed))
        if self.ledger.follows_leos:
            self.ledger.leo(broker, leo, self._kernel.now_us)
            self.ledger.gone.update((batch.first_id, self._kernel.now_us) for batch in removed)
        if removed:
            self.coverage.reached(probes.TRUNCATION_REMOVES)
            if removed[0].base_offset < leo:
                self.coverage.reached(probes.TRUNCATION_SPLITS)
            self.truncations += 1
            self._completeness.truncated(broker, removed, self._kernel.now_us)
            self._consistent_reads.removed(broker, removed)
            self._global_loss.removed(removed, self._kernel.now_us)
        if leo < partition.hw:
            self.coverage.reached(probes.TRUNCATION_BELOW_HW)
        self.divergence.truncated(broker, leo)
        if self.armed:
            self._fire("truncate", broker)
        if self.observers:
            self._tell("truncate", broker=broker, offset=leo, leader_epoch=partition.leader_epoch, removed=len(removed))

    def log_start(self, broker: int, offset: int) -> None:
        """A log start moved."""
        self.coverage.reached(probes.LOG_START_MOVES)
        self._note("log-start", broker, offset=offset)

    # Replication.

    def replicated(self, broker: int, partition: Partition, follower: int, leo: int) -> None:
        """A leader learnt a follower's LEO."""
        self._buffer += _PACK(self._kernel.now_us, _REPLICATED, broker, partition.leader_epoch, leo, follower)
        if self.armed:
            self._fire("replicated", broker)
        if self.observers:
            self._tell("replicated", broker=broker, follower=follower, offset=leo, leader_epoch=partition.leader_epoch)

    def hw(self, broker: int, partition: Partition, previous: int) -> None:
        """A high watermark moved."""
        now_us = self._kernel.now_us
        hw = partition.hw
        self._buffer += _PACK(now_us, _HW, broker, partition.leader_epoch, hw, previous)
        if partition.is_leader and hw > previous:
            batches = partition.log.read_below(previous, hw)
            self.ledger.committed_with(partition.min_insync_replicas, partition.isr, batches)
            self.ledger.commit(batches, now_us, broker)
            self._completeness.committed(broker, partition.leader_epoch, batches, now_us)
            self._quorum.committed(partition, now_us)
        elif hw < previous:
            self.coverage.reached(probes.HW_GOES_BACK)
        self.divergence.compare(broker, now_us)
        if self.armed:
            self._fire("commit" if partition.is_leader else "hw", broker)
        if self.observers:
            self._tell("hw", broker=broker, offset=hw, leader_epoch=partition.leader_epoch, leader=partition.is_leader)

    def lead(self, broker: int, partition: Partition, decision: LeaderAndIsr) -> None:
        """A broker is about to lead; noted before its HW may move."""
        now_us = self._kernel.now_us
        epoch = decision.leader_epoch
        self._buffer += _PACK(now_us, _LEAD, broker, epoch, partition.log.leo, partition.hw)
        self.coverage.reached(probes.LEADER_LEADS_ON if partition.is_leader else probes.LEADER_BEGINS)
        if partition.hw < partition.log.leo:
            self.coverage.reached(probes.LEADER_BEHIND)
        self.divergence.settled(broker, epoch, now_us)
        self._epoch_leaders.lead(broker, epoch, now_us)
        self._completeness.lead(broker, epoch, now_us)
        self._consistent_reads.lead(broker, epoch, partition.log, now_us)
        self._quorum.lead(partition, decision, now_us)
        self.availability.leads(broker, epoch, now_us)
        if self.armed:
            self._fire("lead", broker)
        if self.observers:
            self._tell("lead", broker=broker, leader_epoch=epoch, offset=partition.log.leo, hw=partition.hw)

    def follow(self, broker: int, partition: Partition, *, restarts: bool) -> None:
        """A broker follows; unless it fetches on as before, it has yet to truncate."""
        epoch = partition.leader_epoch
        self._buffer += _PACK(self._kernel.now_us, _FOLLOW, broker, epoch, partition.log.leo, partition.leader)
        self.coverage.reached(probes.FOLLOWER_BEGINS if restarts else probes.FOLLOWER_GOES_ON)
        if restarts:
            self.divergence.unsettled(broker)
        self._completeness.told(broker, self._kernel.now_us)
        self.availability.leads_no_more(broker, self._kernel.now_us)
        if self.armed:
            self._fire("follow", broker)
        if self.observers:
            self._tell("follow", broker=broker, leader=partition.leader, leader_epoch=epoch, offset=partition.log.leo)

    def settled(self, broker: int, epoch: int, rounds: int) -> None:
        """A follower completed its truncation, after so many answers about epochs."""
        now_us = self._kernel.now_us
        self._buffer += _PACK(now_us, _SETTLED, broker, epoch, 0, 0)
        if rounds:
            self.rounds[min(rounds, 3) - 1] += 1
            self.coverage.reached(probes.ROUNDS[min(rounds, 3) - 1])
        self.divergence.settled(broker, epoch, now_us)
        if self.armed:
            self._fire("settled", broker)
        if self.observers:
            self._tell("settled", broker=broker, leader_epoch=epoch, rounds=rounds)

    # Control plane.

    def elected(self, leader: int, epoch: int, *, by_isr: bool = True) -> None:
        """A leader was chosen, 0 for none; `by_isr`: an election outside the ISR is an unclean one."""
        self._buffer += _PACK(self._kernel.now_us, _ELECTED, leader, epoch, 0, 0)
        self.elections += leader > 0
        self.ledger.elected(leader, self._kernel.now_us)
        if by_isr and leader > 0 and leader not in self.ledger.isr:
            self.ledger.unclean_election = True
        self._completeness.elected(epoch)
        self._consistent_reads.elected(epoch)
        self._quorum.elected(epoch)
        self.last_standing.elected(leader)
        self.availability.elected(leader, epoch, self._kernel.now_us)
        if self.armed:
            self._fire("elected", leader)
        if self.observers:
            self._tell("elected", broker=leader, leader_epoch=epoch)

    def isr(self, isr: tuple[int, ...], epoch: int, elr: tuple[int, ...] = ()) -> None:
        """An ISR was persisted, together with eligible leader replicas, which `elr` notes if they are others."""
        now_us = self._kernel.now_us
        if self.ledger.isr_history:
            self._isr_changes(len(isr) - len(self.ledger.isr), len(isr))
        self._buffer += _PACK(now_us, _ISR, 0, epoch, sum(1 << broker for broker in isr), 0)
        if self.armed:
            moved = _moved(self.ledger.isr, isr)
            self._fire("isr", moved)
            if len(isr) > len(self.ledger.isr):
                self._fire("joined", moved)
        self.ledger.isr_history.append((now_us, isr))
        self._candidates(isr, elr, epoch, now_us)
        if self.observers:
            self._tell("isr", isr=list(isr), leader_epoch=epoch)

    def _candidates(self, isr: tuple[int, ...], elr: tuple[int, ...], epoch: int, now_us: int) -> None:
        """Who may be elected was persisted."""
        self.ledger.elr = elr
        self._completeness.isr(isr, elr, now_us)
        self._quorum.persisted(isr, elr, epoch, now_us)

    def _isr_changes(self, by: int, size: int) -> None:
        if by:
            self.coverage.reached(probes.ISR_EXPANDS if by > 0 else probes.ISR_SHRINKS)
        if size == 1:
            self.coverage.reached(probes.ISR_SINGLE)

    def decided(self, state: LeaderAndIsr, min_isr: int) -> None:
        """The control plane's decision is complete, or what it means for min ISR has changed; that is no step."""
        self.metrics.decided(state, min_isr, self._kernel.now_us)

    def isr_sent(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """A leader asks for another ISR; that is no step before it is persisted."""
        if self.armed:
            self._fire("isr-sent", _moved(partition.isr, isr))

    def controller(self, broker: int, epoch: int) -> None:
        """A broker became controller."""
        if epoch > 1:
            self.coverage.reached(probes.CONTROLLER_FAILOVER)
        if self.armed:
            self._fire("controller", broker)
        self._buffer += _PACK(self._kernel.now_us, _CONTROLLER, broker, epoch, 0, 0)
        if self.observers:
            self._tell("controller", broker=broker, controller_epoch=epoch)

    def epoch_raised(self, leader: int, epoch: int) -> None:
        """The leader epoch was raised, and nothing else."""
        self.coverage.reached(probes.EPOCH_RAISED)
        self.last_standing.elected(leader)
        self._buffer += _PACK(self._kernel.now_us, _EPOCH_RAISED, leader, epoch, 0, 0)
        if self.observers:
            self._tell("epoch-raised", broker=leader, leader_epoch=epoch)

    def registered(self, broker: int, incarnation: int, *, opens: bool = True) -> None:
        """A broker registered; `opens`: and with that has an open session."""
        if self.ledger.registered(broker, incarnation, self._kernel.now_us, opens=opens):
            self._completeness.session(broker)
        if self.armed:
            self._fire("registered", broker)
        self._note("registered", broker)

    def unfenced(self, broker: int, incarnation: int) -> None:
        """A broker that had registered has an open session now."""
        if self.ledger.unfenced(broker, incarnation, self._kernel.now_us):
            self._completeness.unfenced(broker, self._kernel.now_us)
        self._note("unfenced", broker)

    def elr(self, elr: tuple[int, ...], last_known_elr: tuple[int, ...], epoch: int) -> None:
        """Eligible leader replicas were persisted."""
        if elr != self.ledger.elr:
            self._candidates(self.ledger.isr, elr, epoch, self._kernel.now_us)
        sets = [sum(1 << broker for broker in brokers) for brokers in (elr, last_known_elr)]
        self._buffer += _PACK(self._kernel.now_us, _ELR, 0, epoch, *sets)
        if self.observers:
            self._tell("elr", elr=list(elr), last_known_elr=list(last_known_elr), leader_epoch=epoch)

    def committed_metadata(self, records: Sequence[Record]) -> None:
        """A quorum committed records; they are no step, what they lead to is."""
        self._metadata_matching.committed(records)

    def replayed_metadata(self, broker: int, offset: int, records: Sequence[Record]) -> None:
        """A broker replayed records from an offset on.

        Raises:
            BudgetError: see `append`.
        """
        self._records_left -= len(records)
        if self._records_left < 0:
            self._give_up()
        self._metadata_matching.replayed(broker, offset, records, self._kernel.now_us)

    def partition_changed(self, state: PartitionRegistration, min_isr: int, unclean: int, *, remembers: bool) -> None:
        """A quorum committed a partition's registration; see `RecoveryQuorum.changed`."""
        self._recovery_quorum.changed(state, min_isr, unclean, self._kernel.now_us, remembers=remembers)

    def session_end(self, broker: int, *, fenced: bool = False) -> None:
        """A session is over; `fenced`: its broker stays registered."""
        self.ledger.session_ended(broker, self._kernel.now_us)
        if not fenced:
            self._completeness.session_end(broker)
        if self.armed:
            self._fire("session-end", broker)
        self._note("session-end", broker)

    # Clients.

    def acknowledges(self, broker: int, reply: ProduceReply, min_insync_replicas: int) -> None:
        """A leader answers success to acks=all."""
        request = reply.request
        first = request.first_id
        now_us = self._kernel.now_us
        self._buffer += _PACK(now_us, _ACKNOWLEDGES, broker, min_insync_replicas, reply.base_offset, first)
        isr = self.ledger.isr
        if len(isr) < min_insync_replicas:
            reply.short_isr = isr
        if self.armed:
            self._fire("acknowledges", broker)
        if self.observers:
            self._tell("acknowledges", broker=broker, record=first, min_isr=min_insync_replicas)

    def ack(self, reply: ProduceReply) -> None:
        """A producer received success."""
        now_us = self._kernel.now_us
        request = reply.request
        first, count, acks = request.first_id, request.count, request.acks
        self._buffer += _PACK(now_us, _ACK, acks, 0, reply.base_offset, first)
        self.ledger.acks.append(Ack(first, count, reply.base_offset, acks, now_us))
        if reply.short_isr is not None:
            ack_under_min_isr.check_ack(self.ledger, range(first, first + count), reply.short_isr, now_us)
        if self.armed:
            self._fire("ack", 0)
        if self.observers:
            sent = reply.answered_us
            self._tell("ack", record=first, count=count, offset=reply.base_offset, acks=acks, answered_at=sent)

    def refused(self, request: ProduceRequest, error: str) -> None:
        """A producer received an error; that is no step."""
        self.availability.told(request.first_id, error)

    def producer_id(self, node: int, producer_id: int, producer_epoch: int) -> None:
        """An idempotent producer has another id or epoch."""
        self._buffer += _PACK(self._kernel.now_us, _PRODUCER_ID, 0, producer_epoch, producer_id, node)
        if self.observers:
            self._tell("producer-id", producer_id=producer_id, producer_epoch=producer_epoch)

    def read(self, consumer: int, batches: list[Batch], position: int, leader_epoch: int) -> None:
        """A consumer was shown batches, the first from its position on.

        Raises:
            BudgetError: see `append`.
        """
        now_us = self._kernel.now_us
        end = batches[-1].last_offset + 1
        self._records_left -= end - position
        if self._records_left < 0:
            self._give_up()
        self._buffer += _PACK(now_us, _READ, consumer - CLIENTS, leader_epoch, position, end)
        ledger = self.ledger
        ledger.passed_over(consumer, position, end)
        before = position
        for batch in batches:
            ledger.shown.append(Shown(batch, max(position, batch.base_offset), now_us, consumer))
            if self.observers:
                start = max(position, batch.base_offset)
                self._tell(
                    "read",
                    consumer=consumer,
                    offset=start,
                    last=batch.last_offset,
                    record=batch.first_id + start - batch.base_offset,
                    leader_epoch=leader_epoch,
                    position=before,
                    batch_epoch=batch.leader_epoch,
                )
                before = batch.last_offset + 1
        ledger.expose(leader_epoch, end)
        if leader_epoch != self._consistent_reads.epoch:
            self._consistent_reads.read(len(batches), now_us)
        if self.armed:
            self._fire("read", 0)

    def end_offset(self, known: Exposed | None, asked_us: int, end_offset: int, leader_epoch: int) -> None:
        """A consumer received the latest offset; `known` is what was exposed when it asked."""
        now_us = self._kernel.now_us
        self._buffer += _PACK(now_us, _END_OFFSET, 0, leader_epoch, end_offset, asked_us)
        hw_regression.check_answer(self.ledger, known, end_offset, leader_epoch, now_us)
        self.ledger.expose(leader_epoch, end_offset)
        if self.observers:
            self._tell("end-offset", offset=end_offset, leader_epoch=leader_epoch, asked_at=asked_us)

    def out_of_range(self, consumer: int, position: int) -> None:
        """A consumer's application was told that its position is out of range."""
        self.coverage.reached(probes.CONSUMER_OUT_OF_RANGE)
        self.ledger.told(consumer)
        self._client("out-of-range", consumer, position)

    def reset(self, consumer: int, offset: int) -> None:
        """A consumer went where ``auto.offset.reset`` says."""
        self.coverage.reached(probes.CONSUMER_RESETS)
        self.ledger.told(consumer)
        self._client("reset", consumer, offset)

    def seek(self, consumer: int, offset: int, epoch: int) -> None:
        """An application chose where its consumer reads on."""
        self.ledger.told(consumer)
        self._client("seek", consumer, offset, leader_epoch=epoch)

    def truncation_detected(self, consumer: int, position: int, divergent_offset: int, divergent_epoch: int) -> None:
        """A consumer's application was told that the log was truncated (LogTruncationException)."""
        self.coverage.reached(probes.CONSUMER_TRUNCATION)
        self.ledger.told(consumer)
        self._client(
            "truncation-detected", consumer, position, leader_epoch=divergent_epoch, divergent_offset=divergent_offset
        )

    def rewind(self, consumer: int, offset: int, position: int) -> None:
        """A consumer went back silently, to where the log was truncated."""
        self.coverage.reached(probes.CONSUMER_REWINDS)
        self.ledger.rewound(consumer, offset)
        self._client("rewind", consumer, offset, position=position)

    def commit(self, consumer: int, offset: int, epoch: int) -> None:
        """A consumer committed its position."""
        self._client("commit", consumer, offset, leader_epoch=epoch)

    def restart_consumer(self, consumer: int, offset: int) -> None:
        """A consumer's process begins anew at its committed offset (-1: none)."""
        self.ledger.rewound(consumer, offset)
        self._client("restart-consumer", consumer, offset)

    def offset_for_time(self, consumer: int, record: int, offset: int, leader_epoch: int) -> None:
        """A consumer received the offset of the first record from one on."""
        self._client("offset-for-time", consumer, offset, leader_epoch=leader_epoch, record=record)

    def _client(self, step: str, consumer: int, offset: int, leader_epoch: int = NO_EPOCH, **fields: int) -> None:
        other = sum(fields.values())  # At most one.
        self._buffer += _PACK(self._kernel.now_us, _CODE[step], consumer - CLIENTS, leader_epoch, offset, other)
        if self.observers:
            self._tell(step, consumer=consumer, offset=offset, leader_epoch=leader_epoch, **fields)

    # Processes and faults.

    def ended(self, broker: int, kind: str, lost: list[Batch], *, unclean: bool = True) -> None:
        """An incarnation ended; these batches went with it. `unclean`: see `sim.history.ledger.End`."""
        now_us = self._kernel.now_us
        in_isr = broker in self.ledger.isr
        self.ledger.ended(End(broker, now_us, kind, {batch.first_id: batch for batch in lost}, in_isr, unclean))
        self.divergence.ended(broker)
        self._completeness.ended(broker)
        self._consistent_reads.ended(broker)
        self.availability.ended(broker, now_us)
        self._lost(broker, kind, lost)

    def lost_later(self, broker: int, kind: str, lost: list[Batch], *, marker: bool = True) -> None:
        """A machine lost power, or data in some other way, while its process was down; see `Ledger.lost_later`."""
        self.ledger.lost_later(broker, {batch.first_id: batch for batch in lost}, marker=marker)
        if self.ledger.follows_leos:
            self.ledger.gone.update((batch.first_id, self._kernel.now_us) for batch in lost)
        self._lost(broker, kind, lost)

    def _lost(self, broker: int, kind: str, lost: list[Batch]) -> None:
        if lost and kind in _LOSSES:
            self.coverage.reached(_LOSSES[kind])
        self._log_matching.lost(broker, lost)
        self._completeness.removed(broker, lost)
        self._consistent_reads.removed(broker, lost)
        self._global_loss.lost(broker, lost, self._kernel.now_us)
        self._note(kind, broker, offset=len(lost))

    def paused(self, step: str, node: int) -> None:
        """A process was paused or resumed, or its disk stalled or works again."""
        self.availability.stands_still(node, self._kernel.now_us, _STANDS_STILL[step])
        self._note(step, node)

    def started(self, broker: int, incarnation: int) -> None:
        """A process starts."""
        self.ledger.started(broker, incarnation)
        self._note("start", broker)

    def recovered(self, broker: int, replica: Replica, lost: list[Batch]) -> None:
        """A process loaded its log; `lost` is what its last end cost."""
        self._buffer += _PACK(self._kernel.now_us, _RECOVERED, broker, 0, replica.log.leo, replica.hw)
        self._load(broker, replica)
        if self.observers:
            ids = [record for batch in lost for record in batch.ids()]
            self._tell(
                "recovered",
                broker=broker,
                offset=replica.log.leo,
                log_start=replica.log.log_start,
                hw=replica.hw,
                lost=ids,
            )

    def _load(self, broker: int, replica: Replica) -> None:
        """A broker has another log."""
        self._completeness.loaded(broker, replica)
        self._global_loss.loaded(broker, replica)
        self._log_matching.loaded(broker, replica)
        self.divergence.loaded(broker, replica)
        self.last_standing.loaded(broker, replica.log)
        if self.ledger.follows_leos:
            self.ledger.leo(broker, replica.log.leo, self._kernel.now_us)

    def deleted(self, broker: int, replica: Replica, removed: list[Batch]) -> None:
        """A broker deleted its replica, with these batches: it has an empty one now."""
        self.coverage.reached(probes.REPLICA_DELETED)
        self.divergence.ended(broker)
        self._completeness.removed(broker, removed)
        self._consistent_reads.removed(broker, removed)
        self._load(broker, replica)
        self._global_loss.removed(removed, self._kernel.now_us)
        if self.ledger.follows_leos:
            self.ledger.dropped_us = self._kernel.now_us
        self.availability.leads_no_more(broker, self._kernel.now_us)
        self._note("deleted", broker)

    def link(self, step: str, source: int, target: int, value: int = 0) -> None:
        """A directed link was cut or healed, or became worse by some amount."""
        self._buffer += _PACK(self._kernel.now_us, _CODE[step], source, 0, target, value)
        if self.observers:
            worse = {"value": value} if value else {}
            self._tell(step, source=source, target=target, **worse)

    def converged(self) -> None:
        """The cluster is whole again."""
        self._note("converged", 0)

    def _note(self, step: str, broker: int, offset: int = 0) -> None:
        self._buffer += _PACK(self._kernel.now_us, _CODE[step], broker, 0, offset, 0)
        if self.observers:
            self._tell(step, broker=broker, offset=offset)


def _moved(before: tuple[int, ...], after: tuple[int, ...]) -> int:
    """The broker that an ISR change is about: the first that joins, else the first that leaves, else 0."""
    return next((broker for broker in after if broker not in before), 0) or next(
        (broker for broker in before if broker not in after), 0
    )
