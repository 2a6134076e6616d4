"""Options of commands that judge many cases: where they run, and the folder that lets them resume."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from highwater.cli.options import PATH
from sim.errors import InputError, parse_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from scenarios.campaign.record import Record
    from scenarios.campaign.runner import Runner

F = TypeVar("F", bound="Callable[..., Any]")
PROCESSES_MAX: Final = 1_024
_PROCESSES: Final = click.IntRange(1, PROCESSES_MAX)


@dataclass(frozen=True, slots=True)
class CampaignPlace:
    """Where cases are judged, and where their results are kept.

    Attributes:
        local: number of processes of this machine.
        master: a Spark master; None: this machine.
        conf: Spark settings.
        output: folder that keeps results; None: nothing is kept.
    """

    local: int
    master: str | None
    conf: Mapping[str, str]
    output: Path | None

    @contextmanager
    def begin(self, campaign: str, about: Mapping[str, Any]) -> Iterator[tuple[Runner, Record | None]]:
        """What `scenarios.campaign.campaign.Campaign` needs; see `Record` and `SparkRunner` for errors."""
        from scenarios.campaign.record import Record
        from scenarios.campaign.runner import LocalRunner

        with ExitStack() as stack:
            record = None if self.output is None else stack.enter_context(Record(self.output, campaign, about))
            if self.master is None:
                yield stack.enter_context(LocalRunner(self.local)), record
                return
            from scenarios.campaign.spark import SparkRunner

            yield stack.enter_context(SparkRunner(self.master, self.conf, campaign)), record


def read_conf(pairs: Iterable[str]) -> dict[str, str]:
    """Spark settings; raises InputError with the key alone, because values may be secret."""
    for pair in pairs:
        if "=" not in pair:
            begin = pair.split(".")[0]
            raise InputError(f"--conf {begin!r}... is not of the form KEY=VALUE (the rest may be secret)")
    return parse_pairs(pairs, "--conf", "KEY=VALUE", lambda _, value: value)


def campaign_options(output: str) -> Callable[[F], F]:
    """--local, --master, --conf and --output; the command receives them as `place`, a `CampaignPlace`.

    Args:
        output: help of --output.
    """

    def decorate(command: F) -> F:
        @wraps(command)
        def with_place(
            local: int | None, master: str | None, conf: tuple[str, ...], output: Path | None, **given: Any
        ) -> Any:
            if master is None and conf:
                raise InputError("--conf is for Spark, and needs --master")
            if master is not None and local is not None:
                raise InputError("--local excludes Spark's options --master and --conf")
            return command(place=CampaignPlace(local or 1, master, read_conf(conf), output), **given)

        options = (
            click.option("--local", metavar="N", type=_PROCESSES, help="Use N processes; by default 1."),
            click.option("--master", metavar="URL", help="Run on this Spark master, such as local[4]."),
            click.option("--conf", metavar="KEY=VALUE", multiple=True, help="Spark setting."),
            click.option("--output", metavar="DIR", type=PATH, help=output),
        )
        found: Any = with_place
        for option in reversed(options):
            found = option(found)
        return cast("F", found)

    return decorate
