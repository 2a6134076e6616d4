"""One run for a reader: replay, story, and the files that a cluster would have left."""
