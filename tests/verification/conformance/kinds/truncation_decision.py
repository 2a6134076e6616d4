"""Driver of kind ``truncation_decision``: a follower's reaction to a leader's response to its epoch request.

Source: ReplicaFetcherThreadTest, whose follower answers look-ups in its own epoch cache from a table; see
`tests.verification.conformance.world.entries_answering`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.protocol.messages import NONE, FetchRequest, OffsetsForLeaderEpochRequest
from sim.protocol.replica.truncation import truncation_state
from tests.verification.conformance.cases import Fields, TableError
from tests.verification.conformance.conversation import Conversation, Replies, make_replica
from tests.verification.conformance.driving import Kind, Seen
from tests.verification.conformance.world import Entry, entries_answering, records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim.protocol.rules import Rules

BEYOND_HW = 50
"""Records above the HW of a follower whose LEO a table leaves out, so that truncation to the HW shows."""
LEADER_EPOCH = 6
_FIRST = "t1p0"


def _code(error: str) -> str:
    return NONE if error == "NONE" else error


def _reply(given: Fields) -> tuple[str, int, int]:
    given.get("response_version")  # It says why there is no epoch.
    return _code(given["error"]), given["epoch"], given["end_offset"]


class Decision:
    """The state of a case: what is given, and the conversation under way.

    Attributes:
        talk: None until an operation begins it.
    """

    def __init__(self, given: Fields, rules: Rules) -> None:
        self.given = given
        # The rules have this behaviour whatever the version was called.
        given.get("inter_broker_protocol")
        given.get("network")
        # Some cases describe the follower without saying of whom they speak.
        self.follower = given.part("follower") if "follower" in given else given
        self.rules = rules
        self.talk: Conversation | None = None

    def converse(self, names: Iterable[str], replies: Replies, asked: int | None = None) -> Conversation:
        """Begin a conversation about equal partitions, except for the differences in ``partitions``."""
        talk = self.talk = Conversation(self.rules, replies)
        partitions = self.given.get("partitions", ())
        for name in names:
            own = partitions[name] if isinstance(partitions, Fields) else self.follower
            self._add(talk, name, own, asked)
        return talk

    def _add(self, talk: Conversation, name: str, own: Fields, asked: int | None) -> None:
        follower = self.follower
        hw = follower.get("hw", 0)
        initial = follower.get("initial_fetch_offset", hw)
        leo = follower.get("leo", max(hw, initial) + BEYOND_HW)
        latest = own["latest_epoch"] if "latest_epoch" in own else follower.get("latest_epoch")
        entries: list[Entry] = []
        strict = True
        if latest is not None:
            answers = dict(follower.part("own_end_offset_for"))
            asked = latest if asked is None or asked < 0 else asked
            entries, strict = entries_answering(answers, asked, latest, leo)
        replica = make_replica(
            name, records(leo, latest or 0), self.rules, talk.host, entries=entries, hw=hw, strict=strict
        )
        talk.add(replica, LEADER_EPOCH, initial)


def _truncation_state(state: Decision, op: Fields) -> Seen:
    """One reply, to a follower made for it or to the one of the operation before."""
    reply = _reply(op["leader_reply"] if "leader_reply" in op else state.given["leader_reply"])
    talk = state.talk
    if talk is None:
        talk = state.converse([_FIRST], Replies({_FIRST: reply}), asked=reply[1])
    state.talk = None
    assert isinstance(talk.leader, Replies)
    if state.rules.follower_truncation == "on-fetch":
        return _diverging(talk, reply)
    talk.leader.by_partition[_FIRST] = reply
    talk.truncation_step()
    offsets = [offset for name, offset in talk.host.truncations if name == _FIRST]
    return Seen(
        offset=offsets[-1] if offsets else None,
        complete=_FIRST in talk.host.settlements,
        next_state=talk.state(_FIRST),
    )


def _diverging(talk: Conversation, reply: tuple[str, int, int]) -> Seen:
    """The same as an answer to a fetch. Whether truncation is complete then only the next fetch shows."""
    error, epoch, end_offset = reply
    assert not error
    replica = talk.replicas[_FIRST]
    _, complete = truncation_state(replica.epochs, replica.log.leo, replica.hw, epoch, end_offset)
    talk.answer_diverging(_FIRST, (epoch, end_offset))
    return Seen(offset=talk.host.truncations[-1][1], complete=complete, next_state=talk.state(_FIRST))


def _reply_rounds(state: Decision, op: Fields) -> Seen:
    """Errors in answer to every epoch request, one partition for each error."""
    errors = {_FIRST if number == 0 else f"t1p{number}": error for number, error in enumerate(op["errors"])}
    talk = state.converse(errors, Replies({name: (_code(error), -1, -1) for name, error in errors.items()}))
    for _ in range(op["n"]):
        talk.round()
    return Seen(truncations=len(talk.host.truncations))


def _no_errors(replies: Fields) -> dict[str, tuple[str, int, int]]:
    return {name: (NONE, epoch, end) for name, (epoch, end) in replies.items()}


def _removal_in_flight(state: Decision, op: Fields) -> Seen:
    talk = state.converse(state.given["partitions"], Replies(_no_errors(op["replies"])))
    talk.meanwhile = lambda: talk.fetcher.remove(op["removed"])
    talk.round()
    return Seen(truncations=dict(talk.host.truncations))


def _three_rounds(state: Decision, op: Fields) -> Seen:
    names = state.given.get("partitions") or op["replies"]
    # Where a table gives no LEO, its test double's is 0.
    talk = state.converse(names, Replies(_no_errors(op["replies"])))
    for _ in range(3):
        talk.round()
    return Seen(
        epoch_requests=talk.epoch_requests, fetch_requests=talk.fetches, truncate_calls=len(talk.host.truncations)
    )


def _epoch_request(state: Decision, op: Fields) -> Seen:
    """The connection breaks under a request. Kafka makes an error reply of it, the core a retry: neither truncates."""
    talk = state.converse([], Replies({}))
    replica = make_replica(_FIRST, records(BEYOND_HW, 0), state.rules, talk.host, entries=[(op["leader_epoch"], 0)])
    talk.add(replica, LEADER_EPOCH)
    talk.truncate_first()
    talk.fetcher.step(talk.now_us)
    request = talk.fetcher.in_flight
    assert isinstance(request, OffsetsForLeaderEpochRequest)
    talk.fetcher.request_failed(request, talk.now_us)
    retries = talk.state(_FIRST) == "truncating" and talk.is_delayed(_FIRST) and not talk.host.truncations
    return Seen(error="UNKNOWN_SERVER_ERROR" if retries else "NONE", epoch=-1, end_offset=-1)


def _fetch_response(state: Decision, op: Fields) -> Seen:
    """A follower whose log reaches the leader's HW hears of it; its own is there already, or is not.

    The host that is told of a new HW wakes the fetches that wait for it.
    """
    hw = op["leader_hw"]
    if op.get("records", 0):
        raise TableError("the leader has nothing new")
    talk = state.converse([], Replies({}, hw=hw))
    own_hw = 0 if op.get("hw_changed_locally") else hw
    latest = state.follower.get("latest_epoch")
    for known in ("leo", "hw", "lag"):
        state.follower.get(known)  # The log is as long as the leader's HW.
    replica = make_replica(
        _FIRST,
        records(hw, latest or 0),
        state.rules,
        talk.host,
        entries=[] if latest is None else [(latest, 0)],
        hw=own_hw,
    )
    talk.add(replica, LEADER_EPOCH, hw)
    talk.host.hw_moves.clear()
    talk.round()
    talk.fetcher.step(talk.now_us)
    request = talk.fetcher.in_flight
    assert isinstance(request, FetchRequest)
    return Seen(delayed_fetches_completed=bool(talk.host.hw_moves), last_fetched_epoch=request.positions[0][3])


KIND = Kind(
    begin=Decision,
    ops={
        "truncation_state": _truncation_state,
        "reply_rounds": _reply_rounds,
        "replies_with_removal_in_flight": _removal_in_flight,
        "three_rounds": _three_rounds,
        "epoch_request": _epoch_request,
        "fetch_response": _fetch_response,
    },
    unmodelled={"lag": "followers know no lag: it serves metrics only"},
)
