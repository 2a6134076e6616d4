"""Are the distances of ``highwater audit`` right?

For situations that random events lead to, under the rules of four releases:

- the story that each distance names is played by the simulation, and loses acknowledged records, or has no leader;
- an exhaustive search over all orders of events, without any pruning, finds nothing shorter;
- of random events, the simulation loses records exactly where the model of `highwater.lab.audit.situations` says so,
  and ends with the same leader, ISR and ELR.

    python -m tests.verification.distances [--partitions 50] [--walks 200] [--seed 1]
"""

from __future__ import annotations

import argparse
import random
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from highwater.lab.audit.audit import rules_of
from highwater.lab.audit.distance import Distances
from highwater.lab.audit.records import NO_LEADER
from highwater.lab.audit.results import told
from highwater.lab.audit.situations import Kind, Model, Settings, Situation, SituationChange, SituationMachine, Story
from highwater.lab.audit.stories import Approach, new_partition, scenario
from scenarios.format.schema import read
from scenarios.single.run import run
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Iterator

RELEASES = ("3.9.0", "4.1.0", "4.2.1", "4.3.1")
SHAPES = ((2, 1, 2), (3, 2, 3), (3, 2, 4), (3, 1, 3), (2, 2, 3))
"""Replicas, min.insync.replicas, brokers."""
MOST_EVENTS = 3
LOST = {"committed-loss"}


@dataclass
class Walk:
    """Random events from a new partition."""

    release: str
    settings: Settings
    start: Situation
    steps: tuple[SituationChange, ...]
    end: Situation

    def __str__(self) -> str:
        replicas = self.start.partition.replicas
        events = "; ".join(step.text for step in self.steps)
        shape = f"replicas {replicas} of {len(self.start.replicas)}, min ISR {self.settings.min_isr}"
        return f"{self.release}, {shape}: {events}"


def walk(release: str, seed: int, most: int) -> Walk:
    """A walk; it ends where a record is lost."""
    chance = random.Random(f"{release} {seed}")
    replicas, min_isr, brokers = chance.choice(SHAPES)
    _, rules = rules_of(release)
    settings = Settings(rules, min_isr, elr=release != "3.9.0", unclean=False)
    model = Model(settings)
    start = here = model.after_acknowledgement(new_partition(range(1, brokers + 1), replicas))
    steps: list[SituationChange] = []
    for _ in range(chance.randint(0, most)):
        choices = [*model.steps(here), *model.lagging(here)]
        kinds = sorted({step.kind for step, _ in choices}, key=lambda kind: kind.value)
        kind = chance.choice(kinds)
        step, here = chance.choice([choice for choice in choices if choice[0].kind == kind])
        steps.append(step)
        if here.has_lost:
            break
    return Walk(release, settings, start, tuple(steps), here)


def played(one: Walk, story: Story) -> dict[str, Any]:
    """The simulation's row and last state of the partition after the walk and the story."""
    mode = rules_of(one.release)[0].name
    approach = Approach(one.start, one.steps, {broker: broker for broker, _ in one.start.replicas})
    text = scenario("story-1", approach, story, one.settings, mode, "p-0")
    found = run(read(text, "story"), MODES[mode], 0, trace=True)
    if found.row["error"]:
        raise AssertionError(f"{text}\n{found.row['error']}")
    return {"kinds": set(found.row["violations"].split(",")), "verdict": found.row["verdict"], "trace": found.trace}


def is_shorter(model: Model, here: Situation, events: int) -> tuple[SituationChange, ...] | None:
    """A loss within so many events, by trying all orders of them; None if there is none."""
    for joined, joins in _joined(model, here):
        if joined.has_lost:
            return joins
        if events:
            for step, after in model.steps(joined):
                if step.kind != Kind.JOIN:
                    if after.has_lost:
                        return (*joins, step)
                    rest = is_shorter(model, after, events - 1)
                    if rest is not None:
                        return (*joins, step, *rest)
    return None


def _joined(model: Model, here: Situation) -> Iterator[tuple[Situation, tuple[SituationChange, ...]]]:
    """The situation, and those after some live replicas have joined the ISR, in any order."""
    yield here, ()
    for step, after in model.steps(here):
        if step.kind == Kind.JOIN:
            for joined, joins in _joined(model, after):
                yield joined, (step, *joins)


def check_distance(one: Walk) -> tuple[int, list[str]]:
    """Stories that were played, and what is wrong."""
    wrong = []
    distance = Distances(one.settings, MOST_EVENTS).of(one.end)
    stories = 0
    for story in distance.loss:
        stories += 1
        if not LOST & played(one, story)["kinds"]:
            wrong.append(f"{one}: {told(story)}: loses nothing")
    for story in distance.leaderless:
        stories += 1
        row = played(one, story)
        if row["verdict"] not in ("violation", "stalled"):
            wrong.append(f"{one}: {told(story)}: has a leader")
    shortest = distance.order[0]
    shorter = is_shorter(Model(one.settings), one.end, min(shortest, distance.within + 1) - 1) if shortest else None
    if shorter is not None:
        wrong.append(f"{one}: {[step.text for step in shorter]} is shorter")
    return stories, wrong


def check_walk(one: Walk) -> list[str]:
    """Whether the simulation ends as the model does."""
    loses = bool(LOST & played(one, Story(0, 0, ()))["kinds"])
    possible = ended(Model(one.settings), one.end)
    return [] if loses in possible else [f"{one}: the simulation {'loses' if loses else 'keeps'} the records"]


def ended(model: Model, here: Situation) -> set[bool]:
    """Whether a record is lost when all brokers start and join again, as at the end of a run, in any order."""
    if here.has_lost:
        return {True}
    down = [broker for broker, replica in here.replicas if replica.machine != SituationMachine.UP]
    further = [step for step, _ in model.steps(here) if step.kind == Kind.JOIN]
    further += [SituationChange(Kind.START, (broker,)) for broker in down]
    after = [found for step in further if (found := model.apply(step, here)) is not None]
    return {outcome for found in after for outcome in ended(model, found)} if after else {False}


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Run both; exit 1 if something is wrong."""
    parser = argparse.ArgumentParser(description="Are the distances of highwater audit right?")
    parser.add_argument("--partitions", type=int, default=50)
    parser.add_argument("--walks", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong: list[str] = []
    stories = losses = 0
    for number in range(options.partitions):
        one = walk(RELEASES[number % len(RELEASES)], options.seed + number, 3)
        if one.end.has_lost or one.end.partition.leader == NO_LEADER:
            one = Walk(one.release, one.settings, one.start, (), one.start)
        count, found = check_distance(one)
        stories += count
        wrong += found
    say(f"{options.partitions} distances: {stories} stories played; {len(wrong)} wrong")
    for number in range(options.walks):
        one = walk(RELEASES[number % len(RELEASES)], 1_000_000 + options.seed + number, 6)
        losses += one.end.has_lost
        wrong += check_walk(one)
    say(f"{options.walks} walks, {losses} with a loss; {len(wrong)} wrong in all")
    say("\n".join(wrong[:10]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
