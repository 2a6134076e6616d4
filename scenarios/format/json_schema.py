"""The JSON Schema of scenario files, from the models that read them.

It says what one table says by itself, and what two tables of a file demand of each other where JSON Schema can express
that. ``scenarios validate`` checks more: that a batch which is named is sent, that shares add up to at most 100, that
a bound is not above the other, and that Kafka would start with the settings.
"""

from __future__ import annotations

from typing import Any, Final

from scenarios.format import fields, json_parts
from scenarios.format.actions import ACTIONS
from scenarios.format.finding import FindingTable
from scenarios.format.scenario import ONLY_FOR, OnBrokers
from scenarios.format.schema import file_model

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_NAMED: Final = ("properties", "$defs", "patternProperties")
"""Keywords whose value has names of the user's as keys."""
_PRODUCES: Final = {"properties": {"do": {"const": "produce"}}, "required": ["do"]}


def json_schema() -> dict[str, Any]:
    """The schema of a scenario file as TOML parsers return it."""
    schema = _without_null(file_model(ACTIONS).model_json_schema(by_alias=True))
    schema["$defs"] |= {name: _without_null(part) for name, part in json_parts.parts().items()}
    for table in schema["$defs"].values():
        _complete(table)
    schema["properties"]["expect"]["additionalProperties"] = {"type": "string"}
    schema["$defs"][FindingTable.__name__]["anyOf"] = [{"required": ["number"]}, {"required": ["of"]}]
    given = {"type": "array", "minItems": 1}, {"type": "string", "minLength": 1}
    schema["$defs"][OnBrokers.__name__]["oneOf"] = [
        {"required": [key], "properties": {key: one}} for key, one in zip(("releases", "without"), given, strict=True)
    ]
    drawn, scripted = ({"pattern": json_parts.expectation(fields.VIOLATIONS, named=named)} for named in (False, True))
    only_scripted = [name for name, action in ACTIONS.items() if action.scripted_only]
    schema["allOf"] = [
        {
            "if": {"required": ["faults"]},
            "then": {"properties": {"expect": {"additionalProperties": drawn}}},
            "else": {"properties": {"expect": {"additionalProperties": scripted}}},
        },
        {
            "if": {"required": ["workload"]},
            "then": {"properties": {"script": {"items": {"not": _PRODUCES}}}},
            "else": {"properties": {"script": {"contains": _PRODUCES}}, "required": ["script"]},
        },
        {
            "if": {"not": {"properties": {"control": {"const": "scripted"}}}},
            "then": {"properties": {"script": {"items": {"not": {"properties": {"do": {"enum": only_scripted}}}}}}},
        },
    ]
    return {"$schema": DIALECT, "title": "A scenario of Highwater", **schema}


def _without_null(node: Any) -> Any:
    """Refer to parts, and drop null, which TOML lacks, and titles, which repeat names."""
    if isinstance(node, list):
        return [_without_null(one) for one in node if one != {"type": "null"}]
    if not isinstance(node, dict):
        return node
    if json_parts.PART in node:
        return {"$ref": f"#/$defs/{node[json_parts.PART]}"}
    plain = {
        key: {name: _without_null(one) for name, one in value.items()} if key in _NAMED else _without_null(value)
        for key, value in node.items()
        if key != "title" and not (key == "default" and value is None)
    }
    options = plain.pop("anyOf", None)
    return plain if options is None else {**plain, **(options[0] if len(options) == 1 else {"anyOf": options})}


def _complete(table: dict[str, Any]) -> None:
    """Add what fields of one table demand of each other."""
    properties = table.get("properties", {})
    if {"from", "to"} <= properties.keys():
        table["dependentRequired"] = {"from": ["to"], "to": ["from"]}
    if "step" in properties:
        table["dependentSchemas"] = {
            name: {"properties": {"step": {"enum": list(steps)}}}
            for name, steps in ONLY_FOR.items()
            if name in properties
        }
