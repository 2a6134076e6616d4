"""``python -m tests.verification.oracle.build``: the classes of a build of Kafka beside the rules of a release.

`highwater hunt --kafka DIR` runs it in a process of its own: without a subject it prints the subjects that the release
has, with one what differs, as one JSON object. It ends when its standard input does.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm.release import find
from highwater.lab.kafka import releases
from sim import exit_codes
from sim.errors import UserError
from sim.protocol.rules import RULES
from tests.verification.oracle.comparing import Comparison, Found, Outcome
from tests.verification.oracle.differences import listed
from tests.verification.oracle.kafka import Kafka, plain
from tests.verification.oracle.releases import RULES as RELEASES
from tests.verification.oracle.subjects import SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from sim.protocol.rules import Rules
    from tests.verification.oracle.subject import Case, Seen, Subject

SCHEMA_VERSION: Final = 1
CLASSES: Final = {
    "partition-change": "PartitionChangeBuilder",
    "kraft-controller": "ReplicationControlManager and ClusterControlManager",
    "epoch-cache": "LeaderEpochFileCache",
    "broker-lifecycle": "BrokerLifecycleManager",
    "alter-partition-manager": "DefaultAlterPartitionManager",
    "partition": "Partition",
    "partitions": "Partition and DefaultAlterPartitionManager",
    "log": "Log and UnifiedLog",
    "log-directories": "LogManager",
    "checkpoints": "LogManager and ReplicaManager, their checkpoints",
    "metadata-publisher": "MetadataLoader, BrokerMetadataPublisher and ReplicaManager",
    "replica-manager": "ReplicaManager, LogManager and BrokerMetadataPublisher",
    "follower": "AbstractFetcherThread",
    "fetcher": "AbstractFetcherThread, FetchSessionHandler and FetchManager",
    "producer": "Sender and TransactionManager",
    "consumer-position": "SubscriptionState, OffsetFetcher and Fetcher",
    "raft-client": "KafkaRaftClient and its log",
    "zk-election": "PartitionLeaderElectionAlgorithms",
    "zk-controller": "KafkaController",
}
"""Subject -> Kafka's classes; first those that change what a controller decides, which take little time."""
FIELDS: Final = {
    "state": ("replicas", "leader", "isr", "elr", "lastKnownElr", "recovering"),
    "change": ("acceptable", "minIsr", "elrEnabled", "election", "targetIsr", "uncleanShutdown", "recovering"),
    "reassign": ("acceptable", "minIsr", "elrEnabled", "election", "replicas"),
    "cancel": ("acceptable", "minIsr", "elrEnabled", "election", "uncleanAllowed"),
}
"""Operations of `partition-change` -> the names of their arguments."""
SHOWN: Final = (
    *("leader", "leaderEpoch", "isr", "elr", "lastKnownElr", "partitionEpoch"),
    *("replicas", "adding", "removing", "recovering"),
)
"""The names of what `partition-change` shows."""
KEPT: Final = 100
"""Most cases that differ and are kept, to look for a rule that explains them."""
OTHER_PLANES: Final = ("control_plane",)
"""Rules whose other value is another protocol."""
MANY: Final = 10
"""An exhaustive subject has so many times its quick form's cases, since its order is that of no case."""


@dataclass(frozen=True, slots=True)
class Differing:
    """A case that differs, and what the build shows."""

    case: Case
    kafka: Seen


class KeepingComparison(Comparison):
    """A comparison that keeps the first cases that differ."""

    def __init__(self, subject: Subject, kafka: Kafka, release: str) -> None:
        super().__init__(subject, kafka, release)
        self.differing: list[Differing] = []

    def _differs(self, seed: int, case: Case, kafka: Seen, outcome: Outcome) -> None:
        before = outcome.unlisted
        super()._differs(seed, case, kafka, outcome)
        if outcome.unlisted > before and len(self.differing) < KEPT:
            self.differing.append(Differing(case, kafka))


def explained(subject: Subject, release: str, differing: Sequence[Differing]) -> list[str]:
    """The rule values of which each, by itself, gives all answers of the build."""
    rules = subject.rules[release]
    imitated = [entry.name for entry in listed(subject.name, release)]
    here = rules.as_dict()
    found = []
    for name, spec in RULES.items():
        for value in spec.values:
            if value != here[name] and name not in OTHER_PLANES:
                changed = rules.override({name: value})
                if all(_answer(subject, one.case, release, changed, imitated) == one.kafka for one in differing):
                    found.append(f"{name}={value}")
    return found


def _answer(subject: Subject, case: Case, release: str, rules: Rules, imitated: Sequence[str]) -> Seen | None:
    try:
        return plain(subject.run(case, release, rules, imitated))
    except Exception:  # A value that does not fit the others.
        return None


def release_of(number: tuple[int, ...]) -> str:
    """The release whose rules are nearest: the last one that is no newer, else the first."""
    older = [name for name in RELEASES if tuple(map(int, name.split("."))) <= number]
    return older[-1] if older else next(iter(RELEASES))


def compared(folder: str, name: str, cases: int | None = None) -> dict[str, Any]:
    """What differs of a subject between a build and the rules of its release.

    Args:
        folder: the folder of the build.
        name: the subject.
        cases: how many cases; None: those of the quick form, of exhaustive subjects more.
    """
    build = find(folder)
    release = release_of(build.number)
    subject, outcome = SUBJECTS[name], Outcome()
    number = cases or subject.quick * (MANY if subject.whole is not None else 1)
    problem = ""
    differing: list[Differing] = []
    try:
        with Kafka(subject, release, build.jars) as kafka:
            comparison = KeepingComparison(subject, kafka, release)
            differing = comparison.differing
            for _ in comparison.go(0, number, outcome):
                pass
    except UserError as error:
        problem = error.problems[0]
    smallest = min(outcome.found, key=lambda one: (len(one.case), len(str(one.case))), default=None)
    return {
        "schema_version": SCHEMA_VERSION,
        "subject": CLASSES[name],
        "release": release,
        "cases": outcome.cases,
        "differ": outcome.unlisted,
        "smallest": "" if smallest is None else sentence(name, smallest),
        "lines": [line for found in outcome.found for line in found.lines()],
        "explained": explained(subject, release, differing) if differing else [],
        "problem": problem,
    }


def sentence(name: str, found: Found) -> str:
    """The smallest case of a difference, and both answers where they differ."""
    steps = found.case[: found.place + 1]
    kafka, core = found.kafka[found.place], found.core[found.place]
    if name != "partition-change" or not isinstance(kafka, list) or not isinstance(core, list):
        told = "; ".join(" ".join(map(str, step)) for step in steps)
        return f"{told}: the build answers {kafka}, the mode {core}"
    told = "; ".join(
        " ".join([step[0], *(f"{key}={_word(value)}" for key, value in zip(FIELDS[step[0]], step[1:], strict=True))])
        for step in steps
    )
    differing = [at for at, (one, other) in enumerate(zip(kafka, core, strict=True)) if one != other]
    answers = [", ".join(f"{SHOWN[at]} {_word(seen[at])}" for at in differing) for seen in (kafka, core)]
    return f"{told}: the build answers {answers[0]}, the mode {answers[1]}"


def _word(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def subjects(folder: str) -> list[str]:
    """The subjects that the release of a build has, in the order of `CLASSES`, but first those whose classes the build
    changes, if the release's own jars are here.
    """
    build = find(folder)
    release = release_of(build.number)
    names = [name for name in CLASSES if release in SUBJECTS[name].rules]
    changed = changed_classes(build.jars, releases.class_path(release)) if releases.is_fetched(release) else set()
    return sorted(names, key=lambda name: changed.isdisjoint(re.findall(r"\w+", CLASSES[name])))


def changed_classes(build: Iterable[Path], released: Iterable[Path]) -> set[str]:
    """Kafka's classes, by their simple names, whose bytes in a build are not those of the release."""
    here, there = _checksums(build), _checksums(released)
    return {_simple_name(name) for name, value in here.items() if there.get(name) != value}


def _checksums(jars: Iterable[Path]) -> dict[str, int]:
    """Class file -> the checksum of its bytes; the first jar that has it counts."""
    found: dict[str, int] = {}
    for jar in jars:
        if "kafka" in jar.name and zipfile.is_zipfile(jar):
            with zipfile.ZipFile(jar) as archive:
                for entry in archive.infolist():
                    if entry.filename.endswith(".class"):
                        found.setdefault(entry.filename, entry.CRC)
    return found


def _simple_name(file: str) -> str:
    return file.rpartition("/")[2].removesuffix(".class").partition("$")[0]


def _end_with_input() -> None:
    """Interrupt this process when its standard input ends, so that it ends Java and removes its folder."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGINT)


def main(folder: str, name: str = "") -> int:
    """Print the subjects, or what differs of one."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Shells let processes in the background ignore it.
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        told = compared(folder, name) if name else {"schema_version": SCHEMA_VERSION, "subjects": subjects(folder)}
    except UserError as error:
        sys.stderr.write("".join(f"{problem}\n" for problem in error.problems))
        return error.exit_code
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    sys.stdout.write(f"{json.dumps(told)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
