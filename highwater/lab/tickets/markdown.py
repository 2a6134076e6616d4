"""A ticket as Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.tickets.instructions import instructions
from highwater.lab.tickets.story import in_properties
from highwater.lab.tickets.templates import prose
from reports.document.escape import markdown as escaped
from reports.evidence.story import HAPPENED
from scenarios.format.findings import causes
from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import symptom
from scenarios.shrinking.prevention import declared_repairs
from sim.plurals import counted
from sim.protocol.kraft.metadata import ELR_FEATURE
from sim.protocol.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from highwater.lab.tickets.story import TicketStory, Tried
    from sim.config import Value

_EXPECTED: Final = {
    "committed-loss": "Every record that was acknowledged with acks=all is in the leader's log.",
    "exposed-loss": "What a consumer was shown stays readable.",
    "ack-under-min-isr": "A write with acks=all succeeds only while the ISR has min.insync.replicas members.",
    "divergence": "Replicas in the ISR hold the same record at each offset.",
    "no-progress": "With all brokers alive, the partition has a leader, and a reassignment under way completes.",
    "stuck-replica": "A replica whose broker is alive and has its log catches up and joins the ISR.",
    "needless-wait": "A partition has a leader, its ISR and its acknowledgements soon after the last fault.",
    "needless-shrink": "A replica that lags for less than replica.lag.time.max.ms stays in the ISR.",
    "forbidden-election": "Without unclean leader election, no replica from outside ISR and ELR leads.",
    "wrong-offset": "The offset that a producer gets is that of its record.",
    "stuck-consumer": "A consumer whose application got no error fetches again.",
    "sequence-gap": "A batch of an idempotent producer is appended only after the batches that it sent earlier.",
    "duplicate-across-epochs": "A record of an idempotent producer that no broker lost is in the log once.",
    "reordered-across-epochs": "Records of an idempotent producer that no broker lost are in the order of sending.",
    "deleted-records-back": "Deleted records do not return.",
    "stale-setting": "Brokers and controllers use the value of a setting that was set last.",
    "hw-regression": "The high watermark does not go back.",
    "committed-offset-back": "A group goes on from the last offset whose commit succeeded.",
    "consumer-skip": "A consumer reads each record, or its application hears that some were skipped.",
    "reset-skip": "A consumer reads each record, or its application hears that some were skipped.",
    "duplicate": "A record of an idempotent producer is in the log once.",
    "reordered": "Records of an idempotent producer are in the order of sending.",
    "controller-crashes": "The active controller does not resign by the same exception again and again.",
    "candidate-incomplete": "Each member of the ISR or ELR that could be elected has all committed records.",
    "leader-incomplete": "A leader has all committed records.",
}
"""Kind of violation -> what Kafka promises."""
_MORE_WORDS: Final = {
    "no-progress": "no leader, no writes, or a reassignment that never completes, although all brokers run",
    "stuck-replica": "a replica never joins the ISR, although its broker runs",
    "stuck-consumer": "a consumer fetches no more, although all brokers run",
    "candidate-incomplete": "a member of the ISR or ELR that could be elected lacks a committed record",
    "leader-incomplete": "a broker leads without a committed record",
}
"""Kind of violation -> what happened, where `HAPPENED` has no words for a ticket."""
_LOSSES: Final = {"committed-loss", "exposed-loss"}
_NOTES: Final = {
    "cut": (
        "A link is cut by a proxy or a firewall that drops its messages.",
        "The shell script pauses the follower (SIGSTOP) if it is in the ISR, and else throttles its leader.",
    ),
    "reassignment": (
        "kafka-reassign-partitions.sh refuses brokers that are down; Kafka's Admin client does not.",
        "The shell script uses that client.",
    ),
}
"""Action -> what a person has to know who performs it, and how the shell script performs it."""
_REPAIR: Final = re.compile(r"(?:The repair[.:]\**\s|(?=The repair is\s))(.*?)(?=\n\n|\n- |\Z)", re.DOTALL)
"""What a finding's text says of its repair."""
_OUTSIDE_ELR: Final = "outside the promise: KIP-966 tolerates fewer than min.insync.replicas unclean shutdowns"


def markdown(story: TicketStory, confirmed: Mapping[str, Any] | None, files: Mapping[str, str]) -> str:
    """The ticket.

    Args:
        story: the story.
        confirmed: what ``highwater confirm --json`` printed; None: the ticket has no transcript of brokers.
        files: what repeats it -> its file.
    """
    return "\n".join(_lines(story, confirmed, files)) + "\n"


def _lines(story: TicketStory, confirmed: Mapping[str, Any] | None, files: Mapping[str, str]) -> Iterator[str]:
    scenario = story.scenario
    yield f"# {escaped(scenario.title)}"
    yield from ("", f"<!-- Written by highwater ticket {scenario.name} -->", "")
    yield prose(scenario.description.partition("\n\n")[0])
    yield from ("", "## Affected releases", "")
    yield "Brokers of each release went through these steps, and agreed with the simulation in as many runs as stated."
    yield from ("", "| Kafka | runs that agreed | outcome | last run |", "|---|---|---|---|")
    loses = any(_LOSSES.intersection(trial.violations) for trial in _failing(story))
    kept = "records kept" if loses else "does not fail"
    for trial in story.tried:
        yield f"| {trial.release} | {trial.agreed} of {trial.runs} | {_outcome(trial, kept)} | {trial.day} |"
    shown = dict.fromkeys(kind for trial in story.tried if trial.agreed for kind in (*trial.violations, *trial.outside))
    yield from ("", *(f"- {kind}: {_happened(kind)}" for kind in shown))
    if scenario.confirm is not None and scenario.confirm.shown_by:
        yield from ("", f"Kafka {', '.join(scenario.confirm.shown_on)}: {scenario.confirm.shown_by}.")
    yield from ("", "## Configuration", "")
    plane = "KRaft, one controller" if story.mode.rules.control_plane == "kraft" else "ZooKeeper"
    yield f"{counted(scenario.brokers, 'broker')}, {plane}{_feature(story)}; a topic of one partition."
    yield from (
        "",
        *(f"    {_setting(key, value)}" for key, value in scenario.config.items() if not _is_apart(key)),
    )
    yield from ("", "## Steps", "")
    yield from (f"{number}. {text}" for number, text in enumerate(instructions(story), start=1))
    has_script = any(file.startswith(f"[{scenario.name}.sh]") for file in files.values())
    for do, notes in _NOTES.items():
        if any(line.do == do for line in story.lines):
            yield from ("", " ".join(notes if has_script else notes[:1]))
    yield from ("", "## Expected", "")
    expected = dict.fromkeys(violation["kind"] for violation in story.result.violations)
    yield from (f"- {text}" for text in dict.fromkeys(_EXPECTED.get(kind, f"No {kind}.") for kind in expected))
    yield from ("", "## Actual", "")
    yield from (f"- {_violated(story, violation)}" for violation in story.result.violations)
    yield from ("", "## Transcripts", "")
    yield from _transcripts(story, confirmed)
    decided_by = [causes()[rule] for rule in story.rules()]
    code = (f"- {', '.join(f'`{name}`' for name in finding.kafka)}: {finding.cause}" for finding in decided_by)
    yield from _section("What decides in Kafka's code", code)
    yield from _section("Possible repair", _repairs(story))
    yield from _section("Known upstream", (f"- {finding.upstream}" for finding in decided_by))
    yield from ("", "## Repeat it", "")
    yield from (f"- {what}: {file}" for what, file in files.items())
    yield f"- `highwater confirm {scenario.name} --kafka {story.release}` performs it on brokers, with proxies between."


def _section(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """A section; none without lines."""
    if found := list(lines):
        yield from ("", f"## {heading}", "", *found)


def _repairs(story: TicketStory) -> Iterator[str]:
    """Repairs in words, as far as a finding has them, and the rules with which the simulation does not fail."""
    told = (_REPAIR.search(causes()[rule].text) for rule in story.rules())
    yield from (f"- {text[0].upper()}{text[1:]}" for text in dict.fromkeys(prose(found[1]) for found in told if found))
    rules = _curing(story)
    if rules:
        with_rules = " or with ".join(f"rule `{rule}`" for rule in rules)
        yield f"- In the simulation, mode `{story.mode.name}` does not fail with {with_rules}."
    for rule in rules:
        name = rule.partition("=")[0]
        yield f"    - Rule `{name}`: {prose(RULES[name].meaning)}"


def _curing(story: TicketStory) -> list[str]:
    """The declared repairs, ``RULE=VALUE``, each of which prevents every violation inside the promise by itself."""
    case = Case(story.scenario, story.mode, 0)
    row = case.row()
    found = [
        [
            remedy.change
            for remedy in declared_repairs(case, symptom(row, kind))
            if remedy.keeps and remedy.what == "rule"
        ]
        for kind in row["violations_inside"].split(",")
    ]
    return [rule for rule in found[0] if all(rule in others for others in found)]


def _feature(story: TicketStory) -> str:
    """The level of the feature ELR, if a release that was tried has it, and whether the failure needs it."""
    having = [trial.release for trial in story.tried if trial.mode.rules.elr == "on"]
    if not having or story.mode.rules.elr != "on":
        return ""
    level = f"{ELR_FEATURE}={story.result.settings[ELR_FEATURE]}"
    lacking = [trial.release for trial in _failing(story) if trial.mode.rules.elr != "on"]
    if not lacking:
        return f", {level}"
    return f", from {having[0]} on {level} (not needed for the failure: {lacking[-1]} fails without the feature)"


def _failing(story: TicketStory) -> list[Tried]:
    """The releases whose brokers failed."""
    return [trial for trial in story.tried if trial.fails and trial.agreed]


def _happened(kind: str) -> str:
    """A kind of violation in words."""
    return _MORE_WORDS.get(kind) or HAPPENED.get(kind, f"an early warning (`{kind}`)")


def _outcome(one: Tried, kept: str) -> str:
    """How brokers of a release ended; `kept`: if nothing failed."""
    if not one.agreed:
        return "not confirmed"
    if one.fails:
        return f"**{', '.join(one.violations)}**"
    if one.outside:
        promise = one.mode.promise
        tolerated = promise.counts_damage and not promise.damaged_by_loss
        return f"{', '.join(one.outside)} ({_OUTSIDE_ELR if tolerated else 'outside the promise of this release'})"
    return kept


def _violated(story: TicketStory, violation: Mapping[str, Any]) -> str:
    """A violation in the ticket's own names: batches, and brokers that are back."""
    detail = re.sub(r"\brecord (\d+)", lambda found: story.batch_of(int(found[1])), str(violation["detail"]))
    detail = re.sub(r",? (acknowledged )?at [\d.]+ s$", "", detail).replace(
        "at the deadline after healing", "although all brokers run"
    )
    detail = detail.replace(", not running: []", "")
    return f"{violation['kind']}: {escaped(detail)}"


def _setting(key: str, value: Value) -> str:
    return f"log.dirs={value} directories" if key == "sim.log.dirs" else f"{key}={in_properties(value)}"


def _is_apart(key: str) -> bool:
    """Whether a setting only makes a scenario faster, or is no setting but a feature."""
    return key in ("replica.socket.timeout.ms", ELR_FEATURE)


_COUNTED: Final = "Leader epochs are counted from 0; partition N is its state after the N-th change."
_SHOWN: Final = ("partition ", "log of broker ", "epoch cache of broker ", "verdict")


def _transcripts(story: TicketStory, confirmed: Mapping[str, Any] | None) -> Iterator[str]:
    if confirmed is None:
        yield "Steps of the simulation (in s). This ticket has no transcript of the runs on brokers."
        yield ""
        yield from (f"    {one['met_at_us'] / 1e6:10.3f}  {one['text']}" for one in story.result.story)
        return
    run = confirmed["runs"][-1]
    kafka = confirmed["kafka"]
    agrees = "agree in each compared line" if run["agrees"] else "DIFFER"
    yield f"Simulation and brokers of {kafka} {agrees}. {_COUNTED}"
    yield from ("", f"| | simulation | Kafka {kafka} |", "|---|---|---|")
    for row in run["rows"]:
        if row["what"].startswith(_SHOWN) or "acknowledged" in row["what"] or row["what"].startswith("story: "):
            cells = (row["what"].removeprefix("story: "), row["simulated"], row["real"])
            yield f"| {' | '.join(escaped(cell) for cell in cells)} |"
