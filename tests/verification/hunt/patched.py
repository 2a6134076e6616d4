"""``python -m tests.verification.hunt.patched``: how ``hunt --kafka DIR`` judges builds with one changed method.

Each patch changes the released source of one class of Kafka. The program compiles it against the released jars, puts
the classes into a copy of their jar, and runs the command on a folder with this jar and the released others. Right is:
for a repair of a finding, the hunt names the rule value that repairs it, follows it, and does not see the finding; for
a defect, it says that the class differs, and does not take it for a repair; for released jars, no class differs. No
other rule value may be named.

Each verdict is printed and kept as soon as a build's hunt ends. The same command goes on after an interruption: it
repeats no build that has a verdict, and continues the hunt that was interrupted. A build is undecided if its hunt had
no time for the class that is changed; then the same command, with a longer ``--for``, continues its hunt, too. Builds,
hunts and verdicts are in ``--folder``, in a folder of their own for each code version.

It needs Maven, which fetches sources and, for the patches in Scala, Scala's compiler.
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
import time
import zipfile
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

from highwater.lab.hunt import state as states
from highwater.lab.hunt.hunter import ORACLE, changed_rules
from highwater.lab.hunt.state import FINDING, HuntState
from highwater.lab.kafka import releases
from highwater.values import duration
from scenarios import own_files
from scenarios.format.findings import recognised
from scenarios.version import code_version
from sim import exit_codes
from sim.errors import InputError, UserError, did_you_mean
from tests.places import ROOT
from tests.verification.oracle.build import CLASSES

if TYPE_CHECKING:
    from collections.abc import Sequence

RELEASE: Final = "4.3.1"
SCALA: Final = "2.13.18"
CONTROLLER: Final = "kafka-metadata", "org/apache/kafka/controller/"
CORE: Final = "kafka_2.13", "kafka/cluster/"
BUILDER: Final = "partition-change"
MANAGER: Final = "kraft-controller"
PARTITION: Final = "partition"
JAVA_OPTIONS: Final = ("-Xmx1g", "-XX:+UseSerialGC")
JUDGED: Final = (exit_codes.EXPECTED, exit_codes.UNEXPECTED)
"""Exit codes of a hunt that took all its time."""
PATIENCE_S: Final = 60.0
"""Seconds that an interrupted hunt has to end."""
REPAIRS: Final = {"=".join(finding.repair) for finding in recognised().values()}
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
    """A jar from Maven's repository, or its local one: ``group:artifact:version`` and perhaps ``:jar:classifier``."""
    group, name, version, *kind = artifact.split(":")
    path = folder / f"{'-'.join([name, version, *kind[1:]])}.jar"
    local = Path.home() / ".m2" / "repository" / group.replace(".", "/") / name / version / path.name
    if local.is_file():
        return local
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
        """The folder with the jars of a build; it is made once, because a hunt knows a build by its bytes."""
        place = self._folder / f"build-{name}"
        if place.is_dir():
            return place
        beside = place.with_name(f"{place.name}.unfinished")
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        for jar in self._jars:
            _, artifact, version = jar.stem.split("__")
            (beside / f"{artifact}-{version}.jar").symlink_to(jar)
        if name != UNCHANGED:
            patch = PATCHES[name]
            self._replace(beside / f"{patch.artifact[0]}-{RELEASE}.jar", self._compiled(name, patch))
        return beside.rename(place)

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


@dataclass(frozen=True, slots=True)
class Ended:
    """A hunt that ended.

    Attributes:
        code: its exit code; None: it was stopped, or killed.
        state: what it knew then.
        answer: what it answered; nothing if it was killed.
    """

    code: int | None
    state: HuntState
    answer: list[str]


def run_hunt(build: Path, output: Path, limit: str, most_s: float) -> Ended:
    """Run the command, or continue it; it is stopped after `most_s` seconds, in whatever step it is then."""
    words = [sys.executable, "-m", "highwater.cli.entry", "hunt", "--kafka", str(build), "--for", limit]
    words += ["--output", str(output), "--confirm", "0", "--json", "-q"]
    path = os.environ.get("PYTHONPATH") or str(ROOT)
    process = subprocess.Popen(
        words,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=output.parent,
        process_group=0,  # An interruption from the keyboard would reach it twice.
    )
    try:
        said, problem = process.communicate(timeout=most_s)
    except subprocess.TimeoutExpired:
        said, problem = interrupt(process)
    except BaseException:
        interrupt(process)
        raise
    if process.returncode not in (*JUDGED, exit_codes.INTERRUPTED, -signal.SIGKILL):
        raise InputError(f"hunt ended with {process.returncode}: {problem.strip()}")
    answer: list[str] = json.loads(said)["answer"] if said else []
    found = states.from_json(json.loads((output / states.STATE).read_text(encoding="utf-8")))
    return Ended(process.returncode if process.returncode in JUDGED else None, found, answer)


def interrupt(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Interrupt a hunt, so that it writes its page and ends Java; kill it if it does not end."""
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "", ""


def problems(name: str, code: int | None, state: HuntState) -> list[str]:
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
        wrong.append("no class differs")
    if code == exit_codes.EXPECTED and differing:
        wrong.append(f"exit code {code}")
    if patch.rule and rules != {patch.rule}:
        wrong.append(f"it takes it for {', '.join(sorted(rules)) or 'no rule'}, not for {patch.rule}")
    if not patch.rule and rules & REPAIRS:
        wrong.append(f"it takes a defect for the repair {', '.join(sorted(rules & REPAIRS))}")
    repaired = {one.name for one in recognised().values() if "=".join(one.repair) == patch.rule}
    seen = {cause.name for cause in state.causes.values() if cause.known == FINDING and not cause.control}
    return wrong + [f"it finds {finding}, which the build repairs" for finding in sorted(repaired & seen)]


def not_compared(name: str, state: HuntState) -> list[str]:
    """The subjects without which a build is undecided, and for which the hunt had no time."""
    compared = {one["subject"]: one["differ"] for one in state.oracle}
    if name == UNCHANGED:
        subjects = sorted({subject for patch in PATCHES.values() for subject in patch.subjects})
    else:
        subjects = list(PATCHES[name].subjects)
        if any(compared.get(CLASSES[subject]) for subject in subjects):
            return []
    return [subject for subject in subjects if CLASSES[subject] not in compared]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a build is judged.

    Attributes:
        build: its name.
        wrong: what the hunt judged wrongly; nothing: all is right.
        missing: the subjects that it has to compare yet; if there are any, the build is undecided.
        lines: what it compared, ran and answered.
    """

    build: str
    wrong: list[str]
    missing: list[str]
    lines: list[str]

    def told(self) -> str:
        """For a reader."""
        word = "; ".join(self.wrong) or "right"
        if self.missing:
            word = f"undecided: there was no time to compare {' and '.join(self.missing)}"
        lines = [f"{self.build}: {word}", *(f"  {line}" for line in self.lines)]
        return "".join(f"{line}\n" for line in lines)


def judged(name: str, ended: Ended, took_s: float) -> Verdict:
    """The verdict on a build whose hunt ended."""
    state = ended.state
    counts = [
        f"{one['subject']} {one['differ']:,} of {one['cases']:,}{_as_with(one['explained'])}"
        for one in state.oracle
        if one["differ"]
    ]
    spent = {name: state.times.get(key, 0.0) for key, name in (("wall", "hunt"), (ORACLE, "comparing, CPU"))}
    runs = sum(arm.runs for arm in state.arms.values())
    lines = [
        f"exit code {ended.code}" if ended.code is not None else f"stopped after {took_s:.0f} s",
        f"{len(state.oracle)} of {len(CLASSES) - 2} classes compared, differing: {', '.join(counts) or 'none'}",
        f"rules: {', '.join(f'{rule}={value}' for rule, value in changed_rules(state).items()) or 'none'}",
        f"{runs:,} runs, {sum(not cause.known for cause in state.causes.values())} new causes",
        ", ".join(f"{part} {seconds:.0f} s" for part, seconds in spent.items()),
        *(f"| {line}" for line in ended.answer),
    ]
    missing = not_compared(name, state)
    return Verdict(name, [] if missing else problems(name, ended.code, state), missing, lines)


def _as_with(explained: Sequence[str]) -> str:
    return f" (as with {' or '.join(explained)})" if explained else ""


class Verdicts:
    """The verdicts of one folder, each kept as soon as it is there."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "verdicts.json"
        self._found: dict[str, Verdict] = {}
        if self._path.is_file():
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            self._found = {name: Verdict(**one) for name, one in kept.items()}

    def get(self, name: str) -> Verdict | None:
        """The verdict on a build; None: there is none yet."""
        return self._found.get(name)

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict."""
        self._found[verdict.build] = verdict
        kept = {name: asdict(one) for name, one in self._found.items()}
        own_files.replace(self._path, f"{json.dumps(kept, indent=1)}\n".encode(), re.compile(rb"\A\{"))


def judge(names: Sequence[str], folder: Path, limit: str, most_s: float) -> int:
    """Judge builds and print each verdict; returns how many are right."""
    builds, verdicts, right = Builds(folder), Verdicts(folder), 0
    for name in names:
        verdict = verdicts.get(name)
        if verdict is None:
            begin_s = time.monotonic()
            try:
                ended = run_hunt(builds.make(name), folder / f"hunt-{name}", limit, most_s)
            except UserError as error:
                tell(f"{name}: not judged: {error.problems[0]}\n")
                continue
            verdict = judged(name, ended, time.monotonic() - begin_s)
            if not verdict.missing:
                verdicts.add(verdict)
        right += not (verdict.wrong or verdict.missing)
        tell(verdict.told())
    return right


def tell(text: str) -> None:
    """Print at once, also into a file."""
    sys.stdout.write(text)
    sys.stdout.flush()


def main() -> int:
    """Judge builds; 1 if any is judged wrongly."""
    names = [*PATCHES, UNCHANGED]
    parser = argparse.ArgumentParser(prog="python -m tests.verification.hunt.patched", description=__doc__)
    parser.add_argument("patches", nargs="*", metavar="PATCH", help=f"of {', '.join(names)}; all unless told")
    parser.add_argument("--for", dest="limit", default="6m", help="time of each hunt")
    parser.add_argument("--most", default="12m", help="time after which a hunt is stopped, and judged by what it has")
    parser.add_argument("--folder", type=Path, default=ROOT / "store" / "patched", help="of builds and verdicts")
    options = parser.parse_args()
    for patch in options.patches:
        if patch not in names:
            sys.stderr.write(f"{patch!r} is no patch{did_you_mean(patch, names)}\n")
            return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)  # Shells let processes in the background ignore it.
    key = blake2b(f"{code_version()} {PATCHES}".encode(), digest_size=8).hexdigest()
    folder = (options.folder / key).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    chosen = options.patches or names
    try:
        right = judge(chosen, folder, options.limit, duration("--most", options.most))
    except UserError as error:
        sys.stderr.write("".join(f"{problem}\n" for problem in error.problems))
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the same command goes on\n")
        return exit_codes.INTERRUPTED
    tell(f"{right} of {len(chosen)} builds are judged rightly\n")
    return 0 if right == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
