"""Every order of events in small clusters of KRaft modes."""
