"""Every order of events in a metadata quorum of three voters."""
