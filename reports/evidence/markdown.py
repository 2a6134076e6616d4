"""A run's story as Markdown, to be pasted into a ticket or a discussion."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from reports.evidence.story import head
from reports.formatting import seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reports.evidence.telling import Sentence
    from scenarios.single.run import RunResult

_MARKUP: Final = re.compile(r"([\\`*_{}<>|#~])")


def story_as_markdown(result: RunResult, story: Iterable[Sentence]) -> str:
    """What was run, how it ended, a table of the story, and the command that replays it.

    Args:
        result: the run.
        story: its sentences.
    """
    title, *rest = head(result.row)
    lines = [f"### {escaped(title)}", "", *map(escaped, rest), "", "| at | what happened |", "|---:|---|"]
    lines += [f"| {seconds(sentence.at_us)} | {escaped(sentence.text)} |" for sentence in story]
    if result.row["replay"]:
        lines += ["", "Replay:", "", f"    {result.row['replay']}"]
    return "\n".join([*lines, ""])


def escaped(text: str) -> str:
    """Text in which nothing is taken for markup."""
    return _MARKUP.sub(r"\\\1", text)
