"""The record of a campaign in a folder of the user: a line for each judged case, so that the same command resumes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Self

from scenarios import own_files
from scenarios.version import judging_version
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

RECORD_VERSION: Final = 1
START: Final = own_files.json_start("campaign")


def name_of(campaign: str) -> str:
    """The name of the file of a campaign's record."""
    return f"{campaign}.jsonl"


def key_of(case: Any) -> str:
    """A case as text: equal cases have equal keys."""
    return json.dumps(case, separators=(",", ":"), sort_keys=True)


class Record:
    """A file of JSON lines: what the campaign is about, then each case with its result.

    A process that is killed while it writes leaves half a line, which the next one cuts off.

    Args:
        folder: folder of the user, created if needed.
        campaign: name of the campaign, and of the file.
        about: what results depend on besides case and code (`judging_version`).

    Raises:
        InputError: the file is of something else, or of another program; the message names the first difference.
        UnavailableError: another process is at work there.
        StorageError: it cannot be read or written.
    """

    def __init__(self, folder: Path, campaign: str, about: Mapping[str, Any]) -> None:
        self.path = folder / name_of(campaign)
        head = {
            "schema_version": RECORD_VERSION,
            "campaign": campaign,
            "code_version": judging_version(),
            "about": json.loads(json.dumps(about)),
        }
        with own_files.os_errors(folder):
            own_files.make_folder(folder)
        self._lines = own_files.Lines(self.path, START)
        try:
            self.results = self._read(head)
        except BaseException:
            self._lines.close()
            raise

    def _read(self, head: dict[str, Any]) -> dict[str, Any]:
        lines = self._lines.read()
        if not lines:
            self._lines.add(json.dumps(head))
            return {}
        try:
            there, *results = map(json.loads, lines)
            found = {key_of(case): result for case, result in results}
            self._check(there, head)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError(f"{self.path} is damaged: move it elsewhere") from None
        return found

    def _check(self, there: dict[str, Any], head: dict[str, Any]) -> None:
        old, new = {**there["about"], **there}, {**head["about"], **head}
        for key in {**new, **old}.keys() - {"about"}:
            if old.get(key) != new.get(key):
                values = f"{key} = {old.get(key)!r}, and this one has {new.get(key)!r}"
                raise InputError(f"{self.path} is of a campaign with {values}: name another folder")

    def add(self, case: Any, result: Any) -> None:
        """Write a result; raises StorageError."""
        self._lines.add(json.dumps([case, result]))
        self.results[key_of(case)] = result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._lines.close()
