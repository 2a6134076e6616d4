"""A mode reviewed against another one: one page."""
