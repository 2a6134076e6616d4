"""Which controller of a quorum lacks metadata, and whether one can be formatted or restarted now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from highwater.lab.audit.results import when
from highwater.lab.audit.voters import NO_NODE, QuorumDisks, VoterDisk, read_quorum
from reports.document.blocks import Heading, Items, Table
from sim import exit_codes
from sim.errors import InputError, did_you_mean
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from highwater.cli.console import Ui
    from reports.document.blocks import Block

FORMAT, RESTART = "--before-format", "--before-restart"


def audit_quorum(
    ui: Ui, folders: Sequence[Path], to_format: int | None, to_restart: int | None, *, form: str, as_json: bool
) -> int:
    """Print the audit of several controllers' disks; returns the exit code.

    Raises:
        InputError: the folders are not those of one quorum, or do not suffice to answer.
        StorageError: a file cannot be read.
    """
    quorum = read_quorum(folders)
    for option, voter in ((FORMAT, to_format), (RESTART, to_restart)):
        if voter is not None and voter not in quorum.voters:
            voters = [str(number) for number in quorum.voters]
            raise InputError(f"{option} {voter}: there is no such voter{did_you_mean(str(voter), voters)}")
    voter = to_format if to_format is not None else to_restart
    if voter is not None and quorum.by_log:
        raise InputError(
            f"{FORMAT if to_format is not None else RESTART} {voter}: no file quorum-state names the voters (with "
            "kraft.version 1 the metadata log does), so nobody knows here what a majority of them is"
        )
    reasons = [] if voter is None else _reasons(quorum, voter, formats=to_format is not None)
    if voter is None:
        lacking = len(quorum.voters) != sum(map(quorum.has_all, quorum.disks.values()))
        code = exit_codes.UNEXPECTED if lacking or _warnings(quorum) else exit_codes.EXPECTED
    else:
        code = exit_codes.UNEXPECTED if reasons else exit_codes.EXPECTED
    answer = _answer(quorum) if voter is None else _answer_for(voter, formats=to_format is not None, reasons=reasons)
    if as_json:
        ui.json(_as_json(quorum, answer, reasons))
        return code
    ui.show(_blocks(quorum, reasons), form)
    if form == "text":
        ui.verdict(answer, code)
    else:
        ui.show([Heading(answer)], form)
    return code


def _reasons(quorum: QuorumDisks, voter: int, *, formats: bool) -> list[str]:
    """What speaks against formatting the disk of a voter, or stopping it; raises InputError if that is unknown."""
    holders = quorum.holders_without(voter)
    unknown = [number for number in quorum.voters if number not in quorum.disks and number != voter]
    if len(holders) >= quorum.majority:
        return []
    if len(holders) + len(unknown) >= quorum.majority:
        raise InputError(
            f"{FORMAT if formats else RESTART} {voter}: the folders of {_controllers(unknown)} are needed, too: "
            f"only {_controllers(holders)} of {len(quorum.voters)} voters are known to have all metadata"
        )
    lacking = [disk for number, disk in quorum.disks.items() if number not in (*holders, voter)]
    names = _controllers([disk.number for disk in lacking])
    what = (
        f"With the vote of an empty controller {voter}, {names} could lead: these records would be lost, and with them "
        "changes of ISRs by which data was acknowledged (scenario quorum-empty-voter)."
        if formats
        else f"Without controller {voter}, no majority has them: no ISR could change and no leader could be elected "
        f"before it is back or {names} fetched them."
    )
    advice = f"Do: let {names} run and fetch until this audit says yes."
    return [*(_told(quorum, disk) for disk in lacking), what, advice]


def _answer_for(voter: int, *, formats: bool, reasons: Sequence[str]) -> str:
    what = "be formatted" if formats else "be restarted"
    if reasons:
        return f"Can controller {voter} {what} now? No: without it, no majority has all metadata"
    return (
        f"Can controller {voter} {what} now? Yes, as far as these disks show: without it, a majority has all metadata"
    )


def _answer(quorum: QuorumDisks) -> str:
    unknown = [number for number in quorum.voters if number not in quorum.disks]
    holders = sum(map(quorum.has_all, quorum.disks.values()))
    end = quorum.longest.end_offset
    told = f"{holders} of {len(quorum.voters)} voters have all metadata, up to record {end - 1}"
    return f"{told}; not given: {_controllers(unknown)}" if unknown else told


def _told(quorum: QuorumDisks, disk: VoterDisk) -> str:
    """What a voter lacks, in a sentence."""
    shared, longest = disk.shares_with(quorum.longest), quorum.longest
    changes = counted(sum(offset >= shared for offset in longest.changes), "change")
    if shared < longest.start_offset:
        changes = f"what the snapshot before record {longest.start_offset} has, and {changes} since"
    if not disk.end_offset:
        return f"Controller {disk.number} has no record, and lacks {changes}."
    last = f", appended at {when(disk.time_ms)} UTC" if disk.time_ms >= 0 else ""
    lacks = f"Controller {disk.number} lacks records {shared} to {longest.end_offset - 1}: {changes}"
    return f"{lacks}. Its log ends at record {disk.end_offset - 1}{last}."


def _warnings(quorum: QuorumDisks) -> list[str]:
    """What is strange about votes and logs."""
    found = []
    if quorum.with_majority < quorum.needed and len(quorum.disks) == len(quorum.voters):
        found.append(
            f"No majority has the records from {quorum.with_majority} on: they are not committed yet, or they were, "
            "and the disk of a voter that had them was replaced."
        )
    for disk in quorum.disks.values():
        first, end = quorum.replaced(disk)
        if first < end:
            found.append(
                f"Controller {disk.number} has records {first} to {end - 1} in epoch {disk.last_epoch}, and the newest "
                "log has others in their place: they were never committed, or were lost."
            )
        if disk.vote is None and disk.end_offset:
            found.append(
                f"Controller {disk.number} has a log, but no file quorum-state: it may vote a second time in epoch "
                f"{disk.last_epoch}."
            )
        elif disk.vote is not None and disk.vote.epoch < disk.last_epoch:
            found.append(
                f"Controller {disk.number} has a file quorum-state of epoch {disk.vote.epoch}, and a log of epoch "
                f"{disk.last_epoch}: the file is an old copy."
            )
    votes = [disk.vote for disk in quorum.disks.values() if disk.vote is not None and disk.vote.leader != NO_NODE]
    for epoch in sorted({vote.epoch for vote in votes}):
        leaders = sorted({vote.leader for vote in votes if vote.epoch == epoch})
        if len(leaders) > 1:
            found.append(f"Epoch {epoch} has several leaders: {_controllers(leaders)}.")
    if len(quorum.voters) % 2 == 0:
        found.append(f"{len(quorum.voters)} voters survive no more ends than {len(quorum.voters) - 1} do.")
    if quorum.by_log:
        found.append("No file quorum-state names the voters, so those that are given are taken for all of them.")
    return found


def _blocks(quorum: QuorumDisks, reasons: Sequence[str]) -> Iterator[Block]:
    headers = ("controller", "records", "epoch", "last one (UTC)", "vote: epoch", "leader", "voted for", "has all")
    yield Table(headers, [_row(quorum, number) for number in quorum.voters], apart=False)
    lacking = [_told(quorum, disk) for disk in quorum.disks.values() if not quorum.has_all(disk)]
    if sentences := [*(reasons or lacking), *_warnings(quorum)]:
        yield Items(sentences)


def _row(quorum: QuorumDisks, number: int) -> tuple[object, ...]:
    disk = quorum.disks.get(number)
    if disk is None:
        return (number, "not given", None, None, None, None, None, "unknown")
    vote = disk.vote
    records = f"{disk.start_offset} to {disk.end_offset - 1}" if disk.end_offset else "none"
    votes = (None, None, None) if vote is None else (vote.epoch, _known(vote.leader), _known(vote.voted))
    return (
        number,
        records,
        _known(disk.last_epoch),
        when(disk.time_ms),
        *votes,
        "yes" if quorum.has_all(disk) else "no",
    )


def _known(number: int) -> int | None:
    return None if number == NO_NODE else number


def _controllers(numbers: Sequence[int]) -> str:
    if not numbers:
        return "no controller"
    *others, last = map(str, numbers)
    return f"controllers {', '.join(others)} and {last}" if others else f"controller {last}"


def _as_json(quorum: QuorumDisks, answer: str, reasons: Sequence[str]) -> dict[str, Any]:
    return {
        "answer": answer,
        "reasons": list(reasons),
        "warnings": _warnings(quorum),
        "voters": list(quorum.voters),
        "end_offset": quorum.longest.end_offset,
        "majority_end_offset": quorum.with_majority,
        "controllers": [
            {
                "controller": disk.number,
                "start_offset": disk.start_offset,
                "end_offset": disk.end_offset,
                "epoch": disk.last_epoch,
                "has_all": quorum.has_all(disk),
                "shares": disk.shares_with(quorum.longest),
                "leader": None if disk.vote is None else disk.vote.leader,
                "voted": None if disk.vote is None else disk.vote.voted,
                "vote_epoch": None if disk.vote is None else disk.vote.epoch,
            }
            for disk in quorum.disks.values()
        ],
    }
