"""The discrete-event kernel: scheduler, messages and named random streams."""
