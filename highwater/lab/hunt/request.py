"""A request for a hunt: which release, for how long, and what is known."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from highwater.lab.confirm import release
from highwater.lab.hunt import acting, build, page
from highwater.lab.hunt import state as states
from highwater.lab.hunt.arms import arms
from highwater.lab.hunt.hunter import Hunt
from highwater.lab.kafka import releases
from highwater.lab.zoo.findings import known
from highwater.option import Option
from highwater.requests import PROCESSES
from highwater.values import comma_words
from scenarios.version import code_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class HuntRequest:
    """A request for a hunt."""

    kafka: Annotated[
        str,
        Option(
            metavar="RELEASE|DIR",
            required=True,
            completes="releases",
            help="A release, or a folder with a build's libraries.",
        ),
    ]
    output: Annotated[Path, Option(metavar="DIR", required=True, help="The hunt's folder; it goes on from there.")]
    hidden: Annotated[
        Sequence[str],
        Option("--hide", metavar="NAME", multiple=True, help="Take a known finding off the list; repeatable."),
    ] = ()
    scenarios: Annotated[
        Sequence[str],
        Option(
            metavar="A,B",
            read=comma_words,
            completes="scenarios",
            help="Only these random scenarios; by default all that fit.",
        ),
    ] = ()
    seed: Annotated[int, Option(metavar="N", type=click.IntRange(0, 10**15), help="First seed of each arm.")] = 10**9
    repeat: Annotated[
        int,
        Option(
            "--confirm",
            metavar="N",
            type=click.IntRange(0, 20),
            default=3,
            show_default=True,
            help="Runs on real brokers of each new cause; 0: none.",
        ),
    ] = 3
    processes: Annotated[
        int, Option("--local", metavar="N", type=PROCESSES, default=1, show_default=True, help="Processes.")
    ] = 1

    @contextmanager
    def prepare(self, tell: Callable[[str], None]) -> Iterator[Hunt]:
        """The hunt, ready to run, in a folder that no other hunt uses meanwhile; `tell` is called with notes.

        Raises:
            InputError: an option is not valid, or the folder holds something else.
            UnavailableError: another hunt uses it.
            StorageError: it cannot be written.
        """
        found, is_build = self._release()
        mode, exact = release.mode_of(found)
        if not exact:
            tell(f"Kafka {found.name} has no mode of its own; the nearest is {mode.name} ({mode.release})")
        recognised = known(self.hidden)
        arms(mode, self.scenarios)  # Before anything is written.
        lacks = acting.lacking(self.kafka) if self.repeat else "--confirm 0"
        if lacks:
            tell(f"nothing is acted out on real brokers: {lacks}")
        about: dict[str, Any] = {
            "kafka": found.name,
            "build": _digest(found) if is_build else "",
            "mode": mode.name,
            "seed": self.seed,
            "hidden": sorted(set(self.hidden)),
            "scenarios": sorted(self.scenarios),
            "acts": self.repeat > 0,
            "code": code_version(),
        }
        subjects = build.subjects(self.kafka) if is_build else []
        with states.alone(self.output):
            state = states.load(self.output, about)
            yield Hunt(
                self.output,
                state,
                partial(arms, mode, self.scenarios),
                recognised,
                self.kafka,
                lacks,
                self.repeat,
                compare=partial(build.compared, self.kafka),
                subjects=subjects,
                processes=self.processes,
                tell=tell,
                page=page.write,
            )

    def _release(self) -> tuple[release.InstalledRelease, bool]:
        """The release, and whether it is a build; a release's jars are not needed."""
        if "/" not in self.kafka and not (Path(self.kafka).is_dir() and self.kafka not in releases.releases()):
            releases.check_release(self.kafka)
            return release.InstalledRelease(self.kafka, ()), False
        return release.find(self.kafka), True


def _digest(found: release.InstalledRelease) -> str:
    """A digest of a build's jars, by names and content."""
    digest = blake2b(digest_size=8)
    for jar in found.jars:
        with jar.open("rb") as file:
            digest.update(f"{jar.name} {file_digest(file, 'sha1').hexdigest()}\n".encode())
    return digest.hexdigest()
