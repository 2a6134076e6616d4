"""A sweep as one page that needs nothing from elsewhere."""
