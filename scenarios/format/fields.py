"""Checks of single fields of a scenario file against the rest of the file.

Facts about the whole file are gathered first, from its valid parts, so that one mistake does not hide another. A check
takes a value and the facts and returns the final value. It raises ValueError with the text after ``key = value: ``, or
`InputError` if the text names key and value itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from faults.kinds.groups import GROUPINGS
from scenarios import paths
from scenarios.format.actions import ACTIONS
from sim.checkers.registry import FINDINGS
from sim.config import DIRECTORIES_MAX, GROUP_OFFSETS, KEYS, Value, flatten, parse
from sim.errors import InputError, did_you_mean
from sim.hosts.control_plane import CONTROLLERS, FIRST_CONTROLLER
from sim.protocol.group.group_messages import OFFSETS
from sim.protocol.messages import topic_partition
from sim.protocol.rules import check as check_rule

VIOLATIONS: Final = FINDINGS
"""Kinds of violation that an expectation may name; early warnings that it names count as violations."""
VERDICTS: Final = ("violates", "clean", "may-violate")
MAX_BROKERS: Final = 99
QUORUM: Final = "quorum"
"""Value of ``control`` with controllers that are processes."""
USUAL_CONTROLLERS: Final = 3
"""Their number if the file does not say it."""
DYNAMIC: Final[tuple[str, ...]] = (
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "eligible.leader.replicas.version",
)
"""Topic keys and the feature level that may be changed at run time."""
_FACTOR: Final = "default.replication.factor"
_DIRECTORIES: Final = "sim.log.dirs"
OF_TOPIC: Final[tuple[str, ...]] = ("min.insync.replicas",)
"""Topic keys that a topic may set for itself."""
MAX_PARTITIONS: Final = 200
TOPIC_MAX: Final = 100
"""Longest name of a topic."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a file.

    Attributes:
        replicas: the largest replication factor, set or drawn; all brokers, where the script reassigns replicas or
            racks decide which brokers have one.
        scripted: whether the script is the control plane.
        drawn: whether faults are drawn.
        batches: name of a batch -> number of script lines that send it.
        configured: keys of ``[config]``.
        topics: names of the topics, in order.
        directories: smallest number of log directories of a broker, set or drawn.
        controllers: number of controllers that are processes.
        keeps_offsets: whether consumers commit to a partition of the cluster, on some seeds at least.
    """

    brokers: int
    replicas: int
    scripted: bool
    drawn: bool
    batches: Counter[str]
    configured: frozenset[str]
    topics: tuple[str, ...] = ()
    directories: int = 1
    controllers: int = 0
    keeps_offsets: bool = False


def gather(data: Mapping[str, Any]) -> Facts:
    """The facts of a file, which may be invalid in any way."""
    count = data.get("brokers")
    if isinstance(count, Mapping):
        count = count.get("count")
    config = dict(flatten(_table(data, "config")))
    topics = [topic for topic in _items(data.get("topics")) if isinstance(topic, Mapping)]
    own = [topic["replication_factor"] for topic in topics[:1] if "replication_factor" in topic]
    factors = [*own, config.get(_FACTOR, 1), *_items(dict(flatten(_table(data, "draw"))).get(_FACTOR))]
    lines = [line for line in _items(data.get("script")) if isinstance(line, Mapping)]
    brokers = count if isinstance(count, int) else MAX_BROKERS
    if "topology" in data or any(line.get("do") == "reassignment" for line in lines):
        factors = [brokers]
    return Facts(
        brokers=brokers,
        replicas=max((factor for factor in factors if isinstance(factor, int)), default=MAX_BROKERS),
        scripted=data.get("control") == "scripted",
        drawn="faults" in data,
        batches=Counter(str(line.get("batch")) for line in lines if line.get("do") == "produce"),
        configured=frozenset(config),
        topics=tuple([str(topic.get("name")) for topic in topics]),
        directories=_directories(data, config),
        controllers=_controllers(data),
        keeps_offsets="partition"
        in [config.get(GROUP_OFFSETS), *_items(dict(flatten(_table(data, "draw"))).get(GROUP_OFFSETS))],
    )


def _controllers(data: Mapping[str, Any]) -> int:
    """See `Facts.controllers`; the largest number, if that of the file is wrong."""
    if data.get("control") != QUORUM:
        return 0
    count = _table(data, "controllers").get("count", USUAL_CONTROLLERS)
    return count if count in CONTROLLERS else max(CONTROLLERS)


def _directories(data: Mapping[str, Any], config: Mapping[str, object]) -> int:
    """See `Facts.directories`."""
    sections = [section for section in _table(data, "brokers").values() if isinstance(section, Mapping)]
    found = [config.get(_DIRECTORIES), *_items(dict(flatten(_table(data, "draw"))).get(_DIRECTORIES))]
    found += [dict(flatten(section)).get(_DIRECTORIES) for section in sections]
    if any(isinstance(count, int) and count < 1 for count in found):
        return DIRECTORIES_MAX  # The bad count is reported by its own key, and not again by each `directory`.
    return min((count for count in found if isinstance(count, int)), default=1)


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = data.get(name)
    return table if isinstance(table, Mapping) else {}


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else []


def whole(data: Mapping[str, Any], facts: Facts) -> list[str]:
    """Problems of the file as a whole."""
    if grouped := _without_group(data):
        return grouped
    if lacking := _without_topics(data, facts):
        return lacking
    if "controllers" in data and not facts.controllers:
        return [f'controllers needs control = "{QUORUM}", in which controllers are processes']
    if "workload" in data and facts.batches:
        return ["workload and script both send batches; only one of them may"]
    if "workload" not in data and not facts.batches:
        return ["no batches are sent: a workload, or script lines with do = 'produce', are needed"]
    return []


def _without_group(data: Mapping[str, Any]) -> list[str]:
    """Kinds of fault that strike a group of brokers, where the file has no such groups."""
    topology = _table(data, "topology")
    lines = [str(line.get("do")) for line in _items(data.get("script")) if isinstance(line, Mapping)]
    kinds = {*lines, *(str(kind) for kind in _items(_table(data, "faults").get("kinds")))}
    return [
        f"{kind} needs topology.{grouping}, which names the brokers that it strikes together"
        for kind, grouping in GROUPINGS.items()
        if kind in kinds and not topology.get(grouping)
    ]


def _without_topics(data: Mapping[str, Any], facts: Facts) -> list[str]:
    """Kinds of fault that change topics, where the file has none that they may change."""
    kinds = {str(kind) for kind in _items(_table(data, "faults").get("kinds"))}
    least = {"topic-creation": 2, "topic-deletion": 2, "partition-creation": 1}
    return [
        f"{kind} needs {'a second table' if count > 1 else 'a table'} of [[topics]], which it changes"
        for kind, count in least.items()
        if kind in kinds and len(facts.topics) < count
    ]


def keyed(table: object, _: Facts) -> object:
    """Flatten a table and give each value its own key, for checks that need both."""
    if not isinstance(table, Mapping):
        return table
    pairs = list(flatten(table))
    twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if twice:
        raise InputError(f"{', '.join(twice)} set twice, with and without quotes")
    return {key: (key, value) for key, value in pairs}


def setting(pair: tuple[str, object], facts: Facts) -> Value:
    """A configuration key's value."""
    key, raw = pair
    value = parse(key, raw)
    if key == _FACTOR and isinstance(value, int) and value > facts.brokers:
        raise InputError(f"{key} = {raw!r}: there are only {facts.brokers} brokers")
    return value


def choices(pair: tuple[str, object], facts: Facts) -> tuple[Value, ...]:
    """The values that a configuration key is drawn from."""
    key, values = pair
    if key in facts.configured:
        raise InputError(f"{key} is drawn, and also set in config")
    if key in KEYS and not _items(values):
        raise InputError(f"{key} = {values!r}: a list of values to draw from is needed")
    return tuple(setting((key, value), facts) for value in _items(values) or [values])


def rule(pair: tuple[str, object], _: Facts) -> str:
    """A rule's value."""
    name, value = pair[0], str(pair[1])
    check_rule(name, value)
    return value


def rule_values(pair: tuple[str, object], facts: Facts) -> tuple[str, ...]:
    """A rule's value, or a list of them."""
    name, values = pair
    return tuple(rule((name, value), facts) for value in _items(values) or [values])


def sections(value: object, _: Facts) -> object:
    """Separate the number of brokers from their sections; ``brokers = 3`` is short for ``brokers.count = 3``."""
    if not isinstance(value, Mapping):
        return {"count": value}
    plain = {key: value[key] for key in ("count", "first", "upgraded_from") if key in value}
    return {**plain, "sections": {key: _section(keys) for key, keys in value.items() if key not in plain}}


def _section(keys: object) -> dict[str, object]:
    """Separate a broker's mode from its configuration keys."""
    if not isinstance(keys, Mapping) or "mode" not in keys:
        return {"keys": keys}
    return {"mode": keys["mode"], "keys": {key: value for key, value in keys.items() if key != "mode"}}


def section(key: str, facts: Facts) -> int:
    """The broker of ``[brokers.N]``."""
    if key not in map(str, range(1, facts.brokers + 1)):
        raise ValueError(
            f"brokers has no such key; it holds 'count', 'first', 'upgraded_from', and sections 1 to {facts.brokers}"
        )
    return int(key)


_CheckOfId = Callable[[int, "Facts"], int]


def _id(lowest: int, what: str, highest: Callable[[Facts], int]) -> _CheckOfId:
    """A check of an id from `lowest` on, where 0 is none."""

    def check(value: int, facts: Facts) -> int:
        if not lowest <= value <= highest(facts):
            raise ValueError(f"{what} 1 to {highest(facts)}{'' if lowest else '; 0 is none'}")
        return value

    return check


broker: _CheckOfId = _id(1, "the brokers are", lambda facts: facts.brokers)
broker_or_none: _CheckOfId = _id(0, "the brokers are", lambda facts: facts.brokers)
replica: _CheckOfId = _id(1, "the replicas are on brokers", lambda facts: facts.replicas)
"""A broker with a replica."""
leader: _CheckOfId = _id(0, "a leader is one of", lambda facts: facts.replicas)
"""A replica, or 0 for no leader."""


def machine(value: int, facts: Facts) -> int:
    """A broker, or a controller that is a process."""
    return controller(value, facts) if value >= FIRST_CONTROLLER else broker(value, facts)


def controller(value: int, facts: Facts) -> int:
    """A controller that is a process."""
    if not facts.controllers:
        raise ValueError(f'controllers have ids only with control = "{QUORUM}"')
    last = FIRST_CONTROLLER + facts.controllers - 1
    if not FIRST_CONTROLLER <= value <= last:
        raise ValueError(f"the controllers are {FIRST_CONTROLLER} to {last}")
    return value


def endpoint(value: object, facts: Facts) -> object:
    """One end of a link."""
    if type(value) is int and value >= FIRST_CONTROLLER:
        return controller(value, facts)
    if value != "control" and (type(value) is not int or not 1 <= value <= facts.brokers):
        raise ValueError(f'an end of a link is "control" or one of brokers 1 to {facts.brokers}')
    return value


def controllers(count: int, _: Facts) -> int:
    """The number of controllers of a quorum."""
    if count not in CONTROLLERS:
        nearest = min(CONTROLLERS, key=lambda fitting: (abs(fitting - count), -fitting))
        raise ValueError(f"a quorum has 1, 3 or 5 controllers here (nearest: {nearest})")
    return count


def distinct(values: list[int], _: Facts) -> list[int]:
    """A list of ids without repetition."""
    if len(set(values)) < len(values):
        raise ValueError("a broker is named twice")
    return values


def disjoint(groups: dict[str, list[int]], _: Facts) -> dict[str, list[int]]:
    """Groups of brokers without one in common."""
    members = Counter(broker for group in groups.values() for broker in group)
    twice = [str(broker) for broker, count in members.items() if count > 1]
    if twice:
        raise ValueError(f"broker {', '.join(twice)} is in two of them")
    return groups


def racks(groups: dict[str, list[int]], facts: Facts) -> dict[str, list[int]]:
    """Racks of all brokers: Kafka refuses to place replicas over racks if some brokers are in none."""
    members = {broker for group in groups.values() for broker in group}
    without = [str(broker) for broker in range(1, facts.brokers + 1) if broker not in members]
    if groups and without:
        raise ValueError(f"broker {', '.join(without)} is in no rack (AdminUtils.assignReplicasToBrokers)")
    return groups


def scenario_name(value: str, _: Facts) -> str:
    """The name of the scenario, which becomes a folder's name."""
    return paths.name(value, "scenario's name")


def action(do: str, facts: Facts) -> str:
    """The action of a script line."""
    if ACTIONS[do].scripted_only and not facts.scripted:
        raise ValueError('it needs control = "scripted"')
    return do


def dynamic(settings: dict[str, Value], _: Facts) -> dict[str, Value]:
    """Settings that a script may change while the cluster runs."""
    for key in settings:
        if key not in DYNAMIC:
            raise ValueError(f"{key} cannot be changed while brokers run{did_you_mean(key, DYNAMIC)}")
    return settings


def factor(value: int, facts: Facts) -> int:
    """A topic's replication factor."""
    if value > facts.brokers:
        raise ValueError(f"there are only {facts.brokers} brokers")
    return value


def directory(number: int, facts: Facts) -> int:
    """The number of a log directory that each broker has on each seed."""
    if not 1 <= number <= facts.directories:
        there = f"1 to {facts.directories}" if facts.directories > 1 else "1"
        raise ValueError(f"the log directories of a broker are {there} (sim.log.dirs)")
    return number


def of_topic(settings: dict[str, Value], _: Facts) -> dict[str, Value]:
    """Settings of a topic."""
    for key in settings:
        if key not in OF_TOPIC:
            raise ValueError(f"{key} is not modelled for single topics{did_you_mean(key, OF_TOPIC)}")
    return settings


def topics(values: list[Any], facts: Facts) -> list[Any]:
    """Topics of different names, of which a script that is the control plane can decide for the only partition."""
    twice = [name for name, count in Counter(topic.name for topic in values).items() if count > 1]
    if twice:
        raise InputError(f"topics: two topics are called {twice[0]!r}")
    partitions = sum(topic.partitions for topic in values)
    if partitions > MAX_PARTITIONS:
        raise InputError(f"topics: {partitions} partitions are more than {MAX_PARTITIONS}")
    if facts.scripted and partitions > 1:
        raise InputError(f'topics: control = "scripted" decides for one partition, and there are {partitions}')
    if values and values[0].idle:
        raise InputError(f"topics: {values[0].name!r} is the first, which the workload writes to, and cannot be idle")
    if values and values[0].in_percent < 100:
        raise InputError(f"topics: {values[0].name!r} is the first, which exists in every seed")
    if values and not values[0].created:
        raise InputError(f"topics: {values[0].name!r} is the first, which exists from the start")
    return values


def topic(name: str, facts: Facts) -> str:
    """A topic of the file."""
    if name not in facts.topics:
        raise ValueError(f"no such topic{did_you_mean(name, facts.topics)}")
    return name


def partition(name: str, facts: Facts) -> str:
    """A partition of a topic of the file, which may be created later: ``orders-0``, ``orders-0@2``."""
    of, dash, number = topic_partition(name).rpartition("-")
    if name == OFFSETS and facts.keeps_offsets:
        return name
    if not dash or not number.isdecimal():
        raise ValueError("a partition is a topic and a number, as in orders-0")
    if of not in facts.topics:
        raise ValueError(f"no such topic: {of!r}{did_you_mean(of, facts.topics)}")
    return name


def further_partition(name: str | None, facts: Facts) -> str | None:
    """The partition of a step or log; None if it is the first, whose steps name none."""
    return None if facts.topics and name == f"{facts.topics[0]}-0" else name


def deletable_topic(name: str, facts: Facts) -> str:
    """A topic that may be deleted, because there is another one."""
    found = topic(name, facts)
    if len(facts.topics) < 2:
        raise ValueError("the only topic stays")
    return found


def acks(value: object, _: Facts) -> Value:
    """The acks of one batch."""
    return parse("acks", value)


def new_batch(name: str, facts: Facts) -> str:
    """The name of a batch that a line sends."""
    if facts.batches[name] > 1:
        raise ValueError("more than one line sends it")
    return name


def batch(name: str, facts: Facts) -> str:
    """The name of a batch that some line sends."""
    if name not in facts.batches:
        raise ValueError(f"no line of the script sends it{did_you_mean(name, facts.batches)}")
    return name


def pair(values: list[int], _: Facts) -> tuple[int, int]:
    """Inclusive bounds."""
    if len(values) != 2 or values[0] > values[1]:
        raise ValueError("two numbers are needed, the lower bound first")
    return values[0], values[1]


def expectation(text: str, facts: Facts) -> dict[str, object]:
    """Parse ``violates:KIND|KIND``, ``clean``, ``clean:KIND|KIND`` or ``may-violate``."""
    verdict, colon, named = text.partition(":")
    kinds = tuple(named.split("|")) if colon else ()
    one_of(verdict, VERDICTS, "expectation")
    for kind in kinds:
        one_of(kind, VIOLATIONS, "kind of violation")
    if verdict == "may-violate" and kinds:
        raise ValueError("may-violate takes no kinds")
    if verdict != "may-violate" and not kinds and not facts.drawn:
        raise ValueError(f"unless faults are drawn it must name kinds, as in '{verdict}:committed-loss'")
    return {"verdict": verdict, "kinds": kinds}


def one_of(value: str, words: Iterable[str], what: str) -> str:
    """A word of a fixed list."""
    valid = list(words)
    if value not in valid:
        plugins = " (a kind of a plug-in needs --plugin)" if what == FAULT_KIND else ""
        raise ValueError(f"no such {what}{did_you_mean(value, valid)}{plugins}")
    return value


FAULT_KIND: Final = "fault kind"
"""Of `one_of`: plug-ins may have further ones."""
