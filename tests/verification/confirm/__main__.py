"""``python -m tests.verification.confirm``: run the entries, and report which were confirmed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict
from hashlib import sha256
from itertools import accumulate, count
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.tickets.findings_page import concerned
from highwater.lab.tickets.story import CONFIRMED
from scenarios.format import catalogue
from tests.places import ROOT
from tests.verification.confirm.entries import ENTRIES, OTHERWISE, WITHOUT, Entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

RUNS: Final = Path(__file__).with_name("runs.jsonl")
"""A line for each run that the table counts."""
COUNTED: Final = {
    "797dbe09984f": "performed each script line one observation later, so stories were harder to keep",
    "81f3643eac17": "ended with an error if a log was deleted while it measured the disk in use",
    "f58edd04844f": "delivered a fetch response before the fetch was acted on, so stories were harder to keep",
    "3b422c36d51f": "forgot the brokers' output from before a script's first line, if that line waits for nothing",
    "b6fccf20a0fd": "gave batches no sequences, which none of the stories that it ran needs",
    "0f32dcd82303": "looked once for leftovers of a killed run; now it looks until there are none",
    "e13edff62da1": "compared the same, but waited less, and let HW files be written while a process starts",
    "8f2376d7a404": "reported a follower leaving the ISR as a difference, and waited for deleted logs",
    "13a17966b701": "waited for logs of brokers that had lost power",
    "2ca83a3e7688": "waited for HW files of 0.10.2.2 that no process reads",
    "3cf54e71c934": "wrote two cached files of Java in another way",
    "730f823e811b": "was in another folder",
    "b92b64e87191": "could not take a log directory out of log.dirs",
    "e0cff4492092": "had functions that nothing used, and other names",
    "3836d26c4270": "had other names, and asked rules where they do not decide",
    "12fe77ae3e72": "had a function for each way in which a process ends or a link changes",
    "461a8f0df9c3": "had other names, fields that nothing read, and more code for the same",
    "a0fdd1e70e04": "had fields that nothing read, and more code for the same",
    "3a3bd474a90c": "had no late metadata and no stalled disks, and gave a leader 5 s to answer a producer",
    "8bda056d3697": "held empty responses, too, while a disk stalled, so stories were harder to keep",
    "925b1d02593a": "had a function for each way in which a process ends or a link changes",
    "e7ded4aa59a1": "held empty responses, too, while a disk stalled, so stories were harder to keep",
    "bc48ae963aae": "could not format disks of 4.4",
    "804b45de8506": "gave each broker one log directory, and the cluster one partition",
    "b61085c9fef8": "moved no replica to another log directory",
    "20699c12a031": "reported a difference if a broker with leader epochs truncated to an HW file written late",
    "1eea0b8ac73f": "could not throttle moves between log directories",
    "3a4861bd3a00": "could not change the level of a feature",
    "c46e3bf7cbc6": "could change the level of a feature by `set-config` only",
    "e0ccaf16eda8": "simulated 4.1.1 to 4.2 with a rule of 4.1.0, and set settings of a broker by way of another one",
    "e0643bf73222": "set settings of a broker by way of another one, which only broker 1 took",
    "9a4d0e8c0a57": "let a batch overtake one without an answer after 6 s, and did not wait for acknowledgements",
    "414919d95214": "did not start a broker that was shutting down once it was down",
    "6e81f717fc77": "had no controllers that a script can strike one by one",
    "8a3291862dc1": "did not start a broker that was shutting down once it was down",
    "bc1c67c9231e": "said in other words that batches were sent again",
    "769a5cd29b07": "simulated 4.1.1 to 4.2 with the last known ELR of 4.1.0, which its stories do not have",
    "a4348f1982aa": "wrote and removed its files by itself",
    "b89f20b6d22a": "did not compare the order of records across epochs of a producer",
    "0a9842361dd6": "did not try the times of lines on brokers in the simulation, so that some runs differed",
    "94e998b55dc6": "could not restart producers, and acted out no seeks of consumers",
    "95de1849e5bb": "counted what the command prints as a part of it",
    "169d515f6aae": "declared its options in another way",
    "fd112ed6527d": "also compared what is appended after the end, where only one run may come so far",
    "c9d1980cb5c6": "told its producer of a new leader also while no broker could",
    "0a4cb3b49db5": "named some classes and loop variables otherwise",
    "c84ab1ce9c31": "compared only the first of several partitions",
    "fdc995814fa5": "had two properties that nothing used",
    "44014122fd84": "did not compare the offsets of acknowledgements of lost records",
    "ec082125a1d3": "named the missing library in another way",
    "7834c32c287a": "named only the first missing library",
    "e9dd274de646": "read where batches begin in two places",
    "4d0df77de8d3": "damaged no files, and compared deleted records that were still on the disk",
    "7e18597cefb5": "took an empty clean-shutdown marker, as of 2.6, for none, and did not remove it",
    "8aef17df6b4f": "kept a producer's id with the sequences of its partition",
}
"""Former harness whose runs still count -> how it differed."""
WORDS: Final = {0: "confirmed", 1: "differs", 3: "undecided"}
"""Exit code -> what it says of a run."""
SPARE: Final = 2
"""Runs of an entry beyond those that are wanted, if some are not good."""


def main() -> int:
    """Run entries; 1 if one was not confirmed."""
    parser = argparse.ArgumentParser(prog="python -m tests.verification.confirm", description=__doc__)
    parser.add_argument("--scenario", help="entries of this scenario only")
    parser.add_argument("--release", help="entries of this release only")
    parser.add_argument("--minutes", type=float, help="only the fastest, as many as that takes by what is recorded")
    parser.add_argument("--repeat", type=int, default=1, help="real runs of each")
    parser.add_argument(
        "--fill",
        action="store_true",
        help="run what lacks so many good runs of this harness in the file, round by round",
    )
    parser.add_argument("--output", type=Path, default=RUNS, help="add a line for each run to this file")
    parser.add_argument(
        "--table",
        action="store_true",
        help="run nothing: print its table, and write its counts for tickets and the table of FINDINGS.md",
    )
    arguments = parser.parse_args()
    if arguments.table:
        lines = _read(arguments.output)
        sys.stdout.write(table(lines))
        CONFIRMED.write_text(confirmed(lines), encoding="utf-8")
        tell_concerned()
        return 0
    failed = 0
    wanted = [
        entry
        for entry in ENTRIES
        if arguments.scenario in (None, entry.scenario) and arguments.release in (None, entry.release)
    ]
    if arguments.minutes is not None:
        wanted = fastest(wanted, 60 * arguments.minutes, _read(RUNS))
    rounds = _lacking(wanted, arguments.repeat, arguments.output) if arguments.fill else wanted * arguments.repeat
    for entry in rounds:
        failed += not _run(entry, arguments.output)
    return int(failed > 0)


def harness() -> str:
    """Digest of the harness's sources, without the command, which prints what it did."""
    folder = ROOT / "highwater" / "lab" / "confirm"
    sources = sorted(path for path in folder.glob("*.py") if path.name != "command.py")
    return sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def file_of(scenario: str) -> str:
    """Hash of a bundled scenario: runs with another script, other faults or other settings are not of this one."""
    return catalogue.load(scenario).scenario_hash()


def is_present(run: Mapping[str, Any]) -> bool:
    """Whether a run was made by the current harness, or by an accepted one, with the current scenario."""
    return run["harness"] in {harness(), *COUNTED} and run["file"] == file_of(run["scenario"])


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def fastest(wanted: Iterable[Entry], seconds: float, lines: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """The fastest entries, by the median of their good runs, that fit into that many seconds."""
    taken: dict[tuple[str, str], list[float]] = {}
    for line in lines:
        if line["code"] == 0:
            taken.setdefault((line["scenario"], line["release"]), []).append(line["seconds"])
    known = {entry: median(taken[key]) for entry in wanted if (key := (entry.scenario, entry.release)) in taken}
    order = sorted(known, key=lambda entry: known[entry])
    ends = accumulate(known[entry] for entry in order)
    return [entry for entry, end in zip(order, ends, strict=True) if end <= seconds]


def _lacking(wanted: Iterable[Entry], runs: int, output: Path) -> Iterator[Entry]:
    tried: Counter[Entry] = Counter()
    for number in range(1, runs + 1):
        for entry in wanted:
            for _ in count():
                good = sum(
                    line["code"] == 0 and (line["scenario"], line["release"]) == (entry.scenario, entry.release)
                    for line in _read(output)
                    if is_present(line)
                )
                if good >= number or tried[entry] >= runs + SPARE:
                    break
                tried[entry] += 1
                yield entry


def table(lines: Iterable[Mapping[str, Any]]) -> str:
    """The tables of runs: what was confirmed on which releases, and how long each run took; runs that were not
    confirmed; and scenarios that brokers do not run.

    Runs of another harness count only if there is none of this one, and have a star.
    """
    told: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for line in lines:
        told.setdefault((line["scenario"], line["release"]), []).append(line)
    rows = ["| scenario | confirmed on (seconds of each run) | day |", "|---|---|---|"]
    others = ["", "## Runs that were not confirmed", "", "| scenario | release: what differed |", "|---|---|"]
    for scenario in dict.fromkeys(entry.scenario for entry in ENTRIES):
        good, bad, days = [], [], []
        for entry in ENTRIES:
            runs = told.get((entry.scenario, entry.release), []) if entry.scenario == scenario else []
            new = [run for run in runs if is_present(run)]
            star = "" if new else "*"
            days += [run["day"] for run in new or runs]
            if seconds := [f"{run['seconds']:.0f}" for run in new or runs if run["code"] == 0]:
                good.append(f"{entry.release} ({'/'.join(seconds)}){star}")
            bad += [f"{entry.release}: {_said(run['differs'])}{star}" for run in new or runs if run["code"] != 0]
        if scenario in OTHERWISE:
            releases, how = OTHERWISE[scenario]
            good += [f"{release} ({how})" for release in releases]
        rows.append(f"| `{scenario}` | {', '.join(good) or '-'} | {max(days, default='-')} |")
        others += [f"| `{scenario}` | {'; '.join(bad)} |"] if bad else []
    others += ["", "## Scenarios that brokers do not run", "", "| scenario | why |", "|---|---|"]
    others += [f"| `{scenario}` | {reason} |" for scenario, reason in WITHOUT.items()]
    return "\n".join([*rows, *others]) + "\n"


def tell_concerned() -> None:
    """Write whom findings concern into FINDINGS.md, from the scenario files and the recorded runs."""
    page = ROOT / "highwater" / "lab" / "confirm" / "FINDINGS.md"
    rows = list(concerned())
    head, _, rest = page.read_text(encoding="utf-8").partition(rows[0])
    behind = rest[rest.index("\n## ") + 1 :]
    page.write_text(head + "\n".join([*rows, behind]), encoding="utf-8")


def confirmed(lines: Iterable[Mapping[str, Any]]) -> str:
    """What tickets need of the runs: scenario -> hash of its file, and release -> agreed, runs, the last day."""
    found: dict[str, dict[str, list[Any]]] = {}
    for line in lines:
        if is_present(line):
            entry = found.setdefault(line["scenario"], {}).setdefault(line["release"], [0, 0, ""])
            entry[:] = [entry[0] + (line["code"] == 0), entry[1] + 1, max(entry[2], line["day"])]
    about = {scenario: {"file": file_of(scenario), "releases": releases} for scenario, releases in found.items()}
    texts = [f" {json.dumps(scenario)}: {json.dumps(one)}" for scenario, one in sorted(about.items())]
    return '{"schema_version": 2, "scenarios": {\n' + ",\n".join(texts) + "\n}}\n"


def _said(differs: Iterable[Mapping[str, str]]) -> str:
    return ", ".join(difference["what"] for difference in differs)


def _differing(run: Mapping[str, Any]) -> list[dict[str, str]]:
    """Why a run is not good: missing events, or differing rows."""
    rows = [{name: row[name] for name in ("what", "simulated", "real")} for row in run["rows"] if not row["agrees"]]
    return [{"what": run["failed"]}] if run["failed"] else rows


def _run(entry: Entry, output: Path) -> bool:
    words = ["confirm", entry.scenario, "--kafka", entry.release, "-q", "--json", "--pace", str(entry.pace)]
    begin_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "highwater.cli.entry", *words], capture_output=True, text=True, check=False, cwd=ROOT
    )
    told: dict[str, Any] = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    differs = [{"what": done.stderr.strip().rpartition("\n")[2] or "failed"}] if done.returncode else []
    seconds = time.monotonic() - begin_s
    line: dict[str, Any] = asdict(entry)
    for run in told.get("runs", []):
        seconds = run["seconds"]["all"]
        line["before"] = [_differing(attempt) for attempt in run["before"]]
        # Of attempts that were not the same twice the last one may agree.
        differs = _differing(run) or ([row for rows in line["before"] for row in rows] if done.returncode else [])
    word = WORDS.get(done.returncode, "failed")
    said = f"    {_said(differs)}\n" if differs else ""
    sys.stdout.write(f"{entry.scenario:34} {entry.release:9} {seconds:6.1f} s  {word}\n{said}")
    sys.stdout.flush()
    line |= {"day": time.strftime("%Y-%m-%d"), "code": done.returncode, "seconds": round(seconds, 1)}
    line |= {"differs": differs, "harness": harness(), "file": file_of(entry.scenario)}
    with output.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
