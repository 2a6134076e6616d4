"""Tests of the film of a run."""
