"""The command line: ``highwater``. Each command is a module of `reports.commands`, imported when it is needed."""

from __future__ import annotations

import io
import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from reports import exits
from reports.console import Ui
from reports.options import SuggestingGroup, ui_options
from sim.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

COMMANDS: Final = (
    "run",
    "sweep",
    "replay",
    "shrink",
    "explain",
    "draw",
    "compare",
    "triage",
    "report",
    "coverage",
    "columns",
    "scenarios",
    "modes",
    "confirm",
    "kafka",
    "doctor",
    "spark-package",
)


EPILOG: Final = """\b
Exit codes:
  0  as expected                69   what it needs is not there
  1  not as expected            70   internal error
  2  bad input                  74   cannot be read or written
  3  inconclusive               130  interrupted
  4  a replay's digest differs
"""


class _Commands(SuggestingGroup):
    def list_commands(self, _: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"reports.commands.{cmd_name.replace('-', '_')}").command
        return command


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from reports.versions import version

        click.echo(f"highwater {version()}")
        ctx.exit()


@click.group(cls=_Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V", "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version."
)
@ui_options
def highwater() -> None:
    """Highwater: a deterministic chaos testbed for Kafka's replication protocol."""
    from scenarios.version import check_build

    check_build()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: words after the program's name; those of the process when None.

    Returns:
        The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _interrupt)
    ui = Ui()
    try:
        code = highwater.main(arguments, "highwater", obj=ui, standalone_mode=False) or exits.EXPECTED
        sys.stdout.flush()
    except UserError as error:
        return _refused(ui, error.exit_code, *error.problems)
    except click.ClickException as error:
        return _refused(ui, exits.BAD_INPUT, error.format_message())
    except (KeyboardInterrupt, click.Abort):
        ui.warn("interrupted")
        return exits.INTERRUPTED
    except Exception as error:
        return _failed(ui, error)
    return code


def _refused(ui: Ui, code: int, *problems: str) -> int:
    for problem in problems:
        ui.warn(f"highwater: {problem}")
    return code


def _failed(ui: Ui, error: Exception) -> int:
    """Tell an exception that no command has explained: the system's about files are no error of ours."""
    if isinstance(error, OSError) and error.errno is not None and not ui.verbose:
        what = f"{error.filename}: " if error.filename is not None else ""
        return _refused(ui, exits.UNREADABLE, f"{what}{error.strerror}")
    from reports.crash import report

    report(ui, error)
    return exits.INTERNAL


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
