"""``python -m tests.verification.tickets``: run the scripts and JUnit tests of the tickets of all findings.

A script runs on a fresh cluster of the release that its first lines name, one after the other, each for at most
``--most``. Its folder ``KAFKA_HOME`` is put together from Kafka's released jars, with one-line scripts of the tools'
names; ``--home DIR`` uses an unpacked distribution instead. ``--junit RELEASE`` compiles the JUnit tests and runs them
with the test jars of that release. Each result is a line of ``runs.jsonl`` in `WRITTEN`, and what a script prints
is ``STORY.out`` there. ``--table`` prints the tables of the tickets' page.

It needs Maven, which fetches Kafka's tools and test jars, and a JDK.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from highwater.lab.kafka import releases
from highwater.lab.tickets.ticket import WRITTEN, findings, ticket
from highwater.values import duration
from sim import exit_codes
from sim.errors import InputError, UserError, did_you_mean
from tests.verification.hunt.patched import maven

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

RUNS: Final = WRITTEN / "runs.jsonl"
"""A line for each run."""
TOOLS: Final = {
    "kafka-configs": ("org.apache.kafka.tools.ConfigCommand", "kafka.admin.ConfigCommand"),
    "kafka-console-consumer": ("org.apache.kafka.tools.consumer.ConsoleConsumer",),
    "kafka-console-producer": ("org.apache.kafka.tools.ConsoleProducer", "kafka.tools.ConsoleProducer"),
    "kafka-delete-records": ("org.apache.kafka.tools.DeleteRecordsCommand",),
    "kafka-dump-log": ("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments"),
    "kafka-features": ("org.apache.kafka.tools.FeatureCommand",),
    "kafka-reassign-partitions": ("org.apache.kafka.tools.reassign.ReassignPartitionsCommand",),
    "kafka-server-start": ("kafka.Kafka",),
    "kafka-storage": ("kafka.tools.StorageTool",),
    "kafka-topics": ("org.apache.kafka.tools.TopicCommand",),
}
"""Kafka's script -> the classes that it may start, of which a release has one."""
TEST_JARS: Final = ("kafka_2.13", "kafka-metadata", "kafka-server-common", "kafka-raft", "kafka-clients")
TEST_LIBRARIES: Final = (
    "org.junit.platform:junit-platform-console-standalone:1.13.1",
    "org.mockito:mockito-core:5.14.2",
    "net.bytebuddy:byte-buddy:1.15.4",
    "net.bytebuddy:byte-buddy-agent:1.15.4",
    "org.objenesis:objenesis:3.3",
    "org.hamcrest:hamcrest:3.0",
)
RESULTS: Final = {0: "kept", 1: "failed as it says", 2: "not repeated"}
"""Exit code of a script -> what it means; others: it was stopped."""
STOPPED: Final = "stopped"
_RELEASE: Final = re.compile(r"unpacked Kafka ([\d.]+)")
_SHOWN: Final = re.compile(r"LOST|DIVERGED|NO LEADER|NOT COMPLETED|NOT REPEATED|KEPT")
_FOLDER: Final = re.compile(r"^(.* cluster of \d brokers) in .*$", re.MULTILINE)


@cache
def files() -> dict[str, str]:
    """The files of all tickets: name -> text."""
    return {name: text for story in findings() for name, text in ticket(story).files.items()}


def scripts() -> dict[str, str]:
    """The scripts, by the names of their stories."""
    return {name.removesuffix(".sh"): text for name, text in files().items() if name.endswith(".sh")}


def junit_tests() -> dict[str, str]:
    """The JUnit tests, by the names of their files."""
    return {name: text for name, text in files().items() if name.endswith(".java")}


def release_of(script: str) -> str:
    """The release that a script names."""
    found = _RELEASE.search(script)
    assert found is not None
    return found[1]


def class_of(jars: Iterable[Path], names: Sequence[str]) -> str:
    """The first of these classes that a jar has.

    Raises:
        InputError: none is there.
    """
    inside: set[str] = set()
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            inside.update(archive.namelist())
    for name in names:
        if f"{name.replace('.', '/')}.class" in inside:
            return name
    raise InputError(f"no jar has {names[0]}")


def distribution(release: str, folder: Path) -> Path:
    """A folder with Kafka's jars and one-line scripts of its tools' names."""
    home = folder / f"kafka-{release}"
    (home / "libs").mkdir(parents=True)
    (home / "bin").mkdir()
    jars = [
        *releases.class_path(release),
        releases.tool("logging"),
        maven(f"org.apache.kafka:kafka-tools:{release}", folder),
    ]
    for jar in jars:
        (home / "libs" / jar.name).symlink_to(jar)
    kafkas = [jar for jar in jars if "kafka" in jar.name]
    for name, classes in TOOLS.items():
        level = "info" if name == "kafka-server-start" else "error"
        options = f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel={level}"
        file = home / "bin" / f"{name}.sh"
        command = f'exec java $KAFKA_HEAP_OPTS {options} -cp "{home}/libs/*" {class_of(kafkas, classes)} "$@"'
        file.write_text(f"#!/bin/bash\n{command}\n", encoding="utf-8")
        file.chmod(0o755)
    return home


def run_script(name: str, home: Path, most_s: float) -> tuple[int, str, float]:
    """The exit code of a script, what it printed, and its seconds; all that it started has ended."""
    begin_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"ticket-{name}-") as work:
        process = subprocess.Popen(
            ["bash", "-c", scripts()[name], name],
            env={**os.environ, "KAFKA_HOME": str(home), "WORK": work},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )
        try:
            said, _ = process.communicate(timeout=most_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    return process.returncode, said, time.monotonic() - begin_s


def add(line: Mapping[str, Any]) -> None:
    """Keep a result."""
    with RUNS.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"day": time.strftime("%Y-%m-%d"), **line}) + "\n")


def tell(text: str) -> None:
    """Print at once, also into a file."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def try_scripts(names: Sequence[str], home: Path | None, most_s: float) -> bool:
    """Run scripts; returns whether each showed its failure."""
    homes: dict[str, Path] = {}
    good = True
    with tempfile.TemporaryDirectory(prefix="tickets-") as place:
        for name in names:
            release = release_of(scripts()[name])
            if release not in homes:
                homes[release] = home or distribution(release, Path(place))
            code, said, seconds = run_script(name, homes[release], most_s)
            result = RESULTS.get(code, STOPPED)
            shown = [line for line in said.splitlines() if _SHOWN.match(line)]
            if code in RESULTS:
                text = _FOLDER.sub(r"\1", said)
                (WRITTEN / f"{name}.out").write_text(f"{text}exit {code}\n", encoding="utf-8")
            add({"script": name, "release": release, "seconds": round(seconds), "code": code, "said": shown})
            tell(f"{name:34} {release:6} {seconds:5.0f} s  {result}: {'; '.join(shown)}")
            good = good and code == exit_codes.UNEXPECTED
    return good


def compiled(release: str, folder: Path) -> list[Path]:
    """Compile the JUnit tests; returns the class path on which they run, their own folder first."""
    jars = [maven(f"org.apache.kafka:{name}:{release}:jar:test", folder) for name in TEST_JARS]
    jars += [*(maven(one, folder) for one in TEST_LIBRARIES), *releases.class_path(release)]
    classes = folder / "classes"
    classes.mkdir()
    compiler = shutil.which("javac")
    if compiler is None:
        raise InputError("there is no javac on PATH")
    words = [compiler, "-nowarn", "-proc:none", "-cp", ":".join(map(str, jars)), "-d", str(classes)]
    for name, text in junit_tests().items():
        (folder / name).write_text(text, encoding="utf-8")
    words += (str(folder / name) for name in junit_tests())
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"the tests do not compile with {release}: {(done.stderr or done.stdout).strip()}")
    return [classes, *jars]


def results(report: str) -> Iterator[tuple[str, str, str]]:
    """Class, test, and why it is red (empty: it is green), of a report of JUnit's launcher."""
    for case in ElementTree.fromstring(report).iter("testcase"):  # noqa: S314 - written by our own JUnit
        wrong = [*case.iter("failure"), *case.iter("error")]
        why = (wrong[0].get("message") or wrong[0].get("type") or "?").splitlines()[0] if wrong else ""
        yield str(case.get("classname")).rpartition(".")[2], str(case.get("name")), why


def try_tests(release: str) -> bool:
    """Run the JUnit tests with the test jars of a release; returns whether each class has a red case."""
    with tempfile.TemporaryDirectory(prefix="tickets-") as place:
        jars = compiled(release, Path(place))
        words = [str(releases.java_command()), "-cp", ":".join(map(str, jars))]
        words += ["org.junit.platform.console.ConsoleLauncher", "execute", "--details", "none"]
        words += ["--scan-classpath", str(jars[0]), "--reports-dir", place]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        report = Path(place, "TEST-junit-jupiter.xml")
        if not report.is_file():
            raise InputError(f"JUnit wrote no report: {(done.stderr or done.stdout).strip()}")
        found = list(results(report.read_text(encoding="utf-8")))
    red = {name for name, _, why in found if why}
    for name, test, why in found:
        add({"junit": name, "test": test, "release": release, "red": bool(why), "why": why})
        tell(f"{name:36} {test:40} {release}  {f'red: {why[:160]}' if why else 'green'}")
    return red == {name.removesuffix(".java") for name in junit_tests()}


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """The last run of each script, and of each JUnit test with each release."""
    ran = {(line["script"], line["release"]): line for line in lines if "script" in line}
    tests: dict[str, dict[str, list[bool]]] = {}
    for line in lines:
        if "junit" in line:
            tests.setdefault(line["junit"], {}).setdefault(line["release"], [])
    last = {(line["junit"], line["test"], line["release"]): line["red"] for line in lines if "junit" in line}
    for (name, _, release), red in last.items():
        tests[name][release].append(red)
    rows = ["| script | release | seconds | result | day |", "|---|---|---:|---|---|"]
    for (name, release), one in sorted(ran.items()):
        result = RESULTS.get(one["code"], STOPPED)
        said = f": {'; '.join(one['said'])}" if one["said"] else ""
        rows.append(f"| `{name}` | {release} | {one['seconds']} | {result}{said} | {one['day']} |")
    rows += ["", "| JUnit test | red cases, by release |", "|---|---|"]
    for name, by_release in sorted(tests.items()):
        words = [f"{release}: {sum(reds)} of {len(reds)}" for release, reds in sorted(by_release.items(), reverse=True)]
        rows.append(f"| `{name}` | {', '.join(words)} |")
    return "\n".join(rows)


def read() -> list[dict[str, Any]]:
    """All results that are kept."""
    return [json.loads(line) for line in RUNS.read_text(encoding="utf-8").splitlines()] if RUNS.is_file() else []


def main() -> int:
    """Run scripts or tests; 1 if one did not show its failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.verification.tickets", description=__doc__)
    parser.add_argument("stories", nargs="*", metavar="STORY", help="whose scripts run; all unless told")
    parser.add_argument("--home", type=Path, help="an unpacked distribution of Kafka")
    parser.add_argument("--most", default="15m", help="time after which a script is stopped")
    parser.add_argument("--junit", metavar="RELEASE", help="run the JUnit tests instead")
    parser.add_argument("--table", action="store_true", help="print the tables of what ran so far, and run nothing")
    options = parser.parse_args()
    for story in options.stories:
        if story not in scripts():
            sys.stderr.write(f"{story!r} has no script{did_you_mean(story, scripts())}\n")
            return exit_codes.BAD_INPUT
    if options.table:
        tell(table(read()))
        return exit_codes.EXPECTED
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)  # So that a script's brokers end, too.
    try:
        if options.junit:
            good = try_tests(options.junit)
        else:
            good = try_scripts(options.stories or list(scripts()), options.home, duration("--most", options.most))
    except UserError as error:
        sys.stderr.write("".join(f"{problem}\n" for problem in error.problems))
        return error.exit_code
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    return exit_codes.EXPECTED if good else exit_codes.UNEXPECTED


if __name__ == "__main__":
    sys.exit(main())
