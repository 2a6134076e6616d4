"""``python -m highwater``: the command line."""

from __future__ import annotations

import sys

from reports.entry import main

if __name__ == "__main__":
    sys.exit(main())
