"""One file for each property that is checked."""
