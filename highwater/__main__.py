"""``python -m highwater``: the command line."""

from __future__ import annotations

import sys

from highwater.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
