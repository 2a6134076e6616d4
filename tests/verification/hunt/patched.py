"""``python -m tests.verification.hunt.patched``: how ``hunt --kafka DIR`` judges builds with one changed method.

Each patch changes the released source of one class of Kafka. The program compiles it against the released jars, puts
the classes into a copy of their jar, and runs the command on a folder with this jar and the released others. Right is:
for a repair of a finding, the hunt names the rule value that repairs it, and follows it; for a defect, it says that the
class differs, and does not take it for a repair; for released jars, no class differs. No other rule value may be named.

It needs Maven, which fetches sources and, for the patches in Scala, Scala's compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reports.brokers.kafka import releases
from reports.hunt.hunter import changed_rules
from reports.hunt.known import FINDINGS
from reports.hunt.state import State, from_json
from sim.errors import InputError, did_you_mean
from tests.places import ROOT
from tests.verification.oracle.build import CLASSES

RELEASE: Final = "4.3.1"
SCALA: Final = "2.13.18"
CONTROLLER: Final = "kafka-metadata", "org/apache/kafka/controller/"
CORE: Final = "kafka_2.13", "kafka/cluster/"
BUILDER: Final = "partition-change"
MANAGER: Final = "kraft-controller"
PARTITION: Final = "partition"
JAVA_OPTIONS: Final = ("-Xmx1g", "-XX:+UseSerialGC")
REPAIRS: Final = {"=".join(finding.repair) for finding in FINDINGS.values()}
"""Rule values that repair a finding."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A change of one method.

    Attributes:
        what: what it does, for a reader.
        artifact: the jar, and the folder in it.
        file: the source.
        changes: text of the source -> what replaces it.
        subjects: the subjects of which one at least must differ.
        rule: the rule value that the hunt must name; empty: a defect.
    """

    what: str
    artifact: tuple[str, str]
    file: str
    changes: tuple[tuple[str, str], ...]
    subjects: tuple[str, ...]
    rule: str = ""


PATCHES: Final = {
    "elr-of-replicas": Patch(
        "`PartitionChangeBuilder` keeps only replicas in the ELR",
        CONTROLLER,
        "PartitionChangeBuilder.java",
        (
            (
                "        targetElr = candidateSet.stream()\n",
                "        targetElr = candidateSet.stream()\n            .filter(targetReplicas::contains)\n",
            ),
        ),
        (BUILDER, MANAGER),
        "elr_outside_assignment=dropped",
    ),
    "marks-replaced": Patch(
        "`ReplicationControlManager`: a reassignment replaces the adding and removing replicas of the one in progress",
        CONTROLLER,
        "ReplicationControlManager.java",
        (
            ("        if (!reassignment.removing().isEmpty()) {\n", "        {\n"),
            ("        if (!reassignment.adding().isEmpty()) {\n", "        {\n"),
        ),
        (MANAGER,),
        "resubmitted_reassignment=replaces-marks",
    ),
    "pending-isr-kept": Patch(
        "`Partition`: a record with the leader's own epochs does not replace the pending ISR",
        CORE,
        "Partition.scala",
        (
            (
                "      val isNewLeader = !isLeader\n",
                "      val isNewLeader = !isLeader\n      val old = partitionState\n",
            ),
            (
                "      // We update the epoch start offset and the replicas' state only if the leader epoch\n",
                """\
      if (old.isInflight && !isNewLeader && !isNewLeaderEpoch
          && partitionRegistration.partitionEpoch == partitionEpoch) partitionState = old
""",
            ),
        ),
        (PARTITION,),
        "equal_partition_epoch=keeps-pending-isr",
    ),
    "elr-not-cleared": Patch(
        "`PartitionChangeBuilder` keeps the ELR when the ISR has min.insync.replicas members",
        CONTROLLER,
        "PartitionChangeBuilder.java",
        (("        if (targetIsr.size() >= minISR) {\n", "        if (false) {\n"),),
        (BUILDER, MANAGER),
    ),
    "epoch-not-bumped": Patch(
        "`PartitionChangeBuilder` does not bump the leader epoch when a reassignment removes replicas",
        CONTROLLER,
        "PartitionChangeBuilder.java",
        (("        if (!Replicas.contains(targetReplicas, partition.replicas)) {\n", "        if (false) {\n"),),
        (BUILDER, MANAGER),
    ),
    "hw-below-min-isr": Patch(
        "`Partition`: the high watermark also advances while the ISR is below min.insync.replicas",
        CORE,
        "Partition.scala",
        (
            (
                '    if (isUnderMinIsr) {\n      trace(s"Not increasing HWM',
                '    if (false) {\n      trace(s"Not increasing HWM',
            ),
        ),
        (PARTITION,),
    ),
}
UNCHANGED: Final = "unchanged"


def patched(text: str, patch: Patch) -> str:
    """The source with the patch; each text that it replaces must be there once."""
    for old, new in patch.changes:
        if text.count(old) != 1:
            raise InputError(f"{patch.file} of {RELEASE} has {text.count(old)} places like {old.strip()!r}")
        text = text.replace(old, new)
    return text


def maven(artifact: str, folder: Path) -> Path:
    """A jar from Maven's repository: ``group:artifact:version`` and perhaps ``:jar:classifier``."""
    _, name, version, *kind = artifact.split(":")
    path = folder / f"{'-'.join([name, version, *kind[1:]])}.jar"
    if not path.is_file():
        words = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode:
            raise InputError(f"{artifact} could not be fetched: {(done.stdout + done.stderr).strip().splitlines()[0]}")
    return path


class Builds:
    """Builds in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jars = releases.class_path(RELEASE)

    def make(self, name: str) -> Path:
        """The folder with the jars of a build."""
        place = self._folder / f"build-{name}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for jar in self._jars:
            _, artifact, version = jar.stem.split("__")
            (place / f"{artifact}-{version}.jar").symlink_to(jar)
        if name != UNCHANGED:
            patch = PATCHES[name]
            jar = place / f"{patch.artifact[0]}-{RELEASE}.jar"
            self._replace(jar, self._compiled(name, patch))
        return place

    def _compiled(self, name: str, patch: Patch) -> Path:
        artifact, inside = patch.artifact
        with zipfile.ZipFile(maven(f"org.apache.kafka:{artifact}:{RELEASE}:jar:sources", self._folder)) as archive:
            text = archive.read(f"{inside}{patch.file}").decode()
        work, classes = self._folder / f"source-{name}", self._folder / f"classes-{name}"
        for folder in (work, classes):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        (work / patch.file).write_text(patched(text, patch), encoding="utf-8")
        jars = ":".join(map(str, self._jars))
        words = [str(releases.java_command()), *JAVA_OPTIONS]
        if patch.file.endswith(".scala"):
            compiler = maven(f"org.scala-lang:scala-compiler:{SCALA}", self._folder)
            words += ["-cp", f"{compiler}:{jars}", "scala.tools.nsc.Main", "-nowarn", "-classpath", jars]
        else:
            words += ["-jar", str(releases.tool("compiler")), "-17", "-nowarn", "-proc:none", "-cp", jars]
        done = subprocess.run(
            [*words, "-d", str(classes), str(work / patch.file)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise InputError(f"{name} does not compile: {(done.stderr or done.stdout).strip()}")
        return classes

    def _replace(self, jar: Path, classes: Path) -> None:
        """Write a copy of a jar in which some classes are others."""
        changed = {str(path.relative_to(classes)): path.read_bytes() for path in classes.rglob("*.class")}
        released = jar.resolve()
        jar.unlink()
        with zipfile.ZipFile(released) as old, zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as new:
            for entry in old.infolist():
                if entry.filename not in changed and not entry.is_dir():
                    new.writestr(entry, old.read(entry))
            for name, content in changed.items():
                new.writestr(name, content)


def run_hunt(build: Path, output: Path, limit: str) -> tuple[int, State, list[str]]:
    """Run the command: its exit code, the state that it left, and what it answered."""
    words = [sys.executable, "-m", "highwater.cli.entry", "hunt", "--kafka", str(build), "--for", limit]
    words += ["--output", str(output), "--confirm", "0", "--json", "-q"]
    path = os.environ.get("PYTHONPATH") or str(ROOT)
    done = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False, cwd=output.parent
    )
    if done.returncode not in (0, 1):
        raise InputError(f"hunt ended with {done.returncode}: {done.stderr.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    state = from_json(json.loads((output / "hunt.json").read_text(encoding="utf-8")))
    return done.returncode, state, answer["answer"]


def problems(name: str, code: int, state: State) -> list[str]:
    """What the hunt judged wrongly."""
    rules = {f"{rule}={value}" for rule, value in changed_rules(state).items()}
    names = {classes: subject for subject, classes in CLASSES.items()}
    compared = {names.get(one["subject"], one["subject"]): one for one in state.oracle}
    differing = {subject for subject, one in compared.items() if one["differ"]}
    wrong = [f"{one['subject']}: {one['problem']}" for one in state.oracle if one["problem"]]
    if name == UNCHANGED:
        return wrong + [f"{subject} differs" for subject in sorted(differing)]
    patch = PATCHES[name]
    if not differing & set(patch.subjects):
        missing = [subject for subject in patch.subjects if subject not in compared]
        wrong.append(f"there was no time to compare {' and '.join(missing)}" if missing else "no class differs")
    if code != 1 and differing:
        wrong.append(f"exit code {code}")
    if patch.rule and rules != {patch.rule}:
        wrong.append(f"it takes it for {', '.join(sorted(rules)) or 'no rule'}, not for {patch.rule}")
    if not patch.rule and rules & REPAIRS:
        wrong.append(f"it takes a defect for the repair {', '.join(sorted(rules & REPAIRS))}")
    return wrong


def judge(name: str, builds: Builds, folder: Path, limit: str) -> bool:
    """Print how a build is judged; returns whether rightly."""
    begin_s = time.monotonic()
    code, state, answer = run_hunt(builds.make(name), folder / f"hunt-{name}", limit)
    wrong = problems(name, code, state)
    counts = [f"{one['subject']} {one['differ']:,} of {one['cases']:,}" for one in state.oracle if one["differ"]]
    runs = sum(arm.runs for arm in state.arms.values())
    lines = [
        f"{name}: {'; '.join(wrong) or 'right'} (exit code {code}, {time.monotonic() - begin_s:.0f} s)",
        f"  {len(state.oracle)} of {len(CLASSES) - 2} classes compared, differing: {', '.join(counts) or 'none'}",
        f"  rules: {', '.join(f'{rule}={value}' for rule, value in changed_rules(state).items()) or 'none'}",
        f"  {runs:,} runs, {sum(not one.known for one in state.causes.values())} new causes",
        *(f"  | {line}" for line in answer),
    ]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    return not wrong


def main() -> int:
    """Judge builds; 1 if any is judged wrongly."""
    names = [*PATCHES, UNCHANGED]
    parser = argparse.ArgumentParser(prog="python -m tests.verification.hunt.patched", description=__doc__)
    parser.add_argument("patches", nargs="*", metavar="PATCH", help=f"of {', '.join(names)}; all unless told")
    parser.add_argument("--for", dest="limit", default="6m", help="time of each hunt")
    options = parser.parse_args()
    for one in options.patches:
        if one not in names:
            sys.stderr.write(f"{one!r} is no patch{did_you_mean(one, names)}\n")
            return 2
    folder = Path(tempfile.mkdtemp(prefix="patched-"))
    builds = Builds(folder)
    results = [judge(one, builds, folder, options.limit) for one in options.patches or names]
    sys.stdout.write(f"{sum(results)} of {len(results)} builds are judged rightly\n")
    if all(results):
        shutil.rmtree(folder)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
