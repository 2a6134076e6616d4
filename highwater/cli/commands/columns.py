"""``highwater columns``: the columns of a sweep's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from highwater.cli.options import Command, json_option
from reports.document.blocks import Table

if TYPE_CHECKING:
    from highwater.cli.console import Ui


@click.command("columns", cls=Command)
@json_option
@click.pass_obj
def command(ui: Ui, as_json: bool) -> None:
    """List the columns of rows: type, the schema version that introduced them, their value in older rows, meaning."""
    from scenarios.single.rows import COLUMNS, ROWS_VERSION

    if as_json:
        listed = [
            {
                "name": column.name,
                "type": column.type,
                "since": column.since,
                "before": column.missing,
                "meaning": column.meaning,
            }
            for column in COLUMNS.values()
        ]
        ui.json({"schema_version": ROWS_VERSION, "columns": listed})
    else:
        rows = [(column.name, column.type, column.since, column.before, column.meaning) for column in COLUMNS.values()]
        headers = ["column", "type", "since", "before", "meaning"]
        ui.show([Table(headers, rows, numbers=["since", "before"], apart=False)])
