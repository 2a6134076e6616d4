"""Two folders on the same seeds: the first line, and the smallest seed that only one side loses."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from reports.analysis import paired
from scenarios.format.catalogue import load, mode
from scenarios.single.run import run_row
from scenarios.sweep.driver import run_sweep
from scenarios.sweep.store import Store
from scenarios.sweep.units import Sweep
from sim.errors import InputError
from tests.scenarios.sweep.here import Here

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

KIND = "committed-loss"


def sweep(folder: Path, *modes: str, seeds: tuple[int, int] = (55, 85), **given: Any) -> Path:
    scenario = load("power")
    chosen = {"power": tuple(mode(name) for name in modes)}
    run_sweep(Sweep((scenario,), chosen, *seeds, **given), folder, Here(), chunks=1)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("paired")
    return sweep(root / "hw", "hw"), sweep(root / "kip320", "kip320", seeds=(60, 95))


def losses(name: str, seeds: range) -> set[int]:
    power = load("power")
    return {seed for seed in seeds if KIND in run_row(power, mode(name), seed)["violations"]}


def test_the_answer_counts_common_seeds(folders: tuple[Path, Path]) -> None:
    (answer,) = paired.of_stores([Store(folder) for folder in folders])
    hw, kip320 = losses("hw", range(60, 85)), losses("kip320", range(60, 85))
    (pair,) = answer.comparison.pairs
    found = next(kind for kind in pair.kinds if kind.kind == KIND)
    assert (pair.a, pair.b, pair.n) == ("hw", "kip320", 25)
    assert (found.both, found.only_a, found.only_b) == (len(hw & kip320), len(hw - kip320), len(kip320 - hw))
    assert answer.said.startswith("power: on 25 common seeds, hw loses records acknowledged with acks=all in ")
    assert f"only hw: {len(hw - kip320)}, only kip320: {len(kip320 - hw)} (p = " in answer.said
    smallest = {"hw": min(hw - kip320, default=-1), "kip320": min(kip320 - hw, default=-1)}
    assert {example.side: example.seed for example in answer.examples} == {
        side: seed for side, seed in smallest.items() if seed >= 0
    }
    assert answer.examples


def test_an_example_has_its_commands(folders: tuple[Path, Path]) -> None:
    (answer,) = paired.of_stores([Store(folder) for folder in folders])
    for example in answer.examples:
        other = {"hw": "kip320", "kip320": "hw"}[example.side]
        digest = run_row(load("power"), mode(example.side), example.seed)["digest"]
        run = f"power --mode {example.side} --seed {example.seed}"
        assert example.replay == f"highwater replay {run} --expect-digest {digest}"
        assert example.show == f"highwater show {run} --against {other}"


def test_rules_that_differ_are_named(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    mine = sweep(tmp_path / "mine", "hw", seeds=(55, 75), rules={"follower_truncation": "leader-epoch"})
    (answer,) = paired.of_stores([Store(folders[0]), Store(mine)])
    assert answer.differs == ("Rules that differ (hw, mine): follower_truncation (high-watermark, leader-epoch)",)
    for example in answer.examples:
        against = {"hw": "follower_truncation=leader-epoch"}.get(example.side)
        assert against is None or shlex.split(example.show)[-2:] == ["--against", against]
        assert example.side == "hw" or "highwater replay power --mode hw" in example.show


def test_what_cannot_be_paired_is_refused(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    both = sweep(tmp_path / "both", "kip101", "kip279", seeds=(0, 2))
    with pytest.raises(InputError, match=r"has hw and .* has kip101, kip279: name a mode of each"):
        paired.of_stores([Store(folders[0]), Store(both)])
    far = sweep(tmp_path / "far", "kip320", seeds=(900, 902))
    with pytest.raises(InputError, match="hw and kip320 have no seed in common"):
        paired.of_stores([Store(folders[0]), Store(far)])
    grid = sweep(tmp_path / "grid", "kip320", seeds=(0, 2), grid={"min.insync.replicas": (1, 2)})
    with pytest.raises(InputError, match=r"varies no setting, .* min.insync.replicas: sweep both"):
        paired.of_stores([Store(folders[0]), Store(grid)])


def test_the_command_begins_with_the_answer(highwater: Callable[..., Call], folders: tuple[Path, Path]) -> None:
    out = highwater("compare", *folders, "--brief").out
    assert out.startswith("power: on 25 common seeds, hw loses records")
    assert "\n  highwater show power --mode hw --seed " in out
    data = json.loads(highwater("compare", *folders, "--json").out)
    (one,) = data["comparisons"]
    assert one["said"].startswith("power: on 25 common seeds")
    assert {"side", "seed", "replay", "show"} == set(one["examples"][0])
    assert highwater("compare", *folders, "--by", "acks").code == 2
    assert highwater("compare", *folders, "--mode", "hw,kip320").code == 0
    assert highwater("compare", *folders, "--mode", "hw,kip320,elr").code == 2
    assert "holds no mode 'kip320'" in highwater("compare", *folders, "--mode", "kip320,hw").err


def test_markdown_has_the_commands_in_a_block(highwater: Callable[..., Call], folders: tuple[Path, Path]) -> None:
    out = highwater("compare", *folders, "--brief", "--format", "markdown").out
    assert "\n```\nhighwater replay power " in out
