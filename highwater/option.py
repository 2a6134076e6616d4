"""Options of commands, declared once, as annotations of a request's fields.

A request is a dataclass. The command line derives its options from the fields (`highwater.cli.options.takes`), a Python
function its signature (`as_function`). That is a `ParamSpec` of the dataclass, so type checkers and editors see each
parameter, and nothing is generated that could be out of date.
"""

from __future__ import annotations

import inspect
from dataclasses import Field, fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
First = TypeVar("First")


class Option:
    """How the command line gives a field.

    Attributes:
        names: the option's names; without any, that of the field.
        help: what it is for; of a Python function, too.
        read: turns the given text, or texts, into the field's value.
        before: field before whose option the help lists this one; "": the fields' order.
        completes: what a shell completes (`highwater.cli.completion`).
        attributes: further ones of a `click.Option`.
    """

    def __init__(
        self,
        *names: str,
        help: str = "",  # noqa: A002 - click's name
        read: Callable[[Any], Any] | None = None,
        before: str = "",
        completes: str = "",
        **attributes: Any,
    ) -> None:
        self.names = names
        self.help = help
        self.read = read
        self.before = before
        self.completes = completes
        self.attributes: Mapping[str, Any] = attributes


class Argument(Option):
    """How the command line gives a field: by its place."""


def declared(request: type) -> list[tuple[Field[Any], Any, Option]]:
    """The fields that the command line gives, as its help lists them: field, type and option."""
    everything = {field.name: (field, hint, option) for field, hint, option in _annotated(request)}
    names = list(everything)
    for name, (_, _, option) in everything.items():
        if isinstance(option, Option) and option.before in everything:
            names.remove(name)
            names.insert(names.index(option.before), name)
    found = (everything[name] for name in names)
    return [(field, hint, option) for field, hint, option in found if isinstance(option, Option)]


def _annotated(request: Any) -> Iterator[tuple[Field[Any], Any, Option | str]]:
    """Each field with its type, and its option, or what it means."""
    hints = get_type_hints(request, include_extras=True)
    for field in fields(request):
        hint = hints[field.name]
        parts = get_args(hint) if get_origin(hint) is Annotated else (hint, "")
        yield field, parts[0], parts[1]


def as_function(request: Callable[P, R]) -> Callable[[Callable[[R], T]], Callable[P, T]]:
    """Give a function of a request the request's signature, and its options' texts as documentation."""

    def decorate(function: Callable[[R], T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> T:
            return function(request(*args, **given))

        _describe(call, function, request)
        return call

    return decorate


def as_function_of(
    request: Callable[P, R],
) -> Callable[[Callable[[First, R], T]], Callable[Concatenate[First, P], T]]:
    """`as_function` of a function that has a parameter before the request."""

    def decorate(function: Callable[[First, R], T]) -> Callable[Concatenate[First, P], T]:
        @wraps(function)
        def call(first: First, /, *args: P.args, **given: P.kwargs) -> T:
            return function(first, request(*args, **given))

        _describe(call, function, request)
        return call

    return decorate


def _describe(call: Any, function: Callable[..., Any], request: Any) -> None:
    before = [*inspect.signature(function).parameters.values()][:-1]
    types = get_type_hints(request)
    after = [
        parameter.replace(annotation=types[name]) for name, parameter in inspect.signature(request).parameters.items()
    ]
    result = inspect.signature(function).return_annotation
    call.__signature__ = inspect.Signature([*before, *after], return_annotation=result)
    texts = {field.name: option if isinstance(option, str) else option.help for field, _, option in _annotated(request)}
    lines = "\n".join(f"    {parameter.name}: {texts[parameter.name]}" for parameter in after)
    text, raises, rest = inspect.cleandoc(function.__doc__ or "").partition("\n\nRaises:")
    call.__doc__ = f"{text}\n\nArgs:\n{lines}{raises}{rest}\n"
