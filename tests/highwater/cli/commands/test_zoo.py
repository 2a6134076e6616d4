from __future__ import annotations

from typing import TYPE_CHECKING

from sim.protocol.mutants import MUTANTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Call


def test_mutants_are_listed(highwater: Callable[..., Call]) -> None:
    listed = highwater("zoo", "list", "--json").json["mutants"]
    assert [entry["name"] for entry in listed] == list(MUTANTS)
    assert {entry["budget"] for entry in listed} == {10_000, 1_000_000}
    out = highwater("zoo", "list").out
    assert all(name in out for name in MUTANTS)


def test_a_mutant_is_shown(highwater: Callable[..., Call]) -> None:
    out = highwater("zoo", "show", "join-below-epoch-start").out
    for words in ("KAFKA-7128", "Partition#isFollowerInSync", "1,000,000 seeds of elr-chaos in elr-repaired"):
        assert words in out
    assert highwater("zoo", "show", "join-below-hw", "--json").json["place"] == "Partition#isFollowerInSync"


def test_an_unknown_mutant_is_refused(highwater: Callable[..., Call]) -> None:
    call = highwater("zoo", "show", "join-below-hv")
    assert (call.code, call.out) == (2, "")
    assert "unknown mutant 'join-below-hv'; did you mean 'join-below-hw'" in call.err


def test_a_run_takes_a_mutant(highwater: Callable[..., Call]) -> None:
    words = ("run", "elr-chaos", "--mode", "elr-repaired", "--seed", "1")
    out, mutated = (highwater(*words, *more).out for more in ((), ("--rule", "mutant=join-without-fetch")))
    assert "elr-chaos, mode elr-repaired, seed 1" in out
    assert out != mutated
