"""The pages that are made from the code, without building the site: `make lint` builds it."""

from __future__ import annotations

import re
from typing import Any, get_args, get_type_hints

import pytest

import highwater.plugin
from scenarios.format.plugin import DecisionFunctions
from sim.history import steps
from sim.protocol.decision_points import POINTS
from tests.places import ci_program
from tests.plain import needs_sources

pytestmark = needs_sources  # Compiled classes have no comments on their fields.


@pytest.fixture(scope="module")
def docs() -> Any:
    return ci_program("docs")


def test_a_page_that_is_made_from_the_code_may_not_be_in_the_tree(docs: Any) -> None:
    made = {"reference/settings.md": "# Settings\n", "tickets/topic-recreated.md": "# Topic\n", "a.sh": "#!/bin/sh\n"}
    docs.check_tree({"a.md": "# Other\n\n# Settings", "b.md": "# Topic"}, made, by_hand={"topic-recreated"})
    with pytest.raises(SystemExit, match=r"a\.md is made from the code: reference/settings\.md"):
        docs.check_tree({"a.md": "# Settings\n\nOld."}, made, by_hand=set())


def test_a_page_becomes_a_link_where_another_names_it(docs: Any) -> None:
    """So a wrong name is a broken link of the site."""
    named = {page for text in docs.pages().values() for page, _ in re.findall(docs.BUILT, text)}
    assert len(named) > 5
    assert docs.linked("sim/a.md", "x `build/site/tickets/index.html#y`") == "x [tickets/index](../tickets/index.md#y)"


# The reference of plug-ins.


@pytest.fixture(scope="module")
def page() -> str:
    found: str = ci_program("plugin_reference").reference()
    return found


def test_every_name_of_the_interface_is_there(page: str) -> None:
    reference = ci_program("plugin_reference")
    assert reference.names().keys() == {*highwater.plugin.__all__}
    listed = set(re.findall(r"^(?:### |\| )`(\w+)", page, re.M))
    assert {*highwater.plugin.__all__} - listed == {"Cluster"}  # Its parts are there.
    assert all(f"### `{part}`" in page for part in reference.CLUSTER)


def test_every_step_and_situation_is_there(page: str) -> None:
    methods = {kind.method for kind in steps.KINDS} - {steps.CONVERGED.method}  # That of no class of its own.
    assert methods <= set(re.findall(r"^### `(\w+)\(step: ", page, re.M))
    assert {point.situation.__name__ for point in POINTS.values()} <= set(re.findall(r"^### `(\w+)`", page, re.M))
    assert {*POINTS} < set(re.findall(r"^\| `(\w+)` \| `Callable", page, re.M))


def test_everything_has_a_type_and_a_meaning(page: str) -> None:
    rows = re.findall(r"^\| `.*$", page, re.M)
    assert len(rows) > 200
    assert [row for row in rows if re.search(r"\|  \|", row)] == []


def test_functions_of_decision_points_have_the_types_of_situation_and_answer() -> None:
    functions = {name: get_args(hint) for name, hint in get_type_hints(DecisionFunctions).items()}
    assert functions.keys() == POINTS.keys()
    for name, ((answer, situation), returned) in functions.items():
        assert (answer, situation) == (returned, POINTS[name].situation)
        assert POINTS[name].answer in (str(answer), answer.__name__)
