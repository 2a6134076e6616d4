"""The faults that a mode promises to survive, judged on realised faults."""
