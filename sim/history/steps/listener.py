"""Listeners for steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from sim.history.steps.base import METHODS, Step
from sim.native import mypyc_attr

if TYPE_CHECKING:
    from sim.history.steps.clients import (
        Ack,
        Acknowledges,
        BatchFailed,
        EndOffset,
        GroupRefused,
        HeldBack,
        OffsetsAnswer,
        Position,
        ProducerId,
        Read,
        Refused,
    )
    from sim.history.steps.control_plane import (
        Assigned,
        Controller,
        ControllerCrashed,
        CoordinatorStep,
        Decided,
        DirectoryAssigned,
        Elected,
        Elr,
        EpochRaised,
        Fact,
        Isr,
        IsrSent,
        Metadata,
        MetadataDelay,
        MinIsr,
        PartitionChanged,
        Recoveries,
        Registered,
        SessionEnd,
        TopicChange,
        TopicRefused,
    )
    from sim.history.steps.log import Append, LogStart, Retention, Truncate
    from sim.history.steps.processes import Deleted, End, Flushed, LinkChange, Pause, Recovered, Start
    from sim.history.steps.quorum import (
        ControllerProcess,
        MetadataLost,
        MetadataSnapshot,
        RaftCommit,
        RaftLeader,
        VotersChanged,
    )
    from sim.history.steps.replication import Follow, HighWatermark, Lead, Replicated, Settled


@mypyc_attr(allow_interpreted_subclasses=True)
class Listener:
    """Receives the steps for which its class overrides a method.

    Attributes:
        of_cluster: whether steps of the cluster as a whole matter to it, which the recorder of the first partition has:
            so it goes on when that partition is deleted.
    """

    of_cluster: ClassVar[bool] = False

    def on_step(self, step: Step) -> None:
        """Receives each step whose own method is not overridden."""

    def on_append(self, step: Append) -> None:
        self.on_step(step)

    def on_truncate(self, step: Truncate) -> None:
        self.on_step(step)

    def on_log_start(self, step: LogStart) -> None:
        self.on_step(step)

    def on_retention(self, step: Retention) -> None:
        self.on_step(step)

    def on_replicated(self, step: Replicated) -> None:
        self.on_step(step)

    def on_hw(self, step: HighWatermark) -> None:
        self.on_step(step)

    def on_lead(self, step: Lead) -> None:
        self.on_step(step)

    def on_follow(self, step: Follow) -> None:
        self.on_step(step)

    def on_settled(self, step: Settled) -> None:
        self.on_step(step)

    def on_controller_process(self, step: ControllerProcess) -> None:
        self.on_step(step)

    def on_raft_leader(self, step: RaftLeader) -> None:
        self.on_step(step)

    def on_voters(self, step: VotersChanged) -> None:
        self.on_step(step)

    def on_raft_commit(self, step: RaftCommit) -> None:
        self.on_step(step)

    def on_metadata_snapshot(self, step: MetadataSnapshot) -> None:
        self.on_step(step)

    def on_metadata_lost(self, step: MetadataLost) -> None:
        self.on_step(step)

    def on_elected(self, step: Elected) -> None:
        self.on_step(step)

    def on_epoch_raised(self, step: EpochRaised) -> None:
        self.on_step(step)

    def on_isr(self, step: Isr) -> None:
        self.on_step(step)

    def on_isr_sent(self, step: IsrSent) -> None:
        self.on_step(step)

    def on_elr(self, step: Elr) -> None:
        self.on_step(step)

    def on_decided(self, step: Decided) -> None:
        self.on_step(step)

    def on_min_isr(self, step: MinIsr) -> None:
        self.on_step(step)

    def on_assigned(self, step: Assigned) -> None:
        self.on_step(step)

    def on_directory_assigned(self, step: DirectoryAssigned) -> None:
        self.on_step(step)

    def on_metadata_delay(self, step: MetadataDelay) -> None:
        self.on_step(step)

    def on_fact(self, step: Fact) -> None:
        self.on_step(step)

    def on_topic(self, step: TopicChange) -> None:
        self.on_step(step)

    def on_topic_refused(self, step: TopicRefused) -> None:
        self.on_step(step)

    def on_controller(self, step: Controller) -> None:
        self.on_step(step)

    def on_controller_crashed(self, step: ControllerCrashed) -> None:
        self.on_step(step)

    def on_registered(self, step: Registered) -> None:
        self.on_step(step)

    def on_session_end(self, step: SessionEnd) -> None:
        self.on_step(step)

    def on_metadata(self, step: Metadata) -> None:
        self.on_step(step)

    def on_partition_changed(self, step: PartitionChanged) -> None:
        self.on_step(step)

    def on_recoveries(self, step: Recoveries) -> None:
        self.on_step(step)

    def on_acknowledges(self, step: Acknowledges) -> None:
        self.on_step(step)

    def on_ack(self, step: Ack) -> None:
        self.on_step(step)

    def on_refused(self, step: Refused) -> None:
        self.on_step(step)

    def on_batch_failed(self, step: BatchFailed) -> None:
        self.on_step(step)

    def on_held_back(self, step: HeldBack) -> None:
        self.on_step(step)

    def on_producer_id(self, step: ProducerId) -> None:
        self.on_step(step)

    def on_read(self, step: Read) -> None:
        self.on_step(step)

    def on_end_offset(self, step: EndOffset) -> None:
        self.on_step(step)

    def on_position(self, step: Position) -> None:
        self.on_step(step)

    def on_offsets_answer(self, step: OffsetsAnswer) -> None:
        self.on_step(step)

    def on_group_refused(self, step: GroupRefused) -> None:
        self.on_step(step)

    def on_coordinator(self, step: CoordinatorStep) -> None:
        self.on_step(step)

    def on_start(self, step: Start) -> None:
        self.on_step(step)

    def on_recovered(self, step: Recovered) -> None:
        self.on_step(step)

    def on_deleted(self, step: Deleted) -> None:
        self.on_step(step)

    def on_end(self, step: End) -> None:
        self.on_step(step)

    def on_flushed(self, step: Flushed) -> None:
        self.on_step(step)

    def on_pause(self, step: Pause) -> None:
        self.on_step(step)

    def on_link(self, step: LinkChange) -> None:
        self.on_step(step)


_HEARD: Final[dict[type, tuple[int, ...]]] = {}


_PLACES: Final[dict[tuple[type, ...], list[tuple[int, list[int]]]]] = {}


def places_by_method(listeners: Sequence[Listener]) -> list[tuple[int, list[int]]]:
    """For each number of a method that one of the listeners overrides, the places of those that do; cached for their
    classes, because the listeners of all runs and partitions are alike.
    """
    kinds = tuple([type(listener) for listener in listeners])
    found = _PLACES.get(kinds)
    if found is None:
        places: dict[int, list[int]] = {}
        for place, listener in enumerate(listeners):
            for number in heard_by(listener):
                places.setdefault(number, []).append(place)
        found = _PLACES[kinds] = list(places.items())
    return found


def heard_by(listener: Listener) -> tuple[int, ...]:
    """Numbers of the methods that a listener's class overrides; cached per class."""
    kind = type(listener)
    heard = _HEARD.get(kind)
    if heard is None:
        own = [place for name, place in METHODS.items() if getattr(kind, name) is not getattr(Listener, name)]
        heard = _HEARD[kind] = tuple(own)
    return heard
