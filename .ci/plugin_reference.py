"""The reference of plug-ins: a page of the names of `highwater.plugin`, which griffe reads from the sources.

It imports nothing that it describes: compiled classes have neither annotations nor docstrings.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from griffe import (
    Alias,
    Attribute,
    Class,
    Docstring,
    DocstringSectionAttributes,
    DocstringSectionText,
    Function,
    GriffeLoader,
)

from faults.kind import PARAM_KINDS
from scenarios.format.plugin_border import HIDDEN
from sim.history import steps
from sim.protocol.decision_points import POINTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from griffe import Object

ROOT: Final = Path(__file__).parents[1]
LONG: Final = 90
"""A longer value of a word is not shown."""
REPORTS: Final = ("_history", "_violates", "_warns")
"""Names with which a checker reports, and knows the run."""
PARTS: Final = {
    "What a plug-in declares": ("Plugin", "RuleValue", "Rule", "StepProbe"),
    "Situations of decisions": (
        *("Truncation", "FetcherRestart", "EpochRecorded", "IsrJoin", "IsrLeave", "IsrAccepted", "HighWatermark"),
        *("EndOffsetHidden", "ReplicaStart", "Election", "EligibleReplicas", "Reassignment", "Follower"),
    ),
    "Checkers": ("Checker", "Finding", "RunEnd"),
    "Kinds of fault": (
        *("FaultKind", "Fault", "Trigger", "Limits", "FaultBounds", "Targets", "Amount", "Duration", "Param"),
        "Stream",
    ),
}
"""Part of the page -> its classes."""
CLUSTER: Final = {
    "cluster": (
        "sim.hosts.cluster.Cluster",
        (
            *("replicas", "running", "leader", "controller", "start", "kill", "shut_down", "zombie", "unzombie"),
            *("pause", "resume"),
        ),
    ),
    "cluster.machines": (
        "sim.hosts.machines.Machines",
        ("lose_power", "replace_disk", "corrupt_tail", "stall_disk", "unstall_disk"),
    ),
    "cluster.links": ("sim.hosts.links.Links", ("cut", "heal")),
    "cluster.control": (
        "sim.hosts.control_plane.ControlPlane",
        (
            *("expire_session", "fail_over", "elect_preferred", "elect_leader", "delay_metadata", "reassign"),
            *("cancel_reassignment", "unregister"),
        ),
    ),
    "cluster.administrator": (
        "sim.hosts.administrator.Administrator",
        ("change_setting", "restore_setting", "delete_records"),
    ),
}
"""Part of a cluster that a kind of fault may use -> its class and names."""
CARRIED: Final = (
    "sim.protocol.batch.Batch",
    "sim.protocol.log.log.Log",
    "sim.protocol.messages.LeaderAndIsr",
    "sim.protocol.kraft.metadata.PartitionRegistration",
    "sim.protocol.messages.ProduceRequest",
    "sim.protocol.messages.ProduceResponse",
    "sim.history.steps.clients.Exposed",
    "sim.history.history.History",
    "sim.history.clients.Clients",
    "sim.history.commits.Commits",
    "sim.history.records.Records",
)
"""What steps, the history and the end of a run carry."""
HEAD: Final = """\
# Reference of plug-ins

Every name that a [plug-in](../notebooks/guide/plugins.md) may rely on, with its attributes. `API_VERSION` changes when
one of them does.
"""
STEPS: Final = """\
A checker defines a method for each kind of step that it needs. Each step has `at_us`, its time in us, `kind`, whose
`name` is that in traces, and what the digest holds: `broker`, `epoch` (a leader epoch, unless it says otherwise),
`offset` and `other`. The code is what sets these, and what the fields of the step in traces are (`t` is `at_us`, `step`
is `kind.name`).
"""


@cache
def _sources() -> GriffeLoader:
    loader = GriffeLoader(search_paths=[ROOT], docstring_parser="google", allow_inspection=False)
    for package in ("sim", "faults", "scenarios", "highwater"):
        loader.load(package)
    loader.resolve_aliases(implicit=True)
    return loader


def named(path: str) -> Object:
    """What has a full name in the sources."""
    return _itself(_sources().modules_collection[path])


def _itself(one: Object | Alias) -> Object:
    return one.final_target if isinstance(one, Alias) else one


def names() -> dict[str, Object]:
    """The names of `highwater.plugin`."""
    return {str(name): named(f"highwater.plugin.{name}") for name in named("highwater.plugin").exports or ()}


def _said(docstring: Docstring | None) -> tuple[str, dict[str, str]]:
    """The text of a docstring, and the meanings of the attributes that it lists."""
    parts = docstring.parsed if docstring is not None else []
    text = [part.value for part in parts if isinstance(part, DocstringSectionText)]
    listed = [one for part in parts if isinstance(part, DocstringSectionAttributes) for one in part.value]
    return " ".join(" ".join(text).split()), {one.name: " ".join(one.description.split()) for one in listed}


def _meanings(found: Class) -> dict[str, str]:
    """The attributes that a class and its bases describe."""
    meanings: dict[str, str] = {}
    for one in (*reversed(found.mro()), found):
        meanings |= _said(one.docstring)[1]
    return meanings


def _type(one: Attribute) -> str:
    """An attribute's type: its own, that of the argument that it keeps, or of what is created for it."""
    text = re.sub(r"^(?:ClassVar|Final)(?:\[(.*)\])?$", r"\1", str(one.annotation or ""))
    created = one.parent.members.get("__init__") if one.parent is not None else None
    if not text and isinstance(created, Function) and str(one.value) in created.parameters:
        text = str(created.parameters[str(one.value)].annotation or "")
    value = re.match(r"(True|False)$|([A-Z]\w*)\(", str(one.value))
    return text or ("" if value is None else value[2] or "bool")


def _cell(text: str) -> str:
    return re.sub(r"``([^`]*)``", r"`\1`", text).replace("|", "\\|").replace("<", "&lt;")


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def _table(head: str, rows: Iterable[Sequence[str]]) -> Iterator[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if lines:
        yield from (f"| {head} |", f"|{'---|' * (head.count('|') + 1)}", *lines, "")


def _is_shown(one: Object) -> bool:
    return one.name in REPORTS or not (one.name.startswith("_") or one.name in HIDDEN)


def _class(found: Object, only: Sequence[str] = (), title: str = "") -> Iterator[str]:
    """A class: its text, its attributes, its methods; all that it describes, or those that are named."""
    assert isinstance(found, Class)
    meanings = _meanings(found)
    members = [_itself(one) for one in found.all_members.values()]
    wanted = [one for one in members if (one.name in only if only else _is_shown(one))]
    yield from (f"### `{title or found.name}`", "")
    if not only:
        yield from (_cell(_said(found.docstring)[0]), "")
    attributes = (
        (one.name, _type(one), meanings.get(one.name) or _said(one.docstring)[0])
        for one in wanted
        if isinstance(one, Attribute)
    )
    rows = [(f"`{name}`", _code(kind), _cell(said)) for name, kind, said in attributes if said or kind]
    yield from _table("attribute | type | meaning", rows)
    methods = ((one, _said(one.docstring)[0]) for one in wanted if isinstance(one, Function))
    yield from _table("method | meaning", [(_code(_signature(one)), _cell(said)) for one, said in methods if said])
    assert not {*only} - {one.name for one in members}, f"{found.name} has not all of {only}"


def _signature(function: Function) -> str:
    return function.signature().replace("(self, ", "(").replace("(self)", "()")


def _step(found: Class) -> Iterator[str]:
    """A class of steps, with the method of a listener that receives them."""
    method = re.search(r"listener\.(on_\w+)\(self\)", found.members["tell"].source)
    assert method is not None, found.path
    kinds = ", ".join(f"`{one.name}`" for one in steps.BY_NAME.values() if one.method == method[1])
    text, listed = _said(found.docstring)
    yield from (f"### `{method[1]}(step: {found.name})`", "", f"{_cell(text)} Kinds: {kinds}.", "")
    types = {one.name: _type(one) for one in found.all_members.values() if isinstance(one, Attribute)}
    rows = [(f"`{name}`", _code(types.get(name) or "int"), _cell(said)) for name, said in listed.items()]
    yield from _table("attribute | type | meaning", rows)
    shown = [found.all_members[name].source for name in ("__init__", "fields") if name in found.all_members]
    yield from ("```python", *"\n".join(shown).splitlines(), "```", "")


def _steps() -> Iterator[str]:
    for module in named("sim.history.steps").modules.values():
        for one in module.classes.values():
            if not one.is_alias and "tell" in one.members and one.name != "Step":
                yield from _step(one)


def _functions(found: Object) -> Iterator[str]:
    """The decision points, with the types of their functions."""
    yield from ("### `DecisionFunctions`", "", _cell(_said(found.docstring)[0]), "")
    functions = {one.name: _type(one) for one in found.members.values() if isinstance(one, Attribute)}
    rows = [(f"`{name}`", _code(kind), ", ".join(POINTS[name].rules)) for name, kind in functions.items()]
    yield from _table("decision point | function | rules whose new values may decide", rows)


def _words() -> Iterator[str]:
    rows = []
    for name, one in sorted(names().items()):
        if isinstance(one, Attribute):
            value = str(one.value)
            rows.append((f"`{name}`", _code(value) if len(value) < LONG else "...", _cell(_said(one.docstring)[0])))
    return _table("name | value | meaning", rows)


def reference() -> str:
    """The page."""
    known = names()
    lines = [HEAD]
    for part, classes in PARTS.items():
        lines += [f"## {part}", ""]
        if part == "Situations of decisions":
            lines += _functions(known["DecisionFunctions"])
        for name in classes:
            lines += _class(known[name])
            if name == "Param":
                kinds = [(_code(kind), _cell(said)) for kind, said in PARAM_KINDS.items()]
                lines += _table("kind of `Param` | what it allows", kinds)
    lines += ["## Parts of a cluster", "", "A kind of fault may use these of a `Cluster`.", ""]
    for title, (path, only) in CLUSTER.items():
        lines += _class(named(path), only, title)
    lines += ["## Steps", "", STEPS, *_steps(), "## What steps and the history carry", ""]
    for path in CARRIED:
        lines += _class(named(path))
    functions = [one for _, one in sorted(known.items()) if isinstance(one, Function)]
    rows = [(_code(_signature(one)), _cell(_said(one.docstring)[0])) for one in functions]
    lines += ["## Functions", "", *_table("function | meaning", rows), "## Words", "", *_words()]
    return "\n".join(lines).rstrip() + "\n"
