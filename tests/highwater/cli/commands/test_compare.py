"""``highwater compare`` as it is printed; what is counted has tests of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call


def test_the_answer_comes_first_and_a_legend_last(highwater: Callable[..., Call], swept: Path) -> None:
    call = highwater("compare", swept)
    assert call.code == 0
    blocks = call.out.split("\n\n")
    assert blocks[0].startswith("canary\nOn 20 runs of canary, hw ")
    assert blocks[-1].startswith("How to read it\nk/n: ")
    assert "clean: no violation" in blocks[-1]


def test_brief_is_the_answer_and_the_rates_of_one_kind(highwater: Callable[..., Call], swept: Path) -> None:
    call = highwater("compare", swept, "--brief", "--kind", "divergence")
    assert call.code == 0
    tables = [line for line in call.out.splitlines() if line in ("any", "divergence", "committed-loss", "runs")]
    assert tables == ["divergence", "divergence"]
    assert "How to read it" not in call.out


@pytest.mark.usefixtures("sweeps_here")
def test_it_fits_eighty_columns(
    highwater: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    modes = "hw,kip320-repaired,elr-4.0-snapshot"
    sweep = ["power", "--modes", modes, "--set", "min.insync.replicas=1,2", "--seeds", "30..42", "--local", 1]
    assert highwater("sweep", *sweep, "--output", tmp_path / "out", "-q").code in (0, 1, 3)
    for words in ([], ["--by", "min.insync.replicas"]):
        out = highwater("compare", tmp_path / "out", *words).out
        assert "95 % interval" in out
        assert [line for line in out.splitlines() if len(line) > 80] == []


def test_markdown_has_tables_that_pages_show(highwater: Callable[..., Call], swept: Path) -> None:
    out = highwater("compare", swept, "--format", "markdown", "--brief").out
    assert out.startswith("## canary\n\nOn 20 runs of canary, hw ")
    assert "\n| mode | k/n | rate | 95 % interval | inside | outside |\n| --- | ---: |" in out


def test_json_tells_the_sentence(highwater: Callable[..., Call], swept: Path) -> None:
    canary, _ = highwater("compare", swept, "--json").json["comparisons"]
    assert canary["said"].startswith("On 20 runs of canary, hw ")
    assert canary["common_seeds"] == 20


def test_a_kind_that_is_none_is_refused(highwater: Callable[..., Call], swept: Path) -> None:
    call = highwater("compare", swept, "--kind", "divergense")
    assert (call.code, call.err.count("\n")) == (2, 1)
    assert "did you mean 'divergence'?" in call.err
