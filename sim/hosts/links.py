"""Faults of a cluster's links, and their repair.

Methods come in pairs: `cut` and `heal`, `worsen` and `mend`, `intercept` or `hold` and `release`; `heal_all` undoes all
of them.
`by` identifies a fault, so that the counterpart undoes only that one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sim.environment.network import ANY_PEER, Effect, HeldMessages, Interception, Network
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.interceptions import MESSAGES

_STEPS = {Effect.LOSE: steps.MESSAGE_LOST, Effect.HOLD: steps.MESSAGE_HELD, Effect.COPY: steps.MESSAGE_COPIED}


class Links:
    """The directed links between broker ids, 0 for the control plane."""

    def __init__(self, network: Network, recorder: Recorder) -> None:
        self._network = network
        self._recorder = recorder
        self._cuts: list[tuple[int, int, object]] = []
        self._worse: list[tuple[steps.StepKind, int, int, int, object]] = []
        self._intercepted: list[tuple[object, list[tuple[int, int]], Interception, str]] = []
        self.controllers: tuple[int, ...] = ()
        """The controllers, if they are nodes of their own; then 0 stands for all of them."""
        self.struck: Callable[[object], None] | None = None
        """Called with the `by` of an interception, for each message that it strikes."""

    def cut(self, source: int, target: int, by: object = None) -> None:
        """Cut the link from `source` to `target`."""
        for one, other in self._links(source, target):
            self._network.cut(one, other)
        self._cuts.append((source, target, by))
        self._recorder.record(steps.LinkChange(steps.CUT, source, target))

    def heal(self, source: int, target: int, by: object = None) -> bool:
        """Undo one cut; False if there is none."""
        if (source, target, by) not in self._cuts:
            return False
        self._cuts.remove((source, target, by))
        for one, other in self._links(source, target):
            self._network.heal(one, other)
        self._recorder.record(steps.LinkChange(steps.HEAL, source, target))
        return True

    def worsen(self, step: steps.StepKind, source: int, target: int, value: int, by: object = None) -> None:
        """Worsen a directed link: by `value` us (`steps.SLOW`), or per thousand messages (`LOSSY`, `RESENT`)."""
        self._change(step, source, target, value)
        self._worse.append((step, source, target, value, by))
        self._recorder.record(steps.LinkChange(step, source, target, value))

    def mend(self, step: steps.StepKind, source: int, target: int, value: int, by: object = None) -> bool:
        """Undo `worsen`; False if it was undone already."""
        entry = (step, source, target, value, by)
        if entry not in self._worse:
            return False
        self._worse.remove(entry)
        self._change(step, source, target, -value)
        self._recorder.record(steps.LinkChange(steps.HEAL, source, target))
        return True

    def _change(self, step: steps.StepKind, source: int, target: int, by: int) -> None:
        network = self._network
        changes = {steps.SLOW: network.add_latency, steps.LOSSY: network.add_loss, steps.RESENT: network.add_duplicates}
        for one, other in self._links(source, target):
            changes[step](one, other, by)

    def _links(self, source: int, target: int) -> list[tuple[int, int]]:
        """The links for which a link stands: those of all controllers, if one of its ends is the control plane."""
        controllers = self.controllers
        if not controllers or (source and target):
            return [(source, target)]
        if source == target:
            return []
        return [
            (source or controller, target or controller)
            for controller in controllers
            if controller not in (source, target)
        ]

    def intercept(self, effect: Effect, name: str, ends: Sequence[tuple[int, int]], by: object = None) -> None:
        """Strike the next message of a type of `sim.hosts.interceptions.MESSAGES` on any of these directed links."""
        interception = Interception(MESSAGES[name].type, effect, self._noted(_STEPS[effect], name, by))
        self._add(interception, name, ends, by)

    def hold(self, name: str, ends: Sequence[tuple[int, int]], by: object) -> None:
        """Hold back every message of a type of `sim.hosts.interceptions.MESSAGES` on these links, until `deliver`."""
        held = HeldMessages(MESSAGES[name].type, self._noted(steps.MESSAGE_HELD, name, by))
        self._add(held, name, ends, by)

    def _add(self, interception: Interception, name: str, ends: Sequence[tuple[int, int]], by: object) -> None:
        links = [link for source, target in ends for link in self._links(source, target)]
        for source, target in links:
            self._network.intercept(source, target, interception)
        self._intercepted.append((by, links, interception, name))

    def _noted(self, step: steps.StepKind, name: str, by: object) -> Callable[[int, int], None]:
        def note(source: int, target: int) -> None:
            self._recorder.record(steps.MessageStruck(step, source, target, name))
            if self.struck is not None:
                self.struck(by)

        return note

    def include(self, client: int, like: int) -> None:
        """Extend the faults in force on the links of a client, `like`, to a client of the same kind that is new."""
        for step, source, target, value, by in list(self._worse):
            if like in (source, target):
                self.worsen(step, *_in_place((source, target), like, client), value, by)
        for _, ends, interception, _ in self._intercepted:
            for link in [link for link in ends if like in link]:
                ends.append(_in_place(link, like, client))
                self._network.intercept(*ends[-1], interception)

    def release(self, by: object = None) -> bool:
        """Undo `intercept`: a held message or a copy arrives. False if it was undone already."""
        found = [entry for entry in self._intercepted if entry[0] == by]
        for entry in found:
            self._intercepted.remove(entry)
            _, ends, interception, name = entry
            for source, target in ends:
                self._network.release(source, target, interception)
            self._note_late(name, interception.end(self._network.kernel))
        return bool(found)

    def deliver(self, by: object, peer: int = ANY_PEER, *, newest: bool = False) -> bool:
        """Let the oldest or newest message arrive that a `hold` has held back, from or to a peer if one is given; if
        there is none yet, the next one passes. False if the hold was undone already.
        """
        for other, _, interception, name in self._intercepted:
            if other == by and isinstance(interception, HeldMessages):
                self._note_late(name, interception.deliver(self._network.kernel, peer, newest=newest))
                return True
        return False

    def _note_late(self, name: str, arriving: Sequence[tuple[int, int]]) -> None:
        for source, target in arriving:
            at = source if MESSAGES[name].is_sent else target
            self._recorder.record(steps.MessageLate(source, target, name, at))

    def heal_all(self, *ends: int) -> None:
        """Undo all faults of links, or only those between two nodes.

        Without nodes given, the scenario's base loss ends too.
        """
        for by, on, _, _ in list(self._intercepted):
            if not ends or any(set(link) == set(ends) for link in on):
                self.release(by)
        for step, source, target, value, by in list(self._worse):
            if not ends or {source, target} == set(ends):
                self.mend(step, source, target, value, by)
        if not ends:
            self._network.set_loss(0)
        for source, target, by in list(self._cuts):
            if not ends or {source, target} == set(ends):
                self.heal(source, target, by)


def _in_place(link: tuple[int, int], like: int, client: int) -> tuple[int, int]:
    """The link between the same broker and another client."""
    source, target = link
    return (client, target) if source == like else (source, client)
