"""Writes the reference of scenario files from the models and the docstrings of what they fill.

``python -m scenarios.format.reference`` prints it, and ``make docs`` has it as a page.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

from faults.bounds import FaultBounds
from scenarios.format import converter
from scenarios.format.actions import ACTIONS
from scenarios.format.finding import GROUPS, FaultsNeeded, FindingTable, HuntedIn, WalkedIn
from scenarios.format.json_schema import json_schema
from scenarios.format.scenario import (
    AlsoOccurs,
    Brokers,
    Bursts,
    FinalLog,
    OnBrokers,
    Pattern,
    Scenario,
    ScriptLine,
    StoryLine,
    Topic,
)
from scenarios.format.schema import dataclasses_in
from sim.environment.topology import Topology

_ATTRIBUTE: Final = re.compile(r"^    ?(\w+): (.*)$")
_TIMES: Final = ("_ms", "_us")
_KINDS: Final = "fault kinds that a seed may enable: [all kinds](../faults/README.md)"
_HEAD: Final = """\
# Reference of scenario files

`highwater scenarios new ./mine.toml --drawn` (or
`--scripted`) writes a file to start from, `highwater scenarios show NAME --toml` prints one that exists, and
`highwater scenarios schema` prints a JSON Schema for editors. `highwater scenarios validate ./mine.toml` lists every
mistake, also what a schema cannot say. [Scenarios](../scenarios/README.md) explains what the tables are for.

Pairs of numbers are inclusive bounds. A key with a value in the last column may be omitted.
"""


def attributes(described: type) -> dict[str, str]:
    """The attributes that a class's docstring describes."""
    found: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(described.__doc__ or "").partition("Attributes:\n")[2].splitlines():
        if (match := _ATTRIBUTE.match(line)) is not None:
            name, found[match[1]] = match[1], match[2]
        elif name and line.startswith("        "):
            found[name] += f" {line.strip()}"
    keys = {field.name: field.key for field in converter.in_file(described)}
    return {
        keys[name]: text.rstrip(".").replace("``", "`") + (f", in {keys[name][-2:]}" if name.endswith(_TIMES) else "")
        for name, text in found.items()
        if name in keys
    }


def _of_file() -> dict[str, str]:
    """Meanings of the keys of a file."""
    found = attributes(Scenario)
    for field in converter.in_file(Scenario):
        if list(dataclasses_in(field.kind)):
            found[field.key] += (
                f": `[[{field.key}]]` below" if "tuple[" in str(field.kind) else f": `[{field.key}]` below"
            )
    return {**found, "schema": "version of the format: 1", "brokers": "their number, or a table: `[brokers]` below"}


def reference() -> str:
    """The page."""
    schema = json_schema()
    tables = schema["$defs"]
    parts = [
        _HEAD,
        _table("The file", schema, _of_file()),
        _table("`[brokers]`", schema["properties"]["brokers"]["anyOf"][1], attributes(Brokers)),
        "`[brokers.2]` has settings of broker 2, and its `mode` if that is another one.\n",
        _table("`[topology]`", tables["Topology"], attributes(Topology)),
        "A group is a name with its brokers: `racks = { a = [1, 2], b = [3] }`. Racks name all brokers or none.\n",
        _table("`[[topics]]`", tables["Topic"], attributes(Topic)),
        _table("`[workload]`", tables["Bursts"], attributes(Bursts)),
        _table("`[faults]`", tables["FaultBounds"], {**attributes(FaultBounds), "kinds": _KINDS}),
        _script(tables),
        _table("`when`, and `[[story]]`", tables["StoryLine"], {**attributes(Pattern), **attributes(StoryLine)}),
        _table("`[[final]]`", tables["FinalLog"], attributes(FinalLog)),
        _table("`[[also]]`", tables["AlsoOccurs"], attributes(AlsoOccurs)),
        _table("`[confirm]`", tables["OnBrokers"], attributes(OnBrokers)),
        _table("`[finding]`", tables["FindingTable"], attributes(FindingTable)),
        _table("`needs` of `[finding]`", tables["FaultsNeeded"], attributes(FaultsNeeded)),
        f"{_groups()}\n",
        _table("`[finding.hunt]`", tables["HuntedIn"], attributes(HuntedIn)),
        _table("`[finding.walks]`", tables["WalkedIn"], attributes(WalkedIn)),
    ]
    return "\n".join(parts)


def _table(title: str, schema: Mapping[str, Any], meanings: Mapping[str, str]) -> str:
    required = schema.get("required", ())
    rows = [
        (f"`{name}`", _type(one), meanings.get(name, ""), "" if name in required else _default(one))
        for name, one in schema["properties"].items()
    ]
    return _rows(title, ("key", "value", "meaning", "default"), rows)


def _groups() -> str:
    groups = [f"`{name}` ({', '.join(sorted(kinds))})" for name, kinds in GROUPS.items()]
    return f"Groups of kinds: {'; '.join(groups)}."


def _script(tables: Mapping[str, Any]) -> str:
    common = ("do", "when", "after_ms", "after_us", "rules")
    rows = []
    for name, action in ACTIONS.items():
        line = tables[name]
        params = [
            f"`{key}`{'' if key in line['required'] else '?'}: {_type(one)}"
            for key, one in line["properties"].items()
            if key not in common
        ]
        only = ' (only with `control = "scripted"`)' if action.scripted_only else ""
        rows.append((f"`{name}`", "; ".join(params), f"{action.meaning}{only}"))
    wait = tables["wait"]["properties"]
    meanings = attributes(ScriptLine)
    meanings["after_ms"] = meanings["after_us"].replace("in us", "in ms")
    keys = [(f"`{key}`", "word" if key == "do" else _type(wait[key]), meanings[key]) for key in common]
    return "\n".join(
        [
            _rows("`[[script]]`", ("key", "value", "meaning"), keys),
            "The other keys depend on `do`; those with a question mark may be omitted.\n",
            _rows("", ("`do`", "keys", "meaning"), rows),
        ]
    )


def _rows(title: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join([*([f"## {title}", ""] if title else []), *lines, ""])


def _type(schema: Mapping[str, Any]) -> str:
    """A type in a few words."""
    if "$ref" in schema:
        return {"settings": "settings", "draws": "settings with lists", "rule": "rules", "rules": "rules"}.get(
            schema["$ref"].rpartition("/")[2], "table"
        )
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return _words([f"`{word}`" for word in schema["enum"]])
    kind = str(schema.get("type", ""))
    if kind == "array":
        items = schema.get("items", {})
        pair = schema.get("maxItems") == schema.get("minItems") == 2
        return "pair" if pair else "tables" if "oneOf" in items or "$ref" in items else f"list of {_type(items)}"
    if kind == "integer":
        return f"number from {schema['minimum']}" if schema.get("minimum") else "number"
    return {"object": "table", "string": "text", "boolean": "true or false"}.get(kind, kind)


def _words(words: list[str]) -> str:
    return ", ".join(words) if len(words) <= 12 else f"one of {len(words)} words, such as {words[0]}"


def _default(schema: Mapping[str, Any]) -> str:
    found = schema.get("default", "none")
    return "none" if found in ([], {}, "") else f"`{str(found).lower()}`" if found != "none" else "none"


if __name__ == "__main__":
    sys.stdout.write(reference())
