"""The command line: ``highwater``. Each command is a module of its own, imported when it is needed."""

from __future__ import annotations

import io
import os
import select
import signal
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click
from click.shell_completion import shell_complete

from highwater.cli import completing, in_browser
from highwater.cli.console import Ui, to_nowhere
from highwater.cli.nearby import with_hint
from highwater.cli.options import SuggestingGroup, forget_plugins, load_installed
from highwater.cli.overview import GROUPS, module
from highwater.cli.usage import problem_of
from scenarios import memory, plugged
from scenarios.spared import spare
from sim import exit_codes
from sim.errors import PluginHangsError, UserError, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType

ERROR_VERSION: Final = 1
COMMANDS: Final = tuple(name for commands in GROUPS.values() for name in commands)

_STREAMS: Final[Mapping[str, Literal["r", "w"]]] = {"stdin": "r", "stdout": "w", "stderr": "w"}
"""Signals by number."""

EPILOG: Final = """\b
Exit codes:
  0  as expected                69   what it needs is not there
  1  not as expected            70   internal error
  2  bad input                  74   cannot be read or written
  3  inconclusive               130  interrupted
  4  a replay's digest differs

\b
Completion of words, for bash; other shells: zsh_source, fish_source
  eval "$(_HIGHWATER_COMPLETE=bash_source highwater)"
"""


class _Commands(SuggestingGroup):
    def list_commands(self, _: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(module(cmd_name)).command
        return command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands in groups, from one table, without importing their modules."""
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([*commands.items()])


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from reports.versions import version

        click.echo(f"highwater {version()}")
        ctx.exit()


@click.group(cls=_Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V", "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version."
)
@click.pass_context
def highwater(context: click.Context) -> None:
    """Highwater: a deterministic chaos testbed for Kafka's replication protocol."""
    from scenarios.requirements import check_required
    from scenarios.version import check_build

    in_browser.check(context.invoked_subcommand or "")
    check_required()
    check_build()
    load_installed()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with these words, by default those of the process; return the exit code.

    Raises what `memory.is_lacking` recognises if the words are the process's, which then cannot go on.
    """
    ui = Ui()
    try:
        _open_streams()
        memory.guard()
        if arguments is None:
            spare("pandas")
        signal.signal(signal.SIGTERM, _interrupt)
        return _ended(ui, sys.argv[1:] if arguments is None else arguments)
    except (KeyboardInterrupt, click.Abort):  # Also while an error is reported.
        ui.warn("\ninterrupted")  # After the terminal's ^C.
        return exit_codes.INTERRUPTED
    except Exception as error:
        if arguments is None or not memory.is_lacking(error):
            raise
        memory.tell(error)
        return exit_codes.UNAVAILABLE


def _ended(ui: Ui, words: Sequence[str]) -> int:
    """Call a command, report its errors, and return the exit code."""
    ui.errors_as_json = "--json" in words
    try:
        code = _called(ui, words)
        sys.stdout.flush()
    except UserError as error:
        return _refused(ui, error.exit_code, *map(with_hint, error.problems))
    except click.Abort:
        raise
    except click.ClickException as error:
        return _refused(ui, exit_codes.BAD_INPUT, problem_of(error))
    except (Exception, SystemExit, PluginHangsError) as error:  # A plug-in may call sys.exit.
        if _is_of_interrupt(error):
            raise KeyboardInterrupt from None
        if memory.is_lacking(error) or (isinstance(error, SystemExit) and not plugged.culprit(error)):
            raise
        # A closed pipe while help is printed is not an error.
        return exit_codes.EXPECTED if isinstance(error, BrokenPipeError) and _has_no_reader() else _failed(ui, error)
    return code


def _is_of_interrupt(error: BaseException) -> bool:
    """Whether an exception took an interrupt's place, as a RuntimeError does in ``__set_name__`` of Python 3.11, or as
    another may if a module is interrupted while it is imported.
    """
    seen: list[BaseException] = []
    while error not in seen:
        seen.append(error)
        error = error.__cause__ or error.__context__ or error
    return any(isinstance(exception, KeyboardInterrupt) for exception in seen)


def _called(ui: Ui, words: Sequence[str]) -> int:
    """Replaces click's ``main``, which takes every broken pipe and end of file for the user's."""
    forget_plugins()
    if asked := os.environ.get(completing.REQUEST):
        return _completed(ui, asked)
    try:
        with highwater.make_context("highwater", [*words], obj=ui) as context:
            return highwater.invoke(context) or exit_codes.EXPECTED
    except click.exceptions.Exit as left:
        return left.exit_code


def _completed(ui: Ui, request: str) -> int:
    """Print what a shell requests for completion, and keep the index from which the next time is quicker."""
    from highwater.cli import completion

    load_installed()
    text = completing.answer(completion.index(highwater), request)
    if text is None:  # The shell's function.
        return shell_complete(highwater, {"obj": ui}, "highwater", completing.REQUEST, request)
    sys.stdout.write(text)
    return exit_codes.EXPECTED


def _open_streams() -> None:
    """Open stdin, stdout and stderr if the parent process closed them.

    Otherwise files opened later would get their descriptors. Output to them is discarded.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) < len(_STREAMS):
        os.set_inheritable(handle, True)
    os.close(handle)
    for name, mode in _STREAMS.items():
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - for the rest of the process
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _has_no_reader() -> bool:
    """Whether the reader of stdout is gone; then discard further output."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    gone = any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
    if gone:
        to_nowhere(sys.stdout)
    return gone


def _refused(ui: Ui, code: int, *problems: str) -> int:
    """Report problems: on stderr, with --json also as the object on stdout, unless the result is there already."""
    ui.caution(problems)
    if ui.errors_as_json and not ui.has_json:
        ui.json({"schema_version": ERROR_VERSION, "problems": problems, "exit_code": code})
    return code


def _failed(ui: Ui, error: BaseException) -> int:
    """Report an exception that no command handled; errors of plug-ins and of the system's files are not internal."""
    if where := plugged.culprit(error):
        if ui.verbose:
            ui.warn("".join(traceback.format_exception(error)).rstrip())
        return _refused(ui, exit_codes.BAD_INPUT, f"{type(error).__name__}: {text_of(error)} (plug-in, {where})")
    if isinstance(error, OSError) and error.errno is not None and not ui.verbose:
        what = f"{error.filename}: " if error.filename is not None else ""
        return _refused(ui, exit_codes.UNREADABLE, f"{what}{error.strerror}")
    if lacking := in_browser.lacking(error):
        return _refused(ui, exit_codes.UNAVAILABLE, lacking)
    from highwater.cli.crash import report

    report(ui, error)
    return exit_codes.INTERNAL


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
