"""A run's story as a document, for a ticket or a discussion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.document.blocks import Commands, Heading, Items, Table, Text
from reports.evidence.story import heading
from reports.formatting import moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reports.document.blocks import Block
    from reports.evidence.narrative import Sentence
    from scenarios.shrinking.prevention import Remedy
    from scenarios.single.result import RunResult


def story_blocks(result: RunResult, story: Iterable[Sentence], tried: Iterable[Remedy] = ()) -> Iterator[Block]:
    """The run's outcome, its story as a table, what would have prevented it, and the replay command.

    Args:
        result: the run.
        story: its sentences.
        tried: changes that were tried one at a time; those that prevent nothing are omitted.
    """
    title, *rest = heading(result)
    yield Heading(title, level=3)
    yield from map(Text, rest)
    yield Table(["at", "what happened"], [(moment(sentence.at_us), sentence.text) for sentence in story], ["at"])
    prevents = [
        f"{what}: {change}" + (f" ({advice})" if advice else "")
        for what, change, advice in (remedy.told for remedy in tried if remedy.keeps)
    ]
    if prevents:
        yield Text("What would have prevented it, each by itself:")
        yield Items(prevents)
    if result.row["replay"]:
        yield Text("Replay:")
        yield Commands([result.row["replay"]])
