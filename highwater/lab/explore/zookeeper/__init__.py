"""Every order of events in small clusters of ZooKeeper modes."""
