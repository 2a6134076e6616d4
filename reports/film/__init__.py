"""One run as a film: the state of every broker at every step, on one HTML page that works offline."""
