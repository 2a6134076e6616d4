"""``highwater advise``: what a change of one setting, or of the release, saves and costs in a cluster like yours."""

from __future__ import annotations

import re
import sys
import time
from collections import deque
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

from highwater.cli.campaign import campaign_options
from highwater.cli.cluster import cluster_options, ignored
from highwater.cli.options import PATH, Command, json_option
from highwater.lab.advise import losses
from highwater.values import duration
from reports.document.blocks import Heading, Line, Table, Text
from reports.formatting import percent
from scenarios import own_files, plugged
from sim.config import KEYS, shown
from sim.errors import InputError
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from highwater.cli.campaign import CampaignPlace
    from highwater.cli.console import Ui
    from highwater.lab.advise.answers import Answers
    from highwater.lab.advise.experiment import Experiment, ExperimentOutcome
    from highwater.lab.advise.findings import ChangeEffect, Loss
    from highwater.lab.advise.incidents import Exposure
    from highwater.lab.advise.rates import Rates
    from highwater.lab.advise.yearly import Estimate
    from reports.document.blocks import Block
    from scenarios.properties.cluster import ClusterSettings
    from sim.config import Value

T = TypeVar("T")
ADVICE_VERSION: Final = 1
SCENARIO: Final = "advice.toml"
LOSS: Final = "loss.json"
SEEDS_MAX: Final = 100_000
INCIDENTS_MAX: Final = 10_000_000
CHANGED_MAX: Final = 4
"""Advised changes whose losses a year are estimated, the best first."""
END: Final = 0.97
"""Share of the budget after which no task begins."""
_BUDGET: Final = "Time for all of it: 30s, 2m; no effect where --seeds, and --incidents with --rates, fix the work."
_FILES: Final = {
    SCENARIO: re.compile(rb"\Aschema = 1\nname = \"advice"),
    LOSS: own_files.json_start("scenario"),
}
"""File name -> how the file begins."""
_ANSWERS: Final = ("replicas", "racks", "together", "return_s", "flush", "restarts", "moves", "unclean")


@click.command("advise", cls=Command)
@click.option("--replicas", metavar="N", help="Replicas of a partition.")
@click.option("--racks", metavar="N", help="Racks that the brokers are spread over.")
@click.option("--together", metavar="WHAT", help="What loses power together: nothing, rack, or everything.")
@click.option("--return", "return_s", metavar="SECONDS", help="Time until a machine that went down is back.")
@click.option("--flush", metavar="N|never", help="Records after which a log is flushed; never: only by the kernel.")
@click.option("--restarts", metavar="N", help="Planned restarts of a broker a week.")
@click.option("--moves", metavar="N", help="Times that a partition is moved a week.")
@click.option("--unclean", metavar="true|false", help="Whether a replica outside the ISR may be elected.")
@click.option("--elr", type=click.Choice(["on", "off"]), help="Feature eligible.leader.replicas.version (from 4.0 on).")
@click.option("--answers", metavar="FILE", type=PATH, help="A TOML file with answers; options override it.")
@cluster_options
@click.option("--seeds", metavar="N", type=click.IntRange(1, SEEDS_MAX), help="Seeds; by default as many as fit.")
@click.option("--budget", metavar="TIME", default="2m", show_default=True, help=_BUDGET)
@click.option("--rates", metavar="FILE|published", help="Estimate losses per partition-year from rates of faults.")
@click.option(
    "--incidents", metavar="N", type=click.IntRange(1, INCIDENTS_MAX), help="Incidents simulated for --rates."
)
@campaign_options("Gets the scenario, the shortest loss, and results, so that the same command resumes.")
@json_option
@click.pass_obj
def command(
    ui: Ui,
    /,
    elr: str | None,
    answers: Path | None,
    cluster: ClusterSettings,
    seeds: int | None,
    budget: str,
    rates: str | None,
    incidents: int | None,
    place: CampaignPlace,
    as_json: bool,
    **given: str | None,
) -> None:
    """Compare your settings with changes of one setting each, and your release with newer ones, on the same seeds.

    Rates in the table are of runs of some minutes with three to six faults each, and not of your cluster's years: they
    tell which change helps, not how often you will lose records. For that, --rates estimates losses per partition-year.
    At a terminal, questions without an answer are asked.
    """
    begin_s = time.monotonic()
    from highwater.lab.advise import experiment, findings, yearly

    output = place.output
    budget_s = duration("--budget", budget)
    if incidents is not None and rates is None:
        raise InputError("--incidents needs --rates")
    is_fixed = seeds is not None and (rates is None or incidents is not None)
    if is_fixed and click.get_current_context().get_parameter_source("budget") is ParameterSource.COMMANDLINE:
        ui.note(f"--budget has no effect: --seeds {'fixes' if rates is None else 'and --incidents fix'} the work")
    found = _answers(ui, answers, cluster, given)
    settings = _settings(cluster, given)
    asked = experiment.design(found, {**settings, **_elr(ui, elr, cluster, settings)}, cluster.release)
    if output is not None:
        for name, start in _FILES.items():
            own_files.check_own(output / name, start)
    exposed = None if rates is None else _exposure(asked, rates)
    times = _Times.of(begin_s, budget_s, seeds, timed_rates=exposed is not None and incidents is None)
    if not as_json:
        ui.lines(_head(asked, cluster, exposed))
    with place.begin("advice", {}) as (runner, record):
        outcome = _last(experiment.waves(asked, seeds, times.table_s, runner, record))
        table = findings.findings(outcome)
        loss = findings.shortest_loss(outcome, times.loss_s)
        advice = findings.recommendations(outcome)
        estimate, changed = None, []
        if exposed is not None:
            end_s, exposures = times.end(budget_s), _changed(ui, outcome, exposed.rates)
            present_s = (time.monotonic() + end_s) / 2 if exposures else end_s
            estimate = _last(yearly.waves(exposed, incidents, present_s, runner, record))
            for done, (name, exposure) in enumerate(exposures):
                now_s = time.monotonic()
                until_s = now_s + (end_s - now_s) / (len(exposures) - done)
                changed.append((name, _last(yearly.waves(exposure, incidents, until_s, runner, record))))
    files = [] if output is None else _write(output, asked, loss)
    if as_json:
        notes = _notes(asked, cluster, exposed)
        ui.json({**_as_json(outcome, table, advice, loss, files, estimate, changed), "notes": notes})
        return
    ui.show(_blocks(outcome, loss, advice, output))
    if estimate is not None:
        ui.show([*losses.blocks(estimate), *losses.of_changes(estimate, changed)])
    if output is not None:
        ui.show([Heading("The same figures by plain sweeps"), *map(Line, _sweeps(outcome, output))])
    for file in files:
        ui.note(f"written: {file}")


@dataclass(frozen=True, slots=True)
class _Times:
    """When the parts of an advice have to be over (`time.monotonic`).

    Attributes:
        table_s: for the table, unless the number of seeds is given.
        loss_s: for the shortest loss; never, if the number of seeds is given, on which it depends then.
        end_s: for losses a year, unless the number of incidents is given; None: so long after they begin as the budget.
    """

    table_s: float
    loss_s: float
    end_s: float | None

    @classmethod
    def of(cls, begin_s: float, budget_s: float, seeds: int | None, *, timed_rates: bool) -> _Times:
        """Share out the budget among the parts that it limits."""
        table, loss = (0.35, 0.45) if timed_rates else (0.8, 0.95)
        if seeds is not None:
            return cls(inf, inf, None)
        return cls(begin_s + table * budget_s, begin_s + loss * budget_s, begin_s + END * budget_s)

    def end(self, budget_s: float) -> float:
        """The end of the losses a year, which begin now."""
        return time.monotonic() + END * budget_s if self.end_s is None else self.end_s


def _last(found: Iterable[T]) -> T:
    """The last of several, at least one."""
    (last,) = deque(found, maxlen=1)
    return last


def _exposure(asked: Experiment, rates: str) -> Exposure:
    """The cluster under the rates of a file, or published ones."""
    from highwater.lab.advise import incidents
    from highwater.lab.advise.rates import find

    return incidents.exposure(asked, find(rates, asked.answers))


def _changed(ui: Ui, outcome: ExperimentOutcome, rates: Rates) -> list[tuple[str, Exposure]]:
    """The cluster with each of the first changes or releases that are advised, under the same rates."""
    from highwater.lab.advise import findings, incidents

    found = []
    for finding, change, mode in findings.advised(outcome)[:CHANGED_MAX]:
        try:
            found.append((finding.name, incidents.exposure(outcome.experiment, rates, change, mode)))
        except InputError as error:
            ui.note(f"{finding.name}: {error}")
    return found


def _answers(ui: Ui, file: Path | None, cluster: ClusterSettings, given: dict[str, str | None]) -> Answers:
    """The answers of files, options and questions."""
    from highwater.lab.advise import answers

    of_file = {} if file is None else answers.of_file(file)
    options = {name: answers.read(name, text, _option(name)) for name, text in given.items() if text is not None}
    layers = [_of_cluster(cluster, {**of_file, **options}), of_file, options]
    known = {name for layer in layers for name in layer}
    missing = [name for name in _ANSWERS if name not in known]
    default = answers.Answers().to_json()
    if missing and _is_asked(ui):
        layers.append({name: _ask(name, default[name]) for name in missing})
    elif missing:
        usual = ", ".join(f"{name} = {answers.in_words(default[name])}" for name in missing)
        ui.note(f"not answered, and taken as: {usual}")
    return answers.complete(*layers)


def _elr(ui: Ui, given: str | None, cluster: ClusterSettings, settings: Mapping[str, Value]) -> dict[str, Value]:
    """The level of the feature for ELRs, if it is given, or asked for; else the release decides."""
    from highwater.lab.advise.experiment import ELR, has_elr

    has = cluster.release is None or has_elr(cluster.release.mode)
    if given is None and has and ELR not in settings and _is_asked(ui):
        question = f"Is the feature {ELR} on (kafka-features.sh describe; an upgrade does not turn it on)?"
        given = click.prompt(question, type=click.Choice(["on", "off"]), default="on")
    return {} if given is None else {ELR: int(given == "on")}


def _is_asked(ui: Ui) -> bool:
    """Whether there is a terminal at which questions can be answered."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not ui.quiet


def _option(name: str) -> str:
    """The option that gives an answer."""
    return "--return" if name == "return_s" else f"--{name}"


def _settings(cluster: ClusterSettings, given: dict[str, str | None]) -> dict[str, Value]:
    """The settings of the files."""
    from highwater.lab.advise.answers import KEYS_OF

    answered = [key for name, key in KEYS_OF.items() if given[name] is not None]
    return cluster.settings(answered, {key: _option(name) for name, key in KEYS_OF.items()})


def _of_cluster(cluster: ClusterSettings, given: Container[str]) -> dict[str, Any]:
    """The answers of the files, without those that the user gives, which have the same bounds."""
    from highwater.lab.advise import answers

    found = answers.of_settings(cluster.found.settings, cluster.found.racks or 0)
    for name, value in found.items():
        if name not in given:
            key = answers.KEYS_OF.get(name)
            of_key = [
                finding.file for finding in cluster.found.findings if finding.name == key and finding.value == value
            ]
            place = f"{of_key[-1]}: {key} =" if of_key else "the number of different broker.rack in the files,"
            answers.read(name, shown(value), place)
    return found


def _ask(name: str, default: object) -> Any:
    """Ask one question until its answer is valid."""
    from highwater.lab.advise import answers

    usual = shown(default) if isinstance(default, bool) else str(default)
    while True:
        text = click.prompt(answers.QUESTIONS[name].text, default=usual)
        try:
            return answers.read(name, str(text))
        except InputError as error:
            click.echo(str(error), err=True)


def _head(asked: Experiment, cluster: ClusterSettings, exposed: Exposure | None) -> Iterator[str]:
    from highwater.lab.advise import experiment
    from highwater.lab.advise.answers import in_words

    answers = ", ".join(f"{name} = {in_words(value)}" for name, value in asked.answers.to_json().items())
    yield f"Answers: {answers}"
    config = asked.scenario.config
    own = {key: value for key, value in config.items() if not key.startswith("sim.")}
    yield f"Settings: {', '.join(f'{key} = {shown(value)}' for key, value in own.items())}"
    usual = {key: KEYS[key].default for change in asked.changes for key in change.settings if key not in own}
    if usual:
        told = ", ".join(f"{key} = {shown(value)}" for key, value in usual.items())
        yield f"Defaults, unless --server-properties has others: {told}"
    yield f"Releases: {', '.join(f'{mode.release} (mode {mode.name})' for mode in asked.modes)}"
    if asked.idle:
        yield f"Without effect in these releases, and left out: {', '.join(asked.idle)}"
    yield f"Brokers: {experiment.layout(asked.scenario)}"
    yield from _notes(asked, cluster, exposed)


def _notes(asked: Experiment, cluster: ClusterSettings, exposed: Exposure | None) -> list[str]:
    """Notes on files, release, answers and rates."""
    from highwater.lab.advise import rates

    # The release's defaults are among the settings of the scenario, so none of them differs.
    told = {**asked.given, **asked.scenario.config, **dict.fromkeys(asked.idle, 0)}
    return [
        *ignored(cluster),
        *cluster.found.notes,
        *cluster.notes(told),
        *_overridden(cluster, asked.answers),
        *_racks(cluster, asked.answers),
        *([asked.elr] if asked.elr else []),
        *(() if exposed is None else rates.contradictions(exposed.rates, asked.answers)),
    ]


def _overridden(cluster: ClusterSettings, answers: Answers) -> list[str]:
    """Answers that contradict the files."""
    from highwater.lab.advise.answers import KEYS_OF, in_words, of_settings

    given = answers.to_json()
    return [
        f"{name} = {in_words(given[name])}, as you answer, although the files have "
        + (f"{value} values of broker.rack" if name == "racks" else f"{KEYS_OF[name]} = {shown(value)}")
        for name, value in of_settings(cluster.found.settings, cluster.found.racks or 0).items()
        if getattr(answers, name) != value
    ]


def _racks(cluster: ClusterSettings, answers: Answers) -> list[str]:
    """What ``broker.rack`` of the files says of the answer `racks`."""
    if answers.racks > answers.replicas + 1:
        spare = answers.racks - answers.replicas
        return [
            f"{answers.racks} racks need as many brokers, so {spare} have no replica at first; faults strike them, too"
        ]
    if cluster.found.racks is None or answers.racks == 1:
        return []
    if not cluster.found.racks:
        spread = f"here, they are spread over {answers.racks} racks"
        return [f"No file sets broker.rack: Kafka places replicas without regard to racks then; {spread}"]
    if cluster.found.racks == 1:
        return [f"The files have one broker.rack; here, replicas are spread over {answers.racks} racks (--racks)"]
    return []


def _blocks(outcome: ExperimentOutcome, loss: Loss | None, advice: list[str], output: Path | None) -> Iterator[Block]:
    yield from _table(outcome)
    yield Heading("The shortest loss with the present settings")
    yield from map(Line, _loss(outcome, loss, output))
    yield Heading("Advice")
    yield from (Line(f"- {line}") for line in advice)


def _table(outcome: ExperimentOutcome) -> Iterator[Block]:
    from highwater.lab.advise.findings import price, rows

    changes = {change.name: change for change in outcome.experiment.changes}
    headers = ["change", "release", "lose", "95 %, in %", "saved", "cost", "p"]
    figures = [
        (
            row.change.short,
            row.releases,
            row.found.lost,
            f"{row.found.low * 100:.3g} to {row.found.high * 100:.3g}",
            row.found.saved,
            row.found.cost,
            f"{row.found.p:.1g}",
        )
        for row in rows(outcome, lambda cell: cell.lost)
    ]
    caption = f"{counted(outcome.seeds, 'seed')}, each with every change in every release"
    yield Table(headers, figures, headers[2:], caption)
    yield Text(
        "lose: seeds that lose acknowledged records. saved: seeds that do so only with your settings; cost: only with "
        "the change (p: McNemar). Releases in one row agree on every seed."
    )
    headers = ["change", "release", "no leader", "refused"]
    costs = [
        (row.change.short, row.releases, percent(row.found.leaderless), percent(row.found.refused))
        for row in rows(outcome, lambda cell: (cell.leaderless_ms, cell.window_ms, cell.refused, cell.acked))
    ]
    yield Table(headers, costs, headers[2:], "What they cost while nothing is lost")
    yield Text("no leader: share of the time. refused: NOT_ENOUGH_REPLICAS per 100 acknowledged batches.")
    yield Heading("Prices that the table does not show")
    for name, change in changes.items():
        if costly := price(outcome, change):
            yield Text(f"{name}: {costly}")


def _loss(outcome: ExperimentOutcome, loss: Loss | None, output: Path | None) -> Iterator[str]:
    from highwater.lab.advise.findings import unsaving

    if loss is None:
        yield "None was found."
        return
    struck = f" on {counted(loss.brokers, 'broker')}" if loss.brokers else ""
    size = f"{counted(loss.faults, 'fault')}{struck} and {counted(loss.batches, 'batch', 'batches')}"
    more = "" if loss.is_whole else " (the time was over before all of them were tried: a larger --budget continues)"
    yield f"Seed {loss.seed}, with {size}{more}:"
    yield from loss.story
    if unsaved := unsaving(outcome, loss):
        yield unsaved
    if output is None:
        yield "With --output DIR, it can be run again, shown and explained"
    else:
        page = str((output / LOSS).with_suffix(".html"))
        explain = ["explain", "--plan", str(output / LOSS), "--output", str(output)]
        yield f"As a page to step through: {plugged.command(['show', str(output / LOSS), '--output', page])}"
        yield f"What would have prevented it: {plugged.command(explain)}"


def _sweeps(outcome: ExperimentOutcome, output: Path) -> list[str]:
    """Commands that run the table's seeds again: with the present settings, and with one change."""
    asked = outcome.experiment
    modes = ",".join(mode.name for mode in asked.modes)
    words = ["sweep", str(output / SCENARIO), "--modes", modes, "--seeds", f"0..{outcome.seeds}"]
    lines = [plugged.command([*words, "--output", str(output / "sweep")])]
    for change in asked.changes[1:2]:
        settings = [word for key, value in change.settings.items() for word in ("--set", f"{key}={shown(value)}")]
        lines.append(plugged.command([*words, *settings, "--output", str(output / "sweep-changed")]))
    lines.append("The scenario has your settings and your release's defaults, so neither is given again")
    acks = asked.scenario.config.get("acks", KEYS["acks"].default)
    if acks != "all":
        lines.append(
            f"With acks = {shown(acks)}, a lost record is no violation to sweep and compare, since Kafka does not "
            "promise to keep it: the table's losses are the rows with acks1_lost > 0"
        )
    return lines


def _write(output: Path, asked: Experiment, loss: Loss | None) -> list[str]:
    with own_files.os_errors(output):
        own_files.make_folder(output)
    own_files.write(output / SCENARIO, asked.text, _FILES[SCENARIO])
    if loss is None:
        return [str(output / SCENARIO)]
    own_files.write(output / LOSS, loss.plan, _FILES[LOSS])
    return [str(output / SCENARIO), str(output / LOSS)]


def _as_json(
    outcome: ExperimentOutcome,
    table: list[ChangeEffect],
    advice: list[str],
    loss: Loss | None,
    files: list[str],
    estimate: Estimate | None,
    changed: list[tuple[str, Estimate]],
) -> dict[str, Any]:
    from highwater.lab.advise.findings import price

    experiment = outcome.experiment
    return {
        "schema_version": ADVICE_VERSION,
        "answers": experiment.answers.to_json(),
        "settings": dict(experiment.scenario.config),
        "seeds": outcome.seeds,
        "table": [finding.to_json() for finding in table],
        "prices": {change.name: price(outcome, change) for change in experiment.changes},
        "advice": advice,
        "shortest_loss": None if loss is None else _loss_as_json(loss),
        "losses_per_partition_year": None if estimate is None else losses.as_json(estimate),
        "losses_per_partition_year_of_changes": {name: losses.as_json(one) for name, one in changed},
        "files": files,
    }


def _loss_as_json(loss: Loss) -> dict[str, Any]:
    return {
        "seed": loss.seed,
        "faults": loss.faults,
        "brokers": loss.brokers,
        "batches": loss.batches,
        "whole": loss.is_whole,
        "story": loss.story,
    }
