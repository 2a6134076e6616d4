"""The controller under ZooKeeper: who leads, and who is told."""
