"""``highwater spark-package``: one archive with everything that Spark workers need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from highwater.cli.options import PATH, Command
from reports import starts
from scenarios import own_files

if TYPE_CHECKING:
    from highwater.cli.console import Ui

ARCHIVE: Final = "highwater-environment.tar.gz"
DRIVER: Final = "highwater-driver.py"
DRIVER_TEXT: Final = """\
import sys
from highwater.cli.main import main
sys.exit(main())
"""


@click.command("spark-package", cls=Command)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=PATH,
    default="dist",
    help="Output folder.  [default: dist]",
)
@click.pass_obj
def command(ui: Ui, output: Path) -> None:
    """Pack this build of Highwater and its requirements, except Python and Spark, for a cluster's workers.

    They must have the same system and minor version of Python.
    """
    from scenarios.sweep.archive import write_archive
    from scenarios.version import build

    archive, driver = output / ARCHIVE, output / DRIVER
    own_files.check_own(driver, starts.DRIVER)
    write_archive(archive)
    own_files.write(driver, DRIVER_TEXT, starts.DRIVER)
    ui.line(f"{archive}: {build()}, {archive.stat().st_size / 1e6:.0f} MB; {driver}")
    ui.line("Workers use it, from here or with spark-submit:")
    ui.line("  export PYSPARK_PYTHON=./environment/bin/python PYSPARK_DRIVER_PYTHON=python")
    ui.line(f"  highwater sweep ... --master URL --conf spark.archives={archive}#environment")
    ui.line(f"  spark-submit --master URL --archives {archive}#environment {driver} sweep ...")
