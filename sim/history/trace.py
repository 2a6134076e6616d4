"""A trace: the steps of a run for people and programs, in a file or in memory."""

from __future__ import annotations

from typing import Final

from sim.history.steps.base import Shown as Shown

TRACE_VERSION: Final = 1
