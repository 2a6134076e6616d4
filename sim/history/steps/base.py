"""The base of all steps: their kind, their fields in the digest, and their entry in a trace."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sim.history.steps.listener import Listener

CLIENTS: Final = 1_000
"""Clients have node ids above this."""

FACT: Final = -1
"""Code of a kind that is in no digest."""

Shown = dict[str, Any]
"""A step in a trace: ``t`` (us), ``step``, and its fields (`sim.history.steps.STEPS`)."""


class Lane(Enum):
    """The participant in whose lane a step is shown."""

    BROKER = "broker"
    """The broker that the step names; the control plane for broker 0."""
    CONTROL_PLANE = "control plane"
    """The controller or ZooKeeper, also for decisions about a broker."""
    PRODUCER = "producer"
    CONSUMER = "consumer"
    """The consumer that the step names."""
    NONE = "none"
    """Links, the cluster as a whole, and facts not in traces."""


TURN, CHANGE, DETAIL, ASIDE, UNTOLD = range(1, 6)
"""How much a step matters to a narrative: a turn is essential, an aside is dropped first, and untold steps are only in
the trace.
"""


class StepKind:
    """A kind of step, or of fact.

    Args:
        name: its name in traces.
        code: its number in digests, which never changes once it is released; `FACT` for a fact.
        lane: the participant in whose lane it is shown.
        meaning: the meaning of its fields.
        sentence: a sentence template with its fields in braces (`reports.evidence.sentences`). A fact without one is in
            no trace.
        weight: importance of the sentence, `TURN` to `UNTOLD`.
        changes_log: whether it may change the batches or the offsets of its broker's log.
        moments: name -> meaning of the moments that it is, for which faults may wait.
        has_records: whether its records count for ``sim.record.budget``.
        kept: whether `sim.history.history.History` keeps it for evaluation at the end.
        method: the `Listener` method that is called, if several kinds share it; `number` is its number.
        unharmed: for an end that can lose batches, the sentence template if none is lost.
    """

    __slots__ = (
        "changes_log",
        "code",
        "has_records",
        "is_traced",
        "kept",
        "lane",
        "meaning",
        "method",
        "moments",
        "name",
        "number",
        "sentence",
        "unharmed",
        "weight",
    )

    def __init__(
        self,
        name: str,
        code: int,
        lane: Lane,
        meaning: str,
        sentence: str = "",
        *,
        weight: int = UNTOLD,
        changes_log: bool = False,
        moments: Mapping[str, str] | None = None,
        has_records: bool = False,
        kept: bool = False,
        method: str = "",
        unharmed: str = "",
    ) -> None:
        self.name = name
        self.code = code
        self.lane = lane
        self.meaning = meaning
        self.sentence = sentence
        self.weight = weight
        self.changes_log = changes_log
        self.moments = dict(moments or {})
        self.has_records = has_records
        self.kept = kept
        self.method = f"on_{method or name}".replace("-", "_")
        self.unharmed = unharmed
        self.is_traced = code != FACT or sentence != ""
        self.number = METHODS.setdefault(self.method, len(METHODS))
        KINDS.append(self)


KINDS: Final[list[StepKind]] = []
METHODS: Final[dict[str, int]] = {}
"""Name of a `Listener` method -> its number."""


class Step:
    """An event at a broker (0: at none).

    The digest holds time, kind, `broker`, `epoch`, `offset` and `other`. A fact is in no digest, and need not set the
    last three.

    Attributes:
        kind: its kind; most classes have one.
        broker: the broker, or another number that the digest has in its place.
        epoch: mostly the leader epoch.
        offset: an offset whose meaning depends on the kind.
        other: another number.
        records: number of records concerned, if its kind has any.
        at_us: its time, set by the recorder.
    """

    __slots__ = ("at_us", "broker", "epoch", "offset", "other", "records")

    kind: StepKind
    at_us: int
    epoch: int
    offset: int
    other: int
    records: int

    def __init__(self, broker: int) -> None:
        self.broker = broker
        self.epoch = self.offset = self.other = 0

    def tell(self, listeners: list[Listener]) -> None:
        """Call each listener's method for this kind of step."""
        for listener in listeners:
            listener.on_step(self)

    def fields(self) -> Shown:
        """Its fields in a trace, besides time and name."""
        return {"broker": self.broker, "offset": self.offset}

    def shown(self) -> Sequence[Shown]:
        """Its entries in a trace, mostly one."""
        return [self.fields()]

    def moments(self) -> Iterable[tuple[str, int]]:
        """The moments that this step is, each with the broker where it happens."""
        return [(moment, self.broker) for moment in self.kind.moments]


class InEpoch(Step):
    """A step of a broker in a leader or controller epoch."""

    __slots__ = ()

    def __init__(self, broker: int, epoch: int) -> None:
        self.broker = broker
        self.epoch = epoch
        self.offset = self.other = 0

    def fields(self) -> Shown:
        return {"broker": self.broker, "leader_epoch": self.epoch}
