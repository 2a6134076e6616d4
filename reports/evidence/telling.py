"""A run told in sentences: who led, what was acknowledged and who had it, who ended, and who truncated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scenarios.single.final_logs import VALIDATION_IDS
from scenarios.single.run import CLIENTS_BEGIN_US

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scenarios.single.run import RunResult
    from sim.history.trace import Shown

FIRST_LINE: Final = 2
"""Of the first step in a trace's file: the line before says what it is of."""
HAPPENS: Final[Mapping[str, str]] = {
    "kill": "The process of {who} is killed; its page cache stays.",
    "power-loss": "The machine of {who} loses power; {lost} had not been written to disk.",
    "disk-replaced": "The disk of {who} is replaced by an empty one; {lost} had been on it.",
    "corrupt-tail": "The end of the log of {who} becomes unreadable: {lost}.",
    "shutdown": "Broker {broker} shuts down in a controlled way.",
    "halt": "Broker {broker} halts by itself.",
    "pause": "The process of {who} stands still.",
    "resume": "The process of {who} goes on.",
    "disk-stalled": "The disk of {who} does not answer.",
    "disk-works": "The disk of {who} answers again.",
    "cut": "The link from {source} to {target} is cut.",
    "slow": "The link from {source} to {target} takes {value} us longer.",
    "lossy": "The link from {source} to {target} loses {value} of a thousand messages.",
    "session-end": "The session of broker {broker} ends.",
    "registered": "Broker {broker} registers; the end of its log is offset {leo}.",
    "elected": "Broker {broker} is elected leader in leader epoch {leader_epoch}.",
    "isr": "The ISR becomes {isr}, in leader epoch {leader_epoch}.",
    "elr": "The ELR becomes {elr}.",
    "lead": "Broker {broker} leads with LEO {offset}, in leader epoch {leader_epoch}.",
    "truncate": "Broker {broker} truncates to offset {offset}, and drops {lost}.",
    "ack": "The producer hears of success for record {record} at offset {offset} (acks={acks}); the ISR is {isr}, and "
    "{holders} hold it.",
}
"""Step -> what it means, in Kafka's words."""
NOBODY: Final = "Nobody can be elected: the partition is without a leader in leader epoch {leader_epoch}."


@dataclass(frozen=True, slots=True)
class Sentence:
    """One of a story.

    Attributes:
        at_us: when it happens.
        text: what.
        line: of the trace's file; 0 of what is no step.
    """

    at_us: int
    text: str
    line: int


class _Teller:
    """Knows, at each step, ISR and ELR, and who holds which batches.

    Args:
        isr: at first.
    """

    def __init__(self, isr: Sequence[int]) -> None:
        self._lists = {"isr": _names(isr), "elr": _names(())}
        self._logs: dict[int, list[tuple[int, int]]] = {}

    def tell(self, step: Shown) -> str:
        """The sentence of a step; empty where it matters to nobody."""
        changed = self._follow(step)
        name = step["step"]
        silent = not changed or step["t"] < CLIENTS_BEGIN_US or step.get("record", 0) >= VALIDATION_IDS
        if silent or name not in HAPPENS:
            return ""
        words: dict[str, Any] = {**step, **self._lists, "who": _node(step.get("broker", 0))}
        words |= {end: _node(step[end]) for end in ("source", "target") if end in step}
        lost = step["removed"] if name == "truncate" else step.get("offset", 0)
        words["lost"] = "1 batch" if lost == 1 else f"{lost} batches"
        log = self._logs.get(step.get("broker", 0), ())
        words["leo"] = log[-1][1] + 1 if log else 0
        if name == "ack":
            holders = [broker for broker, held in self._logs.items() if step["record"] in [first for first, _ in held]]
            words |= {"holders": _names(holders), "acks": "all" if step["acks"] == -1 else step["acks"]}
        return (NOBODY if name == "elected" and not step["broker"] else HAPPENS[name]).format(**words)

    def _follow(self, step: Shown) -> bool:
        """Keep what is known up to date; tell whether something is other than before."""
        name = step["step"]
        log = self._logs.setdefault(step.get("broker", 0), [])
        if name == "append":
            log.append((step["record"], step["last"]))
        elif name == "truncate":
            del log[len(log) - step["removed"] :]
            return bool(step["removed"])
        elif name == "recovered":
            log[:] = [batch for batch in log if batch[0] not in (step.get("lost") or ())]
        elif name == "deleted":
            log.clear()
        elif name in self._lists:
            before, self._lists[name] = self._lists[name], _names(step[name])
            return before != self._lists[name]
        return True


def _node(number: int) -> str:
    return f"broker {number}" if number else "the control plane"


def _names(brokers: Sequence[int]) -> str:
    return f"[{', '.join(map(str, sorted(brokers)))}]"


def story(result: RunResult) -> list[Sentence]:
    """A traced run in sentences, in order of time, with what was violated where it was seen."""
    return sorted([*_steps(result), *_marks(result)], key=lambda sentence: sentence.at_us)


def _steps(result: RunResult) -> Iterator[Sentence]:
    replicas = int(result.settings["default.replication.factor"])
    teller = _Teller(range(1, replicas + 1))
    for line, step in enumerate(result.trace or (), start=FIRST_LINE):
        text = teller.tell(step)
        if text:
            yield Sentence(step["t"], text, line)


def _marks(result: RunResult) -> Iterator[Sentence]:
    kinds: set[str] = set()
    for entry in (*result.warnings, *result.violations):
        if entry["kind"] not in kinds:
            kinds.add(entry["kind"])
            yield Sentence(entry["at_us"], f"{entry['kind']}: {entry['detail']}.", 0)
