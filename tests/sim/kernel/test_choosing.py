from __future__ import annotations

from typing import TYPE_CHECKING

from sim.kernel.choosing import PATIENCE_US, ChoosingKernel
from sim.kernel.scheduler import ALWAYS, Call, Gate, Kernel

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from sim.kernel.scheduler import Event


END_US = 100 * PATIENCE_US


def named(gate: Gate, event: Event, at_us: int) -> Hashable:
    """Capital letters have names."""
    assert isinstance(event, Call)
    return event.argument if str(event.argument).isupper() else None


class Written:
    """A kernel whose calls are written down."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.got: list[tuple[int, str]] = []

    def take(self, word: str) -> None:
        self.got.append((self.kernel.now_us, word))

    def at(self, at_us: int, word: str, gate: Gate = ALWAYS, *, first: bool = False) -> None:
        schedule = self.kernel.schedule_first if first else self.kernel.schedule
        schedule(at_us, gate, Call(self.take, word))

    def words(self) -> str:
        self.kernel.run_until(END_US)
        return "".join(word for _, word in self.got)


def choosing(lost: Collection[str] = (), order: Sequence[str] = ()) -> Written:
    return Written(ChoosingKernel(1_000, named, lost, order))


def test_without_a_choice_it_is_a_kernel() -> None:
    kernels = [Written(Kernel()), choosing(), choosing(order=["never"])]
    for written in kernels:
        written.at(5, "A")
        written.at(5, "b")
        written.at(5, "c", first=True)
        written.kernel.schedule_task(5, ALWAYS, Call(written.take, "e"))
        written.at(4, "D")
        assert written.words() == "DecAb"
    assert kernels[0].kernel.number == kernels[1].kernel.number == kernels[2].kernel.number


def test_what_is_lost_is_not_called_and_keeps_its_number() -> None:
    written = choosing(lost={"A"})
    number = written.kernel.number
    written.at(1, "A")
    written.at(2, "B")
    assert written.kernel.number == number + 2
    assert written.words() == "B"


def test_what_comes_too_early_waits_for_those_before_it() -> None:
    written = choosing(order="ABC")
    for at_us, word in ((10, "C"), (20, "B"), (30, "A"), (25, "d")):
        written.at(at_us, word, Gate())
    assert written.words() == "dABC"
    assert written.got[1:] == [(30, "A"), (30, "B"), (30, "C")]


def test_what_comes_over_the_same_connection_waits_behind_it() -> None:
    written = choosing(order="AB")
    one, other = Gate(), Gate()
    for at_us, word, gate in ((10, "B", one), (11, "X", one), (12, "Y", other), (20, "A", other)):
        written.at(at_us, word, gate)
    assert written.words() == "YABX"


def test_nobody_waits_for_ever() -> None:
    written = choosing(order="ABC")
    written.at(10, "C", Gate())
    written.at(20, "B", Gate())
    assert written.words() == "CB"
    assert written.got[0] == (10 + PATIENCE_US, "C")


def test_who_waited_in_vain_is_not_called_through_a_gate_that_closed() -> None:
    written = choosing(order="AB")
    gate = Gate()
    written.at(10, "B", gate)
    written.at(20, "A")
    written.kernel.run_until(15)
    gate.open = False
    assert written.words() == "A"
