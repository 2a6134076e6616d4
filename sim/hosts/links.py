"""What is wrong with the links of a cluster, and how it is put right.

Verbs come in pairs: `cut` and `heal`, `worsen` and `mend`, and `heal_all` for all of these. Whoever does something says
`by` what, so that only that is taken back.
"""

from __future__ import annotations

from sim.environment.network import Network
from sim.history import steps
from sim.history.recorder import Recorder


class Links:
    """The directed links between broker ids, 0 for the control plane.

    Args:
        network: what they belong to.
        recorder: where changes are noted.
    """

    def __init__(self, network: Network, recorder: Recorder) -> None:
        self._network = network
        self._recorder = recorder
        self._cuts: list[tuple[int, int, object]] = []
        self._worse: list[tuple[steps.StepKind, int, int, int, object]] = []

    def cut(self, source: int, target: int, by: object = None) -> None:
        """Nothing arrives from `source` at `target` any more."""
        self._network.cut(source, target)
        self._cuts.append((source, target, by))
        self._recorder.record(steps.Link(steps.CUT, source, target))

    def heal(self, source: int, target: int, by: object = None) -> bool:
        """Take one cut back; False if there is none (any more)."""
        if (source, target, by) not in self._cuts:
            return False
        self._cuts.remove((source, target, by))
        self._network.heal(source, target)
        self._recorder.record(steps.Link(steps.HEAL, source, target))
        return True

    def worsen(self, step: steps.StepKind, source: int, target: int, value: int, by: object = None) -> None:
        """Make a directed link worse: `steps.SLOW` by so many us, `LOSSY` and `RESENT` so many of a thousand."""
        self._change(step, source, target, value)
        self._worse.append((step, source, target, value, by))
        self._recorder.record(steps.Link(step, source, target, value))

    def mend(self, step: steps.StepKind, source: int, target: int, value: int, by: object = None) -> bool:
        """Take that back; False if it was done."""
        entry = (step, source, target, value, by)
        if entry not in self._worse:
            return False
        self._worse.remove(entry)
        self._change(step, source, target, -value)
        self._recorder.record(steps.Link(steps.HEAL, source, target))
        return True

    def _change(self, step: steps.StepKind, source: int, target: int, by: int) -> None:
        network = self._network
        changes = {steps.SLOW: network.slow, steps.LOSSY: network.lossy, steps.RESENT: network.resend}
        changes[step](source, target, by)

    def heal_all(self, *ends: int) -> None:
        """Take back all cuts and whatever makes links worse, or only what is between two nodes.

        Without nodes, no message is lost any more.
        """
        for step, source, target, value, by in list(self._worse):
            if not ends or {source, target} == set(ends):
                self.mend(step, source, target, value, by)
        if not ends:
            self._network.lose(0)
        for source, target, by in list(self._cuts):
            if not ends or {source, target} == set(ends):
                self.heal(source, target, by)
