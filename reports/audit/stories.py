"""A story of `distance` as a scripted scenario, which ``highwater run`` plays and ``highwater confirm`` acts out.

A script begins with a new partition, whose replicas are brokers 1, 2, ... So it first needs the events that lead to the
partition's present situation: not those of its history, but the fewest.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from reports.audit.image import PartitionState
from reports.audit.situations import Kind, Machine, Model, Replica, Situation, Step, canonical
from scenarios.shrinking.script_export import pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reports.audit.distance import Story
    from reports.audit.situations import Settings

MOST_BEFORE: Final = 6
"""Most events before the story, from a new partition to the present situation."""
MOST_ASKED: Final = 60_000
LAG_MS: Final = 5_000
"""``replica.lag.time.max.ms`` of the scenario."""
AFTER_MS: Final = 2_000
"""Pause before a line, in which brokers replay what changed."""
FETCH_MS: Final = 8_000
"""Pause for a replica that is to join the ISR."""
LEAVE_MS: Final = 12_000
"""Pause for a follower that is to leave the ISR."""
HOUR_MS: Final = 3_600_000
Line = dict[str, Any]


def scenario(name: str, situation: Situation, story: Story, settings: Settings, mode: str) -> str | None:
    """The scenario file; None if the situation is not reached within `MOST_BEFORE` events."""
    approach = _approach(situation, settings)
    if approach is None:
        return None
    start, before, broker = approach
    after = [Step(step.kind, tuple(broker[number] for number in step.brokers)) for step in story.steps]
    writer = _Script(start, settings)
    lines = [*writer.begin(), *(line for step in (*before, *after) for line in writer.lines(step)), writer.rest]
    names = ", ".join(f"broker {number} is {original}" for original, number in sorted(broker.items()))
    told = [*(step.text for step in before), *(step.text for step in after)]
    loses = writer.situation.has_lost
    expected = "violates:committed-loss|exposed-loss" if loses else "may-violate"
    parts = [
        "schema = 1\n",
        f'name = "{name}"\n',
        f'title = "{"A loss" if loses else "No leader"} after {len(told)} events"\n',
        f'description = """\nIn this scenario, {names} of the audited cluster. {"; ".join(told)}.\n"""\n',
        f"brokers.count = {len(start.replicas)}\n",
        'control = "real"\n',
        "\n[config]\n",
        *(f"{line}\n" for line in pairs(_config(start, settings))),
        *("\n".join(["", "[[script]]", *pairs(line), ""]) for line in lines),
        f'\n[expect]\n"{mode}" = "{expected}"\n',
    ]
    return "".join(parts)


def _config(start: Situation, settings: Settings) -> dict[str, Any]:
    """Nothing is written back before a power loss, and no leader is elected because it is preferred."""
    return {
        "default.replication.factor": len(start.partition.replicas),
        "min.insync.replicas": settings.min_isr,
        "unclean.leader.election.enable": settings.unclean,
        "replica.lag.time.max.ms": LAG_MS,
        "replica.socket.timeout.ms": 2_000,
        "auto.leader.rebalance.enable": False,
        "sim.writeback.expire.ms": HOUR_MS,
    }


def _approach(target: Situation, settings: Settings) -> tuple[Situation, list[Step], Mapping[int, int]] | None:
    """A new partition's situation, the fewest events from there, and the numbers there of the target's brokers."""
    wanted, names = canonical(target)
    brokers = range(1, len(wanted.replicas) + 1)
    factor = max(len(target.partition.target), 1)
    replicas = tuple(brokers)[:factor]
    model = Model(settings)
    machines = tuple((broker, Replica(Machine.UP, broker in replicas, flushed=False)) for broker in brokers)
    start = Situation(PartitionState(replicas, replicas, replicas[0]), machines)
    came: dict[Situation, tuple[Situation, Step] | None] = {model.after_acknowledgement(start): None}
    queue = deque([(situation, 0) for situation in came])
    wanted = model.after_acknowledgement(wanted)
    while queue and model.asked < MOST_ASKED:
        situation, events = queue.popleft()
        numbered, numbers = canonical(situation)
        if numbered == wanted:
            steps = []
            before = came[situation]
            while before is not None:
                steps.append(before[1])
                before = came[before[0]]
            return start, steps[::-1], {names[place]: number for place, number in numbers.items()}
        if situation.has_lost or events == MOST_BEFORE:
            continue
        for step, after in (*model.steps(situation), *model.lagging(situation)):
            if after not in came:
                came[after] = situation, step
                queue.append((after, events + 1))
    return None


class _Script:
    """The lines of a script, and the situation that they lead to.

    Live replicas outside the ISR are cut off from the others, so that none joins before its step.
    """

    def __init__(self, start: Situation, settings: Settings) -> None:
        self._model = Model(settings)
        self._settings = settings
        self.situation = start
        self._cut: set[int] = set()
        self._batches = 0
        self._when: Line = {}

    def begin(self) -> Iterator[Line]:
        """The first batch, once all replicas follow."""
        self._when = {"when": {"step": "follow", "broker": self.situation.partition.replicas[-1]}}
        yield from self._produce()

    def lines(self, step: Step) -> Iterator[Line]:
        """The lines of a step."""
        after = self._model.apply(step, self.situation)
        assert after is not None, step
        kept_out = _kept_out(after)
        yield from self._links(kept_out - self._cut, "cut")
        yield from self._act(step)
        yield from self._links(self._cut - kept_out, "heal")
        if step.kind == Kind.JOIN:
            self._when = {"after_ms": FETCH_MS}
        self._cut, self.situation = kept_out, after
        yield from self._produce()

    def _act(self, step: Step) -> Iterator[Line]:
        broker = step.brokers[0] if step.brokers else 0
        kind, when = step.kind, self._when
        self._when = {"after_ms": AFTER_MS}
        if kind == Kind.LOSE_POWER:
            yield {**when, "do": "power-loss", "brokers": [broker]}
            self._when = {"when": {"step": "session-end", "broker": broker}, "after_ms": AFTER_MS}
        elif kind == Kind.STOP:
            yield {**when, "do": "controlled-restart", "broker": broker}
            self._when = {"when": {"step": "shutdown", "broker": broker}, "after_ms": AFTER_MS}
        elif kind == Kind.START:
            yield {**when, "do": "start", "broker": broker}
            self._when = {"when": {"step": "unfenced", "broker": broker}, "after_ms": AFTER_MS}
        elif kind == Kind.MOVE:
            yield {**when, "do": "reassignment", "replicas": list(step.brokers)}
        elif kind == Kind.CANCEL:
            yield {**when, "do": "reassignment-cancel"}
        elif kind == Kind.ELECT:
            yield {**when, "do": "preferred-election"}
        elif kind == Kind.LEAVE:
            self._when = {"after_ms": LEAVE_MS}
        else:
            self._when = when

    def _links(self, brokers: set[int], action: str) -> Iterator[Line]:
        """Cut brokers off from all others, or heal their links, except to those that stay cut off."""
        cut = self._cut if action == "cut" else self._cut - brokers
        done: set[frozenset[int]] = set()
        for broker in sorted(brokers):
            for other, _ in self.situation.replicas:
                link = frozenset((broker, other))
                if other != broker and other not in cut and link not in done:
                    done.add(link)
                    for source, destination in ((broker, other), (other, broker)):
                        yield {**self._when, "do": action, "from": source, "to": destination}
                        self._when = {}

    def _produce(self) -> Iterator[Line]:
        """A batch that is acknowledged, if the ISR is large enough."""
        state = self.situation.partition
        is_active = state.leader > 0 and not self.situation.has_lost
        if not is_active or len(state.isr) < min(self._settings.min_isr, len(state.replicas)):
            return
        self._batches += 1
        name = f"m{self._batches}"
        yield {**self._when, "do": "produce", "batch": name}
        self._when = {"when": {"step": "ack", "batch": name}, "after_ms": AFTER_MS}

    @property
    def rest(self) -> Line:
        """A last line, which waits."""
        return {**self._when, "do": "wait"}


def _kept_out(situation: Situation) -> set[int]:
    """Live replicas outside the ISR."""
    state = situation.partition
    return {
        broker
        for broker, one in situation.replicas
        if one.machine == Machine.UP
        and broker in state.replicas
        and broker not in state.isr
        and broker != state.leader
    }
