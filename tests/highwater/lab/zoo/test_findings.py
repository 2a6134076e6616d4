from __future__ import annotations

import pytest

from highwater.lab.hunt.arms import Arm
from highwater.lab.hunt.examining import look
from highwater.lab.zoo.findings import has_needed, known
from scenarios.format import catalogue
from scenarios.format.findings import recognised
from sim.errors import InputError
from sim.protocol.modes import mode


def test_a_hidden_finding_is_off_the_list() -> None:
    names = [finding.name for finding in known(["reassignment-back"])]
    assert "reassignment-back" not in names
    assert len(names) == len(recognised()) - 1


def test_a_finding_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match=r"--hide reassignment-bak: no known finding .*'reassignment-back'"):
        known(["reassignment-bak"])


@pytest.mark.parametrize(
    ("name", "faults", "told"),
    [
        ("reassignment-back", ["reassignment", "controlled-restart", "reassignment"], True),
        ("reassignment-back", ["reassignment", "controlled-restart"], False),
        ("recreated-topic", ["message-hold", "topic-deletion"], True),
        ("recreated-topic", ["kill", "topic-deletion"], False),
        ("directory-assignment", ["power-loss", "disk-replaced"], True),
        ("directory-assignment", ["power-loss", "power-loss"], False),
        ("offline-directory", ["directory-added", "directory-failure"], True),
        ("offline-directory", ["directory-removed", "power-loss"], False),
        ("offline-directory", ["directory-failure"], False),
        ("kafka-15591", [], True),
    ],
)
def test_a_story_needs_its_faults(name: str, faults: list[str], told: bool) -> None:
    assert has_needed(recognised()[name], faults) == told


@pytest.mark.parametrize(
    ("scenario", "seed", "name"),
    [("removals", 6000002108, "removed-directory"), ("directories", 6000064002, "throttled-move")],
)
def test_a_loss_that_shows_first_as_a_regression_of_the_high_watermark_is_known(
    scenario: str, seed: int, name: str
) -> None:
    arm = Arm(f"{scenario}/elr-4.3", catalogue.load(scenario), mode("elr-4.3"))
    assert look(arm, seed, "hw-regression", known()).known == name


def test_the_first_seed_of_a_finding_is_recognised_unless_hidden() -> None:
    arm = Arm("reassignments/elr-4.3", catalogue.load("reassignments"), mode("elr-4.3"))
    assert look(arm, 253, "committed-loss", known()).known == "reassignment-back"
    hidden = look(arm, 253, "committed-loss", known(["reassignment-back"]))
    assert (hidden.known, hidden.looks) == ("", "loss: elr_outside_assignment=dropped")
