"""A sweep as one self-contained page."""
