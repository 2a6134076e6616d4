from __future__ import annotations

import json
from pathlib import Path

import pytest

from reports.hunt import state as states
from reports.hunt.state import ArmState, Cause, State, Written
from sim.errors import InputError, StorageError, UnavailableError

ABOUT = {"kafka": "4.4.0", "hidden": ["reassignment-back"], "seed": 7}


def full() -> State:
    state = State(ABOUT, arms={"power/hw": ArmState(107, 100)})
    state.causes["loss: x"] = Cause("x", "", "", 2, 1, "power/hw", 9, 100, {"power/hw": 2}, 1)
    state.written[1] = Written("loss: x", "committed-loss", ["a=b"], ["1 s: it dies"], ["kill"], "highwater", True, "1")
    state.provisional["loss: x"] = [2, "loss: x", {}]
    state.pending.append({"arm": "power/hw", "seed": 8, "kind": "divergence", "looks": "", "known": ""})
    return state


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    states.save(tmp_path, full())
    assert states.load(tmp_path, ABOUT) == full()
    assert [path.name for path in tmp_path.iterdir()] == [states.STATE]


def test_an_empty_folder_gets_a_new_hunt(tmp_path: Path) -> None:
    assert states.load(tmp_path / "new" / "hunt", ABOUT) == State(ABOUT)


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
        states.save(tmp_path, State(ABOUT))
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
    (tmp_path / states.FINDINGS / f"1{states.UNFINISHED}").mkdir(parents=True)
    (tmp_path / f"hunt.json{states.UNFINISHED}").write_text("half", encoding="utf-8")
    with states.alone(tmp_path):
        assert [path.name for path in tmp_path.rglob("*")] == [states.FINDINGS]


def test_a_state_is_versioned(tmp_path: Path) -> None:
    states.save(tmp_path, full())
    assert json.loads((tmp_path / states.STATE).read_text(encoding="utf-8"))["schema_version"] == states.STATE_VERSION
