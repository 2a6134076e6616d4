"""The figures of an advice are those of plain sweeps of its scenario over the same seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

SEEDS = 3
CLUSTERS = {
    "one rack": ("--racks", 1, "--together", "everything"),
    "three racks": ("--racks", 3, "--together", "rack"),
    "stretched over two": ("--racks", 2, "--together", "rack", "--replicas", 4, "--moves", 1),
}


@pytest.mark.world
@pytest.mark.parametrize("name", CLUSTERS)
def test_figures_are_those_of_plain_sweeps(highwater: Callable[..., Call], tmp_path: Path, name: str) -> None:
    words = ("advise", "-q", *CLUSTERS[name], "--release", "4.1", "--seeds", SEEDS, "--json")
    found = highwater(*words, "--output", tmp_path / "advice", "--local", 2).json
    modes = list(dict.fromkeys(one["mode"] for one in found["table"]))
    assert len(modes) == 2
    for number, change in enumerate(("as it is", "log.flush.interval.messages = 1")):
        settings = [] if change == "as it is" else ["--set", change.replace(" = ", "=")]
        folder = tmp_path / str(number)
        sweep = ("sweep", tmp_path / "advice" / "advice.toml", "--modes", ",".join(modes), "--no-reuse")
        swept = highwater(*sweep, *settings, "--seeds", f"0..{SEEDS}", "--local", 1, "--output", folder)
        assert (folder / "results").is_dir(), swept.err
        rows = pq.read_table(folder / "results").to_pylist()
        for mode in modes:
            (figure,) = (one for one in found["table"] if (one["change"], one["mode"]) == (change, mode))
            of_mode = [row for row in rows if row["mode"] == mode]
            lost = [row for row in of_mode if row["records_lost"] > 0 or row["acks1_lost"] > 0]
            assert (figure["lost"], figure["runs"]) == (len(lost), SEEDS)
            window_ms = sum(row["window_ms"] for row in of_mode)
            assert figure["leaderless"] == pytest.approx(sum(row["leaderless_ms"] for row in of_mode) / window_ms)
            acked = sum(row["batches_acked"] for row in of_mode)
            assert figure["refused"] == pytest.approx(sum(row["batches_refused"] for row in of_mode) / acked)
