"""Names of Kafka's classes and methods in the docstrings of `sim`: the way back, and whether releases have them.

A docstring ends its description, or the line that is all of it, with a list of references::

    Kafka: Partition#makeLeader, Log#append (0.10.2-2.6), UnifiedLog#append (3.9-4.3).

A name is a class, a nested one after its outer one, with as much of its package as tells it from others; after ``#``
comes a method or a field that this very class declares. The range is that of the releases in `releases.py` that have
it, no less and no more; a name that a release in between lacks stands twice, with two ranges. Without a range these are
the releases of the module's control plane (`PLANES`), or all.

``python -m tests.verification.oracle.names`` prints the way back, which ``make docs`` has as a page.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from highwater.lab.kafka import releases
from sim.protocol.rules import RULES as RULE_SPECS
from tests.places import ROOT
from tests.verification.oracle import class_files
from tests.verification.oracle.releases import RULES

RELEASES: Final[dict[str, list[str]]] = {}
"""By the name that a range gives them: 0.10.2, 1.1, ..."""
for _release in RULES:
    RELEASES.setdefault(".".join(_release.split(".")[: 3 if _release.startswith("0") else 2]), []).append(_release)
PLANES: Final = {
    ("3.9", "4.4"): (
        "sim/protocol/kraft/",
        "sim/protocol/raft/",
        "sim/hosts/alter_partition_channel",
        "sim/hosts/assignments_manager",
        "sim/hosts/broker_heartbeat_tracker",
        "sim/hosts/broker_lifecycle",
        "sim/hosts/broker_metadata_publisher",
        "sim/hosts/controller_",
        "sim/hosts/kraft_",
        "sim/hosts/metadata_",
        "sim/hosts/node_to_controller_",
        "sim/hosts/raft_",
        "sim/hosts/replica_alter_log_dirs_thread",
        "sim/hosts/topics",
    ),
    ("0.10.2", "3.9"): ("sim/protocol/zookeeper/", "sim/hosts/zk_", "sim/hosts/zookeeper"),
}
"""Releases that have a control plane, and how the paths of its modules begin."""
ALL: Final = ("0.10.2", "4.4")
BEGIN: Final = "Kafka: "
_ONE: Final = r"[A-Za-z]\w*(?:\.[A-Za-z]\w*)*(?:#\w+)?(?: \(([\d.]+?)(?:-([\d.]+?))?\))?"
_LIST: Final = re.compile(rf"{BEGIN}({_ONE}(?:, {_ONE})*)\.(?= |$)")
_PART: Final = re.compile(rf"({_ONE})(?:, |$)")


class UnreadableError(ValueError):
    """A docstring has a reference that cannot be read."""


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """A docstring's reference.

    Attributes:
        kafka: Kafka's name, ``Class`` or ``Class#member``.
        first: oldest release that has it, as in `RELEASES`.
        last: newest release.
        path: of our module, from the root on.
        ours: our name in it, "" for the module.
    """

    kafka: str
    first: str
    last: str
    path: str
    ours: str

    @property
    def releases(self) -> list[str]:
        """The full names of the releases that it names."""
        names = list(RELEASES)
        return [one for name in names[names.index(self.first) : names.index(self.last) + 1] for one in RELEASES[name]]


def references(root: Path = ROOT / "sim") -> list[Reference]:
    """All references, by Kafka's name.

    Raises:
        UnreadableError: one cannot be read.
    """
    found = []
    for path in sorted(root.rglob("*.py")):
        module = path.relative_to(ROOT).as_posix()
        for ours, text in docstrings(ast.parse(path.read_text(encoding="utf-8"))):
            found += read(text, module, ours)
    return sorted(found, key=lambda reference: (reference.kafka.partition("#"), reference))


def docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Our names and their docstrings, those below assignments included."""

    def within(node: ast.Module | ast.ClassDef | ast.FunctionDef, name: str) -> Iterator[tuple[str, str]]:
        above = name
        for inner in node.body:
            if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant):
                if isinstance(inner.value.value, str):
                    yield above, inner.value.value
            elif isinstance(inner, ast.Assign | ast.AnnAssign):
                target = inner.targets[0] if isinstance(inner, ast.Assign) else inner.target
                above = f"{name}.{ast.unparse(target)}".lstrip(".")
            elif isinstance(inner, ast.ClassDef | ast.FunctionDef):
                yield from within(inner, f"{name}.{inner.name}".lstrip("."))

    return within(tree, "")


def read(text: str, path: str = "", ours: str = "") -> list[Reference]:
    """The references of a docstring.

    Raises:
        UnreadableError: a list cannot be read, or a range names no release, or names them in the wrong order.
    """
    text = " ".join(text.split())
    found = []
    for begin in re.finditer(rf"\b{BEGIN}", text):
        matched = _LIST.match(text, begin.start())
        if matched is None:
            raise UnreadableError(f"{path} {ours}: cannot be read: {text[begin.start() :][:80]}")
        for part in _PART.finditer(matched[1]):
            kafka = part[1].partition(" ")[0]
            first, last = _range(part, path)
            if first not in RELEASES or last not in RELEASES or _place(first) > _place(last):
                raise UnreadableError(f"{path} {ours}: {part[1]}: releases are {', '.join(RELEASES)}")
            found.append(Reference(kafka, first, last, path, ours))
    return found


def _range(part: re.Match[str], path: str) -> tuple[str, str]:
    if part[2] is not None:
        return part[2], part[3] or part[2]
    return next((span for span, begins in PLANES.items() if path.startswith(begins)), ALL)


def _place(release: str) -> int:
    return list(RELEASES).index(release)


# The page.


def page(found: Iterable[Reference]) -> str:
    """From Kafka's names to ours, for a page in a folder of the root."""
    lines = [
        "# From Kafka to here",
        "",
        "Kafka's classes and methods, the tags of Kafka's repository that have them under this name, and what models",
        f"them. `make oracle` looks every name up in the jars of {', '.join(RULES)}.",
        "",
        "| Kafka | tags | here |",
        "|---|---|---|",
    ]
    for kafka, group in groupby(found, key=lambda reference: reference.kafka):
        same = list(group)
        for (first, last), places in groupby(sorted(same), key=lambda reference: (reference.first, reference.last)):
            oldest, newest = RELEASES[first][0], RELEASES[last][-1]
            tags = oldest if oldest == newest else f"{oldest} to {newest}"
            lines.append(f"| `{kafka}` | {tags} | {', '.join(_link(place) for place in places)} |")
    return "\n".join(lines) + "\n"


def _link(one: Reference) -> str:
    return f"[{one.ours or Path(one.path).stem}](../{one.path})"


# The check.


def declared(wanted: Iterable[str], release: str) -> dict[str, list[str]]:
    """The full names of the classes in a release's jars that have each of Kafka's names.

    Raises:
        InputError: the release is not pinned.
        UnavailableError: its jars cannot be fetched.
    """
    jars = [jar for jar in releases.class_path(release) if jar.name.startswith("org.apache.kafka")]
    parts = {kafka: kafka.partition("#")[::2] for kafka in wanted}
    held = class_files.classes(jars, {owner.rpartition(".")[2] for owner, _ in parts.values()})
    found = {}
    for kafka, (owner, member) in parts.items():
        named = [name for name in held if f".{name}".endswith(f".{owner}")]
        found[kafka] = sorted(name for name in named if not member or member in held[name])
    return found


def wrong(found: Iterable[Reference], release: str) -> list[str]:
    """What a release's jars contradict, a line each; raises as `declared`."""
    found = list(found)
    by_name = declared({reference.kafka for reference in found}, release)
    named = {(reference.kafka, reference.path, reference.ours) for reference in found if release in reference.releases}
    lines = []
    for reference in found:
        where, having = f"{reference.path} {reference.ours}: {reference.kafka}", by_name[reference.kafka]
        if release not in reference.releases:
            is_named = (reference.kafka, reference.path, reference.ours) in named  # In another range.
            lines += [f"{where}: in {release}, too"] if having and not is_named else []
        elif len(having) != 1:
            lines.append(f"{where}: {f'several in {release}: ' + ', '.join(having) if having else f'not in {release}'}")
    return lines


def sources() -> dict[str, list[str]]:
    """The classes' members that the sources of rules name (``Partition.makeFollower``), with the rules."""
    found: dict[str, list[str]] = {}
    for rule, spec in RULE_SPECS.items():
        for owner, member in re.findall(r"\b([A-Z]\w+)\.([a-z]\w+)", spec.source):
            if not owner.startswith("Kip"):  # A TLA+ specification.
                found.setdefault(f"{owner}#{member}", []).append(rule)
    return found


def wrong_sources() -> list[str]:
    """Names in sources of rules that none of the releases has, a line each; raises as `declared`."""
    found = sources()
    missing = set(found)
    for release in RULES:
        missing -= {kafka for kafka, having in declared(missing, release).items() if having}
    return [f"rule {', '.join(found[kafka])}: {kafka}: in no release" for kafka in sorted(missing)]


def main() -> int:
    """Print the page."""
    sys.stdout.write(page(references()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
