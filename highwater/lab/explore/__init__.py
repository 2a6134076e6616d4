"""Trying every order of events in a cluster of three brokers; see README.md."""
