"""Plain data that came from outside, checked by pydantic models; every mistake is one sentence.

Data were parsed before (`scenarios.paths`), which bounds their depth and numbers. Never on the path of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError

from scenarios.format import problems
from sim.errors import InputError

M = TypeVar("M", bound=BaseModel)


class Table(BaseModel):
    """A table that holds what its fields name, and nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True)


class OpenTable(BaseModel):
    """A table of which only what its fields name is read; what later versions may add stays unread."""

    model_config = ConfigDict(extra="ignore", strict=True)


def checked(check: Callable[[Any, Any], object]) -> Callable[[Any, ValidationInfo], object]:
    """A validator for pydantic from a check that raises `InputError`.

    Args:
        check: takes a value and what the model was given as context, and gives what is kept. ValueError says what is
            to follow ``key = value: ``; the text of an `InputError` names key and value itself.
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
    """The data as the model reads them.

    Args:
        model: of the whole.
        data: of plain types.
        context: what checks are given.
        tables: last name in the path of a table -> its model, for the hint at the nearest valid key.

    Raises:
        InputError: everything that is wrong, in the order of the fields.
    """
    known = tables or {"": model}

    def keys(table: str) -> list[str]:
        return [field.alias or name for name, field in known[table].model_fields.items()]

    try:
        return model.model_validate(data, context=context)
    except ValidationError as error:
        found = [problems.describe(detail, keys) for detail in error.errors()]
        raise InputError(*dict.fromkeys(found)) from None
