"""Pages and pictures in a browser: `make test-browser`."""
