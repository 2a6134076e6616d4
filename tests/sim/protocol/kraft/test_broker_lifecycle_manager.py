"""A broker's life cycle, driven by hand: what it sends, and when it wants to send again."""

from __future__ import annotations

import pytest

from sim.protocol.decisions import Decisions
from sim.protocol.kraft.broker_lifecycle_manager import (
    PENDING_CONTROLLED_SHUTDOWN,
    RECOVERY,
    RUNNING,
    SHUTTING_DOWN,
    STARTING,
    BrokerLifecycleManager,
    LifecycleHost,
)
from sim.protocol.modes import MODES
from tests.sim.protocol.recording import branches

HEARTBEAT_MS = 2_000
SESSION_MS = 9_000


class Broker(LifecycleHost):
    """Notes what is asked of it; times in ms.

    Attributes:
        did: what was asked, but for times, since it was last looked at.
        due: when to communicate next.
    """

    def __init__(self, retry: str = "back-off") -> None:
        self.decide = Decisions(MODES["kraft"].rules.override({"lifecycle_retry": retry}))
        self.did: list[str] = []
        self.due: list[int] = []
        self._number = 0
        self.lifecycle = BrokerLifecycleManager(self, self.decide, HEARTBEAT_MS * 1_000, SESSION_MS * 1_000)

    def send_registration(self) -> None:
        self.did.append("register")

    def send_heartbeat(self, *, want_fence: bool, want_shut_down: bool) -> None:
        self.did.append("heartbeat" + " fence" * want_fence + " stop" * want_shut_down)

    def communicate_after(self, after_us: int, number: int) -> None:
        self.due.append(after_us // 1_000)
        self._number = number

    def time_out_registration_after(self, after_us: int) -> None:
        self.did.append(f"time out after {after_us // 1_000}")

    def caught_up(self) -> None:
        self.did.append("caught up")

    def shutting_down(self) -> None:
        self.did.append("shut down")

    # What happens.

    def wait(self) -> None:
        """The time comes that was asked for last."""
        self.lifecycle.communicate(self._number)

    def answer(self, *, caught_up: bool = True, fenced: bool = False, stop: bool = False) -> None:
        self.lifecycle.heartbeat_answered(is_caught_up=caught_up, is_fenced=fenced, should_shut_down=stop)

    def looked_at(self) -> list[str]:
        did, self.did = self.did, []
        return did


def running(retry: str = "back-off") -> Broker:
    broker = Broker(retry)
    broker.lifecycle.start()
    broker.lifecycle.registered()
    broker.answer()
    broker.lifecycle.set_ready_to_unfence()
    broker.answer()
    assert broker.lifecycle.state == RUNNING
    broker.looked_at()
    broker.due.clear()
    return broker


def test_a_broker_registers_catches_up_and_is_unfenced() -> None:
    broker = Broker()
    lifecycle = broker.lifecycle
    lifecycle.start()
    assert broker.looked_at() == ["time out after 60000", "register"]
    lifecycle.registered()
    assert broker.looked_at() == ["heartbeat fence"]
    broker.answer(caught_up=False, fenced=True)
    assert (lifecycle.state, broker.due) == (STARTING, [10])
    broker.wait()
    broker.answer(fenced=True)
    assert (lifecycle.state, broker.due, broker.looked_at()) == (RECOVERY, [10, 10], ["heartbeat fence", "caught up"])
    broker.wait()
    broker.answer(fenced=True)
    assert (lifecycle.state, broker.due[2:]) == (RECOVERY, [HEARTBEAT_MS])
    broker.looked_at()
    lifecycle.set_ready_to_unfence()
    assert broker.looked_at() == ["heartbeat"]
    broker.answer()
    assert (lifecycle.state, broker.due[3:]) == (RUNNING, [HEARTBEAT_MS])


@pytest.mark.parametrize(
    ("retry", "due"),
    [("back-off", [100, 200, 400, 800, 1_600, 3_200, 6_400, 9_000, 9_000]), ("interval", [HEARTBEAT_MS] * 9)],
)
def test_what_failed_is_sent_again_after_a_back_off_or_the_interval(retry: str, due: list[int]) -> None:
    broker = Broker(retry)
    broker.lifecycle.start()
    for _ in due:
        broker.lifecycle.failed()
        broker.wait()
    assert broker.due == due
    assert broker.looked_at()[1:] == ["register"] * 10
    assert branches(broker.decide) == {f"lifecycle_retry={retry}"}
    broker.lifecycle.registered()
    broker.lifecycle.failed()
    assert broker.due[-1] == due[0]


def test_an_urgent_heartbeat_follows_the_awaited_response_unless_it_fails() -> None:
    broker = running()
    broker.wait()
    broker.lifecycle.begin_controlled_shutdown()
    assert broker.looked_at() == ["heartbeat"]
    broker.answer()
    assert broker.looked_at() == ["heartbeat stop"]
    broker = running()
    broker.wait()
    broker.lifecycle.begin_controlled_shutdown()
    broker.lifecycle.failed()
    assert (broker.looked_at(), broker.due) == (["heartbeat"], [100])


def test_who_may_not_stop_yet_asks_again_after_50_ms_then_at_the_interval() -> None:
    broker = running()
    broker.lifecycle.begin_controlled_shutdown()
    broker.lifecycle.begin_controlled_shutdown()
    for _ in range(3):
        broker.answer()
        broker.wait()
    assert broker.due == [50, HEARTBEAT_MS, HEARTBEAT_MS]
    assert broker.lifecycle.state == PENDING_CONTROLLED_SHUTDOWN
    assert broker.looked_at() == ["heartbeat stop"] * 4
    broker.answer(stop=True)
    assert (broker.lifecycle.state, broker.looked_at()) == (SHUTTING_DOWN, ["shut down"])


@pytest.mark.parametrize("answers", [0, 1, 2])
def test_who_does_not_run_yet_stops_without_asking(answers: int) -> None:
    broker = Broker()
    broker.lifecycle.start()
    if answers:
        broker.lifecycle.registered()
    if answers == 2:
        broker.answer(fenced=True)
    broker.looked_at()
    broker.lifecycle.begin_controlled_shutdown()
    assert (broker.lifecycle.state, broker.looked_at()) == (SHUTTING_DOWN, ["shut down"])
    broker.wait()
    broker.lifecycle.failed()
    broker.answer()
    broker.lifecycle.registered()
    broker.lifecycle.registration_timed_out()
    assert broker.looked_at() == []


@pytest.mark.parametrize("registers", [False, True])
def test_a_process_that_is_not_registered_in_time_stops(registers: bool) -> None:
    broker = Broker()
    broker.lifecycle.start()
    if registers:
        broker.lifecycle.registered()
    broker.looked_at()
    broker.lifecycle.registration_timed_out()
    assert broker.looked_at() == ([] if registers else ["shut down"])


def test_of_several_times_the_last_one_counts() -> None:
    broker = running()
    broker.wait()
    broker.answer()
    broker.looked_at()
    broker.lifecycle.set_ready_to_unfence()
    broker.wait()
    assert broker.looked_at() == ["heartbeat"]


def test_after_idle_heartbeats_the_next_one_is_sent_when_due() -> None:
    broker = running()
    broker.wait()
    broker.looked_at()
    broker.lifecycle.resume(700_000)
    assert broker.due == [700]
    broker.wait()
    assert broker.looked_at() == ["heartbeat"]


def test_a_heartbeat_after_a_failure_is_not_like_the_others() -> None:
    """Its answer makes the next back-off a short one."""
    broker = running()
    assert broker.lifecycle.is_steady(fenced=False)
    broker.wait()
    broker.lifecycle.failed()
    assert not broker.lifecycle.is_steady(fenced=False)
    broker.wait()
    broker.answer()
    assert broker.lifecycle.is_steady(fenced=False)


class WithDirectories(Broker):
    """A running broker that also notes timeouts of reports."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[int] = []
        self.lifecycle.start()
        self.lifecycle.registered()
        self.answer()
        self.lifecycle.set_ready_to_unfence()
        self.answer()
        self.did.clear()

    def time_out_directory_report(self, number: int) -> None:
        self.timers.append(number)

    def directory_unreported(self) -> None:
        self.did.append("unreported")


def test_a_failed_log_directory_is_reported_at_once_and_in_each_heartbeat() -> None:
    broker = WithDirectories()
    broker.lifecycle.propagate_directory_failure(3)
    assert broker.looked_at() == ["heartbeat"]
    assert (broker.lifecycle.offline_directories, broker.lifecycle.unreported) == ((3,), True)
    assert not broker.lifecycle.is_steady(fenced=False)
    broker.lifecycle.note_report((3,))
    broker.answer()
    assert broker.lifecycle.is_steady(fenced=False)
    broker.lifecycle.directory_report_timed_out(1)
    assert broker.looked_at() == []


def test_a_report_without_response_stops_the_broker_and_only_the_last_timeout_counts() -> None:
    broker = WithDirectories()
    broker.lifecycle.propagate_directory_failure(3)
    broker.lifecycle.propagate_directory_failure(4)
    assert broker.timers == [1, 2]
    broker.looked_at()
    broker.lifecycle.directory_report_timed_out(1)
    assert broker.looked_at() == []
    broker.lifecycle.directory_report_timed_out(2)
    assert broker.looked_at() == ["unreported"]


def test_a_response_counts_for_a_directory_that_failed_after_the_request() -> None:
    broker = WithDirectories()
    broker.wait()
    broker.lifecycle.propagate_directory_failure(3)
    broker.lifecycle.note_report(())
    broker.looked_at()
    broker.lifecycle.directory_report_timed_out(1)
    assert broker.looked_at() == []
    assert broker.lifecycle.unreported
