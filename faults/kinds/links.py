"""Kinds that strike links: one link, in one direction or both, or all links to a broker."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from faults.bounds import Limits, aim_link
from faults.kind import BROKER, DISTURBED, LINK, PERMILLE, Amount, Duration, FaultKind, Param, Targets
from faults.plan import Fault, directions
from sim.history import steps
from sim.history.steps import StepKind
from sim.hosts.cluster import PRODUCER, Cluster
from sim.kernel.streams import Stream


class LinkFault(FaultKind):
    """A link has the condition that names the kind for a while, in one direction or both."""

    step: ClassVar[StepKind]
    targets: ClassVar[Targets] = LINK
    duration: ClassVar[Duration | None] = DISTURBED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002 - one fault, not one per node
        """Strike the link; False if both ends are the same broker."""
        for source, destination in directions(fault):
            cluster.links.worsen(self.step, source, destination, fault.value, fault)
        return bool(directions(fault))

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Undo it, unless all links were healed meanwhile."""
        for source, destination in directions(fault):
            cluster.links.mend(self.step, source, destination, fault.value, fault)

    def draw(self, stream: Stream, limits: Limits) -> Fault:
        fault = aim_link(self.name, stream, limits)
        return fault if self.amount is None else replace(fault, value=self.draw_value(stream, limits))


class Cut(LinkFault):
    """Messages between two nodes are lost for a while, in one direction or both."""

    name: ClassVar[str] = "cut"
    step: ClassVar[steps.StepKind] = steps.CUT
    meaning: ClassVar[str] = "cut a link; without for_ms until a heal"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Cut the link; False if both ends are the same broker."""
        for source, destination in directions(fault):
            cluster.links.cut(source, destination, fault)
        return bool(directions(fault))

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Heal the cut, unless all cuts were healed meanwhile."""
        for source, destination in directions(fault):
            cluster.links.heal(source, destination, fault)


class Slow(LinkFault):
    """Messages between two nodes take longer for a while."""

    name: ClassVar[str] = "slow"
    step: ClassVar[steps.StepKind] = steps.SLOW
    meaning: ClassVar[str] = "delay messages on a link by by_ms; without for_ms until a heal"
    amount: ClassVar[Amount | None] = Amount("by_ms", Param("ms", required=True), "us", bounds="slow_us", scale=1_000)


class Lossy(LinkFault):
    """Some messages between two nodes are lost for a while."""

    name: ClassVar[str] = "lossy"
    step: ClassVar[steps.StepKind] = steps.LOSSY
    meaning: ClassVar[str] = "lose messages on a link with a probability of permille/1000; without for_ms until a heal"
    amount: ClassVar[Amount | None] = Amount("permille", PERMILLE, "1/1000", bounds="loss_permille", most=1_000)


class Duplicate(FaultKind):
    """Requests to a broker arrive twice for a while, as if their senders had missed the response.

    Only messages that Kafka's senders resend unchanged are duplicated: a producer's batches and a controller's requests
    (`sim.environment.network.RESENT`). Replicas and consumers build a new request instead.
    """

    name: ClassVar[str] = "duplicate"
    meaning: ClassVar[str] = (
        "deliver requests that senders resend unchanged to a broker twice, with a probability of permille/1000"
    )
    targets: ClassVar[Targets] = BROKER
    amount: ClassVar[Amount | None] = Amount("permille", PERMILLE, "1/1000", bounds=(1, 1_000), most=1_000)
    duration: ClassVar[Duration | None] = DISTURBED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Duplicate requests of the producer and of other brokers, one of which is the controller."""
        for source in _senders(cluster, target):
            cluster.links.worsen(steps.RESENT, source, target, fault.value, fault)
        return True

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Undo it, unless all links were healed meanwhile."""
        for source in _senders(cluster, target):
            cluster.links.mend(steps.RESENT, source, target, fault.value, fault)


def _senders(cluster: Cluster, target: int) -> list[int]:
    return [PRODUCER, *(broker for broker in cluster.settings if broker != target)]
