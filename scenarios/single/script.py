"""Runs a script on a cluster, and checks that its story occurs.

The script is a SimPy process: it waits for a protocol step, then for a time, then acts. The story is a list of steps
that must occur in order; if one does not, the run is an error, whatever the checkers find.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from simpy.events import Event

from faults.kind import node_of
from faults.kinds.injection import Injection
from faults.kinds.registry import KINDS
from scenarios.format.scenario import FinalLog, Pattern, ScriptLine, StoryLine
from sim.environment.network import ANY_PEER
from sim.history.records import VALIDATION_IDS
from sim.history.trace import Shown
from sim.hosts.cluster import Cluster
from sim.hosts.consumer import Consumer
from sim.hosts.interceptions import MESSAGES
from sim.hosts.producer import Producer
from sim.hosts.settings import acks_number
from sim.hosts.topics import ClusterPartition
from sim.kernel.scheduler import Environment
from sim.protocol.client.sender import ProducerBatch
from sim.protocol.log.log import Log
from sim.protocol.messages import NO_EPOCH
from sim.protocol.rules import Rules, built_in

WAIT_LIMIT_US: Final = 300_000_000
"""A script line that waits longer fails the run."""
CONSUMER: Final[dict[str, Callable[..., object]]] = {
    "end-offsets": Consumer.ask_end_offset,
    "offsets-for-times": Consumer.offset_for_time,
    "commit": Consumer.commit,
    "restart-consumer": Consumer.restart,
    "seek": Consumer.seek,
    "pause-consumer": Consumer.pause,
    "resume-consumer": Consumer.resume,
}
"""Action -> method of the consumer."""
HOLDS: Final = ("hold-messages", "deliver-message", "release-messages")
"""Actions about every message of a type."""
LISTS: Final = ("isr", "elr", "last_known_elr")
"""Fields of a pattern that are lists of brokers."""


class StoryError(Exception):
    """A script or story step did not occur."""


def describe(pattern: Pattern) -> str:
    """A pattern as text: ``append broker=2 batch=m2 offset=1``."""
    parts = [pattern.step]
    for name in ("broker", "batch", "offset", "leader_epoch", *LISTS, "rounds", "partition"):
        value = getattr(pattern, name)
        if value is not None:
            parts.append(f"{name}={list(value) if isinstance(value, tuple) else value}")
    return " ".join(parts)


def matches(pattern: Pattern, step: Shown, batches: Mapping[str, int]) -> bool:
    """Whether a step matches a pattern; `batches` maps a batch's name to its first record."""
    if step["step"] != pattern.step or step.get("partition") != pattern.partition:
        return False
    if pattern.batch is not None and step.get("record") != batches.get(pattern.batch):
        return False
    for name in LISTS:
        brokers = getattr(pattern, name)
        if brokers is not None and sorted(step.get(name, ())) != sorted(brokers):
            return False
    plain = {name: getattr(pattern, name) for name in ("broker", "offset", "leader_epoch", "rounds")}
    return all(wanted is None or step.get(name) == wanted for name, wanted in plain.items())


@dataclass(frozen=True, slots=True)
class RulesInForce:
    """The rules of one run: of the mode and the control plane, and of each broker."""

    mode: Rules
    brokers: Mapping[int, Rules]

    def fit(self, wanted: Mapping[str, tuple[str, ...]], broker: int | None) -> bool:
        """Whether each rule of a broker, or of the mode, has one of the wanted values."""
        rules = self.mode if broker is None else self.brokers.get(broker, self.mode)
        return all(
            rules.value(name) in values or built_in(name, rules.value(name)) in values
            for name, values in wanted.items()
        )


class StoryMatcher:
    """Matches the steps of a story in order; lines for other rule values are skipped.

    Attributes:
        met: (pattern as text, time of its step or None), in order.
    """

    def __init__(self, lines: tuple[StoryLine, ...], rules: RulesInForce, batches: Mapping[str, int]) -> None:
        self.patterns = [line.pattern for line in lines if rules.fit(line.rules, line.pattern.broker)]
        self._batches = batches
        self._times: list[int] = []

    def observe(self, step: Shown) -> None:
        """Match a step."""
        if len(self._times) < len(self.patterns):
            pattern = self.patterns[len(self._times)]
            if matches(pattern, step, self._batches):
                self._times.append(step["t"])

    @property
    def met(self) -> list[tuple[str, int | None]]:
        """See the class."""
        times: list[int | None] = [*self._times, *[None] * (len(self.patterns) - len(self._times))]
        return [(describe(pattern), at_us) for pattern, at_us in zip(self.patterns, times, strict=True)]

    def check(self) -> None:
        """Check that the whole story occurred; raises StoryError with the first missing step."""
        for text, at_us in self.met:
            if at_us is None:
                raise StoryError(f"story did not happen: no step {text!r} after the probes before it")


class Script:
    """Runs the script of a scenario; lines for other rule values of the mode are skipped.

    `acks` is the default of batches. `batches` (name -> first record id) and `sends` (partition -> batches) are filled
    as they are sent. `failure` is why the script ended before its last line: the run is judged all the same. `played`
    are the numbers of the lines that were performed, from 1, with their times.
    """

    def __init__(
        self,
        lines: tuple[ScriptLine, ...],
        rules: RulesInForce,
        cluster: Cluster,
        injection: Injection,
        acks: int,
        batches: dict[str, int],
    ) -> None:
        self._lines = [(number, line) for number, line in enumerate(lines, start=1) if rules.fit(line.rules, None)]
        self._cluster = cluster
        self._injection = injection
        self._acks = acks
        self._batches = batches
        self._seen: list[Shown] = []
        self._awaited: tuple[Pattern, Event] | None = None
        self.next_id = 0
        self.sends: dict[str, list[ProducerBatch]] = {}
        self.failure: StoryError | None = None
        self.played: list[tuple[int, int]] = []

    def observe(self, step: Shown) -> None:
        """Check whether the current line waits for a step."""
        if self._awaited is None:
            self._seen.append(step)
        elif matches(self._awaited[0], step, self._batches):
            self._awaited[1].succeed()
            self._awaited = None

    def play(self, environment: Environment) -> Generator[Event, Any, None]:
        """The SimPy process, which ends at a line that cannot be performed."""
        try:
            yield from self._play(environment)
        except StoryError as error:
            self.failure = error

    def _play(self, environment: Environment) -> Generator[Event, Any, None]:
        """Raises StoryError if the step that a line waits for does not occur."""
        for number, line in self._lines:
            if line.when is not None and not any(matches(line.when, step, self._batches) for step in self._seen):
                event = environment.event()
                self._awaited = (line.when, event)
                yield event | environment.timeout(WAIT_LIMIT_US)
                if not event.triggered:
                    raise StoryError(f"script line {number} waited in vain for {describe(line.when)!r}")
            if line.after_us:
                yield environment.timeout(line.after_us)
            self._seen.clear()
            self.played.append((number, self._cluster.kernel.now_us))
            self._do(line.do, line.params)

    def _do(self, action: str, params: Mapping[str, Any]) -> None:
        cluster = self._cluster
        cluster.network.end_elision()
        if action == "produce":
            self._produce(params)
        elif action in ("elect", "isr"):
            cluster.control.decide(params.get("broker", cluster.control.state.leader), tuple(params["isr"]))
        elif action in CONSUMER:
            self._consume(action, params)
        elif action == "restart-producer":
            self._producer(params).restart()
        elif action == "delete-records":
            name = self._partition(params).name
            leader = cluster.leader_of(name)
            replica = None if leader is None else leader.replica(name)
            if replica is None:
                raise StoryError("delete-records needs a leader")
            cluster.administrator.delete_records(replica.partition, params["offset"])
        elif action in ("start", "heal", "resume", "set-config"):
            self._operate(action, params)
        elif action in HOLDS:
            self._hold(action, params)
        elif action != "wait":
            self._injection.strike(KINDS[action].scripted(params, cluster.kernel.now_us))

    def _consume(self, action: str, params: Mapping[str, Any]) -> None:
        consumer = self._partition(params).consumer
        if action == "seek":
            consumer.seek(params["offset"], params.get("epoch", NO_EPOCH))
        elif action == "offsets-for-times":
            consumer.offset_for_time(self._batches[params["batch"]])
        else:
            CONSUMER[action](consumer)

    def _operate(self, action: str, params: Mapping[str, Any]) -> None:
        cluster = self._cluster
        if action == "start":
            cluster.start(params["broker"])
        elif action == "heal":
            cluster.links.heal_all(*(node_of(params[end]) for end in ("from", "to") if end in params))
        elif action == "resume":
            cluster.resume(node_of(params["node"]))
        else:
            for key, value in params["config"].items():
                cluster.administrator.set_config(key, value)

    def _hold(self, action: str, params: Mapping[str, Any]) -> None:
        links, broker, name = self._cluster.links, params["broker"], params["message"]
        by = "hold-messages", broker, name
        if action == "hold-messages":
            cluster = self._cluster
            links.hold(name, MESSAGES[name].links(broker, cluster.settings, cluster.producers), by)
            return
        if action == "deliver-message":
            peer = node_of(params["peer"]) if "peer" in params else ANY_PEER
            is_held = links.deliver(by, peer, newest=params.get("newest", False))
        else:
            is_held = links.release(by)
        if not is_held:
            raise StoryError(f"{action} needs hold-messages before it, of {name} of broker {broker}")

    def _produce(self, params: Mapping[str, Any]) -> None:
        records = params.get("records", 1)
        acks = acks_number(params["acks"]) if "acks" in params else self._acks
        self._batches[params["batch"]] = self.next_id
        send = ProducerBatch(self.next_id, records, acks, self._cluster.kernel.now_us)
        self.sends.setdefault(self._partition(params).name, []).append(send)
        self._producer(params).send(send)
        self.next_id += records

    def _producer(self, params: Mapping[str, Any]) -> Producer:
        """The producer that acts."""
        number: int = params.get("producer", 1)
        return self._partition(params).producers[number - 1]

    def _partition(self, params: Mapping[str, Any]) -> ClusterPartition:
        """The partition that an action is about."""
        name = params.get("partition", self._cluster.name)
        for partition in self._cluster.partitions:
            if partition.name == name and not partition.deleted:
                return partition
        raise StoryError(f"there is no partition {name} when the script uses it")


def check_final_logs(
    finals: Iterable[FinalLog],
    rules: RulesInForce,
    log_of: Callable[[int, str | None], Log],
    batches: Mapping[str, int],
) -> None:
    """Compare final logs of brokers whose rules match; raises StoryError for the first that is not as expected.

    `batches` gives the first record id by name, and `log_of` the log of a broker and partition.
    """
    names = {first_id: name for name, first_id in batches.items()}
    for final in finals:
        if not rules.fit(final.rules, final.broker):
            continue
        log = log_of(final.broker, final.partition)
        scripted = [batch for batch in log.batches if batch.first_id < VALIDATION_IDS]
        found = tuple(names[batch.first_id] for batch in scripted)
        leo = next((batch.base_offset for batch in log.batches if batch.first_id >= VALIDATION_IDS), log.leo)
        if found != final.batches or final.leo not in (None, leo):
            wanted = _log_shown(final.batches, final.leo)
            raise StoryError(f"final log of broker {final.broker}: {_log_shown(found, leo)}, expected {wanted}")


def _log_shown(batches: tuple[str, ...], leo: int | None) -> str:
    return " ".join(batches or ("nothing",)) + ("" if leo is None else f" up to {leo}")
