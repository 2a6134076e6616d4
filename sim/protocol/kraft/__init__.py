"""The active controller of a KRaft quorum: metadata, brokers, partitions."""
