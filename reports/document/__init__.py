"""Pages of blocks, as Markdown or HTML."""
