"""Films of a sweep's failures, as files beside its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports import starts
from scenarios import own_files

if TYPE_CHECKING:
    from pathlib import Path

    from reports.evidence.triage import Failure
    from scenarios.sweep.store import Store


def check_films(option: str, report: Path, number: int) -> None:
    """Check before anything runs that the films of a report can be written; errors as `starts.check_file`."""
    for place in range(number):
        starts.check_file(option, _file(report, place), starts.FILM)


def write_films(store: Store, report: Path, number: int, kind: str | None) -> list[tuple[Failure, str]]:
    """Write films of a sample of failures, of one kind of violation or any; return each failure with its file's name.

    A run that fails in another way with this code has no film.

    Raises:
        InputError: the sweep has no rows, or another file is in the way.
        StorageError: a file cannot be written.
    """
    from reports.evidence import triage
    from reports.evidence.narrative import SENTENCES
    from reports.film.film import film
    from reports.film.page import page
    from scenarios.shrinking.criterion import Symptom

    try:
        chosen = triage.sample(triage.failures(store, kind), number) if number else []
    except triage.NoFailureError:
        return []
    cases = triage.cases(store, chosen)
    written = []
    for place, failure in enumerate(chosen):
        file = _file(report, place)
        filmed = film(cases[failure], failure.kind, SENTENCES)
        if Symptom(failure.kind, failure.inside).shown_by(filmed.observed.result.row):
            own_files.write(file, page([filmed]), starts.FILM)
            written.append((failure, file.name))
    return written


def _file(report: Path, place: int) -> Path:
    return report.with_name(f"{report.stem}-film-{place + 1}.html")
