"""``highwater open``: the results of a folder as web pages on this machine."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Final

import click

from highwater.cli import completion
from highwater.cli.options import Command
from sim import exit_codes
from sim.errors import InputError

if TYPE_CHECKING:
    from highwater.cli.console import Ui
    from highwater.lab.open.server import LoopbackServer
    from highwater.lab.open.site import Site

_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY")


@click.command("open", cls=Command)
@click.argument("source", metavar="DIR|STORE|SCENARIO", shell_complete=completion.of("scenarios"))
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default=True,
    help="Port on 127.0.0.1; 0: any that is free.",
)
@click.option("--no-browser", is_flag=True, help="Open no browser; only print the address.")
@click.pass_obj
def command(ui: Ui, source: str, port: int, no_browser: bool) -> int:
    """Show results as web pages, on this machine only: a sweep, also while it runs, with its failing runs as films and
    explanations; all results of a folder; or the runs of a scenario.

    Nothing is written. Ctrl-C ends it.
    """
    from highwater.lab.open.server import LoopbackServer
    from highwater.lab.open.site import Site

    site = Site(source)
    try:
        server = LoopbackServer(site.answer, port, verbose=ui.verbose)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        raise InputError(f"--port {port} cannot be used: {error.strerror}; --port 0 takes any that is free") from None
    _serve(ui, site, server, opens=not no_browser)
    return exit_codes.EXPECTED


def _serve(ui: Ui, site: Site, server: LoopbackServer, *, opens: bool) -> None:
    try:
        ui.line(server.address)
        ui.note("Ctrl-C ends it.")
        if opens and (sys.platform == "darwin" or any(os.environ.get(name) for name in _DISPLAYS)):
            import webbrowser

            webbrowser.open(server.address)
        server.serve_forever()
    except KeyboardInterrupt:
        ui.note("")  # After the terminal's ^C.
    finally:
        server.server_close()
        site.jobs.close()
