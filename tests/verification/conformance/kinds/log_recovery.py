"""Driver of kind ``log_recovery``: what a log and its disk keep, and what a new process recovers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING
from unittest.mock import patch

from sim.environment.storage import RecoveryError
from sim.protocol.decisions import Decisions
from sim.protocol.log.log import Log
from sim.protocol.messages import NO_BROKER_EPOCH, LeaderAndIsr
from tests.plain import skip_if_compiled
from tests.verification.conformance.cases import TableError
from tests.verification.conformance.driving import Kind, Seen
from tests.verification.conformance.simulated import LoadingBroker
from tests.verification.conformance.world import (
    FOLLOWER,
    LEADER,
    batches_of,
    entries_of,
    fill,
    make_directory,
    make_partition,
    record_id,
    records,
)

if TYPE_CHECKING:
    from sim.protocol.replica.partition import Partition
    from sim.protocol.rules import Rules
    from tests.verification.conformance.cases import Fields


class Machine:
    """The state of a case: a disk."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        self.rules = rules
        self.previous_shutdown = given.get("previous_shutdown")
        self.directories = given.get("log_dirs", 1)
        if not given.get("intact", True):
            raise TableError("nothing on a disk is ever torn")
        batches = batches_of(given.get("log", ())) or records(given.get("records", given.get("leo", 0)), 0)
        self.directory = make_directory()
        (self.storage,) = self.directory.storages.values()
        fill(self.storage, batches)
        file = given.get("epoch_file_after_loss", entries_of(batches))
        self.storage.epoch_checkpoint.write([(epoch, start) for epoch, start in file])
        self.hw = given.get("hw", 0)

    @cached_property
    def partition(self) -> Partition:
        """The leading partition of the process that uses the disk, for operations on a log in use."""
        log, epochs, _ = self.storage.recover(Decisions(self.rules), clean=True)
        partition = make_partition(log, epochs, self.rules, hw=self.hw)
        brokers = (LEADER, FOLLOWER)
        partition.become_leader(LeaderAndIsr("0", LEADER, epochs.latest or 0, brokers, 0, brokers), 0)
        return partition

    # The log.

    def append_leader(self, op: Fields) -> None:
        """Append records as one batch."""
        partition = self.partition
        epoch = partition.leader_epoch
        partition.append_new(record_id(partition.log.leo, epoch), op["records"], epoch)

    def append_follower(self, op: Fields) -> None:
        """Append a fetched batch."""
        self.partition.append_fetched(*batches_of([op["batch"]]))

    def increment_hw(self, op: Fields) -> None:
        """The other ISR member fetches from an offset: the one way in which a leader raises its HW."""
        self.partition.follower_fetched(FOLLOWER, 1, op["to"], self.partition.leader_epoch, 0)

    def adopt_hw(self, op: Fields) -> Seen:
        """Set a follower's HW by its leader's."""
        changed = self.partition.set_hw(op["to"])
        return Seen(changed_to=self.partition.hw if changed else None)

    # The disk.

    def load(self, op: Fields) -> Seen:
        """Start a process. It treats the shutdown as clean if it does not scan the log."""
        storage, directory = self.storage, self.directory
        directory.clean_shutdown = op.get("clean_shutdown_file", directory.clean_shutdown)
        fill(self.storage, records(1, 0))
        storage.recovery_point = 0
        storage.recover(Decisions(self.rules), clean=directory.take_marker())
        return Seen(had_clean_shutdown=storage.recovery_point == 1, file_exists_after_load=directory.clean_shutdown)

    def fail_to_load(self, op: Fields) -> Seen:
        """Start a process that cannot read the log."""
        self.directory.clean_shutdown = op["clean_shutdown_file"]
        skip_if_compiled()
        with patch.object(Log, "reload", side_effect=RecoveryError("unreadable")):
            try:
                self.storage.recover(Decisions(self.rules), clean=self.directory.take_marker())
            except RecoveryError:
                return Seen(file_exists_after=self.directory.clean_shutdown)
        raise AssertionError("an unreadable log was loaded")

    def reopen(self, op: Fields) -> Seen:
        """A process starts after a crash that lost nothing, with a recovery point as given, and a log start.

        What is not readable is as many batches as given, the newest.
        """
        storage = self.storage
        storage.recovery_point_file.content = op.get("recovery_point", storage.recovery_point)
        storage.log_start_file.content = op.get("log_start")
        self.directory.clean_shutdown = op["clean_shutdown"]
        self.directory.corrupt_tails(op.get("unreadable_at_the_end", 0))
        log, epochs, hw = storage.recover(Decisions(self.rules), clean=self.directory.take_marker())
        return Seen(
            leo=log.leo,
            log_start=log.log_start,
            hw=hw,
            epoch_entries=epochs.entries,
            recovery_point=storage.recovery_point,
        )

    def shut_down_during_recovery(self, _: Fields) -> Seen:
        """Shut a broker down before its logs are loaded."""
        broker = LoadingBroker(self.rules, clean=self.previous_shutdown != "unclean")
        broker.shut_down()
        return Seen(clean_shutdown_file=broker.directory.clean_shutdown)

    def shut_down(self, op: Fields) -> Seen:
        """Shut down a broker with that many directories. A machine has one, so each directory is a machine."""
        directories = [make_directory() for _ in range(self.directories)]
        for directory in directories:
            (storage,) = directory.storages.values()
            storage.recover(Decisions(self.rules), clean=directory.take_marker())
            storage.close_cleanly(0)
            directory.mark_clean(op["broker_epoch"])
        epochs = {directory.clean_broker_epoch for directory in directories}
        return Seen(
            clean_shutdown_file_in_every_dir=all(directory.clean_shutdown for directory in directories),
            broker_epoch_read_back=epochs.pop() if len(epochs) == 1 else NO_BROKER_EPOCH,
        )

    def observe(self) -> Seen:
        """The log in use, if there is one."""
        if "partition" not in vars(self):
            return Seen()
        log = self.partition.log
        return Seen(
            hw=self.partition.hw, leo=log.leo, log_start=log.log_start, epoch_entries=self.partition.epochs.entries
        )


KIND = Kind(
    begin=Machine,
    ops={
        "append_leader": Machine.append_leader,
        "append_follower": Machine.append_follower,
        "maybe_increment_hw": Machine.increment_hw,
        "update_hw": Machine.adopt_hw,
        "follower_hw_update": Machine.adopt_hw,
        "truncate_to": lambda state, op: state.partition.truncate_to(op["offset"]),
        "truncate_fully_and_start_at": lambda state, op: state.partition.truncate_fully(op["offset"]),
        "load": Machine.load,
        "load_fails": Machine.fail_to_load,
        "reopen": Machine.reopen,
        "shutdown": Machine.shut_down,
        "shutdown_during_recovery": Machine.shut_down_during_recovery,
    },
    observe=Machine.observe,
)
