from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Call


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("run kip101-scenario-1 --mod hw", "no such option '--mod'; did you mean '--mode'?"),
        ("run kip101-scenario-1 --seed", "--seed needs a value"),
        ("run kip101-scenario-1 --json=3", "--json takes no value"),
        ("run kip101-scenario-1 --color blue", "--color 'blue' is not valid; one of: auto, always, never"),
        ("modes show", "MODE is missing; see 'highwater modes show --help'"),
        ("modes show hw kip101 elr", "too many arguments: kip101 elr; see 'highwater modes show --help'"),
        ("confirm kip101-scenario-1", "--kafka is missing; see 'highwater confirm --help'"),
        ("sweep chaos --local 0", "--local 0 is not valid: a whole number from 1 to 1024 is needed"),
        ("sweep chaos --local two", "--local 'two' is not valid: a whole number from 1 to 1024 is needed"),
        ("shw", "no such command 'shw'; did you mean 'show'?"),
    ],
)
def test_wrong_words_are_named_with_what_is_needed(highwater: Callable[..., Call], words: str, problem: str) -> None:
    call = highwater(*words.split())
    assert (call.code, call.err) == (2, f"highwater: {problem}\n")
