"""Steps of the protocol as a trace shows them, and what writes them down."""

from __future__ import annotations

from typing import Any, Final

SCHEMA_VERSION: Final = 1

STEPS: Final[dict[str, str]] = {
    "append": "a batch entered a broker's log: offset = base, last, leader_epoch of the batch, record = first id; "
    "producer_id, producer_epoch and sequence of an idempotent producer's",
    "truncate": "a broker truncated, perhaps nothing: offset = resulting LEO, leader_epoch it follows",
    "replicated": "a leader learnt a follower's LEO: follower, offset = LEO",
    "hw": "a broker's high watermark moved: offset = HW",
    "elected": "a leader was chosen and persisted (broker 0: none): leader_epoch",
    "isr": "an ISR was persisted: isr, leader_epoch",
    "lead": "a broker became leader: leader_epoch, offset = LEO",
    "follow": "a broker became follower: leader, leader_epoch, offset = LEO",
    "settled": "a follower finished truncation: leader_epoch, rounds = answers about epoch ends that it took",
    "ack": "a producer received success: record = first id, offset = base offset, acks, answered_at",
    "read": "a consumer was shown records: offset = first, last, leader_epoch of the answer; position before it, "
    "batch_epoch of the leader that appended them",
    "end-offset": "a consumer received a ListOffsets(latest) answer: offset, leader_epoch, asked_at",
    "out-of-range": "a consumer was told that its position is out of range: offset",
    "kill": "a process was killed",
    "power-loss": "a machine lost power",
    "shutdown": "a broker was shut down in a controlled way",
    "halt": "a broker exited by itself",
    "start": "a process started",
    "recovered": "a broker loaded its logs: offset = LEO, log_start, hw, lost = ids of records lost since its last end",
    "registered": "a broker registered, and (ZooKeeper) its session is open",
    "session-end": "a broker's session ended (KRaft: it was fenced)",
    "log-start": "a broker's log start moved: offset",
    "cut": "a directed link was cut: source, target",
    "heal": "a directed link works again: source, target",
    "exit": "a broker exited at start-up, since an earlier registration was in the way",
    "controller": "a broker became controller: controller_epoch",
    "deleted": "a broker deleted its replica, which was reassigned",
    "epoch-raised": "the leader epoch was raised and nothing else: broker = leader, leader_epoch",
    "converged": "the cluster is whole again and answered a write and a read",
    "acknowledges": "a leader answers success to acks=all: record = first id, min_isr that it goes by",
    "reset": "a consumer went where auto.offset.reset says: offset",
    "seek": "an application chose where its consumer reads on: offset, leader_epoch of the record before (-1: unknown)",
    "truncation-detected": "a consumer's application was told that the log was truncated (LogTruncationException): "
    "offset = position, divergent_offset (-1: unknown), leader_epoch that ends there",
    "rewind": "a consumer went back silently to where the log was truncated: offset, position before it",
    "commit": "a consumer committed: offset, leader_epoch of the record before (-1: unknown)",
    "restart-consumer": "a consumer's process began anew at the committed offset: offset (-1: none)",
    "offset-for-time": "a consumer received the offset of the first record from one on: record, offset (-1: none)",
    "producer-id": "an idempotent producer goes on with another id or epoch: producer_id, producer_epoch",
    "pause": "a process (0: the control plane) stands still",
    "resume": "a process goes on",
    "disk-stalled": "a broker's disk does not answer: its partition stands still, its session does not",
    "disk-works": "a broker's disk answers again",
    "slow": "a directed link takes longer: source, target, value = us",
    "lossy": "a directed link loses messages: source, target, value = of a thousand",
    "resent": "on a directed link requests arrive twice: source, target, value = of a thousand",
    "disk-replaced": "a machine's disk was replaced by an empty one",
    "corrupt-tail": "the newest batches of a log became unreadable while no process ran",
    "unfenced": "a broker was unfenced (KRaft): its session is open",
    "elr": "eligible leader replicas were persisted: elr, last_known_elr, leader_epoch",
}
"""Step -> what its fields mean. Every step also has ``t`` (us) and, where it fits, ``broker``."""

MOMENTS: Final[dict[str, str]] = {
    "append": "a batch entered a log, a leader's or a follower's",
    "replicated": "a leader learnt a follower's LEO",
    "commit": "a leader's HW moved up",
    "hw": "a follower's HW moved, as a fetch told it",
    "acknowledges": "a leader answers success to acks=all",
    "ack": "a producer received success",
    "read": "a consumer was shown records",
    "elected": "a leader was chosen and persisted",
    "lead": "a broker is about to lead",
    "follow": "a broker follows a leader or an epoch that is new to it",
    "truncate": "a follower truncated, perhaps nothing",
    "settled": "a follower finished truncation",
    "isr-sent": "a leader asks for another ISR",
    "isr": "an ISR was persisted",
    "joined": "an ISR was persisted that has one member more",
    "registered": "a broker registered",
    "session-end": "a broker's session ended",
    "controller": "a broker became controller",
}
"""Moments that a fault may be aimed at (`sim.history.recorder.Journal.arm`): steps of the protocol in every mode. An
ISR that was asked for is no step of the trace."""

Step = dict[str, Any]
