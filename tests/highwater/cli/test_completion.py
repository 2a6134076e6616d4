"""Words that a shell completes."""

from __future__ import annotations

import click
import pytest
from click.shell_completion import ShellComplete

from highwater.cli import main as cli
from highwater.cli.console import Ui


def completed(*words: str) -> list[str]:
    shell = ShellComplete(cli.highwater, {"obj": Ui()}, "highwater", "_HIGHWATER_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1]) if item.type == "plain"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("compare", "store", "--mode", "kip101,kip27"), ["kip101,kip279"]),
        (("run", "--mode", "kip10"), ["kip101"]),
        (("run", "kip101-scenario-1"), ["kip101-scenario-1"]),
        (("compare", "store", "--kind", "committed"), ["committed-loss"]),
        (("sweep", "power", "--set", "min.insync"), ["min.insync.replicas="]),
        (("show", "power", "--rule", "isr_join"), ["isr_join="]),
    ],
)
def test_names_are_completed(words: tuple[str, ...], found: list[str]) -> None:
    assert completed(*words) == found


def test_values_of_a_rule_and_kinds_of_fault_are_completed() -> None:
    assert "isr_lag=time" in completed("show", "power", "--rule", "isr_lag=")
    assert "duplicate" in completed("run", "power", "--without-fault", "")


def test_a_command_without_names_completes_none() -> None:
    assert isinstance(cli.highwater, click.Group)
    assert completed("columns", "x") == []
