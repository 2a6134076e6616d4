"""Driver of kind ``epoch_request_validation``: how brokers answer OffsetsForLeaderEpoch.

Cases say in many ways what a broker has; what they leave out does not matter to them and is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.protocol.log.leader_epoch_file_cache import UNDEFINED
from sim.protocol.messages import DIVERGING_EPOCH, NO_EPOCH, OffsetsForLeaderEpochRequest, OffsetsForLeaderEpochResponse
from tests.verification.conformance.cases import Fields, TableError
from tests.verification.conformance.driving import Kind, Matching, Seen
from tests.verification.conformance.simulated import ASKER, SECOND_US, RunningCluster, ScriptedBroker
from tests.verification.conformance.world import (
    LEADER,
    entries_answering,
    epoch_of,
    make_cache,
    make_log,
    make_partition,
    records,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sim.protocol.replica.partition import Partition
    from sim.protocol.rules import Rules


def _seen(error: str, epoch: int, end_offset: int) -> Seen:
    return Seen(error=error or "NONE", epoch=epoch, end_offset=end_offset)


def _answer(partition: Partition, current: int, epoch: int) -> Seen:
    return _seen(*partition.end_offset_for(current, epoch, with_epoch=True))


def _answer_of_anybody(partition: Partition, current: int, epoch: int) -> Seen:
    """The answer of any replica: followers are not asked here, so only the epoch check applies."""
    error = partition.fencing.compare(current, partition.leader_epoch)
    return _seen(error, *(UNDEFINED if error else partition.epochs.end_offset_for(epoch, partition.log.leo)))


def _lengths(epochs: Fields) -> tuple[dict[str, int], dict[str, int]]:
    """Numbers for a table's epochs, and for its offsets ``S`` (where the second begins) and ``L`` (the LEO)."""
    said = {name: epochs[name] for name in epochs}
    if said != {"E1": "ends at S", "E2": "starts at S, LEO L"}:
        raise TableError(f"a leader with epochs {said} is not understood")
    return {"E1": 1, "E2": 2}, {"S": 10, "L": 20}


def _offset(value: int | str, letters: Mapping[str, int]) -> int:
    """A number, or one of the expressions that tables have for one."""
    start, end = letters["S"], letters["L"]
    offsets = {"S": start, "L": end, "L+(L-S)/2": end + (end - start) // 2, "S+(L-S)/2": start + (end - start) // 2}
    if isinstance(value, str) and value not in offsets:
        raise TableError(f"offset {value!r} is not understood")
    return offsets[value] if isinstance(value, str) else value


class Requests:
    """The state of a case.

    Attributes:
        restarted: the cluster of cases that restart a broker.
    """

    def __init__(self, given: Fields, rules: Rules) -> None:
        self.given = given
        self.rules = rules
        self.leader_epoch = epoch_of(given.get("leader_epoch", NO_EPOCH))
        self.restarted: RunningCluster | None = None

    def _partition(self, *, leads: bool, entries: Iterable[Iterable[int]], leo: int, strict: bool = True) -> Partition:
        cache = make_cache(entries, strict=strict)
        epoch = cache.latest or 0 if self.leader_epoch == NO_EPOCH else self.leader_epoch
        log = make_log(records(leo, 0))
        return make_partition(log, cache, self.rules, hw=leo, leader_epoch=epoch, leads=leads)

    def _role(self, op: Fields) -> str:
        return str(op.get("to") or self.given.get("partition") or self.given.get("role", "leader"))

    def _ask_for_another(self, current: int, epoch: int) -> Seen:
        """Ask a broker for an unknown partition."""
        broker = ScriptedBroker(self.rules)
        asks = [("unknown", current, epoch)]
        broker.asker.send(LEADER, OffsetsForLeaderEpochRequest(ASKER, asks, [current], with_epoch=True))
        broker.pass_time(SECOND_US)
        reply = broker.asker.answers[-1]
        assert isinstance(reply, OffsetsForLeaderEpochResponse)
        return _seen(*reply.results[0][1:])

    def _leads(self, op: Fields) -> bool:
        """Whether the broker that is asked leads. Without a replica or log it does not."""
        role = self._role(op)
        if role not in ("leader", "follower", "known, no local log") and not role.startswith("non"):
            raise TableError(f"nobody is known as {role!r}")
        return bool(role == "leader")

    def _subject(self, op: Fields) -> Partition:
        given, leads = self.given, self._leads(op)
        if "own_end_offset_for" in given:
            answers, asked = dict(given["own_end_offset_for"]), op["leader_epoch"]
            found, end = answers[str(asked)]
            latest = asked if found == asked else asked + 1
            entries, strict = entries_answering(answers, asked, latest, end)
            return self._partition(leads=leads, entries=entries, leo=end, strict=strict)
        return self._partition(leads=leads, entries=given.get("epochs_in_log", ()), leo=given.get("leo", 0))

    def ask(self, op: Fields) -> Seen:
        """Send one request, for one partition or for all given ones."""
        current, epoch = epoch_of(op.get("current_leader_epoch")), op["leader_epoch"]
        if "records" in self.given:
            counts = self.given["records"]
            partitions = {name: self._partition(leads=True, entries=[(0, 0)], leo=counts[name]) for name in counts}
            partitions[self.given["not_leader_for"]] = self._partition(leads=False, entries=(), leo=0)
            return Seen({name: _answer(partition, current, epoch) for name, partition in partitions.items()})
        if self._role(op).startswith("unknown"):
            return self._ask_for_another(current, epoch)
        answer = _answer if op.get("only_from_leader", True) else _answer_of_anybody
        return answer(self._subject(op), current, epoch)

    def fetch(self, op: Fields) -> Seen:
        """A consumer's fetch that carries a last epoch, to the leader of a log with two epochs of some length."""
        epochs, letters = _lengths(self.given["leader_epochs"])
        starts = [(epochs["E1"], 0), (epochs["E2"], letters["S"])]
        partition = make_partition(
            make_log(records(letters["L"], epochs["E2"])),
            make_cache(starts),
            self.rules,
            hw=letters["L"],
            leader_epoch=epochs["E2"],
            leads=True,
        )
        last_epoch = epochs[op["last_fetched_epoch"]]
        offset = _offset(op["fetch_offset"], letters)
        error = partition.check_fetch(offset, epochs[op["current_leader_epoch"]], last_epoch, client=True)
        answer = None
        if error == DIVERGING_EPOCH:
            error, answer = "", partition.diverging(last_epoch)
        batches = [] if error or answer else partition.read_committed(offset)
        return Seen(
            error=error or "NONE",
            records=sum(batch.count for batch in batches),
            diverging=Matching(
                answer,
                lambda expected: answer == (expected and tuple({**epochs, **letters}[letter] for letter in expected)),
            ),
        )

    def restart(self, _: Fields) -> Seen:
        """A record before the first restart, and one after each; all of the only replica.

        The source test never restarts the controller, which holds no replica.
        """
        if self.given["replicas"] != 1:
            raise TableError("only a single replica is restarted")
        running = self.restarted
        if running is None:
            running = self.restarted = RunningCluster(1, self.rules, {}, controller_apart=True)
            running.write(1)
        running.stop(1)
        running.start(1)
        running.write(1)
        partition = running.partition(1)
        seen = Seen(leo=partition.log.leo)
        for epoch in range(partition.leader_epoch + 1):
            error, found, end = partition.end_offset_for(NO_EPOCH, epoch, with_epoch=True)
            assert not error
            seen[f"epoch_{epoch}"] = (found, end)
            seen[f"epoch_{epoch}_end"] = end
        return seen


KIND = Kind(
    begin=Requests,
    ops={
        "end_offset_request": Requests.ask,
        "consumer_fetch": Requests.fetch,
        "after_first_restart": Requests.restart,
        "after_second_restart": Requests.restart,
    },
)
