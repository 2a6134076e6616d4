"""Checks a Spark master's URL before a JVM starts: Spark would retry for a minute and a half, and log each failure."""

from __future__ import annotations

import re
import socket
from contextlib import closing
from typing import Final

from scenarios.redaction import masked
from sim.errors import InputError, UnavailableError

CONNECT_SECONDS: Final = 10.0
CONNECT_PORT: Final = 15002
"""Default port of Spark Connect."""
_HOST: Final = r"(?:\[[0-9a-fA-F:.]+\]|[\w.-]+)"
_STANDALONE: Final = re.compile(rf"spark://({_HOST}:\d+(?:,{_HOST}:\d+)*)")
_CONNECT: Final = re.compile(rf"sc://({_HOST}(?::\d+)?)(?:/.*)?")
_ANY: Final = re.compile(r"local|yarn$|(spark|k8s|sc)://")
_FORMS: Final = {"spark": (_STANDALONE, "spark://HOST:PORT"), "sc": (_CONNECT, "sc://HOST[:PORT]")}


def check(master: str) -> None:
    """Check that a standalone or Connect master accepts connections; Spark checks other masters.

    Raises:
        InputError: the URL does not have the form of its scheme, which never includes user info.
        UnavailableError: no master answers.
    """
    if not _ANY.match(master):
        raise InputError(
            f"--master {masked(master)} is no Spark master: use local[N], spark://HOST:PORT, yarn, k8s://URL or sc://HOST"
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
