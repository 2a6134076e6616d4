"""What a mode promises to survive, judged on the faults as they were realised."""
