"""``python -m tests.verification.oracle.mutants``: whether the oracle detects changes of the core.

Mutants are drawn from all comparisons and assignments in the core's files of a subject, by a seed; one at a time is put
into a copy of the sources. Each is looked for by the recorded vectors alone, and by the cases of ``make oracle
QUICK=1``, whose answers are asked of Kafka once. A mutant on which the core fails or hangs is found.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.places import ROOT
from tests.verification.oracle import recording
from tests.verification.oracle.differences import listed
from tests.verification.oracle.kafka import Kafka, plain
from tests.verification.oracle.subject import Subject
from tests.verification.oracle.subjects import SUBJECTS

SEED: Final = 16
SECONDS: Final = 240
CORE: Final[dict[str, tuple[str, ...]]] = {
    "epoch-cache": ("log/leader_epoch_file_cache.py",),
    "partition-change": ("kraft/partition_change_builder.py", "kraft/reassignment.py"),
    "kraft-controller": (
        "kraft/quorum_controller.py",
        "kraft/replication_control_manager.py",
        "kraft/broker_heartbeat_manager.py",
        "kraft/isr_validation.py",
        "kraft/metadata.py",
    ),
    "partition": ("replica/partition.py", "replica/followers.py", "replica/isr.py"),
    "log": ("log/log.py", "log/producer_state_manager.py", "replica/replica.py", "../environment/storage.py:recover"),
    "follower": ("replica/replica_fetcher_thread.py", "replica/truncation.py"),
    "producer": ("client/sender.py", "client/producer_sequences.py"),
    "zk-election": tuple(
        f"zookeeper/election.py:{name}" for name in ("offline", "preferred", "reassigned", "controlled_shutdown")
    ),
    "zk-controller": (
        "zookeeper/kafka_controller.py",
        "zookeeper/partition_state_machine.py",
        "zookeeper/replica_state_machine.py",
        "zookeeper/controller_context.py",
        "zookeeper/election.py",
    ),
}
"""What stands for Kafka's class, in ``sim/protocol``: files, or a file's functions."""
OTHER: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one place.

    Attributes:
        file: in ``sim/protocol``; so for `line`.
        before: the source of the place; so for `after`.
        text: the whole file.
    """

    file: str
    line: int
    before: str
    after: str
    text: str


def places(core: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """File, line and column of all places in functions that a mutant may change, except in `__init__`."""
    file, _, wanted = core.partition(":")
    tree = ast.parse((ROOT / "sim" / "protocol" / file).read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name != "__init__" and wanted in ("", function.name):
            for node in ast.walk(function):
                if _changed(node) is not None:
                    assert isinstance(node, ast.expr | ast.stmt)
                    yield file, (node.lineno, node.col_offset)


def _changed(node: ast.AST) -> ast.AST | None:
    """The changed node; None if it cannot be changed."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return ast.Compare(node.left, [OTHER[type(node.ops[0])]()], node.comparators)
    if isinstance(node, ast.AugAssign):
        return ast.Pass()
    if isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name | ast.Tuple):
        return ast.Pass()
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BoolOp | ast.UnaryOp):
        return ast.Assign(node.targets, ast.UnaryOp(ast.Not(), node.value))
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp):
        value = node.value
        return ast.Assign(node.targets, ast.IfExp(value.test, value.orelse, value.body))
    return None


class _Change(ast.NodeTransformer):
    def __init__(self, place: tuple[int, int]) -> None:
        self._place = place
        self.told = ("", "")

    def visit(self, node: ast.AST) -> Any:
        place = getattr(node, "lineno", 0), getattr(node, "col_offset", -1)
        changed = _changed(node) if place == self._place and not self.told[0] else None
        if changed is None:
            return self.generic_visit(node)
        ast.copy_location(changed, node)
        self.told = ast.unparse(node), ast.unparse(ast.fix_missing_locations(changed))
        return changed


def mutants(subject: str, count: int, seed: int) -> list[Mutant]:
    """Random mutants of a subject, of all places in its files."""
    found = sorted({place for core in CORE[subject] for place in places(core)})
    chosen = Random(f"{seed}/{subject}").sample(found, min(count, len(found)))
    made = []
    for file, place in chosen:
        change = _Change(place)
        tree = change.visit(ast.parse((ROOT / "sim" / "protocol" / file).read_text(encoding="utf-8")))
        made.append(Mutant(file, place[0], *change.told, ast.unparse(ast.fix_missing_locations(tree))))
    return made


# Looking for one.


def first_found(subject: Subject, answers: dict[str, list[Any]]) -> int:
    """After how many cases the core differs from Kafka; 0: never. Runs in the folder of the sources."""
    count = 0
    for release, vectors in answers.items():
        names = [entry.name for entry in listed(subject.name, release)]
        for case, answer in vectors:
            count += 1
            if not any(_agrees(subject, case, release, imitated, answer) for imitated in {(), tuple(names)}):
                return count
    return 0


def _agrees(subject: Subject, case: Any, release: str, imitated: tuple[str, ...], answer: Any) -> bool:
    try:
        return bool(plain(subject.core(case, release, imitated)) == answer)
    except Exception:
        return False


def _recorded(subject: Subject) -> dict[str, list[Any]]:
    return {
        release: json.loads(recording.path(subject.name, release).read_text(encoding="utf-8"))["vectors"]
        for release in subject.rules
    }


def _quick(subject: Subject) -> dict[str, list[Any]]:
    """The cases of ``QUICK=1``, with Kafka's answers."""
    answers: dict[str, list[Any]] = {}
    for release in subject.rules:
        cases = [subject.case(release, seed) for seed in range(subject.quick)]
        with Kafka(subject, release) as kafka:
            answers[release] = [[case, answer] for case, answer in zip(cases, kafka.run(*cases), strict=True)]
    return answers


def _tree(folder: Path) -> None:
    """A folder with a copy of the core, and links to everything else."""
    shutil.copytree(ROOT / "sim", folder / "sim", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for path in ROOT.iterdir():
        if path.name != "sim" and not path.name.startswith("."):
            (folder / path.name).symlink_to(path)


def _look(mutant: Mutant, subject: str, answers: Path, folder: Path) -> list[Any]:
    """The results of vectors and quick cases for a mutant: see `first_found`; a text if it hangs."""
    file = folder / "sim" / "protocol" / mutant.file
    kept = file.read_text(encoding="utf-8")
    file.write_text(mutant.text, encoding="utf-8")
    command = [
        sys.executable,
        "-B",
        "-m",
        "tests.verification.oracle.mutants",
        "--look",
        subject,
        "--answers",
        str(answers),
    ]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return ["hangs", "hangs"]
    finally:
        file.write_text(kept, encoding="utf-8")
    found: list[Any] = json.loads(done.stdout) if not done.returncode else ["fails", "fails"]
    return found


@dataclass(frozen=True, slots=True)
class _Look:
    answers: Path
    folder: Path

    def __call__(self, mutant: Mutant, subject: str) -> list[Any]:
        return _look(mutant, subject, self.answers, self.folder)


def main() -> int:
    """Test random mutants, and print a table of what detected each."""
    parser = argparse.ArgumentParser(prog="python -m tests.verification.oracle.mutants", description=__doc__)
    parser.add_argument("--subject", choices=list(CORE))
    parser.add_argument("--count", type=int, default=6, help="of each subject")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--look", choices=list(CORE), help=argparse.SUPPRESS)
    parser.add_argument("--answers", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.look:
        subject = SUBJECTS[options.look]
        quick: dict[str, list[Any]] = json.loads(options.answers.read_text(encoding="utf-8"))
        sys.stdout.write(json.dumps([first_found(subject, _recorded(subject)), first_found(subject, quick)]))
        return 0
    missed = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as text:
        folder = Path(text)
        _tree(folder)
        for name in [options.subject] if options.subject else list(CORE):
            answers = folder / "answers.json"
            answers.write_text(json.dumps(_quick(SUBJECTS[name])), encoding="utf-8")
            missed += _try(name, mutants(name, options.count, options.seed), _Look(answers, folder))
    return int(missed > 0)


def _try(name: str, drawn: list[Mutant], look: Callable[[Mutant, str], list[Any]]) -> int:
    missed = 0
    for mutant in drawn:
        vectors, quick = look(mutant, name)
        missed += not vectors or not quick
        place = f"{mutant.file}:{mutant.line}"
        sys.stdout.write(f"| `{name}` | {place} | `{mutant.before}` | `{mutant.after}` | {quick} | {vectors} |\n")
        sys.stdout.flush()
    return missed


if __name__ == "__main__":
    sys.exit(main())
