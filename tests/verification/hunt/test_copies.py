from __future__ import annotations

from typing import Any

import pytest

from sim.protocol.client.consumer_position import ConsumerPosition
from sim.protocol.kraft.metadata import MetadataImage
from sim.protocol.log.log import Log
from sim.protocol.messages import FetchResponse
from tests.plain import needs_sources
from tests.verification.hunt.copies import PAIRS, begun, differences, differs


@needs_sources
@pytest.mark.parametrize(("name", "mode"), PAIRS)
@pytest.mark.parametrize("seed", range(2))
def test_a_copy_of_a_run_ends_like_the_run(name: str, mode: str, seed: int) -> None:
    """`python -m tests.verification.hunt.copies` tries 200."""
    assert differs(name, mode, seed) == ""


@needs_sources
def test_copy_of_a_run_with_records_in_flight_ends_like_the_run() -> None:
    run = begun("reassignments", "kip320", 15)
    events = [event for _, event in run.kernel.scheduled.values()]
    assert [
        event for event in events if isinstance(event, FetchResponse) and any(result[2] for result in event.results)
    ]
    assert differences(run) == ""


@needs_sources
@pytest.mark.parametrize("shared", [Log, MetadataImage, ConsumerPosition])
def test_a_copy_that_shares_state_is_found(shared: type, monkeypatch: pytest.MonkeyPatch) -> None:
    def itself(value: Any, _: object) -> Any:
        return value

    monkeypatch.setattr(shared, "__deepcopy__", itself, raising=False)
    found = []
    for seed in range(3):
        try:
            found.append(differs("elr-chaos", "elr", seed))
        except (AssertionError, ValueError, KeyError, IndexError, RuntimeError) as error:
            found.append(type(error).__name__)
    assert any(found)
