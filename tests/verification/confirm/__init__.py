"""Performs scripted scenarios on real brokers, one after the other (``make confirm``)."""
