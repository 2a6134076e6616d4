"""What a partition's history tells about its replicas' logs, which its state alone does not show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from highwater.lab.audit.records import NO_LEADER

if TYPE_CHECKING:
    from highwater.lab.audit.image import RegisteredPartition


@dataclass(slots=True)
class ReplicaFacts:
    """Of one partition's replicas.

    Attributes:
        emptied: broker -> offset of the record by which it left the assignment. It deletes its log then, or keeps an
            old one if it is down. Forgotten when the broker joins the ISR again.
        behind: broker -> offset of the record since which an ELR member may lack acknowledged records: the ISR had
            min.insync.replicas members without it, so the high watermark did not wait. -1: before the first record.
        complete: brokers that have all acknowledged records, as far as is known: members of the last ISR that could
            acknowledge, and those who joined since.
    """

    emptied: dict[int, int] = field(default_factory=dict)
    behind: dict[int, int] = field(default_factory=dict)
    complete: frozenset[int] = frozenset()

    @classmethod
    def of_state(cls, state: RegisteredPartition, min_isr: int) -> ReplicaFacts:
        """What a state alone tells, of a partition whose history is unknown: members of the ISR and the ELR have all
        acknowledged records, unless the ISR is large enough to acknowledge without the ELR.
        """
        if state.leader == NO_LEADER or len(state.isr) < min_isr:
            return cls(complete=frozenset({*state.isr, *state.elr}))
        behind = dict.fromkeys((broker for broker in state.elr if broker in state.replicas), state.offset)
        return cls(behind=behind, complete=frozenset(state.isr))

    def note(self, before: RegisteredPartition | None, after: RegisteredPartition, min_isr: int) -> None:
        """Note a change of the partition, after which the effective ``min.insync.replicas`` is `min_isr`."""
        if before is not None:
            for broker in before.replicas:
                if broker not in after.replicas:
                    self.emptied[broker] = after.offset
            elected = after.leader if after.leader != before.leader else NO_LEADER
            for broker in after.isr:
                if broker not in before.isr and broker != elected:
                    self.emptied.pop(broker, None)
                    self.behind.pop(broker, None)
        self.complete = self._complete(before, after, min_isr)
        for broker in list(self.behind):
            if broker not in after.elr and broker not in after.last_known_elr:
                del self.behind[broker]
        if after.leader != NO_LEADER and len(after.isr) >= min_isr:
            for broker in after.elr:
                if broker in after.replicas:
                    self.behind.setdefault(broker, after.offset)

    def _complete(self, before: RegisteredPartition | None, after: RegisteredPartition, min_isr: int) -> frozenset[int]:
        if before is None or (after.leader != NO_LEADER and len(after.isr) >= min_isr):
            return frozenset(after.isr)
        joined = [broker for broker in after.isr if broker not in before.isr and after.leader == before.leader]
        unclean = [broker for broker in before.elr if broker not in (*after.elr, *after.isr, *after.last_known_elr)]
        return frozenset({*self.complete, *joined} - self.emptied.keys() - set(unclean))
