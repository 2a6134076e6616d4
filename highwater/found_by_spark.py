"""The package ``pyspark_highwater`` of an installation: Spark 4.0 and later look there for the source ``highwater``.

Spark imports packages whose names begin with ``pyspark_``, and registers their `DefaultSource`.
"""

from highwater.spark_source import DefaultSource as DefaultSource
