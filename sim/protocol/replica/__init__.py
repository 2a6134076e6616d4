"""A partition on a broker: leader, follower and fetcher."""
