from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from highwater.lab.audit.audit import audit, rules_of
from highwater.lab.audit.records import NO_LEADER
from highwater.lab.audit.situations import (
    Kind,
    Model,
    Settings,
    Situation,
    SituationChange,
    SituationMachine,
    SituationReplica,
    canonical,
    renamed,
    situation_of,
)
from highwater.lab.audit.stories import new_partition
from tests.highwater.lab.audit.logs import begun, change, fenced

if TYPE_CHECKING:
    from pathlib import Path


def model(release: str = "4.3.1", min_isr: int = 2) -> Model:
    _, rules = rules_of(release)
    return Model(Settings(rules, min_isr, elr=release != "3.9.0", unclean=False))


def after(one: Model, *steps: SituationChange) -> Situation:
    """The situation of a new partition of brokers 1 to 3 after some events; broker 4 is no replica."""
    here = one.after_acknowledgement(new_partition(range(1, 5), 3))
    for step in steps:
        found = one.apply(step, here)
        assert found is not None, step
        here = found
    return here


def log_of(situation: Situation, broker: int) -> SituationReplica:
    return dict(situation.replicas)[broker]


STOP_3, LOSE_1, START_1 = (
    SituationChange(Kind.STOP, (3,)),
    SituationChange(Kind.LOSE_POWER, (1,)),
    SituationChange(Kind.START, (1,)),
)


def test_a_clean_stop_flushes_and_a_power_loss_loses_what_was_not_flushed() -> None:
    one = model()
    stopped = after(one, STOP_3)
    assert (stopped.partition.isr, log_of(stopped, 3).machine) == ((1, 2), SituationMachine.STOPPED)
    assert not log_of(stopped, 3).complete, "a further record was acknowledged without broker 3"
    small = after(one, STOP_3, SituationChange(Kind.STOP, (2,)))
    assert (log_of(small, 2).complete, log_of(small, 2).flushed) == (True, True)
    lost = after(one, LOSE_1)
    assert (log_of(lost, 1).machine, log_of(lost, 1).complete) == (SituationMachine.LOST_POWER, False)
    assert lost.partition.leader == 2
    assert not lost.has_lost


def test_without_elr_the_last_isr_member_leads_with_what_it_has() -> None:
    alone = STOP_3, SituationChange(Kind.STOP, (2,)), LOSE_1, START_1
    assert after(model("3.9.0"), *alone).has_lost
    assert not after(model("4.3.1"), *alone).has_lost
    assert after(model("4.3.1"), *alone, SituationChange(Kind.START, (2,))).partition.leader == 2


def test_a_replica_that_left_while_down_deletes_its_log_when_it_starts() -> None:
    one = model("4.1.0")
    moved = after(one, STOP_3, SituationChange(Kind.MOVE, (1, 2, 4)), SituationChange(Kind.JOIN, (4,)))
    assert moved.partition.replicas == (1, 2, 4)
    assert log_of(moved, 4).complete
    returned = one.apply(SituationChange(Kind.START, (3,)), moved)
    assert returned is not None
    assert log_of(returned, 3) == SituationReplica(SituationMachine.UP, complete=False, flushed=False)


def test_what_the_controller_refuses_is_no_event() -> None:
    one = model()
    assert one.apply(SituationChange(Kind.CANCEL), after(one)) is None
    assert one.apply(SituationChange(Kind.MOVE, (1, 2, 3)), after(one)) is None


def test_the_situation_of_a_log(tmp_path: Path) -> None:
    log = begun()
    log.add(change(isr=[1, 2]), fenced(3, 5))
    found = audit([log.segment(tmp_path)])
    (key,) = found.image.partitions
    here = situation_of(found.image, key, found.facts[key])
    assert [(broker, replica.machine, replica.complete) for broker, replica in here.replicas] == [
        (1, SituationMachine.UP, True),
        (2, SituationMachine.UP, True),
        (3, SituationMachine.STOPPED, False),
    ]


@given(st.permutations((3, 5, 8, 9)), st.integers(0, 40))
def test_distances_do_not_depend_on_broker_ids(ids: list[int], seed: int) -> None:
    one = model()
    here = after(one)
    for number in range(seed % 4):
        steps = [*one.steps(here), *one.lagging(here)]
        here = steps[(seed * 7 + number) % len(steps)][1]
    other = renamed(here, dict(zip(range(1, 5), ids, strict=True)))
    numbered, names = canonical(other)
    spare_first = sorted(ids) != ids
    assert spare_first or numbered == canonical(here)[0]
    assert renamed(numbered, names).partition.replicas == other.partition.replicas
    assert (numbered.partition.leader == NO_LEADER) == (here.partition.leader == NO_LEADER)
