"""A trace: the steps of a run as they are shown to people and to programs, in a file or in memory."""

from __future__ import annotations

from typing import Any, Final

SCHEMA_VERSION: Final = 1

Shown = dict[str, Any]
"""A step: ``t`` (us), ``step``, and its fields (`sim.history.steps.STEPS`)."""
