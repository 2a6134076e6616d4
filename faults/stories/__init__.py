"""Stories: incidents of several faults that are drawn together."""
