"""Options that several commands share, with their checks, which run before anything else."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from highwater.cli.overview import EXAMPLES
from highwater.requests import RunRequest
from highwater.requests import seed as read
from sim.errors import InputError, did_you_mean, parse_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from highwater.cli.console import Ui
    from scenarios.format.scenario import Scenario
    from sim.config import Value
    from sim.protocol.modes import Mode

F = TypeVar("F", bound="Callable[..., Any] | click.Command")
_DURATION: Final = re.compile(r"(?P<number>[0-9]{1,6}(\.[0-9]{1,3})?)(?P<unit>[sm]?)", re.ASCII)


class Command(click.Command):
    """A command that refuses a repeated option (click would keep the last value) and words that are not text."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Check the words before click parses them.

        Raises:
            InputError: an option that takes one value has several, or a word is not UTF-8.
        """
        for word in args:
            if not _is_text(word):
                raise InputError(f"{word!r} is not UTF-8 text")
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        single = [one for one in given if isinstance(one, click.Option) and not (one.multiple or one.is_flag)]
        for option in single:
            if single.count(option) > 1:
                name = next(name for name in option.opts if name.startswith("--"))
                raise InputError(f"{name} is given twice, but takes one value")
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's example, after its options."""
        super().format_epilog(ctx, formatter)
        if example := EXAMPLES.get(ctx.command_path.partition(" ")[2]):
            with formatter.section("Example"):
                formatter.write(f"  {example}\n")


def _is_text(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in word


class SuggestingGroup(Command, click.Group):
    """A group that shows its help without a command, and suggests the nearest name for an unknown one."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show the help if there are no arguments."""
        return super().parse_args(ctx, args or ["--help"])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or fail with a hint."""
        if not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            raise InputError(f"no such command {args[0]!r}{did_you_mean(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


def _ui(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def remember(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value and ctx.meta.setdefault(f"{__name__}.{name}", value) != value:
            raise InputError(f"--{name} is given twice, but takes one value")
        if value:
            setattr(ctx.obj, name, value)

    return remember


def ui_options(command: F) -> F:
    """-q, -v and --color, which every command takes before and after its name."""
    for option in (
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            callback=_ui("color"),
            expose_value=False,
            help="When to use colours; NO_COLOR is honoured.",
        ),
        click.option(
            "-v",
            "--verbose",
            is_flag=True,
            callback=_ui("verbose"),
            expose_value=False,
            help="Tracebacks on stderr; 'run' prints every run in full.",
        ),
        click.option(
            "-q", "--quiet", is_flag=True, callback=_ui("quiet"), expose_value=False, help="No progress and no notes."
        ),
    ):
        command = option(command)
    return command


def json_option(command: F) -> F:
    """--json: the result as one object."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")(command)


def rule_option(command: F) -> F:
    """--rule NAME=VALUE, repeatable; the command receives a dict."""
    text = "Override one rule of the mode (see 'highwater modes show')."
    return _pairs_option("--rule", "rules", "NAME=VALUE", _rules, text)(command)


def set_option(command: F) -> F:
    """--set KEY=VALUE, repeatable; the command receives a dict."""
    text = "Override one setting of the scenario (see 'highwater scenarios show --resolved')."
    return _pairs_option("--set", "settings", "KEY=VALUE", _settings, text)(command)


def grid_option(command: F) -> F:
    """--set KEY=VALUE[,VALUE...], repeatable; the command receives each key's values."""
    text = "Override one setting of the scenarios; of several values, sweep every combination."
    return _pairs_option("--set", "settings", "KEY=VALUE[,VALUE...]", setting_lists, text)(command)


def _pairs_option(
    option: str, name: str, form: str, read: Callable[[Iterable[str]], object], text: str
) -> Callable[[F], F]:
    return click.option(
        option, name, metavar=form, multiple=True, callback=lambda _ctx, _param, pairs: read(pairs), help=text
    )


def _settings(pairs: Iterable[str]) -> dict[str, Value]:
    from scenarios.format.selection import settings

    return settings(pairs)


def _rules(pairs: Iterable[str]) -> dict[str, str]:
    from sim.protocol.modes import parse_overrides

    return parse_overrides(pairs)


def strict_option(command: F) -> F:
    """--strict: treat early warnings as violations."""
    text = "Treat early warnings as violations (see 'sim/checkers/README.md')."
    return click.option("--strict", is_flag=True, help=text)(command)


def run_options(
    source: str = "DIR|SCENARIO|PLAN",
    seed: str = "Seed, decimal or 0x; a plan has its own.",
    mode: str = "Mode; required if there are several.",
    modes: str = "MODE",
    plan: str = "",
) -> Callable[[F], F]:
    """Options that identify a run. The command receives them as `asked`, a `RunRequest`.

    Args:
        source: the argument; optional if there is --plan.
        seed: help text of --seed.
        mode: help text of --mode.
        modes: type of --mode.
        plan: help text of --plan; empty: no such option.
    """

    def decorate(command: F) -> F:
        recorded = click.option("--plan", metavar="FILE", type=click.Path(path_type=Path), help=plan)
        for option in (
            click.option("--scenario", metavar="NAME", help="Scenario, if the sweep has several."),
            click.option("--mode", "--modes", metavar=modes, help=mode),
            click.option("--seed", "--seeds", metavar="N", callback=read_seed, help=seed),
            *([recorded] if plan else ()),
            click.argument("source", metavar=source, required=not plan),
        ):
            command = option(command)

        @wraps(command)
        def with_request(**given: Any) -> Any:
            asked = RunRequest(**{one.name: given.pop(one.name) for one in fields(RunRequest) if one.name in given})
            return command(asked=asked, **given)

        return cast("F", with_request)

    return decorate


def failed_run_options(verb: str) -> Callable[[F], F]:
    """`run_options` of a command that also accepts a recorded run.

    Args:
        verb: what the command does with it, for the help text.
    """
    seed = "Seed, decimal or 0x; a recorded run has its own."
    mode = "Mode; required if the sweep or [expect] has several."
    return run_options("DIR|SCENARIO", seed, mode, plan=f"{verb} a recorded run, the plan.json of replay.")


def one_run_options(command: F) -> F:
    """`run_options` of a command about one run, with --rule, --set and --strict."""
    for option in (
        strict_option,
        set_option,
        rule_option,
        run_options(seed="Seed, decimal or 0x; a scripted scenario and a plan need none."),
    ):
        command = option(command)
    return command


def evidence_options(part: str) -> Callable[[F], F]:
    """Options of a command that runs one seed and writes its evidence: --rule, --set, --strict, --output, --json and
    those of every command.

    Args:
        part: the folder created in --output, for the help text.
    """

    def decorate(command: F) -> F:
        text = f"Gets {part}/<seed>-<mode>/."
        output = click.option("--output", metavar="DIR", type=click.Path(path_type=Path), help=text)
        for option in (ui_options, json_option, output, strict_option, set_option, rule_option):
            command = option(command)
        return command

    return decorate


def setting_lists(pairs: Iterable[str]) -> dict[str, tuple[Value, ...]]:
    """Read ``KEY=VALUE,VALUE`` words of a sweep.

    Raises:
        InputError: with all their problems, among them repeated values.
    """
    from sim.config import KEYS, parse

    def read(key: str, text: str) -> tuple[Value, ...]:
        values = tuple(parse(key, word) for word in (text.split(",") if key in KEYS else [text]))
        if len(set(values)) < len(values):
            raise InputError(f"--set {key}={text} lists a value twice")
        return values

    return parse_pairs(pairs, "--set", "KEY=VALUE[,VALUE...]", read)


def all_modes_option(command: F) -> F:
    """--all-modes, for commands that take modes."""
    return click.option("--all-modes", is_flag=True, help="Run every mode.")(command)


def tell_idle(
    ui: Ui, scenario: Scenario, modes: Iterable[Mode], rules: Mapping[str, str], settings: Iterable[str]
) -> None:
    """Report given rules and settings that have no effect in the modes that run."""
    from scenarios.format.relevance import idle

    for line in idle([(scenario, mode) for mode in modes], rules, settings):
        ui.note(line)


def read_seed(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | None:
    """Callback of --seed."""
    return None if text is None else read(text)


def duration(option: str, text: str) -> float:
    """Read a duration such as ``30s``, ``2m``, or a number of seconds; return seconds.

    Raises:
        InputError: it is not a duration, or 0.
    """
    found = _DURATION.fullmatch(text)
    if found is None or float(found["number"]) == 0:
        raise InputError(f"{option} {text!r} is not valid: give a time such as 30s or 2m")
    return float(found["number"]) * (60 if found["unit"] == "m" else 1)
