"""Long searches that `make test` has no time for."""
