"""The simulated world: brokers, links, disks, clients and the checkers that watch them."""

from __future__ import annotations

__version__ = "0.1.0"
