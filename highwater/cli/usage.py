"""The errors that click finds in a command line, worded as the project's other errors."""

from __future__ import annotations

import re
from typing import Final

import click

from sim.errors import did_you_mean

_MANY: Final = re.compile(r"Got unexpected extra arguments? \((?P<words>.*)\)")


def problem_of(error: click.ClickException) -> str:
    """One sentence about an error of click's: the option or argument, its value, and the values that are valid."""
    match error:
        case click.NoSuchOption():
            return f"no such option {error.option_name!r}{did_you_mean(error.option_name, _options(error.ctx))}"
        case click.MissingParameter():
            return f"{_name(error)} is missing{_help(error.ctx)}"
        case click.BadOptionUsage():
            takes_none = "does not take" in error.message
            return f"{error.option_name} takes no value" if takes_none else f"{error.option_name} needs a value"
        case click.BadParameter(param=click.Parameter() as param):
            value = error.message.partition(" is not ")[0]
            return f"{_name(error)} {value} is not valid{_needed(param.type, value, error.message)}"
    message = error.format_message()
    if extra := _MANY.fullmatch(message.removesuffix(".")):
        return f"too many arguments: {extra['words']}{_help(getattr(error, 'ctx', None))}"
    return message


def _name(error: click.BadParameter) -> str:
    if isinstance(error.param, click.Option):
        return max(error.param.opts, key=len)
    return error.param.make_metavar(error.ctx).strip("[].") if error.param and error.ctx else "an argument"


def _needed(type_: click.ParamType[object], value: str, message: str) -> str:
    match type_:
        case click.Choice(choices=choices):
            return did_you_mean(value.strip("'"), [str(choice) for choice in choices])
        case click.IntRange(min=least, max=most):
            bounds = (f" from {least}" if least is not None else "") + (f" to {most}" if most is not None else "")
            return f": a whole number{bounds} is needed"
        case click.types.IntParamType():
            return ": a whole number is needed"
        case click.types.FloatParamType():
            return ": a number is needed"
    return f": {message}"


def _options(context: click.Context | None) -> list[str]:
    params = context.command.params if context else []
    shown = [param for param in params if isinstance(param, click.Option) and not param.hidden]
    return [name for param in shown for name in (*param.opts, *param.secondary_opts) if name.startswith("--")]


def _help(context: click.Context | None) -> str:
    return f"; see '{context.command_path} --help'" if context else ""
