"""A backend of this very process: for tests of what a sweep leaves, not of who does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.sweep import parts, units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from scenarios.sweep.driver import Copies, WavePlan
    from scenarios.sweep.folder import Folder


class Here:
    """`before` is called before each wave with its number."""

    name = "here"
    copies: Copies | None = None

    def __init__(self, before: Callable[[int], None] = lambda _: None) -> None:
        self.before = before
        self.waves: list[WavePlan] = []

    def start(self, folder: Folder, poll: Callable[[], None]) -> int:
        return 1

    def run_waves(
        self,
        sweep: str,
        folder: Folder,
        plans: Iterator[WavePlan],
        tick: Callable[[Iterable[tuple[WavePlan, int]]], None],
    ) -> Iterator[WavePlan]:
        for plan in plans:
            self.before(len(self.waves))
            tick([(plan, 0)])
            self.waves.append(plan)
            for index, chunk in enumerate(plan.chunks):
                parts.write_part(folder, plan.wave, index, list(units.rows_of(sweep, chunk)))
            yield plan

    def close(self) -> None:
        return
