"""An advice compares changes of one setting, and releases, on the same seeds."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest

from faults.kinds.injection import RealisedFault
from faults.plan import Fault
from highwater.cli.cluster import ignored
from highwater.lab.advise.answers import Answers, complete
from highwater.lab.advise.experiment import ELR, PRESENT, Change, ExperimentCell, ExperimentOutcome, design, waves
from highwater.lab.advise.findings import (
    Loss,
    _struck,
    advised,
    findings,
    price,
    recommendations,
    rows,
    shortest_loss,
    shown_with_elr,
    unsaving,
)
from highwater.lab.advise.incidents import exposure
from highwater.lab.advise.rates import find as find_rates
from scenarios.campaign.runner import LocalRunner
from scenarios.format.schema import read
from scenarios.properties import known
from scenarios.properties.cluster import ClusterSettings
from scenarios.properties.releases import find
from scenarios.single import recording
from scenarios.single.run import run
from sim.config import NEVER
from sim.errors import InputError
from sim.protocol.modes import MODES
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sim.config import Value
    from tests.conftest import Call

FEATURE = "with the feature eligible.leader.replicas.version=1, which an upgrade does not turn on (kafka-features.sh)"
RACKS = complete({"together": "rack"})


def outcome(lost: dict[tuple[str, str], list[bool]], settings: dict[str, object] | None = None) -> ExperimentOutcome:
    """Made-up runs; cells that are not given lose nothing."""
    experiment = design(RACKS, {"min.insync.replicas": 2, **(settings or {})}, find("3.9"))  # type: ignore[dict-item]
    size = len(next(iter(lost.values())))
    cells = {
        (change.name, mode.name): ExperimentCell(
            lost.get((change.name, mode.name), [False] * size), window_ms=1, acked=1
        )
        for change in experiment.changes
        for mode in experiment.modes
    }
    return ExperimentOutcome(experiment, size, cells, [])


def test_each_change_is_of_one_setting_that_kafka_accepts() -> None:
    experiment = design(RACKS, {"min.insync.replicas": 2}, find("3.9"))
    assert [dict(change.settings) for change in experiment.changes] == [
        {},
        {"log.flush.interval.messages": 1},
        {"min.insync.replicas": 3},
        {"min.insync.replicas": 1},
        {"default.replication.factor": 4},
        {"unclean.leader.election.enable": True},
    ]
    assert {"eligible.leader.replicas.version": 0} in [change.settings for change in design(RACKS, {}, None).changes]
    assert [mode.name for mode in experiment.modes] == ["kraft", "elr", "elr-4.3"]
    assert {"acks": "all"} in [change.settings for change in design(RACKS, {"acks": "1"}, None).changes]


def test_a_further_rack_is_a_change_where_replicas_share_one() -> None:
    two = design(complete({"together": "rack", "racks": 2}), {"min.insync.replicas": 2}, find("3.9"))
    third = two.changes[-1]
    assert (third.name, third.advised) == ("racks = 3", "Spread the brokers over 3 racks")
    before, after = two.scenario, two.variant(third)
    assert before.topology is not None
    assert after.topology is not None
    assert (len(before.topology.racks), len(after.topology.racks)) == (2, 3)
    assert (len(before.topology.power_domains), len(after.topology.power_domains)) == (2, 3)
    assert (after.config, after.brokers) == (before.config, before.brokers)
    for answers in (RACKS, complete({"together": "nothing", "racks": 2})):
        assert not any(change.racks for change in design(answers, {}, None).changes)


def test_losses_a_year_of_advised_changes_have_their_own_cluster() -> None:
    now, flushed = (PRESENT, "kraft"), ("log.flush.interval.messages = 1", "kraft")
    found = outcome({now: [True] * 30, flushed: [False] * 30, (PRESENT, "elr"): [False] * 30})
    told = advised(found)
    assert {flushed, (PRESENT, "elr")} <= {(change.name, mode.name) for _, change, mode in told}
    assert now not in {(change.name, mode.name) for _, change, mode in told}
    rates = exposure(found.experiment, find_rates("published", RACKS)).rates
    for _, change, mode in told:
        changed = exposure(found.experiment, rates, change, mode)
        assert changed.mode is mode
        assert change.settings.items() <= changed.scenario.config.items()
        assert changed.scenario.brokers == 3 + (change.settings.get("default.replication.factor") == 4)


def test_zookeeper_releases_are_compared_with_newer_ones() -> None:
    experiment = design(RACKS, {}, find("2.1"))
    assert [mode.name for mode in experiment.modes] == ["kip320-2.1", "kip320-2.6.1", "kraft", "elr-4.3"]
    assert experiment.scenario.config["zookeeper.session.timeout.ms"] == 6_000
    assert Change({"acks": "all"}) in experiment.changes


@pytest.mark.parametrize(
    ("answers", "kinds"),
    [
        (Answers(together="nothing", racks=1, restarts=0), {"kill", "power-loss", "cut"}),
        (RACKS, {"kill", "power-loss", "cut", "power-domain-loss", "rack-cut", "controlled-restart"}),
        (
            Answers(together="everything", moves=1),
            {"power-domain-loss", "reassignment", "rack-cut", "controlled-restart"},
        ),
    ],
)
def test_the_scenario_has_the_faults_of_the_answers(answers: Answers, kinds: set[str]) -> None:
    experiment = design(answers, {}, None)
    assert experiment.scenario.faults is not None
    assert kinds <= set(experiment.scenario.faults.kinds)
    assert read(experiment.text, "advice.toml") == experiment.scenario
    assert experiment.scenario.config["log.flush.interval.messages"] == NEVER


def test_present_settings_come_first_and_pairs_are_counted() -> None:
    now, flush = [True] * 10 + [False] * 10, "log.flush.interval.messages = 1"
    found = outcome({(PRESENT, "kraft"): now, (flush, "kraft"): [False] * 19 + [True]})
    first, other = findings(found)[0], next(finding for finding in findings(found) if finding.change == flush)
    assert (first.change, first.mode, first.lost, first.p) == (PRESENT, "kraft", 10, 1)
    assert (other.lost, other.saved, other.cost) == (1, 10, 1)
    assert other.p == pytest.approx(12 * 2 / 2**11)
    assert [other.is_shown(comparisons) for comparisons in (1, 4, 5)] == [True, True, False]


def listed(release: str) -> int:
    """How many rows of FINDINGS.md concern a release."""
    page = (ROOT / "highwater" / "lab" / "confirm" / "FINDINGS.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `[a-z0-9-]+`.*? \| ([\d.]+)(?: to ([\d.]+))? \| ", page, re.MULTILINE)
    place = known.minors().index
    return sum(place(first) <= place(release) <= place(last or first) for first, last in rows)


def test_findings_of_releases_with_elr_are_those_of_the_page() -> None:
    assert [shown_with_elr(MODES[mode]) for mode in ("elr", "elr-4.3")] == [listed("4.1"), listed("4.3")]
    assert listed("4.3") > listed("4.1") > listed("3.9") > 0


def test_a_fault_of_a_group_strikes_all_its_brokers() -> None:
    scenario = design(RACKS, {}, find("3.9")).scenario
    assert scenario.topology is not None
    domain = next(group for group in scenario.topology.power_domains.values() if len(group) > 1)

    def struck(kind: str, *targets: int, effective: bool = True) -> set[int]:
        return _struck(scenario, [RealisedFault(Fault(kind, 0, targets), targets, 0, effective)])

    assert struck("power-domain-loss", domain[0]) == {*domain}
    assert struck("power-loss", domain[0]) == {domain[0]}
    assert struck("cut", 0, 2) == {2}
    assert struck("kill", 1, effective=False) == set()


def test_advice_names_single_changes_that_are_shown_to_help_or_harm() -> None:
    now = [True] * 10 + [False] * 10
    flush, unclean = "log.flush.interval.messages = 1", "unclean.leader.election.enable = true"
    cells = {(change.name, mode.name): now for change in outcome({("", ""): now}).experiment.changes
             for mode in outcome({("", ""): now}).experiment.modes}  # fmt: skip
    cells |= {(flush, "kraft"): [False] * 20, (unclean, "kraft"): [True] * 20, (PRESENT, "elr"): [False] * 20}
    cells |= {(flush, "elr"): [False] * 20}
    lines = recommendations(outcome(cells))
    assert [line.partition(":")[0] for line in lines] == [
        f"Run Kafka 4.1.2 (simulated as 4.1.0, mode elr, {FEATURE})",
        "Set log.flush.interval.messages = 1",
        "Do not set unclean.leader.election.enable = true",
    ]
    assert lines[0].endswith(f"FINDINGS.md: {listed('4.1')} findings of Kafka 4.1 with ELR")
    assert "an fsync for each batch" in lines[1]
    assert "FINDINGS" not in lines[1]


def test_advice_does_not_claim_what_is_not_shown() -> None:
    few = outcome({(PRESENT, "kraft"): [True, True, False]})
    assert recommendations(few) == ["No single setting and no release is shown to help; more --seeds may decide"]
    (none,) = recommendations(outcome({(PRESENT, "kraft"): [False] * 20}))
    assert none.startswith(
        "The present settings lose nothing in 20 runs with Kafka 3.9.0: at most 16.8 % of such runs do"
    )


def test_every_change_has_a_price() -> None:
    found = outcome({(PRESENT, "kraft"): [True]})
    assert [price(found, change) == "" for change in found.experiment.changes] == [True] + [False] * 5
    assert price(found, Change({"min.insync.replicas": 3})) == (
        "writes with acks=all fail while any of 3 replicas is outside the ISR"
    )
    assert price(found, Change({"min.insync.replicas": 2})) == (
        "writes with acks=all fail while 2 replicas of 3 or more are outside the ISR"
    )
    assert "left the ISR" not in price(found, Change({"min.insync.replicas": 1}))


def test_settings_without_effect_are_left_out() -> None:
    given: dict[str, Value] = {"zookeeper.session.timeout.ms": 9_000, "broker.session.timeout.ms": 10_000}
    found = design(RACKS, given, find("3.9"))
    assert found.idle == ("zookeeper.session.timeout.ms",)
    assert "zookeeper.session.timeout.ms" not in found.scenario.config
    assert "zookeeper.session.timeout.ms" not in found.text
    assert design(RACKS, given, find("2.6")).idle == ()


def test_runs_are_those_of_the_scenario_on_the_same_seeds() -> None:
    experiment = design(RACKS, {"min.insync.replicas": 2}, find("3.9"))
    *_, last = waves(experiment, 3, 1, LocalRunner())
    assert last.seeds == 3
    change, mode = experiment.changes[1], experiment.modes[1]
    rows = [run(experiment.variant(change), mode, seed).row for seed in range(3)]
    assert last.cell(change, mode).lost == [row["records_lost"] > 0 for row in rows]
    assert last.cell(change, mode).acked == sum(row["batches_acked"] for row in rows)


@pytest.mark.world
def test_the_shortest_loss_still_loses_with_the_present_settings(tmp_path: Path) -> None:
    experiment = design(RACKS, {"min.insync.replicas": 2}, find("3.9"))
    *_, last = waves(experiment, 6, 1, LocalRunner())
    found = shortest_loss(last)
    assert found is not None
    assert any("loses power" in line for line in found.story)
    file = tmp_path / "loss.json"
    file.write_text(found.plan)
    recorded = recording.read(file)
    assert recorded.scenario.config["min.insync.replicas"] == 2
    assert recorded.scenario.config["default.replication.factor"] == 3
    assert recorded.mode is not None
    assert recorded.scenario.recorded is not None
    assert recorded.scenario.recorded.keeps_cluster
    assert run(recorded.scenario, recorded.mode, found.seed).row["records_lost"] > 0


@pytest.mark.world
def test_without_time_the_loss_is_not_made_smaller() -> None:
    *_, last = waves(design(RACKS, {"min.insync.replicas": 2}, find("3.9")), 6, 1, LocalRunner())
    found = shortest_loss(last, time.monotonic())
    assert found is not None
    assert not found.is_whole
    whole = shortest_loss(last)
    assert whole is not None
    assert (whole.is_whole, whole.size < found.size) == (True, True)


def test_settings_with_which_kafka_does_not_start_are_refused() -> None:
    with pytest.raises(InputError, match="an idempotent producer needs acks=all"):
        design(RACKS, {"acks": "1", "enable.idempotence": True}, None)


def test_the_command_prints_the_table_and_writes_files(highwater: Callable[..., Call], tmp_path: Path) -> None:
    server = tmp_path / "server.properties"
    server.write_text("broker.id=1\nmin.insync.replicas=2\ndefault.replication.factor=3\nssl.key.password=hunter2\n")
    words = ("advise", "--server-properties", server, "--release", "3.9", "--together", "rack", "--seeds", 2)
    called = highwater(*words, "--output", tmp_path / "out")
    assert called.code == 0
    assert "replicas = 3, racks = 3, together = rack" in called.out
    assert "not answered, and taken as: racks = 3, return_s = 60" in called.err
    assert "No file sets broker.rack: Kafka places replicas without regard to racks then" in called.out
    scenario = tmp_path / "out" / "advice.toml"
    assert f"highwater sweep {scenario} --modes kraft,elr,elr-4.3 --seeds 0..2 " in called.out
    assert "enable.idempotence = true" in called.out
    assert "(Highwater's default: false)" not in called.out
    assert "Brokers: rack r1: 1, 4; rack r2: 2; rack r3: 3; without a replica at first: 4" in called.out
    assert highwater("scenarios", "validate", scenario).code == 0
    assert "hunter2" not in called.out + called.err + (tmp_path / "out" / "advice.toml").read_text()
    server.write_text(f"{server.read_text()}broker.rack=a\n")
    other = tmp_path / "other.properties"
    other.write_text(server.read_text().replace("rack=a", "rack=b"))
    found = highwater(*words, "--server-properties", other, "--json").json
    assert found["answers"]["racks"] == 2
    assert found["settings"]["min.insync.replicas"] == 2
    assert len(found["table"]) == 7 * 3  # One of the changes is a third rack.


ASSUMED = "is assumed: new clusters of Kafka 4.1 and later have it on, upgraded ones keep it off"


@pytest.mark.parametrize(
    ("release", "settings", "said"),
    [
        ("4.1", {}, f"eligible.leader.replicas.version = 1 {ASSUMED}"),
        ("4.0", {}, "eligible.leader.replicas.version = 1 is assumed from Kafka 4.1.0 on: new clusters"),
        (None, {}, f"eligible.leader.replicas.version = 1 {ASSUMED}"),
        ("3.9", {}, "eligible.leader.replicas.version = 1 is assumed from Kafka 4.1.0 on: new clusters"),
        ("4.1", {"eligible.leader.replicas.version": 0}, ""),
        ("3.9", {"eligible.leader.replicas.version": 0}, ""),
    ],
)
def test_what_is_assumed_of_elr_is_said(release: str | None, settings: dict[str, Value], said: str) -> None:
    experiment = design(RACKS, settings, None if release is None else find(release))
    assert experiment.elr.startswith(said)
    assert bool(experiment.elr) == bool(said)
    other = [change.short for change in experiment.changes if change.short.startswith("elr = ")]
    assert all(f"the rows '{name}' are the other case" in experiment.elr for name in other if said)


def test_the_feature_is_an_option(highwater: Callable[..., Call]) -> None:
    words = ("advise", "--release", "4.1", "--replicas", 2, "--seeds", 2, "--json")
    default, on, off = (highwater(*words, *elr).json for elr in ((), ("--elr", "on"), ("--elr", "off")))
    assert [note for note in default["notes"] if "is assumed" in note] == default["notes"][-1:]
    assert not [note for note in [*on["notes"], *off["notes"]] if "is assumed" in note]
    assert default["table"] == on["table"]
    changed = "eligible.leader.replicas.version = "
    rows = [{(one["change"], one["mode"]): one["lost"] for one in found["table"]} for found in (on, off)]
    assert rows[0][f"{changed}0", "elr"] == rows[1][PRESENT, "elr"]
    assert rows[1][f"{changed}1", "elr"] == rows[0][PRESENT, "elr"]
    assert off["settings"]["eligible.leader.replicas.version"] == 0


def test_an_upgrade_without_the_feature_is_not_advised_for_it() -> None:
    made = outcome({(PRESENT, "kraft"): [True] * 20, (PRESENT, "elr"): [False] * 20}, {ELR: 0})
    assert recommendations(made)[0].startswith("Run Kafka 4.1.2 (simulated as 4.1.0, mode elr): ")
    assert recommendations(made)[0].endswith(
        "First read highwater/lab/confirm/FINDINGS.md: how each release can lose records"
    )


def test_releases_that_agree_on_every_seed_are_one_row() -> None:
    now, flush = [True, False], "log.flush.interval.messages = 1"
    cells = {(PRESENT, mode): now for mode in ("kraft", "elr", "elr-4.3")}
    cells |= {(flush, "kraft"): now, (flush, "elr"): [False, True], (flush, "elr-4.3"): now}
    told = rows(outcome(cells), lambda cell: cell.lost)
    assert [(row.change.short, row.releases, row.found.mode) for row in told[:3]] == [
        ("as it is", "3.9 to 4.3", "kraft"),
        ("flush = 1", "3.9, 4.3", "kraft"),
        ("flush = 1", "4.1", "elr"),
    ]


@pytest.mark.parametrize("release", ["2.1", "3.9", "4.1"])
def test_the_tables_fit_80_columns(release: str, highwater: Callable[..., Call]) -> None:
    called = highwater("advise", "-q", "--release", release, "--together", "rack", "--racks", 2, "--seeds", 2)
    lines = called.out.splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("2 seeds, each with every change"))
    end = lines.index("Prices that the table does not show")
    assert max(map(len, lines[begin:end])) <= 80
    assert [line.split()[:3] for line in lines[begin:end] if line.startswith("change ")] == [
        ["change", "release", "lose"],
        ["change", "release", "no"],
    ]


def test_what_has_no_effect_is_told(highwater: Callable[..., Call], tmp_path: Path) -> None:
    file, other = tmp_path / "a.properties", tmp_path / "b.properties"
    lines = "broker.id=1\nmin.insync.replica=hunter2\nuncleen.leader.election.enable=true\nlinger.ms=1234567\n"
    rest = "broker.rack=a\nmin.insync.replicas=2\nnum.io.threads=8\ndefault.replication.factor=3\nacks=1\n"
    file.write_text(lines + rest)
    other.write_text("broker.id=2\nbroker.rack=b\nmin.insync.replicas=1\n")
    words = ("--server-properties", file, "--server-properties", other, "--racks", 1, "--replicas", 2, "--seeds", 1)
    notes = highwater("advise", "-q", *words, "--json").json["notes"]
    keys = [note.removeprefix(f"{file}, line ") for note in notes[:3]]
    assert keys[0] == "2: min.insync.replica, which is not used: no release has it; did you mean min.insync.replicas?"
    assert keys[1].endswith("did you mean unclean.leader.election.enable?")
    assert keys[2] == "9: acks, which is not used: a key of a producer, which a broker does not read"
    assert notes[-1].startswith("eligible.leader.replicas.version = 1 is assumed")
    assert notes[3:-1] == [
        f"files set min.insync.replicas differently (2 in {file}, 1 in {other}); the last one counts",
        "replicas = 2, as you answer, although the files have default.replication.factor = 3",
        "racks = 1, as you answer, although the files have 2 values of broker.rack",
    ]
    assert not any(secret in "".join(notes) for secret in ("hunter2", "1234567"))


def test_at_most_ten_keys_without_effect_are_named(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("broker.id=1\n" + "".join(f"un.known{'x' * size}.key=1\n" for size in range(12)) + "listners=x\n")
    lines = ignored(ClusterSettings.of([file], None))
    assert "listners, which is not used: no release has it; did you mean listeners?" in lines[0]
    assert (len(lines), lines[-1]) == (11, f"and 3 more: highwater settings {file}")


def test_losses_with_acks_1_name_their_column(highwater: Callable[..., Call], tmp_path: Path) -> None:
    words = ("advise", "-q", "--replicas", 1, "--racks", 1, "--restarts", 0, "--seeds", 1, "--output", tmp_path)
    assert "acks1_lost" not in highwater(*words).out
    producer = tmp_path / "producer.properties"
    producer.write_text("bootstrap.servers=x\nacks=1\n")
    called = highwater(*words, "--server-properties", producer)
    assert called.out.rstrip().splitlines()[-1].endswith("the table's losses are the rows with acks1_lost > 0")


def test_a_budget_without_effect_is_told(highwater: Callable[..., Call]) -> None:
    words = ("advise", "--replicas", 1, "--racks", 1, "--restarts", 0, "--seeds", 1)
    assert "--budget has no effect: --seeds fixes the work" in highwater(*words, "--budget", "1s").err
    assert "--budget" not in highwater(*words).err


def test_one_seed_is_singular(highwater: Callable[..., Call]) -> None:
    called = highwater("advise", "-q", "--replicas", 1, "--racks", 1, "--seeds", 1)
    assert called.code == 0
    assert "1 seed, each with every change" in called.out
    assert "Brokers: rack r1: 1, 2; without a replica at first: 2" in called.out


def test_a_loss_that_a_change_does_not_save_is_told() -> None:
    flush = "log.flush.interval.messages = 1"
    made = outcome({(PRESENT, "kraft"): [True, True], (flush, "kraft"): [False, True]})
    assert unsaving(made, Loss(1, 1, 1, (), "")) == f"These changes save other seeds, but not this one: {flush}"
    assert unsaving(made, Loss(0, 1, 1, (), "")) == ""


@pytest.mark.parametrize(
    "words",
    [
        ("--replicas", "many"),
        ("--together", "all"),
        ("--return", "0"),
        ("--budget", "soon"),
        ("--answers", "none.toml"),
        ("--unclean", "maybe"),
    ],
)
def test_bad_options_are_one_line_and_exit_2(highwater: Callable[..., Call], words: tuple[str, ...]) -> None:
    called = highwater("advise", *words)
    assert (called.code, called.out, called.err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    ("line", "words", "problem"),
    [
        ("acks=all", ("--return", "0"), "--return '0' is not valid: a whole number of at least 1"),
        ("default.replication.factor=9", (), "{file}: default.replication.factor = '9' is not valid: a whole number"),
        ("min.insync.replicas=${env:MISR}", (), "give it in a further --server-properties FILE"),
        ("log.flush.interval.messages=${env:F}", (), "give it with --flush"),
    ],
)
def test_errors_name_what_the_user_can_change(
    highwater: Callable[..., Call], tmp_path: Path, line: str, words: tuple[str, ...], problem: str
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"broker.id=1\n{line}\n")
    called = highwater("advise", "-q", "--server-properties", file, *words, "--seeds", 1)
    assert (called.code, called.out, called.err.count("\n")) == (2, "", 1)
    assert problem.format(file=file) in called.err


def test_more_racks_than_brokers_with_replicas_are_told(highwater: Callable[..., Call]) -> None:
    notes = highwater("advise", "-q", "--replicas", 1, "--racks", 4, "--seeds", 1, "--json").json["notes"]
    assert notes[0] == "4 racks need as many brokers, so 3 have no replica at first; faults strike them, too"
    assert len(notes) == 2
