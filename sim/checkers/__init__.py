"""Checkers: one property each; every file says what it verifies and what it does not.

Most find violations. The early warnings look at what the protocol rests on inside, where a violation may come from
before anybody is told anything wrong; they are kept apart from violations (`sim.history.ledger.Ledger.warnings`).
"""

from __future__ import annotations

from typing import Final

EARLY_WARNINGS: Final = (
    "leader-incomplete",
    "candidate-incomplete",
    "quorum-not-superset",
    "log-mismatch",
    "two-leaders-one-epoch",
    "metadata-mismatch",
    "inconsistent-read",
    "recovery-quorum",
    "global-loss",
)
"""Kinds of early warnings."""
