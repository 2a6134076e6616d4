"""``highwater claims``: what Kafka says of replicated data, and what runs say of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from highwater.cli import completion
from highwater.cli.campaign import campaign_options
from highwater.cli.options import Command, json_option
from highwater.values import seed_range
from reports.document.blocks import Heading, Line, Table
from scenarios import plugged
from sim import exit_codes
from sim.config import shown
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from highwater.cli.campaign import CampaignPlace
    from highwater.cli.console import Ui
    from highwater.lab.claims.claims import ClaimJudgement, Evidence, KafkaClaim
    from reports.document.blocks import Block

SCHEMA_VERSION: Final = 1


def _names() -> list[str]:
    from highwater.lab.claims.claims import named

    return [claim.name for claim in named(())]


@click.command("claims", cls=Command)
@click.argument("names", metavar="[CLAIM]...", nargs=-1, shell_complete=completion.of(_names))
@click.option("--seeds", metavar="A..B|N", help="Judge the claims by runs: random scenarios with these seeds.")
@campaign_options("Keep the results of runs, so that the same command resumes.")
@json_option
@click.pass_obj
def command(ui: Ui, /, names: tuple[str, ...], seeds: str | None, as_json: bool, place: CampaignPlace) -> int:
    """List sentences of Kafka that promise something about replicated data, with the verdict of runs.

    Without --seeds, the verdicts are those that are recorded. With --seeds, each claim is judged by runs, and the exit
    code is 1 if one of them differs from its recorded verdict.
    """
    from highwater.lab.claims.claims import named

    chosen = named(names)
    judged = {} if seeds is None else _judged(chosen, seed_range(seeds), place)
    differing = [found for found in judged.values() if not found.expected]
    if as_json:
        entries = [_json(claim, judged.get(claim.name)) for claim in chosen]
        ui.json({"schema_version": SCHEMA_VERSION, "claims": entries})
    elif names:
        ui.show([*(block for claim in chosen for block in _claim(claim, judged.get(claim.name))), Line("")])
    else:
        ui.show(_table(chosen, judged))
    for found in differing:
        claim = found.claim
        ui.warn(f"highwater: {claim.name}: recorded as {claim.verdict}, {found.verdict} by these {found.runs} runs")
    code = exit_codes.UNEXPECTED if differing else exit_codes.EXPECTED
    if judged and not as_json:
        runs = sum(found.runs for found in judged.values())
        as_recorded = f"{len(judged) - len(differing)} of {counted(len(judged), 'claim')} judged as recorded"
        ui.verdict(f"{as_recorded}, by {counted(runs, 'run')}", code)
    return code


def _judged(chosen: Sequence[KafkaClaim], seeds: range, place: CampaignPlace) -> dict[str, ClaimJudgement]:
    from highwater.lab.claims.claims import judge

    # What a run shows does not depend on the claim, so a record serves all of them, and more seeds.
    with place.begin("claims", {}) as (runner, record):
        return {found.claim.name: found for found in judge(chosen, seeds, runner, record)}


def _table(chosen: Sequence[KafkaClaim], judged: Mapping[str, ClaimJudgement]) -> Iterator[Block]:
    if judged:
        rows = [(name, found.verdict, found.runs, found.broken_in) for name, found in judged.items()]
        headers = ["claim", "verdict", "runs", "of which contradict"]
        yield Table(headers, rows, numbers=headers[2:], apart=False)
    else:
        meanings = [(claim.name, claim.verdict, claim.means) for claim in chosen]
        yield Table(["claim", "verdict", "what it promises"], meanings, apart=False)
    verdicts = [found.verdict for found in judged.values()] or [claim.verdict for claim in chosen]
    yield Line("")
    yield Line(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)))
    yield Line(
        f"highwater claims {chosen[0].name} prints this claim with its source and runs; --seeds 0..100 judges all."
    )


def _claim(claim: KafkaClaim, found: ClaimJudgement | None) -> Iterator[Block]:
    from highwater.lab.claims.claims import BROKEN

    yield Heading(f"{claim.name}: {claim.verdict if found is None else found.verdict}")
    yield Line(f"  \u201c{claim.sentence}\u201d")
    yield Line(f"  {claim.source}")
    yield Line(f"  Promised: {claim.means}")
    if claim.why:
        yield Line(f"  Why: {claim.why}")
    for evidence in claim.evidence:
        side = "inside the promise" if evidence.promised else "anywhere"
        looked = "Contradicted by" if claim.verdict == BROKEN else "No run may show"
        yield Line(f"  {looked} {' or '.join(evidence.kinds)} ({side}): {_command(evidence)}")
    if found is not None:
        yield Line(f"  {found.broken_in} of {found.runs} runs contradict it")
        for scenario, mode, seed, kinds in found.seeds:
            yield Line(f"    {scenario}, {mode}, seed {seed}: {', '.join(kinds)}")


def _command(one: Evidence) -> str:
    words = ["run", one.scenario, "--mode", one.mode]
    if one.seed is not None:
        words += ["--seed", str(one.seed)]
    for key, value in one.settings:
        words += ["--set", f"{key}={shown(value)}"]
    return plugged.command(words)


def _json(claim: KafkaClaim, found: ClaimJudgement | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": claim.name,
        "sentence": claim.sentence,
        "source": claim.source,
        "means": claim.means,
        "recorded": claim.verdict,
        "why": claim.why,
        "commands": [_command(evidence) for evidence in claim.evidence],
    }
    if found is not None:
        seeds = [
            {"scenario": scenario, "mode": mode, "seed": seed, "kinds": list(kinds)}
            for scenario, mode, seed, kinds in found.seeds
        ]
        entry |= {"verdict": found.verdict, "runs": found.runs, "contradict": found.broken_in, "seeds": seeds}
    return entry
