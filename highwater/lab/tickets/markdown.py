"""A ticket as Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.tickets.instructions import instructions
from highwater.lab.tickets.story import in_properties
from highwater.lab.tickets.templates import prose
from reports.document.escape import markdown as escaped
from scenarios.format.findings import causes
from sim.plurals import counted
from sim.protocol.kraft.metadata import ELR_FEATURE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from highwater.lab.tickets.story import TicketStory, Tried
    from sim.config import Value

_EXPECTED: Final = {
    "committed-loss": "Every record that was acknowledged with acks=all is in the leader's log.",
    "exposed-loss": "What a consumer was shown stays readable.",
    "ack-under-min-isr": "A write with acks=all succeeds only while the ISR has min.insync.replicas members.",
    "divergence": "Replicas in the ISR hold the same record at each offset.",
    "no-progress": "With all brokers alive, the partition has a leader, and a reassignment under way completes.",
    "stuck-replica": "A replica whose broker is alive and has its log catches up and joins the ISR.",
    "sequence-gap": "A batch of an idempotent producer is appended only after the batches that it sent earlier.",
    "duplicate-across-epochs": "A record of an idempotent producer that no broker lost is in the log once.",
    "reordered-across-epochs": "Records of an idempotent producer that no broker lost are in the order of sending.",
    "deleted-records-back": "Deleted records do not return.",
    "stale-setting": "Brokers and controllers use the value of a setting that was set last.",
    "hw-regression": "The high watermark does not go back.",
}
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
    for trial in story.tried:
        yield f"| {trial.release} | {trial.agreed} of {trial.runs} | {_outcome(trial)} | {trial.day} |"
    yield from ("", "## Configuration", "")
    plane = "KRaft, one controller" if story.mode.rules.control_plane == "kraft" else "ZooKeeper"
    elr = f", {ELR_FEATURE}={story.result.settings[ELR_FEATURE]}" if story.mode.rules.elr == "on" else ""
    yield f"{counted(scenario.brokers, 'broker')}, {plane}{elr}; a topic of one partition."
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
    yield from (f"- {_EXPECTED.get(kind, kind)}" for kind in expected)
    yield from ("", "## Actual", "")
    yield from (f"- {_violated(story, violation)}" for violation in story.result.violations)
    yield from ("", "## Transcripts", "")
    yield from _transcripts(story, confirmed)
    yield from ("", "## What decides in Kafka's code", "")
    decided_by = [causes()[rule] for rule in story.rules()]
    for finding in decided_by:
        yield f"- {', '.join(f'`{name}`' for name in finding.kafka)}: {finding.cause}"
    yield from ("", "## Known upstream", "")
    yield from (f"- {finding.upstream}" for finding in decided_by)
    yield from ("", "## Repeat it", "")
    yield from (f"- {what}: {file}" for what, file in files.items())
    yield f"- `highwater confirm {scenario.name} --kafka {story.release}` performs it on brokers, with proxies between."


def _outcome(one: Tried) -> str:
    if not one.agreed:
        return "not confirmed"
    if one.fails:
        return f"**{', '.join(one.violations)}**"
    if one.outside:
        promise = one.mode.promise
        tolerated = promise.counts_damage and not promise.damaged_by_loss
        return f"{', '.join(one.outside)} ({_OUTSIDE_ELR if tolerated else 'outside the promise of this release'})"
    return "as expected"


def _violated(story: TicketStory, violation: Mapping[str, Any]) -> str:
    """A violation in the ticket's own names: batches, and brokers that are back."""
    detail = re.sub(r"\brecord (\d+)", lambda found: story.batch_of(int(found[1])), str(violation["detail"]))
    detail = re.sub(r",? (acknowledged )?at [\d.]+ s$", "", detail).replace(
        "at the deadline after healing", "although all brokers run"
    )
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
