from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from highwater.lab.audit.audit import audit, rules_of
from highwater.lab.audit.distance import AuditDistances, Distances
from highwater.lab.audit.situations import Settings
from highwater.lab.audit.stories import new_partition
from tests.places import ROOT
from tests.verification.distances import check_distance, check_walk, walk

if TYPE_CHECKING:
    from highwater.lab.audit.distance import Distance

LOGS = ROOT / "tests" / "fixtures" / "metadata"


def of_new(release: str, replicas: int, min_isr: int, brokers: int, most_events: int = 4) -> Distance:
    _, rules = rules_of(release)
    settings = Settings(rules, min_isr, elr=release != "3.9.0", unclean=False)
    return Distances(settings, most_events).of(new_partition(range(1, brokers + 1), replicas))


def mixtures(found: Distance) -> list[tuple[int, int]]:
    return [(story.unclean, story.others) for story in found.loss]


@pytest.mark.parametrize(
    ("release", "replicas", "min_isr", "brokers", "loss"),
    [
        ("3.9.0", 2, 1, 2, [(1, 2), (2, 1)]),
        ("4.3.1", 2, 1, 2, [(1, 2), (2, 1)]),
        ("3.9.0", 2, 2, 2, [(1, 2), (2, 1)]),
        ("4.1.0", 3, 2, 3, []),
        ("4.2.1", 2, 2, 3, [(2, 2)]),
        ("4.3.1", 2, 2, 3, [(0, 4), (1, 3), (2, 2)]),
    ],
)
def test_new_partitions(release: str, replicas: int, min_isr: int, brokers: int, loss: list[tuple[int, int]]) -> None:
    """With 4.3.1, a replica that is moved away and back leads without its log (reassignment-back)."""
    assert mixtures(of_new(release, replicas, min_isr, brokers)) == loss


def test_a_bound_is_told() -> None:
    found = of_new("4.3.1", 2, 2, 3, most_events=2)
    assert (found.loss, found.within, found.order) == ((), 2, (3, 0))


@pytest.mark.world
def test_a_partition_whose_only_eligible_member_is_no_replica() -> None:
    found = audit([LOGS / "reassignment-again-4.3.1.txt.xz"], explain=False, keep_histories=True)
    (key,) = found.image.partitions
    distances = AuditDistances(found, most_events=3)
    now, nearest = distances.now(key), distances.nearest(key)
    assert [(story.unclean, story.others) for story in now.leaderless] == [(0, 0)]
    assert mixtures(now) == [(0, 3)]
    assert nearest is not None
    assert (nearest.offset, nearest.distance.order) == (70, (2, 0))
    approach = distances.approach(key)
    assert approach is not None
    assert [step.text for step in approach.steps][:4] == [
        "broker 2 is stopped cleanly",
        "broker 3 is stopped cleanly",
        "the partition is moved to 2 4",
        "broker 4 joins the ISR",
    ]


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_stories_lose_records_when_played_and_nothing_is_shorter(seed: int) -> None:
    one = walk(("3.9.0", "4.1.0", "4.2.1", "4.3.1")[seed - 1], seed, 2)
    played, wrong = check_distance(one)
    assert not wrong
    assert played or seed > 1


@pytest.mark.parametrize("seed", range(100, 112))
def test_the_simulation_ends_as_the_model(seed: int) -> None:
    assert not check_walk(walk(("3.9.0", "4.1.0", "4.2.1", "4.3.1")[seed % 4], seed, 6))
