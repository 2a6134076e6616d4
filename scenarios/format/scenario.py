"""Scenarios: what files, stores, driver and executors have. Each field is declared here, once.

Its type has its check, its form in a file, and what is stored of it (`scenarios.format.values`); the docstring has its
meaning. `scenarios.format.schema` finds all mistakes of a file with pydantic, which is not on the path of a run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from faults.bounds import FaultBounds
from faults.plan import Plan
from scenarios import paths
from scenarios.format import converter, fields, json_parts, values
from scenarios.format.actions import ACTIONS
from scenarios.format.blow import Blow
from scenarios.format.finding import FindingTable
from scenarios.format.values import AsSchema, Beside, Bounds, Check, FileKey, InFile, InSchema, Mark
from sim.config import GROUP_OFFSETS, Value, shown
from sim.environment.topology import Topology
from sim.history.steps import ACK, APPEND, ELR, ISR, READ, SETTLED, STEPS
from sim.hosts.control_plane import CONTROLLERS
from sim.protocol.modes import MODES

SCENARIO_VERSION: Final = 1
PlannedSend = tuple[int, int, int, int]
"""A batch of a random run: first record id, records, acks, time in us."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """A random workload: bursts of batches until the horizon. Pairs are inclusive bounds; for gaps and records each
    burst first draws its own upper bound.

    Attributes:
        bursts: number of bursts, spread over the horizon.
        batches: batches in a burst.
        gap_ms: time between two batches of a burst.
        records: records in a batch.
        acks_one_every: one in this many batches is sent with acks=1 (0: none); the others use the setting `acks`.
        near_percent: share of bursts that start close to an incident.
    """

    bursts: values.Pair
    batches: values.Pair
    gap_ms: values.Pair
    records: values.PositivePair
    acks_one_every: values.Natural = 0
    near_percent: values.Percent = 0


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of the cluster. Script lines and faults that name no partition are about the first one's partition 0.

    Attributes:
        name: its name.
        partitions: number of its partitions.
        replication_factor: number of replicas of each partition; without it, ``default.replication.factor``.
        idle: whether nothing is written to it, or read, before everything is healed.
        created: whether it exists from the start, or is created by the script or a fault.
        in_percent: the share of seeds in which there is this topic.
        config: its own ``min.insync.replicas``, which replaces that of ``[config]``.
        directory: number of the log directory, from 1, in which brokers create its replicas; without it, that with the
            fewest logs.
    """

    name: Annotated[str, Bounds(pattern=r"^[a-zA-Z0-9._-]+$", max_length=fields.TOPIC_MAX)]
    partitions: Annotated[int, Bounds(ge=1, le=fields.MAX_PARTITIONS)] = 1
    replication_factor: Annotated[int, Bounds(ge=1), Check(fields.factor)] | None = None
    idle: bool = False
    created: bool = True
    in_percent: values.Percent = 100
    config: values.TopicSettings = field(default_factory=dict)
    directory: Annotated[values.Directory | None, Mark.LATER] = None


ONLY_FOR: Final = {
    "batch": (APPEND.name, ACK.name, READ.name),
    "isr": (ISR.name,),
    "elr": (ELR.name,),
    "last_known_elr": (ELR.name,),
    "rounds": (SETTLED.name,),
}
"""Key of a pattern -> the steps that have it."""


def _only_for(key: str) -> Beside:
    steps = ONLY_FOR[key]

    def check(value: object, given: Mapping[str, Any]) -> object:
        if given.get("step", steps[0]) not in steps:
            raise ValueError(f"step {given['step']!r} has none; steps that have one: {', '.join(steps)}")
        return value

    return Beside(check)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of protocol steps to wait for or to expect; None matches anything.

    Attributes:
        step: kind of step.
        broker: the step's broker; 0: none.
        batch: name of the scripted batch (append, ack, read).
        offset: LEO, HW or target offset, as the step defines it.
        leader_epoch: leader epoch.
        isr: ISR, in any order.
        elr: eligible leader replicas, in any order.
        last_known_elr: last known eligible leader replicas, in any order.
        rounds: for settled followers, the number of truncation rounds.
        partition: the partition besides the first that it is about; None: the first.
    """

    step: Annotated[str, values.word("step", STEPS)]
    broker: values.BrokerOrNone | None = None
    batch: Annotated[str, _only_for("batch"), Check(fields.batch)] | None = None
    offset: values.Natural | None = None
    leader_epoch: values.Natural | None = None
    isr: Annotated[values.AnyReplicas, _only_for("isr")] | None = None
    elr: Annotated[values.AnyReplicas, _only_for("elr")] | None = None
    last_known_elr: Annotated[values.AnyReplicas, _only_for("last_known_elr")] | None = None
    rounds: Annotated[values.Natural, _only_for("rounds")] | None = None
    partition: values.FurtherPartition = None


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """One line of a script: wait for `when` after the line before, then `after_us` more, then `do`.

    Attributes:
        do: the action.
        when: pattern of a step that the line waits for, after the line before.
        after_us: further time.
        params: parameters of the action (``broker``, ``batch``, ``isr``, ``from``, ``to``, ...).
        rules: rule with its values: where a rule has another value, the line is skipped.
    """

    do: str
    when: Pattern | None = None
    after_us: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    rules: values.RuleValues = field(default_factory=dict)

    @classmethod
    def of_file(cls, table: Mapping[str, Any], facts: fields.Facts) -> ScriptLine:
        """Read its table, in which the parameters of the action stand beside the other keys."""
        left = dict(table)
        action = ACTIONS[left["do"]]
        after_us = 1_000 * left.pop("after_ms", 0) + left.pop("after_us", 0)
        params: dict[str, Any] = {}
        for name, param in action.params.items():
            if name in left:
                params[name] = converter.of_file(values.PARAMS[param.kind], left.pop(name), facts)
            elif param.default is not None:
                params[name] = param.default
        line = cls(**converter.fields_of_file(cls, left, facts))
        return replace(line, after_us=after_us, params=params)

    def as_file(self) -> dict[str, Any]:
        """The table that `of_file` reads."""
        return {**converter.fields_as_file(replace(self, params={})), **self.params}


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One line of the story: a step that matches `pattern` must occur after the line before.

    Attributes:
        rules: rule with its values, of the broker that the pattern names, or of the mode: where a rule has another
            value, the line is skipped.
    """

    pattern: Annotated[Pattern, Mark.FLAT]
    rules: values.RuleValues = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FinalLog:
    """The expected final log of a broker, without validation writes.

    Attributes:
        broker: the broker.
        batches: names of the scripted batches, in order; one that was appended twice is listed twice.
        leo: the offset after them, where validation writes begin; it reveals holes.
        partition: the partition; None: the first.
        rules: rule with its values: where the broker's rule has another value, the log is not checked.
    """

    broker: values.Broker
    batches: tuple[values.Batch, ...]
    leo: values.Natural | None = None
    rules: values.RuleValues = field(default_factory=dict)
    partition: values.FurtherPartition = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expectation for a mode: ``violates`` (any of the kinds), ``clean`` (none of the kinds; without kinds, no
    violation inside the promise) or ``may-violate``.
    """

    verdict: str
    kinds: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ":".join(filter(None, (self.verdict, "|".join(self.kinds))))


@dataclass(frozen=True, slots=True)
class AlsoOccurs:
    """Another kind that is known to occur.

    Attributes:
        kind: a kind of violation that is known to occur.
        modes: modes in which it occurs.
        label: whether the promise covers it.
        reason: why it occurs.
    """

    kind: values.Violation
    modes: Annotated[tuple[values.ModeName, ...], Bounds(min_length=1)]
    label: Annotated[str, InFile(Literal["inside", "outside"])]
    reason: values.Words


_Release = Annotated[str, Bounds(pattern=r"^[0-9]+([.][0-9]+)+$")]


@dataclass(frozen=True, slots=True)
class OnBrokers:
    """Releases of Kafka on whose brokers ``make confirm`` runs the scenario.

    Attributes:
        releases: the releases.
        pace: seconds of the scenario per real second.
        without: why brokers cannot run it; then there are no releases.
        shown_on: releases on whose brokers a program of its own, which `without` names, showed the failure each time,
            or this scenario with other settings.
        shown_by: in how many runs those of `shown_on` showed it, and with which settings.
    """

    releases: tuple[_Release, ...] = ()
    pace: values.Positive = 5
    without: values.Words = ""
    shown_on: tuple[_Release, ...] = ()
    shown_by: values.Words = ""

    @staticmethod
    def check_table(table: Any) -> None:
        """Check what keys demand of each other; raises ValueError."""
        if bool(table.releases) == bool(table.without):
            raise ValueError("it has either 'releases', or 'without', the reason why there are none")
        if table.shown_on and not (table.without or table.shown_by):
            raise ValueError("'shown_on' needs 'without', which names the program, or 'shown_by', the settings")
        if table.shown_by and not table.shown_on:
            raise ValueError("'shown_by' needs 'shown_on', the releases")


@dataclass(frozen=True, slots=True)
class Continuation:
    """A prefix of a recorded run until `after_us` (inclusive; -1: it is empty), continued with other latencies, which
    are numbered from 1, and with or without the faults after it.
    """

    after_us: int
    number: int
    faults: bool


@dataclass(frozen=True, slots=True)
class Recorded:
    """The recorded parts of a run, which are not drawn again (`scenarios.single.recording`).

    Attributes:
        sends: its batches ordered by time; None: draw them.
        further_sends: batches for the other partitions, by name.
        horizon_us: the time of healing; None: that of the scenario's faults.
        mode: the recorded mode; empty: none.
        words: its words on the command line.
        older: brokers that start in an older mode, and restart in the run's.
        continued: a continuation with other latencies; never stored.
        keeps_cluster: whether brokers and settings are a real cluster's, which shrinking leaves as they are.
    """

    plan: Plan
    sends: tuple[PlannedSend, ...] | None = None
    horizon_us: int | None = None
    mode: str = ""
    kinds: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    older: Mapping[int, str] = field(default_factory=dict)
    continued: Continuation | None = None
    further_sends: Mapping[str, tuple[PlannedSend, ...]] = field(default_factory=dict)
    keeps_cluster: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """The table of one broker in ``[brokers]``: its settings, and its mode if it has its own."""

    keys: values.Settings
    mode: values.ModeName | None = None


@dataclass(frozen=True, slots=True)
class Brokers:
    """The table ``[brokers]``.

    Attributes:
        count: number.
        first: the broker that starts first, and so becomes controller.
        upgraded_from: modes in which two of three brokers start, drawn from those older than the run's; they restart in
            the run's mode.
        sections: broker -> its own table.
    """

    count: Annotated[int, Bounds(ge=1, le=fields.MAX_BROKERS)]
    first: values.Broker = 1
    upgraded_from: tuple[values.ModeName, ...] = ()
    sections: Mapping[Annotated[int, InFile(str), Check(fields.section)], Section] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Controllers:
    """The table ``[controllers]`` of a file with ``control = "quorum"``.

    Attributes:
        count: number of controllers, with ids from 100 on.
        dynamic: whether the voters can change (kraft.version 1, KIP-853).
    """

    count: Annotated[int, Check(fields.controllers), InSchema(enum=list(CONTROLLERS))] = fields.USUAL_CONTROLLERS
    dynamic: Annotated[bool, Mark.LATER] = False


_COUNT: Final = {"type": "integer", "minimum": 1, "maximum": fields.MAX_BROKERS}
_MODE: Final = {"enum": list(MODES)}
_BROKERS: Final = json_parts.brokers(_COUNT, _COUNT, {"type": "array", "items": _MODE}, _MODE)


@dataclass(frozen=True)  # Without slots: it keeps its hash.
class Scenario:
    """Cluster settings, workload, faults and expectations.

    Attributes:
        name: the scenario's name, which rows and folders have.
        title: one line.
        description: what it shows, and its source.
        brokers: number of brokers, ids from 1; the replicas are the first `default.replication.factor` of them.
        control: ``real``: ZooKeeper or KRaft, as in the mode, as one node that loses nothing; ``quorum``: KRaft, with
            controllers that are processes, and brokers that fetch metadata from them; ``scripted``: the script is the
            control plane.
        controllers: the controllers of ``control = "quorum"``.
        first: the broker that starts first, and so becomes controller.
        config: settings of all brokers and clients (only those that the file sets).
        broker_config: settings of single brokers.
        broker_modes: modes of single brokers (mixed versions).
        upgraded_from: modes in which two of three brokers start, drawn from those older than the run's; they restart in
            the run's mode.
        draw_config: settings that the seed chooses from a list: key and values.
        workload: random batches; without it, the script sends all batches.
        faults: random faults.
        script: lines of the script, in order.
        story: steps that must occur, in this order.
        final: logs at the end.
        expect: mode with its expectation: ``clean``, ``clean:KIND|KIND``, ``violates:KIND|KIND`` or ``may-violate``.
        broken_by: clean mode with rule values with which an expected kind occurs: each of them alone, or, if later
            rules mask one another, together.
        also: other kinds that are known to occur.
        confirm: releases of Kafka on whose brokers `make confirm` runs it.
        finding: the failure of Kafka's that the scenario shows.
        topology: racks, power domains and hosts of brokers.
        topics: the topics; without it, one with one partition, as `config` says.
        settle_us: time for convergence beyond the default deadline.
        source: its word on the command line: name, or path of its file.
        overrides: ``key=value`` words that override `config`, for the replay line.
        strict: whether early warnings count as violations (``--strict``).
        recorded: a recorded run, the only one of this scenario; it has its own file.
        without_faults: kinds of fault that the user excludes: a seed's plan is drawn as before, and they do not strike.
        blows: blows of one run, which each follow an early warning (`scenarios.format.blow`); never stored.
        shown: the partition that results show, if the run has it (``--partition``); empty: that of the first violation.
            Never stored.
    """

    name: Annotated[
        values.Name,
        Check(fields.scenario_name),
        InSchema(maxLength=paths.NAME_MAX, pattern="^[a-z0-9.-]*[a-z0-9-][a-z0-9.-]*$"),
    ]
    title: Annotated[values.OneLine, Mark.ABOUT]
    description: Annotated[str, FileKey(default=""), Mark.ABOUT]
    brokers: Annotated[int, InFile(Brokers), Check(fields.sections, first=True), AsSchema(_BROKERS)]
    control: Annotated[str, values.word("control plane", ("real", "scripted", fields.QUORUM))]
    first: Annotated[int, Mark.ELSEWHERE] = 1
    config: values.Settings = field(default_factory=dict)
    broker_config: Annotated[Mapping[int, Mapping[str, Value]], Mark.ELSEWHERE] = field(default_factory=dict)
    broker_modes: Annotated[Mapping[int, str], Mark.ELSEWHERE] = field(default_factory=dict)
    upgraded_from: Annotated[tuple[str, ...], Mark.ELSEWHERE] = ()
    draw_config: Annotated[values.Draws, FileKey("draw")] = field(default_factory=dict)
    workload: Bursts | None = None
    faults: FaultBounds | None = None
    script: tuple[ScriptLine, ...] = ()
    story: tuple[StoryLine, ...] = ()
    final: tuple[FinalLog, ...] = ()
    expect: Annotated[
        Mapping[values.ModeName, Annotated[Expectation, InFile(str, str), Check(fields.expectation)]],
        Bounds(min_length=1),
        Mark.REQUIRED,
        Mark.ABOUT,
    ] = field(default_factory=dict)
    broken_by: Annotated[Mapping[values.ModeName, values.RuleValue], Mark.ABOUT] = field(default_factory=dict)
    also: Annotated[tuple[AlsoOccurs, ...], Mark.ABOUT] = ()
    confirm: Annotated[OnBrokers | None, Mark.ABOUT, Mark.LATER] = None
    finding: Annotated[FindingTable | None, Mark.ABOUT, Mark.LATER] = None
    topology: Annotated[Topology | None, Mark.LATER] = None
    controllers: Annotated[Controllers | None, Mark.LATER] = None
    topics: Annotated[tuple[Topic, ...], Check(fields.topics), Mark.LATER] = ()
    settle_us: Annotated[values.Natural, Mark.IN_MS] = 0
    source: Annotated[str, Mark.ABOUT, Mark.REQUEST] = ""
    overrides: Annotated[tuple[str, ...], Mark.ABOUT, Mark.REQUEST] = ()
    strict: Annotated[bool, Mark.ABOUT, Mark.REQUEST] = False
    without_faults: Annotated[tuple[values.FaultName, ...], Mark.LATER, Mark.REQUEST] = ()
    recorded: Annotated[Recorded | None, Mark.NEVER] = None
    blows: Annotated[tuple[Blow, ...], Mark.NEVER] = ()
    shown: Annotated[str, Mark.NEVER] = ""

    def with_settings(self, settings: Mapping[str, Value]) -> Scenario:
        """A copy with overridden settings, which are not drawn then. If acks is one of them, all batches of a random
        workload are sent with it.
        """
        if not settings:
            return self
        workload = self.workload
        if "acks" in settings and workload is not None:
            workload = replace(workload, acks_one_every=0)
        return replace(
            self,
            workload=workload,
            config={**self.config, **settings},
            draw_config={key: values for key, values in self.draw_config.items() if key not in settings},
            overrides=(*self.overrides, *(f"{key}={shown(value)}" for key, value in settings.items())),
        )

    @property
    def drawn(self) -> bool:
        """Whether faults are random or were recorded; a scripted scenario is the same at every seed."""
        return self.faults is not None or self.recorded is not None

    @property
    def may_keep_offsets(self) -> bool:
        """Whether consumers commit to a partition of the cluster, on some seeds at least."""
        return "partition" in self.draw_config.get(GROUP_OFFSETS, (self.config.get(GROUP_OFFSETS),))

    @property
    def controller_count(self) -> int:
        """Number of controllers that are processes; 0: the control plane is one node."""
        if self.control != fields.QUORUM:
            return 0
        return fields.USUAL_CONTROLLERS if self.controllers is None else self.controllers.count

    @property
    def has_dynamic_voters(self) -> bool:
        """Whether the voters of the quorum can change."""
        return self.controllers is not None and self.controllers.dynamic

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return sum(topic.partitions for topic in self.topics) or 1

    def counts(self, warning: str) -> bool:
        """Whether an early warning of this kind counts as a violation: with `strict`, or if an expectation names it."""
        return self.strict or any(warning in expectation.kinds for expectation in self.expect.values())

    def to_json(self) -> dict[str, Any]:
        """Plain data with `schema_version`; `from_json` reads it."""
        return {"schema_version": SCENARIO_VERSION, **converter.to_plain(self)}

    def scenario_hash(self) -> str:
        """Hash of settings, workload and faults, without title, expectations and comments (16 hex digits)."""
        return self._hash

    @cached_property
    def _hash(self) -> str:
        about = {one.name for one in converter.declared(Scenario) if Mark.ABOUT in one.marks}
        plain = {key: value for key, value in converter.to_plain(self).items() if key not in about}
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def as_file(self) -> dict[str, Any]:
        """The data of the corresponding file; `of_file` reads it."""
        sections = {str(broker): dict(keys) for broker, keys in self.broker_config.items()}
        for broker, mode in self.broker_modes.items():
            sections.setdefault(str(broker), {})["mode"] = mode
        brokers = {"count": self.brokers, "first": self.first, "upgraded_from": list(self.upgraded_from), **sections}
        return {"schema": SCENARIO_VERSION, **converter.fields_as_file(self), "brokers": brokers}


def of_file(data: Mapping[str, Any]) -> Scenario:
    """The scenario of a file, of which only part is checked.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: it is not valid.
    """
    table = {key: value for key, value in data.items() if key != "schema"}
    given = converter.fields_of_file(Scenario, table, fields.gather(data))
    brokers: Brokers = given.pop("brokers")
    return Scenario(
        **given,
        brokers=brokers.count,
        first=brokers.first,
        upgraded_from=brokers.upgraded_from,
        broker_config={broker: section.keys for broker, section in brokers.sections.items() if section.keys},
        broker_modes={broker: section.mode for broker, section in brokers.sections.items() if section.mode},
    )


def from_json(data: Mapping[str, Any]) -> Scenario:
    """Read `Scenario.to_json`.

    Raises:
        InputError: the name is unsafe in a path.
        ValueError: `schema_version` is newer than this code reads.
    """
    if data["schema_version"] > SCENARIO_VERSION:
        raise ValueError(f"scenario has schema_version {data['schema_version']}; this version reads {SCENARIO_VERSION}")
    paths.name(data["name"], "scenario's name")
    scenario: Scenario = converter.of_plain(Scenario, {key: data[key] for key in data if key != "schema_version"})
    return scenario
