"""The sentence that each kind of step declares, filled in for one step."""

from __future__ import annotations

from typing import Any

from reports.evidence.messages import node
from reports.formatting import moment
from sim.history.records import VALIDATION_IDS
from sim.history.steps import CLIENTS, Shown, kind_of
from sim.hosts.control_plane import CONTROL
from sim.plurals import counted


def sentence(step: Shown, **words: str) -> str:
    """Describe a step in a sentence.

    Args:
        step: a step of a trace.
        words: placeholders to fill differently.
    """
    kind = kind_of(step)
    text = kind.unharmed if kind.unharmed and not step["offset"] else kind.sentence
    said = text.format_map({**_words(step), **words})
    return f"{said[0].upper()}{said[1:]}"


def records(first: int, count: int) -> str:
    """Name records with successive ids."""
    if first >= VALIDATION_IDS:
        return "a record of the final validation"
    return f"record {first}" if count == 1 else f"records {first} to {first + count - 1}"


def _node(number: int) -> str:
    """Name the end of a link, or the broker of a step."""
    return node(number) if 0 < number < CLIENTS else f"the {node(number)}"


def _end(number: int, other: int) -> str:
    """Name the end of a link to another node: the control plane is, for a controller, the other controllers."""
    return "the other controllers" if number == CONTROL and node(other).startswith("controller ") else _node(number)


def _words(step: Shown) -> dict[str, Any]:
    words: dict[str, Any] = {**step, "who": _node(step.get("broker", 0)), "whole": "log"}
    if "source" in step:
        words["source"], words["target"] = _end(step["source"], step["target"]), _end(step["target"], step["source"])
    words["elected"] = _node(step["broker"]) if step.get("broker") else "no"
    words["leader"] = _node(step["leader"]) if step.get("leader") else "no leader"
    words["duration"] = moment(step.get("value", 0))
    words["batches"] = counted(step["removed"], "batch", "batches") if step.get("removed") else "nothing"
    words["deleted"] = counted(step.get("deleted", 0), "record")
    words["lost"] = counted(step.get("offset", 0), "batch", "batches")
    words["is_gone"] = "is no longer there" if step.get("offset", 0) == 1 else "are no longer there"
    if step.get("acks") == -1:
        words["acks"] = "all"
    if "record" in step:
        count = step.get("count", step["last"] - step["offset"] + 1 if "last" in step else 1)
        words["records"] = records(step["record"], count)
    return words
