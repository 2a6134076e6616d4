"""Checks outside data with pydantic models; each mistake is one sentence.

The parser (`scenarios.paths`) has bounded depth and numbers. Never used on the path of a run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from scenarios.format import problems
from sim.errors import InputError

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class StrictTable(BaseModel):
    """A table without other keys than its fields."""

    model_config = ConfigDict(extra="forbid", strict=True)


class OpenTable(BaseModel):
    """A table whose other keys are ignored, because later versions may add some."""

    model_config = ConfigDict(extra="ignore", strict=True)


def before_or_after(check: Callable[[Any, Any], object], inner: CoreSchema, *, before: bool) -> CoreSchema:
    """A schema with a check (see `checked`) before or after the type is checked."""
    if before:
        return core_schema.with_info_before_validator_function(checked(check), inner)
    return core_schema.with_info_after_validator_function(checked(check), inner)


def beside(check: Callable[[Any, Mapping[str, Any]], object], inner: CoreSchema) -> CoreSchema:
    """A schema with a check that gets the values of the fields before this one, too."""

    def validate(value: Any, info: ValidationInfo) -> object:
        return check(value, info.data)

    return core_schema.with_info_after_validator_function(validate, inner)


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
