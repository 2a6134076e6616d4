"""Tables of Delta Lake and Apache Iceberg that get a copy of each wave of a sweep, once.

The sweep's folder decides which waves count, so resuming, stop rules and claims work as without a table. A wave is
copied after it has its manifest; a driver that resumes copies again what an earlier one may not have copied. Delta
skips a transaction that it has, without running it; Iceberg's snapshots name the wave that they added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast

from scenarios.single import rows as row_columns
from scenarios.sweep.parts import wave_path
from sim.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from scenarios.sweep.folder import Folder

FORMATS: Final = ("delta", "iceberg")
WAVE: Final = "highwater.wave"
"""Property of an Iceberg snapshot: the wave that it added."""


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table for the rows of a sweep.

    Attributes:
        form: its format.
        name: as Spark's catalog knows it; of Delta also a path, which has a slash.
    """

    form: Literal["delta", "iceberg"]
    name: str

    def copy(self, spark: SparkSession, folder: Folder, wave: str, grid: Iterable[str], *, again: bool) -> None:
        """Append the rows of a wave.

        Args:
            spark: a session that knows the format.
            folder: the sweep's folder, which executors can read.
            wave: name of the wave, which no other one ever has.
            grid: settings that vary in the sweep.
            again: the table may have the wave, or some of its seeds.
        """
        rows = spark.read.parquet(f"{folder.spark_uri}/{wave_path(wave)}")
        if self.form == "delta":
            self._append_to_delta(spark, rows, wave, grid, again=again)
        else:
            self._append_to_iceberg(spark, rows, wave, grid, again=again)

    def _append_to_delta(
        self, spark: SparkSession, rows: DataFrame, wave: str, grid: Iterable[str], *, again: bool
    ) -> None:
        if again and (there := self._delta_there(spark)) is not None:
            rows = _without(rows, there, grid)
        writer = rows.write.format("delta").mode("append").option("txnAppId", f"highwater-{wave}")
        writer = writer.option("txnVersion", 1)
        if "/" in self.name:
            writer.save(self.name)
        else:
            writer.saveAsTable(self.name)

    def _delta_there(self, spark: SparkSession) -> DataFrame | None:
        """The rows that a Delta table has; None if there is no table."""
        from pyspark.errors import AnalysisException

        try:
            return spark.read.format("delta").load(self.name) if "/" in self.name else spark.table(self.name)
        except AnalysisException:
            return None

    def _append_to_iceberg(
        self, spark: SparkSession, rows: DataFrame, wave: str, grid: Iterable[str], *, again: bool
    ) -> None:
        if not spark.catalog.tableExists(self.name):
            rows.limit(0).writeTo(self.name).using("iceberg").create()
        elif again:
            snapshots = spark.table(f"{self.name}.snapshots").select("summary").collect()
            if any(snapshot["summary"].get(WAVE) == wave for snapshot in snapshots):
                return
            # Its snapshot may have expired.
            rows = _without(rows, spark.table(self.name), grid)
        rows.writeTo(self.name).option(f"snapshot-property.{WAVE}", wave).append()


def _without(rows: DataFrame, there: DataFrame, grid: Iterable[str]) -> DataFrame:
    """Rows whose key no other row has."""
    key = [f"`{name}`" for name in (*row_columns.key(grid), "warning_us", "variant", "blow")]
    plain = [name.strip("`") for name in key]
    return rows.join(there.select(*key), plain, "left_anti").select(*(f"`{name}`" for name in rows.columns))


def parse(text: str) -> RowTable:
    """A table as ``--table`` names it: ``delta:NAME``, ``delta:/a/path`` or ``iceberg:NAME``.

    Raises:
        InputError: the format is unknown, or the name is missing.
    """
    form, _, name = text.partition(":")
    if form not in FORMATS:
        raise InputError(f"--table {text!r} names no format before a colon{did_you_mean(form, FORMATS)}")
    if not name:
        raise InputError(f"--table {text!r} names no table: {form}:NAME is needed")
    return RowTable(cast('Literal["delta", "iceberg"]', form), name)
