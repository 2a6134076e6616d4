"""Evidence of one run: its replay, its story, and the files that a cluster would have left."""
