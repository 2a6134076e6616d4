"""Words that a shell completes: names of modes, scenarios, rules, settings, and kinds of fault and violation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    import click


def of(what: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """The completion of a word, or of the last one of words that are joined by commas."""

    def complete(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
        before, comma, last = begun.rpartition(",")
        files = [CompletionItem(begun, type="file")] if what == "scenarios" else []  # In place of a name, or a folder.
        words = [f"{before}{comma}{word}" for word in _words(what, last) if word.startswith(last)]
        return [*map(CompletionItem, words), *files]

    return complete


def _words(what: str, begun: str) -> Iterable[str]:
    if what == "modes":
        from sim.protocol.modes import MODES

        return MODES
    if what == "scenarios":
        from scenarios.format import catalogue

        return catalogue.names()
    if what == "faults":
        from faults.kinds.registry import KINDS

        return KINDS
    if what == "kinds":
        from sim.checkers.registry import FINDINGS

        return FINDINGS
    if what == "settings":
        from sim.config import KEYS

        return (f"{key}=" for key in KEYS)
    from sim.protocol.rules import RULES

    name, equals, _ = begun.partition("=")
    return (
        [f"{name}={value}" for value in RULES[name].values]
        if equals and name in RULES
        else [f"{one}=" for one in RULES]
    )
