"""Sweeps into an object store: `make test-s3`."""
