"""Options that several commands share, with their checks, which run before anything else."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from highwater.cli.overview import EXAMPLES
from highwater.requests import RunRequest, StoreRequest
from highwater.requests import seed as read
from sim.errors import InputError, did_you_mean, is_text, parse_pairs
from sim.protocol.rules import check, parse_overrides

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from highwater.cli.console import Ui
    from scenarios.format.scenario import Scenario
    from scenarios.single.result import RunResult
    from sim.config import Value
    from sim.protocol.modes import Mode

F = TypeVar("F", bound="Callable[..., Any] | click.Command")
_DURATION: Final = re.compile(r"(?P<number>[0-9]{1,6}(\.[0-9]{1,3})?)(?P<unit>[smh]?)", re.ASCII)


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
        ["-q", "--quiet"], is_flag=True, callback=_remember, expose_value=False, help="No progress and no notes."
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


class Command(click.Command):
    """A command with -q, -v and --color, that refuses words that are not text, and a repeated option, of which click
    would keep the last value.
    """

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self.params += _UI_OPTIONS

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
        super().format_epilog(ctx, formatter)
        if example := EXAMPLES.get(ctx.command_path.partition(" ")[2]):
            with formatter.section("Example"):
                formatter.write(f"  {example}\n")


def _is_text(word: str) -> bool:
    return is_text(word) and "\0" not in word


class SuggestingGroup(Command, click.Group):
    """A group that shows its help without a command, and suggests the nearest name for an unknown one."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            raise InputError(f"no such command {args[0]!r}{did_you_mean(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


def read_rules(_ctx: click.Context, _param: click.Parameter, pairs: Iterable[str]) -> dict[str, str]:
    """Callback of --rule."""
    return parse_overrides(pairs)


def _read_rule_lists(_ctx: click.Context, _param: click.Parameter, pairs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Read ``NAME=VALUE,VALUE`` words of a sweep.

    Raises:
        InputError: with all their problems, among them repeated values.
    """

    def read(name: str, text: str) -> tuple[str, ...]:
        values = tuple(text.split(","))
        for value in values:
            check(name, value)
        if len(set(values)) < len(values):
            raise InputError(f"--rule {name}={text} lists a value twice")
        return values

    return parse_pairs(pairs, "--rule", "NAME=VALUE[,VALUE...]", read)


def _read_settings(_ctx: click.Context, _param: click.Parameter, pairs: Iterable[str]) -> dict[str, Value]:
    from scenarios.format.selection import settings

    return settings(pairs)


def _read_grid(_ctx: click.Context, _param: click.Parameter, pairs: Iterable[str]) -> dict[str, tuple[Value, ...]]:
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


def read_seed(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | None:
    """Callback of --seed."""
    return None if text is None else read(text)


def _refuse_seeds(ctx: click.Context, _param: click.Parameter, text: str | None) -> None:
    if text is not None:
        raise InputError(
            f"--seeds {text}: {ctx.info_name} is about one seed, --seed N; highwater sweep runs many, --seeds A..B or N"
        )


no_seeds_option = click.option("--seeds", hidden=True, expose_value=False, callback=_refuse_seeds)
"""--seeds of commands about one seed: a sweep's, which they refuse."""
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
rule_option = click.option(
    "--rule",
    "rules",
    metavar="NAME=VALUE",
    multiple=True,
    callback=read_rules,
    help="Override one rule of the mode (see 'highwater modes show').",
)
"""--rule, repeatable; the command receives a dict."""
rule_list_option = click.option(
    "--rule",
    "rules",
    metavar="NAME=VALUE[,VALUE...]",
    multiple=True,
    callback=_read_rule_lists,
    help="Override one rule of the modes; of several values, sweep every combination, each as a mode of its own.",
)
"""--rule of a sweep, repeatable; the command receives each rule's values."""
set_option = click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    callback=_read_settings,
    help="Override one setting of the scenario (see 'highwater scenarios show --resolved').",
)
"""--set, repeatable; the command receives a dict."""
grid_option = click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE[,VALUE...]",
    multiple=True,
    callback=_read_grid,
    help="Override one setting of the scenarios; of several values, sweep every combination.",
)
"""--set of a sweep, repeatable; the command receives each key's values."""
strict_option = click.option(
    "--strict", is_flag=True, help="Treat early warnings as violations (see 'sim/checkers/README.md')."
)
without_option = click.option(
    "--without-fault",
    "without_faults",
    metavar="KIND",
    multiple=True,
    help="Draw the same faults, but without those of this kind; repeatable.",
)
"""--without-fault, repeatable; the command receives the kinds."""
partition_option = click.option(
    "--partition", metavar="TOPIC-N", help="Show this partition; by default that of the first violation, or the first."
)
"""--partition, of commands that show a run."""
all_modes_option = click.option("--all-modes", is_flag=True, help="Run every mode.")


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order in which the help text lists them."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


def run_options(
    source: str = "DIR|SCENARIO|PLAN",
    seed: str = "Seed, decimal or 0x; a plan has its own.",
    mode: str = "Mode; required if there are several.",
    modes: str = "MODE",
    plan: str = "",
) -> Callable[[F], F]:
    """Options that identify a run, by their help texts. The command receives them as `asked`, a `RunRequest`.

    SOURCE is optional if there is --plan.
    """
    listed = [
        click.argument("source", metavar=source, required=not plan),
        click.option("--seed", metavar="N", callback=read_seed, help=seed),
        no_seeds_option,
        click.option("--mode", "--modes", metavar=modes, help=mode),
        click.option("--scenario", metavar="NAME", help="Scenario, if the sweep has several."),
        click.option(
            "--blow", metavar="WARNING@TIME_US.N", default="", help="Continue it with a blow, as 'sweep --blows' does."
        ),
    ]
    if plan:
        listed.insert(1, click.option("--plan", metavar="FILE", type=PATH, help=plan))

    return together(*listed, _as_request(RunRequest))


def _as_request(request: type[RunRequest | StoreRequest]) -> Callable[[F], F]:
    """Pass the options that are a request's fields to the command as `asked`."""

    def decorate(command: F) -> F:
        @wraps(command)
        def with_request(**given: Any) -> Any:
            asked = request(**{one.name: given.pop(one.name) for one in fields(request) if one.name in given})
            return command(asked=asked, **given)

        return cast("F", with_request)

    return decorate


store_options = together(
    click.argument("folder", metavar="DIR"),
    click.option("--scenario", metavar="NAME", help="Only this scenario."),
    click.option("--mode", "--modes", metavar="A,B", help="Only these modes."),
    _as_request(StoreRequest),
)
"""Options of a command that reads a sweep's rows. The command receives them as `asked`, a `StoreRequest`."""
keep_cluster_option = click.option(
    "--keep-cluster", "keeps_cluster", is_flag=True, help="Shrink faults and batches only: brokers and settings stay."
)
"""--keep-cluster, of commands that shrink a run."""
kind_option = click.option("--kind", metavar="KIND", help="Only this kind of violation.")


def failed_run_options(verb: str) -> Callable[[F], F]:
    """`run_options` of a command that also accepts a recorded run; `verb` is what it does with it."""
    seed = "Seed, decimal or 0x; a recorded run has its own."
    mode = "Mode; required if the sweep or [expect] has several."
    return run_options("DIR|SCENARIO", seed, mode, plan=f"{verb} a recorded run, the plan.json of replay.")


one_run_options = together(
    run_options(seed="Seed, decimal or 0x; a scripted scenario and a plan need none."),
    partition_option,
    rule_option,
    set_option,
    without_option,
    strict_option,
)
"""Options of a command about one run, with --partition, --rule, --set, --without-fault and --strict."""


def evidence_options(part: str) -> Callable[[F], F]:
    """Options of a command that runs one seed and writes its evidence to --output, into the folder `part`."""
    output = click.option(
        "--output",
        metavar="DIR",
        type=PATH,
        help=f"Gets {part}/<seed>-<mode>/; by default the sweep's folder, or store/SCENARIO here.",
    )
    return together(rule_option, set_option, without_option, strict_option, output, json_option)


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


def duration(option: str, text: str) -> float:
    """Read a duration such as ``30s``, ``2m``, ``8h``, or a number of seconds; return seconds.

    Raises:
        InputError: it is not a duration, or 0.
    """
    found = _DURATION.fullmatch(text)
    if found is None or float(found["number"]) == 0:
        raise InputError(f"{option} {text!r} is not valid: give a time such as 30s or 2m")
    return float(found["number"]) * {"m": 60, "h": 3600}.get(found["unit"], 1)
