"""Driver of cases that put one change of a partition together: the whole of it, or one of its steps.

Brokers count from 0 in the table, and from 1 here; so -1 is the table's word for nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import PartitionRegistration
from sim.protocol.kraft.partition_change_builder import PartitionChangeBuilder, PartitionChangeRules
from sim.protocol.kraft.quorum_controller import QuorumController
from tests.sim.protocol.quorum_host import QuorumHost
from tests.verification.conformance.cases import TableError
from tests.verification.conformance.driving import Kind, Seen
from tests.verification.conformance.releases import marks_recovery

if TYPE_CHECKING:
    from sim.protocol.rules import Rules
    from tests.verification.conformance.cases import Fields

NAME: Final = "0"
_RECOVERY: Final = {"RECOVERED": False, "RECOVERING": True}
_UNLISTED: Final = ("isr", "elr", "last_known_elr", "leader", "replicas", "removing", "adding", "recovery")


def ours(brokers: Iterable[int]) -> tuple[int, ...]:
    """Convert the table's broker ids to ours."""
    return tuple(broker + 1 for broker in brokers)


def registration(given: Fields, *, name: str = NAME) -> PartitionRegistration:
    """A partition's state; what is not given is as it would be with all replicas in sync and no reassignment."""
    replicas, adding = ours(given["replicas"]), ours(given.get("adding", ()))
    isr = given.get("isr")
    return PartitionRegistration(
        name,
        given["leader"] + 1,
        given.get("leader_epoch", 0),
        ours(isr) if isr is not None else tuple(broker for broker in replicas if broker not in adding),
        given.get("partition_epoch", 0),
        replicas,
        elr=ours(given.get("elr", ())),
        last_known_elr=ours(given.get("last_known_elr", ())),
        adding=adding,
        removing=ours(given.get("removing", ())),
        recovering=_RECOVERY[given.get("recovery", "RECOVERED")],
    )


def theirs(brokers: tuple[int, ...]) -> list[int]:
    """Convert our broker ids to the table's."""
    return [broker - 1 for broker in brokers]


def look(state: PartitionRegistration) -> Seen:
    """What a registration shows; the order of the ELR is the table's: it says that there is none."""
    return Seen(
        leader=state.leader - 1,
        leader_epoch=state.leader_epoch,
        isr=theirs(state.isr),
        elr=sorted(theirs(state.elr)),
        last_known_elr=theirs(state.last_known_elr),
        elr_size=len(state.elr),
        last_known_elr_size=len(state.last_known_elr),
        partition_epoch=state.partition_epoch,
        replicas=theirs(state.replicas),
        adding=theirs(state.adding),
        removing=theirs(state.removing),
        recovery="RECOVERING" if state.recovering else "RECOVERED",
        reassignment_done=not state.adding and not state.removing,
    )


class Given:
    """A partition, and the change to build."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        self.state = registration(given["partition"])
        self.rules = rules
        self.min_isr: int = given["min_isr"]
        self.elr: bool = given["elr_enabled"]
        self._marks_recovery = marks_recovery(given["metadata_version"])
        self._acceptable = _acceptable(given["acceptable_leaders"])
        self._election = given["election"]
        # The rules are chosen by this one (`tests.verification.conformance.waiting`).
        assert given["use_last_known_leader"] == (rules.last_known_elr != "ejected-members")

    def change(self, op: Fields) -> PartitionChangeBuilder:
        """The change that an operation describes."""
        wanted = op["change"]
        decide = Decisions(self.rules)
        terms = PartitionChangeRules(decide, lambda _: None, elr=self.elr, marks_recovery=self._marks_recovery)
        change = PartitionChangeBuilder(self.state, self._acceptable, self.min_isr, terms)
        change.election = self._election
        change.unclean = ours(wanted.get("unclean_shutdown", ()))
        for key in ("isr", "replicas", "removing", "adding"):
            brokers = wanted.get(f"target_{key}")
            if brokers is not None:
                setattr(change, key, ours(brokers))
        assert wanted.get("min_isr_before") != self.min_isr  # It explains the ELR that is given.
        return change


def _acceptable(given: Fields) -> Callable[[int], bool]:
    if "only" in given:
        only = ours(given["only"])
        return lambda broker: broker in only
    excepted = ours(given["all_except"])
    return lambda broker: broker not in excepted


def _build(state: Given, op: Fields) -> Seen:
    before = state.state
    after = state.change(op).build()
    shown = look(after or before)
    for key in set(_UNLISTED) - set(op["expect"]):
        if shown[key] != look(before)[key] and "no_change" not in op["expect"]:
            raise AssertionError(f"{key} is not to change: {look(before)[key]} became {shown[key]}")
    shown["no_change"] = after is None
    shown["leader_epoch_bump"] = shown["leader_epoch"] > before.leader_epoch
    shown["partition_epoch_bump"] = shown["partition_epoch"] > before.partition_epoch
    return shown


def _elect(state: Given, op: Fields) -> Seen:
    elected = state.change(op).elect()
    return Seen(elected=elected.leader - 1, unclean=elected.unclean)


def _bumps(state: Given, op: Fields) -> Seen:
    change = state.change(op)
    return Seen(leader_epoch_bump=change.drops_replica() or change.shrink_bumps())


def _shrink_bumps(state: Given, op: Fields) -> Seen:
    return Seen(leader_epoch_bump=state.change(op).shrink_bumps())


def _set_min_isr(state: Given, op: Fields) -> Seen:
    host = QuorumHost(state.rules, {"min.insync.replicas": op["change"]["min_isr_before"]})
    host.image.replay(state.state)
    host.controller = QuorumController(host.image, Decisions(state.rules), host, host.config)
    host.records = [state.state]
    if host.controller.set("min.insync.replicas", state.min_isr):
        raise TableError("min ISR cannot be set")
    return Seen(no_change=host.state is state.state)


_OPS: Final[dict[str, Callable[[Any, Fields], object]]] = {
    "build": _build,
    "elect_only": _elect,
    "epoch_bump_only": _bumps,
    "isr_shrink_bump_only": _shrink_bumps,
    "config_change_only": _set_min_isr,
}
KIND = Kind(begin=Given, ops=_OPS)
