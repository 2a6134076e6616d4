"""The reference of plug-ins is that of the sources."""

from __future__ import annotations

import re

import pytest

import highwater.plugin
from highwater.plugin_reference import CLUSTER, names, reference
from sim.history import steps
from sim.protocol.decision_points import POINTS


@pytest.fixture(scope="module")
def page() -> str:
    return reference()


def test_every_name_of_the_interface_is_there(page: str) -> None:
    assert names().keys() == {*highwater.plugin.__all__}
    listed = set(re.findall(r"^(?:### |\| )`(\w+)", page, re.M))
    assert {*highwater.plugin.__all__} - listed == {"Cluster"}  # Its parts are there.
    assert all(f"### `{part}`" in page for part in CLUSTER)


def test_every_step_and_situation_is_there(page: str) -> None:
    methods = {kind.method for kind in steps.KINDS} - {steps.CONVERGED.method}  # That of no class of its own.
    assert methods <= set(re.findall(r"^### `(\w+)\(step: ", page, re.M))
    assert {point.situation.__name__ for point in POINTS.values()} <= set(re.findall(r"^### `(\w+)`", page, re.M))


def test_everything_has_a_type_and_a_meaning(page: str) -> None:
    rows = re.findall(r"^\| `.*$", page, re.M)
    assert len(rows) > 200
    assert [row for row in rows if re.search(r"\|  \|", row)] == []
