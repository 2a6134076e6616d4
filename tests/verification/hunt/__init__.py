"""Long searches, too slow for `make test`."""
