"""A hunt: random scenarios of a release's mode, their failures shrunk, recognised and acted out on real brokers."""
