"""Options that several commands share, with their checks, which run before anything else."""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast, get_args, get_origin

import click

from highwater.cli import completion
from highwater.cli.overview import EXAMPLES
from highwater.option import Argument, Option, declared
from sim.errors import InputError, did_you_mean, is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from highwater.cli.console import Ui
    from scenarios.format.scenario import Scenario
    from scenarios.single.result import RunResult
    from sim.protocol.modes import Mode

T = TypeVar("T")
F = TypeVar("F", bound="Callable[..., Any] | click.Command")


PATH: Final = click.Path(path_type=Path)


def _remember(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    """Callback of the options that every command takes before and after its name: put the value into the `Ui`."""
    if value and ctx.meta.setdefault(f"{__name__}.{option.name}", value) != value:
        raise InputError(f"--{option.name} is given twice, but takes one value")
    if value:
        setattr(ctx.obj, str(option.name), value)


def _load_plugins(_ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> None:
    """Callback of --plugin: load the named plug-ins, after the installed ones."""
    if words:
        from scenarios.format.plugins import load

        load_installed()
        for word in words:
            load(word)


def forget_plugins() -> None:
    """Unload the plug-ins of an earlier command line in this process."""
    from scenarios import plugged

    if plugged.LOADED:
        from scenarios.format import plugins

        plugins.unload()


def load_installed() -> None:
    """Load the plug-ins of installed packages."""
    from scenarios import plugged

    if plugged.are_installed():
        from scenarios.format import plugins

        plugins.load_installed()


_UI_OPTIONS: Final = (
    click.Option(
        ["--plugin"],
        metavar="FILE|MODULE",
        multiple=True,
        is_eager=True,
        callback=_load_plugins,
        expose_value=False,
        help="Load a plug-in: rules, modes, faults, checkers, scenarios.",
    ),
    click.Option(
        ["-q", "--quiet"],
        is_flag=True,
        callback=_remember,
        expose_value=False,
        help="No progress, no notes, no names of written files.",
    ),
    click.Option(
        ["-v", "--verbose"],
        is_flag=True,
        callback=_remember,
        expose_value=False,
        help="Tracebacks on stderr; 'run' prints every run in full.",
    ),
    click.Option(
        ["--color"],
        type=click.Choice(["auto", "always", "never"]),
        callback=_remember,
        expose_value=False,
        help="When to use colours; NO_COLOR is honoured.",
    ),
)


HELP_GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "Which run": (
        *("--mode", "--all-modes", "--all-scenarios", "--scenario", "--scenarios", "--seed", "--seeds", "--plan"),
        *("--blow", "--kind", "--partition", "--last-failed", "--against", "--kafka"),
    ),
    "Protocol and cluster": (
        *("--rule", "--set", "--without-fault", "--server-properties", "--release", "--strict", "--keep-cluster"),
    ),
    "How long, and where": (
        *("--budget", "--until", "--local", "--master", "--conf", "--chunks", "--task-seconds", "--mixed-builds"),
        *("--no-reuse", "--reuse", "--blows", "--most"),
    ),
    "Output": (
        *(
            "--output",
            "--format",
            "--table",
            "--brief",
            "--all",
            "--junit-xml",
            "--trace",
            "--show",
            "--keep",
            "--json",
        ),
        *("--quiet", "--verbose", "--color"),
    ),
}
"""Heading of a help text -> options by their first long names; all others are of the command itself, and come first."""
FORMER: Final = ("--for", "--seconds", "--time-limit", "--limit")
"""Former names of --budget, which commands still take."""
BUDGET: Final = "--budget"


class Command(click.Command):
    """A command with -q, -v and --color, that refuses words that are not text, and a repeated option, of which click
    would keep the last value. Its help lists options in groups, and -o stands for --output.
    """

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        for param in self.params:
            if "--output" in param.opts and "-o" not in param.opts:
                param.opts.insert(0, "-o")
        self.params += _UI_OPTIONS

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options in groups."""
        headings = {name: heading for heading, names in HELP_GROUPS.items() for name in names}
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in ("Options", *HELP_GROUPS)}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                long = (headings[name] for name in param.opts if name in headings)
                groups[next(long, "Output" if "--help" in param.opts else "Options")].append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Check the words before click parses them.

        Raises:
            InputError: an option that takes one value has several, or a word is not UTF-8.
        """
        for word in args:
            if not _is_text(word):
                raise InputError(f"{word!r} is not UTF-8 text")
        args = self._with_budget(args)
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        single = [one for one in given if isinstance(one, click.Option) and not (one.multiple or one.is_flag)]
        for option in single:
            if single.count(option) > 1:
                name = next(name for name in option.opts if name.startswith("--"))
                several = "," in (option.metavar or "")
                how = f", with commas between several: {name} A,B" if several else ""
                raise InputError(f"{name} is given twice, but takes one value{how}")
        return super().parse_args(ctx, args)

    def _with_budget(self, args: list[str]) -> list[str]:
        """The words with --budget for a former name of it that the command does not have."""
        names = {name for param in self.params for name in param.opts}
        if BUDGET not in names:
            return args
        former = {name for name in FORMER if name not in names}
        return [
            f"{BUDGET}{equals}{value}" if name in former else word
            for word, (name, equals, value) in ((word, word.partition("=")) for word in args)
        ]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if example := EXAMPLES.get(ctx.command_path.partition(" ")[2]):
            with formatter.section("Example"):
                formatter.write(f"  {example}\n")


def _is_text(word: str) -> bool:
    return is_text(word) and "\0" not in word


class SuggestingGroup(Command, click.Group):
    """A group that shows its help without a command, and suggests the nearest name for an unknown one."""

    command_class = Command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options in groups, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            raise InputError(f"no such command {args[0]!r}{did_you_mean(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


def takes(request: type) -> Callable[[F], F]:
    """The options of a request's fields; the command receives the request as `asked`."""

    def decorate(command: F) -> F:
        @wraps(command)
        def with_request(**given: Any) -> Any:
            asked = request_of(request, given)
            return command(asked=asked, **{name: value for name, value in given.items() if name not in names})

        options = [_parameter(field.name, hint, option, field.default) for field, hint, option in declared(request)]
        names = {field.name for field in fields(request)}
        if "seed" in names and "seeds" not in names:
            options.append(_no_seeds)
        return together(*options)(cast("F", with_request))

    return decorate


def request_of(request: Callable[..., T], given: Mapping[str, Any]) -> T:
    """A request of what click made of the words; what is not given has the field's default."""
    values = {}
    for field, _, _ in declared(cast("type", request)):
        value = given[field.name]
        has_default = field.default is not MISSING or field.default_factory is not MISSING
        if not has_default or value not in (None, ()):
            values[field.name] = value
    return request(**values)


def option_of(name: str, annotated: Any) -> Callable[[F], F]:
    """An option that requests share, for a command without a request."""
    hint, option = get_args(annotated)
    return _parameter(name, hint, option, None)


def _parameter(name: str, hint: Any, option: Option, default: Any) -> Callable[[F], F]:
    attributes: dict[str, Any] = {**option.attributes}
    kinds = set(get_args(hint)) or {hint}
    if Path in kinds and str not in kinds:
        attributes.setdefault("type", PATH)
    if get_origin(hint) is Literal:
        attributes |= {"type": click.Choice(get_args(hint)), "default": default}
    if (read := option.read) is not None:
        attributes["callback"] = lambda _ctx, _param, value: None if value is None else read(value)
    if option.completes:
        attributes["shell_complete"] = completion.of(option.completes)
    if isinstance(option, Argument):
        return click.argument(name, **{"required": default is MISSING, **attributes})
    names = option.names or (f"--{name.replace('_', '-')}",)
    return click.option(*names, name, is_flag=hint is bool or None, help=option.help, **attributes)


def _refuse_seeds(ctx: click.Context, _param: click.Parameter, text: str | None) -> None:
    if text is not None:
        raise InputError(
            f"--seeds {text}: {ctx.info_name} is about one seed, --seed N; highwater sweep runs many, --seeds A..B or N"
        )


_no_seeds = click.option("--seeds", hidden=True, expose_value=False, callback=_refuse_seeds)
"""--seeds of commands about one seed: a sweep's, which they refuse."""


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order in which the help text lists them."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")


def check_shown(scenario: Scenario, result: RunResult) -> None:
    """Check that a run has the partition to show.

    Raises:
        InputError: the topic does not exist in this run, or has fewer partitions.
    """
    if scenario.shown and result.shown not in ("", scenario.shown):
        raise InputError(
            f"--partition {scenario.shown!r}: there is no such partition in this run of {scenario.name}, "
            f"mode {result.row['mode']}, seed {result.row['seed']}"
        )


def tell_idle(
    ui: Ui, scenario: Scenario, modes: Iterable[Mode], rules: Mapping[str, str], settings: Iterable[str]
) -> None:
    """Report given rules and settings that have no effect in the modes that run."""
    from scenarios.format.relevance import idle

    for line in idle([(scenario, mode) for mode in modes], rules, settings):
        ui.note(line)
