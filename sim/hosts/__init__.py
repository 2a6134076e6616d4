"""Processes: brokers, controllers, ZooKeeper, the quorum, clients; and the cluster that they make up."""
