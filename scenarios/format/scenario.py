"""Scenarios as plain data, the same on driver and executors.

`scenarios.format.schema` reads them from TOML; nothing on the path of a run uses pydantic or files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from faults.bounds import FaultBounds
from faults.plan import Plan
from scenarios import paths
from scenarios.format.blow import Blow
from scenarios.format.finding import FindingTable
from scenarios.format.finding import from_plain as finding_from_plain
from sim.config import Value, shown
from sim.environment.topology import Topology

SCENARIO_VERSION: Final = 1
LATER_SHARES: Final = ("others_percent", "copying_percent", "one_directory_percent")
"""Shares of ``[faults]`` that a hashed scenario has only if they are not 0, because they are newer than its hash."""
_ABOUT: Final = (
    *("title", "description", "expect", "broken_by", "also", "confirm", "finding"),
    *("source", "overrides", "strict"),
)
"""Keys of a scenario that its hash leaves out: what is said about it."""
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

    bursts: tuple[int, int]
    batches: tuple[int, int]
    gap_ms: tuple[int, int]
    records: tuple[int, int]
    acks_one_every: int = 0
    near_percent: int = 0


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of the cluster. Script, faults and most columns of a row are about the first partition of the first one.

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

    name: str
    partitions: int = 1
    replication_factor: int | None = None
    idle: bool = False
    created: bool = True
    in_percent: int = 100
    config: Mapping[str, Value] = field(default_factory=dict)
    directory: int | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of protocol steps to wait for or to expect; None matches anything.

    Attributes:
        step: kind of step, one of `sim.history.steps.STEPS`.
        batch: name of the scripted batch (append, ack, read).
        offset: LEO, HW or target offset, as the step defines it.
        rounds: for settled followers, the number of truncation rounds.
        partition: the partition besides the first that it is about; None: the first.
    """

    step: str
    broker: int | None = None
    batch: str | None = None
    offset: int | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    rounds: int | None = None
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """One line of a script: wait for `when` after the line before, then `after_us` more, then `do`.

    Attributes:
        do: one of `scenarios.format.actions.ACTIONS`.
        params: parameters of the action (``broker``, ``batch``, ``isr``, ``from``, ``to``, ...).
        rules: rule -> values; the line is skipped if the mode has another value.
    """

    do: str
    when: Pattern | None = None
    after_us: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One line of the story: a step that matches `pattern` must occur after the line before.

    `rules` restricts it to rules of the broker that it names, or of the mode
    (``{"follower_truncation": ("leader-epoch", "leader-epoch-rounds")}``): the line is skipped where a rule has
    another value.
    """

    pattern: Pattern
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FinalLog:
    """The expected final log of a broker, without validation writes.

    Attributes:
        broker: the broker.
        batches: names of the scripted batches, in order; one that was appended twice is listed twice.
        leo: the offset after them, where validation writes begin; it reveals holes.
        partition: the partition; None: the first.
        rules: as in `StoryLine`, for the broker's rules.
    """

    broker: int
    batches: tuple[str, ...]
    leo: int | None = None
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expectation for a mode: ``violates`` (any of the kinds), ``clean`` (none of the kinds; without kinds, no
    violation inside the promise) or ``may-violate``.
    """

    verdict: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AlsoOccurs:
    """Another kind that is known to occur, with its label (inside / outside) and the reason."""

    kind: str
    modes: tuple[str, ...]
    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class OnBrokers:
    """Releases of Kafka on whose brokers ``make confirm`` runs the scenario.

    Attributes:
        releases: the releases.
        pace: seconds of the scenario per real second.
        without: why brokers cannot run it; then there are no releases.
    """

    releases: tuple[str, ...] = ()
    pace: int = 5
    without: str = ""


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
class Scenario:
    """Cluster settings, workload, faults and expectations.

    Attributes:
        name: ``[a-z0-9.-]+``.
        description: what it shows, and its source.
        brokers: number of brokers, ids from 1; the replicas are the first `default.replication.factor` of them.
        control: ``real`` (ZooKeeper and an elected controller) or ``scripted``.
        first: the broker that starts first, and so becomes controller.
        config: cluster settings (only those that the file sets).
        broker_modes: modes of single brokers (mixed versions).
        upgraded_from: modes in which two of three brokers start, drawn from those older than the run's; they restart in
            the run's mode.
        draw_config: keys drawn per seed from a list of values.
        workload: bursts; None if the script sends all batches.
        faults: bounds of random faults; None if there are none.
        expect: mode -> expectation.
        broken_by: clean mode -> rule values with which an expected kind occurs: each of them alone, or, if later rules
            mask one another, together.
        also: other kinds that are known to occur.
        confirm: where real brokers run it; None: it is not said.
        finding: the failure of Kafka's that it shows; None: none.
        topology: racks, power domains and hosts of brokers; None: there are none.
        topics: the topics; empty: one with one partition, as `config` says.
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

    name: str
    title: str
    description: str
    brokers: int
    control: str
    first: int = 1
    config: Mapping[str, Value] = field(default_factory=dict)
    broker_config: Mapping[int, Mapping[str, Value]] = field(default_factory=dict)
    broker_modes: Mapping[int, str] = field(default_factory=dict)
    upgraded_from: tuple[str, ...] = ()
    draw_config: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    workload: Bursts | None = None
    faults: FaultBounds | None = None
    script: tuple[ScriptLine, ...] = ()
    story: tuple[StoryLine, ...] = ()
    final: tuple[FinalLog, ...] = ()
    expect: Mapping[str, Expectation] = field(default_factory=dict)
    broken_by: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    also: tuple[AlsoOccurs, ...] = ()
    confirm: OnBrokers | None = None
    finding: FindingTable | None = None
    topology: Topology | None = None
    topics: tuple[Topic, ...] = ()
    settle_us: int = 0
    source: str = ""
    overrides: tuple[str, ...] = ()
    strict: bool = False
    without_faults: tuple[str, ...] = ()
    recorded: Recorded | None = None
    blows: tuple[Blow, ...] = ()
    shown: str = ""

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
    def partitions(self) -> int:
        """Number of partitions."""
        return sum(topic.partitions for topic in self.topics) or 1

    def counts(self, warning: str) -> bool:
        """Whether an early warning of this kind counts as a violation: with `strict`, or if an expectation names it."""
        return self.strict or any(warning in expectation.kinds for expectation in self.expect.values())

    def to_json(self) -> dict[str, Any]:
        """Plain data with `schema_version`; `from_json` reads it."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(replace(self, recorded=None))))
        del plain["recorded"], plain["blows"], plain["shown"]
        for table in ("topology", "confirm", "finding"):
            if plain[table] is None:
                del plain[table]
        if not self.topics:
            del plain["topics"]
        for topic in plain.get("topics", ()):
            if topic["directory"] is None:
                del topic["directory"]
        if not self.without_faults:
            del plain["without_faults"]
        for share in LATER_SHARES if plain["faults"] else ():
            if not plain["faults"][share]:
                del plain["faults"][share]
        patterns = [line["when"] for line in plain["script"] if line["when"]] + [
            line["pattern"] for line in plain["story"]
        ]
        for about in (*patterns, *plain["final"]):
            if about["partition"] is None:
                del about["partition"]
        return {"schema_version": SCENARIO_VERSION, **plain}

    def scenario_hash(self) -> str:
        """Hash of settings, workload and faults, without title, expectations and comments (16 hex digits)."""
        plain = self.to_json()
        for key in (*_ABOUT, "schema_version"):
            plain.pop(key, None)
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def from_json(data: Mapping[str, Any]) -> Scenario:
    """Read `Scenario.to_json`.

    Raises:
        InputError: the name is unsafe in a path.
        ValueError: `schema_version` is newer than this code reads.
    """
    if data["schema_version"] > SCENARIO_VERSION:
        raise ValueError(f"scenario has schema_version {data['schema_version']}; this version reads {SCENARIO_VERSION}")
    plain = {key: value for key, value in data.items() if key != "schema_version"}
    paths.name(plain["name"], "scenario's name")
    plain["broker_config"] = {int(broker): keys for broker, keys in plain["broker_config"].items()}
    plain["draw_config"] = {key: tuple(values) for key, values in plain["draw_config"].items()}
    if plain["workload"] is not None:
        plain["workload"] = Bursts(**_tuples(plain["workload"]))
    if plain["faults"] is not None:
        plain["faults"] = FaultBounds(**_tuples(plain["faults"]))
    plain["script"] = tuple(_step(step) for step in plain["script"])
    plain["story"] = tuple(StoryLine(_pattern(line["pattern"]), _rules(line["rules"])) for line in plain["story"])
    plain["final"] = tuple(
        FinalLog(**_tuples({**final, "rules": _rules(final["rules"])})) for final in plain.get("final", ())
    )
    plain["broker_modes"] = {int(broker): mode for broker, mode in plain.get("broker_modes", {}).items()}
    plain["expect"] = {mode: Expectation(**_tuples(value)) for mode, value in plain["expect"].items()}
    plain["upgraded_from"] = tuple(plain.get("upgraded_from", ()))
    plain["overrides"] = tuple(plain.get("overrides", ()))
    if plain.get("topology") is not None:
        plain["topology"] = topology_from_json(plain["topology"])
    plain["topics"] = topics_from_json(plain.get("topics", ()))
    plain["without_faults"] = tuple(plain.get("without_faults", ()))
    if plain.get("confirm") is not None:
        plain["confirm"] = OnBrokers(**_tuples(plain["confirm"]))
    if plain.get("finding") is not None:
        plain["finding"] = finding_from_plain(plain["finding"])
    plain["also"] = tuple(AlsoOccurs(**_tuples(value)) for value in plain["also"])
    return Scenario(**plain)


def topics_from_json(data: Iterable[Mapping[str, Any]]) -> tuple[Topic, ...]:
    """Read the topics of `Scenario.to_json`."""
    return tuple([Topic(**topic) for topic in data])


def topology_from_json(data: Mapping[str, Any]) -> Topology:
    """Read a `Topology` of `Scenario.to_json`."""
    given: dict[str, Any] = {
        key: _tuples(value) if isinstance(value, Mapping) else value for key, value in data.items()
    }
    return Topology(**given)


def _tuples(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


def _rules(data: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Rule filters; earlier versions stored one value each."""
    return {name: (value,) if isinstance(value, str) else tuple(value) for name, value in data.items()}


def _pattern(data: Mapping[str, Any]) -> Pattern:
    return Pattern(**_tuples(data))


def _step(data: Mapping[str, Any]) -> ScriptLine:
    when = None if data["when"] is None else _pattern(data["when"])
    return ScriptLine(data["do"], when, data["after_us"], data["params"], _rules(data.get("rules", {})))
