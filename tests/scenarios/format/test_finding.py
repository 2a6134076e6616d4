"""The table ``[finding]``: what it refuses, and that it is about runs and changes none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from faults.kinds.registry import KINDS
from scenarios.format import catalogue
from scenarios.format.finding import GROUPS, FindingTable, HuntedIn, folded, pairs, repair_of
from scenarios.format.schema import of_store, read
from sim.errors import InputError

PLAIN = catalogue.text("canary")
FOUND = [name for name in catalogue.names() if catalogue.load(name).finding is not None]


def problems(table: str) -> tuple[str, ...]:
    with pytest.raises(InputError) as raised:
        read(f"{PLAIN}\n[finding]\n{table}", "f")
    return raised.value.problems


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("numbre = 1", "f: finding: unknown key 'numbre'; did you mean 'number'?"),
        ("kinds = []", "f: finding = {'kinds': []}: 'number' is missing, its place among the findings, or 'of', the "),
        ("number = 0", "f: finding.number = 0: input should be greater than or equal to 1"),
        (
            "number = 1",
            "f: finding: no rule value cures it: give 'repair', or one rule of a repaired mode in ",
        ),
        (
            "number = 1\nkinds = ['comitted-loss']",
            "f: finding.kinds = 'comitted-loss': no such kind of violation; did you mean 'committed-loss'?",
        ),
        (
            "number = 1\nneeds = [{ kinds = ['departure'] }]",
            "f: finding.needs.kinds = 'departure': no such fault kind; did you mean 'departures'?",
        ),
        (
            "number = 1\nneeds = [{ kind = ['kill'], kinds = ['kill'] }]",
            "f: finding.needs: unknown key 'kind'; did you mean 'kinds'?",
        ),
        (
            "number = 1\nrepair = { skiped_epoch = 'forgets-leo' }",
            "f: finding.repair: unknown rule 'skiped_epoch'; did you mean 'skipped_epoch'?",
        ),
        ("number = 1\nkafka = ['Partition.makeLeader']", "f: finding.kafka = 'Partition.makeLeader': "),
        (
            "number = 1\nhunt = { scenario = 'chaos', teir = 1 }",
            "f: finding.hunt: unknown key 'teir'; did you mean 'tier'?",
        ),
        (
            "number = 1\nwalks = { bound = { losses = 0 } }",
            "f: finding.walks: unknown key 'bound'; did you mean 'bounds'?",
        ),
    ],
)
def test_mistakes_are_named_with_the_nearest_word(table: str, problem: str) -> None:
    assert problems(table)[0].startswith(problem)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("relases = ['4.4.0']", "f: confirm: unknown key 'relases'; did you mean 'releases'?"),
        ("pace = 2", "f: confirm = {'pace': 2}: it has either 'releases', or 'without', the reason why there are none"),
        ("releases = ['4.x']", "f: confirm.releases = '4.x': string should match pattern"),
    ],
)
def test_mistakes_about_real_brokers_are_named(table: str, problem: str) -> None:
    with pytest.raises(InputError) as raised:
        read(f"{PLAIN.partition('[confirm]')[0]}\n[confirm]\n{table}", "f")
    assert raised.value.problems[0].startswith(problem)


def test_a_finding_is_no_part_of_what_a_scenario_runs() -> None:
    scenario = catalogue.load("canary")
    found = replace(scenario, finding=FindingTable(number=1, text="x"))
    assert found != scenario
    assert found.scenario_hash() == scenario.scenario_hash()
    assert "finding" not in scenario.to_json()


@pytest.mark.parametrize("name", FOUND)
def test_a_stored_finding_is_that_of_the_file(name: str) -> None:
    scenario = catalogue.load(name)
    assert of_store(json.loads(json.dumps(scenario.to_json()))) == scenario


def test_a_finding_in_full_survives_storing() -> None:
    text = """
number = 7
of = "other"
kinds = ["divergence"]
any_kind = true
needs = [{ kinds = ["kill", "delays"], least = 2 }]
repair = { skipped_epoch = "forgets-leo" }
also_by = { isr_join = "leader-epoch-start" }
not_by = { isr_join = ["high-watermark", "leader-epoch-start"] }
kafka = ["Partition#makeLeader"]
cause = '''
One
 line.'''
upstream = "None."
text = '''
- **Why.** x
'''
hunt = { scenario = "chaos", settings = { min.insync.replicas = 2 }, also_by = { elr = "on" }, lossy_ends = 0 }
walks = { bounds = { min-isr-changes = 1 }, strict = false }
"""
    scenario = read(f"{PLAIN}\n[finding]\n{text}", "f")
    table = scenario.finding
    assert table is not None
    assert of_store(json.loads(json.dumps(scenario.to_json()))) == scenario
    assert table.cause == "One line."
    assert table.hunt == HuntedIn("chaos", settings={"min.insync.replicas": 2}, also_by={"elr": ("on",)}, lossy_ends=0)
    assert table.needs[0].all_kinds == {"kill", *GROUPS["delays"]}
    assert pairs(table.not_by) == (("isr_join", "high-watermark"), ("isr_join", "leader-epoch-start"))


def test_the_repair_is_what_a_repaired_mode_has() -> None:
    broken_by = {"elr": {"elr": "off"}, "elr-repaired": {"skipped_epoch": "keeps-leo"}}
    assert repair_of(FindingTable(), broken_by) == ("skipped_epoch", "forgets-leo")
    assert repair_of(FindingTable(repair={"elr": "on"}), broken_by) == ("elr", "on")
    assert repair_of(FindingTable(), {"elr-repaired": {"elr": "off", "skipped_epoch": "keeps-leo"}}) is None
    assert repair_of(FindingTable(), {"elr": {"elr": "off"}}) is None


def test_groups_are_made_of_kinds_of_faults() -> None:
    assert frozenset().union(*GROUPS.values()) <= set(KINDS)
    assert not GROUPS.keys() & KINDS.keys()
    assert all(GROUPS.values())


def test_a_paragraph_is_one_line() -> None:
    assert folded("a\n  b\n") == "a b"
