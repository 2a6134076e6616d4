"""File damage: one file of a broker that is down is lost, replaced by its former version, or half written.

A backup that is restored in part, an rsync that skips a file, a file system that is repaired after a crash, or a
clean-up script do that. `sim.environment.file_damage` says what each release reads in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from faults.kind import Amount, Duration, Param, Role
from faults.kinds.stops import BrokerStop
from faults.plan import Fault
from sim.environment.file_damage import FILES, HALF_WRITTEN, LOST, OLD, FileDamage
from sim.hosts.cluster import Cluster

NAMES: Final = ("", *FILES)
"""Name of the file at the number."""
_FILE: Final = Amount(
    "file", Param("file", required=True), "number of the file", (1, len(FILES)), least=1, most=len(FILES)
)
DAMAGED: Final = Duration("restart_us", "restart_ms")
"""A broker is down with a damaged file; then it is started, after a file with which it cannot start is removed."""


class FileDamageFault(BrokerStop):
    """See the module. A broker that runs is shut down in a controlled way, and its file damaged when its process ends,
    whatever ends it; one that is down keeps the end that it had.
    """

    damage: ClassVar[str]
    amount: ClassVar[Amount | None] = _FILE
    duration: ClassVar[Duration | None] = DAMAGED
    loses_records: ClassVar[bool] = True
    of_partition: ClassVar[bool] = True
    roles: ClassVar[tuple[Role, ...]] = (Role.WHILE_DOWN,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Damage the file, or shut its broker down; False if the next process would read the same."""
        return cluster.damaged_files.damage(target, self._damage(cluster, fault))

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Remove the file if the broker cannot start with it, and start the broker, unless it is running."""
        cluster.damaged_files.repair(target, self._damage(cluster, fault))

    def _damage(self, cluster: Cluster, fault: Fault) -> FileDamage:
        return FileDamage(NAMES[fault.value], self.damage, fault.partition or cluster.name, fault)

    def value_of(self, params: Mapping[str, Any]) -> int:
        """The number of the file."""
        return NAMES.index(params["file"])

    def param_of(self, value: int) -> int | str:
        return NAMES[value]


class FileLost(FileDamageFault):
    """See the module."""

    name: ClassVar[str] = "file-lost"
    meaning: ClassVar[str] = (
        "remove a file of a broker that is down; one that runs is shut down in a controlled way first; without "
        "restart_ms it stays down until a start"
    )
    damage: ClassVar[str] = LOST


class FileOld(FileDamageFault):
    """See the module."""

    name: ClassVar[str] = "file-old"
    meaning: ClassVar[str] = (
        "put the former version of a file of a broker that is down in its place; one that runs is shut down in a "
        "controlled way first; without restart_ms it stays down until a start"
    )
    damage: ClassVar[str] = OLD


class FileHalfWritten(FileDamageFault):
    """See the module."""

    name: ClassVar[str] = "file-half-written"
    meaning: ClassVar[str] = (
        "leave only the first lines of a file of a broker that is down, as if it had been renamed before it was "
        "written; one that runs is shut down in a controlled way first; if its log directory fails over the file, "
        "after restart_ms the file is removed and the broker started"
    )
    damage: ClassVar[str] = HALF_WRITTEN
