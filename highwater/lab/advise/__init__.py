"""Advice for a cluster: what a change of one setting or of the release saves and costs, on the same seeds."""
