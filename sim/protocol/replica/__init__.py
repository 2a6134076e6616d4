"""A partition on a broker: as leader, as follower, and fetching."""
