"""``python -m tests.confirm``: run the entries, and tell which were confirmed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.confirm.entries import ENTRIES, WITHOUT, Entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).parents[2]
WORDS = {0: "confirmed", 1: "differs", 3: "not brought to the story"}


def main() -> int:
    """Run; 1 if an entry was not confirmed."""
    parser = argparse.ArgumentParser(prog="python -m tests.confirm", description=__doc__)
    parser.add_argument("--scenario", help="entries of this scenario only")
    parser.add_argument("--release", help="entries of this release only")
    parser.add_argument("--repeat", type=int, default=1, help="real runs of each")
    parser.add_argument("--output", type=Path, help="add a JSON line for each entry to this file")
    parser.add_argument("--table", type=Path, help="run nothing: print the page's table of such a file")
    arguments = parser.parse_args()
    if arguments.table is not None:
        sys.stdout.write(table(arguments.table.read_text(encoding="utf-8").splitlines()))
        return 0
    failed = 0
    for entry in ENTRIES:
        if arguments.scenario in (None, entry.scenario) and arguments.release in (None, entry.release):
            failed += not _run(entry, arguments.repeat, arguments.output)
    return int(failed > 0)


def table(lines: Iterable[str]) -> str:
    """The table of the page: what was confirmed on which releases; the last line of an entry counts."""
    told = {(line["scenario"], line["release"]): line for line in map(json.loads, lines)}
    rows = ["| scenario | confirmed on (seconds) | not confirmed | day |", "|---|---|---|---|"]
    for scenario in dict.fromkeys(entry.scenario for entry in ENTRIES):
        wanted = [(entry.scenario, entry.release) for entry in ENTRIES if entry.scenario == scenario]
        mine = [told[entry] for entry in wanted if entry in told]
        good = ", ".join(f"{line['release']} ({line['seconds']})" for line in mine if line["code"] == 0) or "-"
        bad = "; ".join(f"{line['release']}: {_problems(line)}" for line in mine if line["code"] != 0)
        day = max((line["day"] for line in mine), default="-")
        rows.append(f"| `{scenario}` | {good} | {bad} | {day} |")
    rows += [f"| `{scenario}` | - | {reason} | |" for scenario, reason in WITHOUT.items()]
    return "\n".join(rows) + "\n"


def _problems(line: Mapping[str, Any]) -> str:
    found = [
        run["failed"] or ", ".join(row["what"] for row in run["rows"] if not row["agrees"]) for run in line["runs"]
    ]
    return next(filter(None, found), "failed")


def _run(entry: Entry, repeat: int, output: Path | None) -> bool:
    words = [sys.executable, "-m", "reports.entry", "confirm", entry.scenario, "--kafka", entry.release, "-q", "--json"]
    words += ["--pace", str(entry.pace), "--repeat", str(repeat)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    told: dict[str, Any] = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    runs = told.get("runs", [])
    seconds = "/".join(f"{run['seconds']['all']:.0f}" for run in runs) or "-"
    word = WORDS.get(done.returncode, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "failed")
    sys.stdout.write(f"{entry.scenario:28} {entry.release:9} {seconds:>10} s  {word}\n")
    for run in runs:
        problems = [run["failed"]] if run["failed"] else [row["what"] for row in run["rows"] if not row["agrees"]]
        if problems:
            sys.stdout.write(f"    {'; '.join(problems)}\n")
    sys.stdout.flush()
    if output is not None:
        line = {**asdict(entry), "day": time.strftime("%Y-%m-%d"), "code": done.returncode, "seconds": seconds}
        line["runs"] = [{"failed": run["failed"], "rows": run["rows"]} for run in runs]
        with output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
