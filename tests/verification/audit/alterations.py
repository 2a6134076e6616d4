"""Alterations of metadata logs, one at a time, and why an audit may not find one.

A member is replaced by another broker, an epoch is off by one, a record is missing (a NoOpRecord stands in its place,
because offsets that are missing are reported without any rules), or another release's rules are applied.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.audit.image import ClusterImage
from highwater.lab.audit.records import MetadataRecord

if TYPE_CHECKING:
    from random import Random

    from highwater.lab.audit.records import MetadataBatch

ISR: Final = "ISR member"
ELR: Final = "ELR member"
REPLICA: Final = "replica"
EPOCH: Final = "epoch"
DROPPED: Final = "record"
RELEASE: Final = "release"
KINDS: Final = (ISR, ELR, REPLICA, EPOCH, DROPPED, RELEASE)

_MEMBERS: Final = {ISR: "isr", ELR: "eligibleLeaderReplicas", REPLICA: "replicas"}
_EPOCHS: Final[tuple[str, ...]] = ("brokerEpoch", "leaderEpoch", "partitionEpoch")
_FEATURES: Final = "FEATURE_LEVEL_RECORD"

Place = tuple[int, int]
"""Numbers of a batch and of a record in it."""


def altered(batches: list[MetadataBatch], kind: str, rng: Random) -> tuple[list[MetadataBatch], Place] | None:
    """A log with one alteration, and where it is; None if nothing in it can be altered so."""
    places = [
        (number, place)
        for number, batch in enumerate(batches)
        for place, record in enumerate(batch.records)
        if _fits(record, kind)
    ]
    if not places:
        return None
    number, place = rng.choice(places)
    brokers = sorted(
        {record.fields["brokerId"] for batch in batches for record in batch.records if "rack" in record.fields}
    )
    record = batches[number].records[place]
    new = _changed(record, kind, brokers, rng)
    if new is None:
        return None
    records = list(batches[number].records)
    records[place] = new
    after = list(batches)
    after[number] = replace(batches[number], records=records)
    return after, (number, place)


def _fits(record: MetadataRecord, kind: str) -> bool:
    if kind == DROPPED:
        return record.type not in (_FEATURES, "NO_OP_RECORD")
    if kind == EPOCH:
        return any(name in record.fields for name in _EPOCHS)
    return bool(record.fields.get(_MEMBERS[kind]))


def _changed(record: MetadataRecord, kind: str, brokers: list[int], rng: Random) -> MetadataRecord | None:
    if kind == DROPPED:
        return MetadataRecord(record.offset, "NO_OP_RECORD", 0, {})
    fields: dict[str, Any] = dict(record.fields)
    if kind == EPOCH:
        name = rng.choice([name for name in _EPOCHS if name in fields])
        fields[name] += rng.choice((-1, 1))
    else:
        name = _MEMBERS[kind]
        others = [broker for broker in brokers if broker not in fields[name]]
        if not others:
            return None
        members = list(fields[name])
        members[rng.randrange(len(members))] = rng.choice(others)
        fields[name] = members
    return record._replace(fields=fields)


def has_effect(batches: list[MetadataBatch], altered_batches: list[MetadataBatch]) -> bool:
    """Whether partitions, brokers or settings differ after any batch."""
    one, other = ClusterImage(), ClusterImage()
    for batch, altered_batch in zip(batches, altered_batches, strict=True):
        for record, altered_record in zip(batch.records, altered_batch.records, strict=True):
            one.replay(record)
            other.replay(altered_record)
        if _seen(one) != _seen(other):
            return True
    return False


def _seen(image: ClusterImage) -> object:
    partitions = {key: replace(state, offset=0) for key, state in image.partitions.items()}
    return partitions, image.brokers, image.settings, image.features


def follows(batches: list[MetadataBatch], place: Place) -> bool:
    """Whether a later record is about the same partition or broker as the one at a place."""
    about = _about(batches[place[0]].records[place[1]])
    later = [
        *batches[place[0]].records[place[1] + 1 :],
        *(one for batch in batches[place[0] + 1 :] for one in batch.records),
    ]
    return any(_about(record) == about for record in later)


def _about(record: MetadataRecord) -> object:
    fields = record.fields
    return fields.get("topicId"), fields.get("brokerId", fields.get("id")), fields.get("resourceName")
