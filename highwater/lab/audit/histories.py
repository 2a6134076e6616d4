"""The situations that a partition has been in, as its metadata log shows them at the end of each batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from highwater.lab.audit.situations import Situation, SituationMachine, canonical, situation_of

if TYPE_CHECKING:
    from highwater.lab.audit.facts import ReplicaFacts
    from highwater.lab.audit.image import ClusterImage, Key

MOST_KEPT: Final = 50
"""Most situations since the last healthy one, and most different ones of one partition."""


@dataclass(slots=True)
class PartitionHistory:
    """Of one partition.

    Attributes:
        path: situations since every replica was live and in the ISR; empty if that never was so, or is too long ago.
        seen: different situations, and the record after which each was first so, with its time.
    """

    path: list[Situation] = field(default_factory=list)
    seen: dict[Situation, tuple[int, int]] = field(default_factory=dict)

    def note(self, image: ClusterImage, key: Key, facts: ReplicaFacts, time_ms: int) -> None:
        """Note the present situation."""
        now = situation_of(image, key, facts)
        if _is_healthy(now):
            self.path = [now]
        elif self.path:
            self.path.append(now)
            if len(self.path) > MOST_KEPT:
                self.path.clear()
        if len(self.seen) < MOST_KEPT:
            self.seen.setdefault(canonical(now)[0], (image.partitions[key].offset, time_ms))


def _is_healthy(situation: Situation) -> bool:
    state = situation.partition
    up = {broker for broker, replica in situation.replicas if replica.machine == SituationMachine.UP}
    return set(state.replicas) == set(state.isr) <= up and not (
        state.adding or state.removing or state.elr or state.last_known_elr
    )
