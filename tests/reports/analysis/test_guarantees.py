from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from reports.analysis.frame import Frame
from reports.analysis.guarantees import NEEDS, Map, maps

LEAST, FLUSH = "min.insync.replicas", "log.flush.interval.messages"


def row(mode: str, kinds: str = "", inside: str = "", settings: Any = (), **other: Any) -> dict[str, Any]:
    plain = {"scenario": "power", "mode": mode, "verdict": "violation" if kinds else "ok", "fault_kinds": "kill"}
    return {
        **plain,
        "violations": kinds,
        "violations_inside": inside,
        "drawn_settings": "{}",
        **other,
        **dict(settings),
    }


def mapped(*rows: dict[str, Any], grid: dict[str, tuple[Any, ...]] | None = None) -> list[Map]:
    store = cast("Any", SimpleNamespace(grid=grid or {}, run={}))
    return maps(store, Frame({name: [one[name] for one in rows] for name in [*NEEDS, *(grid or {})]}))


def said(found: Map) -> dict[str, list[str]]:
    return {name: [cell.said for cell in cells] for name, cells in found.rows.items()}


def test_runs_are_counted_by_what_struck_and_worst_side() -> None:
    (faults,) = mapped(
        row("kip101", "divergence,committed-loss", "divergence", fault_kinds="kill,power-loss"),
        row("kip101", "committed-loss"),
        row("hw"),
        row("hw", fault_kinds=""),
        row("hw", "divergence", "divergence", verdict="error"),
    )
    assert faults.columns == ("hw", "kip101")
    assert said(faults) == {
        "kill": ["0 of 1", "1 inside, 1 outside of 2"],
        "power-loss": ["no run", "1 inside of 1"],
        "(no fault)": ["0 of 1", "no run"],
    }
    assert [cell.worst for cell in faults.rows["power-loss"]] == ["none", "inside"]
    assert [cell.kept for cell in faults.rows["kill"]] == [1, 0]


def test_settings_of_a_grid_are_crossed_mode_by_mode() -> None:
    rows = [
        row("hw", "committed-loss" if (least, flush) == (1, 9) else "", settings={LEAST: least, FLUSH: flush})
        for least in (1, 2)
        for flush in (1, 9)
    ]
    faults, least, flush, crossed = mapped(*rows, grid={LEAST: (1, 2), FLUSH: (1, 9)})
    assert (faults.rows_are, least.rows_are, flush.rows_are) == ("fault", LEAST, FLUSH)
    assert (crossed.title, crossed.columns) == (f"hw: {LEAST}, by {FLUSH}", ("1", "9"))
    assert [[cell.worst for cell in cells] for cells in crossed.rows.values()] == [["kept", "outside"], ["kept"] * 2]


def test_settings_that_the_seed_drew_have_a_map() -> None:
    drawn = '{"min.insync.replicas":%d}'
    _, least = mapped(
        row("hw", drawn_settings=drawn % 1), row("hw", "divergence", drawn_settings=drawn % 2), row("elr")
    )
    assert said(least) == {"1": ["0 of 1", "no run"], "2": ["1 outside of 1", "no run"]}


def test_runs_that_ended_with_an_error_have_no_map() -> None:
    assert mapped(row("hw", verdict="error")) == []
