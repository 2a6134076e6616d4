"""A run's story as Markdown, for a ticket or a discussion."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from reports.evidence.story import heading
from reports.formatting import seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reports.evidence.narrative import Sentence
    from scenarios.shrinking.prevention import Remedy
    from scenarios.single.result import RunResult

_MARKUP: Final = re.compile(r"([\\`*_{}<>|#~])")


def story_as_markdown(result: RunResult, story: Iterable[Sentence], tried: Iterable[Remedy] = ()) -> str:
    """Format the run's outcome, its story as a table, what would have prevented it, and the replay command.

    Args:
        result: the run.
        story: its sentences.
        tried: changes that were tried one at a time; those that prevent nothing are omitted.
    """
    title, *rest = heading(result)
    lines = [f"### {escaped(title)}", "", *map(escaped, rest), "", "| at | what happened |", "|---:|---|"]
    lines += [f"| {seconds(sentence.at_us)} | {escaped(sentence.text)} |" for sentence in story]
    prevents = [
        f"- {what}: {escaped(change)}" + (f" ({advice})" if advice else "")
        for what, change, advice in (one.told for one in tried if one.keeps)
    ]
    if prevents:
        lines += ["", "What would have prevented it, each by itself:", "", *prevents]
    if result.row["replay"]:
        lines += ["", "Replay:", "", f"    {result.row['replay']}"]
    return "\n".join([*lines, ""])


def escaped(text: str) -> str:
    """Escape text for Markdown."""
    return _MARKUP.sub(r"\\\1", text)
