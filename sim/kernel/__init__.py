"""Time and chance: the scheduler, and named random streams."""
