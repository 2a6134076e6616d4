"""Administrative operations, besides those that `sim.hosts.control_plane.ControlPlane` offers directly."""

from __future__ import annotations

from collections.abc import Mapping

from sim.config import Value
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.control_plane import ControlPlane
from sim.protocol.kraft.metadata import ELR_FEATURE
from sim.protocol.replica.partition import Partition


def note_settings(recorder: Recorder, config: Mapping[str, Value]) -> None:
    """Record that eligible leader replicas are off, which a promise depends on."""
    if not config[ELR_FEATURE]:
        recorder.record_for_all(steps.Fact(steps.ELR_OFF, 0))


class Administrator:
    """Changes settings, and deletes records; `config` has the initial settings."""

    def __init__(
        self, control: ControlPlane, recorder: Recorder, config: Mapping[str, Value], *, heeds_unclean: bool
    ) -> None:
        self._heeds_unclean = heeds_unclean
        self._control = control
        self._recorder = recorder
        self._config = config
        self._changes: dict[str, list[tuple[Value, object]]] = {}
        """Key -> its first value, then the changes in force, each with the cause that `change_setting` was given."""

    def setting(self, key: str) -> Value:
        """The current value of a dynamic setting."""
        return self._changes_of(key)[-1][0]

    def _changes_of(self, key: str) -> list[tuple[Value, object]]:
        return self._changes.setdefault(key, [(self._config[key], None)])

    def set_config(self, key: str, value: Value) -> None:
        """Change a dynamic setting."""
        self._changes[key] = [(value, None)]
        self._set(key, value)

    def _set(self, key: str, value: Value) -> None:
        if key == "unclean.leader.election.enable" and value and self._heeds_unclean:
            self._recorder.record_for_all(steps.Fact(steps.UNCLEAN_ELECTION, 0))
        if key == ELR_FEATURE and not value:
            self._recorder.record_for_all(steps.Fact(steps.ELR_OFF, 0))
        self._control.set_config(key, value)

    def change_setting(self, key: str, value: Value, by: object = None) -> bool:
        """Set a dynamic setting until `restore_setting` with the same `by`; False if it is so already."""
        changes = self._changes_of(key)
        if value == changes[-1][0]:
            return False
        changes.append((value, by))
        self._set(key, value)
        return True

    def restore_setting(self, key: str, by: object = None) -> None:
        """Undo `change_setting`, unless `set_config` has set the key since."""
        changes = self._changes_of(key)
        newest = max((place for place, (_, cause) in enumerate(changes) if cause == by), default=0)
        if newest == 0:  # The first value is no change.
            return
        before, _ = changes[-1]
        del changes[newest]
        now, _ = changes[-1]
        if now != before:
            self._set(key, now)

    def delete_records(self, partition: Partition, before: int) -> bool:
        """Advance a leader's log start, up to its HW, by retention or DeleteRecords; False if it does not move.

        Kafka: ReplicaManager#deleteRecordsOnLocalLog (1.1-4.4).
        """
        log = partition.log
        previous = log.log_start
        end = min(before, partition.hw)
        deleted = [record for batch in log.batches for record in batch.ids()[: max(0, end - batch.base_offset)]]
        partition.advance_log_start(before)
        if log.log_start == previous:
            return False
        self._recorder.of(partition.name).record(steps.Retention(partition.broker, deleted, log.log_start))
        return True
