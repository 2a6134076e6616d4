"""Probes of controllers and of sessions."""

from __future__ import annotations

from typing import Final

from sim.protocol.messages import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NOT_CONTROLLER,
    STALE_BROKER_EPOCH,
)
from sim.protocol.probe import probe


def _election(name: str, meaning: str) -> int:
    return probe("election", name, meaning)


ELECTED_FIRST: Final = _election("elected-first", "a new partition gets its first leader")
ELECTED_OFFLINE: Final = _election("elected-offline", "the leader is gone: an ISR member is elected")
ELECTED_AGAIN: Final = _election("elected-again", "the leader is back before an election: it is elected again")
ELECTED_UNCLEAN: Final = _election("elected-unclean", "the leader is gone: a replica outside the ISR is elected")
ELECTED_NOBODY: Final = _election("elected-nobody", "the leader is gone, and there is no candidate")
ELECTED_PREFERRED: Final = _election("elected-preferred", "the preferred replica takes over")
PREFERRED_UNFIT: Final = _election("preferred-unfit", "the preferred replica cannot, or need not, take over")
ELECTED_SHUTDOWN: Final = _election("elected-shutdown", "a leader in controlled shutdown is replaced")
SHUTDOWN_NOBODY: Final = _election("shutdown-nobody", "a leader in controlled shutdown cannot be replaced")
ELECTED_REASSIGNED: Final = _election("elected-reassigned", "a reassignment moves the leader")
REASSIGNMENT_BEGINS: Final = _election("reassignment-begins", "a reassignment adds replicas")
REASSIGNMENT_DONE: Final = _election("reassignment-done", "a reassignment completes")
LEADER_REMOVED: Final = _election("leader-removed", "the leader goes offline, and the partition has no leader")
EPOCH_RAISED: Final = _election("epoch-raised", "only the leader epoch changes")


def _controller(name: str, meaning: str) -> int:
    return probe("controller", name, meaning)


CONTROLLER_FAILOVER: Final = _controller("controller-failover", "another controller is elected")
CONTROLLER_WRITE_REFUSED: Final = _controller(
    "controller-write-refused", "ZooKeeper refuses a write of an earlier controller"
)
CONTROLLER_WRITE_STALE: Final = _controller(
    "controller-write-accepted", "ZooKeeper accepts a write of an earlier controller"
)
CONTROLLER_FINISHES: Final = _controller(
    "controller-finishes", "a controller finishes a step after its session expired"
)
BOUNCE: Final = _controller("bounce", "a controller sees that a broker registered again")
MISSED_BOUNCE: Final = _controller("missed-bounce", "an ISR member registered again while there was no controller")


def _kraft(name: str, meaning: str) -> int:
    return probe("kraft", name, meaning)


ELECTED_FROM_ISR: Final = _kraft("elected-from-isr", "an ISR member is elected")
ELECTED_FROM_ELR: Final = _kraft("elected-from-elr", "the ISR is empty: an ELR member is elected")
ELECTED_LAST_KNOWN: Final = _kraft("elected-last-known", "ISR and ELR are empty: the last known leader is elected")
ELECTED_DESIGNATED: Final = _kraft(
    "elected-designated", "an administrator or an unclean recovery designates the leader"
)
LEFT_LEADERLESS: Final = _kraft("left-leaderless", "the leader cannot lead, and there is no candidate")
ELR_GROWS: Final = _kraft("elr-grows", "a replica leaves a small ISR and joins the ELR")
ELR_CLEARED: Final = _kraft(
    "elr-cleared", "the ELR is cleared: the ISR is large enough, or min.insync.replicas changed"
)
ELR_EJECTED: Final = _kraft("elr-ejected", "an ELR member registers after an unclean shutdown")
BROKER_FENCED: Final = _kraft("broker-fenced", "a broker is fenced")
BROKER_UNFENCED: Final = _kraft("broker-unfenced", "a broker is unfenced")
BROKER_BEHIND: Final = _kraft("broker-behind", "a broker stays fenced until it has replayed its registration")
BROKER_RELIEVED: Final = _kraft("broker-relieved", "a broker in controlled shutdown leaves all ISRs")
BROKER_MAY_STOP: Final = _kraft("broker-may-stop", "a broker in controlled shutdown may stop")
BROKER_MUST_WAIT: Final = _kraft(
    "broker-must-wait", "a broker in controlled shutdown must wait: for a new leader, or for other brokers' metadata"
)
REGISTERED_CLEAN: Final = _kraft("registered-clean", "a new incarnation registers after a clean shutdown")
REGISTERED_UNCLEAN: Final = _kraft("registered-unclean", "a new incarnation registers after an unclean shutdown")
REGISTRATION_DUPLICATE: Final = _kraft(
    "registration-duplicate", "a registration is refused: an earlier session is open"
)
ALTER_STALE_BROKER: Final = _kraft("alter-stale-broker", "an AlterPartition of an earlier registration is refused")
ALTER_NOT_CONTROLLER: Final = _kraft(
    "alter-not-controller", "an AlterPartition is refused: its sender knows newer epochs"
)
ALTER_FENCED: Final = _kraft("alter-fenced", "an AlterPartition is refused: its leader epoch is outdated")
ALTER_OUTDATED: Final = _kraft("alter-outdated", "an AlterPartition is refused: its partition epoch is outdated")
ALTER_INVALID: Final = _kraft(
    "alter-invalid", "an AlterPartition is refused: its ISR is invalid, or its sender does not lead"
)
ALTER_INELIGIBLE: Final = _kraft("alter-ineligible", "an AlterPartition is refused: a member is ineligible")
ALTERS: Final = {
    STALE_BROKER_EPOCH: ALTER_STALE_BROKER,
    NOT_CONTROLLER: ALTER_NOT_CONTROLLER,
    FENCED_LEADER_EPOCH: ALTER_FENCED,
    INVALID_UPDATE_VERSION: ALTER_OUTDATED,
    INVALID_REQUEST: ALTER_INVALID,
    INELIGIBLE_REPLICA: ALTER_INELIGIBLE,
}
ALTER_ELECTS: Final = _kraft("alter-elects", "an AlterPartition completes a reassignment that changes the leader")
REASSIGNMENT_WAITS: Final = _kraft("reassignment-waits", "a reassignment does not complete: the ISR is too small")
DIRECTORY_ASSIGNED: Final = _kraft("directory-assigned", "a broker reports another log directory of its replica")
CANCEL_REFUSED: Final = _kraft("cancel-refused", "a reassignment cannot be cancelled: the ISR would be too small")
ISR_HELD: Final = _kraft("isr-held", "a broker that is gone stays in a small ISR")
RECOVERY_BEGINS: Final = _kraft("recovery-begins", "an unclean recovery begins: replicas are asked for their log ends")
RECOVERY_ELECTS: Final = _kraft("recovery-elects", "an unclean recovery elects the longest log")
RECOVERY_DROPPED: Final = _kraft("recovery-dropped", "an unclean recovery ends without an election")
RECOVERY_REPLY_STALE: Final = _kraft("recovery-reply-stale", "a response about a log end is outdated")
DIRECTORY_OFFLINE: Final = _kraft("directory-offline", "a heartbeat reports a failed log directory")
OFFLINE_ASSIGNED: Final = _kraft("offline-assigned", "a replica is assigned to a log directory that has failed")
CONTROLLER_CRASHED: Final = _kraft("controller-crashed", "an event throws an exception, and the controller resigns")


def _session(name: str, meaning: str) -> int:
    return probe("session", name, meaning)


SESSION_EXPIRES_ALIVE: Final = _session("expires-alive", "a session ends while its broker runs")
SESSION_EXPIRES_DEAD: Final = _session("expires-dead", "a session ends after its broker ended")
EXPIRY_HEARD: Final = _session("expiry-heard", "a broker is notified that its session expired")
REGISTRATION_REFUSED: Final = _session("registration-refused", "a registration is refused: an earlier one still exists")
REQUEST_REPEATED: Final = _session("request-repeated", "ZooKeeper gets a request again that it has executed")
