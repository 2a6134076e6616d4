"""Decisions of the group coordinator: committed offsets as records of a replicated partition."""
