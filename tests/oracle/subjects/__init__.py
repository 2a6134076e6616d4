"""The subjects, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.oracle.subjects import epoch_cache

if TYPE_CHECKING:
    from tests.oracle.subject import Subject

SUBJECTS: Final[dict[str, Subject]] = {subject.name: subject for subject in (epoch_cache.SUBJECT,)}
