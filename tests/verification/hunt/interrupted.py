"""``python -m tests.verification.hunt.interrupted``: interrupt hunts, resume them; check what is left or lost.

Three hunts take turns: over a release on two processes, over a build, whose classes are compared in a Java process, and
over a release with one finding hidden, which runs on brokers. Each is interrupted by SIGINT, SIGTERM and SIGKILL in
turn, and goes on by the same command. What must hold after each interruption: no process, port or temporary folder is
left; ``hunt.json`` and ``hunt.md`` can be read; no count is smaller than before; each seed of an arm was run once. In
the end the hunt over a release must have the state of one that nothing interrupted, after as many steps.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.hunt import state as states
from highwater.lab.hunt.request import HuntRequest
from highwater.lab.kafka import releases
from tests.verification.confirm.interruptions import SIGNALS, interrupt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RELEASE: Final = "4.3.1"
SCENARIO: Final = "power"
FAILING: Final = "reassignments"
"""Scenario in which the hidden finding is found soon."""
HIDDEN: Final = "reassignment-stuck"
_JAVA_FOLDER: Final = re.compile(rb"-Djava\.io\.tmpdir=([^\0]+)")


@dataclass
class Hunt:
    """A hunt that is interrupted.

    Attributes:
        words: its options.
        longest_s: the moment of an interruption is drawn up to this.
        before: its state after the last interruption.
    """

    name: str
    words: Sequence[str]
    longest_s: float
    before: dict[str, Any] = field(default_factory=dict)


def hunts(folder: Path) -> list[Hunt]:
    """The hunts, in folders of their own."""
    build = folder / "jars"
    build.mkdir()
    for jar in releases.class_path(RELEASE):
        _, artifact, version = jar.stem.split("__")
        (build / f"{artifact}-{version}.jar").symlink_to(jar)
    acting = ["--kafka", RELEASE, "--confirm", "3", "--hide", HIDDEN, "--scenarios", FAILING]
    return [
        Hunt("release", ["--kafka", RELEASE, "--confirm", "0", "--local", "2", "--scenarios", SCENARIO], 20.0),
        Hunt("build", ["--kafka", str(build), "--confirm", "0", "--scenarios", SCENARIO], 30.0),
        Hunt("brokers", acting, 45.0),
    ]


def read(output: Path) -> dict[str, Any]:
    """The state of a hunt as JSON; empty if it wrote none yet.

    Raises:
        ValueError, KeyError, TypeError: it cannot be read.
    """
    if not (output / states.STATE).is_file():
        return {}
    state = json.loads((output / states.STATE).read_text(encoding="utf-8"))
    states.from_json(state)
    return dict(state)


def lost(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """What a hunt had computed before, and has no more, or has twice."""
    for name, arm in after.get("arms", {}).items():
        if arm["runs"] != arm["next"] - after["about"]["seed"]:
            yield f"{name}: {arm['runs']} runs up to seed {arm['next']}"
    if not before:
        return
    if not after:
        yield "hunt.json is gone"
        return
    counts = [(name, arm, after["arms"].get(name, {})) for name, arm in before["arms"].items()]
    for name, old, new in counts:
        yield from (f"{name}: {key} {old[key]}, then {new.get(key)}" for key in old if new.get(key, -1) < old[key])
    for key, old in before["causes"].items():
        if after["causes"].get(key, {}).get("count", -1) < old["count"]:
            yield f"cause {key}: fewer failures"
    for number, old in before["written"].items():
        if len(after["written"].get(number, {}).get("runs", ())) < len(old["runs"]):
            yield f"finding {number}: fewer runs on brokers"
    for name in ("steps", "oracle"):
        old, new = (one[name] if name == "steps" else len(one[name]) for one in (before, after))
        if new < old:
            yield f"{name}: {old}, then {new}"


def interrupt_and_compare(hunt: Hunt, after_s: float, number: signal.Signals, folder: Path) -> tuple[str, list[str]]:
    """What was running at the interruption, and what is wrong."""
    output = folder / hunt.name
    words = ["hunt", "--for", "8h", "--output", str(output), *hunt.words]
    with (
        tempfile.TemporaryDirectory(prefix="interrupted-") as place,
        (folder / f"{hunt.name}.log").open("ab") as log,
    ):
        one = interrupt(words, after_s, number, Path(place), output=log, more_folders=java_folders)
    what, problems = one.running, one.problems[:]
    if one.ended is not None:
        problems.append(f"it had ended with {one.ended}")
    try:
        state = read(output)
    except (ValueError, KeyError, TypeError) as error:
        return what, [*problems, f"hunt.json cannot be read: {error}"]
    problems += lost(hunt.before, state)
    page = output / states.MARKDOWN
    if page.is_file() and not page.read_text(encoding="utf-8").endswith("\n"):
        problems.append("hunt.md is cut off")
    hunt.before = state
    runs = sum(arm["runs"] for arm in state.get("arms", {}).values())
    acted = sum(len(one["runs"]) for one in state.get("written", {}).values())
    told = f"{what}, exit code {one.code}; {state.get('steps', 0)} steps, {runs} runs"
    return f"{told}, {len(state.get('oracle', ()))} classes, {acted} runs on brokers", problems


def java_folders(running: Sequence[int]) -> list[Path]:
    """Temporary folders of Java processes."""
    found = []
    for process in running:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{process}/cmdline").read_bytes()
            found += [Path(os.fsdecode(match[1])) for match in _JAVA_FOLDER.finditer(words)]
    return found


def undisturbed(hunt: Hunt, folder: Path) -> dict[str, Any]:
    """The state of a hunt over the same release after as many steps, by one process that nothing interrupts."""
    asked = HuntRequest(RELEASE, folder / "undisturbed", scenarios=[SCENARIO], repeat=0)
    with asked.prepare(lambda _: None) as whole:
        for _ in range(hunt.before["steps"]):
            whole.step()
    return whole.state.to_json()


def main() -> int:
    """Interrupt hunts; 1 if anything is left or lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.verification.hunt.interrupted", description=__doc__)
    parser.add_argument("--times", type=int, default=30, help="number of interruptions")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--pace", type=float, default=1.0, help="moments are so many times as late: a busy machine")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    folder = Path(tempfile.mkdtemp(prefix="hunts-"))
    chosen = hunts(folder)
    failed = 0
    for at in range(arguments.times):
        hunt = chosen[at % len(chosen)]
        number = SIGNALS[at // len(chosen) % len(SIGNALS)]
        after_s = chance.uniform(0.0, hunt.longest_s) * arguments.pace
        what, problems = interrupt_and_compare(hunt, after_s, number, folder)
        failed += bool(problems)
        told = "; ".join(problems) or "nothing left, nothing lost"
        sys.stdout.write(f"{at + 1:3} {hunt.name:8} {number.name:8} after {after_s:4.1f} s: {what}: {told}\n")
        sys.stdout.flush()
    first = chosen[0]
    if first.before.get("steps"):
        alike = {name: one for name, one in undisturbed(first, folder).items() if name != "times"}
        same = alike == {name: one for name, one in first.before.items() if name != "times"}
        failed += not same
        sys.stdout.write(f"{first.name}: {'as' if same else 'NOT as'} undisturbed, {first.before['steps']} steps\n")
    sys.stdout.write(f"{arguments.times} interruptions, {failed} went wrong; {folder}\n")
    if not failed:
        shutil.rmtree(folder)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
