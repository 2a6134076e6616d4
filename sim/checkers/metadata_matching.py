"""Early warning ``metadata-mismatch``: a broker replayed a record that differs from the committed one.

The records that a broker has replayed since it started are a prefix of the committed metadata log: the same record at
each offset (Vanlightly: MetadataLogMatchingProperty). Otherwise two brokers with equal partition epoch may have
different states.

A snapshot has the state that the committed records below its end lead to.

Verifies: each record that a broker replays, and the offset at which it does so; each snapshot that a controller or
broker makes.

Does not verify: how far behind a broker is; how it applies the records; the logs of controllers (``metadata-loss``);
control planes without a log.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import Checker, warning
from sim.history import steps
from sim.history.history import History
from sim.protocol.kraft.metadata import MetadataImage, Record


class MetadataMatching(Checker):
    """Keeps the committed records for comparison."""

    FINDINGS: ClassVar = (warning("metadata-mismatch"),)
    of_cluster: ClassVar[bool] = True

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._log: list[Record] = []
        self._reported: set[tuple[int, int]] = set()
        self._image = MetadataImage()
        """What the records below some offset lead to."""

    def on_metadata_lost(self, step: steps.MetadataLost) -> None:
        del self._log[step.offset :]
        self._image = MetadataImage()

    def on_metadata_snapshot(self, step: steps.MetadataSnapshot) -> None:
        if step.kind is steps.SNAPSHOT_LOADED:
            return
        self.decided = True
        image, offset = self._image_at(step.offset), step.offset
        content = step.snapshot.content
        assert isinstance(content, MetadataImage)
        if image.changes_to(content) or content.changes_to(image):
            detail = f"process {step.node} made a snapshot of offset {offset}, which differs from the committed records"
            self._warns("metadata-mismatch", step.at_us, detail, weak=())

    def _image_at(self, offset: int) -> MetadataImage:
        """What the committed records below an offset lead to; the last ones may lack because they have no contents."""
        if self._image.offset > offset:
            self._image = MetadataImage()
        image = self._image
        for record in self._log[image.offset : offset]:
            image.replay(record)
        return image

    def on_metadata(self, step: steps.Metadata) -> None:
        log = self._log
        if step.kind is steps.COMMITTED_METADATA:
            log += step.entries
            return
        self.decided = True
        broker = step.broker
        place = step.offset - 1
        for record in step.entries:
            place += 1
            if place >= len(log) or log[place] is not record:
                if (broker, place) not in self._reported:
                    self._reported.add((broker, place))
                    there = log[place] if place < len(log) else "nothing"
                    quorum = f"the quorum has {_said(there)}"
                    detail = f"broker {broker} replayed {_said(record)} at offset {place}, where {quorum}"
                    self._warns("metadata-mismatch", step.at_us, detail, weak=(broker,))
                return


def _said(record: Record | str) -> str:
    return record if isinstance(record, str) else f"a {type(record).__name__}"
