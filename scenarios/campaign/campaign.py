"""A campaign: cases and a judge; the one loop of all instruments that run many seeds and keep no rows."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from scenarios.campaign.record import Record, key_of
from scenarios.campaign.runner import AHEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from scenarios.campaign.runner import Runner


def _never(_case: Any, _result: Any) -> bool:
    return False


@dataclass(slots=True)
class Campaign:
    """Judges each case once.

    Attributes:
        judge: called with a case, perhaps in another process or on another machine: a function of a module, or a
            `functools.partial` of one. What it returns is a function of the case, or of the case and the time taken.
        runner: where cases are judged.
        record: what was judged before, and where results are kept; None: they are not kept.
    """

    judge: Callable[[Any], Any]
    runner: Runner
    record: Record | None = None
    _known: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self._known = {} if self.record is None else self.record.results

    def run(
        self, cases: Iterable[Any], until: Callable[[Any, Any], bool] = _never, ahead: int = AHEAD
    ) -> Iterator[tuple[Any, Any]]:
        """Yield cases with their results, in the order of the cases.

        Args:
            cases: JSON values; a tuple counts as a list. Each is taken when its turn comes.
            until: asked of each case and result in order; after the first yes, no other case is judged.
            ahead: see `Runner.map`.

        Raises:
            UnavailableError: processes were killed.
            StorageError: the record cannot be written; what it has stays.
        """
        for case, result in self._judged(cases, ahead):
            yield case, result
            if until(case, result):
                return

    def _judged(self, cases: Iterable[Any], ahead: int) -> Iterator[tuple[Any, Any]]:
        left = iter(cases)
        for case in left:  # Before a process starts.
            if key_of(case) not in self._known:
                left = chain([case], left)
                break
            yield case, self._known[key_of(case)]
        taken: deque[Any] = deque()
        for result in self.runner.map(self.judge, self._unknown(left, taken), ahead):
            self._add(next(case for case in taken if key_of(case) not in self._known), result)
            yield from self._known_first(taken)
        yield from self._known_first(taken)

    def _known_first(self, taken: deque[Any]) -> Iterator[tuple[Any, Any]]:
        """Remove and yield the first cases, as far as they are judged."""
        while taken and key_of(taken[0]) in self._known:
            case = taken.popleft()
            yield case, self._known[key_of(case)]

    def _unknown(self, cases: Iterable[Any], taken: deque[Any]) -> Iterator[Any]:
        """Those cases that nobody judged or judges; all are noted in `taken`."""
        begun: set[str] = set()
        for case in cases:
            taken.append(case)
            if (key := key_of(case)) not in self._known and key not in begun:
                begun.add(key)
                yield case

    def _add(self, case: Any, result: Any) -> None:
        result = json.loads(json.dumps(result))  # The same as a later process reads.
        if self.record is None:
            self._known[key_of(case)] = result
        else:
            self.record.add(case, result)
