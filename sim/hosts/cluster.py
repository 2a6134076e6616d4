"""A cluster: machines, the processes on them, the control plane, clients and links; and what faults do to them.

Verbs come in pairs: `kill`, `lose_power`, `replace_disk`, `corrupt_tail`, `shut_down` and `start`; `pause` and
`resume`; `stall_disk` and `unstall_disk`; `cut` and `heal`, `worsen` and `mend`, and `heal_links` for all of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from sim.config import Value
from sim.environment.network import Network, Node
from sim.environment.storage import Storage
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.broker import REFUSED, SHUTDOWN, Broker, Startup
from sim.hosts.client import Access
from sim.hosts.consumer import Consumer
from sim.hosts.control_plane import CONTROL, Setup
from sim.hosts.control_planes import control_plane
from sim.hosts.producer import Producer
from sim.hosts.settings import broker_settings, client_settings
from sim.kernel.scheduler import ALWAYS, Kernel
from sim.kernel.streams import Streams, integer
from sim.protocol import probes
from sim.protocol.batch import Batch
from sim.protocol.kraft.metadata import ELR_FEATURE, MIN_ISR
from sim.protocol.replica.partition import Partition
from sim.protocol.rules import Rules

TOPIC: Final = "highwater-0"
PRODUCER: Final = 1001
CONSUMER: Final = 1002
VALIDATOR: Final = 1003
BOOT_GAP_US: Final = 5_000
"""Brokers are started one after the other, so that they register in order of their ids."""
SILENT: Final = ("power-loss", "disk-replaced")
"""Ends that take the machine along: nobody resets its connections."""
CLOSING_US: Final = 300
"""Until the control plane has heard that a broker which stops closes its session."""


class Cluster:
    """One partition on some brokers.

    Args:
        brokers: how many brokers; ids from 1.
        config: full configuration of the cluster.
        broker_config: full configuration of brokers that differ.
        rules: rules of each broker.
        upgraded: rules of brokers from their second start on, if others.
        client_rules: rules of producers and consumers.
        scripted: whether a script decides elections and ISR.
        first: the broker that is started first, and so becomes controller.
        kernel: time.
        streams: chance.
        recorder: what notes its steps, with checkers attached or not; one without, if it is not given.

    Attributes:
        running: the processes that run, by broker.
        storages: the machines' disks, by broker.
        control: where decisions are persisted.
    """

    def __init__(
        self,
        *,
        brokers: int,
        config: Mapping[str, Value],
        broker_config: Mapping[int, Mapping[str, Value]],
        rules: Mapping[int, Rules],
        upgraded: Mapping[int, Rules] | None = None,
        client_rules: Rules,
        scripted: bool,
        first: int = 1,
        kernel: Kernel,
        streams: Streams,
        recorder: Recorder | None = None,
    ) -> None:
        self.kernel = kernel
        loss, record_budget = config["sim.network.loss.permille"], config["sim.record.budget"]
        assert isinstance(loss, int)
        assert isinstance(record_budget, int)
        self.recorder = recorder or Recorder(kernel, record_budget)
        self.network = Network(
            kernel,
            streams,
            loss,
            fixed=config["sim.network.latency"] == "fixed",
            elides=bool(config["sim.elision"]),
        )
        common = broker_settings(config)
        self.settings = {
            broker: broker_settings(broker_config[broker]) if broker in broker_config else common
            for broker in range(1, brokers + 1)
        }
        self.rules = dict(rules)
        self._upgraded = dict(upgraded or {})
        phases = streams("writeback")  # Flushers of different machines have nothing to do with each other.
        self.storages = {
            broker: Storage(settings.storage, integer(phases, 0, settings.storage.writeback_interval_us - 1))
            for broker, settings in self.settings.items()
        }
        self.running: dict[int, Broker] = {}
        self._incarnations = dict.fromkeys(self.settings, 0)
        self._lost: dict[int, list[Batch]] = {broker: [] for broker in self.settings}
        self._stopping: dict[int, bool] = {}
        self._refused: dict[int, tuple[int, int]] = {}
        self._stalled: dict[int, tuple[Broker, int]] = {}
        self._cuts: list[tuple[int, int]] = []
        self._worse: list[tuple[str, int, int, int]] = []
        replication_factor = config["default.replication.factor"]
        assert isinstance(replication_factor, int)
        self._note_promises(config, replication_factor, client_rules)
        replicas = tuple(range(1, replication_factor + 1))
        setup = Setup(TOPIC, replicas, len(self.settings), client_rules, config, kernel, self.recorder)
        self.control = control_plane(setup, scripted=scripted)
        self.control.ended = self._session_ended
        self._first = first
        self._access = Access(
            TOPIC, tuple(self.settings), client_settings(config), kernel, self.network, self.recorder, client_rules
        )
        self.producer = Producer(PRODUCER, self._access)
        self.consumer = Consumer(CONSUMER, self._access)

    def boot(self) -> None:
        """Start everything, brokers one after the other."""
        for node in (self.control, self.producer, self.consumer):
            self.network.join(node)
        order = sorted(self.settings, key=lambda broker: (broker != self._first, broker))
        for position, broker in enumerate(order, start=1):
            self.kernel.call_at(position * BOOT_GAP_US, ALWAYS, self.start, broker)

    def dispose(self) -> None:
        """The run is over and looked at: let go of what knows each other, so that it needs no garbage collector."""
        for process in self.running.values():
            process.end()
        self.running.clear()
        self.control.ended = self.control.changed = None
        self.recorder.dispose()
        self.network.dispose()
        self.kernel.dispose()

    @property
    def replicas(self) -> tuple[int, ...]:
        """The assignment."""
        return self.control.state.replicas

    def validator(self, position: int, shows: Callable[[list[Batch]], None]) -> Consumer:
        """A fresh consumer that reads from an offset on and hands over what it is shown."""
        consumer = Consumer(VALIDATOR, self._access, position=position, shows=shows)
        consumer.leader = self.producer.leader
        consumer.leader_epoch = self.producer.leader_epoch
        self.recorder.record(steps.Position(steps.SEEK, VALIDATOR, position))
        earlier = self.network.nodes.get(VALIDATOR)
        if earlier is not None:
            self.network.leave(earlier, silently=True)
        self.network.join(consumer)
        return consumer

    # Processes.

    def start(self, broker: int) -> bool:
        """Start a broker's process; False if it runs. One that is shutting down is started when it is down."""
        if broker in self.running:
            if broker in self._stopping:
                self._stopping[broker] = True
            return False
        if self._incarnations[broker] and broker in self._upgraded:
            self.rules[broker] = self._upgraded.pop(broker)
        self._incarnations[broker] += 1
        startup = Startup(
            broker,
            self._incarnations[broker],
            TOPIC,
            self.storages[broker],
            self.rules[broker],
            self.settings[broker],
            self.kernel,
            self.network,
            self.recorder,
            self._loaded,
            self._exited,
        )
        process = self.running[broker] = self.control.broker(startup)
        self.recorder.record(steps.Start(broker, process.incarnation))
        process.start()
        return True

    def _loaded(self, process: Broker) -> None:
        broker = process.node
        assert process.partition is not None
        self.recorder.record(steps.Recovered(broker, process.partition, self._lost[broker]))
        self._lost[broker] = []

    def kill(self, broker: int) -> bool:
        """End a process at once; its page cache stays. False if none runs."""
        return self._end(broker, "kill")

    def lose_power(self, broker: int) -> bool:
        """The machine goes off: process and page cache are gone."""
        return self._damage(broker, "power-loss", partial(self.storages[broker].power_lost, self.kernel.now_us))

    def replace_disk(self, broker: int) -> bool:
        """The machine dies and gets an empty disk: process, log and all checkpoint files are gone."""
        return self._damage(broker, "disk-replaced", partial(self._replace_disk, broker))

    def _replace_disk(self, broker: int) -> list[Batch]:
        old = self.storages[broker]
        self.storages[broker] = old.anew()
        return old.log.batches

    def corrupt_tail(self, broker: int, count: int) -> bool:
        """The process ends, and the newest batches on its disk are unreadable.

        False if none ran and nothing is lost, because there is nothing or because the log was closed cleanly.
        """
        return self._damage(broker, "corrupt-tail", partial(self._corrupt_tail, broker, count))

    def _corrupt_tail(self, broker: int, count: int) -> list[Batch]:
        storage = self.storages[broker]
        synced = storage.synced
        lost = storage.corrupt_tail(count)
        if storage.synced < synced:
            self.recorder.coverage.reached(probes.SYNCED_LOST)
            self.recorder.record(steps.Fact(steps.SYNCED_LOST, broker))
        return lost

    def _damage(self, broker: int, kind: str, loses: Callable[[], list[Batch]]) -> bool:
        """End the process, if one runs, and let the machine lose batches; False if neither happened."""
        if self._end(broker, kind, loses):
            return True
        lost = loses()
        self._lost[broker] += lost
        marked = self.storages[broker].clean_shutdown
        self.recorder.record(steps.End(broker, kind, lost, unclean=not marked, was_down=True))
        return bool(lost)

    def pause(self, node: int) -> bool:
        """A broker's process (0: the control plane) stands still; False if none runs. Pauses add up."""
        process = self._process(node)
        if process is None:
            return False
        self.network.pause(process)
        self.recorder.record(steps.Pause(steps.PAUSE, node))
        return True

    def resume(self, node: int) -> bool:
        """Take one pause back; False if there is none (any more)."""
        process = self._process(node)
        if process is None or not process.frozen:
            return False
        self.recorder.record(steps.Pause(steps.RESUME, node))
        if node == CONTROL:
            self.control.touch()
        self.network.resume(process)
        return True

    def stall_disk(self, broker: int) -> bool:
        """A disk does not answer: what needs the partition waits. False if no process serves, or it stalls already.

        Appends, truncations and reads stand still, with them requests and answers about the partition. Sessions and the
        controller live on.
        """
        process = self.running.get(broker)
        if process is None or process.partition is None or self._stall_began(process) is not None:
            return False
        self._stalled[broker] = (process, self.kernel.now_us)
        process.stall(stalled=True)
        self.recorder.record(steps.Pause(steps.DISK_STALLED, broker))
        return True

    def unstall_disk(self, broker: int) -> bool:
        """It answers again, and what waited goes on; False if it did not stall."""
        process = self.running.get(broker)
        if process is None or self._stall_began(process) is None:
            return False
        del self._stalled[broker]
        self.recorder.record(steps.Pause(steps.DISK_WORKS, broker))
        process.perform(self._go_on, process)
        return True

    def _go_on(self, process: Broker) -> None:
        process.stall(stalled=False)

    def _stall_began(self, process: Broker) -> int | None:
        stalled, since_us = self._stalled.get(process.node, (None, 0))
        return since_us if stalled is process else None

    def _process(self, node: int) -> Node | None:
        return self.running.get(node) if node else self.network.nodes.get(node)

    def shut_down(self, broker: int) -> bool:
        """Controlled shutdown: leadership is handed over, then log and session are closed. False if no process runs."""
        process = self.running.get(broker)
        if process is None:
            return False
        self._stopping.setdefault(broker, False)
        process.perform(_begin_shutdown, process)
        return True

    def _exited(self, broker: int, reason: str) -> None:
        if reason == SHUTDOWN:
            self._end(broker, SHUTDOWN)
            return
        refused = reason == REFUSED
        self._end(broker, "exit" if refused else "halt")
        if refused and self.control.holds(broker):
            self._refused[broker] = self.kernel.now_us, self._incarnations[broker]
        else:
            self._supervise_at(self.kernel.now_us + self.settings[broker].supervisor_us, broker)

    def _session_ended(self, broker: int) -> None:
        """Let the supervisor make the next try of a broker that was refused.

        Tries while the old session is open would only be refused again, so they are left out.
        """
        process = self.running.get(broker)
        alive = process is not None and process.broker_epoch >= 0
        self.recorder.coverage.reached(probes.SESSION_EXPIRES_ALIVE if alive else probes.SESSION_EXPIRES_DEAD)
        exited_us, incarnation = self._refused.pop(broker, (0, 0))
        if incarnation == self._incarnations[broker]:
            settings = self.settings[broker]
            first_us = exited_us + settings.supervisor_us
            period_us = settings.supervisor_us + settings.recovery_us
            missed_us = self.kernel.now_us - settings.recovery_us - first_us
            self._supervise_at(first_us + max(0, -(-missed_us // period_us)) * period_us, broker)

    def _supervise_at(self, at_us: int, broker: int) -> None:
        at_us = max(at_us, self.kernel.now_us)
        self.kernel.call_at(at_us, ALWAYS, self._supervise, (broker, self._incarnations[broker]))

    def _supervise(self, entry: tuple[int, int]) -> None:
        broker, incarnation = entry
        if self._incarnations[broker] == incarnation:
            self.start(broker)

    def _end(self, broker: int, kind: str, loses: Callable[[], list[Batch]] = list) -> bool:
        process = self.running.pop(broker, None)
        if process is None:
            return False
        storage = self.storages[broker]
        partition = process.partition
        if partition is not None:
            if partition.state.pending:
                self.recorder.coverage.reached(probes.ISR_LOST)
            since_us = [process.frozen_us if process.frozen else None, self._stall_began(process), self.kernel.now_us]
            storage.process_ended(partition.hw, min(time for time in since_us if time is not None))
            if kind == SHUTDOWN:
                storage.close_cleanly(partition.hw if process.checkpointing else None, process.broker_epoch)
                self._close_session(broker, process)
            elif kind == "exit":
                storage.close_cleanly(None)
        elif kind == SHUTDOWN:
            process.close_unloaded()
        lost = loses()
        self._lost[broker] += lost
        if self.network.nodes.get(broker) is process:
            self.network.leave(process, silently=kind in SILENT)
        process.end()
        marked = storage.clean_shutdown and storage.clean_broker_epoch == process.broker_epoch >= 0
        self.recorder.record(steps.End(broker, kind, lost, unclean=not marked))
        if self._stopping.pop(broker, False):
            self.kernel.call_at(self.kernel.now_us, ALWAYS, self.start, broker)
        return True

    def _close_session(self, broker: int, process: Broker) -> None:
        """The last that a broker says; if nobody hears it, its session has to expire."""
        if not self.network.link(broker, CONTROL).cuts:
            self.kernel.call_at(
                self.kernel.now_us + CLOSING_US, self.control.life, self._session_closed, (broker, process.broker_epoch)
            )

    def _session_closed(self, entry: tuple[int, int]) -> None:
        self.control.closed(*entry)

    # The control plane.

    @property
    def controller(self) -> int:
        """The broker whose seat the controller's is, 0 if nobody's."""
        return max(self.control.controller, 0)

    def expire_session(self, broker: int) -> bool:
        """See `ControlPlane.expire`."""
        return self.control.expire(broker)

    def zombie(self, broker: int) -> bool:
        """A session expires, and its broker neither hears of it nor registers anew until `unzombie`."""
        process = self.running.get(broker)
        if process is None or process.zombie:
            return False
        self.control.forget(broker)
        process.zombie = True
        return True

    def unzombie(self, broker: int) -> None:
        """The broker will notice with its next ping."""
        process = self.running.get(broker)
        if process is not None:
            process.zombie = False

    def move_controller(self) -> bool:
        """See `ControlPlane.fail_over`."""
        return self.control.fail_over()

    def pause_controller(self, broker: int) -> bool:
        """The active controller stands still: its broker, or one of a quorum; False while there is none."""
        return self.control.pause_controller(broker, self.pause)

    def resume_controller(self, broker: int) -> None:
        """It goes on; that of a quorum finds that another one is active."""
        if broker > 0:
            self.resume(broker)

    def preferred_election(self) -> bool:
        """An administrator asks for the preferred leader; False if there is no controller."""
        return self.control.prefer()

    def elect(self, kind: str, desired: int) -> bool:
        """See `ControlPlane.elect_leader`."""
        return self.control.elect_leader(kind, desired)

    def lag_metadata(self, broker: int, by_us: int) -> bool:
        """See `ControlPlane.lag`."""
        return self.control.lag(broker, by_us)

    def change_min_isr(self, value: int) -> bool:
        """An administrator sets ``min.insync.replicas`` for a while; False if that is its value."""
        changes = self._min_isrs
        if value == changes[-1]:
            return False
        changes.append(value)
        self.set_config(MIN_ISR, value)
        return True

    def restore_min_isr(self, value: int) -> None:
        """Take the newest such change to that value back."""
        changes = self._min_isrs
        before = changes[-1]
        changes.pop(len(changes) - 1 - changes[::-1].index(value))
        if changes[-1] != before:
            self.set_config(MIN_ISR, changes[-1])

    def reassign(self, replicas: tuple[int, ...]) -> bool:
        """An administrator asks for another assignment; False if it is in place or another one is asked for."""
        return self.control.reassign(replicas)

    def delete_records(self, partition: Partition, before: int) -> bool:
        """Retention or DeleteRecords at a leader: its log start moves up, as far as its HW; False if it does not."""
        log = partition.log
        previous = log.log_start
        end = min(before, partition.hw)
        deleted = [record for batch in log.batches for record in batch.ids()[: max(0, end - batch.base_offset)]]
        partition.advance_log_start(before)
        if log.log_start == previous:
            return False
        self.recorder.record(steps.Retention(partition.broker, deleted))
        return True

    def _note_promises(self, config: Mapping[str, Value], replication_factor: int, rules: Rules) -> None:
        """What a promise of eligible leader replicas depends on."""
        smallest = config[MIN_ISR]
        assert isinstance(smallest, int)
        self._min_isrs = [smallest]
        self.recorder.ledger.follows_leos = rules.elr == "on"
        if not config[ELR_FEATURE]:
            self.recorder.record(steps.Fact(steps.ELR_OFF, 0))
        self.recorder.record(steps.MinIsr(min(smallest, replication_factor)))

    def set_config(self, key: str, value: Value) -> None:
        """An administrator changes a dynamic setting."""
        if (key == "unclean.leader.election.enable" and value) or value == "Aggressive":
            self.recorder.record(steps.Fact(steps.UNCLEAN_ELECTION, 0))
        if key == ELR_FEATURE and not value:
            self.recorder.record(steps.Fact(steps.ELR_OFF, 0))
        self.control.set_config(key, value)

    # Links.

    def cut(self, source: int, target: int) -> None:
        """Nothing arrives from `source` at `target` any more (broker ids, 0 for the control plane)."""
        self.network.cut(source, target)
        self._cuts.append((source, target))
        self.recorder.record(steps.Link("cut", source, target))

    def heal(self, source: int, target: int) -> bool:
        """Take one cut back; False if there is none (any more)."""
        if (source, target) not in self._cuts:
            return False
        self._cuts.remove((source, target))
        self.network.heal(source, target)
        self.recorder.record(steps.Link("heal", source, target))
        return True

    def worsen(self, step: str, source: int, target: int, value: int) -> None:
        """Make a directed link ``slow`` (by so many us), ``lossy`` or ``resent`` (so many of a thousand)."""
        self._change(step, source, target, value)
        self._worse.append((step, source, target, value))
        self.recorder.record(steps.Link(step, source, target, value))

    def mend(self, step: str, source: int, target: int, value: int) -> bool:
        """Take that back; False if it was done."""
        entry = (step, source, target, value)
        if entry not in self._worse:
            return False
        self._worse.remove(entry)
        self._change(step, source, target, -value)
        self.recorder.record(steps.Link("heal", source, target))
        return True

    def _change(self, step: str, source: int, target: int, by: int) -> None:
        network = self.network
        changes = {"slow": network.slow, "lossy": network.lossy, "resent": network.resend}
        changes[step](source, target, by)

    def heal_links(self, *ends: int) -> None:
        """Take back all cuts and whatever makes links worse, or only what is between two nodes.

        Without nodes, no message is lost any more.
        """
        for step, source, target, value in list(self._worse):
            if not ends or {source, target} == set(ends):
                self.mend(step, source, target, value)
        if not ends:
            self.network.lose(0)
        for source, target in list(self._cuts):
            if not ends or {source, target} == set(ends):
                self.heal(source, target)

    # Views.

    @property
    def leader(self) -> Broker | None:
        """The process that leads by the control plane's decision and knows it."""
        process = self.running.get(self.control.state.leader)
        if process is None or not process.leads:
            return None
        assert process.partition is not None
        return process if process.partition.leader_epoch == self.control.state.leader_epoch else None


def _begin_shutdown(process: Broker) -> None:
    process.begin_shutdown()
