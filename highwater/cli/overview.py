"""The commands as ``highwater --help`` lists them, and an example of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Run scenarios": {
        "scenarios": "List, show or validate scenarios, or write a new one",
        "modes": "List the modelled releases of Kafka, or show one with its rules",
        "rules": "Search rules, their values, sources and findings",
        "advise": "Compare your settings with changes of one setting each",
        "settings": "Tell which keys of a server.properties have an effect",
        "run": "Run one seed of scenarios and print what happened",
        "sweep": "Run many seeds on Spark or locally; resumes where it stopped",
    },
    "Understand results": {
        "compare": "Compare modes or settings of a sweep: rates, intervals, pairs",
        "review": "Review a mode against another: what a KIP's author asks",
        "triage": "Group the failures of a sweep by what cures them",
        "report": "Write a sweep's report as one HTML file",
        "open": "Show results as web pages, also while a sweep runs",
        "coverage": "Show which branches and transitions a sweep reached",
        "columns": "List the columns of a sweep's rows",
        "replay": "Run one seed again and write its logs, trace and plan",
        "explain": "Tell in sentences how one run failed, and what would have helped",
        "show": "Write one run as an HTML page to step through",
        "draw": "Draw one run as an SVG picture",
        "shrink": "Find the smallest run that fails for the same cause",
        "explore": "Try every order of events in a small KRaft cluster",
        "claims": "List what Kafka promises of data, and whether it holds",
        "bugs": "List bugs that a Kafka release repaired, before and after",
        "zoo": "List mutants and bugs of Kafka, or hunt them at random",
        "hunt": "Hunt for new failures of a release or a build, overnight",
    },
    "Real brokers and this machine": {
        "audit": "Check a KRaft cluster: what is at risk, what happened",
        "confirm": "Play a scripted scenario on real brokers and compare",
        "ticket": "Write a failure on real brokers for Kafka's developers",
        "kafka": "List or fetch releases of Kafka",
        "doctor": "Check this machine, or a sweep's folder",
        "spark-package": "Pack Highwater for the workers of a Spark cluster",
    },
}
"""Heading -> command -> description that fits one line of a terminal."""

INSTRUMENTS: Final[Mapping[str, str]] = {
    **{
        name: name
        for name in (
            "advise",
            "audit",
            "bugs",
            "claims",
            "confirm",
            "explore",
            "hunt",
            "kafka",
            "open",
            "review",
            "zoo",
        )
    },
    "ticket": "tickets",
}
"""Command -> its folder in `highwater/lab`."""


def module(command: str) -> str:
    """The module of a command."""
    if command in INSTRUMENTS:
        return f"highwater.lab.{INSTRUMENTS[command]}.command"
    return f"highwater.cli.commands.{command.replace('-', '_')}"


EXAMPLES: Final[Mapping[str, str]] = {
    "scenarios list": "highwater scenarios list",
    "scenarios show": "highwater scenarios show power --resolved",
    "scenarios new": "highwater scenarios new ./mine.toml --drawn",
    "scenarios schema": "highwater scenarios schema",
    "scenarios validate": "highwater scenarios validate ./mine.toml",
    "modes list": "highwater modes list",
    "modes show": "highwater modes show kip101",
    "rules": "highwater rules truncat",
    "advise": "highwater advise --replicas 3 --racks 3 --together rack --release 3.9 --budget 2m",
    "settings": "highwater settings ./server.properties --release 3.9",
    "run": "highwater run kip101-scenario-1 --mode hw",
    "sweep": "highwater sweep power --modes hw,kip101 --seeds 0..10000 --output store/power --local 2",
    "compare": "highwater compare store/power --kind committed-loss",
    "review": "highwater review ./mine.toml --against elr-4.3 --budget 10m --output store/review",
    "triage": "highwater triage store/power --most 20",
    "report": "highwater report store/power -o power.html",
    "open": "highwater open store/power",
    "coverage": "highwater coverage store/power",
    "columns": "highwater columns",
    "replay": "highwater replay store/power --seed 20 --mode hw",
    "explain": "highwater explain store/power --seed 20 --mode hw",
    "show": "highwater show store/power --seed 20 --mode hw --against kip101",
    "draw": "highwater draw store/power --seed 20 --mode hw --output power-20.svg",
    "shrink": "highwater shrink store/power --seed 20 --mode hw",
    "explore": "highwater explore --mode kraft --losses 0 --fences 0",
    "claims": "highwater claims acks-all",
    "bugs": "highwater bugs KAFKA-9839",
    "zoo list": "highwater zoo list",
    "zoo show": "highwater zoo show join-below-hw",
    "zoo hunt": "highwater zoo hunt join-below-hw --seeds 0..2000",
    "zoo count": "highwater zoo count elr-chaos messages --seeds 0..20",
    "hunt": "highwater hunt --kafka 4.4.0 --budget 8h --output store/hunt",
    "audit": "highwater audit /var/lib/kafka/__cluster_metadata-0",
    "confirm": "highwater confirm last-replica-standing --kafka 4.1.0",
    "ticket": "highwater ticket reassignment-back --output store/ticket",
    "kafka list": "highwater kafka list",
    "kafka fetch": "highwater kafka fetch 4.1.0",
    "doctor": "highwater doctor store/power",
    "spark-package": "highwater spark-package -o dist",
}
"""Command -> an example."""
