"""`make hunt-shrink`: events reported as necessary are necessary, and often suffice.

Failures as those that `tests.verification.hunt.shrink` takes are shrunk, and each is asked what it takes. Each fault,
batch and message of the set is left out once more, of a run that is made here: what is left out must have been there,
and the violation must be gone. Messages that stand for each other are left out together. How often the set kept in its
order is enough under other latencies is counted; where it is not, when others arrive matters, too. With `--keep FILE`
each answer is appended to a file, and those that are there, of the same code, are not asked for again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scenarios.shrinking.criterion import Trials, symptom
from scenarios.shrinking.necessity import ENOUGH, TRIES, find_necessity
from scenarios.shrinking.shrink import shrink
from scenarios.single.execution import CLIENTS_BEGIN_US
from scenarios.single.run import prepare_process
from scenarios.version import code_version
from sim.kernel.choosing import ChoosingKernel
from sim.kernel.message import Message
from tests.verification.hunt.shrink import MODES, SCENARIOS, failures, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from scenarios.shrinking.case import Case
    from scenarios.shrinking.criterion import Symptom
    from scenarios.shrinking.necessity import Necessity, Route, SentMessage
    from scenarios.single.rows import Row
    from sim.kernel.scheduler import Event, Gate

BUDGET: Final = 1_000_000
"""Events that a run may take."""
LOST: Final = "lost"


@dataclass
class Asked:
    """One failure.

    Attributes:
        what: which.
        size: of the set: faults, batches and messages.
        spared: faults and batches without which the violation stays.
        groups: of messages that stand for each other.
        asked: how many messages were left out,
        of: of how many.
        stays: tries in which the violation stayed.
        seconds: of CPU that it took to ask.
        wrong: what does not hold.
    """

    what: str
    size: int
    spared: int
    groups: int
    asked: int
    of: int
    stays: int
    seconds: float
    wrong: list[str] = field(default_factory=list)

    @property
    def is_enough(self) -> bool:
        return self.stays >= ENOUGH


class _Losing:
    """Decides which messages are lost, and counts them.

    Args:
        loses: ((class, sender, receiver), message, when it is sent) -> whether it is lost.

    Attributes:
        lost: how many were.
    """

    def __init__(self, loses: Callable[[Route, Message, int], bool]) -> None:
        self.lost = 0
        self.kernel = ChoosingKernel(BUDGET, self, {LOST})
        self._loses = loses

    def __call__(self, gate: Gate, event: Event, _at_us: int) -> Hashable:
        if not isinstance(event, Message):
            return None
        if not self._loses((type(event), gate.source, gate.owner), event, self.kernel.now_us):
            return None
        self.lost += 1
        return LOST


def without(case: Case, sent: SentMessage) -> tuple[Row, int]:
    """The run without one message, identified by its sending time, and how many messages were lost."""
    seen = False

    def loses(route: Route, message: Message, now_us: int) -> bool:
        nonlocal seen
        if seen or now_us != sent.sent_us or route != sent.route or message.about() != sent.name.about:
            return False
        seen = True
        return True

    losing = _Losing(loses)
    return case.run(kernel=losing.kernel).row, losing.lost


def without_way(case: Case, route: Route) -> Row:
    """The run without all messages of one kind from one node to another."""
    losing = _Losing(lambda one, _, at: at >= CLIENTS_BEGIN_US and one == route)
    return case.run(kernel=losing.kernel).row


def wrong(case: Case, kept: Symptom, takes: Necessity) -> Iterator[str]:
    """Events wrongly reported as necessary, or wrongly not reported."""
    faults, sends = case.faults, case.sends
    for place, (_, goes) in enumerate(takes.faults):
        row = case.with_faults((*faults[:place], *faults[place + 1 :])).row()
        if _is_gone(row, kept) != goes:
            yield f"fault {place} is {'not ' if goes else ''}necessary"
    for place, (_, goes) in enumerate(takes.sends):
        row = case.with_sends((*sends[:place], *sends[place + 1 :])).row()
        if _is_gone(row, kept) != goes:
            yield f"batch {place} is {'not ' if goes else ''}necessary"
    for message in takes.messages:
        row, lost = without(case, message)
        if lost != 1:
            yield f"{message.name} at {message.sent_us} us was not found"
        elif not _is_gone(row, kept):
            yield f"{message.name} at {message.sent_us} us is not necessary"
    for group in takes.alternatives:
        if not _is_gone(without_way(case, group.messages[0].route), kept):
            yield f"all {group.messages[0].route} together are not necessary"
    if takes.tries != TRIES or not takes.whole:
        yield "not all was tried"


def _is_gone(row: Row, kept: Symptom) -> bool:
    """Whether a complete run no longer has the violation, inside or outside the promise."""
    if kept.kind == "stalled":
        return bool(row["verdict"] not in ("error", "exhausted", "stalled"))
    return row["verdict"] not in ("error", "exhausted") and kept.kind not in row["violations"].split(",")


def attempt(case: Case, name: str) -> Asked:
    """Shrink one failure, and compute its necessary events."""
    trials = Trials()
    kept = symptom(trials.row(case))
    small = shrink(case, kept, trials).case
    begin = time.process_time()
    until_us = min(violation["at_us"] for violation in small.run().violations if violation["kind"] == kept.kind)
    takes = find_necessity(small, kept, Trials(), until_us, until_us)
    seconds = time.process_time() - begin
    parts = [goes for _, goes in (*takes.faults, *takes.sends)]
    return Asked(
        name_of(case, name),
        sum(parts) + len(takes.messages),
        len(parts) - sum(parts),
        len(takes.alternatives),
        takes.asked,
        takes.of,
        takes.stays,
        seconds,
        list(wrong(small, kept, takes)),
    )


def hunt(chunk: tuple[str, str], first: int, count: int, keep: Path | None) -> list[Asked]:
    prepare_process()
    known, found = kept(keep), []
    for case in failures(*chunk, first, count):
        one = known.get(name_of(case, chunk[0])) or attempt(case, chunk[0])
        if keep is not None and one.what not in known:
            with keep.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"code": code_version(), **asdict(one)}) + "\n")
        found.append(one)
    return found


def kept(file: Path | None) -> dict[str, Asked]:
    """Results of this code version that are stored in a file."""
    if file is None or not file.exists():
        return {}
    entries = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    mine = [entry for entry in entries if entry.pop("code") == code_version()]
    return {entry["what"]: Asked(**entry) for entry in mine}


def name_of(case: Case, name: str) -> str:
    return f"{name} {case.mode.name} {case.seed}"


def main() -> int:
    """Hunt and print; 1 if a property does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", default=SCENARIOS)
    parser.add_argument("--modes", default=MODES)
    parser.add_argument("--failures", type=int, default=7, help="of each scenario in each mode")
    parser.add_argument("--first", type=int, default=50_000, help="seed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="append to this file, and go on where it ends")
    options = parser.parse_args()
    chunks = [(name, mode) for name in options.scenarios.split(",") for mode in options.modes.split(",")]
    found: list[Asked] = []
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        work = partial(hunt, first=options.first, count=options.failures, keep=options.keep)
        for chunk, part in zip(chunks, pool.map(work, chunks), strict=True):
            found += part
            tries = " ".join(str(option.stays) for option in part)
            sys.stdout.write(f"{' '.join(chunk)}: {len(part)} failures; of {TRIES} tries it stays in {tries}\n")
            sys.stdout.write("".join(f"  {option.what}: {line}\n" for option in part for line in option.wrong))
            sys.stdout.flush()
    sys.stdout.write(f"{len(found)} failures: least, quartiles, most\n")
    for name in ("size", "groups", "asked", "stays", "seconds"):
        sys.stdout.write(f"  {name:8} {spread([float(getattr(option, name)) for option in found])}\n")
    enough = Counter(option.is_enough for option in found)
    sys.stdout.write(f"  enough in {enough[True]}, not enough in {enough[False]}\n")
    sys.stdout.write(f"  faults and batches kept for cause or side: {sum(option.spared for option in found)}\n")
    sys.stdout.write(f"  not all messages were asked about: {sum(option.asked < option.of for option in found)}\n")
    count = sum(bool(option.wrong) for option in found)
    sys.stdout.write(f"{count} went wrong\n")
    return int(bool(count))


if __name__ == "__main__":
    raise SystemExit(main())
