"""``python -m tests.golden [--update REASON]``: compare the stored digests with the present ones, or replace them."""

from __future__ import annotations

import argparse
import sys

from tests.golden import compute, differences, keys, stored, update


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--update", metavar="REASON", help="replace the stored digests, for this reason")
    reason = parser.parse_args().update
    if reason is not None:
        if not reason.strip():
            parser.error("--update needs a reason")
        update(reason)
        return 0
    found = differences(stored(), compute(keys()))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
