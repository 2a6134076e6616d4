"""Options for the settings of a real cluster, and notes about them."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from highwater.cli.options import takes
from highwater.requests import ClusterRequest
from scenarios import plugged
from sim.config import KEYS, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from highwater.cli.console import Ui
    from scenarios.format.scenario import Scenario
    from scenarios.properties.cluster import ClusterSettings
    from scenarios.properties.releases import Release
    from sim.config import Value
    from sim.protocol.modes import Mode

IGNORED_MAX: Final = 10
"""Keys without effect that `ignored` names."""
F = TypeVar("F", bound="Callable[..., Any]")


def tell(
    ui: Ui,
    cluster: ClusterSettings,
    given: Mapping[str, Value],
    scenarios: Iterable[Scenario],
    modes: Iterable[Mode],
    *,
    chosen: bool,
) -> None:
    """Report on stderr what comes of the files and the release, below the settings that the user gives; `chosen` says
    whether the user named the modes himself.
    """
    from scenarios.format.cluster_checks import IDEMPOTENCE

    scenarios = [*scenarios]
    if cluster.files:
        _tell_files(ui, cluster, scenarios, list({mode.name: mode for mode in modes}.values()))
    if cluster.release is not None:
        mode = cluster.release.mode
        what = "its defaults; --mode chooses the modes" if chosen else f"mode {mode.name} (Kafka {mode.release})"
        ui.note(f"--release {cluster.release.name}: {what}")
        without = [*_not_idempotent(cluster.release, scenarios)]
        # A default that no scenario has is not listed as one that is used.
        for line in cluster.notes({**given, **({IDEMPOTENCE: False} if len(without) == len(scenarios) else {})}):
            ui.note(line)
        for name in without:
            ui.note(
                f"{name} has {IDEMPOTENCE} = false, and not the default of Kafka {cluster.release.name}: it sends some "
                "batches with acks other than all"
            )


def _not_idempotent(release: Release, scenarios: Iterable[Scenario]) -> Iterator[str]:
    """Scenarios in which producers are not idempotent, though those of the release are by default."""
    from scenarios.format.cluster_checks import IDEMPOTENCE, acks_besides_all

    if release.defaults.get(IDEMPOTENCE):
        yield from (one.name for one in scenarios if acks_besides_all(one) and not one.config.get(IDEMPOTENCE))


def _tell_files(ui: Ui, cluster: ClusterSettings, scenarios: list[Scenario], modes: list[Mode]) -> None:
    from scenarios.properties.classify import Status

    found = cluster.found.in_modes(modes)
    count = {status: [finding for finding in found.findings if finding.status is status] for status in Status}
    used = ", ".join(f"{key} = {shown(value)}" for key, value in cluster.found.settings.items())
    ui.note(
        f"{', '.join(cluster.files)}: {len(count[Status.USED])} keys are used, {len(count[Status.INERT])} have no "
        f"effect, {len(count[Status.NOT_MODELLED])} are not modelled, {len(count[Status.UNKNOWN])} are unknown "
        "(highwater settings tells of each)"
    )
    if used:
        ui.note(f"from the files: {used}")
    for note in found.notes:
        ui.note(note)
    for finding in count[Status.UNKNOWN]:
        ui.note(f"{finding.file}, line {finding.line}: {finding.key or 'a key'}: {finding.why}")
    for scenario in scenarios:
        if own := _own(cluster, scenario):
            ui.note(f"not in the files, and set by {scenario.name}: {own}")


def ignored(cluster: ClusterSettings) -> list[str]:
    """The keys of the files that no release has, and those that would change figures if they were modelled."""
    from scenarios.properties.classify import Status

    found = cluster.found.findings
    unknown = sorted(
        (finding for finding in found if finding.status is Status.UNKNOWN),
        key=lambda finding: "did you mean" not in finding.why,
    )
    lines = [
        f"{finding.file}, line {finding.line}: {finding.key or 'a key'}, which is not used: {finding.why}"
        for finding in (*unknown, *(finding for finding in found if finding.changes_figures))
    ]
    if len(lines) <= IGNORED_MAX:
        return lines
    command = plugged.command(["settings", *cluster.files])
    return [*lines[:IGNORED_MAX], f"and {len(lines) - IGNORED_MAX} more: {command}"]


def _own(cluster: ClusterSettings, scenario: Scenario) -> str:
    """Broker settings of a scenario that the files leave to Kafka's default, which is another one."""
    from scenarios.properties.modelled import NAMES

    brokers = NAMES["broker"].values()
    return ", ".join(
        f"{key} = {shown(value)}"
        for key, value in scenario.config.items()
        if key in brokers and key not in cluster.found.settings and value != KEYS[key].default
    )


def cluster_options(command: F) -> F:
    """--server-properties and --release; the command receives them as `cluster`, a `ClusterSettings`."""

    @wraps(command)
    def with_cluster(asked: ClusterRequest, **given: Any) -> Any:
        return command(cluster=asked.cluster, **given)

    return cast("F", takes(ClusterRequest)(with_cluster))
