"""A validator for the keywords of JSON Schema that the schema of scenario files uses; it knows no others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
}
_NO_CHECK: Final = {"$schema", "$defs", "title", "description", "default", "discriminator", "then", "else"}


def errors(schema: dict[str, Any], value: Any, root: dict[str, Any] | None = None) -> Iterator[str]:
    """The keywords that a value violates."""
    root = schema if root is None else root
    for keyword, limit in schema.items():
        if keyword not in _NO_CHECK and not _holds(keyword, limit, value, schema, root):
            yield keyword


def _is_valid(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    return next(errors(schema, value, root), None) is None


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def _holds(keyword: str, limit: Any, value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    if keyword in _OF_OBJECTS:
        return not isinstance(value, dict) or _OF_OBJECTS[keyword](limit, value, schema, root)
    if keyword in _OF_ARRAYS:
        return not isinstance(value, list) or _OF_ARRAYS[keyword](limit, value, root)
    return _OF_ALL[keyword](limit, value, schema, root)


def _additional(limit: Any, value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any]) -> bool:
    patterns = schema.get("patternProperties", {})
    rest = [
        key
        for key in value
        if key not in schema.get("properties", {}) and not any(re.search(pattern, key) for pattern in patterns)
    ]
    return not rest if limit is False else all(_is_valid(limit, value[key], root) for key in rest)


def _conditional(limit: Any, value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    branch = schema.get("then" if _is_valid(limit, value, root) else "else", {})
    return _is_valid(branch, value, root)


_OF_OBJECTS: Final[dict[str, Callable[[Any, dict[str, Any], dict[str, Any], dict[str, Any]], bool]]] = {
    "properties": lambda limit, value, _, root: all(
        _is_valid(limit[key], value[key], root) for key in limit if key in value
    ),
    "patternProperties": lambda limit, value, _, root: all(
        _is_valid(one, value[key], root) for pattern, one in limit.items() for key in value if re.search(pattern, key)
    ),
    "additionalProperties": _additional,
    "propertyNames": lambda limit, value, _, root: all(_is_valid(limit, key, root) for key in value),
    "required": lambda limit, value, _, __: all(key in value for key in limit),
    "minProperties": lambda limit, value, _, __: len(value) >= limit,
    "dependentRequired": lambda limit, value, _, __: all(
        other in value for key, others in limit.items() if key in value for other in others
    ),
    "dependentSchemas": lambda limit, value, _, root: all(
        _is_valid(one, value, root) for key, one in limit.items() if key in value
    ),
}
_OF_ARRAYS: Final[dict[str, Callable[[Any, list[Any], dict[str, Any]], bool]]] = {
    "items": lambda limit, value, root: all(_is_valid(limit, one, root) for one in value),
    "contains": lambda limit, value, root: any(_is_valid(limit, one, root) for one in value),
    "minItems": lambda limit, value, _: len(value) >= limit,
    "maxItems": lambda limit, value, _: len(value) <= limit,
    "uniqueItems": lambda limit, value, _: (
        not limit or all(one not in value[:place] for place, one in enumerate(value))
    ),
}
_OF_ALL: Final[dict[str, Callable[[Any, Any, dict[str, Any], dict[str, Any]], bool]]] = {
    "type": lambda limit, value, _, __: _TYPES[limit](value),
    "enum": lambda limit, value, _, __: any(_same(one, value) for one in limit),
    "const": lambda limit, value, _, __: _same(limit, value),
    "pattern": lambda limit, value, _, __: not isinstance(value, str) or re.search(limit, value) is not None,
    "minLength": lambda limit, value, _, __: not isinstance(value, str) or len(value) >= limit,
    "maxLength": lambda limit, value, _, __: not isinstance(value, str) or len(value) <= limit,
    "minimum": lambda limit, value, _, __: not _TYPES["integer"](value) or value >= limit,
    "maximum": lambda limit, value, _, __: not _TYPES["integer"](value) or value <= limit,
    "$ref": lambda limit, value, _, root: _is_valid(root["$defs"][limit.removeprefix("#/$defs/")], value, root),
    "anyOf": lambda limit, value, _, root: any(_is_valid(one, value, root) for one in limit),
    "oneOf": lambda limit, value, _, root: sum(_is_valid(one, value, root) for one in limit) == 1,
    "allOf": lambda limit, value, _, root: all(_is_valid(one, value, root) for one in limit),
    "not": lambda limit, value, _, root: not _is_valid(limit, value, root),
    "if": _conditional,
}
