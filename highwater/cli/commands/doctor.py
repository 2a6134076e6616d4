"""``highwater doctor``: versions, and whether runs are deterministic on this machine."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from highwater.cli.options import Command, json_option
from reports.document.blocks import Line, Table
from sim import exit_codes
from sim.errors import InputError, UserError
from sim.plurals import counted

if TYPE_CHECKING:
    from highwater.cli.console import Ui

SELF_TEST: Final = ("power", "kip101", 1)
"""Scenario, mode and seed of the self-test."""


@click.command("doctor", cls=Command)
@click.argument("folder", metavar="[DIR]", required=False)
@click.option("--repair", is_flag=True, help="Repair DIR: rerun damaged waves.")
@click.option(
    "--local", metavar="N", type=click.IntRange(min=1), help="Processes for --repair; by default one per core."
)
@json_option
@click.pass_obj
def command(ui: Ui, folder: str | None, repair: bool, local: int | None, as_json: bool) -> int:
    """Show versions, look for Java and PySpark, and run one seed three times: the digests must be equal.

    With DIR, look every file of a sweep's folder over instead, and name what is missing, torn or foreign.
    """
    if local and not repair:
        raise InputError("--local needs --repair: nothing else uses processes")
    if folder is not None:
        return _look_over(ui, folder, local or os.cpu_count() or 1, repair=repair, as_json=as_json)
    if repair:
        raise InputError("--repair needs the folder of a sweep")
    return _installation(ui, as_json=as_json)


def _look_over(ui: Ui, place: str, workers: int, *, repair: bool, as_json: bool) -> int:
    from highwater.cli.progress import sweep_progress
    from scenarios.sweep import checkup
    from scenarios.sweep.driver import Interrupted
    from scenarios.sweep.folder import open_folder
    from scenarios.sweep.local import LocalBackend

    folder = open_folder(place)
    found = checkup.check(folder)
    before = found
    if repair and (found.findings or found.missing):
        for finding in found.findings:
            ui.note(f"highwater: {finding}")
        try:
            with sweep_progress(ui) as progress:
                checkup.repair(folder, found, LocalBackend(workers), progress)
        except Interrupted as interrupted:
            ui.warn(f"interrupted: {interrupted}")
            return exit_codes.INTERRUPTED
        found = checkup.check(folder)
    incomplete = exit_codes.INCONCLUSIVE if found.missing else exit_codes.EXPECTED
    code = exit_codes.UNEXPECTED if found.findings else incomplete
    if as_json:
        findings = [{"where": defect.where, "what": defect.what, "wave": defect.wave} for defect in found.findings]
        repaired = len(before.findings) - len(found.findings)
        ui.json({"findings": findings, "repaired": repaired, "missing": found.missing, "exit_code": code})
        return code
    for finding in found.findings:
        ui.line(str(finding))
    if found.at_work:
        ui.line(f"a driver is at work: {found.at_work}")
    if found.findings:
        ui.line(f"{folder.shown} is damaged: {counted(len(found.findings), 'defect')}")
    if found.missing:
        ui.verdict(f"{found.missing:,} runs are missing: repeat the sweep's command, or use --repair", code)
    elif found.findings:
        todo = "move what is named above elsewhere: --repair does not touch it" if repair else "use --repair"
        ui.verdict(f"no run is missing: {todo}", code)
    else:
        ui.verdict(f"{folder.shown} is complete and sound" + (", after repair" if before is not found else ""), code)
    return code


def _installation(ui: Ui, *, as_json: bool) -> int:
    from reports import versions
    from scenarios.version import build

    installed = {name: versions.package(name) for name in versions.PACKAGES}
    java = _java(installed["pyspark"])
    digests = _digests()
    code = exit_codes.EXPECTED if len(set(digests.values())) == 1 else exit_codes.DIGEST_DIFFERS
    if as_json:
        found = {
            "highwater": versions.version(),
            "build": build(),
            "python": platform.python_version(),
            "packages": installed,
        }
        ui.json({**found, "java": java, "digests": digests, "exit_code": code})
        return code
    rows = [("highwater", versions.version()), ("python", platform.python_version()), *installed.items()]
    versions_found = [(name, found or "not installed") for name, found in rows]
    ui.show(
        [
            Table(["what", "version"], versions_found, apart=False),
            Line(f"java: {java}"),
        ]
    )
    ui.verdict(f"determinism, {' '.join(map(str, SELF_TEST))}: {_verdict(digests)}", code)
    return code


def _java(spark: str | None) -> str:
    """The Java of sweeps on the installed Spark, or of Kafka alone."""
    try:
        from scenarios.sweep.java import find_java, java_of_spark

        found = java_of_spark(spark) if spark else find_java()
    except UserError as error:
        return f"none; {error}"
    return f"{found.version} from {found.source} ({found.home})"


def _digests() -> dict[str, str]:
    """Process of the self-test -> its digest."""
    from scenarios.format.catalogue import load
    from scenarios.single.run import run_row
    from sim.protocol.modes import MODES

    scenario, mode, seed = SELF_TEST
    here = [run_row(load(scenario), MODES[mode], seed)["digest"] for _ in range(2)]
    return {"here": here[0], "here again": here[1], "fresh process": _digest_elsewhere()}


def _digest_elsewhere() -> str:
    """The digest computed by a process with another hash seed.

    Raises:
        RuntimeError: that process failed.
    """
    scenario, mode, seed = SELF_TEST
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    run = ("run", scenario, "--mode", mode, "--seed", str(seed), "--json")
    words = [sys.executable, "-m", "highwater.cli.entry", *run]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if not done.stdout:
        raise RuntimeError(f"the self-test's process ended with {done.returncode}: {done.stderr.strip()}")
    row: dict[str, Any] = json.loads(done.stdout)["runs"][0]["row"]
    digest: str = row["digest"]
    return digest


def _verdict(digests: dict[str, str]) -> str:
    if len(set(digests.values())) == 1:
        return f"ok, digest {digests['here']} three times"
    return "DIFFERS: " + ", ".join(f"{where} {digest}" for where, digest in digests.items())
