"""``pytest -p tests.verification.mutants.plugin`` tests the mutant that ``TESTED_MUTANT`` has as JSON."""

from __future__ import annotations

import json
import os

from tests.verification.mutants.worker import install, mutant_of

install(mutant_of(json.loads(os.environ["TESTED_MUTANT"])))
