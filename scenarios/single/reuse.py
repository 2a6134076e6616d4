"""Rows that are copied from a run in another mode.

If no rule in which two modes differ had an effect in a run (`sim.protocol.decisions`), the other mode has the same
history at this seed. Its row differs only in columns about the promise, `[expect]` and the mode. `make hunt-reuse`
compares copied rows with those of runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from scenarios.format.scenario import Scenario
from scenarios.single.coverage_column import moved
from scenarios.single.ended_run import drawn_as_expected, replay_line
from scenarios.single.execution import PromiseColumns, broker_count, older_brokers
from scenarios.single.rows import Row
from sim.config import resolve
from sim.kernel.streams import Streams
from sim.protocol.decisions import replaced
from sim.protocol.modes import Mode
from sim.protocol.modes import mode as mode_named

STRATEGY: Final = "unclean.recovery.strategy"
DEFAULT: Final = "default"


def is_alike(scenario: Scenario, row: Row, mode: Mode, other: Mode, rules: Mapping[str, str]) -> bool:
    """Whether the run in `mode` with this row has the same history in another mode.

    `rules` override those of both modes. Scripts may depend on rules without querying them, so scripted runs never
    count as alike; nor do runs with an error.
    """
    one, two = mode.override(rules).rules, other.override(rules).rules
    if scenario.script or not scenario.drawn or row["verdict"] == "error" or one.mutant != two.mutant:
        return False
    if int(row["decided"], 16) & replaced(one, two):
        return False
    if (one.unclean_recovery == "election") != (two.unclean_recovery == "election") and (
        scenario.config.get(STRATEGY, DEFAULT) != DEFAULT or STRATEGY in scenario.draw_config
    ):
        return False  # Which setting means unclean election depends on this rule: `heeds_unclean_election`.
    recorded = scenario.recorded
    if not (scenario.broker_modes or scenario.upgraded_from or (recorded is not None and recorded.older)):
        return True
    brokers = range(1, broker_count(scenario, resolve(scenario.config, json.loads(row["drawn_settings"]))) + 1)
    streams = Streams(row["seed"])
    older = older_brokers(scenario, mode.place, one, brokers, streams)
    if older != older_brokers(scenario, other.place, two, brokers, Streams(row["seed"])):
        return False
    # Brokers with equal rules share a `Decisions`. Which brokers share one must not depend on the mode.
    own = [mode_named(name).rules.override(rules) for name in (*scenario.broker_modes.values(), *older.values())]
    return one not in own and two not in own


def promise_alike(mode: Mode, other: Mode, rules: Mapping[str, str]) -> bool:
    """Whether two modes have the same promise, so that columns about the promise need not be computed anew."""
    return mode.override(rules).promise == other.override(rules).promise


def taken_over(
    scenario: Scenario, row: Row, mode: Mode, other: Mode, rules: Mapping[str, str], judged: PromiseColumns | None
) -> Row:
    """The row of another mode with the same history. `judged` is the run judged by the other mode's promise; None if
    both modes have the same promise.
    """
    kinds = frozenset(filter(None, row["violations_inside"].split(","))) if judged is None else judged.kinds
    expected = drawn_as_expected(scenario, other.name, kinds)
    needs_replay = row["verdict"] != "ok" or not expected
    changed: Row = {
        "mode": other.name,
        "expected": expected,
        "coverage": moved(row["coverage"], mode.override(rules).rules, other.override(rules).rules),
        "reused": row["reused"] or mode.name,
        "replay": replay_line(scenario, other, row["seed"], rules, row["digest"]) if needs_replay else "",
    }
    if judged is not None:
        changed |= {
            "inside": judged.inside,
            "inside_unclean": judged.inside_unclean,
            "inside_lossy": judged.inside_lossy,
            "violations_inside": ",".join(sorted(kinds)),
        }
    return {**row, **changed}
