"""stub."""

import click


@click.command("replay")
def command() -> int:
    """Stub."""
    return 0
