"""PySpark's daemon for sweeps on this machine: it has imported what runs need before it forks the workers.

Spark's JVM starts it (``spark.python.daemon.module``) in place of Spark's own, each of whose workers imports all
of it: a second of CPU time. pyarrow is left to the workers, since it starts threads.
"""

from __future__ import annotations

import runpy
import signal
from contextlib import suppress
from typing import Final

DAEMON: Final = "pyspark.daemon"


def prepare() -> None:
    """Import what runs need. pyarrow will import neither pandas nor numpy in the workers (`scenarios.spared`).

    A Python that lacks a package fails in the workers, whose errors Spark reports and a sweep explains.
    """
    # When Spark ends, idle workers find their socket closed: exit without a traceback.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    with suppress(Exception):
        import scenarios.sweep.units  # noqa: F401
        from scenarios.single.run import prepare_process
        from scenarios.spared import spare

        spare("numpy", "pandas")
        prepare_process()


if __name__ == "__main__":
    prepare()
    runpy.run_module(DAEMON, run_name="__main__", alter_sys=True)
