"""The leader epoch cache: Kafka's LeaderEpochFileCache against that of `sim.protocol.log`.

Operations: ``assign epoch offset``, ``end epoch leo`` (where an epoch ended), ``truncate-end offset``, ``truncate-start
offset``, ``clear``, ``load`` (a new cache from the file of the old); from 3.9 on ``epoch-of offset``, ``near epoch``
(previous epoch, whether there is an entry, next epoch). To be seen are the answer and the entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.protocol.log.leader_epoch_file_cache import LeaderEpochCheckpointFile, LeaderEpochFileCache
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.protocol.rules import Rules

REFUSES_NEGATIVE: Final = tuple(since("3.9.0"))
LOOKS_AROUND: Final = REFUSES_NEGATIVE


def draw(rng: Random, release: str) -> Case:
    """Mostly ascending epochs and offsets, as in logs; otherwise random ones."""
    case: Case = []
    epoch = offset = 0
    lowest = -1 if release in REFUSES_NEGATIVE else 0
    names = ["end", "end", "truncate-end", "truncate-start", "clear", "load"]
    names += ["epoch-of", "near"] if release in LOOKS_AROUND else []
    for _ in range(rng.randint(1, 14)):
        if rng.random() < 0.5:
            if rng.random() < 0.7:
                epoch += rng.choice((0, 1, 1, 2))
                offset += rng.choice((0, 1, 2, 5))
                case.append(["assign", epoch, offset])
            else:
                case.append(["assign", rng.randint(lowest, epoch + 2), rng.randint(lowest, offset + 3)])
            continue
        name = rng.choice(names)
        if name == "end":
            case.append([name, rng.randint(-1, epoch + 2), offset + rng.randint(0, 4)])
        elif name in ("truncate-end", "truncate-start", "epoch-of"):
            case.append([name, rng.randint(-1, offset + 3)])
        elif name == "near":
            case.append([name, rng.randint(0, epoch + 2)])
        elif name == "load" or rng.random() < 0.3:
            case.append([name])
    return case or [["clear"]]


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    file = LeaderEpochCheckpointFile()
    strict = rules.epoch_recorded_at == "election"
    cache = LeaderEpochFileCache(file, strict=strict)
    seen: Seen = []
    for name, *values in case:
        answer: Any = None
        if name == "load":
            cache = LeaderEpochFileCache(file, strict=strict)
        else:
            answer = _do(cache, name, values, names_epochs=rules.names_epochs)
        seen.append([answer, [[epoch, start] for epoch, start in cache.entries]])
    return seen


def _do(cache: LeaderEpochFileCache, name: str, values: list[int], *, names_epochs: bool) -> Any:
    match name:
        case "assign":
            try:
                cache.assign(*values)
            except ValueError:
                return "refused"
        case "end":
            end = cache.end_offset_for(*values)
            return list(end) if names_epochs else [end[1]]
        case "truncate-end":
            cache.truncate_from_end(*values)
        case "truncate-start":
            cache.truncate_from_start(*values)
        case "clear":
            cache.clear()
        case "epoch-of":
            return cache.epoch_for_offset(*values)
        case "near":
            previous, following = cache.previous(*values), (epoch for epoch in cache.epochs if epoch > values[0])
            return [previous and previous[0], cache.entry(*values) is not None, next(following, None)]
        case _:
            raise ValueError(f"unknown operation {name!r}")
    return None


SUBJECT: Final = Subject(
    "epoch-cache",
    "highwater.EpochCache",
    since("1.1.1"),
    draw,
    run,
    quick=5_000,
    usual=50_000,
    deep=1_000_000,
)
