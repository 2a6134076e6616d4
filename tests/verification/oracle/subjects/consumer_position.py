"""A consumer's position: Kafka's SubscriptionState, OffsetFetcher and Fetcher against `Consumer`.

Operations: ``consumer policy`` (another one, of which nothing is committed, and which knows leader 1 in epoch 0),
``metadata leader epoch`` (0: no leader; any back-off has passed), ``seek offset epoch`` (-1: without), ``reset
strategy`` (seekToBeginning, seekToEnd), ``epoch-end error epoch end-offset``, ``offset error offset epoch`` and
``fetched error count epoch`` (answers to the oldest request of that kind, if there is one; a fetch is answered with
one batch), ``lost`` (no request is answered), ``wait ms`` (the same, time passes, and the last metadata comes again).
To be seen are the requests that were sent, with the broker and its epoch, what the application was told, the state,
the strategy of a reset, and the position with its epoch and its leader.

After a fetch has failed, both wait for metadata; Kafka's consumer would fetch again meanwhile. An application that was
told an error does not poll before it seeks, so nothing is answered until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.config import resolve
from sim.environment.network import Network, Node
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.client import ClientSetup
from sim.hosts.consumer import Consumer
from sim.hosts.position_requests import USABLE_EPOCH_END_VERSION
from sim.hosts.settings import client_settings
from sim.kernel.scheduler import Event, Kernel
from sim.kernel.streams import Streams
from sim.protocol.batch import Batch
from sim.protocol.client.consumer_position import AWAIT_RESET, ConsumerPosition
from sim.protocol.decisions import Decisions
from sim.protocol.messages import (
    AGREES,
    FENCED_LEADER_EPOCH,
    NO_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
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
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Operation, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.history.trace import Shown
    from sim.protocol.rules import Rules

TOPIC: Final = "t"
BROKERS: Final = (1, 2)
NODE: Final = 1002
DELIVERY_US: Final = 5_000
"""Time enough for a message to arrive, and too short for a retry."""
MS: Final = 1_000
BY_DURATION: Final = "by_duration"
Request = OffsetsForLeaderEpochRequest | ListOffsetsRequest | FetchRequest
KINDS: Final = {
    "epoch-end": OffsetsForLeaderEpochRequest,
    "offset": ListOffsetsRequest,
    "fetched": FetchRequest,
}


class Broker(StandsIn, Node):
    """Stands in for a broker: what it receives, the driver answers."""

    def __init__(self, node: int, received: list[tuple[int, Request]]) -> None:
        super().__init__(node)
        self.epoch_end_version = USABLE_EPOCH_END_VERSION
        self._received = received

    def receive(self, message: Event) -> None:
        """See `Node.receive`."""
        if isinstance(message, Request):
            self._received.append((self.node, message))


class Driver:
    """A consumer in a network with two brokers."""

    def __init__(self, policy: str, rules: Rules) -> None:
        self._kernel = Kernel()
        self._network = Network(self._kernel, Streams(0))
        self._steps: list[Shown] = []
        recorder = Recorder(self._kernel)
        recorder.observe(self._steps.append)
        value = "by_duration:PT1S" if policy == BY_DURATION else policy
        settings = client_settings(resolve({"auto.offset.reset": value}))
        setup = ClientSetup(TOPIC, BROKERS, settings, self._kernel, self._network, recorder, Decisions(rules))
        self._consumer = Consumer(NODE, setup)
        self._consumer.cursor = ConsumerPosition(settings.offset_reset)
        self._received: list[tuple[int, Request]] = []
        self._shown = self._seen = 0
        self._pending: list[Request] = []
        self._had_error = False
        self._metadata: list[int] = []
        for node in (self._consumer, *(Broker(each, self._received) for each in BROKERS)):
            self._network.join(node)
        self.act("metadata", [1, 0])

    def act(self, name: str, values: list[Any]) -> None:
        """Do one operation."""
        consumer = self._consumer
        match name:
            case "metadata":
                leader, epoch = self._metadata = values
                consumer._asked = MetadataRequest(NODE, TOPIC)
                consumer.on_metadata_reply(MetadataResponse(consumer._asked, leader or NO_LEADER, epoch))
            case "seek":
                consumer.seek(*values)
            case "reset":
                consumer.has_error = False
                consumer._leave_fetch()
                consumer._reset.from_us = 0
                consumer.cursor.request_reset(*values)
                consumer.fetch()
            case "epoch-end" | "offset" | "fetched":
                if not self._had_error:
                    self._answer(name, *values)
            case "lost":
                self._lose()
            case "wait":
                self._lose()
                self._kernel.run_until(self._kernel.now_us + values[0] * MS)
                self.act("metadata", list(self._metadata))
            case _:
                raise ValueError(f"unknown operation {name!r}")
        self._kernel.run_until(self._kernel.now_us + DELIVERY_US)
        self._pending += [request for _, request in self._received[self._seen :]]
        self._seen = len(self._received)

    def _lose(self) -> None:
        if self._pending:
            self._pending.clear()
            self._consumer._late_fetches.clear()
            self._consumer.connection_lost()
            self._consumer.retry_later(always=True)

    def _answer(self, name: str, error: str, one: int, other: int) -> None:
        request = next((each for each in self._pending if isinstance(each, KINDS[name])), None)
        if request is None:
            return
        self._pending.remove(request)
        consumer = self._consumer
        if isinstance(request, OffsetsForLeaderEpochRequest):
            consumer.on_epoch_end_reply(OffsetsForLeaderEpochResponse(request, [(TOPIC, error, one, other)]))
        elif isinstance(request, ListOffsetsRequest):
            consumer.on_list_offsets_reply(ListOffsetsResponse(request, error, one, other))
        else:
            base = request.positions[0][1]
            batches = [Batch(base, base + one - 1, other, base)] if one and not error else []
            consumer.on_fetch_reply(FetchResponse(request, [(TOPIC, error, batches, 0, 0, 0, AGREES)]))

    def shown(self) -> list[Any]:
        """See the module."""
        sent = [self._request(broker, request) for broker, request in self._received[self._shown :]]
        self._shown = len(self._received)
        cursor = self._consumer.cursor
        told = [] if self._had_error or not self._consumer.has_error else [self._told()]
        self._had_error = self._consumer.has_error
        self._steps.clear()
        if self._had_error:
            return [sent, told]
        strategy = cursor.reset_strategy.partition(":")[0] if cursor.state == AWAIT_RESET else ""
        position = cursor.position
        if position is not None and position.leader == NO_LEADER:
            position = position._replace(leader=-1)
        return [sent, told, cursor.state, strategy, position]

    def _told(self) -> list[Any]:
        for step in self._steps:
            if step["step"] == steps.TRUNCATION_DETECTED.name:
                return ["truncation", step["offset"], step["divergent_offset"], step["leader_epoch"]]
            if step["step"] == steps.OUT_OF_RANGE.name:
                return ["out of range", step["offset"]]
        return ["no offset"]

    @staticmethod
    def _request(broker: int, request: Request) -> list[Any]:
        if isinstance(request, OffsetsForLeaderEpochRequest):
            _, current, epoch = request.asks[0]
            return ["epoch-end", broker, current, epoch]
        if isinstance(request, ListOffsetsRequest):
            return ["offset", broker, request.leader_epoch, min(request.timestamp, 0)]
        _, offset, epoch, _ = request.positions[0]
        return ["fetch", broker, epoch, offset]


class Drawing:
    """Draws a case, tracking roughly its state."""

    def __init__(self, rng: Random, release: str) -> None:
        self._rng = rng
        self._policies = ["latest", "earliest", "none"] + [BY_DURATION] * (release != "3.9.0")
        self._epoch = 0
        self._offset = 0

    def draw(self) -> Case:
        """A case."""
        rng = self._rng
        case: Case = [["consumer", rng.choice(self._policies)]]
        for _ in range(rng.randint(3, 30)):
            case.append(self._operation())
        return case

    def _operation(self) -> Operation:
        rng = self._rng
        roll = rng.random()
        if roll < 0.3:
            count = rng.choice((0, 1, 1, 2, 3))
            error = self._error((OFFSET_OUT_OF_RANGE, OFFSET_OUT_OF_RANGE, NOT_LEADER_OR_FOLLOWER), 0.2)
            self._offset += 0 if error else count
            return ["fetched", error, 0 if error else count, self._near_epoch()]
        if roll < 0.5:
            error = self._error((NOT_LEADER_OR_FOLLOWER,), 0.2)
            end = rng.choice((self._offset, self._offset + 1, max(0, self._offset - 1), rng.randint(0, 5), -1))
            return ["epoch-end", error, *((-1, -1) if error else (rng.choice((self._near_epoch(), -1)), end))]
        if roll < 0.65:
            error = self._error((NOT_LEADER_OR_FOLLOWER, OFFSET_NOT_AVAILABLE), 0.2)
            if error or rng.random() < 0.1:
                return ["offset", error, -1, NO_EPOCH]
            self._offset = rng.randint(0, 6)
            return ["offset", NONE, self._offset, rng.choice((self._near_epoch(), NO_EPOCH))]
        if roll < 0.82:
            self._epoch += rng.choice((0, 0, 1, 1, 2))
            epoch = self._epoch if rng.random() < 0.85 else max(0, self._epoch - 1)
            return ["metadata", rng.choice((1, 1, 2, 2, 0)), epoch]
        if roll < 0.92:
            self._offset = rng.randint(0, 6)
            return ["seek", self._offset, rng.choice((-1, self._near_epoch(), self._epoch + 1))]
        if roll < 0.95:
            return ["reset", rng.choice(("earliest", "latest"))]
        return ["lost"] if roll < 0.98 else ["wait", 31_000]

    def _near_epoch(self) -> int:
        return max(0, self._epoch - self._rng.choice((0, 0, 0, 1)))

    def _error(self, further: tuple[str, ...], share: float) -> str:
        rng = self._rng
        if rng.random() >= share:
            return NONE
        return rng.choice((FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, *further))


def draw(rng: Random, release: str) -> Case:
    """See `Subject.draw`."""
    return Drawing(rng, release).draw()


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    driver = Driver("latest", rules)
    seen = []
    for name, *values in case:
        if name == "consumer":
            driver = Driver(values[0], rules)
        else:
            driver.act(name, values)
        seen.append(driver.shown())
    return seen


SUBJECT: Final = Subject(
    "consumer-position",
    "highwater.ConsumerPositionSubject",
    since("3.9.0"),
    draw,
    run,
    quick=500,
    usual=2_000,
    deep=20_000,
    uses=("batches",),
)
