"""What the observer makes of what a broker says and has on its disk, where both are read at the same look."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from highwater.lab.confirm.observer import Observer
from tests.places import FIXTURES

pytest.importorskip("kafka")

SEGMENT = (FIXTURES / "brokers" / "segment-0.10.2.2.log").read_bytes()
ENDS = (100, 200, 308)
"""Of its three batches, at offsets 0, 1 and 2."""
FOLLOW = "Added fetcher to broker 1 for partition [partition,0] with initOffset 3\n"
TRUNCATE = "Truncating log partition-0 to offset {}.\n"


class World:
    """Broker 2 of a release that asks once, without its process."""

    def __init__(self, folder: Path) -> None:
        log = folder / "partition-0"
        log.mkdir()
        self.segment = log / f"{0:020}.log"
        self.segment.write_bytes(SEGMENT)
        self.output = folder / "broker.log"
        self.output.touch()
        process = SimpleNamespace(poll=lambda: None)
        node = SimpleNamespace(
            id=2,
            log_folder=log,
            output=self.output,
            alive=True,
            incarnation=1,
            process=process,
            stopped=False,
            failed={},
        )
        states = [SimpleNamespace(leader_epoch=1)]
        cluster: Any = SimpleNamespace(
            brokers={2: node},
            history=SimpleNamespace(poll=lambda: [self.decided.pop(0)] if self.decided else [], states=states),
            node=lambda _: node,
            release=SimpleNamespace(number=(1, 1, 1), kraft=False),
            look_at_disks=lambda _: None,
            time_s=0.0,
        )
        self.decided: list[Any] = []
        self.node: Any = node
        self.observer = Observer(cluster, lambda _: None)
        self.observer.poll()

    def says(self, *lines: str) -> None:
        with self.output.open("a", encoding="utf-8") as file:
            file.writelines(lines)

    def looks(self) -> list[tuple[Any, Any]]:
        return [
            (step["step"], step.get("offset", step.get("rounds", -1)))
            for step in self.observer.poll()
            if step["step"] in ("truncate", "settled")
        ]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_finished_truncation_has_the_offset_that_was_logged(world: World) -> None:
    world.says(TRUNCATE.format(2))
    world.segment.write_bytes(SEGMENT[: ENDS[0]])  # A batch goes as a whole.
    assert world.looks() == [("truncate", 2)]


def test_a_truncation_beyond_the_end_ends_there(world: World) -> None:
    world.says(TRUNCATE.format(7))
    assert world.looks() == [("truncate", 3)]


def test_a_response_counts_if_observed_with_or_after_its_request(world: World) -> None:
    world.says(FOLLOW)
    assert world.looks() == []
    world.observer.on_message("epoch-end", 2, 1, {})
    world.says(TRUNCATE.format(2))
    assert world.looks() == [("truncate", 2), ("settled", 1)]
    world.observer.on_message("epoch-end", 2, 1, {})
    world.says(FOLLOW, TRUNCATE.format(1))
    assert world.looks() == [("truncate", 1), ("settled", 1)]


def test_an_answer_that_nobody_waited_for_counts_for_nothing(world: World) -> None:
    world.observer.on_message("epoch-end", 2, 1, {})
    assert world.looks() == []
    world.says(FOLLOW, TRUNCATE.format(1))
    assert world.looks() == [("truncate", 1), ("settled", 0)]


def test_the_first_process_within_an_open_session_is_back_early(world: World) -> None:
    registered, over = {"step": "registered", "broker": 2}, {"step": "session-end", "broker": 2}
    assert not world.observer.is_back_early(world.node)
    world.decided.append(registered)
    world.observer.poll()
    assert not world.observer.is_back_early(world.node)
    world.node.incarnation = 2
    assert world.observer.is_back_early(world.node)
    world.node.alive = False
    assert not world.observer.is_back_early(world.node)
    world.node.alive, world.node.incarnation = True, 3
    assert not world.observer.is_back_early(world.node)
    world.node.incarnation = 2
    world.decided.append(over)
    world.observer.poll()
    assert not world.observer.is_back_early(world.node)
