"""A cluster: machines, the processes on them, the control plane, clients and links; and what faults do to them.

Verbs come in pairs: `kill`, `lose_power`, `shut_down` and `start`; `cut` and `heal_links`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sim.broker import SHUTDOWN, Broker
from sim.client import Access
from sim.config import Value
from sim.consumer import Consumer
from sim.control import ScriptedControl, SimpleControl
from sim.journal import Journal
from sim.kernel import ALWAYS, Kernel
from sim.network import Network
from sim.producer import Producer
from sim.protocol.batch import Batch
from sim.protocol.rules import Rules
from sim.settings import broker_settings, client_settings
from sim.storage import Storage
from sim.streams import Streams, integer

TOPIC: Final = "highwater-0"
PRODUCER: Final = 1001
CONSUMER: Final = 1002
VALIDATOR: Final = 1003
BOOT_GAP_US: Final = 5_000
"""Brokers are started one after the other, so that they register in order of their ids."""
SHUTDOWN_WAIT_US: Final = 15_000_000
"""controlled.shutdown.max.retries x controlled.shutdown.retry.backoff.ms: then a broker stops unheard."""


class Cluster:
    """One partition on some brokers.

    Args:
        brokers: how many brokers; ids from 1.
        config: full configuration of the cluster.
        broker_config: full configuration of brokers that differ.
        rules: rules of each broker.
        control_rules: rules of the control plane.
        scripted: whether a script decides elections and ISR.
        kernel: time.
        streams: chance.

    Attributes:
        running: the processes that run, by broker.
        storages: the machines' disks, by broker.
        replicas: the assignment.
    """

    def __init__(
        self,
        *,
        brokers: int,
        config: Mapping[str, Value],
        broker_config: Mapping[int, Mapping[str, Value]],
        rules: Mapping[int, Rules],
        control_rules: Rules,
        scripted: bool,
        kernel: Kernel,
        streams: Streams,
    ) -> None:
        self.kernel = kernel
        self.journal = Journal(kernel)
        loss = config["sim.network.loss.permille"]
        assert isinstance(loss, int)
        self.network = Network(kernel, streams, loss)
        common = broker_settings(config)
        self.settings = {
            broker: broker_settings(broker_config[broker]) if broker in broker_config else common
            for broker in range(1, brokers + 1)
        }
        self.rules = rules
        phases = streams("writeback")  # Flushers of different machines have nothing to do with each other.
        self.storages = {
            broker: Storage(settings.storage, integer(phases, 0, settings.storage.writeback_interval_us - 1))
            for broker, settings in self.settings.items()
        }
        self.running: dict[int, Broker] = {}
        self._incarnations = dict.fromkeys(self.settings, 0)
        self._lost: dict[int, list[Batch]] = {broker: [] for broker in self.settings}
        self._stopping: dict[int, bool] = {}
        self._cuts: list[tuple[int, int]] = []
        replication_factor = config["default.replication.factor"]
        session_ms = config["zookeeper.session.timeout.ms"]
        assert isinstance(replication_factor, int)
        assert isinstance(session_ms, int)
        self.replicas = tuple(range(1, replication_factor + 1))
        control = ScriptedControl if scripted else SimpleControl
        self.control = control(
            TOPIC,
            self.replicas,
            control_rules,
            session_us=session_ms * 1_000,
            unclean_election=bool(config["unclean.leader.election.enable"]),
            kernel=kernel,
            journal=self.journal,
        )
        self._access = Access(TOPIC, tuple(self.settings), client_settings(config), kernel, self.network, self.journal)
        self.producer = Producer(PRODUCER, self._access)
        self.consumer = Consumer(CONSUMER, self._access)

    def boot(self) -> None:
        """Start everything, brokers in order of their ids."""
        for node in (self.control, self.producer, self.consumer):
            self.network.join(node)
        for broker in self.settings:
            self.kernel.call_at(broker * BOOT_GAP_US, ALWAYS, self.start, broker)

    def validator(self, position: int, shows: Callable[[list[Batch]], None]) -> Consumer:
        """A fresh consumer that reads from an offset on and hands over what it is shown."""
        consumer = Consumer(VALIDATOR, self._access, position=position, shows=shows)
        consumer.leader = self.producer.leader
        self.network.join(consumer)
        return consumer

    # Processes.

    def start(self, broker: int) -> bool:
        """Start a broker's process; False if it runs. One that is shutting down is started when it is down."""
        if broker in self.running:
            if broker in self._stopping:
                self._stopping[broker] = True
            return False
        self._incarnations[broker] += 1
        process = self.running[broker] = Broker(
            broker,
            self._incarnations[broker],
            TOPIC,
            self.storages[broker],
            self.rules[broker],
            self.settings[broker],
            self.kernel,
            self.journal,
            self._loaded,
            self._exited,
        )
        self.journal.started(broker, process.incarnation)
        process.start()
        return True

    def _loaded(self, process: Broker) -> None:
        broker = process.node
        assert process.partition is not None
        self.journal.recovered(broker, process.partition, self._lost[broker])
        self._lost[broker] = []
        self.network.join(process)

    def kill(self, broker: int) -> bool:
        """End a process at once; its page cache stays. False if none runs."""
        return self._end(broker, "kill")

    def lose_power(self, broker: int) -> bool:
        """The machine goes off: process and page cache are gone."""
        if self._end(broker, "power-loss"):
            return True
        lost = self.storages[broker].power_lost(self.kernel.now_us)
        self._lost[broker] += lost
        self.journal.lost_later(broker, lost)
        return bool(lost)

    def shut_down(self, broker: int) -> bool:
        """Controlled shutdown: close the session, then the log. False if no process runs."""
        process = self.running.get(broker)
        if process is None:
            return False
        self._stopping.setdefault(broker, False)
        process.say_goodbye()
        self.kernel.call_at(self.kernel.now_us + SHUTDOWN_WAIT_US, process.life, self._shut_down_unheard, broker)
        return True

    def _shut_down_unheard(self, broker: int) -> None:
        self._end(broker, SHUTDOWN)

    def _exited(self, broker: int, reason: str) -> None:
        if reason == SHUTDOWN:
            self._end(broker, SHUTDOWN)
            return
        self._end(broker, "halt")
        due_us = self.kernel.now_us + self.settings[broker].supervisor_us
        self.kernel.call_at(due_us, ALWAYS, self._supervise, (broker, self._incarnations[broker]))

    def _supervise(self, entry: tuple[int, int]) -> None:
        broker, incarnation = entry
        if self._incarnations[broker] == incarnation:
            self.start(broker)

    def _end(self, broker: int, kind: str) -> bool:
        process = self.running.pop(broker, None)
        if process is None:
            return False
        storage = self.storages[broker]
        partition = process.partition
        if partition is not None:
            storage.process_ended(partition.hw, self.kernel.now_us)
            if kind == SHUTDOWN:
                storage.close_cleanly(partition.hw)
        lost = storage.power_lost(self.kernel.now_us) if kind == "power-loss" else []
        self._lost[broker] += lost
        if partition is not None:
            self.network.leave(process, silently=kind == "power-loss")
        process.life.open = False
        self.journal.ended(broker, kind, lost)
        if self._stopping.pop(broker, False):
            self.kernel.call_at(self.kernel.now_us, ALWAYS, self.start, broker)
        return True

    # Links.

    def cut(self, source: int, target: int) -> None:
        """Nothing arrives from `source` at `target` any more (broker ids, 0 for the control plane)."""
        self.network.cut(source, target)
        self._cuts.append((source, target))
        self.journal.link("cut", source, target)

    def heal(self, source: int, target: int) -> bool:
        """Take one cut back; False if there is none (any more)."""
        if (source, target) not in self._cuts:
            return False
        self._cuts.remove((source, target))
        self.network.heal(source, target)
        self.journal.link("heal", source, target)
        return True

    def heal_links(self) -> None:
        """Take all cuts back; no message is lost any more."""
        self.network.lose(0)
        for source, target in list(self._cuts):
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
