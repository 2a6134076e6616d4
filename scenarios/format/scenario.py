"""A scenario after its file was read: plain data, the same on driver and executor.

`scenarios.format.schema` makes these from TOML; nothing on the run path knows pydantic or files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from faults.bounds import FaultBounds
from faults.plan import Plan
from scenarios import paths
from sim.config import Value, shown

SCENARIO_VERSION: Final = 1
PlannedSend = tuple[int, int, int, int]
"""A batch that the producer of a drawn run sends: first record, records, acks, when it is due in us."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """A drawn workload: bursts of batches until the faults end. Pairs are inclusive bounds, drawn per use; of gaps and
    records each burst draws an upper bound of its own first.

    Attributes:
        bursts: how many bursts, spread over the horizon.
        batches: batches in a burst.
        gap_ms: time between two batches of a burst.
        records: records in a batch.
        acks_one_every: one batch in so many is sent with acks=1 (0: none); all others use the `acks` setting.
        near_percent: bursts of a hundred that begin near a moment when faults begin, the others at any time.
    """

    bursts: tuple[int, int]
    batches: tuple[int, int]
    gap_ms: tuple[int, int]
    records: tuple[int, int]
    acks_one_every: int = 0
    near_percent: int = 0


@dataclass(frozen=True, slots=True)
class Pattern:
    """A protocol step to wait for or to assert; fields that are None match anything.

    Attributes:
        step: kind of step, one of `sim.history.steps.STEPS`.
        broker: the broker it happens on.
        batch: the scripted batch that it concerns (append, ack, read).
        offset: LEO, HW or target offset, as the step defines it.
        leader_epoch: leader epoch of the step.
        isr: for ISR changes, the brokers in it.
        elr: for changes of the ELR, the brokers in it.
        last_known_elr: for the same, the last known ELR.
        rounds: for settled followers, how often they asked where an epoch ended.
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


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """One line of a script: wait for `when` after the line before, then `after_us` more, then `do`.

    Attributes:
        do: one of `scenarios.format.actions.ACTIONS`.
        when: step to wait for; None: go on at once.
        after_us: delay after that.
        params: what the action takes (``broker``, ``batch``, ``isr``, ``from``, ``to``, ...).
        rules: rule -> values of it, one of which the mode must have; else the line is left out.
    """

    do: str
    when: Pattern | None = None
    after_us: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One sentence of the story: `pattern` must happen after the line before it.

    `rules` restricts it to rules of the broker that it names, or of the mode
    (``{"follower_truncation": ("leader-epoch", "leader-epoch-rounds")}``): the line is skipped where a rule has
    another value.
    """

    pattern: Pattern
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FinalLog:
    """What a broker's log must hold at the end, but for what validation wrote.

    Attributes:
        broker: whose log.
        batches: names of the scripted batches, in order; a batch that was appended twice stands twice.
        leo: the offset after them, where validation's records begin; it shows a hole.
        rules: as in `StoryLine`: it must only hold so where the broker's rules have these values.
    """

    broker: int
    batches: tuple[str, ...]
    leo: int | None = None
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What one mode must show: ``violates`` (the kinds, any of them), ``clean`` (none of the kinds; no kinds
    named: nothing inside the promise) or ``may-violate``.
    """

    verdict: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AlsoOccurs:
    """A kind that occurs besides the one under test, with its label (inside / outside) and the reason."""

    kind: str
    modes: tuple[str, ...]
    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class Continuation:
    """A recorded run up to some time, continued under other latencies.

    Attributes:
        after_us: until then, this included, it is as recorded; -1: from the beginning on it is not.
        number: which latencies, from 1.
        faults: whether faults strike later, too.
    """

    after_us: int
    number: int
    faults: bool


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is given to a run in the place of drawing it (`scenarios.single.recording`).

    Attributes:
        plan: its faults.
        sends: its batches in order of time; None: drawn.
        horizon_us: when everything is healed; None: as the scenario's faults say.
        mode: the mode that it was recorded in; empty: in none.
        kinds: what it violated then.
        words: what a command line calls it.
        older: brokers that begin in an older mode, and in the run's when they start again.
        continued: how it goes on from some time on, if otherwise than it did; no file holds that.
    """

    plan: Plan
    sends: tuple[PlannedSend, ...] | None = None
    horizon_us: int | None = None
    mode: str = ""
    kinds: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    older: Mapping[int, str] = field(default_factory=dict)
    continued: Continuation | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """Cluster settings, workload, faults and expectations.

    Attributes:
        name: ``[a-z0-9.-]+``.
        title: one line.
        description: what it tells and where it comes from.
        brokers: number of brokers, ids from 1; the replicas are the first `default.replication.factor` of them.
        control: ``real`` (ZooKeeper and an elected controller) or ``scripted``.
        first: the broker that is started first, and so becomes controller.
        config: keys set for the cluster (only those the file sets).
        broker_config: keys set for one broker.
        broker_modes: brokers whose rules are those of a mode of their own (mixed versions).
        upgraded_from: modes that two of three brokers are in at first, each drawn from those that are older than the
            run's; whoever starts again is in the run's mode.
        draw_config: keys drawn per seed from a list of values.
        workload: bursts, or None when the script sends everything.
        faults: what a drawn plan is drawn from, or None.
        script: the scripted part.
        story: its lines, in order.
        final: final logs.
        expect: mode -> expectation.
        broken_by: mode that is expected to be clean -> rule values with which a kind under test does occur: each of
            them alone, or, where later rules shield one another, together.
        also: further kinds that are known to occur.
        settle_us: time that convergence is given beyond the default deadline.
        source: what a command line calls it: its name, or the path of its file.
        overrides: ``key=value`` words that were laid over `config`, for the replay line.
        strict: every early warning counts as a violation (``--strict``).
        recorded: one run of it that was recorded: nothing else can be run of it. It has a file of its own.
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
    settle_us: int = 0
    source: str = ""
    overrides: tuple[str, ...] = ()
    strict: bool = False
    recorded: Recorded | None = None

    def with_settings(self, settings: Mapping[str, Value]) -> Scenario:
        """The scenario with settings laid over its own; what is set is not drawn any more."""
        if not settings:
            return self
        return replace(
            self,
            config={**self.config, **settings},
            draw_config={key: values for key, values in self.draw_config.items() if key not in settings},
            overrides=(*self.overrides, *(f"{key}={shown(value)}" for key, value in settings.items())),
        )

    @property
    def drawn(self) -> bool:
        """Whether the seed draws the faults, or drew them; a scripted scenario is the same story at every seed."""
        return self.faults is not None or self.recorded is not None

    def counts(self, warning: str) -> bool:
        """Whether an early warning of this kind makes the verdict: when asked for, or named by an expectation."""
        return self.strict or any(warning in expectation.kinds for expectation in self.expect.values())

    def to_json(self) -> dict[str, Any]:
        """A JSON-able copy with `schema_version`; `from_json` undoes it."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(replace(self, recorded=None))))
        del plain["recorded"]
        return {"schema_version": SCENARIO_VERSION, **plain}

    def scenario_hash(self) -> str:
        """Hash of settings, workload and faults, without title, expectations and comments (16 hex digits)."""
        plain = self.to_json()
        about = ("title", "description", "expect", "broken_by", "also", "source", "overrides", "strict")
        for key in (*about, "schema_version"):
            del plain[key]
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def from_json(data: Mapping[str, Any]) -> Scenario:
    """Rebuild a scenario from `Scenario.to_json`.

    Raises:
        InputError: the name could lead elsewhere as part of a path.
        ValueError: `schema_version` is newer than this code knows.
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
    plain["also"] = tuple(AlsoOccurs(**_tuples(value)) for value in plain["also"])
    return Scenario(**plain)


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
