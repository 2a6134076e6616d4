"""The controllers of a replicated quorum: their machines and processes, and the faults that strike these."""

from __future__ import annotations

from typing import Final

from sim.environment.network import Network
from sim.history import steps
from sim.hosts.control_plane import CONTROL, FIRST_CONTROLLER
from sim.hosts.metadata_ledger import MetadataLedger
from sim.hosts.raft_controller import ControllerSetup, RaftController
from sim.hosts.raft_machine import RaftMachine
from sim.kernel.scheduler import ALWAYS
from sim.protocol.raft.voter_set import VoterNode, VoterSet

RESTART_US: Final = 10_000_000
"""How soon a controller whose Raft thread threw an exception is started again, as by a supervisor."""


class RaftControllers:
    """See the module.

    Attributes:
        machines: their machines, by id.
        running: the processes that run, by id.
        network: connects them, once they are started.
    """

    __deletable__ = ("_ledger", "setup")

    setup: ControllerSetup
    network: Network

    def __init__(self, count: int, ledger: MetadataLedger, *, dynamic_voters: bool) -> None:
        self._ledger = ledger
        self.machines = {FIRST_CONTROLLER + place: RaftMachine() for place in range(count)}
        self._dynamic_voters = dynamic_voters
        if dynamic_voters:
            voters = VoterSet([VoterNode(machine.key(node)) for node, machine in self.machines.items()])
            for machine in self.machines.values():
                machine.format(voters)
        self.running: dict[int, RaftController] = {}
        self._ended: list[RaftController] = []
        self._pauses: dict[int, int] = {}

    def dispose(self) -> None:
        """See `Cluster.dispose`."""
        for process in self.running.values():
            process.dispose()
        self.running.clear()
        self.dispose_ended()
        del self._ledger, self.setup

    def dispose_ended(self) -> None:
        """See `Cluster.dispose_ended`."""
        for process in self._ended:
            process.dispose()
        self._ended.clear()

    @property
    def active(self) -> RaftController | None:
        """The active controller of the newest epoch, if its process is not paused."""
        found: RaftController | None = None
        for process in self.running.values():
            if process.active is not None and (found is None or process.epoch > found.epoch):
                found = process
        return found if found is not None and not found.frozen else None

    @property
    def leader(self) -> RaftController | None:
        """The controller that leads in the newest epoch, if its process is not paused."""
        leaders = [process for process in self.running.values() if process.member.client.is_leader]
        found = max(leaders, key=lambda process: process.member.client.quorum.epoch, default=None)
        return found if found is not None and not found.frozen else None

    def end_idle(self) -> None:
        """End the idle time of the quorum."""
        for process in self.running.values():
            process.end_idle()

    # Processes.

    def boot(self, network: Network) -> None:
        """Start all controllers; the first has run for two seconds, and so becomes leader at once."""
        self.network = network
        for node in self.machines:
            self._start(node, 2 * self.setup.raft.election_timeout_us if node == FIRST_CONTROLLER else 0)

    def start(self, node: int, *, formats: bool = False) -> bool:
        """Start a controller's process; False if it runs, or misses a snapshot, unless its disk is formatted anew."""
        if node in self.running:
            return False
        if self.machines[node].log.misses_snapshot:
            if not formats:
                self.setup.recorder.record(steps.ControllerProcess(steps.CONTROLLER_START, node))
                self._end(node, "no snapshot where its log begins")
                return False
            self.replace_disk(node)
        self.end_idle()
        self._start(node, 0)
        return True

    def _start(self, node: int, early_us: int) -> None:
        self.machines[node].start()
        self.setup.recorder.record(steps.ControllerProcess(steps.CONTROLLER_START, node))
        process = self.running[node] = RaftController(node, self.setup, early_us)
        self.network.join(process)
        process.member.drive()

    def _end(self, node: int, cause: str, *, silently: bool = False, lost: int = -1, crashed: bool = False) -> None:
        """End a controller's process at once, if one runs, and note what its machine has lost."""
        self.end_idle()
        process = self.running.pop(node, None)
        if process is not None:
            self._ended.append(process)
            self._pauses.pop(node, None)
            self.network.leave(process, silently=silently)
        excuses = lost >= 0 and self._excuses(node, cause)
        step = steps.ControllerProcess(steps.CONTROLLER_END, node, cause, lost, excuses=excuses, crashed=crashed)
        self.setup.recorder.record_for_all(step)

    def _excuses(self, node: int, cause: str) -> bool:
        """Whether fewer than a majority of the voters, without this one, have all committed metadata on disk. With
        kraft.version 1, a controller on an empty disk is no voter, and excuses nothing.
        """
        ledger, voters = self._ledger, self._ledger.voters
        machines = self.machines
        if self._dynamic_voters:
            if voters is None or cause != "quorum-state-lost":
                return False
            machines = {voter: machine for voter, machine in machines.items() if voters.is_voter(machine.key(voter))}
            if node not in machines:
                return False
        holders = [other for other, machine in machines.items() if other != node and ledger.holds_all(machine)]
        return len(holders) <= (len(machines) if voters is None else len(voters.ids)) // 2

    def lacking(self, end_offset: int) -> int:
        """Number of controllers that do not have the metadata log up to an offset on disk."""
        return sum([machine.log.flushed_offset < end_offset for machine in self.machines.values()])

    def kill(self, node: int) -> bool:
        """End a controller's process at once; its page cache survives. False if none runs."""
        if node not in self.running:
            return False
        self._end(node, "kill")
        return True

    def lose_power(self, node: int) -> bool:
        """Cut the power of a controller's machine; False if no process ran and nothing was lost."""
        self.end_idle()
        ran = node in self.running
        lost = self.machines[node].lose_power()
        # What was not fsynced may be lost, without any excuse.
        self._end(node, "power-loss", silently=True)
        return ran or lost >= 0

    def replace_disk(self, node: int) -> bool:
        """Replace a controller's disk by an empty one, formatted with the same id; False if nothing changes."""
        machine = self.machines[node]
        self.end_idle()
        ran, had = node in self.running, machine.log.end_offset > 0 or machine.election is not None
        machine.replace_disk()
        machine.has_power = False
        self._end(node, "disk-replaced", silently=True, lost=0)
        return ran or had

    def lose_election(self, node: int) -> bool:
        """Kill a controller and remove its file quorum-state; False if nothing changes."""
        machine = self.machines[node]
        if machine.election is None:
            return False
        self.end_idle()
        self._end(node, "quorum-state-lost", lost=machine.log.end_offset)
        machine.election = None
        return True

    def lose_snapshots(self, node: int) -> bool:
        """Kill a controller and remove its snapshots; False if there are none."""
        machine = self.machines[node]
        if not machine.log.snapshots:
            return False
        self.end_idle()
        machine.lose_snapshots()
        self._end(node, "snapshots-lost", lost=machine.log.base_offset if machine.log.misses_snapshot else -1)
        return True

    def pause(self, node: int) -> bool:
        """Pause a controller's process (0: all of them) until `resume`; False if none runs. Pauses nest."""
        nodes = list(self.running) if node == CONTROL else [node] if node in self.running else []
        for controller in nodes:
            self._pauses[controller] = self._pauses.get(controller, 0) + 1
            self.network.pause(self.running[controller])
            self.setup.recorder.record(steps.ControllerProcess(steps.CONTROLLER_PAUSE, controller))
        return bool(nodes)

    def resume(self, node: int) -> bool:
        """Undo a pause; False if there is none."""
        nodes = [controller for controller in list(self._pauses) if node in (controller, CONTROL)]
        for controller in nodes:
            self._pauses[controller] -= 1
            if not self._pauses[controller]:
                del self._pauses[controller]
            self.setup.recorder.record(steps.ControllerProcess(steps.CONTROLLER_RESUME, controller))
            self.network.resume(self.running[controller])
        return bool(nodes)

    def crashed(self, controller: RaftController, reason: str) -> None:
        """The Raft thread of a controller threw an exception; a supervisor starts the process again."""
        node = controller.node
        self.setup.kernel.call_at(self.setup.kernel.now_us, ALWAYS, self._crash, (controller, reason))
        self.setup.kernel.call_at(self.setup.kernel.now_us + RESTART_US, ALWAYS, self.start, node)

    def _crash(self, entry: tuple[RaftController, str]) -> None:
        controller, reason = entry
        if self.running.get(controller.node) is controller:
            self._end(controller.node, reason, crashed=True)
