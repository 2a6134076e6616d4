"""Options of commands, declared once, as annotations of a request's fields.

A request is a dataclass. The command line derives its options from the fields (`highwater.cli.options.takes`), a Python
function its signature (`as_function`). That is a `ParamSpec` of the dataclass, so type checkers and editors see each
parameter, and nothing is generated that could be out of date.
"""

from __future__ import annotations

import inspect
import re
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields
from functools import cache, wraps
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from sim.errors import UserError, did_you_mean

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
        in_python: what it is for in a Python function, if that differs.
        attributes: further ones of a `click.Option`.
    """

    def __init__(
        self,
        *names: str,
        help: str = "",  # noqa: A002 - click's name
        read: Callable[[Any], Any] | None = None,
        before: str = "",
        completes: str = "",
        in_python: str = "",
        **attributes: Any,
    ) -> None:
        self.names = names
        self.help = help
        self.read = read
        self.before = before
        self.completes = completes
        self.in_python = in_python or help
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


@cache
def words(request: Any) -> dict[str, str]:
    """The words by which a Python function takes a request's fields -> the field: its name, and those of its option."""
    found = {field.name: field.name for field in fields(request)}
    for field, _, option in _annotated(request):
        for name in option.names if isinstance(option, Option) else ():
            if name.startswith("--"):
                found.setdefault(name.removeprefix("--").replace("-", "_"), field.name)
    return found


def _named(function: Callable[..., object], request: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by the names of the fields; raises TypeError as Python does, with the nearest valid name."""
    known = words(request)
    for word in given:
        if word not in known:
            raise TypeError(f"{function.__name__}() has no parameter {word!r}{did_you_mean(word, known)}")
    named: dict[str, Any] = {}
    for word, value in given.items():
        if known[word] in named:
            raise TypeError(f"{function.__name__}() has the parameter {known[word]!r} twice, once as {word!r}")
        named[known[word]] = value
    return named


@contextmanager
def told_in_python(request: Any) -> Iterator[None]:
    """Let messages name parameters in place of options; those with a command keep their words."""
    known = {f"--{word.replace('_', '-')}": field for word, field in words(request).items()}
    try:
        yield
    except UserError as error:
        error.problems = tuple(
            problem
            if "highwater " in problem
            else re.sub(r"(?<!\S)--[a-z][a-z-]*", lambda option: known.get(option[0], option[0]), problem)
            for problem in error.problems
        )
        error.args = ("\n".join(error.problems),)
        raise


def as_function(request: Callable[P, R]) -> Callable[[Callable[[R], T]], Callable[P, T]]:
    """Give a function of a request the request's signature, and its options' texts as documentation."""

    def decorate(function: Callable[[R], T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> T:
            make: Callable[..., R] = request
            with told_in_python(request):
                return function(make(*args, **_named(function, request, given)))

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
            make: Callable[..., R] = request
            with told_in_python(request):
                return function(first, make(*args, **_named(function, request, given)))

        _describe(call, function, request)
        return call

    return decorate


def _describe(call: Any, function: Callable[..., Any], request: Any) -> None:
    before = [*inspect.signature(function).parameters.values()][:-1]
    types = get_type_hints(request)
    factories = {
        field.name: field.default_factory() for field in fields(request) if field.default_factory is not MISSING
    }
    after = [
        parameter.replace(annotation=types[name], default=factories.get(name, parameter.default))
        for name, parameter in inspect.signature(request).parameters.items()
    ]
    result = inspect.signature(function).return_annotation
    call.__signature__ = inspect.Signature([*before, *after], return_annotation=result)
    texts = {
        field.name: option if isinstance(option, str) else option.in_python for field, _, option in _annotated(request)
    }
    lines = "\n".join(f"    {parameter.name}: {texts[parameter.name]}" for parameter in after)
    text, raises, rest = inspect.cleandoc(function.__doc__ or "").partition("\n\nRaises:")
    call.__doc__ = f"{text}\n\nArgs:\n{lines}{raises}{rest}\n"
