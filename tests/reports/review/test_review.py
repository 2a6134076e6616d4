"""A mode against another one: what is found, and the page of it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from reports.review import page
from reports.review.document import Block, Commands, Heading, Items, Table, Text, to_html, to_markdown
from reports.review.review import DOWNGRADE, UPGRADE, review
from scenarios.format import catalogue
from scenarios.format.catalogue import mode
from scenarios.single.run import run_row
from sim.errors import InputError
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reports.review.review import Review
    from tests.conftest import Call

SEEDS = 12


@pytest.fixture(scope="module")
def losing(tmp_path_factory: pytest.TempPathFactory) -> Review:
    """Truncation to the high watermark, after KIP-279 had replaced it."""
    mine = mode("kip279+follower_truncation=high-watermark")
    folder = tmp_path_factory.mktemp("losing")
    return review(mine, MODES["kip279"], folder, claim="This is safe.", seeds=SEEDS, scenarios=["power"])


def test_a_mode_that_loses_is_found(losing: Review) -> None:
    assert losing.rules == [("follower_truncation", "leader-epoch-rounds", "high-watermark")]
    assert losing.is_worse
    stories = {story.scenario: story for story in losing.stories}
    canary = stories["canary"]
    assert (canary.base, canary.worse) == ("ok", True)
    assert canary.mode.startswith("committed-loss (inside)")
    (power,) = losing.swept
    rows = [
        [run_row(catalogue.load("power"), one, seed) for seed in range(SEEDS)] for one in (losing.base, losing.mode)
    ]
    only = sum(
        "divergence" in mine["violations_inside"] and "divergence" not in base["violations_inside"]
        for base, mine in zip(*rows, strict=True)
    )
    assert power.only_mode.get("divergence", 0) == only
    assert power.touched == power.effects["follower_truncation"] > 0
    assert {one.name for one in losing.moved} == {UPGRADE, DOWNGRADE}
    assert losing.skipped == []


def test_the_page_has_each_part_and_its_commands(losing: Review) -> None:
    blocks = list(page.blocks(losing))
    text = to_markdown(page.title(losing), blocks)
    assert text.startswith(
        "# Review of kip279+follower\\_truncation=high-watermark against kip279\n\n> This is safe.\n"
    )
    for heading in (
        "Rules that differ",
        "Losses on the same seeds",
        "Upgrade and downgrade",
        "Liveness",
        "Availability",
    ):
        assert f"\n## {heading}" in text
    commands = [line for block in blocks if isinstance(block, Commands) for line in block.lines]
    assert "highwater run canary --mode kip279+follower_truncation=high-watermark" in commands
    assert any(line.startswith("highwater sweep power --modes kip279,kip279+follower") for line in commands)
    html = to_html(page.title(losing), blocks)
    assert html.count("<h2>") == text.count("\n## ")
    assert re.findall(r"<(script|link|img)", html) == []


def test_a_harmless_mode_is_not_blamed(tmp_path: Path) -> None:
    mine = mode("kip320+stop_replica=unchecked")
    found = review(mine, MODES["kip320"], tmp_path, seeds=4, scenarios=["power"])
    assert (found.is_worse, found.lost, found.broken) == (False, {}, {})
    assert any(line.startswith("No violation inside the promise is new, on 4 seeds") for line in page.answer(found))


def test_downgraded_brokers_begin_in_the_mode(losing: Review) -> None:
    downgrade = next(one for one in losing.moved if one.name == DOWNGRADE)
    assert downgrade.pair.b == "back"
    assert f"--modes {losing.base.name}," in downgrade.commands[0]


def test_what_cannot_be_reviewed_is_refused(tmp_path: Path) -> None:
    kip320 = MODES["kip320"]
    with pytest.raises(InputError, match="have the same rules"):
        review(replace(kip320, name="mine"), kip320, tmp_path)
    with pytest.raises(InputError, match="different control planes"):
        review(MODES["kraft"], kip320, tmp_path)


def test_the_command_writes_both_pages(highwater: Callable[..., Call], tmp_path: Path) -> None:
    words = ["review", "kip320+stop_replica=unchecked", "--against", "kip320", "--scenarios", "power", "--seeds", 2]
    call = highwater(*words, "--output", tmp_path / "out")
    assert call.code == 0
    assert call.out.startswith("No violation inside the promise is new")
    assert (tmp_path / "out" / "review.md").read_text().startswith("# Review of kip320")
    assert "Highwater review" in (tmp_path / "out" / "review.html").read_text()
    assert highwater(*words, "--output", tmp_path / "out").code == 0
    wrong = highwater("review", "kip32", "--against", "kip320", "--output", tmp_path / "other")
    assert (wrong.code, "did you mean 'kip320'" in wrong.err) == (2, True)
    assert not (tmp_path / "other").exists()


def test_blocks_are_escaped() -> None:
    blocks: list[Block] = [
        Heading("a|b"),
        Text("<i>", quoted=True),
        Items(["x*y"]),
        Table(["n"], [("a|b",)]),
        Commands(["a <b>"]),
    ]
    assert (
        to_markdown("t", blocks)
        == "# t\n\n## a\\|b\n\n> \\<i\\>\n\n- x\\*y\n\n| n |\n| --- |\n| a\\|b |\n\n```\na <b>\n```\n"
    )
    assert "<pre>a &lt;b&gt;</pre>" in to_html("t", blocks)
