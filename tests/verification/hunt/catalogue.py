"""`make hunt-catalogue`: known bugs, found in drawn seeds, are explained by the right rule and the right moment.

Each seed is shrunk and explained as in `highwater explain`. The repair must be among the remedies and among the causes;
the point of no return must be the step that `Bug.turn` describes; the story must contain what `Bug.says` lists. The
shrunk runs are kept in ``tests/fixtures/explained``, where `make test` checks them.
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

from faults.plan import Fault, Plan, Trigger
from reports.drawing.explanation import explain, told
from reports.evidence import shrunk_run
from reports.formatting import seconds
from scenarios.format.catalogue import load
from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import Symptom, Trials
from scenarios.shrinking.known_bugs import KNOWN
from scenarios.shrinking.shrink import shrink
from scenarios.single import recording
from scenarios.single.run import prepare_process
from sim.config import NEVER
from sim.hosts.control_plane import CONTROL
from sim.protocol.modes import mode as mode_named
from tests.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reports.drawing.explanation import RunExplanation
    from reports.evidence.narrative import Sentence
    from scenarios.shrinking.shrink import ShrunkCase
    from sim.config import Value

FOLDER: Final = FIXTURES / "explained"


@dataclass(frozen=True, slots=True)
class Bug:
    """A seed that shows a known bug, and the required explanation.

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
        not_by: another repair, which does not keep the data.
        plan: faults in the place of those that are drawn, and one batch at 25 s in that of drawn ones: what no drawn
            seed was found to do.
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
    not_by: str = ""
    plan: Plan | None = None

    @property
    def file(self) -> Path:
        """File of its shrunk plan."""
        return FOLDER / f"{self.name.replace(' ', '-')}.json"


SECOND: Final = 1_000_000
UNTIL_US: Final = 120 * SECOND
"""When everything is healed in a run whose faults are given."""


def _at(moment: str, after_us: int) -> Trigger:
    return Trigger(moment, 1, after_us, 90 * SECOND)


def _of(ticket: str) -> str:
    ((rule, value),) = (repair for repair, bug in KNOWN.items() if bug.ticket == ticket)
    return f"{rule}={value}"


BUGS: Final = (
    Bug(
        "A1",
        "chaos",
        "hw",
        237,
        "committed-loss",
        _of("KAFKA-1211, KIP-101"),
        r"^The process of broker 2 is killed",
        (
            r"^Broker 3 follows broker 2 .* \(follower_truncation=high-watermark\), and drops record 0, which had",
            r"^The controller elects broker 3 leader in leader epoch 2; .* broker 3 lacks record 0",
        ),
    ),
    Bug(
        "A2",
        "chaos",
        "hw",
        323,
        "divergence",
        _of("KAFKA-1211, KIP-101"),
        r"^The end of the log of broker 2 becomes unreadable",
        (
            r"^The controller elects broker 2 leader in leader epoch 1",
            r"^The end of the log of broker 2 becomes unreadable: records 5, 32 and 48 had been there, and are no ",
            r"^Broker 1 follows broker 2 .* truncates nothing \(follower_truncation=high-watermark\), and keeps",
        ),
    ),
    Bug(
        "A13",
        "sessions",
        "kip320",
        73,
        "divergence",
        _of("KIP-101"),
        r"^The machine of broker 2 loses power",
        (
            r"^The machine of broker 1 loses power; record 0 had not been flushed to disk, and is no longer there\.$",
            r"^Broker 1 leads again in leader epoch 0, .* lacks record 0, .* there was no election, and the epoch",
        ),
    ),
    Bug(
        "B1",
        "partitions",
        "kip101",
        610,
        "divergence",
        _of("KAFKA-6361, KIP-279"),
        r"^The process of broker 2 is killed",
        (
            r"^The machine of broker 2 loses power; record 1 had not been flushed to disk, and is no longer there\.$",
            r"^The controller elects broker 1 leader in leader epoch 3",
            r"^Broker 2 follows broker 1 .* \(follower_truncation=leader-epoch\), and keeps record 2 at offset 1",
        ),
    ),
    Bug(
        "B3",
        "power",
        "kip279",
        400,
        "committed-loss",
        _of("KAFKA-7128"),
        r"^The process of broker 2 is killed",
        (
            r"^The ISR becomes \[1, 2, 3\]; broker 1 lacks record 0, .* \(isr_join=high-watermark\)\.$",
            r"^The process of broker 2 is killed",
            r"^The controller elects broker 1 leader in leader epoch 2; .* broker 1 lacks record 0",
        ),
    ),
    Bug(
        "B4",
        "chaos",
        "kip279",
        1242,
        "divergence",
        _of("KAFKA-7164"),
        r"^Broker 3 is paused",
        (
            r"^Broker 3 is paused",
            r"^The controller elects broker 2 leader in leader epoch 3; .* broker 2 lacks record 0",
            r"^Broker 3 follows broker 2 in leader epoch 3 without .* \(fetcher_restart=leader-id-changed\), and keeps",
        ),
    ),
    Bug(
        "B5",
        "sessions",
        "kip279",
        1417,
        "divergence",
        _of("KAFKA-6880, KIP-320"),
        r"^The disk of broker 2 is replaced",
        (
            r"^The disk of broker 2 is replaced by an empty one; record 0 had been on it, and is no longer there\.$",
            r"^Broker 1 follows broker 2 in leader epoch 2 without truncating \(fetch_fencing=no\), and keeps record 0",
        ),
    ),
    Bug(
        "B12",
        "sessions",
        "kip279",
        1,
        "consumer-skip",
        _of("KAFKA-7747, KIP-320"),
        r"^Broker 2 is paused",
        (
            r"^The consumer reads record 0 at offset 0 from the leader of epoch 0\.$",
            r"^The machine of broker 2 loses power; record 0 had not been flushed to disk, and is no longer there\.$",
            r"^The consumer continues at offset 1 \(consumer_validation=no\), and reads .* leader of epoch 4\.$",
            r"^Consumer 1002 passed 1 record unseen, the first record 1 at offset 0 \(consumer-skip\)\.$",
        ),
    ),
    Bug(
        "D1",
        "sessions",
        "kraft",
        333,
        "committed-loss",
        _of("KAFKA-13916, KIP-841"),
        r"^The process of broker 2 is killed",
        (
            r"^The controller elects broker 2 leader in leader epoch 1; the ISR becomes \[2, 3\]\.$",
            r"^The session of broker 1 ends\.$",
            r"^The ISR becomes \[1, 2, 3\]; the session of broker 1 has ended \(isr_eligibility=any\)\.$",
            r"^The machine of broker 1 loses power; record 0 had not been flushed to disk, and is no longer there\.$",
            r"^The controller elects broker 1 leader in leader epoch 2; .* broker 1 lacks record 0, acknowledged",
        ),
        rules={"isr_eligibility": "any"},
    ),
    Bug(
        "D2",
        "sessions",
        "kip320",
        0,
        "committed-loss",
        _of("KAFKA-14139, KIP-903"),
        r"^The process of broker 1 is killed",
        (
            r"^The link from broker 1 to the control plane takes 5\.000 s longer\.$",
            r"^Broker 2 shuts down in a controlled way\.$",
            r"^The disk of broker 2 is replaced by an empty one; record 0 had been on it, and is no longer there\.$",
            r"^The ISR becomes \[1, 2\]; broker 2 lacks record 0, .* has restarted since .* \(isr_eligibility=any\)\.$",
            r"^The controller elects broker 2 leader in leader epoch 2; .* broker 2 lacks record 0, acknowledged",
        ),
        not_by=_of("KAFKA-13916, KIP-841"),
        plan=Plan(
            (
                Fault("kill", 2 * SECOND, (2,), 30 * SECOND),
                Fault("slow", 27 * SECOND, (1, CONTROL), 60 * SECOND, value=5 * SECOND),
                Fault("controlled-restart", 30 * SECOND, (2,), SECOND, trigger=_at("isr-sent", 0)),
                Fault("cut", 30 * SECOND, (1, 2), 60 * SECOND, both_ways=True, trigger=_at("isr-sent", 300_000)),
                Fault("disk-replaced", 30 * SECOND, (2,), SECOND, trigger=_at("session-end", 100_000)),
                Fault("kill", 30 * SECOND, (1,), 40 * SECOND, trigger=_at("isr", 0)),
            )
        ),
        given={
            "default.replication.factor": 2,
            "min.insync.replicas": 1,
            "log.flush.interval.messages": NEVER,
            "sim.spare.brokers": 1,
        },
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
            r"^The machine of broker 3 loses power; record 0 had not been flushed to disk, and is no longer there\.$",
            r"the ISR becomes \[3\]",
            r"^The controller elects broker 3 leader in leader epoch \d+; broker 3 lacks record 0",
        ),
        inside=False,
        given={
            "min.insync.replicas": 2,
            "unclean.leader.election.enable": False,
            "default.replication.factor": 3,
        },
    ),
    Bug(
        "min ISR change",
        "elr-chaos",
        "elr",
        1234,
        "committed-loss",
        _of("KAFKA-16540"),
        r"^The partition is without a leader, in leader epoch 2; the ISR becomes \[\]; the ELR becomes \[1, 3\]\.$",
        (
            r"the ISR becomes \[3\]; the ELR becomes \[1\]\.$",
            r"\(acks=all, min\.insync\.replicas=1 for now\); the ISR is \[3\]",
            r"^The controller elects broker 1 leader in leader epoch 3; .* broker 1 lacks record 0, acknowledged",
        ),
        rules={"min_isr_change": "keeps-elr"},
    ),
)


def found(bug: Bug) -> ShrunkCase:
    """Shrink the bug's seed."""
    scenario, mode = load(bug.scenario).with_settings(bug.given), mode_named(bug.mode)
    result = Case(scenario, mode, bug.seed, bug.rules).run()
    case = Case(recording.of_run(scenario, result).scenario, mode, bug.seed, bug.rules)
    if bug.plan is not None:
        case = case.with_scenario(brokers=3, first=3).with_horizon(UNTIL_US)
        case = case.with_faults(bug.plan.faults).with_sends(((0, 1, -1, 25 * SECOND),))
    return shrink(case, Symptom(bug.kind, bug.inside), Trials())


def in_order(says: Iterable[str], story: Iterable[Sentence]) -> list[str]:
    """Patterns that a story lacks, or has in another order."""
    texts, missing = [sentence.text for sentence in story], []
    for one in says:
        place = next((place for place, text in enumerate(texts) if re.search(one, text)), None)
        if place is None:
            missing.append(one)
        else:
            texts = texts[place + 1 :]
    return missing


def wrong(bug: Bug, case: Case, explained: RunExplanation) -> Iterator[str]:
    """Problems of an explanation."""
    keeping = [remedy.change for remedy in explained.remedies if remedy.keeps]
    if bug.repair not in keeping:
        yield f"{bug.repair} does not keep the data"
    if bug.not_by in keeping:
        yield f"{bug.not_by} keeps the data"
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
    """A bug's explanation, and its problems."""
    prepare_process()
    smallest = found(bug)
    case = shrunk_run.as_found(smallest, bug.file)
    explained = explain(smallest, case, Trials())
    step = explained.curve.step
    at = "" if step is None else f"; point of no return {seconds(step[1].after_us)}"
    said = [f"{bug.name}: {smallest.symptom.kind}; {shrunk_run.sizes(smallest)}; {shrunk_run.cause(smallest)}{at}"]
    said += [f"  {seconds(sentence.at_us)} {sentence.text}" for sentence in explained.story]
    problems = [*wrong(bug, case, explained)]
    if not bug.repair.isidentifier() and bug.repair not in map(str, smallest.cause):
        problems.append(f"{bug.repair} is no cause")
    if folder is not None:
        text = recording.to_text(recording.to_json(case.scenario, explained.observed.result))
        (folder / bug.file.name).write_text(text, encoding="utf-8")
    return said, problems


def look_at(place: int, folder: Path | None) -> tuple[list[str], list[str]]:
    """`look` for an index into `BUGS`, because compiled faults cannot be sent to another process."""
    return look(BUGS[place], folder)


def main() -> int:
    """Explain all bugs and print; 1 if there is any problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bugs", default="", help="their names, with commas; all without")
    parser.add_argument("--keep", type=Path, help="write the shrunk plans to this folder")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    names = options.bugs.split(",") if options.bugs else [bug.name for bug in BUGS]
    wanted = [place for place, bug in enumerate(BUGS) if bug.name in names]
    count = 0
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for said, problems in pool.map(look_at, wanted, [options.keep] * len(wanted)):
            lines = [*said, *(f"  WRONG: {problem}" for problem in problems)]
            sys.stdout.write("".join(f"{line}\n" for line in lines))
            sys.stdout.flush()
            count += bool(problems)
    sys.stdout.write(f"{len(wanted)} bugs, {count} not explained as they should be\n")
    return int(count > 0)


if __name__ == "__main__":
    raise SystemExit(main())
