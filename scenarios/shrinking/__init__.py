"""A failing run made small: the same violation, for the same cause, with as little as possible around it."""
