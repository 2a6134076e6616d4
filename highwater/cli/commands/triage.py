"""``highwater triage``: the failures of a sweep, grouped by cause."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import click

from highwater.cli.options import Command, json_option
from sim import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable

    from highwater.cli.console import Ui
    from reports.evidence.triage import Bucket, Triage

NOTE_SECONDS: Final = 5
"""Seconds between two progress notes."""
NOTE: Final = "looked at {} of {} failures"
SHRINKS: Final = "shrunk the smallest seed of {} of {} buckets"


@click.command("triage", cls=Command)
@click.argument("folder", metavar="DIR")
@click.option("--kind", metavar="KIND", help="Only failures with this kind of violation.")
@click.option(
    "--most", metavar="N", type=click.IntRange(1), default=200, show_default=True, help="Failures to examine."
)
@click.option("--local", metavar="N", type=click.IntRange(1, 64), default=1, help="Use N processes of this machine.")
@json_option
@click.pass_obj
def command(ui: Ui, folder: str, kind: str | None, most: int, local: int, as_json: bool) -> int:
    """Group the failures of a sweep by cause: the single repairs that cure them.

    With more than N failures a sample is examined, half of it from inside the promise, and its size is reported. The
    smallest seed of each bucket is shrunk, for at most 40 buckets.
    """
    from reports.evidence import triage
    from scenarios.sweep.store import Store

    store = Store(folder)
    try:
        found = triage.triage(store, most, kind, local, tell=progress(ui), tell_shrunk=progress(ui, SHRINKS))
    except triage.NoFailureError as error:
        if not (shortcomings := store.shortcomings()):
            raise
        ui.caution((*shortcomings, *error.problems))
        return exit_codes.INCONCLUSIVE
    shortcomings = store.shortcomings()
    ui.caution(shortcomings)
    if as_json:
        ui.json({**triage.as_json(found), "shortcomings": shortcomings})
    else:
        ui.line(found.said, style="bold")
        for side, inside in (("Inside the promise", True), ("Outside the promise", False)):
            buckets = [bucket for bucket in found.buckets if bucket.inside == inside]
            if buckets:
                ui.line()
                ui.line(side, style="bold")
                headers = ["mode", "kind", "failures", "share", "smallest", "cured by"]
                rows = [_row(bucket, found.share(bucket)) for bucket in buckets]
                if found.several:
                    headers = ["scenario", *headers]
                    rows = [(bucket.scenario, *row) for bucket, row in zip(buckets, rows, strict=True)]
                ui.table(headers, rows, numbers=["failures", "share", "smallest"])
        _show_smallest(ui, found, folder, several=len(store.sweep.scenarios) > 1)
        for line in found.unexplained:
            ui.line(f"not examined: {line}")
    return exit_codes.INCONCLUSIVE if shortcomings else exit_codes.EXPECTED


def _row(bucket: Bucket, share: str) -> tuple[object, ...]:
    return bucket.mode, bucket.kind, bucket.count, share, bucket.smallest.seed, bucket.repair or "no single repair"


def _show_smallest(ui: Ui, found: Triage, folder: str, *, several: bool) -> None:
    from reports.evidence.triage import explains

    for bucket in found.buckets:
        if bucket.small is not None:
            ui.line()
            known = f": {bucket.bug} ({bucket.ticket})" if bucket.bug else ""
            of = f"{bucket.scenario}, " if found.several else ""
            ui.line(f"{of}{bucket.mode}, {bucket.kind}, {bucket.repair or 'no single repair'}{known}", style="bold")
            if bucket.others:
                ui.line(f"all of them are also cured by: {', '.join(bucket.others)}")
            left = ", ".join(bucket.small.faults) or "no fault"
            ui.line(f"seed {bucket.smallest.seed} shrunk: {left}; batches: {bucket.small.batches}")
            ui.line(bucket.smallest.replay)
            ui.line(explains(bucket, folder, several=several))


def progress(ui: Ui, note: str = NOTE) -> Callable[[int, int], None]:
    """Note progress from time to time."""
    last = time.monotonic()

    def tell(done: int, there: int) -> None:
        nonlocal last
        if time.monotonic() - last >= NOTE_SECONDS:
            last = time.monotonic()
            ui.note(note.format(done, there))

    return tell
