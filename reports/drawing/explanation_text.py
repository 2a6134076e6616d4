"""An explanation as text: rows and sentences about necessary events and the point of no return."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from faults.kinds.registry import details
from reports.analysis.statistics import interval
from reports.evidence import messages
from reports.formatting import moment, pairs, percent
from sim.errors import InputError
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scenarios.shrinking.necessity import Necessity, SentMessage
    from scenarios.shrinking.no_return import Curve, Share

MOST: Final = 20
"""Rows of necessary events to show, at most."""
SPARED_MOST: Final = 6
"""Faults and batches not necessary by themselves to list, at most; if there are more, only their number is shown."""
SPARED: Final = " *"
SHOWN_TIMES: Final = 4
"""Times of alternative messages to show, at most."""
SHARES: Final = ("as it was until", "violates", "95 %", "continuations")
"""Column headers of `shares`."""


def rows(takes: Necessity, most: int | None = None) -> tuple[list[tuple[str, str, str]], int]:
    """List the necessary faults, batches and messages in order of time: (time, name, details).

    Beyond `most` rows the earliest messages are hidden; their number is returned, too.
    """
    parts, sent = list(_parts(takes, everything=_spared(takes) <= SPARED_MOST)), takes.messages
    hides = most is not None and len(parts) + len(sent) > most
    shown = [*parts, *_messages(sent[-most:] if hides and most else sent)]
    shown.sort(key=lambda row: row[0])
    return [(moment(at_us), what, more) for at_us, what, more in shown], len(parts) + len(sent) - len(shown)


def tried(takes: Necessity, hidden: int = 0) -> Iterator[str]:
    """Describe in sentences which removals were tried and how they ended; `hidden` is from `rows`."""
    if hidden:
        yield f"{counted(hidden, 'earlier message is', 'earlier messages are')} necessary, too: --json lists them"
    spared = _spared(takes)
    without = "the violation still occurs, with another cause or on the other side of the promise"
    if 0 < spared <= SPARED_MOST:
        yield f"* without it {without}"
    elif spared:
        yield f"{spared} more faults and batches remain; without any one of them {without}: --json lists them"
    for alternative in takes.alternatives:
        what, more = _message(alternative.messages[0])
        times = ", ".join(moment(sent.arrives_us) for sent in alternative.messages[:SHOWN_TIMES])
        rest = ", ..." if len(alternative.messages) > SHOWN_TIMES else ""
        way = more.partition(",")[0]
        count = counted(len(alternative.messages), "message")
        yield f"At least one of these {count} must arrive ({what}, {way}): {times}{rest}"
    if takes.asked < takes.of:
        yield f"{takes.asked} of {takes.of} messages were dropped one at a time, from the point of no return outwards"
    if takes.tries:
        enough = (
            "The order of these messages suffices" if takes.is_enough else "The timing of other messages matters, too"
        )
        yield f"{enough}: with other latencies {takes.stays} of {takes.tries} runs fail in the same way"
    if not takes.whole:
        yield "The time limit stopped the search: not all messages were tried"


def _spared(takes: Necessity) -> int:
    return sum(not goes for _, goes in (*takes.faults, *takes.sends))


def _parts(takes: Necessity, *, everything: bool) -> Iterator[tuple[int, str, str]]:
    for fault, goes in takes.faults:
        if not (goes or everything):
            continue
        trigger = "" if fault.trigger is None else f" waits for {fault.trigger.moment}"
        targets = None if fault.targets == (0,) else fault.targets  # The cluster.
        lasts_us = None if fault.lasts_us < 0 else fault.lasts_us
        fields: dict[str, Any] = {"targets": targets, "lasts_us": lasts_us, **details(fault)}
        yield fault.at_us, fault.kind, pairs(fields) + trigger + _but(goes=goes)
    for (first_id, records, acks, due_us), goes in takes.sends:
        if not (goes or everything):
            continue
        batch = {"record": first_id, "records": records, "acks": "all" if acks == -1 else acks}
        yield due_us, "batch", pairs(batch) + _but(goes=goes)


def _but(*, goes: bool) -> str:
    return "" if goes else SPARED


def _messages(sent: Iterable[SentMessage]) -> Iterator[tuple[int, str, str]]:
    for message in sent:
        yield message.arrives_us, *_message(message)


def _message(sent: SentMessage) -> tuple[str, str]:
    """The message's name; and its sender, receiver and contents."""
    way = f"{messages.node(sent.name.source)} -> {messages.node(sent.name.target)}"
    more = pairs(messages.about(sent.message))
    return messages.name_of(sent.message), f"{way}, {more}" if more else way


def necessary_as_json(takes: Necessity) -> dict[str, Any]:
    """Necessary events as one JSON-able object."""
    return {
        "faults": [{**asdict(fault), "gone_without": goes} for fault, goes in takes.faults],
        "batches": [
            {"first_id": first_id, "records": records, "acks": acks, "due_us": due_us, "gone_without": goes}
            for (first_id, records, acks, due_us), goes in takes.sends
        ],
        "messages": [_sent_as_json(sent) for sent in takes.messages],
        "alternatives": [[_sent_as_json(sent) for sent in alternative.messages] for alternative in takes.alternatives],
        "asked": takes.asked,
        "of": takes.of,
        "stays": takes.stays,
        "tries": takes.tries,
        "is_enough": takes.is_enough,
        "whole": takes.whole,
    }


def _sent_as_json(sent: SentMessage) -> dict[str, Any]:
    return {
        "what": messages.name_of(sent.message),
        "source": sent.name.source,
        "target": sent.name.target,
        "sent_us": sent.sent_us,
        "arrives_us": sent.arrives_us,
        "about": messages.about(sent.message),
    }


def turn(shares: Curve, kind: str) -> Iterator[str]:
    """The point of no return in a sentence, and a note if the time limit cut the search short."""
    if shares.step is not None:
        sooner, later = shares.step
        times = _times(shares.step)
        fail = f"{_all_of(later)} continuations end in {kind}"
        yield f"From {times[later.after_us]} on {fail}; from {times[sooner.after_us]}, {_all_of(sooner)}"
    elif shares.whole:
        yield f"There is none: {kind} becomes more likely gradually, or was certain from the beginning"
    if not shares.whole:
        yield "The time limit stopped the search: fewer continuations, and perhaps not at the times that matter"


def _all_of(share: Share) -> str:
    """How many continuations violate."""
    if share.violating in (0, share.runs):
        return "none" if not share.violating else f"all {share.runs}"
    return f"{share.violating} of {share.runs}"


def shares(found: Curve) -> list[tuple[str, str, str, int]]:
    """Rows of the curve: time up to which the run is kept, share that violates, interval, number of continuations."""
    times = _times(found.shares)
    return [(times[share.after_us], percent(share.rate), _bounds(share), share.runs) for share in found.shares]


def curve_as_json(found: Curve) -> dict[str, Any]:
    """The curve as one JSON-able object; a time of -1 means that nothing of the run was kept."""
    return {
        "shares": [{**asdict(share), "interval": _interval(share)} for share in found.shares],
        "step_us": None if found.step is None else [share.after_us for share in found.step],
        "whole": found.whole,
    }


def _times(shown: Iterable[Share]) -> dict[int, str]:
    """The times of shares in words; those that milliseconds do not tell apart have microseconds."""
    found = {share.after_us: "the beginning" if share.after_us < 0 else moment(share.after_us) for share in shown}
    same = Counter(found.values())
    return {us: text if same[text] == 1 else f"{us / 1_000_000:.6f} s" for us, text in found.items()}


def _interval(share: Share) -> tuple[float, float] | None:
    """95 % interval of a share; None without scipy."""
    try:
        return interval(share.violating, share.runs)
    except InputError:
        return None


def _bounds(share: Share) -> str:
    return " to ".join(map(percent, _interval(share) or ()))
