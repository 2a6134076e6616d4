"""Steps of processes, machines and links: starts, ends, pauses, cuts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from sim.history.steps.base import ASIDE, CHANGE, DETAIL, FACT, TURN, Lane, Shown, Step, StepKind
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log
from sim.protocol.replica.replica import Replica

if TYPE_CHECKING:
    from sim.history.steps.listener import Listener

START: Final[StepKind] = StepKind(
    "start", 17, Lane.BROKER,
    "a process started",
    "The process of broker {broker} starts.",
    kept=True,
)  # fmt: skip


class Start(Step):
    """A process starts.

    Attributes:
        incarnation: number of the process among those of its broker.
    """

    __slots__ = ("incarnation",)

    kind = START

    def __init__(self, broker: int, incarnation: int) -> None:
        self.broker = broker
        self.epoch = self.offset = self.other = 0
        self.incarnation = incarnation

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_start(self)


class NewLog(Step):
    """A broker has a new log, with this LEO.

    Attributes:
        leo: the LEO.
    """

    __slots__ = ("_replica", "leo")

    leo: int
    _replica: Replica | None

    @property
    def replica(self) -> Replica:
        """The replica, for listeners of the time."""
        assert self._replica is not None
        return self._replica

    def release(self) -> None:
        """Drop the replica: kept with the step, each former log of a broker would last as long as the run."""
        self._replica = None


RECOVERED: Final[StepKind] = StepKind(
    "recovered", 18, Lane.BROKER,
    "a broker loaded its logs: offset = LEO, log_start, hw, lost = ids of records lost since its last end",
    "Broker {broker} has loaded its log, with LEO {offset} and HW {hw}.",
    changes_log=True, kept=True,
)  # fmt: skip


class Recovered(NewLog):
    """A process loaded its log; `lost` are the batches lost with the previous incarnation.

    Attributes:
        lost: batches lost with the previous incarnation.
    """

    __slots__ = ("lost",)

    kind = RECOVERED

    def __init__(self, broker: int, replica: Replica, lost: list[Batch]) -> None:
        self.broker = broker
        self.epoch = 0
        self.offset = self.leo = replica.log.leo
        self.other = replica.hw
        self._replica = replica
        self.lost = lost

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_recovered(self)

    def fields(self) -> Shown:
        replica = self.replica
        return {
            "broker": self.broker,
            "offset": self.leo,
            "log_start": replica.log.log_start,
            "hw": self.other,
            "lost": [record for batch in self.lost for record in batch.ids()],
        }


DELETED: Final[StepKind] = StepKind(
    "deleted", 26, Lane.BROKER,
    "a broker deleted its replica, which was reassigned",
    "Broker {broker} deletes its replica, which was reassigned.",
    changes_log=True, kept=True,
)  # fmt: skip


class Deleted(NewLog):
    """A broker deleted its replica with these batches, and has an empty log now.

    Attributes:
        removed: batches of the deleted replica.
    """

    __slots__ = ("removed",)

    kind = DELETED

    def __init__(self, broker: int, replica: Replica, removed: list[Batch]) -> None:
        self.broker = broker
        self.epoch = self.offset = self.other = 0
        self.leo = replica.log.leo
        self._replica = replica
        self.removed = removed

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_deleted(self)


def _end(name: str, code: int, meaning: str, sentence: str, weight: int, unharmed: str = "") -> StepKind:
    return StepKind(
        name, code, Lane.BROKER, meaning, sentence,
        weight=weight, changes_log=True, kept=True, method="end", unharmed=unharmed,
    )  # fmt: skip


KILL: Final[StepKind] = _end(
    "kill", 13, "a process was killed", "The process of {who} is killed; its page cache stays.", TURN
)
POWER_LOSS: Final[StepKind] = _end(
    "power-loss", 14,
    "a machine lost power",
    "The machine of {who} loses power; {lost} had not been flushed to disk, and {is_gone}.",
    TURN,
    "The machine of {who} loses power; its {whole} is on disk.",
)  # fmt: skip
SHUTDOWN: Final[StepKind] = _end(
    "shutdown", 15,
    "a broker was shut down in a controlled way",
    "Broker {broker} shuts down in a controlled way.",
    CHANGE,
)  # fmt: skip
HALT: Final[StepKind] = _end("halt", 16, "a broker exited by itself", "Broker {broker} halts by itself.", TURN)
EXIT: Final[StepKind] = _end(
    "exit", 24,
    "a broker exited at start-up, since an earlier registration was in the way",
    "Broker {broker} exits at start-up: an earlier registration is in the way.",
    ASIDE,
)  # fmt: skip
DISK_REPLACED: Final[StepKind] = _end(
    "disk-replaced", 45,
    "a machine's disk was replaced by an empty one",
    "The disk of {who} is replaced by an empty one; {lost} had been on it, and {is_gone}.",
    TURN,
    "The disk of {who} is replaced by an empty one; its log was empty.",
)  # fmt: skip
CORRUPT_TAIL: Final[StepKind] = _end(
    "corrupt-tail", 46,
    "the newest batches of a log became unreadable while no process ran",
    "The end of the log of {who} becomes unreadable: {lost} had been there, and {is_gone}.",
    TURN,
    "The end of the log of {who} becomes unreadable, which loses nothing.",
)  # fmt: skip

DIRECTORY_FAILED: Final[StepKind] = _end(
    "directory-failed", 52,
    "a log directory of a broker failed",
    "The log directory of {who} fails; {lost} had not been flushed to it, and {is_gone}.",
    TURN,
    "The log directory of {who} fails; its {whole} is on disk.",
)  # fmt: skip
DIRECTORY_REPLACED: Final[StepKind] = _end(
    "directory-replaced", 53,
    "a log directory came back empty, or without a replica that was created elsewhere meanwhile, or was removed",
    "The log directory of {who} comes back empty or is removed; {lost} had been in it, and {is_gone}.",
    TURN,
    "The log directory of {who} comes back empty or is removed; its log was empty.",
)  # fmt: skip
DIRECTORY_OFFLINE: Final[StepKind] = _end(
    "directory-offline", 54,
    "a process started without a log directory that has failed",
    "Broker {broker} starts without the log directory of its replica, which has failed.",
    CHANGE,
)  # fmt: skip

FILE_DAMAGED: Final[StepKind] = _end(
    "file-damaged", 61,
    "a file of a broker that is down was damaged: file, damage (lost, old or half-written)",
    "The file {file} of {who} is {damage}; {lost} had been in the log, which the broker takes for a stray one, and "
    "{is_gone}.",
    TURN,
    "The file {file} of {who} is {damage}.",
)  # fmt: skip

ENDS: Final[tuple[StepKind, ...]] = (
    KILL, POWER_LOSS, SHUTDOWN, HALT, EXIT, DISK_REPLACED, CORRUPT_TAIL,
    DIRECTORY_FAILED, DIRECTORY_REPLACED, DIRECTORY_OFFLINE, FILE_DAMAGED,
)  # fmt: skip
"""Ends of an incarnation or of one replica, or losses of a machine whose process is down."""
OF_REPLICAS: Final[tuple[StepKind, ...]] = (DIRECTORY_FAILED, DIRECTORY_REPLACED, DIRECTORY_OFFLINE, FILE_DAMAGED)
"""Those that end a replica, and not the process."""
LOSSES: Final[tuple[StepKind, ...]] = tuple([kind for kind in ENDS if kind.unharmed])
"""Ends that can lose batches."""


class End(Step):
    """An incarnation ended, or its machine lost more while it was down (`was_down`).

    Attributes:
        lost: batches lost.
        unclean: whether it left no clean-shutdown marker with its broker epoch.
        was_down: whether its process had ended before.
    """

    __slots__ = ("kind", "lost", "unclean", "was_down")

    def __init__(
        self, broker: int, kind: StepKind, lost: list[Batch], *, unclean: bool = True, was_down: bool = False
    ) -> None:
        self.kind = kind
        self.broker = broker
        self.epoch = self.other = 0
        self.offset = len(lost)
        self.lost = lost
        self.unclean = unclean
        self.was_down = was_down

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_end(self)


class FileDamaged(End):
    """A file of a broker that is down was damaged.

    Attributes:
        file: the file's name.
        damage: ``lost``, ``old`` or ``half-written``.
    """

    __slots__ = ("damage", "file")

    def __init__(self, broker: int, file: str, damage: str, lost: list[Batch], *, unclean: bool) -> None:
        super().__init__(broker, FILE_DAMAGED, lost, unclean=unclean, was_down=True)
        self.file = file
        self.damage = damage

    def fields(self) -> Shown:
        return {**super().fields(), "file": self.file, "damage": self.damage}


NO_LIMIT: Final = 1 << 60
FLUSHED: Final[StepKind] = StepKind(
    "flushed", FACT, Lane.NONE,
    "what had been fsynced when a process ended, or its machine lost more",
)  # fmt: skip


class Flushed(Step):
    """What had been fsynced of a log when a process ended, or its machine lost more.

    Attributes:
        last: the last fsynced batch at or above the log start, None without one.
        count: number of these batches.
        log_start: the log start.
        unflushed: number of records behind it.
        most_unflushed: most records that the settings leave unflushed.
        damaged: whether the disk itself was damaged, so that an earlier `Flushed` holds no longer.
    """

    __slots__ = ("count", "damaged", "last", "log_start", "most_unflushed", "unflushed")

    kind = FLUSHED

    def __init__(self, broker: int, log: Log, count: int, *, damaged: bool, most_unflushed: int = NO_LIMIT) -> None:
        self.broker = broker
        self.last: Batch | None = log.batches[count - 1] if count else None
        self.count = count
        self.log_start: int = log.log_start
        self.unflushed: int = log.leo - log.batches[count].base_offset if count < len(log.batches) else 0
        self.most_unflushed = most_unflushed
        self.damaged = damaged

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_flushed(self)


SYNCED_LOST: Final[StepKind] = StepKind(
    "synced-lost", FACT, Lane.NONE,
    "batches became unreadable although they had been fsynced",
    kept=True, method="fact",
)  # fmt: skip

FILE_MISSED: Final[StepKind] = StepKind(
    "file-missed", FACT, Lane.NONE,
    "a process lacks something of a damaged file that Kafka does not promise to do without",
    kept=True, method="fact",
)  # fmt: skip

PAUSE: Final[StepKind] = StepKind(
    "pause", 38, Lane.BROKER,
    "a process (0: the control plane) stands still",
    "{who} is paused (SIGSTOP, a long GC).",
    weight=TURN, method="pause",
)  # fmt: skip
RESUME: Final[StepKind] = StepKind(
    "resume", 39, Lane.BROKER,
    "a process resumes",
    "{who} runs again.",
    weight=CHANGE, method="pause",
)  # fmt: skip
DISK_STALLED: Final[StepKind] = StepKind(
    "disk-stalled", 40, Lane.BROKER,
    "a broker's disk does not answer: its partition stands still, its session does not",
    "The disk of {who} does not answer.",
    weight=TURN, method="pause",
)  # fmt: skip
DISK_WORKS: Final[StepKind] = StepKind(
    "disk-works", 41, Lane.BROKER,
    "a broker's disk answers again",
    "The disk of {who} answers again.",
    weight=CHANGE, method="pause",
)  # fmt: skip


class Pause(Step):
    """A process was paused or resumed, or its disk stalled or resumed."""

    __slots__ = ("kind",)

    def __init__(self, kind: StepKind, broker: int) -> None:
        self.kind = kind
        self.broker = broker
        self.epoch = self.offset = self.other = 0

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_pause(self)


def _link(
    name: str, code: int, meaning: str, sentence: str, weight: int, moments: Mapping[str, str] | None = None
) -> StepKind:
    return StepKind(name, code, Lane.NONE, meaning, sentence, weight=weight, method="link", moments=moments)


CUT: Final[StepKind] = _link(
    "cut", 22,
    "a directed link was cut: source, target",
    "The link from {source} to {target} is cut.",
    TURN,
)  # fmt: skip
HEAL: Final[StepKind] = _link(
    "heal", 23,
    "a directed link works again: source, target",
    "The link from {source} to {target} works again.",
    DETAIL,
)  # fmt: skip
SLOW: Final[StepKind] = _link(
    "slow", 42,
    "a directed link takes longer: source, target, value = us",
    "The link from {source} to {target} takes {duration} longer.",
    TURN,
)  # fmt: skip
LOSSY: Final[StepKind] = _link(
    "lossy", 43,
    "a directed link loses messages: source, target, value = of a thousand",
    "The link from {source} to {target} loses {value} of a thousand messages.",
    TURN,
)  # fmt: skip
RESENT: Final[StepKind] = _link(
    "resent", 44,
    "on a directed link requests arrive twice: source, target, value = of a thousand",
    "The link from {source} to {target} delivers {value} of a thousand requests twice.",
    CHANGE,
)  # fmt: skip

MESSAGE_LOST: Final[StepKind] = _link(
    "message-lost", 49,
    "a fault lost one message: source, target, message",
    "One {message} from {source} to {target} is lost.",
    TURN,
)  # fmt: skip
MESSAGE_HELD: Final[StepKind] = _link(
    "message-held", 50,
    "a fault holds one message back: source, target, message",
    "One {message} from {source} to {target} is held back.",
    TURN,
)  # fmt: skip
MESSAGE_COPIED: Final[StepKind] = _link(
    "message-copied", 51,
    "a fault delivers one message twice: source, target, message",
    "One {message} from {source} to {target} is sent twice; the second arrives late.",
    TURN,
)  # fmt: skip
MESSAGE_LATE: Final[StepKind] = _link(
    "message-late", FACT,
    "a message that was held back, or sent twice by a fault, arrives: source, target, message",
    "The late {message} from {source} to {target} arrives.",
    TURN, moments={"message-late": "a message that a fault held back, or its copy, arrives"},
)  # fmt: skip

LINKS: Final[tuple[StepKind, ...]] = (CUT, HEAL, SLOW, LOSSY, RESENT, MESSAGE_LOST, MESSAGE_HELD, MESSAGE_COPIED)
"""Changes of a directed link, and of one message on it."""


class LinkChange(Step):
    """A directed link to a target (`offset`) was cut or healed, or worsened by an amount (`other`)."""

    __slots__ = ("kind",)

    def __init__(self, kind: StepKind, source: int, target: int, value: int = 0) -> None:
        self.kind = kind
        self.broker = source
        self.epoch = 0
        self.offset = target
        self.other = value

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_link(self)

    def fields(self) -> Shown:
        shown: Shown = {"source": self.broker, "target": self.offset}
        if self.other:
            shown["value"] = self.other
        return shown


class MessageStruck(LinkChange):
    """A fault struck one message on a directed link; `message` names its type."""

    __slots__ = ("message",)

    def __init__(self, kind: StepKind, source: int, target: int, message: str) -> None:
        super().__init__(kind, source, target)
        self.message = message

    def fields(self) -> Shown:
        return {**super().fields(), "message": self.message}


class MessageLate(MessageStruck):
    """A message that a fault held back, or its copy, arrives.

    Attributes:
        at: the broker that sent it or receives it.
    """

    __slots__ = ("at",)

    def __init__(self, source: int, target: int, message: str, at: int) -> None:
        super().__init__(MESSAGE_LATE, source, target, message)
        self.at = at

    def moments(self) -> Iterable[tuple[str, int]]:
        return [(moment, self.at) for moment in self.kind.moments]


CONVERGED: Final[StepKind] = StepKind(
    "converged", 28, Lane.NONE,
    "the cluster is whole again and answered a write and a read",
    "The cluster is whole again, and answers a write and a read.",
    method="step",
)  # fmt: skip


class Converged(Step):
    """The cluster has converged."""

    __slots__ = ()

    kind = CONVERGED
