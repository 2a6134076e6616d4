from __future__ import annotations

import json
from copy import copy
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from highwater.lab.hunt import page
from highwater.lab.hunt import state as states
from highwater.lab.hunt.arms import Arm
from highwater.lab.hunt.hunter import Hunt
from highwater.lab.hunt.state import ArmState, FailureCause, HuntState, Written
from scenarios.format.catalogue import load
from sim.errors import InputError, StorageError, UnavailableError
from sim.protocol.modes import MODES
from tests.highwater.lab.hunt.test_hunter import ABOUT as HUNTED
from tests.trees import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

ABOUT = {"kafka": "4.4.0", "hidden": ["reassignment-back"], "seed": 7}
ARM = Arm("power/hw", load("power"), MODES["hw"])
PLAN = '{"schema_version": 1, "scenario": {}}'


def full() -> HuntState:
    state = HuntState(ABOUT, arms={"power/hw": ArmState(107, 100)})
    state.causes["loss: x"] = FailureCause("x", "", "", 2, 1, "power/hw", 9, 100, {"power/hw": 2}, 1)
    state.written[1] = Written("loss: x", "committed-loss", ["a=b"], ["1 s: it dies"], ["kill"], "highwater", True, "1")
    state.provisional["loss: x"] = [2, "loss: x", {}]
    state.pending.append({"arm": "power/hw", "seed": 8, "kind": "divergence", "looks": "", "known": ""})
    return state


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    states.save(tmp_path, full())
    assert states.load(tmp_path, ABOUT) == full()
    assert [path.name for path in tmp_path.iterdir()] == [states.STATE]


def test_an_empty_folder_gets_a_new_hunt(tmp_path: Path) -> None:
    assert states.load(tmp_path / "new" / "hunt", ABOUT) == HuntState(ABOUT)


def test_a_folder_of_other_results_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"holds something else than a hunt \(run.json\)"):
        states.load(tmp_path, ABOUT)


@pytest.mark.parametrize("key", ABOUT)
def test_another_hunt_is_refused_with_the_difference(tmp_path: Path, key: str) -> None:
    states.save(tmp_path, full())
    other = {**ABOUT, key: ["forgotten-expansion"] if key == "hidden" else 3}
    with pytest.raises(InputError, match=rf"holds another hunt: {key} is "):
        states.load(tmp_path, other)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 99}', '{"schema_version": 1, "arms": 3}', "\x00"])
def test_a_broken_state_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / states.STATE).write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        states.load(tmp_path, ABOUT)
    assert len(caught.value.problems) == 1


def test_a_full_disk_keeps_the_state_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states.save(tmp_path, full())

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(StorageError, match="No space left"):
        states.save(tmp_path, HuntState(ABOUT))
    assert states.load(tmp_path, ABOUT) == full()
    assert [path.name for path in tmp_path.iterdir()] == [states.STATE]


def test_two_hunts_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        states.alone(tmp_path),
        pytest.raises(UnavailableError, match="another hunt is at work"),
        states.alone(tmp_path),
    ):
        pass
    with states.alone(tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_what_a_killed_hunt_was_writing_is_removed(tmp_path: Path) -> None:
    states.save(tmp_path, full())
    half = json.dumps(full().to_json())[:50]
    (tmp_path / ".hunt.json.0badcafe").write_text(half, encoding="utf-8")
    assert states.load(tmp_path, ABOUT) == full()
    assert [path.name for path in tmp_path.rglob("*")] == [states.STATE]
    states.write_finding(tmp_path, "1", {states.STORY: f"{states.STORY_TITLE}\nold"})
    (tmp_path / "findings" / "1" / ".story.txt.0badcafe").write_text(states.STORY_TITLE, encoding="utf-8")
    states.write_finding(tmp_path, "1", {states.PLAN: PLAN})
    assert [path.name for path in (tmp_path / "findings" / "1").iterdir()] == [states.PLAN]


def test_a_hunt_keeps_what_is_not_its_own(tmp_path: Path) -> None:
    """Also what has the names of its leftovers."""
    states.save(tmp_path, full())
    for name in ("thesis.unfinished/ch1", "findings/1.unfinished/ch1", ".hunt.json.0badcafe", "findings/1/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine", encoding="utf-8")
    (tmp_path / ".hunt.md.0badcafe").touch()
    (tmp_path / ".hunt.html.0badcafe").mkdir()
    before = tree(tmp_path)
    assert states.load(tmp_path, ABOUT) == full()
    states.write_finding(tmp_path, "1", {states.PLAN: PLAN})
    after = tree(tmp_path)
    assert {path: after.get(path) for path in before} == before
    theirs = tmp_path / "findings" / "1" / states.PLAN
    theirs.write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="was not written by highwater: move it elsewhere"):
        states.write_finding(tmp_path, "1", {states.PLAN: PLAN})
    states.write_finding(tmp_path, "1", {})
    assert theirs.read_text(encoding="utf-8") == "mine"
    (tmp_path / states.MARKDOWN).write_text("# mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"hunt\.md was not written by highwater"):
        states.load(tmp_path, ABOUT)


WRONG: tuple[Any, ...] = (None, True, -1.5, 7, "", "x", [], [3], {}, {"x": 3}, [[]], {"x": {}})


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in plain data."""
    yield path
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield from places(value[key], (*path, key))  # type: ignore[index]


def changed(data: Any, path: tuple[Any, ...], value: object) -> Any:
    if not path:
        return value
    data = copy(data)
    data[path[0]] = changed(data[path[0]], path[1:], value)
    return data


@pytest.mark.world
def test_a_state_of_wrong_types_is_refused_or_can_be_shown(tmp_path: Path) -> None:
    state = full()
    state.about = HUNTED
    state.written[1].runs.append({"result": "confirmed", "told": ""})
    state.errors.append(["highwater replay d", "ZeroDivisionError"])
    compared = {"subject": "replica", "release": "", "cases": 0, "differ": 1, "smallest": "", "lines": ["a"]}
    state.oracle.append({**compared, "explained": ["x=y"], "problem": ""})
    refused = 0
    for path, value in product(places(state.to_json()), WRONG):
        (tmp_path / states.STATE).write_text(json.dumps(changed(state.to_json(), path, value)), encoding="utf-8")
        try:
            found = states.load(tmp_path, HUNTED)
        except InputError:
            refused += 1
        else:
            hunt = Hunt(tmp_path, found, lambda _: {"power/hw": ARM}, (), "4.4.0", "no Java here")
            hunt.repeat = 1
            page.answer(hunt)
            page.write(hunt)
            hunt._next_step()
    assert refused > 400


def test_a_state_is_versioned(tmp_path: Path) -> None:
    states.save(tmp_path, full())
    assert json.loads((tmp_path / states.STATE).read_text(encoding="utf-8"))["schema_version"] == states.STATE_VERSION
