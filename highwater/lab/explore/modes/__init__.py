"""The modes of both control planes, as clusters to explore."""
