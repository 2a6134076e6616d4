"""Looks at a Spark master's URL before a JVM starts: Spark would try for a minute and a half, and log what it got."""

from __future__ import annotations

import re
import socket
from contextlib import closing
from typing import Final

from scenarios.redaction import masked
from sim.errors import InputError, UnavailableError

CONNECT_SECONDS: Final = 10.0
CONNECT_PORT: Final = 15002
"""Of Spark Connect, where the URL names none."""
_HOST: Final = r"(?:\[[0-9a-fA-F:.]+\]|[\w.-]+)"
_STANDALONE: Final = re.compile(rf"spark://({_HOST}:\d+(?:,{_HOST}:\d+)*)")
_CONNECT: Final = re.compile(rf"sc://({_HOST}(?::\d+)?)(?:/.*)?")
_ANY: Final = re.compile(r"local|yarn$|(spark|k8s|sc)://")
_FORMS: Final = {"spark": (_STANDALONE, "spark://HOST:PORT"), "sc": (_CONNECT, "sc://HOST[:PORT]")}


def check(master: str) -> None:
    """Check that somebody listens where a master should be; other kinds of master are left to Spark.

    Raises:
        InputError: the URL is not of the form that its scheme has; user info is part of none.
        UnavailableError: nobody answers.
    """
    if not _ANY.match(master):
        raise InputError(
            f"--master {masked(master)} is none: local[N], spark://HOST:PORT, yarn, k8s://URL or sc://HOST"
        )
    scheme = master.partition("://")[0]
    if scheme not in _FORMS:
        return
    form, shown = _FORMS[scheme]
    match = form.fullmatch(master)
    if match is None:
        raise InputError(f"--master {masked(master)} is not of the form {shown}")
    reasons = []
    for address in match[1].split(","):
        try:
            with closing(_connect(address)):
                return
        except (OSError, OverflowError) as error:
            reasons.append(f"{address}: {getattr(error, 'strerror', None) or error}")
    raise UnavailableError(f"no Spark master answers at {masked(master)} ({'; '.join(reasons)})")


def _connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":") if re.search(r":\d+$", address) else (address, "", str(CONNECT_PORT))
    return socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS)
