"""What was asked of rules, and against which values they decided."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from sim.protocol import decisions
from sim.protocol.decisions import VALUES, Choice, Decision, Decisions, decided, replaced, to_values
from sim.protocol.messages import NO_EPOCH
from sim.protocol.modes import MODES
from sim.protocol.rules import RULES, Rules
from tests.sim.protocol.controlling import Store, World
from tests.sim.protocol.recording import Recorder, decision, filled, partition, produce

ELR = MODES["elr"].rules
SIM = Path(decisions.__file__).parents[1]


def attributes(kind: type[Decision | Choice]) -> list[str]:
    return [name for name, value in vars(Decisions(ELR)).items() if isinstance(value, kind)]


def asked_in_sim() -> set[str]:
    """Names of decisions whose ``yes``, ``note`` or ``pick`` is called, or that are handed to who calls it."""
    found = set[str]()
    for file in SIM.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and file.name != "decisions.py":
                inner = node.value
                if isinstance(inner, ast.Attribute) and node.attr in ("yes", "note", "pick"):
                    found.add(inner.attr)
                if getattr(inner, "attr", getattr(inner, "id", "")) in ("decide", "_decide"):
                    found.add(node.attr)
    return found


def test_each_decision_is_asked_somewhere() -> None:
    names = {*attributes(Decision), *attributes(Choice)}
    assert names - asked_in_sim() == set()


def test_each_rule_is_asked_by_something() -> None:
    table = Decisions(ELR)
    for name in attributes(Decision):
        getattr(table, name).note()
    for name in attributes(Choice):
        choice = getattr(table, name)
        choice.pick({value: value for value in RULES[choice.rule].values})
    assert table.parted() == {(rule, value) for rule, value in VALUES if getattr(ELR, rule) != value}


@pytest.mark.parametrize("name", attributes(Decision))
def test_a_decision_parts_the_values_that_answer_otherwise(name: str) -> None:
    for mode in MODES.values():
        table = Decisions(mode.rules)
        own = getattr(table, name).yes()
        found = table.parted()
        assert len({rule for rule, _ in found}) == 1
        for rule, value in found:
            assert getattr(Decisions(mode.rules.override({rule: value})), name).answer is not own


def test_what_was_not_asked_parts_nothing() -> None:
    table = Decisions(ELR)
    assert table.elr.answer
    assert table.last_known_elr.pick({"leader": 1, "lost-leader": 1, "ejected-members": 1}) == 1
    assert table.parted() == set()


def test_a_choice_parts_the_values_with_another_answer() -> None:
    table = Decisions(ELR)
    assert table.last_known_elr.pick({"leader": (1,), "lost-leader": (1,), "ejected-members": ()}) == (1,)
    assert table.parted() == {("last_known_elr", "ejected-members")}


def test_a_query_is_taken_once_and_stays_among_those_that_parted() -> None:
    table = Decisions(ELR)
    last_known = replaced(ELR, ELR.override({"last_known_elr": "ejected-members"}))
    assert not table.take(last_known)
    table.last_known_elr.pick({"leader": (1,), "lost-leader": (1,), "ejected-members": ()})
    parted = table.parted()
    assert table.take(last_known)
    assert not table.take(last_known)
    assert table.parted() == parted == {("last_known_elr", "ejected-members")}
    table.elr.yes()
    assert not table.take(last_known)
    assert table.parted() > parted


def test_with_several_sets_of_rules_a_rule_decides_as_a_whole() -> None:
    one, other = Decisions(ELR), Decisions(MODES["kraft"].rules)
    one.elr.yes()
    assert to_values(decided([one])) == {("elr", "off")}
    assert to_values(decided([one, other])) == {("elr", "off"), ("elr", "on")}
    assert decided([]) == 0
    assert (one.decided(), other.decided()) == (["elr"], [])


def test_a_shared_epoch_truncates_alike_for_all_rule_values() -> None:
    host = Recorder()
    one = filled(host, {1: 3, 4: 2}, MODES["kip279"].rules, hw=5)
    one.become_leader(decision(epoch=5), 0)
    assert one.end_offset_for(NO_EPOCH, 4, with_epoch=True) == ("", 4, 5)
    assert ("follower_truncation", "leader-epoch") not in host.decide.parted()
    assert one.end_offset_for(NO_EPOCH, 3, with_epoch=True) == ("", 1, 3)
    assert ("follower_truncation", "leader-epoch") in host.decide.parted()


def test_a_small_isr_decides_only_where_the_hw_would_move() -> None:
    host = Recorder()
    one = partition(host, min_insync_replicas=2)
    one.become_leader(decision(isr=(1,)), 0)
    assert ("hw_needs_min_isr", "yes") not in host.decide.parted()
    one.produce(produce(0, acks=1), 0)
    assert ("hw_needs_min_isr", "yes") in host.decide.parted()


def test_a_new_controller_tells_replicas_with_or_without_a_new_epoch() -> None:
    leaderless = World(Store(0, (1,), registered={})).elected()
    assert ("registration_epoch", "bumped") not in leaderless.decide.parted()
    led = World(Store(1, (1,), registered={1: 11})).elected()
    assert ("registration_epoch", "bumped") in led.decide.parted()


def test_each_decision_depends_on_one_rule() -> None:
    """Found by trying each value alone; the numbers that runs use were found by trying many rules at once."""
    first = Rules.of({name: spec.values[0] for name, spec in RULES.items()})
    tried = {value: Decisions(first.override(dict([value]))).answers() for value in decisions.VALUES}
    for place, (agreeing, others) in enumerate(decisions._questions()):
        yes = {value for value, answers in tried.items() if answers[place]}
        (rule,) = {rule for rule, _ in to_values(agreeing | others)}
        assert to_values(agreeing) == {value for value in yes if value[0] == rule}
        assert to_values(others) == {value for value in tried if value[0] == rule} - yes
        assert len({tried[value][place] for value in tried if value[0] != rule}) == 1
