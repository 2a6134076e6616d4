"""Parametrizes the table tests with the cases of a folder: the bundled one, or that of ``--tables``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.verification.conformance.cases import BUNDLED, TableError, other_files, read_cases
from tests.verification.conformance.runs import rules_for

if TYPE_CHECKING:
    from tests.verification.conformance.cases import Case


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--tables DIR``."""
    parser.addoption("--tables", type=Path, metavar="DIR", help="run the conformance tables of this folder")


def _folder(config: pytest.Config) -> Path:
    folder: Path | None = config.getoption("--tables", default=None)
    return folder or BUNDLED


def _cases(config: pytest.Config) -> list[Case]:
    try:
        return read_cases(_folder(config))
    except TableError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each case and each set of rules that it is run under."""
    if "case" in metafunc.fixturenames:
        runs = [
            pytest.param(case, rules, id=f"{case.id}-{name}")
            for case in _cases(metafunc.config)
            for name, rules in rules_for(case).items()
        ]
        metafunc.parametrize(("case", "rules"), runs)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the files of the folder that no driver reads."""
    others = other_files(_folder(config))
    if others:
        terminalreporter.write_line(f"conformance: no driver for {', '.join(others)}")
