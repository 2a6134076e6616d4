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

from reports.brokers.confirm.observer import SEEN
from scenarios.format.catalogue import load
from scenarios.format.schema import read
from scenarios.single.run import run
from sim.exit_codes import INCONCLUSIVE
from sim.protocol.modes import mode
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scenarios.format.scenario import Scenario

RELEASES: Final = {"hw": "0.10.2.2", "kip101": "1.1.1", "kip320": "2.6.0", "kraft": "3.9.0", "elr": "4.1.0"}
SWEPT: Final = "power"
KINDS: Final = ("committed-loss", "divergence", "exposed-loss")
"""Violations that are looked for; the first that a run shows is kept."""
PLAIN: Final = {"produce", "wait", "kill", "power-loss", "controlled-restart", "pause", "cut", "slow"}
"""What a script may do: it only has to be performed at the right moment."""
BEFORE_MS: Final = 5_000
"""Nothing happens before the first line: so much of the wait for it is kept."""
AFTER_MS: Final = 15_000
"""What is started again by then is back before the script ends, on brokers as well."""
FIELDS: Final = ("broker", "batch", "offset")
"""What a step that is waited for is known by; epochs have other numbers on brokers."""


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


def by_steps(text: str, name: str) -> str:
    """The same script, in which lines wait for the last step of the story before them, and not for a time.

    The wait for the first line is cut short, and what comes last has time to end; lines of the story that were of the
    earlier end do not happen then, and are left out. No controller goes back to the preferred leader in that time: none
    does on brokers.

    Raises:
        ValueError: it no longer ends as it did.
    """
    told = tomllib.loads(text)
    script: list[dict[str, Any]] = told["script"]
    first_ms = script[0].get("after_ms", 0)
    script[0]["after_ms"] = min(first_ms, BEFORE_MS)
    result = run(_scenario(told), mode(name), 0, trace=True)
    came = [
        (line["met_at_us"], probe)
        for line, probe in zip(result.story, told["story"], strict=True)
        if line["met_at_us"] is not None and probe["step"] in SEEN
    ]
    before_us = at_us = script[0]["after_ms"] * 1_000
    for line in script[1:]:
        at_us += line.get("after_us", line.get("after_ms", 0) * 1_000)
        between = [(met_us, place) for place, (met_us, _) in enumerate(came) if before_us < met_us < at_us]
        last = max(between, default=None)
        if last is not None and line["do"] != "produce":
            met_us, place = last
            probe = came[place][1]
            line["when"] = {"step": probe["step"], **{name: probe[name] for name in FIELDS if name in probe}}
            line.pop("after_us", None)
            line["after_ms"] = (at_us - met_us) // 1_000
        before_us = at_us
    script.append({"after_ms": AFTER_MS, "do": "wait"})
    told.setdefault("config", {})["auto.leader.rebalance.enable"] = False
    while True:
        again = run(_scenario(told), mode(name), 0)
        missed = next((place for place, line in enumerate(again.story) if line["met_at_us"] is None), None)
        if missed is None:
            break
        del told["story"][missed]
    if not again.row["expected"]:
        raise ValueError(again.row["error"] or again.row["violations"] or again.row["verdict"])
    return _toml(told)


def _scenario(told: dict[str, Any]) -> Scenario:
    return read(_toml(told), "the script")


def _toml(told: dict[str, Any]) -> str:
    plain = {name: value for name, value in told.items() if not isinstance(value, dict | list)}
    parts = [_pairs(plain)]
    for name, value in told.items():
        if isinstance(value, dict):
            parts.append(f"[{name}]\n{_pairs(value)}")
        elif isinstance(value, list):
            parts += [f"[[{name}]]\n{_pairs(one)}" for one in value]
    return "\n".join(parts)


def _pairs(values: dict[str, Any]) -> str:
    return "".join(f'"{name}" = {_value(value)}\n' for name, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{name}" = {_value(one)}' for name, one in value.items()) + " }"
    return json.dumps(value)


def _highwater(words: list[str]) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "highwater.cli.entry", *words]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)


def act(path: Path, release: str, pace: int) -> tuple[str, dict[str, Any]]:
    """The result on brokers, in a few words."""
    done = _highwater(["confirm", str(path), "--kafka", release, "--pace", str(pace), "--limit", "150", "-q", "--json"])
    if not done.stdout.startswith("{"):
        return done.stderr.strip().splitlines()[-1], {}
    told: dict[str, Any] = json.loads(done.stdout)
    acted = told["runs"][0]
    if acted["failed"]:
        return f"not brought to the story: {acted['failed']}", told
    if told["exit_code"] == INCONCLUSIVE:
        return "undecided: attempts were not the same twice", told
    rows = [row for row in acted["rows"] if not row["agrees"]]
    verdict = next(row for row in acted["rows"] if row["what"] == "verdict")
    same = "the same verdict" if verdict["agrees"] else f"verdict {verdict['real']}"
    return "confirmed" if not rows else f"differs, {same}: {', '.join(row['what'] for row in rows)}", told


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
                    text = by_steps(text, chosen)
                except ValueError as error:
                    sys.stdout.write(f"{chosen:7} {seed:5} {kind:15} a script that waits for steps ends with {error}\n")
                path = folder / f"{chosen}-{seed}.toml"
                path.write_text(text, encoding="utf-8")
                word, told = act(path, RELEASES[chosen], arguments.pace)
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
