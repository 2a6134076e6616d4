"""Drivers of the table consumer_truncation: a consumer's position, alone or in a consumer with a leader to talk to.

Source: SubscriptionStateTest drives the position by itself; OffsetFetcherTest and FetcherTest answer the requests of a
consumer from a mock client, which `Leader` is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.config import resolve
from sim.environment.network import Network, Node
from sim.history.recorder import Recorder
from sim.hosts.client import ClientSetup
from sim.hosts.consumer import Consumer
from sim.hosts.position_requests import USABLE_EPOCH_END_VERSION
from sim.hosts.settings import client_settings
from sim.kernel.scheduler import Event, Kernel
from sim.kernel.streams import Streams
from sim.protocol.client.consumer_position import (
    AWAIT_RESET,
    AWAIT_VALIDATION,
    FETCHING,
    ConsumerPosition,
    FetchPosition,
    LogTruncation,
)
from sim.protocol.decisions import Decisions
from sim.protocol.messages import (
    AGREES,
    NO_EPOCH,
    NONE,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from sim.protocol.replica.partition import NO_LEADER
from tests.plain import StandsIn
from tests.verification.conformance.cases import Fields, TableError
from tests.verification.conformance.driving import Kind, Matching, Seen
from tests.verification.conformance.world import LEADER, batches_of, entries_of, make_cache

if TYPE_CHECKING:
    from sim.history.trace import Shown
    from sim.protocol.rules import Rules

_TOPIC: Final = "t-0"
_DELIVERY_US: Final = 5_000
"""Time enough for a message to arrive, and too short for a retry."""


def _epoch(value: int | None) -> int:
    return NO_EPOCH if value is None else value


def _known(epoch: int) -> int | None:
    return None if epoch == NO_EPOCH else epoch


def _error(word: str) -> str:
    return NONE if word == "NONE" else word


def _position(fields: Fields) -> FetchPosition:
    return FetchPosition(fields["offset"], _epoch(fields["offset_epoch"]), LEADER, _epoch(fields["leader_epoch"]))


def _shown(position: FetchPosition | None) -> dict[str, int | None] | None:
    if position is None:
        return None
    return {
        "offset": position.offset,
        "offset_epoch": _known(position.offset_epoch),
        "leader_epoch": _known(position.leader_epoch),
    }


def _truncation(found: LogTruncation | None) -> dict[str, object] | None:
    if found is None:
        return None
    divergent = {"offset": found.divergent_offset, "epoch": found.divergent_epoch}
    return {"fetch_position": _shown(found.position), "divergent": divergent}


def _sights(at: ConsumerPosition) -> Seen:
    return Seen(
        valid=at.state == FETCHING,
        awaiting_validation=at.state == AWAIT_VALIDATION,
        reset_needed=at.state == AWAIT_RESET,
        reset_strategy=at.reset_strategy,
        position=_shown(at.position),
        offset=at.offset,
        position_offset=at.offset,
        position_offset_epoch=_known(at.offset_epoch),
    )


class Position:
    """A position by itself, and the newest OffsetsForLeaderEpoch that the leader knows."""

    def __init__(self, given: Fields, _: Rules) -> None:
        self.cursor = ConsumerPosition(given["reset_policy"])
        self.policy = given["reset_policy"]
        self.version: int = USABLE_EPOCH_END_VERSION
        if "consumer_position" in given:
            given["unclean"]
            self.history = given["log_history"]
            self.cursor.seek_validated(_position(given["consumer_position"]))

    def leader_api_version(self, op: Fields) -> None:
        version = op["max_offsets_for_leader_epoch"]
        self.version = USABLE_EPOCH_END_VERSION if version == "latest" else version

    def leader_seen(self, op: Fields) -> Seen:
        can_validate = self.version >= USABLE_EPOCH_END_VERSION
        epoch = _epoch(op["leader_epoch"])
        return Seen(returns=self.cursor.leader_seen(LEADER, epoch, can_validate=can_validate))

    def leader_seen_unassigned(self, op: Fields) -> Seen:
        """A partition that is not assigned has no position."""
        return Seen(returns=ConsumerPosition(self.policy).leader_seen(LEADER, op["leader_epoch"]))

    def epoch_reply(self, op: Fields) -> Seen:
        found = self.cursor.epoch_end(_position(op["for_position"]), op["epoch"], op["end_offset"])
        return Seen(truncation=_truncation(found))

    def reply_of_the_last_leader(self, op: Fields) -> Seen:
        """The answer that the table names has to be the one that such a log gives."""
        asked = _position(op["for_position"])
        *_, last = (self.history[name] for name in self.history)
        batches = batches_of(last)
        end = batches[-1].last_offset + 1
        cache = make_cache([*entries_of(batches), (asked.leader_epoch, end)])
        if cache.end_offset_for(asked.offset_epoch, end) != (op["epoch"], op["end_offset"]):
            raise TableError(f"a leader with log {last} gives another answer")
        return self.epoch_reply(op)


POSITION: Final = Kind(
    begin=Position,
    ops={
        "seek_unvalidated": lambda state, op: state.cursor.seek_unvalidated(_position(op["position"])),
        "seek_validated": lambda state, op: state.cursor.seek_validated(_position(op["position"])),
        "complete_validation": lambda state, _: state.cursor.complete_validation(),
        "request_reset": lambda state, op: state.cursor.request_reset(op.get("strategy", "")),
        "leader_api_version": Position.leader_api_version,
        "leader_seen": Position.leader_seen,
        "leader_seen_for_unassigned_partition": Position.leader_seen_unassigned,
        "epoch_reply": Position.epoch_reply,
    },
    observe=lambda state: _sights(state.cursor),
)


class Leader(StandsIn, Node):
    """Stands in for the leader, and records requests."""

    def __init__(self, version: int) -> None:
        super().__init__(LEADER)
        self.epoch_end_version = version
        self.fetches: list[FetchRequest] = []
        self.epoch_ends: list[OffsetsForLeaderEpochRequest] = []
        self.list_offsets: list[ListOffsetsRequest] = []

    def receive(self, message: Event) -> None:
        """See `Node.receive`. A fetch waits; what is answered to Metadata, if anything, the case says."""
        if isinstance(message, FetchRequest):
            self.fetches.append(message)
        elif isinstance(message, OffsetsForLeaderEpochRequest):
            self.epoch_ends.append(message)
        elif isinstance(message, ListOffsetsRequest):
            self.list_offsets.append(message)
        else:
            assert isinstance(message, MetadataRequest)


class Reader:
    """A consumer that knows its leader, if there is one, and has a position; nothing is sent yet."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        self.kernel = Kernel()
        self.network = Network(self.kernel, Streams(0))
        self.steps: list[Shown] = []
        recorder = Recorder(self.kernel)
        recorder.observe(self.steps.append)
        self.leader = Leader(given.get("leader_max_offsets_for_leader_epoch_version", USABLE_EPOCH_END_VERSION))
        settings = client_settings(resolve({"auto.offset.reset": given.get("reset_policy", "earliest")}))
        setup = ClientSetup(_TOPIC, (LEADER,), settings, self.kernel, self.network, recorder, Decisions(rules))
        self.consumer = Consumer(1002, setup)
        self.network.join(self.consumer)
        self.connected = given.get("connected", True)
        if self.connected:
            self.network.join(self.leader)
        self._set_up(given)

    def _set_up(self, given: Fields) -> None:
        consumer = self.consumer
        position = _position(given["position"]) if "position" in given else None
        known = position.leader_epoch if position else NO_EPOCH
        epoch = _epoch(given["metadata_leader_epoch"]) if "metadata_leader_epoch" in given else known
        if "leader" in given and given["leader"] is None:
            consumer.leader = NO_LEADER
            position = position and position._replace(leader=NO_LEADER)
        else:
            consumer.leader = LEADER
            consumer.leader_epoch = consumer._newest_epoch = epoch
        if position is not None and "truncation_and_regrowth" in given:
            given["truncation_and_regrowth"]  # Nothing that a consumer sees: it has read so far, and goes on.
            consumer.cursor.seek_validated(position)
        elif position is not None:
            consumer.cursor.seek_unvalidated(position)
        elif given.get("reset_needed"):
            consumer.cursor.request_reset()

    def deliver(self) -> None:
        self.kernel.run_until(self.kernel.now_us + _DELIVERY_US)

    def sights(self) -> Seen:
        consumer = self.consumer
        seen = _sights(consumer.cursor)
        seen.update(
            metadata_update_requested=consumer._refreshing or consumer._asked is not None,
            last_seen_leader_epoch=_known(consumer._newest_epoch),
            fetches_sent=len(self.leader.fetches),
        )
        return seen

    def _asks(self) -> Matching | None:
        """The epoch request that was sent last."""
        if not self.leader.epoch_ends:
            return None
        _, current, epoch = self.leader.epoch_ends[-1].asks[0]
        fields = {"current_leader_epoch": current, "leader_epoch": epoch}
        return Matching(fields, lambda expected: expected in ("sent", fields))

    def validate(self, _: Fields) -> Seen:
        """Poll: validate the position against the metadata, if necessary."""
        consumer = self.consumer
        if consumer.has_error:
            (told,) = [step for step in self.steps if step["step"] == "truncation-detected"]
            divergent = {"offset": told["divergent_offset"], "epoch": told["leader_epoch"]}
            return Seen(raises="log truncation", out_of_range_offset=told["offset"], divergent=divergent)
        if consumer.channel() is None:
            consumer.fetch()
        else:
            consumer.leader_known()
        self.deliver()
        connects = not self.connected and consumer._refreshing
        if connects:
            self.connected = True
            self.network.join(self.leader)
        return Seen(request=self._asks(), connects=connects)

    def epoch_reply(self, op: Fields) -> Seen:
        """Answer an epoch request: the first one with the given leader epoch, or the oldest pending one."""
        consumer = self.consumer
        if not consumer._validations:
            self.validate(op)
        request: OffsetsForLeaderEpochRequest = consumer._validations[0][0]
        if "for_leader_epoch" in op:
            epoch = op["for_leader_epoch"]
            request = next(each for each in self.leader.epoch_ends if each.asks[0][1] == epoch)
        before = consumer.cursor.position
        if op.get("missing"):
            consumer._time_out(request)
        else:
            error = _error(op.get("error", "NONE"))
            result = (_TOPIC, error, op.get("epoch", request.asks[0][2]), op.get("end_offset", -1))
            consumer.on_epoch_end_reply(OffsetsForLeaderEpochResponse(request, [result]))
        self.deliver()
        after = consumer.cursor.position
        waits = consumer.cursor.state == AWAIT_VALIDATION
        return Seen(
            handed_to_position_state=not waits,
            result=None if waits and after == before else _shown(after),
            retry=waits and consumer._refreshing,
        )

    def metadata(self, op: Fields) -> None:
        """A metadata reply, with the leader's epoch or, before version 9, without."""
        op.get("metadata_version")
        consumer = self.consumer
        consumer._asked = MetadataRequest(consumer.node, _TOPIC)
        consumer.on_metadata_reply(MetadataResponse(consumer._asked, LEADER, op.get("epoch", NO_EPOCH)))
        self.deliver()

    def advance(self, op: Fields) -> None:
        """A fetch that was under way moved the position."""
        self.consumer.cursor.seek_validated(_position(op["position"]))

    def seek(self, op: Fields) -> None:
        position = _position(op["position"])
        self.consumer.seek(position.offset, position.offset_epoch)
        self.deliver()

    def list_offsets_reply(self, op: Fields) -> None:
        self.consumer.fetch()
        self.deliver()
        request = self.leader.list_offsets[-1]
        offset, epoch = op.get("offset", -1), op.get("leader_epoch", NO_EPOCH)
        self.consumer.on_list_offsets_reply(ListOffsetsResponse(request, _error(op["error"]), offset, epoch))

    def fetch(self, op: Fields) -> Seen:
        op.get("note")
        self.consumer.fetch()
        self.deliver()
        current = self.leader.fetches[-1].positions[0][2] if self.leader.fetches else None
        return Seen(current_leader_epoch=current, validation=self._asks())

    def fetch_reply(self, op: Fields) -> None:
        """Answer a fetch: the first one from the given offset, or the last one."""
        if not self.leader.fetches:
            self.consumer.fetch()
            self.deliver()
        fetches = self.leader.fetches
        request = fetches[-1]
        if "for_offset" in op:
            request = next(each for each in fetches if each.positions[0][1] == op["for_offset"])
        result: Any = (_TOPIC, _error(op.get("error", "NONE")), batches_of(op.get("records", ())), 0, 0, 0, AGREES)
        self.consumer.on_fetch_reply(FetchResponse(request, [result]))


FLOW: Final = Kind(
    begin=Reader,
    ops={
        "validate": Reader.validate,
        "epoch_reply": Reader.epoch_reply,
        "metadata_leader_epoch": Reader.metadata,
        "metadata_without_leader_epoch": Reader.metadata,
        "position_advanced_by_fetch": Reader.advance,
        "seek_unvalidated": Reader.seek,
        "seek": Reader.seek,
        "list_offsets_reply": Reader.list_offsets_reply,
        "send_fetch": Reader.fetch,
        "fetch": Reader.fetch,
        "fetch_reply": Reader.fetch_reply,
    },
    observe=Reader.sights,
)


def _begin_hole(given: Fields, rules: Rules) -> Position | Reader:
    return Position(given, rules) if "consumer_position" in given else Reader(given, rules)


HOLE: Final = Kind(
    begin=_begin_hole,
    ops={
        "leader_seen": Position.leader_seen,
        "epoch_reply": Position.reply_of_the_last_leader,
        "fetch": Reader.fetch,
    },
    observe=lambda state: state.sights() if isinstance(state, Reader) else _sights(state.cursor),
)
