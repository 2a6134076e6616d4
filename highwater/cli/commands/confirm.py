"""``highwater confirm``: a scripted scenario on real brokers, beside the simulation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from highwater.cli.options import Command, json_option, rule_option, set_option, ui_options
from reports import exits
from sim.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from highwater.cli.console import Ui
    from reports.brokers.confirm.milestones import Disks
    from reports.brokers.confirm.release import Release
    from scenarios.format.scenario import Scenario
    from scenarios.single.run import RunResult
    from scenarios.single.script import RulesInForce
    from sim.config import Value
    from sim.protocol.modes import Mode

SCHEMA_VERSION: Final = 1
LIMIT_SECONDS: Final = 240
ATTEMPTS: Final = 3
PACE: Final = 5


@click.command("confirm", cls=Command)
@click.argument("scenario")
@click.option("--kafka", metavar="RELEASE|DIR", required=True, help="A release, or a folder with Kafka's libraries.")
@click.option("--mode", metavar="MODE", help="Mode of the simulation; that of the release when not given.")
@rule_option
@set_option
@click.option("--keep", metavar="DIR", type=click.Path(path_type=Path), help="Keep logs and data of the brokers.")
@click.option("--repeat", metavar="N", type=click.IntRange(1, 1000), default=1, show_default=True, help="Real runs.")
@click.option(
    "--limit",
    metavar="SECONDS",
    type=click.IntRange(10, 3600),
    default=LIMIT_SECONDS,
    show_default=True,
    help="Give an attempt up after so long.",
)
@click.option(
    "--attempts",
    metavar="N",
    type=click.IntRange(1, 20),
    default=ATTEMPTS,
    show_default=True,
    help="Begin again on a fresh cluster, N times in all, if the story was not brought about or the outcome differs.",
)
@click.option(
    "--pace",
    metavar="N",
    type=click.IntRange(1, 20),
    default=PACE,
    show_default=True,
    help="Let N of the scenario's seconds pass in one; JVMs that start do not hurry.",
)
@json_option
@ui_options
@click.pass_obj
def command(
    ui: Ui,
    scenario: str,
    kafka: str,
    mode: str | None,
    rules: dict[str, str],
    settings: dict[str, Value],
    keep: Path | None,
    repeat: int,
    limit: int,
    attempts: int,
    pace: int,
    as_json: bool,
) -> int:
    """Act SCENARIO (a name or a .toml file) out on real brokers, and compare with the simulation.

    Exit 0 when both agree, 1 when they differ alike in two attempts, 3 when the brokers could not be brought to the
    story or did not do the same twice.
    """
    from reports.brokers.confirm import actions, class_archive, milestones, release
    from scenarios.format import selection
    from scenarios.single.run import run

    chosen = selection.scenario(scenario, settings)
    if chosen.drawn or not chosen.script:
        raise InputError(f"{chosen.name} has no script: drawn scenarios cannot be acted out (see 'highwater shrink')")
    _check_keep(keep, repeat)
    _check_library()
    found = release.find(kafka)
    one = _mode(ui, chosen, found, mode)
    force = _rules(chosen, one, rules)
    lines = [line for line in chosen.script if force.fit(line.rules, None)]
    if absent := actions.missing(chosen, lines, found):
        raise InputError(*(f"{chosen.name}: {problem}" for problem in absent))
    story = [line for line in chosen.story if force.fit(line.rules, line.pattern.broker)]
    if hidden := actions.unseen(story):
        ui.note(f"steps that cannot be seen on real brokers: {', '.join(hidden)}")
    disks = milestones.Disks()
    result = run(chosen, one, 0, rules, trace=True, watch=disks.watch)
    if result.row["verdict"] == "error":
        raise InputError(f"{chosen.name}, mode {one.name}: {result.row['error']}")
    class_archive.make_archive(found, ui.note)
    runs = []
    for number in range(1, repeat + 1):
        folder = _folder(keep, number, repeat)
        runs.append(_attempts(ui, chosen, found, force, result, disks, folder, attempts, limit, pace))
        if not as_json:
            _show(ui, chosen, found, one, runs[-1], number, repeat)
    code = exits.worst(run["exit_code"] for run in runs)
    if as_json:
        told = {"scenario": chosen.name, "kafka": found.name, "source": found.source, "mode": one.name}
        ui.json({"schema_version": SCHEMA_VERSION, **told, "runs": runs, "exit_code": code})
    return code


def _check_keep(keep: Path | None, repeat: int) -> None:
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InputError(f"--keep {keep} is there already, and holds something; choose another folder")
    del repeat


def _check_library() -> None:
    from importlib.util import find_spec

    for package, name in (("kafka", "kafka-python"), ("kazoo", "kazoo")):
        if find_spec(package) is None:
            raise UnavailableError(f"{name} is not installed: pip install '.[kafka]'")


def _folder(keep: Path | None, number: int, repeat: int) -> Path | None:
    return keep / str(number) if keep is not None and repeat > 1 else keep


def _mode(ui: Ui, scenario: Scenario, found: Release, name: str | None) -> Mode:
    from reports.brokers.confirm.release import mode_of
    from sim.protocol.modes import mode

    if name is not None:
        chosen = mode(name)
        if (chosen.rules.control_plane == "kraft") != found.kraft:
            raise InputError(f"--mode {name} and --kafka {found.name} have different control planes")
        return chosen
    chosen, exact = mode_of(found)
    if not exact:
        ui.note(f"Kafka {found.name} has no mode of its own; the nearest is {chosen.name} ({chosen.release})")
    if chosen.name not in scenario.expect:
        ui.note(f"{scenario.name} expects nothing of mode {chosen.name}")
    return chosen


def _rules(scenario: Scenario, mode: Mode, overrides: Mapping[str, str]) -> RulesInForce:
    from scenarios.single.script import RulesInForce

    rules = mode.override(overrides).rules
    return RulesInForce(rules, dict.fromkeys(range(1, scenario.brokers + 1), rules))


def _attempts(
    ui: Ui,
    scenario: Scenario,
    found: Release,
    rules: RulesInForce,
    result: RunResult,
    disks: Disks,
    keep: Path | None,
    attempts: int,
    limit: int,
    pace: int,
) -> dict[str, Any]:
    """Real runs until one decides, each on a fresh cluster; the last one, with what became of those before it.

    After one that was not brought to the story, the next one has half the pace: what takes too long has more room then.
    """
    from reports.brokers.confirm.verdict import exit_code

    begin_s = time.monotonic()
    made: list[dict[str, Any]] = []
    code = None
    while code is None:
        folder = keep / f"attempt-{len(made) + 1}" if keep is not None and made else keep
        made.append(_real(ui, scenario, found, rules, result, disks, folder, limit, pace))
        code = exit_code(made, attempts)
        if code is None:
            ui.note(f"attempt {len(made)} of {attempts}, pace {pace}: {_said(made[-1])}")
            if made[-1]["failed"]:
                pace = max(1, pace // 2)
    last = made[-1]
    last["seconds"]["all"] = round(time.monotonic() - begin_s, 1)
    return {**last, "before": made[:-1], "exit_code": code}


def _said(run: Mapping[str, Any]) -> str:
    """What became of an attempt that does not agree."""
    differing = ", ".join(row["what"] for row in run["rows"] if not row["agrees"])
    return f"not brought to the story: {run['failed']}" if run["failed"] else f"differs in {differing}"


def _real(
    ui: Ui,
    scenario: Scenario,
    found: Release,
    rules: RulesInForce,
    result: RunResult,
    disks: Disks,
    keep: Path | None,
    limit: int,
    pace: int,
) -> dict[str, Any]:
    from reports.brokers.confirm import comparison, milestones, script_runner
    from reports.brokers.confirm.processes import Processes

    begin_s = time.monotonic()
    lines = [line for line in scenario.script if rules.fit(line.rules, None)]
    story = [line for line in scenario.story if rules.fit(line.rules, line.pattern.broker)]
    elr, epochs = rules.mode.elr == "on", not found.truncates_to_hw
    assert result.trace is not None
    batches = _batches(scenario, rules)
    reached = milestones.milestones(result, lines, story, batches, disks, elr=elr)
    end_us = comparison.script_end_us(result.trace, lines, batches)
    end = milestones.Milestone(comparison.simulated_changes(result, end_us + comparison.PAUSE_US, elr=elr))
    failed, rows, seconds = "", [], {}
    with Processes(keep) as processes:
        actor = script_runner.Actor(scenario, rules, found, processes, limit, ui.note, pace)
        try:
            acted = actor.act(reached, end)
            rows = comparison.compare(result, acted, lines, elr=elr, epochs=epochs)
            seconds = acted.seconds
            if not all(row.agrees for row in rows):
                shrunk = comparison.early_exit_from_isr(end.changes, acted.states)
                failed = "; ".join(filter(None, [*acted.unlike, shrunk]))
        except script_runner.NotBroughtError as error:
            failed = str(error)
        finally:
            actor.close()
            if keep is not None:
                _write_transcript(keep, actor.observer.steps)
    return {
        "agrees": not failed and all(row.agrees for row in rows),
        "failed": failed,
        "seconds": {
            **{name: round(one, 1) for name, one in seconds.items()},
            "all": round(time.monotonic() - begin_s, 1),
        },
        "rows": comparison.as_json(rows),
    }


def _batches(scenario: Scenario, rules: RulesInForce) -> dict[str, int]:
    found: dict[str, int] = {}
    number = 0
    for line in scenario.script:
        if line.do == "produce" and rules.fit(line.rules, None):
            found[line.params["batch"]] = number
            number += line.params.get("records", 1)
    return found


def _write_transcript(folder: Path, steps: list[dict[str, Any]]) -> None:
    import json

    text = "".join(json.dumps(step, default=str) + "\n" for step in steps)
    (folder / "transcript.jsonl").write_text(text, encoding="utf-8")


def _show(
    ui: Ui, scenario: Scenario, found: Release, mode: Mode, run: Mapping[str, Any], number: int, repeat: int
) -> None:
    which = f" (run {number} of {repeat})" if repeat > 1 else ""
    where = f"{scenario.name}, Kafka {found.name}, mode {mode.name}{which}"
    for place, attempt in enumerate(run["before"], start=1):
        ui.line(f"attempt {place}: {_said(attempt)}")
    words = {exits.EXPECTED: "confirmed", exits.UNEXPECTED: "NOT confirmed"}
    undecided = _said(run) if run["failed"] else "undecided: the brokers did not do the same in each attempt"
    ui.line(f"{where}: {words.get(run['exit_code'], undecided)}, {run['seconds']['all']} s", style="bold")
    if not run["rows"]:
        return
    ui.line(", ".join(f"{name} {seconds} s" for name, seconds in run["seconds"].items()))
    ui.line()
    cells = [(row["what"], row["simulated"], row["real"], _word(row)) for row in run["rows"]]
    ui.table(["what", "simulation", f"Kafka {found.name}", ""], cells)


def _word(row: Mapping[str, Any]) -> str:
    if not row["compared"]:
        return ""
    return "=" if row["agrees"] else "DIFFERS"
