"""Runs of a sweep that ended with an error, grouped by the line that raised it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scenarios.single.rows import PLUGIN_ERROR, STORY_ERROR
from sim.plurals import counted

if TYPE_CHECKING:
    from scenarios.sweep.store import Store

COLUMNS: Final = ("scenario", "mode", "seed", "blow", "verdict", "error", "replay")
"""Columns of rows that `ErrorGroups.add` needs."""
MOST: Final = 10
"""Most groups that are printed."""
_AT: Final = " (at "


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Runs whose errors came from the same line; the other attributes are those of the run with the smallest seed."""

    runs: int
    error: str
    scenario: str
    mode: str
    seed: int
    replay: str

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class ErrorGroups:
    """Collects the errors of rows."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], int] = {}
        self._first: dict[tuple[str, str], tuple[tuple[int, str, str], dict[str, Any]]] = {}

    def add(self, row: dict[str, Any]) -> None:
        """Add a row; a no-op for one with another verdict."""
        if row["verdict"] != "error":
            return
        key = _place(row["error"])
        order = row["seed"], row["scenario"], row["mode"]
        self._runs[key] = self._runs.get(key, 0) + 1
        if key not in self._first or order < self._first[key][0]:
            self._first[key] = order, row

    def groups(self) -> list[ErrorGroup]:
        """The groups, the largest first."""
        found = []
        for key in sorted(self._runs, key=lambda key: (-self._runs[key], key)):
            _, row = self._first[key]
            named = {name: row[name] for name in ("error", "scenario", "mode", "seed", "replay")}
            found.append(ErrorGroup(self._runs[key], **named))
        return found


def of_store(store: Store) -> list[ErrorGroup]:
    """The groups of a sweep's rows; runs with blows count if `Store.runs` includes them."""
    found = ErrorGroups()
    for _, table in store.tables(COLUMNS):
        places = [place for place, verdict in enumerate(table["verdict"].to_pylist()) if verdict == "error"]
        for row in table.take(places).to_pylist() if places else []:
            found.add(row)
    return found.groups()


def told(groups: Sequence[ErrorGroup]) -> Iterator[str]:
    """Lines that tell the groups, each with the command that replays a run; none without errors."""
    if not groups:
        return
    runs = sum(group.runs for group in groups)
    kinds = "" if len(groups) == 1 else f" at {len(groups)} places"
    yield f"{counted(runs, 'run')} ended with an error{kinds}, and nothing else is known of them; -v shows a traceback:"
    for group in groups[:MOST]:
        yield f"  {counted(group.runs, 'run')}: {group.error}"
        if group.replay:
            yield f"  {group.replay}"
    if len(groups) > MOST:
        yield f"  and {len(groups) - MOST} more places"


def _place(error: str) -> tuple[str, str]:
    """The kind of exception and the line that raised it; of a story that did not happen, the step."""
    if error.startswith(STORY_ERROR):
        return STORY_ERROR, error
    for mark in (f"{PLUGIN_ERROR},", _AT):
        head, found, place = error.rpartition(mark) if mark == _AT else error.partition(mark)
        if found:
            return head.partition(":")[0], place
    return "", error
