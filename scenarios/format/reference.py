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
from scenarios.format.actions import ACTIONS
from scenarios.format.finding import GROUPS, FaultsNeeded, FindingTable, HuntedIn, WalkedIn
from scenarios.format.json_schema import json_schema
from scenarios.format.scenario import AlsoOccurs, Bursts, FinalLog, OnBrokers, Pattern, Scenario, Topic
from sim.environment.topology import Topology

_ATTRIBUTE: Final = re.compile(r"^    ?(\w+): (.*)$")
_OWN: Final = {
    "schema": "version of the format: 1",
    "name": "the scenario's name, which rows and folders have",
    "title": "one line",
    "brokers": "their number, or a table: `[brokers]` below",
    "draw": "settings that the seed chooses from a list: key and values",
    "script": "lines of the script, in order: `[[script]]` below",
    "story": "steps that must occur, in this order: `[[story]]` below",
    "final": "logs at the end: `[[final]]` below",
    "settle_ms": "time for convergence beyond the default deadline, in ms",
    "kind": "a kind of violation that is known to occur",
    "modes": "modes in which it occurs",
    "label": "whether the promise covers it",
    "reason": "why it occurs",
    "step": "kind of step",
    "rules": "rule with its values: where a rule has another value, the line is skipped",
    "when": "pattern of a step that the line waits for, after the line before",
    "after_ms": "further time, in ms",
    "after_us": "further time, in us",
    "do": "the action",
    "leader_epoch": "leader epoch",
    "isr": "ISR, in any order",
    "elr": "eligible leader replicas, in any order",
    "last_known_elr": "last known eligible leader replicas, in any order",
    "broker": "the step's broker; 0: none",
    "expect": "mode with its expectation: `clean`, `clean:KIND|KIND`, `violates:KIND|KIND` or `may-violate`",
    "config": "settings of all brokers and clients",
    "workload": "random batches: `[workload]` below; without it, the script sends all batches",
    "topology": "racks, power domains and hosts of brokers: `[topology]` below",
    "topics": "the topics: `[[topics]]` below; without it, one with one partition",
    "faults": "random faults: `[faults]` below",
    "control": "`real`: ZooKeeper or KRaft, as in the mode; `scripted`: the script is the control plane",
    "confirm": "releases of Kafka on whose brokers `make confirm` runs it: `[confirm]` below",
    "finding": "the failure of Kafka's that the scenario shows: `[finding]` below",
    "broken_by": "clean mode with rule values with which an expected kind occurs: each alone, or together",
}
_LATENCIES: Final = {
    "latency_within_rack_us": "latency added to each message between two brokers of a rack, in us",
    "latency_between_racks_us": "latency added to each message between brokers of different racks, in us",
}
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
    return {
        key.removesuffix("us") + "ms" if key.endswith("_us") else key: text.rstrip(".").replace("``", "`")
        for key, text in found.items()
    }


def reference() -> str:
    """The page."""
    schema = json_schema()
    tables = schema["$defs"]
    parts = [
        _HEAD,
        _table("The file", schema, {**attributes(Scenario), **_OWN}),
        _table("`[brokers]`", schema["properties"]["brokers"]["anyOf"][1], {**attributes(Scenario), "count": "number"}),
        "`[brokers.2]` has settings of broker 2, and its `mode` if that is another one.\n",
        _table("`[topology]`", tables["Topology"], {**attributes(Topology), **_LATENCIES}),
        "A group is a name with its brokers: `racks = { a = [1, 2], b = [3] }`. Racks name all brokers or none.\n",
        _table("`[[topics]]`", tables["Topic"], attributes(Topic)),
        _table("`[workload]`", tables["Bursts"], attributes(Bursts)),
        _table("`[faults]`", tables["FaultBounds"], {**attributes(FaultBounds), "kinds": _KINDS}),
        _script(tables),
        _table("`when`, and `[[story]]`", tables["StoryLine"], {**attributes(Pattern), **_OWN}),
        _table("`[[final]]`", tables["FinalLog"], {**attributes(FinalLog), "rules": _OWN["rules"]}),
        _table("`[[also]]`", tables["AlsoOccurs"], {**attributes(AlsoOccurs), **_OWN}),
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
    keys = [(f"`{key}`", "word" if key == "do" else _type(wait[key]), _OWN[key]) for key in common]
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
