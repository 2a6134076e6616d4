"""The laboratory: one folder an instrument, with its command and its pages. The core imports none of them."""
