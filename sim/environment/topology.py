"""Racks, power domains and hosts of brokers: what fails together, and how far apart brokers are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Groups = Mapping[str, tuple[int, ...]]
"""Name -> its brokers."""


@dataclass(frozen=True, slots=True)
class Topology:
    """The places of brokers. A broker that a grouping does not name is alone in it.

    Attributes:
        racks: ``broker.rack`` with its brokers; replicas are placed over racks, and a rack can be cut off.
        power_domains: brokers that lose power together.
        hosts: brokers that run on one machine.
        latency_within_rack_us: latency added to each message between two brokers of a rack.
        latency_between_racks_us: latency added to each message between brokers of different racks.
    """

    racks: Groups = field(default_factory=dict)
    power_domains: Groups = field(default_factory=dict)
    hosts: Groups = field(default_factory=dict)
    latency_within_rack_us: int = 0
    latency_between_racks_us: int = 0

    def rack(self, broker: int) -> tuple[int, ...]:
        """The brokers of a broker's rack."""
        return _group(self.racks, broker)

    def numbered_rack(self, number: int) -> tuple[int, ...]:
        """The brokers of a rack, by its number in the order of names, from 1 on; none if there is no such rack."""
        names = sorted(self.racks)
        return self.racks[names[number - 1]] if 0 < number <= len(names) else ()

    def power_domain(self, broker: int) -> tuple[int, ...]:
        """The brokers that lose power with a broker."""
        return _group(self.power_domains, broker)

    def host(self, broker: int) -> tuple[int, ...]:
        """The brokers on a broker's machine."""
        return _group(self.hosts, broker)

    def placed(self, brokers: Iterable[int], count: int) -> tuple[int, ...]:
        """The replicas of the partition: by id, or with racks one of each rack in turn, in the order of their names.

        Kafka: AdminUtils#getRackAlternatedBrokerList (0.10.2-3.9).
        """
        there = list(brokers)
        queues = [[broker for broker in self.racks[name] if broker in there] for name in sorted(self.racks)]
        queues += [[broker] for broker in there if not any(broker in queue for queue in queues)]
        if not self.racks:
            return tuple(there[:count])
        placed: list[int] = []
        while len(placed) < count:
            placed += [queue.pop(0) for queue in queues if queue]
        return tuple(placed[:count])

    def added_us(self, source: int, target: int) -> int:
        """The latency added to messages between two brokers."""
        if not self.racks:
            return 0
        return self.latency_within_rack_us if target in self.rack(source) else self.latency_between_racks_us


def _group(groups: Groups, broker: int) -> tuple[int, ...]:
    for members in groups.values():
        if broker in members:
            return members
    return (broker,)
