"""``python -m tests.verification.confirm.shrunk``: failures of sweeps, shrunk to scripts, on real brokers."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.hunt.scripts import by_steps
from scenarios.format.catalogue import load
from scenarios.single.run import run
from sim.exit_codes import INCONCLUSIVE
from sim.protocol.modes import mode
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator


RELEASES: Final = {"hw": "0.10.2.2", "kip101": "1.1.1", "kip320": "2.6.0", "kraft": "3.9.0", "elr": "4.1.0"}
SWEPT: Final = "power"
KINDS: Final = ("committed-loss", "divergence", "exposed-loss")
"""Violations that are looked for; the first that a run shows is kept."""
PLAIN: Final = {"produce", "wait", "kill", "power-loss", "controlled-restart", "pause", "cut", "slow"}
"""What a script may do: it only has to be performed at the right moment."""


def failures(name: str) -> Iterator[tuple[int, str]]:
    """Seeds in which a mode fails, with their violations."""
    swept = load(SWEPT)
    for seed in count():
        found = {violation["kind"] for violation in run(swept, mode(name), seed).violations}
        kind = next((kind for kind in KINDS if kind in found), None)
        if kind is not None:
            yield seed, kind


def shrunk(name: str, seed: int, kind: str, folder: Path) -> str:
    """The script of a shrunk failure; "" if it cannot be written as one."""
    words = ["shrink", SWEPT, "--seed", str(seed), "--mode", name, "--kind", kind, "--budget", "30s", "--json", "-q"]
    done = _highwater([*words, "--output", str(folder)])
    told = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return str(told.get("scenario") or "")


def _highwater(words: list[str]) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "highwater.cli.entry", *words]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)


def confirmed_with(path: Path, release: str, pace: int) -> tuple[int, str, dict[str, Any]]:
    """The result on brokers: exit code, a few words, and the command's JSON."""
    done = _highwater(["confirm", str(path), "--kafka", release, "--pace", str(pace), "--limit", "150", "-q", "--json"])
    if not done.stdout.startswith("{"):
        return done.returncode, (done.stderr.strip().splitlines() or ["no output"])[-1], {}
    told: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, _outcome(told), told


def _outcome(told: dict[str, Any]) -> str:
    acted = told["runs"][0]
    if acted["failed"]:
        return f"not brought to the story: {acted['failed']}"
    if told["exit_code"] == INCONCLUSIVE:
        return "undecided: attempts were not the same twice"
    rows = [row for row in acted["rows"] if not row["agrees"]]
    verdict = next(row for row in acted["rows"] if row["what"] == "verdict")
    same = "the same verdict" if verdict["agrees"] else f"verdict {verdict['real']}"
    return "confirmed" if not rows else f"differs, {same}: {', '.join(row['what'] for row in rows)}"


def main() -> int:
    """Run the scripts; always 0, since real brokers cannot be made to do everything."""
    parser = argparse.ArgumentParser(prog="python -m tests.verification.confirm.shrunk", description=__doc__)
    parser.add_argument("--each", type=int, default=4, help="failures of each mode")
    parser.add_argument("--mode", choices=RELEASES, help="of this mode only")
    parser.add_argument("--pace", type=int, default=5, help="see highwater confirm")
    parser.add_argument("--output", type=Path, help="keep the scripts and what came of them in this folder")
    arguments = parser.parse_args()
    tally: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="shrunk-") as name:
        folder = arguments.output or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        for chosen in [arguments.mode] if arguments.mode else RELEASES:
            acted = 0
            for seed, kind in failures(chosen):
                text = shrunk(chosen, seed, kind, Path(name))
                actions = {line["do"] for line in tomllib.loads(text)["script"]} if text else set()
                if not text or not actions <= PLAIN:
                    continue
                try:
                    text = by_steps(text, mode(chosen))
                except ValueError as error:
                    sys.stdout.write(f"{chosen:7} {seed:5} {kind:15} a script that waits for steps ends with {error}\n")
                path = folder / f"{chosen}-{seed}.toml"
                path.write_text(text, encoding="utf-8")
                _, word, told = confirmed_with(path, RELEASES[chosen], arguments.pace)
                path.with_suffix(".json").write_text(json.dumps(told), encoding="utf-8")
                struck = ", ".join(sorted(actions - {"produce", "wait"}))
                sys.stdout.write(f"{chosen:7} {seed:5} {kind:15} {RELEASES[chosen]:9} after {struck}: {word}\n")
                sys.stdout.flush()
                tally[word.split(",")[0].split(":")[0]] += 1
                acted += 1
                if acted == arguments.each:
                    break
    sys.stdout.write("".join(f"{number:3} {word}\n" for word, number in tally.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
