"""Documents of blocks, which print as text for a terminal, as Markdown or as HTML."""
