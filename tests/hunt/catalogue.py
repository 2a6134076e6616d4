"""`make hunt-catalogue`: known bugs, found in drawn seeds, are explained by the right rule and the right moment.

Each seed is shrunk and explained as `highwater explain` does it. The repair must be among what would have kept the
data, and among the causes; the point of no return must be the step that `Bug.turn` describes; the story must say what
`Bug.says` does. What the seeds are shrunk to is kept in ``tests/fixtures/explained``, where `make test` looks at it.
"""

from __future__ import annotations

import argparse
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reports.console import seconds
from reports.drawing.explained import explain, told
from reports.evidence import small
from scenarios.format.catalogue import load
from scenarios.shrinking.case import Case
from scenarios.shrinking.keeping import Symptom, Trials
from scenarios.shrinking.shrink import shrink
from scenarios.single import recording
from scenarios.single.run import prepare_process
from sim.protocol.modes import mode as mode_named
from tests.hunt.finds import BUGS as FINDS
from tests.hunt.finds import laid_over

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reports.drawing.explained import Explained
    from reports.evidence.telling import Sentence
    from scenarios.shrinking.shrink import Shrunk
    from sim.config import Value

FOLDER: Final = Path(__file__).parents[1] / "fixtures" / "explained"
D6: Final = next(bug for bug in FINDS if bug.name.startswith("D6 "))


@dataclass(frozen=True, slots=True)
class Bug:
    """A seed that shows a known bug, and what its explanation has to say.

    Attributes:
        name: in the catalogue.
        scenario: that shows it; so for `mode` and `seed`.
        kind: of the violation,
        repair: what would have kept the data: a rule or setting with its value, or a newer mode.
        turn: what happens at the point of no return, as the whole story says it; a regular expression.
        says: what the story says, in this order; regular expressions.
        inside: whether the violation is inside the promise.
        given: settings that are laid over the scenario's.
        rules: that replace the mode's.
    """

    name: str
    scenario: str
    mode: str
    seed: int
    kind: str
    repair: str
    turn: str = ""
    says: tuple[str, ...] = ()
    inside: bool = True
    given: Mapping[str, Value] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """Where its shrunk plan is."""
        return FOLDER / f"{self.name.replace(' ', '-')}.json"


BUGS: Final = (
    Bug(
        "A1",
        "chaos",
        "hw",
        237,
        "committed-loss",
        "follower_truncation=leader-epoch",
        r"^The process of broker 2 is killed",
        (
            r"^Broker 3 follows broker 2 .* \(follower_truncation=high-watermark\), and drops record 0, which had",
            r"^Broker 3 is elected leader in leader epoch 2; .* broker 3 lacks record 0",
        ),
    ),
    Bug(
        "A2",
        "chaos",
        "hw",
        46,
        "divergence",
        "follower_truncation=leader-epoch",
        r"^The end of the log of broker 2 becomes unreadable",
        (
            r"^Broker 2 is elected leader in leader epoch 1",
            r"^The end of the log of broker 2 becomes unreadable: record 5 .* are gone\.$",
            r"^Broker 1 follows broker 2 .* truncates nothing \(follower_truncation=high-watermark\), and keeps",
        ),
    ),
    Bug(
        "A13",
        "sessions",
        "kip320",
        73,
        "divergence",
        "registration_epoch=bumped",
        r"^The machine of broker 2 loses power",
        (
            r"^The machine of broker 1 loses power; record 0 had not been flushed to disk, and is gone\.$",
            r"^Broker 1 leads again in leader epoch 0, .* lacks record 0, .* there was no election, and the epoch",
        ),
    ),
    Bug(
        "B1",
        "partitions",
        "kip101",
        610,
        "divergence",
        "follower_truncation=leader-epoch-rounds",
        r"^The process of broker 2 is killed",
        (
            r"^The machine of broker 2 loses power; record 1 had not been flushed to disk, and is gone\.$",
            r"^Broker 1 is elected leader in leader epoch 3",
            r"^Broker 2 follows broker 1 .* truncates nothing \(follower_truncation=leader-epoch\), and keeps record 2",
        ),
    ),
    Bug(
        "B3",
        "power",
        "kip279",
        400,
        "committed-loss",
        "isr_join=leader-epoch-start",
        r"^The process of broker 2 is killed",
        (
            r"^The ISR becomes \[1, 2, 3\]; broker 1 lacks record 0, acknowledged before\.$",
            r"^The process of broker 2 is killed",
            r"^Broker 1 is elected leader in leader epoch 2; .* broker 1 lacks record 0",
        ),
    ),
    Bug(
        "B4",
        "chaos",
        "kip279",
        1242,
        "divergence",
        "fetcher_restart=epoch-missed",
        r"^The process of broker 3 stands still\.$",
        (
            r"^The process of broker 3 stands still\.$",
            r"^Broker 2 is elected leader in leader epoch 3; .* broker 2 lacks record 0",
            r"^Broker 3 follows broker 2 in leader epoch 3 without truncating, and keeps record 0, which broker 2 has",
        ),
    ),
    Bug(
        "B5",
        "sessions",
        "kip279",
        1417,
        "divergence",
        "fetch_fencing=leader-epoch",
        r"^The disk of broker 2 is replaced",
        (
            r"^The disk of broker 2 is replaced by an empty one; record 0 had been on it, and is gone\.$",
            r"^Broker 1 follows broker 2 in leader epoch 2 without truncating, and keeps record 0, which broker 2 has",
        ),
    ),
    Bug(
        "B12",
        "sessions",
        "kip279",
        15,
        "consumer-skip",
        "consumer_validation=yes",
        r"^The process of broker 2 stands still\.$",
        (
            r"^The consumer is shown record 0 at offset 0 by the leader of epoch 0\.$",
            r"^The machine of broker 2 loses power; record 0 had not been flushed to disk, and is gone\.$",
            r"^consumer-skip: consumer 1002 passed 1 records unseen, the first record 1 at offset 0\.$",
        ),
    ),
    Bug(
        "D6",
        "sessions",
        "kip320",
        74,
        "committed-loss",
        "elr",
        r"^The machine of broker 3 loses power",
        (
            r"^The machine of broker 3 loses power; record 0 had not been flushed to disk, and is gone\.$",
            r"the ISR becomes \[3\]",
            r"^Broker 3 is elected leader in leader epoch \d+; broker 3 lacks record 0",
        ),
        inside=False,
        given=D6.given,
    ),
    Bug(
        "min ISR change",
        "elr-chaos",
        "elr",
        1234,
        "committed-loss",
        "min_isr_change=clears-elr",
        r"^The partition is without a leader, in leader epoch 2; the ISR becomes \[\]; the ELR becomes \[1, 3\]\.$",
        (
            r"the ISR becomes \[3\]; the ELR becomes \[1\]\.$",
            r"\(acks=all, min\.insync\.replicas=1 for now\); the ISR is \[3\]",
            r"^Broker 1 is elected leader in leader epoch 3; .* broker 1 lacks record 0, acknowledged before",
        ),
        rules={"min_isr_change": "keeps-elr"},
    ),
)


def found(bug: Bug) -> Shrunk:
    """The seed, shrunk."""
    scenario, mode = laid_over(load(bug.scenario), bug.given), mode_named(bug.mode)
    result = Case(scenario, mode, bug.seed, bug.rules).run()
    recorded = recording.of_run(scenario, result).scenario
    return shrink(Case(recorded, mode, bug.seed, bug.rules), Symptom(bug.kind, bug.inside), Trials())


def in_order(says: Iterable[str], story: Iterable[Sentence]) -> list[str]:
    """What a story does not say, or not after what it should say before."""
    texts, missing = [sentence.text for sentence in story], []
    for one in says:
        place = next((place for place, text in enumerate(texts) if re.search(one, text)), None)
        if place is None:
            missing.append(one)
        else:
            texts = texts[place + 1 :]
    return missing


def wrong(bug: Bug, case: Case, explained: Explained) -> Iterator[str]:
    """What of an explanation is not right."""
    if bug.repair not in [one.change for one in explained.remedies if one.keeps]:
        yield f"{bug.repair} does not keep the data"
    step = explained.curve.step
    if step is None:
        yield "there is no point of no return"
    else:
        whole = told(explained.observed, bug.kind, None)
        then = [sentence.text for sentence in whole if sentence.at_us == step[1].after_us]
        if not any(re.search(bug.turn, text) for text in then):
            yield f"at the point of no return happens {then or 'nothing that is told'}"
    yield from (f"the story does not say, or not in this order: {says}" for says in in_order(bug.says, explained.story))
    if case.faults and not any(goes for _, goes in explained.necessary.faults):
        yield "no fault is necessary"


def look(bug: Bug, folder: Path | None = None) -> tuple[list[str], list[str]]:
    """What a bug's explanation says, and what is wrong with it."""
    prepare_process()
    smallest = found(bug)
    case = small.as_found(smallest, bug.file)
    explained = explain(case, smallest.symptom, Trials())
    step = explained.curve.step
    at = "" if step is None else f"; point of no return {seconds(step[1].after_us)}"
    said = [f"{bug.name}: {smallest.symptom.kind}; {small.sizes(smallest)}; {small.cause(smallest)}{at}"]
    said += [f"  {seconds(sentence.at_us)} {sentence.text}" for sentence in explained.story]
    problems = [*wrong(bug, case, explained)]
    if not bug.repair.isidentifier() and bug.repair not in map(str, smallest.cause):
        problems.append(f"{bug.repair} is no cause")
    if folder is not None:
        text = recording.to_text(recording.to_json(case.scenario, explained.observed.result))
        (folder / bug.file.name).write_text(text, encoding="utf-8")
    return said, problems


def main() -> int:
    """Explain and print; 1 if something is not right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bugs", default="", help="their names, with commas; all without")
    parser.add_argument("--keep", type=Path, help="write the shrunk plans to this folder")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    wanted = [bug for bug in BUGS if not options.bugs or bug.name in options.bugs.split(",")]
    count = 0
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for said, problems in pool.map(look, wanted, [options.keep] * len(wanted)):
            lines = [*said, *(f"  WRONG: {problem}" for problem in problems)]
            sys.stdout.write("".join(f"{line}\n" for line in lines))
            sys.stdout.flush()
            count += bool(problems)
    sys.stdout.write(f"{len(wanted)} bugs, {count} not explained as they should be\n")
    return int(count > 0)


if __name__ == "__main__":
    raise SystemExit(main())
