"""Claims: what Kafka's code, manual and KIPs say of replicated data, and which runs would contradict it.

A claim names violations that would break it, and the scenarios, modes and settings in which to look for them. It is
*broken* if one of these runs shows such a violation, *held* if none of many does, and *untested* if no run here can
decide it, with the reason.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, Final

from scenarios.campaign.campaign import Campaign
from scenarios.campaign.record import Record
from scenarios.campaign.runner import Runner
from scenarios.format.catalogue import load
from scenarios.format.findings import all_findings
from scenarios.single.run import run_row
from sim.errors import InputError, did_you_mean
from sim.protocol.modes import mode as mode_named

BROKEN: Final = "broken"
HELD: Final = "held"
UNTESTED: Final = "untested"
SEEDS: Final = 20
"""Seeds of a case, at most."""

Case = tuple[str, str, tuple[tuple[str, Any], ...], tuple[int, ...]]
"""Scenario, mode, settings and seeds of some runs."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Runs that may contradict a claim.

    Attributes:
        scenario: the scenario; a scripted one runs once.
        mode: the mode.
        kinds: kinds of violation or early warning that contradict the claim.
        promised: whether only violations inside the mode's promise do.
        settings: settings that differ from the scenario's.
        seed: the only seed to run, of a random scenario that is known to contradict; None: those asked for.
    """

    scenario: str
    mode: str
    kinds: tuple[str, ...]
    promised: bool = True
    settings: tuple[tuple[str, Any], ...] = ()
    seed: int | None = None

    def cases(self, seeds: range) -> Iterator[Case]:
        """Its runs: a random scenario with these seeds, a scripted one once."""
        chosen: Sequence[int] = [self.seed] if self.seed is not None else seeds if load(self.scenario).drawn else [0]
        for first in range(0, len(chosen), SEEDS):
            yield self.scenario, self.mode, self.settings, tuple(chosen[first : first + SEEDS])


@dataclass(frozen=True, slots=True)
class KafkaClaim:
    """A sentence of Kafka.

    Attributes:
        name: a short name.
        sentence: the sentence, as Kafka has it.
        source: where it stands, with the release or KIP.
        means: what it promises to a user, in our words.
        verdict: what is known: `BROKEN`, `HELD` or `UNTESTED`.
        evidence: the runs to look at; none if it is untested.
        why: why it is untested, or how it is broken.
    """

    name: str
    sentence: str
    source: str
    means: str
    verdict: str
    evidence: tuple[Evidence, ...]
    why: str = ""


@dataclass(slots=True)
class ClaimJudgement:
    """What runs said of a claim.

    Attributes:
        runs: number of runs that could have contradicted it.
        seeds: scenario, mode and seed of the runs that did, with the kinds of violation; at most `SEEDS_MAX`.
        broken_in: number of runs that contradict it.
    """

    claim: KafkaClaim
    runs: int
    broken_in: int
    seeds: list[tuple[str, str, int, tuple[str, ...]]]

    @property
    def verdict(self) -> str:
        """The verdict of these runs alone."""
        if not self.claim.evidence:
            return UNTESTED
        return BROKEN if self.broken_in else HELD

    @property
    def expected(self) -> bool:
        """Whether these runs say what is known of the claim."""
        return self.verdict == self.claim.verdict


SEEDS_MAX: Final = 5


@cache
def claims() -> tuple[KafkaClaim, ...]:
    """All claims, in the order of the file."""
    data = tomllib.loads((resources.files(__package__) / "claims.toml").read_text(encoding="utf-8"))
    return tuple(_claim(entry) for entry in data["claims"])


def _claim(entry: dict[str, Any]) -> KafkaClaim:
    """A claim, with evidence of the findings that contradict it, or of their repaired modes if it is `repaired`, the
    same sentence as if bugs were repaired.
    """
    evidence = _of_findings(entry["name"], entry.pop("repaired", ""), tuple(entry.pop("kinds", ())))
    evidence += [
        Evidence(**{**one, "kinds": tuple(one["kinds"]), "settings": tuple(one.get("settings", {}).items())})
        for one in entry.pop("evidence", ())
    ]
    return KafkaClaim(**entry, evidence=tuple(evidence))


def _of_findings(name: str, repaired: str, kinds: tuple[str, ...]) -> list[Evidence]:
    found = []
    for finding in all_findings().values():
        if (repaired or name) in finding.table.contradicts:
            mode, expected = finding.kept_in if repaired else finding.shown_in
            found.append(Evidence(finding.name, mode, kinds or expected))
    return found


def named(names: Sequence[str]) -> list[KafkaClaim]:
    """The claims of these names; all without any.

    Raises:
        InputError: there is no such claim.
    """
    known = {claim.name: claim for claim in claims()}
    for name in names:
        if name not in known:
            raise InputError(f"unknown claim {name!r}{did_you_mean(name, known)}")
    return [known[name] for name in dict.fromkeys(names)] or list(known.values())


def judge(
    chosen: Sequence[KafkaClaim], seeds: range, runner: Runner, record: Record | None = None
) -> Iterator[ClaimJudgement]:
    """Judge claims by runs: random scenarios with these seeds, scripted ones once. Equal runs are shared."""
    cases = (case for claim in chosen for evidence in claim.evidence for case in evidence.cases(seeds))
    results = Campaign(run_case, runner, record).run(cases)
    for claim in chosen:
        found = ClaimJudgement(claim, 0, 0, [])
        for evidence in claim.evidence:
            for *_, of_case in evidence.cases(seeds):
                _, ends = next(results)
                for seed, end in zip(of_case, ends, strict=True):
                    _look(found, evidence, seed, end)
        yield found


def run_case(case: Case) -> list[tuple[str, str, str]]:
    """The violations, violations inside the promise, and verdict of each run of a case."""
    name, mode, settings, seeds = case
    # Strict, so that an early warning counts as a violation.
    scenario = replace(load(name).with_settings(dict(settings)), strict=True)
    rows = (run_row(scenario, mode_named(mode), seed) for seed in seeds)
    return [(row["violations"], row["violations_inside"], row["verdict"]) for row in rows]


def _look(found: ClaimJudgement, one: Evidence, seed: int, end: tuple[str, str, str]) -> None:
    violations, inside, verdict = end
    if verdict == "error":
        return
    found.runs += 1
    seen = (inside if one.promised else violations).split(",")
    kinds = tuple(kind for kind in one.kinds if kind in seen)
    if kinds:
        found.broken_in += 1
        if len(found.seeds) < SEEDS_MAX:
            found.seeds.append((one.scenario, one.mode, seed, kinds))
