"""Sweeps of many seeds, in processes of this machine or on Spark, and their folder."""
