"""What is left out, and what happens at the same microsecond or lasts longer than a round: histories stay equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sim.environment.elision import ElidedFetch
from sim.hosts.client import CONSUMER
from sim.kernel.scheduler import Kernel
from sim.protocol import probes
from sim.protocol.client.sender import ProducerBatch
from sim.protocol.decisions import Decisions
from sim.protocol.messages import FetchRequest
from sim.protocol.zookeeper.kafka_zk_client import KafkaZkClient
from sim.protocol.zookeeper.zk_operations import Operation
from tests.sim.environment.test_elision import elides
from tests.sim.world import World
from tests.verification.hunt.elision import FIXED

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.history.trace import Shown
    from sim.protocol.replica.delayed_fetch import DelayedFetch


FOLLOWER = 3


def world(*, elision: bool, **config: int) -> World:
    """Broker 1 leads; a record was written, and everybody has heard of its HW."""
    small = World("kip320", config={**FIXED, "sim.elision": elision, **config}).ready()
    small.write(seconds=5)
    assert elides(small, ElidedFetch) is elision
    return small


def waiting(small: World, node: int) -> DelayedFetch:
    """A node's fetch, which waits at the leader at present, as it would without elision."""
    leader = small.cluster.leader
    assert leader is not None
    small.cluster.network.nodes[node].end_elision()
    first = leader.replicas[small.cluster.name]
    fetches = first.followers + first.consumers
    (delayed,) = (fetch for fetch in fetches if fetch.request.node == node)
    return delayed


def moments(small: World, node: int) -> dict[str, int]:
    """When a fetch ten rounds from now is sent, arrives, expires, and when its answer arrives."""
    leader, asker = small.cluster.leader, small.cluster.network.nodes[node]
    assert leader is not None
    there_us, back_us = asker.out[leader.node].usual_us, leader.out[node].usual_us
    delayed = waiting(small, node)
    wait_us = leader.replica_manager.purgatory._wait_us(delayed.request)
    arrives_us = delayed.since_us + 10 * (wait_us + back_us + there_us)
    expires_us = arrives_us + wait_us
    return {"sent": arrives_us - there_us, "arrives": arrives_us, "expires": expires_us, "back": expires_us + back_us}


def has_reached(small: World, probe: int) -> bool:
    return bool(small.cluster.recorder.coverage.seen >> (len(probes.PROBES) - 1 - probe) & 1)


def then(small: World, at_us: int, action: Callable[[], object]) -> list[Shown]:
    """Do something at a time that was fixed long before; then write, twice, and see what comes of it."""
    kernel = small.cluster.kernel
    kernel.call_at(at_us, small.cluster.control.life, lambda _: action(), None)
    small.run((at_us - kernel.now_us) / 1e6 + 0.1)
    for _ in range(2):
        small.write(seconds=0.7)
    small.run(10)
    return small.steps


def asks(small: World) -> None:
    """A question and its answer take the ways of a fetch and its answer."""
    small.cluster.consumer.ask_end_offset()


def asks_for_leader(small: World) -> None:
    small.cluster.consumer.refresh()


@pytest.mark.parametrize("moment", ["sent", "arrives", "expires", "back"])
@pytest.mark.parametrize("delay_us", [-1, 0, 1])
@pytest.mark.parametrize("action", [asks, asks_for_leader])
def test_messages_on_the_way_of_a_fetch(moment: str, delay_us: int, action: Callable[[World], None]) -> None:
    found = []
    for elision in (True, False):
        small = world(elision=elision)
        at_us = moments(small, CONSUMER)[moment] + delay_us
        found.append(then(small, at_us, lambda small=small: action(small)))  # type: ignore[misc]
    assert found[0] == found[1]


@pytest.mark.parametrize("delay_us", [-1, 0, 1])
def test_answers_on_the_way_of_an_answer(delay_us: int) -> None:
    """The leader answers a question when the fetch of who asks it expires."""
    found = []
    for elision in (True, False):
        small = world(elision=elision)
        there_us = small.cluster.consumer.out[1].usual_us
        at_us = moments(small, CONSUMER)["expires"] - there_us + delay_us
        found.append(then(small, at_us, small.cluster.consumer.ask_end_offset))
    assert found[0] == found[1]
    assert any(step["step"] == "end-offset" for step in found[0])


@pytest.mark.parametrize("moment", ["sent", "arrives", "expires", "back"])
@pytest.mark.parametrize("target", [1, FOLLOWER])
@pytest.mark.parametrize("way", ["pause", "stall", "kill"])
def test_faults_at_the_time_of_a_step_of_a_round(moment: str, target: int, way: str) -> None:
    found = []
    for elision in (True, False):
        small = world(elision=elision)
        cluster = small.cluster
        at_us = moments(small, FOLLOWER)[moment]
        ways: dict[str, tuple[Callable[[int], object], Callable[[int], object]]] = {
            "pause": (cluster.pause, cluster.resume),
            "stall": (cluster.machines.stall_disk, cluster.machines.unstall_disk),
            "kill": (cluster.kill, lambda _: None),
        }
        strikes, ends = ways[way]
        cluster.kernel.call_at(at_us + 3_000_000, cluster.control.life, ends, target)
        found.append(then(small, at_us, lambda strikes=strikes: strikes(target)))  # type: ignore[misc]
    assert found[0] == found[1]


@pytest.mark.parametrize("delay_us", [-1, 0, 1])
@pytest.mark.parametrize("moment", ["sent", "arrives"])
@pytest.mark.parametrize("target", [0, 2])
def test_faults_at_the_time_of_a_ping(moment: str, delay_us: int, target: int) -> None:
    """From then on the pings of broker 2 are not heard: its session ends."""
    found = []
    for elision in (True, False):
        small = world(elision=elision)
        cluster, process = small.cluster, small.cluster.running[2]
        at_us = process.replica_manager.isr_expiration._began_us + 1 + 5 * process.settings.ping_us + delay_us
        if moment == "arrives":
            at_us += process.out[0].usual_us
        found.append(then(small, at_us, lambda: cluster.links.cut(2, 0) if target else cluster.pause(0)))  # noqa: B023
        small.run(20)
        if not target:
            cluster.resume(0)
            small.run(20)
    assert found[0] == found[1]
    assert bool(target) is any(step["step"] == "session-end" for step in found[0])


@pytest.mark.parametrize("elision", [True, False])
def test_a_fetch_is_as_old_as_it_is(elision: bool) -> None:
    """One that reached its leader's stalling disk began to wait when that ended, but was sent before."""
    small = world(elision=elision)
    leader, follower = small.cluster.leader, small.cluster.running[FOLLOWER]
    assert leader is not None
    kernel = small.cluster.kernel
    small.run((moments(small, FOLLOWER)["sent"] + 10 - kernel.now_us) / 1e6)
    small.cluster.machines.stall_disk(1)
    small.run(8)
    sent_us = follower.replica_manager.fetchers.sender._sent_us[1]
    assert sent_us < kernel.now_us - 7_000_000
    small.cluster.machines.unstall_disk(1)
    small.run(0.1)
    small.cluster.network.nodes[FOLLOWER].end_elision()
    assert follower.replica_manager.fetchers.sender._sent_us[1] == sent_us
    small.run(1)
    small.cluster.network.nodes[FOLLOWER].end_elision()
    assert follower.replica_manager.fetchers.sender._sent_us[1] > kernel.now_us - 600_000


@pytest.mark.parametrize("elision", [True, False])
@pytest.mark.parametrize("seconds", [3.1, 3.7, 4.2, 4.9, 5.3])
def test_resumed_process_reads_what_has_arrived_before_it_gives_up(elision: bool, seconds: float) -> None:
    """Whenever the timer of his request was last set. The leader stands still, too, so that it answers late."""
    small = world(elision=elision, **{"replica.socket.timeout.ms": 3_000})
    small.run(seconds)
    for broker in (FOLLOWER, 1):
        small.cluster.pause(broker)
    small.run(4)
    small.cluster.resume(1)
    small.write()
    small.cluster.resume(FOLLOWER)
    small.run(5)
    (append,) = small.of("append", broker=FOLLOWER, offset=1)
    (resume,) = small.of("resume", broker=FOLLOWER)
    assert append["t"] < resume["t"] + 1_000


class ReadTime(Operation):
    """Returns the time at which it is executed."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> int:
        return self._kernel.now_us


@pytest.mark.parametrize("late_us", [-500_000, -1, 0, 1, 1_500_000])
def test_request_over_a_slow_connection_is_repeated_with_a_ping(late_us: int) -> None:
    """One that comes before the answer."""
    found = []
    for elision in (True, False):
        small = world(elision=elision)
        cluster, leader = small.cluster, small.cluster.leader
        assert leader is not None
        for ends in ((0, 1), (1, 0)):
            cluster.network.add_latency(*ends, 1_500_000)
        interval_us = leader.settings.ping_us
        began_us = leader.replica_manager.isr_expiration._began_us + 1
        ping_us = began_us + leader.first_interval_us(interval_us) + 4 * interval_us
        round_us = leader.out[0].usual_us + cluster.control.out[1].usual_us
        small.run((ping_us - round_us + late_us - cluster.kernel.now_us) / 1e6)
        answers: list[int] = []
        small.process(leader.node).zookeeper.ask(ReadTime(cluster.kernel), answers.append, 0)
        small.run(10)
        assert len(answers) == 1
        found.append((answers, has_reached(small, probes.REQUEST_REPEATED), small.steps))
    assert found[0] == found[1]
    assert found[0][1] is (late_us >= 0)


def test_fetches_that_arrive_together_are_answered_in_one_order() -> None:
    """Whichever of them was simulated last."""
    found = []
    for elision in (True, False):
        small = World("kip320", config={**FIXED, "sim.elision": elision})
        for follower in (2, FOLLOWER):
            for ends in ((1, follower), (follower, 1)):
                small.cluster.network.link(*ends).table = (300,) * 256
        small.ready().write(seconds=5)
        small.cluster.network.nodes[2].end_elision()
        small.run(2)
        small.write()
        found.append(small.steps)
    assert found[0] == found[1]
    appends = [step for step in found[0] if step["step"] == "append" and step["offset"] == 1]
    assert [step["broker"] for step in appends] == [1, 2, FOLLOWER]
    assert appends[1]["t"] == appends[2]["t"]


@pytest.mark.parametrize("moment", ["sent", "arrives", "expires", "back"])
def test_latencies_are_redrawn_in_the_middle_of_a_round(moment: str) -> None:
    def steps(*, elision: bool) -> list[Shown]:
        small = World("kip320", config={"sim.elision": elision}).ready()
        small.write(seconds=5)
        at_us = moments(small, FOLLOWER)[moment]
        return then(small, at_us, lambda: small.cluster.network.redraw(1))

    assert steps(elision=True) == steps(elision=False)


def written_at_checks(*, elision: bool) -> list[Shown]:
    """Two batches reach the leader shortly before and at the time of a check of isr-expiration, twenty times.

    With elision, the first one makes the leader schedule the check, when the second one is under way.
    """
    small = world(elision=elision, **{"replica.lag.time.max.ms": 6, "replica.fetch.wait.max.ms": 6})
    cluster, kernel = small.cluster, small.cluster.kernel
    leader = cluster.leader
    assert leader is not None
    half_us = leader.settings.lag_us // 2
    for place in range(20):
        check_us = kernel.now_us + 20_000
        check_us += half_us - (check_us - leader.replica_manager.isr_expiration._began_us) % half_us
        sent_us = check_us - cluster.producer.out[leader.node].usual_us
        for number, at_us in enumerate((sent_us - 100, sent_us)):
            send = ProducerBatch(100 + 2 * place + number, 1, 1, at_us)
            kernel.call_at(at_us, cluster.producer.life, cluster.producer.send, send)
        small.run(0.5 + place / 1_000)
    return small.steps


def test_a_check_of_the_isr_comes_before_all_else_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ISR is written first and the batch appended after that, or the other way round."""
    found = written_at_checks(elision=True)
    assert found == written_at_checks(elision=False)
    assert sum(step["step"] == "isr" for step in found) > 3
    monkeypatch.setattr(Kernel, "schedule_task", Kernel.schedule)
    assert written_at_checks(elision=True) != written_at_checks(elision=False)


def test_a_refused_fetch_makes_a_member_of_the_isr_lag() -> None:
    """Up to 2.1, a leader forgets the LEO of a follower whose fetch it refuses."""
    found = []
    for elision in (True, False):
        small = World("kip320-2.1", config={**FIXED, "sim.elision": elision}).ready()
        small.write(seconds=60)
        leader = small.cluster.leader
        assert leader is not None
        assert leader.replica_manager.isr_expiration.scheduled is not elision
        request = waiting(small, FOLLOWER).request
        ((name, offset, epoch, last_epoch),) = request.positions
        refused = FetchRequest(
            FOLLOWER, leader.node, FOLLOWER, -1, [(name, offset + 1, epoch, last_epoch)], request.leader_epochs
        )
        small.cluster.network.cut(FOLLOWER, leader.node)
        leader.apis.on_fetch(refused)
        small.run(120)
        found.append(small.steps)
    assert found[0] == found[1]
    assert any(step["step"] == "isr" and FOLLOWER not in step["isr"] for step in found[0])
