"""A broker's life cycle: Kafka's BrokerLifecycleManager against ours, with times of 2 s and 9 s.

A broker has been started. Operations: ``answer error caught-up fenced stop`` (what is in flight is answered; the flags
are a heartbeat's, and need not make sense together), ``fail how`` (it comes to nothing: ``timeout``, ``empty``,
``version``, ``authentication``), ``ready`` (the broker may be unfenced), ``stop`` (controlled shutdown), ``replay
count`` (records of the metadata log), ``time ms``. To be seen are whether there was something to answer, the state,
whether the broker has caught up, was unfenced and has stopped, the time, and what was sent meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.protocol.decisions import Decisions
from sim.protocol.kraft import broker_lifecycle_manager
from sim.protocol.kraft.broker_lifecycle_manager import BrokerLifecycleManager, LifecycleHost
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.protocol.rules import Rules

HEARTBEAT_MS: Final = 2_000
SESSION_MS: Final = 9_000
PREVIOUS_EPOCH: Final = 7
FIRST_EPOCH: Final = 100
FAILURES: Final = ("timeout", "timeout", "timeout", "empty", "version", "authentication")
ERRORS: Final = ("DUPLICATE_BROKER_REGISTRATION", "STALE_BROKER_EPOCH", "UNKNOWN_SERVER_ERROR", "NOT_CONTROLLER")
_NEVER: Final = 1 << 60


class Broker(LifecycleHost):
    """The broker, its clock and its channel, as `sim.hosts.broker_lifecycle` has them."""

    def __init__(self, rules: Rules) -> None:
        self.lifecycle = BrokerLifecycleManager(self, Decisions(rules), HEARTBEAT_MS * 1_000, SESSION_MS * 1_000)
        self.now_us = 0
        self.asked = ""
        self.sent: list[list[Any]] = []
        self._next: tuple[int, int] = (_NEVER, 0)
        self._registration_us = _NEVER
        self._epoch = -1
        self._offset = 0
        self._is_caught_up = self._was_unfenced = False
        self.lifecycle.start()

    # What the life cycle asks.

    def send_registration(self) -> None:
        """See `LifecycleHost`."""
        self.asked = "register"
        self.sent.append([self.asked, PREVIOUS_EPOCH])

    def send_heartbeat(self, *, want_fence: bool, want_shut_down: bool) -> None:
        """See `LifecycleHost`."""
        self.asked = "heartbeat"
        self.sent.append([self.asked, self._epoch, self._offset, want_fence, want_shut_down])

    def communicate_after(self, after_us: int, number: int) -> None:
        """See `LifecycleHost`."""
        self._next = self.now_us + after_us, number

    def time_out_registration_after(self, after_us: int) -> None:
        """See `LifecycleHost`."""
        self._registration_us = self.now_us + after_us

    def caught_up(self) -> None:
        """See `LifecycleHost`."""
        self._is_caught_up = True

    def shutting_down(self) -> None:
        """See `LifecycleHost`."""

    def reached(self, probe: int) -> None:
        """See `LifecycleHost`."""

    # Operations.

    def answer(self, error: str, caught_up: int, fenced: int, stop: int) -> bool:
        asked, self.asked = self.asked, ""
        if not asked:
            return False
        if error != "NONE":
            self.lifecycle.failed()
        elif asked == "register":
            self._epoch = FIRST_EPOCH
            self.lifecycle.registered()
        else:
            self.lifecycle.heartbeat_answered(
                is_caught_up=bool(caught_up), is_fenced=bool(fenced), should_shut_down=bool(stop)
            )
        return True

    def fail(self, _: str) -> bool:
        return self.answer("any", 0, 0, 0)

    def ready(self) -> bool:
        self.lifecycle.set_ready_to_unfence()
        return True

    def stop(self) -> bool:
        self.lifecycle.begin_controlled_shutdown()
        return True

    def replay(self, count: int) -> bool:
        self._offset += count
        return True

    def time(self, ms: int) -> bool:
        until_us = self.now_us + ms * 1_000
        while (due_us := min(self._next[0], self._registration_us)) <= until_us:
            self.now_us = due_us
            if due_us == self._registration_us:
                self._registration_us = _NEVER
                self.lifecycle.registration_timed_out()
            else:
                number, self._next = self._next[1], (_NEVER, 0)
                self.lifecycle.communicate(number)
        self.now_us = until_us
        return True

    def shown(self, *, done: bool) -> list[Any]:
        """See the module."""
        state = self.lifecycle.state
        self._was_unfenced = self._was_unfenced or state == broker_lifecycle_manager.RUNNING
        sent, self.sent = self.sent, []
        stopped = state == broker_lifecycle_manager.SHUTTING_DOWN
        flags = [self._is_caught_up, self._was_unfenced, stopped]
        return [done, state.upper().replace(" ", "_"), *flags, self.now_us // 1_000, sent]


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    broker = Broker(rules)
    return [broker.shown(done=getattr(broker, name)(*values)) for name, *values in case]


def draw(rng: Random, release: str) -> Case:
    """A registration, mostly successful, then random operations."""
    case: Case = []
    if rng.random() < 0.8:
        case += [["answer", "NONE", 1, 0, 0]] * 2 + [["ready"]] * rng.randint(0, 1) + [["answer", "NONE", 1, 0, 0]]
    weights = _WEIGHTS if rng.random() < 0.8 else _FAILING
    for _ in range(rng.randint(5, 40)):
        name = rng.choices(list(weights), list(weights.values()))[0]
        match name:
            case "answer":
                error = "NONE" if rng.random() < 0.85 else rng.choice(ERRORS)
                stop = rng.random() < 0.2
                case.append([name, error, int(rng.random() < 0.7), int(rng.random() < 0.4), int(stop)])
            case "fail":
                case.append([name, rng.choice(FAILURES)])
            case "replay":
                case.append([name, rng.randint(1, 3)])
            case "time":
                case.append(
                    [name, rng.choice((1, 9, 10, 40, 50, 100, 101, 500, 1_999, 2_000, 2_000, 4_500, 9_000, 31_000))]
                )
            case _:
                case.append([name])
    return case


_TIMES_MS: Final = (1, 9, 10, 40, 50, 100, 101, 500, 1_999, 2_000, 2_000, 4_500, 9_000, 31_000)
_WEIGHTS: Final = {"answer": 40, "fail": 10, "time": 40, "replay": 5, "ready": 5, "stop": 2}
_FAILING: Final = {"fail": 40, "time": 40, "ready": 1}


SUBJECT: Final = Subject(
    "broker-lifecycle",
    "highwater.BrokerLifecycle",
    since("3.9.0"),
    draw,
    run,
    quick=300,
    usual=2_000,
    deep=20_000,
    uses=("channels",),
    recorded=15_000,
)
