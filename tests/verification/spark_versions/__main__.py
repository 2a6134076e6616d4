"""Tries Highwater with several versions of pyspark: `python -m tests.verification.spark_versions`.

Each version has an environment in build/spark, which sees all other packages of this one. The table of what was tried,
with which result, goes to stdout; `--keep` also writes it to results.json and into the page about platforms.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.verification.spark_versions import results
from tests.verification.spark_versions.columns import COLUMNS, Place, tried
from tests.verification.spark_versions.environments import VERSIONS, NotInstalledError, environment, unpack_wheel

NOT_INSTALLED: Final = 3
"""The exit code, of which `.ci/run` makes no failure."""


def main() -> int:
    """Try all; exits with 1 if something failed, else with 3 if a version cannot be installed here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", default=VERSIONS, help="of pyspark; also oldest, newest")
    parser.add_argument("--columns", default=",".join(COLUMNS), help="what to try, with commas between")
    parser.add_argument("--restarts", type=int, default=2, help="of the stream")
    parser.add_argument("--kills", type=int, default=3, help="of sweeps into a table, for each format")
    parser.add_argument("--keep", action="store_true", help="keep the results")
    asked = parser.parse_args()
    unpack_wheel()
    found: results.Results = {}
    is_whole = True
    with tempfile.TemporaryDirectory() as folder:
        for word in asked.versions:
            version = {"oldest": VERSIONS[0], "newest": VERSIONS[-1]}.get(word, word)
            try:
                python = environment(version)
            except NotInstalledError as error:
                sys.stdout.write(f"pyspark {version} is not tried, for it cannot be installed: {error}\n")
                is_whole = False
                continue
            place = Place(version, python, Path(folder, version), asked.restarts, asked.kills)
            for column in asked.columns.split(","):
                begin = time.monotonic()
                result, run = tried(place, column)
                date = datetime.now(UTC).date().isoformat()
                found.setdefault(version, {})[column] = {"result": result, "run": run, "date": date}
                took = time.monotonic() - begin
                sys.stdout.write(f"pyspark {version}, {column}: {result} ({run}), {took:.0f} s\n")
                sys.stdout.flush()
                if asked.keep:
                    all_kept = results.kept()
                    all_kept.setdefault(version, {})[column] = found[version][column]
                    results.keep(all_kept)
    if found:
        sys.stdout.write("\n" + results.table(found))
    if any(each["result"] == "FAILED" for columns in found.values() for each in columns.values()):
        return 1
    return 0 if is_whole else NOT_INSTALLED


if __name__ == "__main__":
    sys.exit(main())
