"""Quorum progress: a majority of controllers that no fault stops commits metadata.

An active controller appends a NoOpRecord every ``metadata.max.idle.interval.ms``, so a quorum that works commits all
the time. Verifies: while a majority of the controllers runs, and no link between controllers is cut, slow or loses
messages, they commit a further batch within a bound that the election timeouts give, counted from the last such batch
or the last fault. Two such batches of one epoch, without a fault in between, come from a leader that stayed: they are
no further apart than its NoOpRecords, and the requests that may have been lost before. A process that ends by an
exception counts as one that runs: a supervisor starts it again, and what it does is Kafka's doing.

If the voters can change (kraft.version 1), all voters that are committed have to run, each on the disk with which it
became one, and not only a majority: what a change that is not yet committed asks for is a majority of others. A sole
voter may wait for one that is being added, so then all controllers have to run.

Does not verify: a quorum that is struck by faults more often than the bound; that brokers find the leader.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.bad_links import BadLinks
from sim.checkers.checker import ALWAYS, Checker, Finding, RunEnd
from sim.history import steps
from sim.history.history import History
from sim.protocol.raft.raft_log import VotersBatch
from sim.protocol.raft.voter_set import VoterSet


class QuorumProgress(Checker):
    """Counts the controllers that run, the links that are bad, and what is committed.

    Args:
        bound_us: how long a quorum may need to elect a leader and to commit a batch.
        idle_us: how long a leader that stays may need to commit the next batch.
    """

    FINDINGS: ClassVar = (Finding("quorum-stalled", ALWAYS),)
    of_cluster: ClassVar[bool] = True

    def __init__(self, history: History, bound_us: int, idle_us: int) -> None:
        super().__init__(history)
        self._bound_us = bound_us
        self._idle_us = idle_us
        self._epoch = -1
        """That of the last committed batch, if nothing has happened since; -1: something has."""
        self._since_us = 0
        self._committed = 0
        self._voters: set[int] = set()
        """All controllers: they start at the beginning."""
        self._down: set[int] = set()
        """Those whose process was ended by a fault, and has not been started again."""
        self._still: dict[int, int] = {}
        """Controller -> number of pauses that last."""
        self._links = BadLinks()
        """Those between controllers."""
        self._is_reported = False
        self._committed_voters: VoterSet | None = None
        """The last voters that are committed; None with static voters."""
        self._directories: dict[int, int] = {}
        """Controller -> directory id of its disk, if it is not the first one."""

    def on_controller_process(self, step: steps.ControllerProcess) -> None:
        node, kind = step.node, step.kind
        if step.crashed or (kind is steps.CONTROLLER_START and node in self._voters and node not in self._down):
            return
        self._turn(step.at_us, self._bound_us)
        self._voters.add(node)
        if kind is steps.CONTROLLER_END:
            if step.cause == "disk-replaced":
                self._directories[node] = self._directories.get(node, 1) + 1
            self._down.add(node)
            self._still.pop(node, None)
        elif kind is steps.CONTROLLER_START:
            self._down.discard(node)
        else:
            change = 1 if kind is steps.CONTROLLER_PAUSE else -1
            self._still[node] = self._still.get(node, 0) + change

    def on_link(self, step: steps.LinkChange) -> None:
        if _is_of_quorum(step.broker) and _is_of_quorum(step.offset):
            self._turn(step.at_us, self._bound_us)
            self._links.note(step)

    def on_raft_commit(self, step: steps.RaftCommit) -> None:
        end = step.batches[-1].end_offset
        if step.node >= steps.FIRST_CONTROLLER and end > self._committed:
            self._committed = end
            for batch in step.batches:
                if isinstance(batch, VotersBatch):
                    self._committed_voters = batch.voters
            epoch = step.batches[-1].epoch
            if step.elided:
                self._since_us = step.at_us
            else:
                self._turn(step.at_us, self._idle_us if epoch == self._epoch else self._bound_us)
            self._epoch = epoch

    def on_metadata_lost(self, step: steps.MetadataLost) -> None:
        self._committed = step.offset

    def final(self, end: RunEnd) -> None:
        self._turn(end.now_us, self._bound_us)

    def _turn(self, now_us: int, bound_us: int) -> None:
        """Judge the time since the last turn, in which nothing was committed and no fault struck."""
        waited_us = now_us - self._since_us
        self._since_us = now_us
        self._epoch = -1
        running = self._voters - self._down - {node for node, pauses in self._still.items() if pauses}
        if self._links.are_present or not self._must_commit(running):
            return
        self.decided = True
        if waited_us > bound_us and not self._is_reported:
            self._is_reported = True
            waited, bound = (f"{us / 1e6:.3f}" for us in (waited_us, bound_us))
            detail = (
                f"no fault stops controllers {sorted(running)} of {sorted(self._voters)} or their links, and they "
                f"commit nothing for {waited} s, longer than the bound of {bound} s"
            )
            self._violates("quorum-stalled", now_us, detail)

    def _must_commit(self, running: set[int]) -> bool:
        """Whether these controllers can commit."""
        voters = self._committed_voters
        if voters is None:
            return 2 * len(running) > len(self._voters)
        if len(voters.ids) == 1 and running < self._voters:
            return False
        return all(
            node.key.id in running and node.key.directory == self._directories.get(node.key.id, 1)
            for node in voters.nodes
        )


def _is_of_quorum(node: int) -> bool:
    """Whether an end of a link is a controller, or 0, which stands for all of them."""
    return node == 0 or node >= steps.FIRST_CONTROLLER
