"""The controller with ZooKeeper: elections, and requests to brokers."""
