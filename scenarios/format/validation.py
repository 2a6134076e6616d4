"""Checks outside data with pydantic models; each mistake is one sentence.

The parser (`scenarios.paths`) has bounded depth and numbers. Never used on the path of a run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from scenarios.format import problems
from sim.errors import InputError

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class Table(BaseModel):
    """A table without other keys than its fields."""

    model_config = ConfigDict(extra="forbid", strict=True)


class OpenTable(BaseModel):
    """A table whose other keys are ignored, because later versions may add some."""

    model_config = ConfigDict(extra="ignore", strict=True)


class InSchema:
    """Metadata of a field that adds keywords to its JSON Schema, for a check that pydantic does not know."""

    def __init__(self, **keywords: Any) -> None:
        self._keywords = keywords

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(core), **self._keywords}


class OneOf:
    """Metadata of a field that holds one word of a fixed list, also in the JSON Schema.

    Args:
        check: returns the value if it is one of the words, and raises ValueError otherwise.
        words: the words.
    """

    def __init__(self, check: Callable[[Any], object], words: Iterable[str]) -> None:
        self._check = check
        self._words = list(words)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(core), "enum": self._words}


_CONTROLS: Final = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
"""Characters that end a line or change how the rest of it reads: controls, separators, changes of direction."""
_CONTROL: Final = re.compile(f"[{_CONTROLS}]")


def _one_line(text: str) -> str:
    """Refuse control characters: titles stand in comments of scripts, where an end of line would begin a command."""
    if found := _CONTROL.search(text):
        raise ValueError(
            f"one line without control characters is needed, and character {found.start() + 1} is {found[0]!a}"
        )
    return text


OneLine = Annotated[str, Field(min_length=1), AfterValidator(_one_line), InSchema(pattern=f"^[^{_CONTROLS}]*$")]
"""A text of one line."""


def checked(check: Callable[[Any, Any], object]) -> Callable[[Any, ValidationInfo], object]:
    """A validator for pydantic from a check that raises `InputError`.

    Args:
        check: takes a value and the model's context, and returns the stored value. A ValueError has the text after
            ``key = value: ``; an `InputError` names key and value itself.
    """

    def validate(value: Any, info: ValidationInfo) -> object:
        try:
            return check(value, info.context)
        except InputError as error:
            raise PydanticCustomError("said", "{text}", {"text": "; ".join(error.problems)}) from None

    return validate


def validated(
    model: type[M], data: object, context: object = None, tables: Mapping[str, type[BaseModel]] | None = None
) -> M:
    """Validate plain data. The context is passed to checks; `tables` (last name in the path of a table -> its model)
    serve for hints at valid keys.

    Raises:
        InputError: all problems, in the order of the fields.
    """
    known = tables or {"": model}

    def keys(table: str) -> list[str]:
        return [field.alias or name for name, field in known[table].model_fields.items()]

    try:
        return model.model_validate(data, context=context)
    except ValidationError as error:
        found = [problems.describe(detail, keys) for detail in error.errors()]
        raise InputError(*dict.fromkeys(found)) from None


def instance(kind: type[T], data: object) -> T:
    """An instance of a dataclass from plain data; raises InputError with the first value of a wrong type."""
    try:
        return TypeAdapter(kind).validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}") from None
