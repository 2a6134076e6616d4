"""What producers and consumers decide."""
