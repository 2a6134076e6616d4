from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from highwater.cli import outcome
from highwater.cli.main import main
from scenarios.format import catalogue
from sim import exit_codes
from sim.protocol.modes import MODES
from tests.named import run_row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

ENDS = ("above", "below", "equal")
REPAIRED = ["--rule", "follower_truncation=leader-epoch"]


def test_the_canary_loses_data_as_expected(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "canary")
    assert call.code == 0
    assert call.err == ""
    first = call.out.splitlines()[0]
    assert first.startswith("canary, mode hw, seed 0: acknowledged record LOST (committed-loss")
    assert "). Expected here: Kafka 0.10.2 has this bug" in first
    assert call.out.splitlines()[-1] == first.partition(": ")[2]
    for words in ("Story", "ack batch=m1", "Violations", "inside", "Faults", "kill  targets=1", "Replicas at the end"):
        assert words in call.out


def test_only_unexpected_kinds_are_named(highwater: Callable[..., Call], tmp_path: Path) -> None:
    """A kind of a checker that no scenario names, beside those of [[also]]."""
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from highwater.plugin import *\nAPI_VERSION = 1\n"
        "class Mine(Checker):\n"
        "    FINDINGS = (Finding('mine', 'always'),)\n"
        "    def final(self, end):\n"
        "        self._violates('mine', end.now_us, 'x')\n"
        "PLUGIN = Plugin(checkers=[Mine])\n"
    )
    call = highwater("run", "kip101-scenario-1", "--mode", "hw", "--plugin", plugin)
    assert call.code == 1
    assert "the scenario expects violates:committed-loss; it had that, and mine, which neither " in call.out


def test_the_repaired_canary_is_a_failure(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "canary", *REPAIRED)
    assert call.code == 1
    assert "no violation, NOT as expected. Mode hw promises to survive these faults" in call.out
    assert "the scenario expects violates:committed-loss" in call.out
    assert "--rule follower_truncation=leader-epoch --expect-digest" in call.out


def test_json_is_one_object(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "kip101-scenario-1", "--json")
    assert call.code == call.json["exit_code"] == 0
    assert [run["row"]["mode"] for run in call.json["runs"]] == [
        "hw",
        "kip101",
        "kip279",
        "kip320",
        "kraft",
        "elr",
        "elr-recovery",
    ]
    assert call.json["schema_version"] == 1
    hw = call.json["runs"][0]
    assert hw["row"]["verdict"] == "violation"
    assert hw["violations"][0].keys() == {"kind", "inside", "at_us", "detail"}
    assert hw["replicas"][0]["batches"]


def test_the_worst_run_decides(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "kip101-scenario-1", *REPAIRED, "--json")
    assert [run["row"]["expected"] for run in call.json["runs"]] == [False] + 6 * [True]
    assert call.code == 1


def test_a_mode_without_expectation_may_violate(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "canary", "--mode", "kip101", "--json")
    assert call.code == 0
    assert call.json["runs"][0]["row"]["verdict"] == "ok"


def test_all_modes(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "canary", "--all-modes", "--json")
    assert [run["row"]["mode"] for run in call.json["runs"]] == list(MODES)


@pytest.mark.parametrize("words", [("run",), ("replay", "--seed", "1"), ("sweep", "--seeds", "0..2", "--local", "1")])
def test_control_planes_do_not_mix(highwater: Callable[..., Call], tmp_path: Path, words: tuple[str, ...]) -> None:
    command, *options = words
    option = "--modes" if command == "sweep" else "--mode"
    folder = [] if command == "run" else ["--output", tmp_path / "out"]
    call = highwater(command, "mixed-versions", option, "kraft", *options, *folder)
    assert (call.code, call.out) == (2, "")
    assert call.err.startswith("highwater: mixed-versions does not run in kraft: its broker 2 is in mode hw")
    assert call.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [("run",), ("replay", "--seed", "1"), ("sweep", "--seeds", "1..2", "--local", "1")])
def test_settings_without_effect_in_the_mode_are_noted(
    highwater: Callable[..., Call], tmp_path: Path, words: tuple[str, ...]
) -> None:
    command, *options = words
    mode = ("--modes" if command == "sweep" else "--mode", "kraft")
    asked = ("--rule", "missed_bounce=noticed", "--set", "zookeeper.session.timeout.ms=9000")
    folder = () if command == "run" else ("--output", tmp_path / "out")
    call = highwater(command, "canary", *mode, *asked, *options, *folder)
    lines = [
        "rule missed_bounce has no effect in kraft: it needs control_plane=zookeeper",
        "setting zookeeper.session.timeout.ms has no effect in kraft: it needs control_plane=zookeeper",
    ]
    assert [line for line in call.err.splitlines() if "has no effect" in line] == lines
    if command == "sweep":
        assert json.loads((tmp_path / "out/run.json").read_text())["decides_nothing"] == lines


def test_settings_of_the_scenario_file_are_not_said(highwater: Callable[..., Call]) -> None:
    assert "unclean.recovery.timeout.ms" in catalogue.load("elr-chaos").draw_config
    assert highwater("run", "elr-chaos", "--mode", "hw", "--seed", "1").err == ""


def test_early_warnings_are_shown_and_count_with_strict(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "canary")
    assert "Early warnings" in call.out
    assert "candidate-incomplete  inside" in call.out
    strict = highwater("run", "canary", "--strict")
    assert strict.code == 0
    assert "Early warnings" not in strict.out
    assert (
        "acknowledged record LOST (candidate-incomplete, committed-loss, global-loss, leader-incomplete)" in strict.out
    )
    assert "--seed 0 --strict --expect-digest" in strict.out
    clean = highwater("run", "canary", "--mode", "kip101", "--strict", "--json").json["runs"][0]
    assert (clean["warnings"], clean["row"]["warnings"]) == ([], "")


def test_a_drawn_seed_is_said_before_the_run(highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.randbits", lambda _: 4711)
    call = highwater("run", "power", "--mode", "hw")
    assert call.err == "seed 4711 (drawn)\n"
    assert "seed 4711" in call.out.splitlines()[0]


def test_settings_reach_the_run_and_its_replay_line(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "canary", *REPAIRED, "--set", "min.insync.replicas=2", "--json")
    run = call.json["runs"][0]
    assert run["settings"]["min.insync.replicas"] == 2
    assert "--set min.insync.replicas=2" in run["row"]["replay"]


def test_drawn_settings_are_shown(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "power", "--mode", "hw", "--seed", "0x2", "--set", "min.insync.replicas=2")
    (line,) = [line for line in call.out.splitlines() if line.startswith("drawn: ")]
    shown = [setting.split("=")[0] for setting in line.removeprefix("drawn: ").split()]
    assert sorted(shown) == sorted(catalogue.load("power").draw_config.keys() - {"min.insync.replicas"})


def test_the_trace_is_json_lines_after_a_header(highwater: Callable[..., Call], tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    assert highwater("run", "canary", "--trace", file).code == 0
    header, *steps = map(json.loads, file.read_text().splitlines())
    assert header["schema_version"] == 1
    assert (header["scenario"], header["mode"], header["seed"]) == ("canary", "hw", 0)
    assert {"t", "step"} <= steps[0].keys()
    assert "elected" in {step["step"] for step in steps}


def test_a_trace_needs_one_mode_and_a_folder(highwater: Callable[..., Call], tmp_path: Path) -> None:
    call = highwater("run", "kip101-scenario-1", "--trace", tmp_path / "trace.jsonl")
    assert (call.code, call.err) == (
        2,
        (
            "highwater: --trace writes one run; choose one with --mode: hw, kip101, kip279, kip320, kraft, elr, "
            "elr-recovery\n"
        ),
    )
    call = highwater("run", "canary", "--trace", tmp_path / "none" / "trace.jsonl")
    assert call.code == 2
    assert "cannot be written" in call.err


def test_an_exception_in_a_run_is_70(highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch) -> None:
    def boom(*_: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("sim.hosts.cluster.Cluster.boot", boom)
    call = highwater("run", "canary")
    assert call.code == 70
    assert "canary, mode hw, seed 0: the run did not play to its end (error)" in call.out
    assert "ZeroDivisionError: boom" in call.out


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What replay writes of a run of `chaos` that violates something."""
    folder = tmp_path_factory.mktemp("replay")
    for seed in range(50):
        if run_row(catalogue.load("chaos"), "hw", seed)["violations"]:
            words = ["replay", "chaos", "--seed", str(seed), "--mode", "hw", "--output", str(folder), "-q", "--json"]
            assert main(words) == 0
            return folder / "seeds" / f"{seed}-hw" / "plan.json"
    raise AssertionError("no seed of fifty violates anything")


def test_a_recorded_run_is_run_again(highwater: Callable[..., Call], recorded: Path) -> None:
    call = highwater("run", "--plan", recorded)
    assert (call.code, call.err) == (0, "digest as recorded\n")
    row = json.loads((recorded.parent / "row.json").read_text())
    assert f"chaos, mode hw, seed {row['seed']}: " in call.out
    assert row["digest"] in call.out
    assert f"Replay: highwater run --plan {recorded} --mode hw --seed {row['seed']}\n" in call.out
    assert highwater("run", "chaos", "--plan", recorded).out == call.out


@pytest.mark.parametrize(
    "words",
    [
        ["--mode", "kip320"],
        ["--rule", "isr_join=leader-epoch-start"],
        ["--set", "acks=1"],
        ["--seed", "9"],
        ["--strict"],
    ],
)
def test_a_recorded_run_can_be_varied(highwater: Callable[..., Call], recorded: Path, words: list[str]) -> None:
    call = highwater("run", "--plan", recorded, *words, "--json")
    assert call.code in (0, 1)
    (varied,) = call.json["runs"]
    assert varied["row"]["mode"] == ("kip320" if "kip320" in words else "hw")
    if words[0] == "--set":
        assert varied["settings"]["acks"] == "1"
    assert "not the recorded digest" not in call.err


def test_replay_of_a_plan_is_of_its_run(highwater: Callable[..., Call], recorded: Path, tmp_path: Path) -> None:
    call = highwater("replay", recorded, "--output", tmp_path / "again")
    assert call.code == 0
    assert "digest as expected" in call.out
    other = highwater("replay", recorded, "--set", "acks=1", "--output", tmp_path / "other")
    assert "digest not checked: none is known" in other.out


def test_several_modes_are_run_in_their_order(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "canary", "--modes", "kip101,hw", "--json")
    assert [run["row"]["mode"] for run in call.json["runs"]] == ["kip101", "hw"]


def test_several_scenarios_are_run_in_their_order(highwater: Callable[..., Call], tmp_path: Path) -> None:
    call = highwater("run", "kip101-scenario-1", "canary", "--mode", "hw", "--json")
    assert [run["row"]["scenario"] for run in call.json["runs"]] == ["kip101-scenario-1", "canary"]
    calls = [highwater("run", name, "--mode", "hw").out for name in ("kip101-scenario-1", "canary")]
    runs = ["\n".join(out.splitlines()[:-1]) for out in calls]
    verdict = "2 scenarios in 1 mode: 2 runs, all as expected; 2 show a known failure"
    both = highwater("-v", "run", "kip101-scenario-1", "canary", "--mode", "hw").out
    assert both == f"{runs[0]}\n\n{runs[1]}\n{verdict}\n"
    # Nothing is run before all of them are known; what is for one run is not of several.
    call = highwater("run", "canary", "cannary")
    assert (call.code, call.out) == (exit_codes.BAD_INPUT, "")
    for option in ("--plan", "--trace"):
        call = highwater("run", "canary", "power", option, tmp_path / "x")
        assert (call.code, call.out) == (exit_codes.BAD_INPUT, "")
        assert f"{option} is for one run" in call.err


def test_several_scenarios_are_a_line_each_with_a_mark_for_each_mode(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "kip101-scenario-1", "kip966-walk", "canary")
    assert call.code == 0
    legend, table = call.out.split("\n\n")
    marks, _, modes = " ".join(legend.splitlines()).partition(" Modes: ")
    names = dict(entry.split() for entry in modes.split(", "))
    numbers, *lines, verdict = table.splitlines()
    assert numbers.split() == list(names)
    column = {mode: numbers.index(number) for number, mode in names.items()}
    found = {line.split()[0]: {mode: line.ljust(200)[place] for mode, place in column.items()} for line in lines}
    assert (found["kip101-scenario-1"]["hw"], found["kip101-scenario-1"]["kip101"]) == ("v", ".")
    assert (found["kip966-walk"]["hw"], found["kip966-walk"]["elr"]) == (" ", ".")
    assert found["canary"]["hw"] == "v"
    assert "F surprise" in marks
    assert verdict == f"3 scenarios in {len(names)} modes: 11 runs, all as expected; 2 show a known failure"


def test_of_several_scenarios_what_is_not_as_expected_is_printed_in_full(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "canary", "kip101-scenario-1", "--mode", "hw", "--rule", "follower_truncation=leader-epoch")
    assert call.code == 1
    assert call.out.count(" F\n") == 2
    assert call.out.count("no violation, NOT as expected. ") == 2
    assert call.out.endswith(
        "2 scenarios in 1 mode: 2 runs, 2 NOT as expected: canary in hw (seed 0), kip101-scenario-1 in hw (seed 0)\n"
    )


def test_more_than_a_few_scenarios_are_one_line(highwater: Callable[..., Call]) -> None:
    names = [
        "canary",
        *(f"kip101-scenario-{number}" for number in (1, 2)),
        *(f"kip279-scenario-1-{end}" for end in ENDS),
    ]
    names += ["kip841", "kip903", "kip966-walk"]
    call = highwater("run", *names)
    assert (call.code, len(call.out.splitlines())) == (0, 1)
    assert "9 scenarios in " in call.out
    assert call.out.endswith(" show a known failure; --table lists them\n")
    table = highwater("run", *names, "--table").out.splitlines()
    assert [line.split()[0] for line in table[-len(names) - 1 : -1]] == names
    assert max(map(len, table)) <= 80


def test_all_scenarios_are_the_scripted_ones(highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "names", lambda: ["canary", "chaos", "kip101-scenario-1"])
    call = highwater("run", "--all-scenarios", "--mode", "hw", "--table")
    assert "2 scenarios in 1 mode: 2 runs, all as expected; 2 show a known failure" in call.out
    assert highwater("run", "canary", "--all-scenarios").err == (
        "highwater: --all-scenarios runs every scripted scenario: it goes without SCENARIO and --plan\n"
    )


def test_a_recorded_run_may_stand_in_place_of_a_scenario(highwater: Callable[..., Call], recorded: Path) -> None:
    assert highwater("run", recorded).out == highwater("run", "--plan", recorded).out
    assert highwater("run", "nowhere.json").code == exit_codes.BAD_INPUT


def test_a_recorded_run_that_shows_something_else_is_1(
    highwater: Callable[..., Call], recorded: Path, tmp_path: Path
) -> None:
    data = json.loads(recorded.read_text())
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({**data, "kinds": ["no-progress"], "digest": "0" * 32}))
    call = highwater("run", "--plan", file)
    assert call.code == 1
    assert "the scenario expects violates:no-progress" in call.out
    assert call.err == "not the recorded digest: the plan was edited, or other code ran then\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["power"], "is a run of chaos, not of power"),
        (["--mode", "kip10"], "unknown mode 'kip10'; did you mean 'kip101'?"),
        (["--mode", "hw", "--all-modes"], "--all-modes and named modes exclude each other"),
        (["--set", "default.replication.factor=9"], "default.replication.factor = 9 is not valid: chaos has"),
        (["--set", "acks=1,all"], "only a sweep takes several values"),
    ],
)
def test_options_that_do_not_fit_a_recorded_run(
    highwater: Callable[..., Call], recorded: Path, words: list[str], said: str
) -> None:
    call = highwater("run", *words, "--plan", recorded)
    assert (call.code, call.out, call.err.count("\n")) == (2, "", 1)
    assert said in call.err


def test_a_broken_file_is_bad_input(highwater: Callable[..., Call], recorded: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(recorded.read_text().replace('"mode": "hw"', '"mode": "h"'))
    call = highwater("run", "--plan", file)
    assert (call.code, call.out) == (2, "")
    assert call.err.startswith(f"highwater: {file}: mode = 'h': unknown mode 'h'")


def test_something_to_run_is_needed(highwater: Callable[..., Call]) -> None:
    call = highwater("run")
    assert (call.code, call.err) == (2, "highwater: name a scenario, or a recorded run: --plan FILE\n")


def test_a_run_that_is_given_up_is_3(highwater: Callable[..., Call]) -> None:
    words = ["run", "power", "--mode", "hw", "--seed", 3, "--set", "sim.event.budget=400"]
    call = highwater(*words)
    first, _, third = call.out.splitlines()[:3]
    assert call.code == 3
    assert first == (
        "power, mode hw, seed 3: stopped at the event limit (exhausted). "
        "Expected or not: undecided (Kafka 0.10.2 promises to survive these faults)"
    )
    assert third.startswith("sim.event.budget: 400 events by ")
    line = next(line for line in call.out.splitlines() if line.startswith("Replay: highwater "))
    assert line.partition(" --expect-digest ")[0].endswith("--set sim.event.budget=400")
    assert highwater(*words, "--json").json["exit_code"] == 3


def test_a_mode_that_fits_no_later_scenario_is_refused_first(
    highwater: Callable[..., Call],
) -> None:
    call = highwater("run", "canary", "mixed-versions", "--mode", "kraft")
    assert (call.code, call.out) == (2, "")
    assert call.err.startswith("highwater: mixed-versions does not run in kraft")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "canary", "--mode", ""), "unknown mode ''"),
        (("sweep", "canary", "--modes", "", "--seeds", "0..2", "--output", "out", "--local", "1"), "unknown mode ''"),
        (("replay", "canary", "--mode", ""), "unknown mode ''"),
        (("replay", "canary", "--seed", ""), "seed '' is not valid"),
        (("draw", "canary", "--mode", ""), "unknown mode ''"),
    ],
)
def test_an_empty_word_is_no_word_left_out(
    highwater: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    call = highwater(*words)
    assert (call.code, call.out) == (2, "")
    assert call.err.startswith(f"highwater: {said}")
    assert list(tmp_path.iterdir()) == []


def test_long_tables_are_cut_and_json_has_them_all(
    highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", "power", "--mode", "hw", "--seed", 3]
    faults = highwater(*words, "--json").json["runs"][0]["faults"]
    assert len(faults) > 4
    whole = highwater(*words).out
    monkeypatch.setattr(outcome, "MOST_ROWS", 3)
    lines = highwater(*words).out.splitlines()
    cut = lines.index(f"and {len(faults) - 3} more; --json has them all")
    assert [line.split() for line in lines[lines.index("Faults") : cut]] == [
        line.split() for line in whole[whole.index("Faults") :].splitlines()[: cut - lines.index("Faults")]
    ]
