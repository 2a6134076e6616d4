"""What a broker of a KRaft cluster knows of it: what the records of the metadata log say that it has replayed."""

from __future__ import annotations

from sim.environment.network import Network
from sim.hosts.broker_metadata_cache import BrokerMetadataCache
from sim.protocol.kraft.metadata import MetadataImage


class KRaftMetadataCache(BrokerMetadataCache):
    """See the module. Kafka: KRaftMetadataCache.

    Attributes:
        image: the metadata that the broker has replayed.
    """

    __slots__ = ("image",)

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self.image = MetadataImage()

    def is_alive(self, broker: int) -> bool:
        """See `MetadataCache.is_alive`: neither fenced nor shutting down (KIP-841)."""
        return self.image.is_active(broker)
