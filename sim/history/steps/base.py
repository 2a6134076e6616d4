"""What every step has in common: its kind, what the digest holds of it, and what a trace shows."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sim.history.steps.listener import Listener

CLIENTS: Final = 1_000
"""Clients have node ids above this."""

FACT: Final = -1
"""The number of a kind that is in no digest."""

Shown = dict[str, Any]
"""A step in a trace: ``t`` (us), ``step``, and its fields (`sim.history.steps.STEPS`)."""


class Lane(Enum):
    """Who takes a step: in whose lane a reader draws it."""

    BROKER = "broker"
    """The broker that the step names; the control plane for broker 0."""
    CONTROL_PLANE = "control plane"
    """The controller, or ZooKeeper, also where it decides about a broker."""
    PRODUCER = "producer"
    CONSUMER = "consumer"
    """The consumer that the step names."""
    NONE = "none"
    """Links, the cluster as a whole, and facts that no trace shows."""


TURN, CHANGE, DETAIL, ASIDE, UNTOLD = range(1, 6)
"""How much a step matters to a story: without a turn nobody understands it, an aside goes first, and what is untold
stands in the trace only."""


class StepKind:
    """A kind of step, or of fact.

    Args:
        name: what traces call it.
        code: its number in digests, never changed once it was released; `FACT` for a fact.
        lane: whose it is.
        meaning: what its fields say.
        sentence: the step for a reader, with its fields in braces (`reports.evidence.sentences`). A fact without a
            sentence is in no trace.
        weight: how much the sentence matters, `TURN` to `UNTOLD`.
        changes_log: whether batches of its broker's log, or its ends, may be others after it.
        moments: name -> meaning of the moments that a fault may be aimed at.
        has_records: whether its records count for ``sim.record.budget``.
        kept: whether it is kept, for what is worked out when the run has ended (`sim.history.history.History`).
        method: what of a `Listener` is called, if several kinds share it.

    Attributes:
        is_traced: whether a trace shows it.
        number: of its method: listeners are told of kinds by methods.
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
        self.is_traced = code != FACT or sentence != ""
        self.number = METHODS.setdefault(self.method, len(METHODS))
        KINDS.append(self)


KINDS: Final[list[StepKind]] = []
METHODS: Final[dict[str, int]] = {}
"""What of a `Listener` is called -> its number."""


class Step:
    """Something that happened to a broker (0: to none).

    The digest holds time, kind, `broker`, `epoch`, `offset` and `other`; a fact has neither of the last three.

    Attributes:
        kind: what happened; most classes are of one kind.
        broker: where, or what the digest holds in its place.
        epoch: the leader's, mostly.
        offset: the step's offset, as its kind says.
        other: one number more.
        records: how many records it is about, if its kind has any.
        at_us: when; only the recorder says.
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
        """Call the method of its kind."""
        for listener in listeners:
            listener.on_step(self)

    def fields(self) -> Shown:
        """What a trace shows of it besides time and name."""
        return {"broker": self.broker, "offset": 0}

    def shown(self) -> Sequence[Shown]:
        """What it is in a trace: mostly one entry."""
        return [self.fields()]

    def moments(self) -> Iterable[tuple[str, int]]:
        """The moments that it is, of those of its kind, and the broker that each is about."""
        return [(moment, self.broker) for moment in self.kind.moments]


class InEpoch(Step):
    """Something that a broker does in an epoch, the leader's or the controller's."""

    __slots__ = ()

    def __init__(self, broker: int, epoch: int) -> None:
        self.broker = broker
        self.epoch = epoch
        self.offset = self.other = 0

    def fields(self) -> Shown:
        return {"broker": self.broker, "leader_epoch": self.epoch}
