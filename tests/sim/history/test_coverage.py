from __future__ import annotations

from sim.history import steps
from sim.history.coverage import _OF_ENDS, WAKE_US, Coverage
from sim.kernel.scheduler import ALWAYS, Kernel
from sim.protocol.decisions import Decisions, to_values
from sim.protocol.modes import MODES
from sim.protocol.probes import BRANCHES, CHECK, CHECKS, LEADER_BEGINS, PROBES, RULE_BRANCH, TRANSITIONS

KINDS = {"kill": 0, "cut": 1}


def bits(coverage: Coverage, effective: tuple[str, ...] = ()) -> str:
    """All bits, in three parts."""
    width = len(PROBES) + len(KINDS) * (1 + TRANSITIONS)
    return f"{coverage.bits(KINDS, effective):0{width}b}"


def wake(coverage: Coverage, kind: str) -> bool:
    """Whether a leader began in the wake of a kind of fault."""
    start = len(PROBES) + len(KINDS) + KINDS[kind] * TRANSITIONS
    return bits(coverage)[start + LEADER_BEGINS] == "1"


def wait(kernel: Kernel, for_us: int) -> None:
    kernel.call_at(kernel.now_us + for_us, ALWAYS, lambda _: None, None)
    kernel.run_until(kernel.now_us + for_us)


def test_each_end_that_can_lose_batches_has_a_probe() -> None:
    assert _OF_ENDS.keys() == {*steps.LOSSES}


def test_names_are_unique_and_numbers_dense() -> None:
    assert len({probe.name for probe in PROBES}) == len(PROBES)
    assert all(probe.meaning for probe in PROBES)
    assert sorted([*BRANCHES.values(), *CHECKS.values()]) == list(range(TRANSITIONS, len(PROBES)))
    assert [probe.group in (RULE_BRANCH, CHECK) for probe in PROBES] == [
        number >= TRANSITIONS for number in range(len(PROBES))
    ]


def test_a_branch_is_reached_if_its_rule_decided() -> None:
    coverage = Coverage(Kernel())
    decide = Decisions(MODES["hw"].rules)
    coverage.decisions.append(decide)
    assert "1" not in bits(coverage)
    decide.joins_at_epoch_start.yes()
    assert bits(coverage).count("1") == 1
    assert bits(coverage)[BRANCHES["isr_join", "high-watermark"]] == "1"
    assert to_values(coverage.decided) == {("isr_join", "leader-epoch-start")}


def test_coverage_begins_empty() -> None:
    assert "1" not in bits(Coverage(Kernel()))


def test_a_probe_is_one_bit() -> None:
    coverage = Coverage(Kernel())
    coverage.reached(LEADER_BEGINS)
    coverage.reached(LEADER_BEGINS)
    coverage.without_effect(coverage.strikes("kill"))
    coverage.strikes("cut")
    found = bits(coverage, effective=("cut",))
    assert [index for index, bit in enumerate(found) if bit == "1"] == [LEADER_BEGINS, len(PROBES) + 1]


def test_a_step_is_in_the_wake_of_the_last_fault_for_a_while() -> None:
    kernel = Kernel()
    coverage = Coverage(kernel)
    coverage.reached(LEADER_BEGINS)
    coverage.strikes("kill")
    assert not wake(coverage, "kill")
    wait(kernel, WAKE_US)
    coverage.reached(LEADER_BEGINS)
    assert wake(coverage, "kill")
    coverage.strikes("cut")
    wait(kernel, WAKE_US + 1)
    coverage.reached(LEADER_BEGINS)
    assert not wake(coverage, "cut")


def test_a_fault_without_effect_has_no_wake() -> None:
    coverage = Coverage(Kernel())
    coverage.strikes("kill")
    coverage.without_effect(coverage.strikes("cut"))
    coverage.reached(LEADER_BEGINS)
    assert wake(coverage, "kill")
    assert not wake(coverage, "cut")


def test_branches_are_in_no_wake() -> None:
    coverage = Coverage(Kernel())
    coverage.strikes("kill")
    coverage.reached(TRANSITIONS)
    assert bits(coverage).count("1") == 1
