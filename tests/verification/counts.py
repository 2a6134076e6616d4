"""Counts of what makes a change of the product dangerous: facts in strings, live objects in messages, circles.

``python -m tests.verification.counts [FOLDER ...]`` reads the sources of checkouts, of any version, and prints a column
for each. Nothing is imported from them.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from tests.places import ROOT
from tests.test_architecture import LAYERS, circles, imported, statements_run_at_import

STEPS: Final = re.compile(r"sim/history/steps(\.py$|/)")
"""Where steps are declared."""
MESSAGES: Final = re.compile(r"sim/(protocol|hosts)/(.*/)?(\w+_)?(messages|operations)\.py$")
"""Where messages are declared, and the operations in requests to ZooKeeper."""
DATA: Final = {"int", "str", "bool", "float", "None", "tuple", "frozenset", "Sequence", "Mapping", "Value"}
"""What a message may hold besides messages and aliases of such types."""
VALUES: Final = {
    *("Batch", "BrokerInfo", "AlterPartitionItem"),
    *("RaftBatch", "RaftSnapshot", "OffsetAndEpoch", "ReplicaKey", "VoterNode"),
}
"""Classes of values that are declared elsewhere: ``tests/sim/protocol/test_messages.py`` checks the fields of the first
three; Raft's are named tuples, or have fields that are final.
"""
FUNCTIONS: Final = ast.FunctionDef | ast.AsyncFunctionDef


class Sources:
    """The product's modules in a checkout.

    Attributes:
        files: the text of each, by its path from the root on.
    """

    def __init__(self, root: Path) -> None:
        paths = [path for layer in LAYERS for path in sorted((root / layer).rglob("*.py"))]
        self.files = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        return {path: ast.parse(text) for path, text in self.files.items()}

    @cached_property
    def by_module(self) -> dict[str, ast.Module]:
        """Modules by the name that imports use."""
        names = {path: path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in self.trees}
        return {names[path]: tree for path, tree in self.trees.items()}

    def nodes(self, beginning: str = "") -> Iterator[tuple[str, ast.AST]]:
        """The nodes of all modules whose path begins like this, each with that path."""
        return (
            (path, node) for path, tree in self.trees.items() if path.startswith(beginning) for node in ast.walk(tree)
        )

    def calls(self, function: str) -> Iterator[tuple[str, ast.Call]]:
        """The calls of a function, or of a method of this name."""
        for path, node in self.nodes():
            if isinstance(node, ast.Call) and function in (
                getattr(node.func, "id", None),
                getattr(node.func, "attr", None),
            ):
                yield path, node


def _place(path: str, node: ast.AST, what: object) -> str:
    return f"{path}:{getattr(node, 'lineno', 0)} {what}"


def _is_declaration(node: ast.AST) -> bool:
    """Whether this assigns names that Python itself wants as strings."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(re.fullmatch(r"__\w+__", ast.unparse(target)) for target in targets)


def handlers(sources: Sources) -> list[str]:
    """Strings in `sim` that are the name of one of its handlers or private functions.

    Names of classes (``type(...).__name__``) are none, nor is ``__qualname__`` in the message of an error.
    """
    names = {node.name for _, node in sources.nodes("sim/") if isinstance(node, FUNCTIONS)}
    names = {name for name in names if re.match(r"_[a-z]|on_", name)} | {"__name__"}
    declared = {id(inner) for _, node in sources.nodes("sim/") if _is_declaration(node) for inner in ast.walk(node)}
    return [
        _place(path, node, node.value)
        for path, node in sources.nodes("sim/")
        if isinstance(node, ast.Constant) and node.value in names and id(node) not in declared
    ]


def step_names(sources: Sources) -> set[str]:
    """The names that steps are declared with: the first string of a call there, or the class attribute ``name``."""
    found = set()
    for path, node in sources.nodes("sim/history/steps"):
        if isinstance(node, ast.Call) and STEPS.match(path):
            words = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            found |= set(words[:1])
    return {name for name in found if re.fullmatch(r"[a-z]+(-[a-z]+)*", name)}


def steps(sources: Sources) -> list[str]:
    """Strings that a step's name is compared with, or that a step is made with, outside the folder of steps."""
    names, found = step_names(sources), []
    for path, node in sources.nodes():
        if STEPS.match(path):
            continue
        if isinstance(node, ast.Compare) and _asks_for_a_step(node.left):
            others = [one for other in node.comparators for one in ast.walk(other)]
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            others = [one for key, value in pairs if key and ast.unparse(key) == "'step'" for one in ast.walk(value)]
        else:
            continue
        found += [
            _place(path, constant, constant.value)
            for constant in others
            if isinstance(constant, ast.Constant) and constant.value in names
        ]
    return found


def _asks_for_a_step(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "step"
    return "step" in (getattr(node, "id", None), getattr(node, "attr", None))


def live(sources: Sources) -> list[str]:
    """Fields of messages whose type is neither data nor a message nor a value, or that can be changed in place."""
    owners = [(path, node) for path, node in sources.nodes("sim/") if isinstance(node, ast.ClassDef)]
    owners = [(path, node) for path, node in owners if MESSAGES.match(path)]
    allowed = DATA | VALUES | {node.name for _, node in owners}
    aliases = {
        ast.unparse(node.targets[0]): node.value
        for path, tree in sources.trees.items()
        if path.startswith("sim/protocol/")
        for node in tree.body
        if isinstance(node, ast.Assign)
    }

    def is_value(annotation: ast.expr) -> bool:
        return all(name in allowed or (name in aliases and is_value(aliases[name])) for name in _named(annotation))

    return [
        _place(path, owner, f"{owner.name}.{name}: {ast.unparse(annotation)}")
        for path, owner in owners
        for name, annotation in _fields(owner)
        if not is_value(annotation)
    ]


def _fields(owner: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """What a class is made of: the parameters of its constructor, or the fields of a dataclass."""
    for node in owner.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            parameters = [*node.args.args[1:], *node.args.kwonlyargs]
            yield from ((parameter.arg, parameter.annotation) for parameter in parameters if parameter.annotation)
        elif isinstance(node, ast.AnnAssign) and "ClassVar" not in ast.unparse(node.annotation):
            yield ast.unparse(node.target), node.annotation


def _named(annotation: ast.expr) -> set[str]:
    """The types that an annotation names; of ``abc.Sequence`` what follows the module."""
    nodes = [*ast.walk(annotation)]
    modules = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    names = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in modules}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def dispatched(sources: Sources) -> list[str]:
    """Methods that are looked up by a name that is put together."""
    return [
        _place(path, call, ast.unparse(call))
        for path, call in sources.calls("getattr")
        if len(call.args) > 1 and isinstance(call.args[1], ast.JoinedStr | ast.BinOp)
    ]


def in_circles(sources: Sources, *, types_too: bool) -> set[frozenset[str]]:
    """The circles of imports; with those that only types need, or without."""
    own = sources.by_module

    def imports(name: str) -> Iterator[str]:
        nodes = ast.walk(own[name]) if types_too else statements_run_at_import(own[name])
        for module in (module for node in nodes for module in imported(node)):
            yield module if module in own else module.rpartition(".")[0]

    return circles(imports, own)


def largest_class(sources: Sources, size: Callable[[ast.ClassDef], int]) -> tuple[int, str]:
    """The largest by some measure, with its name."""
    return max((size(node), f"{path} {node.name}") for path, node in sources.nodes() if isinstance(node, ast.ClassDef))


def method_count(owner: ast.ClassDef) -> int:
    """How many methods and properties a class declares."""
    return sum(isinstance(node, FUNCTIONS) for node in owner.body)


def line_count(owner: ast.ClassDef) -> int:
    """How many lines a class has, its docstrings included."""
    return (owner.end_lineno or owner.lineno) - owner.lineno + 1


def code_lines(text: str) -> int:
    """Lines of code: without blank lines, comments and docstrings."""
    documented = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documented |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    nothing = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    with_code = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in nothing:
            with_code |= set(range(token.start[0], token.end[0] + 1))
    return len(with_code - documented)


def counted(sources: Sources) -> dict[str, str]:
    """All counts, as they are printed."""

    def size(found: Collection[object]) -> str:
        return str(len(found))

    def all_and_code(texts: Mapping[str, str]) -> str:
        lines = sum(text.count("\n") for text in texts.values())
        return f"{lines:,} ({sum(map(code_lines, texts.values())):,} of code)"

    longest = max((text.count("\n"), path) for path, text in sources.files.items())
    at_run_time, with_types = (in_circles(sources, types_too=types_too) for types_too in (False, True))
    return {
        "names of handlers as strings": size(handlers(sources)),
        "names of steps as strings, outside their folder": size(steps(sources)),
        "live objects in messages": size(live(sources)),
        "methods looked up by a name put together": size(dispatched(sources)),
        "calls of reached()": size([*sources.calls("reached")]),
        "calls of isinstance()": size([*sources.calls("isinstance")]),
        "calls of getattr()": size([*sources.calls("getattr")]),
        "circles of imports": size(at_run_time),
        "circles with imports for types": f"{len(with_types)}, of {sum(map(len, with_types))} modules",
        "largest file": "{} lines: {}".format(*longest),
        "largest class": "{} lines: {}".format(*largest_class(sources, line_count)),
        "class with the most methods": "{}: {}".format(*largest_class(sources, method_count)),
        **{
            f"lines of {layer}": all_and_code(
                {path: text for path, text in sources.files.items() if path.startswith(f"{layer}/")}
            )
            for layer in LAYERS
        },
        "lines of all": all_and_code(sources.files),
    }


def main() -> int:
    """Print the counts of checkouts, and with --places where they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[ROOT], help="checkouts; else this one")
    parser.add_argument("--places", action="store_true", help="also list the places of the first four counts")
    options = parser.parse_args()
    checkouts = [Sources(folder) for folder in options.folders]
    columns = [counted(one) for one in checkouts]
    for what in columns[0]:
        sys.stdout.write(f"{what}: {'; '.join(column[what] for column in columns)}\n")
    if options.places:
        for sources in checkouts:
            for line in (*handlers(sources), *steps(sources), *live(sources), *dispatched(sources)):
                sys.stdout.write(f"  {line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
