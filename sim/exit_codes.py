"""The exit codes of the command line; reports/README.md says what each means.

This module imports nothing: a signal may end the process before other imports are done.
"""

EXPECTED = 0
UNEXPECTED = 1
BAD_INPUT = 2
INCONCLUSIVE = 3
DIGEST_DIFFERS = 4
UNAVAILABLE = 69  # EX_UNAVAILABLE of sysexits.h
INTERNAL = 70  # EX_SOFTWARE
UNREADABLE = 74  # EX_IOERR
INTERRUPTED = 130
