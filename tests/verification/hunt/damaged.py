"""Damaged stores, whose damage is detected and repaired: `python -m tests.verification.hunt.damaged`.

Every damage of `tests.scenarios.sweep.test_checkup`, to each wave of a store that processes wrote and of one of
Spark's.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from scenarios.sweep.driver import run_sweep
from scenarios.sweep.local import LocalBackend
from scenarios.sweep.spark import SparkBackend
from tests.scenarios.sweep.test_checkup import CANARY, damaged_and_repaired, damages


def main() -> int:
    """Damage stores and repair them; 1 if a repaired store differs."""
    tried = wrong = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for backend in (LocalBackend(1), SparkBackend("local[2]")):
            sound = folder / backend.name
            run_sweep(CANARY, sound, backend, chunks=2, wave_units=4)
            for name in damages():
                for at in range(3):
                    output = folder / "out"
                    shutil.copytree(sound, output)
                    tried += 1
                    try:
                        damaged_and_repaired(name, at, sound, output)
                    except Exception as error:  # a damage that was not found, or not mended
                        wrong += 1
                        sys.stdout.write(f"{backend.name}, wave {at}, {name}: {error!r}\n")
                    shutil.rmtree(output)
    sys.stdout.write(f"{tried} damaged stores, {wrong} not named or not repaired\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
