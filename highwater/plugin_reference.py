"""Writes the reference of plug-ins from the sources of `highwater.plugin`'s names: ``make docs`` has it as a page.

It reads sources, because compiled classes have neither annotations
nor docstrings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from faults.kind import PARAM_KINDS
from scenarios.format.plugin_border import HIDDEN
from sim.history import steps

ROOT: Final = Path(__file__).parents[1]
_ENTRY: Final = re.compile(r"^    ?(\w+): (.*)$")
LONG: Final = 90
"""A longer value of a word is not shown."""
_REPORTS: Final = ("_history", "_violates", "_warns")
"""Names with which a checker reports, and knows the run."""
_SECTIONS: Final = ("Attributes:", "Args:")
_COMMON: Final = {
    "broker": "the broker",
    "epoch": "the leader epoch",
    "offset": "the offset",
    "other": "another number",
    "records": "number of records",
}
"""Attributes of each step that the digest holds, or the record budget counts -> meaning."""
_SAME: Final = {
    "broker": ("broker",),
    "epoch": ("epoch", "leader_epoch", "partition.leader_epoch"),
    "offset": ("offset",),
    "other": (),
    "records": (),
}
"""Attribute -> expressions that say no more than its meaning; any other one is shown in its place."""
CLUSTER: Final[Mapping[str, tuple[str, str, Sequence[str]]]] = {
    "cluster": (
        "sim.hosts.cluster",
        "Cluster",
        (
            *("replicas", "running", "leader", "controller", "start", "kill", "shut_down", "zombie", "unzombie"),
            *("pause", "resume"),
        ),
    ),
    "cluster.machines": (
        "sim.hosts.machines",
        "Machines",
        ("lose_power", "replace_disk", "corrupt_tail", "stall_disk", "unstall_disk"),
    ),
    "cluster.links": ("sim.hosts.links", "Links", ("cut", "heal")),
    "cluster.control": (
        "sim.hosts.control_plane",
        "ControlPlane",
        (
            *("expire_session", "fail_over", "elect_preferred", "elect_leader", "delay_metadata", "reassign"),
            *("cancel_reassignment", "unregister"),
        ),
    ),
    "cluster.administrator": (
        "sim.hosts.administrator",
        "Administrator",
        ("change_setting", "restore_setting", "delete_records"),
    ),
}
"""Part of a cluster that a kind of fault may use -> module, class and names."""
CARRIED: Final = (
    ("sim.protocol.batch", "Batch"),
    ("sim.protocol.log.log", "Log"),
    ("sim.protocol.messages", "LeaderAndIsr"),
    ("sim.protocol.kraft.metadata", "PartitionRegistration"),
    ("sim.protocol.messages", "ProduceRequest"),
    ("sim.protocol.messages", "ProduceResponse"),
    ("sim.history.steps.clients", "Exposed"),
    ("sim.history.history", "History"),
    ("sim.history.clients", "Clients"),
    ("sim.history.commits", "Commits"),
    ("sim.history.records", "Records"),
)
"""What steps, the history and the end of a run carry."""
_HEAD: Final = """\
# Reference of plug-ins

Every name that a [plug-in](../notebooks/guide/plugins.md) may rely on, with its attributes. `API_VERSION` changes when
one of them does.
"""


# Reading sources.

_LITERALS: Final = {"False": "bool", "True": "bool"}


@dataclass(slots=True)
class Member:
    """An attribute: its type and meaning, and the expression that sets it, if that is simple."""

    type: str = ""
    meaning: str = ""
    set_by: str = ""


@dataclass(slots=True)
class Found:
    """A class of the sources."""

    name: str
    doc: str
    members: dict[str, Member] = field(default_factory=dict)
    methods: dict[str, tuple[str, str]] = field(default_factory=dict)


@cache
def _tree(module: str) -> ast.Module:
    file = ROOT.joinpath(*module.split("."))
    path = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8") if path.is_file() else "")


def _class(module: str, name: str) -> ast.ClassDef | None:
    return next((node for node in _tree(module).body if isinstance(node, ast.ClassDef) and node.name == name), None)


def _module_of(module: str, name: str) -> str:
    """The module that a name comes from which a module has or imports."""
    for node in _tree(module).body:
        if isinstance(node, ast.ImportFrom) and node.module and any(one.name == name for one in node.names):
            return node.module
        if isinstance(node, ast.If):  # TYPE_CHECKING
            for inner in node.body:
                if isinstance(inner, ast.ImportFrom) and inner.module and any(one.name == name for one in inner.names):
                    return inner.module
    return module


def _doc(node: ast.AST) -> tuple[str, dict[str, str]]:
    """A docstring: its text, and the meaning of the attributes or arguments that it lists."""
    lines = (ast.get_docstring(node) or "").splitlines()  # type: ignore[arg-type]
    text: list[str] = []
    listed: dict[str, str] = {}
    name, within = "", False
    for line in lines:
        if line.strip() in (*_SECTIONS, "Returns:", "Raises:"):
            within, name = True, ""
            continue
        if line and not line.startswith(" "):
            within = False
        entry = _ENTRY.match(line) if within else None
        if entry:
            name = entry[1]
            listed[name] = entry[2]
        elif within and name:
            listed[name] += f" {line.strip()}"
        elif not within:
            text.append(line)
    return " ".join(" ".join(text).split()), {name: " ".join(said.split()) for name, said in listed.items()}


def _read(module: str, name: str) -> Found:
    """A class with the members of its bases that are classes of the sources."""
    node = _class(module, name)
    assert node is not None, f"{module} has no class {name}"
    text, listed = _doc(node)
    found = Found(name, text)
    for base in node.bases:
        own = _module_of(module, ast.unparse(base))
        if isinstance(base, ast.Name) and _class(own, base.id) is not None:
            above = _read(own, base.id)
            found.members |= above.members
            found.methods |= above.methods
    for place, statement in enumerate(node.body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            kind = re.sub(r"^(ClassVar|Final)\[(.*)\]$", r"\2", ast.unparse(statement.annotation))
            member = found.members.setdefault(statement.target.id, Member())
            member.type, member.meaning = kind, _text_after(node.body, place) or member.meaning
        elif isinstance(statement, ast.FunctionDef):
            _read_function(found, statement)
    for one, said in listed.items():
        found.members.setdefault(one, Member()).meaning = said
    found.members = {one: member for one, member in found.members.items() if not one.startswith("_") or one in _REPORTS}
    return found


def _read_function(found: Found, function: ast.FunctionDef) -> None:
    if function.name == "__init__":
        _read_init(found, function)
        return
    if function.name not in _REPORTS and (function.name.startswith("_") or function.name in HIDDEN):
        return
    said = _doc(function)[0]
    if any(isinstance(one, ast.Name) and one.id == "property" for one in function.decorator_list):
        assert function.returns is not None
        found.members[function.name] = Member(ast.unparse(function.returns), said)
    elif said or function.name not in found.methods:
        returns = ast.unparse(function.returns) if function.returns is not None else "None"
        arguments = [_argument(one) for one in function.args.args[1:]]
        arguments += [_argument(one) for one in function.args.kwonlyargs]
        found.methods[function.name] = f"{function.name}({', '.join(arguments)}) -> {returns}", said


def _argument(one: ast.arg) -> str:
    return f"{one.arg}: {ast.unparse(one.annotation)}" if one.annotation is not None else one.arg


def _read_init(found: Found, function: ast.FunctionDef) -> None:
    every = [*function.args.args, *function.args.kwonlyargs]
    given = {one.arg: ast.unparse(one.annotation) for one in every if one.annotation is not None}
    for node in ast.walk(function):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute) and node.value is not None:
            member = found.members.setdefault(node.target.attr, Member())
            kind = ast.unparse(node.annotation)
            member.set_by = ast.unparse(node.value)
            member.type = given.get(member.set_by, member.type) if kind == "Final" else kind
        elif isinstance(node, ast.Assign):
            value = ast.unparse(node.value)
            created = re.fullmatch(r"([A-Z]\w*)\(.*\)", value)
            for target in node.targets:
                targets = target.elts if isinstance(target, ast.Tuple) else [target]
                for one in targets:
                    if isinstance(one, ast.Attribute):
                        member = found.members.setdefault(one.attr, Member())
                        member.set_by = value
                        member.type = (
                            member.type or given.get(value, "") or _LITERALS.get(value, created[1] if created else "")
                        )
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            _read_super(found, node.value)


def _read_super(found: Found, call: ast.Call) -> None:
    """What a call of the base's constructor sets from its first arguments: broker and epoch of a step."""
    if ast.unparse(call.func) == "super().__init__":
        for name, value in zip(("broker", "epoch"), call.args, strict=False):
            if name in found.members:
                found.members[name].set_by = ast.unparse(value)


# Steps.


def _shown(module: str, name: str) -> dict[str, str]:
    """Field of a trace -> the attribute or expression that it shows."""
    node = _class(module, name)
    while node is not None:
        function = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "fields"), None)
        if function is not None:
            return _fields(function)
        base = next((one for one in node.bases if isinstance(one, ast.Name)), None)
        if base is None:
            return {}
        module = _module_of(module, base.id)
        node = _class(module, base.id)
    return {}


def _fields(function: ast.FunctionDef) -> dict[str, str]:
    found: dict[str, str] = {}
    local: dict[str, str] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], ast.unparse(node.value)
            if isinstance(target, ast.Name):
                local[target.id] = value
            elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                found[str(target.slice.value)] = value
        if isinstance(node, ast.Dict):
            for key, shown in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant):
                    found[str(key.value)] = ast.unparse(shown)
    for name, value in local.items():
        found = {key: re.sub(rf"\b{name}\b(?!=)", value, shown) for key, shown in found.items()}
    return {key: shown.replace("self.", "step.") for key, shown in found.items()}


def _step_classes() -> Iterator[tuple[str, str]]:
    """Module and name of the classes of steps that a listener receives."""
    for node in _tree("sim.history.steps").body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for one in _tree(node.module).body:
                if isinstance(one, ast.ClassDef) and any(
                    isinstance(part, ast.FunctionDef) and part.name == "tell" for part in one.body
                ):
                    yield node.module, one.name


def _of_step(module: str, name: str) -> Iterator[str]:
    found = _read(module, name)
    if name == "Step":
        return
    node = _class(module, name)
    assert node is not None
    kinds = [one for one in steps.BY_NAME.values() if one.method == _method(node)]
    own = ", ".join(f"`{one.name}`" for one in kinds)
    yield f"### `{_method(node)}(step: {name})`"
    yield ""
    yield f"{_cell(found.doc)} Kinds: {own}."
    yield ""
    yield "| attribute | type | meaning |"
    yield "|---|---|---|"
    listed = _doc(node)[1]
    for attribute, member in found.members.items():
        if attribute in ("kind", "at_us") or (attribute in _COMMON and member.set_by in ("", "0")):
            continue
        said = listed.get(attribute, _COMMON.get(attribute, "") if attribute in _COMMON else member.meaning)
        value = member.set_by
        if value.startswith("self."):
            said = f"as `{value.removeprefix('self.')}`"
        elif attribute in _COMMON and attribute not in listed and value not in _SAME[attribute]:
            said = f"`{value}`"
        yield f"| `{attribute}` | {_type(member.type)} | {_cell(said)} |"
    yield ""
    shown = _shown(module, name)
    if shown:
        pairs = [f"`{key}` is `{value}`" for key, value in shown.items()]
        yield f"In traces: {', '.join(pairs)}."
        yield ""


def _method(node: ast.ClassDef) -> str:
    """The method of a listener that a step class calls."""
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _METHODS:
            return one.func.attr
    return ""


_METHODS: Final = frozenset(kind.method for kind in steps.KINDS)


# The page.


def _cell(text: str) -> str:
    text = re.sub(r"``([^`]*)``", r"`\1`", text)
    return text.replace("|", "\\|").replace("<", "&lt;")


def _type(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def _of_class(module: str, name: str, only: Sequence[str] = (), title: str = "") -> Iterator[str]:
    found = _read(module, name)
    yield f"### `{title or name}`"
    yield ""
    if found.doc and not only:
        yield _cell(found.doc)
        yield ""
    rows = [
        (one, _type(member.type), _cell(member.meaning))
        for one, member in found.members.items()
        if one in only or (not only and member.type)
    ]
    if rows:
        yield "| attribute | type | meaning |"
        yield "|---|---|---|"
        yield from (f"| `{one}` | {kind} | {meaning} |" for one, kind, meaning in rows)
        yield ""
    methods = [(told, said) for one, (told, said) in found.methods.items() if one in only or (not only and said)]
    if methods:
        yield "| method | meaning |"
        yield "|---|---|"
        yield from (f"| {_type(told)} | {_cell(said)} |" for told, said in methods)
        yield ""
    missing = {*only} - found.members.keys() - found.methods.keys()
    assert not missing, f"{name} has no {missing}"


def names() -> dict[str, tuple[str, str]]:
    """The names of `highwater.plugin` -> the module and the name of the source."""
    found = {}
    for node in _tree("highwater.plugin").body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module != "__future__":
            for one in node.names:
                found[one.asname or one.name] = node.module, one.name
    return found


def _of_params() -> Iterator[str]:
    yield "| kind of `Param` | what it allows |"
    yield "|---|---|"
    yield from (f"| `{kind}` | {_cell(said)} |" for kind, said in PARAM_KINDS.items())
    yield ""


def _constants() -> Iterator[str]:
    yield "| name | value | meaning |"
    yield "|---|---|---|"
    for name, (module, source) in sorted(names().items()):
        body = _tree(module).body
        for place, node in enumerate(body):
            target = node.target if isinstance(node, ast.AnnAssign) else None
            if isinstance(target, ast.Name) and target.id == source and isinstance(node, ast.AnnAssign):
                value = ast.unparse(node.value) if node.value is not None else ""
                shown = _type(value) if len(value) < LONG else "..."
                yield f"| `{name}` | {shown} | {_cell(_text_after(body, place))} |"
    yield ""


def _text_after(body: Sequence[ast.stmt], place: int) -> str:
    """The docstring of the assignment at a place."""
    after = body[place + 1] if place + 1 < len(body) else None
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
        return " ".join(after.value.value.split())
    return ""


def _functions() -> Iterator[str]:
    yield "| function | meaning |"
    yield "|---|---|"
    for _, (module, source) in sorted(names().items()):
        for node in _tree(module).body:
            if isinstance(node, ast.FunctionDef) and node.name == source:
                returns = ast.unparse(node.returns) if node.returns is not None else "None"
                arguments = ", ".join(_argument(one) for one in node.args.args)
                if node.args.vararg is not None:
                    arguments = f"*{_argument(node.args.vararg)}"
                yield f"| {_type(f'{source}({arguments}) -> {returns}')} | {_cell(_doc(node)[0])} |"
    yield ""


_PARTS: Final = {
    "What a plug-in declares": ("Plugin", "RuleValue", "Rule", "StepProbe"),
    "Situations of decisions": (
        *("Truncation", "FetcherRestart", "EpochRecorded", "IsrJoin", "IsrLeave", "IsrAccepted", "HighWatermark"),
        *("EndOffsetHidden", "ReplicaStart", "Election", "EligibleReplicas", "Reassignment", "Follower"),
    ),
    "Checkers": ("Checker", "Finding", "RunEnd"),
    "Kinds of fault": (
        "FaultKind",
        "Fault",
        "Trigger",
        "Limits",
        "FaultBounds",
        "Targets",
        "Amount",
        "Duration",
        "Param",
        "Stream",
    ),
}
"""Part of the page -> its classes."""


def reference() -> str:
    """The page."""
    known = names()
    lines = [_HEAD]
    for part, classes in _PARTS.items():
        lines += [f"## {part}", ""]
        for name in classes:
            lines += _of_class(*known[name])
            if name == "Param":
                lines += _of_params()
    lines += ["## Parts of a cluster", "", "A kind of fault may use these of a `Cluster`.", ""]
    for title, (module, name, only) in CLUSTER.items():
        lines += _of_class(module, name, only, title)
    lines += [
        "## Steps",
        "",
        "A checker defines a method for each kind of step that it needs. Each step has `at_us`, its time in us, and",
        "`kind`, whose `name` is that in traces. `broker`, `epoch`, `offset` and `other` are what the digest holds; an",
        "expression in the table tells what sets one. Below the table are the fields of the step in traces (`t` is",
        "`at_us`, `step` is `kind.name`), which may have other names.",
        "",
    ]
    for module, name in _step_classes():
        lines += _of_step(module, name)
    lines += ["## What steps and the history carry", ""]
    for module, name in CARRIED:
        lines += _of_class(module, name)
    lines += ["## Functions", "", *_functions(), "## Words", "", *_constants()]
    return "\n".join(lines).rstrip() + "\n"
