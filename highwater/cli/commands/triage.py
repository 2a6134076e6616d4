"""``highwater triage``: the failures of a sweep, grouped by cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import click

from highwater.cli.options import Command, takes
from highwater.cli.progress import READS, SHRINKS, noted
from highwater.option import Option
from highwater.requests import PROCESSES, AsJson, Kind, StoreRequest
from reports.document.blocks import Heading, Line, Table
from sim import exit_codes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from highwater.cli.console import Ui
    from reports.document.blocks import Block
    from reports.evidence.triage import Bucket, Triage


@dataclass(frozen=True, kw_only=True)
class TriageOptions(StoreRequest):
    """The options of the command."""

    kind: Kind = None
    most: Annotated[
        int, Option(metavar="N", type=click.IntRange(1), default=200, show_default=True, help="Failures to examine.")
    ] = 200
    all_but_known: Annotated[
        bool, Option(help="Skip failures that a finding of FINDINGS.md explains; N counts the others.")
    ] = False
    blows: Annotated[bool, Option(help="Examine runs with blows, in place of those of seeds.")] = False
    local: Annotated[int, Option(metavar="N", type=PROCESSES, help="Use N processes of this machine.")] = 1
    as_json: AsJson = False


@click.command("triage", cls=Command)
@takes(TriageOptions)
@click.pass_obj
def command(ui: Ui, asked: TriageOptions) -> int:
    """Group the failures of a sweep by cause: the single repairs that cure them.

    Each bucket comes with what you can do: a setting that prevents it, or the first release with the repair. With more
    than N failures a sample is examined, half of it from inside the promise, with equal parts of each kind; shares are
    those of all failures. The smallest seed of each bucket is shrunk, for at most 40 buckets.
    """
    from reports.evidence import triage
    from scenarios.sweep import error_groups
    from scenarios.sweep.store import StoredRuns

    store = asked.store()
    store.tell = noted(ui, READS, 1)
    store.runs = StoredRuns.BLOWS if asked.blows else StoredRuns.SEEDS
    # So many failures are looked at that N of them are not known.
    tell, tell_shrunk = noted(ui, is_timed=not asked.all_but_known), noted(ui, SHRINKS)
    try:
        found = triage.triage(
            store,
            asked.most,
            asked.kind,
            asked.local,
            all_but_known=asked.all_but_known,
            tell=tell,
            tell_shrunk=tell_shrunk,
        )
    except triage.NoFailureError as error:
        shortcomings, errors = store.shortcomings(), error_groups.of_store(store)
        if not shortcomings and not errors:
            raise
        ui.caution((*shortcomings, *error.problems))
        for line in error_groups.told(errors):
            ui.warn(line)
        return exit_codes.INCONCLUSIVE
    errors = error_groups.of_store(store)
    shortcomings = store.shortcomings()
    ui.caution(shortcomings)
    if asked.as_json:
        told = [group.to_json() for group in errors]
        ui.json({**triage.as_json(found), "errors": told, "shortcomings": shortcomings})
    else:
        ui.show(_blocks(found, error_groups.told(errors), str(asked.folder), several=len(store.sweep.scenarios) > 1))
    return exit_codes.INCONCLUSIVE if shortcomings else exit_codes.EXPECTED


def _blocks(found: Triage, errors: Iterable[str], folder: str, *, several: bool) -> Iterator[Block]:
    yield Heading(found.said)
    for side, inside in (("Inside the promise", True), ("Outside the promise", False)):
        buckets = [bucket for bucket in found.buckets if bucket.inside == inside]
        if buckets:
            headers = ["mode", "kind", "failures", "share", "smallest", "what to do", "repair"]
            rows = [_row(bucket, found.share(bucket)) for bucket in buckets]
            if found.several:
                headers = ["scenario", *headers]
                rows = [(bucket.scenario, *row) for bucket, row in zip(buckets, rows, strict=True)]
            yield Table(headers, rows, ["failures", "share", "smallest"], side)
    yield from _smallest(found, folder, several=several)
    yield from (Line(f"not examined: {line}") for line in found.unexplained)
    for place, line in enumerate(errors):
        if not place:
            yield Line("")
        yield Line(line)


def _row(bucket: Bucket, share: str) -> tuple[object, ...]:
    return bucket.mode, bucket.kind, bucket.count, share, bucket.smallest.seed, bucket.advice, bucket.repair


def _smallest(found: Triage, folder: str, *, several: bool) -> Iterator[Block]:
    from reports.evidence.triage import code_of, explains

    for bucket in found.buckets:
        if bucket.small is not None:
            known = f": {bucket.bug} ({bucket.ticket})" if bucket.bug else ""
            of = f"{bucket.scenario}, " if found.several else ""
            yield Heading(f"{of}{bucket.mode}, {bucket.kind}, {bucket.repair or 'no single repair'}{known}")
            if code := code_of(bucket):
                yield Line(f"in Kafka: {code}")
            if bucket.others:
                yield Line(f"each of these prevents all of them, too: {', '.join(bucket.others)}")
            left = ", ".join(bucket.small.faults) or "no fault"
            yield Line(f"seed {bucket.smallest.seed} shrunk: {left}; batches: {bucket.small.batches}")
            yield Line(bucket.smallest.replay)
            yield Line(explains(bucket, folder, several=several))
