"""A Spark session of this machine, for the tests of a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest

from scenarios.sweep import spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

SECRET: Final = "hunter2"  # noqa: S105 - a made-up one


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """Made as a sweep makes it."""
    before = dict(os.environ)
    pytest.importorskip("pyspark")
    session = spark.new_session("local[2]", {"spark.hadoop.fs.s3a.secret.key": SECRET})
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(before)
