"""``highwater audit``: the metadata log of a real cluster, held against the rules of its release."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from highwater.cli.options import PATH, Command, json_option
from reports.document.blocks import Heading, Items, Table, Text
from sim import exit_codes
from sim.errors import InputError, parse_pairs
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from highwater.cli.console import Ui
    from highwater.lab.audit.audit import Audit
    from highwater.lab.audit.broker_logs import BrokerLogs
    from highwater.lab.audit.distance import AuditDistances, Distance, Nearest
    from highwater.lab.audit.image import Key
    from highwater.lab.audit.restart import Restart
    from highwater.lab.audit.results import Named
    from reports.document.blocks import Block

SHOWN: Final = 20
"""Rows of a table without --most."""
Measured = dict["Key", tuple["Distance", "Nearest | None"]]
"""Partition -> its distance now, and when it was nearest to a loss, if asked for."""


@click.command("audit", cls=Command)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@click.option("--release", metavar="RELEASE", help="Kafka's release, if not that of the log's metadata.version.")
@click.option(
    "--static",
    metavar="KEY=VALUE",
    multiple=True,
    help="A setting of server.properties, which no metadata record holds: min.insync.replicas, "
    "unclean.leader.election.enable.",
)
@click.option(
    "--before-restart",
    "broker",
    metavar="NODE",
    type=click.IntRange(0),
    help="Whether this broker can be restarted now, or, with the folders of several controllers, this controller. "
    "Exit 1: no. Exit 2: what is given does not suffice.",
)
@click.option(
    "--before-format",
    "to_format",
    metavar="CONTROLLER",
    type=click.IntRange(0),
    help="With the folders of several controllers: whether this one's disk can be formatted now. Exits as above.",
)
@click.option(
    "--broker-log",
    "broker_logs",
    metavar="FILE",
    multiple=True,
    type=PATH,
    help="A broker's server.log or state-change.log, of which both are needed: which committed records were lost.",
)
@click.option("--distance", is_flag=True, help="How many events each partition is from a loss.")
@click.option(
    "--partition",
    "partitions",
    metavar="TOPIC-PARTITION",
    multiple=True,
    help="With --distance: only this partition, and when it was nearest to a loss.",
)
@click.option(
    "--most-events",
    metavar="N",
    type=click.IntRange(0, 8),
    default=4,
    show_default=True,
    help="With --distance: the longest stories to look for.",
)
@click.option(
    "--stories",
    metavar="DIR",
    type=PATH,
    help="With --distance: a new folder for the stories as scenarios, for 'highwater run'.",
)
@click.option("--anonymous", is_flag=True, help="Show hashes instead of the names of topics.")
@click.option("--no-explain", is_flag=True, help="Do not look for the event behind each record: many times faster.")
@click.option(
    "--most", metavar="N", type=click.IntRange(1), default=SHOWN, show_default=True, help="Rows of each table."
)
@click.option("-o", "--output", metavar="FILE", type=PATH, help="Write the audit as an HTML page, with time lines.")
@click.option("--format", "form", type=click.Choice(["text", "markdown"]), default="text", help="Text or Markdown.")
@json_option
@click.pass_obj
def command(
    ui: Ui,
    paths: tuple[Path, ...],
    release: str | None,
    static: tuple[str, ...],
    broker: int | None,
    to_format: int | None,
    broker_logs: tuple[Path, ...],
    distance: bool,
    partitions: tuple[str, ...],
    most_events: int,
    stories: Path | None,
    anonymous: bool,
    no_explain: bool,
    most: int,
    output: Path | None,
    form: str,
    as_json: bool,
) -> int:
    """Check a KRaft cluster: which partitions are at risk now, what happened, and which records no release writes.

    PATH is a folder __cluster_metadata-0 of a controller or broker, or the log directory that contains it; segments
    or snapshots of one; the output of 'kafka-dump-log.sh --cluster-metadata-decoder', or of 'kafka-topics.sh
    --describe' (one moment), compressed or not. Nothing is written to it.

    Several PATHs that are log directories of controllers: what each of them lacks of the metadata log, and whether one
    of them can be formatted or restarted.

    Exit 0 when no partition is at risk of a loss or without a leader, each record has an explanation and no broker's
    log shows a loss; 1 otherwise. With --before-restart, 0 for yes, 1 for no, and 2 if a part of the log or text, or
    min.insync.replicas, is missing.
    """
    from highwater.lab.audit.audit import audit
    from highwater.lab.audit.broker_logs import read_broker_logs
    from highwater.lab.audit.distance import AuditDistances
    from highwater.lab.audit.restart import check
    from highwater.lab.audit.results import Named, verdict
    from highwater.lab.audit.results import as_json as results_as_json

    if to_format is not None or (len(paths) > 1 and all(path.is_dir() for path in paths)):
        others = {
            "--distance": distance,
            "--partition": partitions,
            "--stories": stories,
            "--broker-log": broker_logs,
            "--static": static,
            "--release": release,
            "--output": output,
        }
        return _quorum(ui, paths, to_format, broker, others, form=form, as_json=as_json)
    _check_distance(distance, partitions, stories, broker)
    _check_broker_logs(broker_logs, broker)
    _check_output(output, broker)
    settings = parse_pairs(static, "--static", "KEY=VALUE", _setting)
    found = audit(
        paths, release=release, static=settings, explain=not no_explain, keep_histories=bool(partitions or stories)
    )
    name = Named(found, hides=anonymous)
    logs = read_broker_logs(broker_logs) if broker_logs else None
    measured = AuditDistances(found, most_events) if distance else None
    distances = {} if measured is None else _distances(found, measured, partitions)
    restart = None if broker is None else check(found, broker, name)
    code = _exit_code(found, restart, logs)
    if as_json:
        ui.json(results_as_json(found, name, restart, distances, logs))
    else:
        ui.show(
            _blocks(found, name, logs, distances, most) if restart is None else _restart(found, name, restart, most),
            form,
        )
        ui.caution([*found.gaps, *([] if logs is None else logs.notes)])
        for note in found.notes:
            if note not in found.gaps:
                ui.note(f"highwater: {note}")
        if form == "text" and restart is None:
            ui.verdict(verdict(found, logs), code)
    if stories is not None and measured is not None:
        ui.note(_write_stories(stories, measured, distances, name, most))
    if output is not None:
        from highwater.lab.audit.page import audit_page

        _write_page(ui, output, audit_page(found, paths, name, distances, logs))
    return code


def _quorum(
    ui: Ui,
    folders: Sequence[Path],
    to_format: int | None,
    to_restart: int | None,
    others: Mapping[str, object],
    *,
    form: str,
    as_json: bool,
) -> int:
    """The audit of a quorum; raises InputError for what is about one log."""
    from highwater.lab.audit.quorum import audit_quorum

    if to_format is not None and to_restart is not None:
        raise InputError("--before-format and --before-restart are two questions: ask one at a time")
    if len(folders) < 2:
        raise InputError("--before-format needs the log directories of the other controllers, too")
    for option, value in others.items():
        if value:
            raise InputError(f"{option} is about one metadata log: give the folder of one controller")
    return audit_quorum(ui, folders, to_format, to_restart, form=form, as_json=as_json)


def _check_output(output: Path | None, broker: int | None) -> None:
    from reports import starts

    if output is None:
        return
    if broker is not None:
        raise InputError("--output has the whole audit, and --before-restart is one question: ask one at a time")
    starts.check_file("--output", output, starts.REPORT)


def _write_page(ui: Ui, output: Path, text: str) -> None:
    from reports import starts
    from scenarios import own_files

    own_files.write(output, text, starts.REPORT)
    ui.note(f"written to {output}")


def _setting(key: str, value: str) -> str:
    from highwater.lab.audit.image import CLUSTER_KEYS
    from highwater.lab.audit.records import is_setting
    from sim.errors import did_you_mean

    if key not in CLUSTER_KEYS:
        raise InputError(f"--static {key} is not used by an audit{did_you_mean(key, CLUSTER_KEYS)}")
    if not is_setting(key, value):
        raise InputError(f"--static {key}={value}: this is no value of {key}")
    return value


def _check_broker_logs(broker_logs: Sequence[Path], broker: int | None) -> None:
    if broker_logs and broker is not None:
        raise InputError("--broker-log tells what was lost, and --before-restart is about now: ask one at a time")


def _check_distance(distance: bool, partitions: Sequence[str], stories: Path | None, broker: int | None) -> None:
    if broker is not None and distance:
        raise InputError("--distance and --before-restart are two questions: ask one at a time")
    for option, is_given in (("--partition", bool(partitions)), ("--stories", stories is not None)):
        if is_given and not distance:
            raise InputError(f"{option} needs --distance")


def _distances(found: Audit, measured: AuditDistances, names: Sequence[str]) -> Measured:
    """Distances of all partitions, or of named ones, these with the time when they were nearest to a loss."""
    from sim.errors import did_you_mean

    if not names:
        return {key: (measured.now(key), None) for key in sorted(found.image.partitions, key=found.image.order)}
    keys = {found.image.name(key): key for key in found.image.partitions}
    for name in names:
        if name not in keys:
            raise InputError(f"--partition {name}: there is no such partition{did_you_mean(name, keys)}")
    return {keys[name]: (measured.now(keys[name]), measured.nearest(keys[name])) for name in names}


def _nearest_first(distances: Measured, most: int) -> list[tuple[Key, Distance]]:
    ordered = sorted(distances.items(), key=lambda item: item[1][0].order)
    return [(key, now) for key, (now, _) in ordered][:most]


def _distance_blocks(distances: Measured, name: Named, most: int) -> Iterator[Block]:
    from highwater.lab.audit import results

    yield from _table(results.distance_table(distances, name), most)
    for key, now in _nearest_first(distances, most):
        for what, stories in (("loss", now.loss), ("no leader", now.leaderless)):
            if stories:
                yield Text(f"{name(key)}, {what}: {results.told(stories[0])}.")


def _write_stories(folder: Path, measured: AuditDistances, distances: Measured, name: Named, most: int) -> str:
    """Write the first story of each kind of the nearest partitions; returns how many, in a sentence."""
    from highwater.lab.audit.stories import START, scenario
    from scenarios.own_files import below, write

    paths = below(folder, create=True)
    written = without = 0
    for number, (key, now) in enumerate(_nearest_first(distances, most), start=1):
        approach = measured.approach(key) if now.loss or now.leaderless else None
        for kind, stories in (("loss", now.loss), ("leaderless", now.leaderless)):
            if stories and approach is None:
                without += 1
            elif stories and approach is not None:
                mode = measured.audit.mode.name
                text = scenario(f"story-{number}-{kind}", approach, stories[0], measured.settings(key), mode, name(key))
                write(paths / f"story-{number}-{kind}.toml", text, START)
                written += 1
    missing = f"; {without} begin in a state to which no short way is known" if without else ""
    return f"{counted(written, 'story', 'stories')} written to {folder}{missing}"


def _exit_code(found: Audit, restart: Restart | None, logs: BrokerLogs | None) -> int:
    from highwater.lab.audit.risks import Severity

    if restart is not None:
        return exit_codes.UNEXPECTED if restart.reasons else exit_codes.EXPECTED
    serious = any(risk.severity != Severity.MARGIN for risks in found.risks.values() for risk in risks)
    has_lost = logs is not None and len(logs.lost) > 0
    return exit_codes.UNEXPECTED if serious or found.unexplained or has_lost else exit_codes.EXPECTED


def _blocks(found: Audit, name: Named, logs: BrokerLogs | None, distances: Measured, most: int) -> Iterator[Block]:
    from highwater.lab.audit import results
    from highwater.lab.audit.risks import FINDINGS, ORDER

    yield Heading(results.answer(found))
    yield Items([*results.summary(found), *results.explained(found), *results.spare_lines(found, name, most)])
    for severity in ORDER:
        rows = results.risk_rows(found, severity, name)
        if not rows:
            continue
        number = results.at_risk(found, severity)
        shown = list(dict.fromkeys(row[0] for row in rows))[:most]
        yield Heading(f"{results.SEVERITIES[severity].capitalize()}: {counted(number, 'partition')}")
        for partition, kind, text, advice, finding in rows:
            if partition in shown:
                yield Text(f"{partition}: {text} ({kind}).")
                yield Items([f"Do: {advice}.", *([f"See {finding} in {FINDINGS}."] if finding else [])])
        yield from _more(number, most)
    for table in (*results.tables(found, name), results.at_risk_table(found, name)):
        yield from _table(table, most)
    if logs is not None:
        yield from _table(results.lost_table(logs, name), most)
        if not logs.lost:
            yield Heading(results.NOTHING_LOST)
    if distances:
        yield from _distance_blocks(distances, name, most)


def _table(table: Table, most: int) -> Iterator[Block]:
    if table.rows:
        yield replace(table, rows=table.rows[:most])
        yield from _more(len(table.rows), most)


def _more(number: int, most: int) -> Iterator[Block]:
    if number > most:
        yield Items([f"and {number - most} more (--most, --json)"])


def _restart(found: Audit, name: Named, restart: Restart, most: int) -> Iterator[Block]:
    from highwater.lab.audit import results

    yield Heading(results.restart_answer(found, restart))
    yield Items(results.summary(found))
    for cause in results.restart_causes(restart, name):
        partitions = cause["partitions"]
        yield Text(f"{cause['text'][:1].upper()}{cause['text'][1:]}.")
        which = "Partition" if len(partitions) == 1 else "Partitions"
        yield Items([f"Do: {cause['advice']}.", f"{which} {', '.join(partitions[:most])}."])
        yield from _more(len(partitions), most)
    reasons = list(restart.reasons.items())[:most]
    yield Items([f"{name(key)}: {'; '.join(text.text for text in texts)}." for key, texts in reasons])
    yield from _more(len(restart.reasons), most)
