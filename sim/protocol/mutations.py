"""The places that mutants break (`sim.protocol.mutants`), each of which a run asks, and which note whether it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import final


@final
class Mutation:
    """A place that a mutant breaks.

    Attributes:
        is_on: whether the mutant is on.
        took: whether the place was executed.
        differed: whether the mutant's answer differed from the right one.
        watch: called each time with the broker that the answer is about (0: the place does not know it), and the LEO
            that it should have if the mutant were right (-1: that of the leader).
    """

    __slots__ = ("differed", "is_on", "took", "watch")

    def __init__(self, *, is_on: bool) -> None:
        self.is_on = is_on
        self.took = False
        self.differed = False
        self.watch: Callable[[int, int], None] | None = None

    def when(self, situation: bool, about: int = 0, leo: int = -1) -> bool:
        """Whether the mutant is on, in a situation in which it acts differently; see `watch` for the other arguments.
        The place counts as executed in any situation.
        """
        self.took = True
        return situation and self.differs(about, leo)

    def keeps(self, condition: bool, about: int = 0, leo: int = -1) -> bool:
        """A condition that the mutant drops; False if the mutant is on. See `when`."""
        return not self.when(condition, about, leo) and condition

    def differs(self, about: int = 0, leo: int = -1) -> bool:
        """`when`, where the situation has been tested: the place counts as executed only in it."""
        self.took = self.differed = True
        if self.watch is not None:
            self.watch(about, leo)
        return self.is_on


@final
class Mutations:
    """All places that mutants break, as attributes with the mutants' names.

    Args:
        mutant: the one that is on, or `NO_MUTANT`.
    """

    def __init__(self, mutant: str) -> None:
        self._mutant = mutant
        self.by_name: dict[str, Mutation] = {}
        self.registration_of_another_request = self._of("registration-of-another-request")
        self.leo_from_earlier_leadership = self._of("leo-from-earlier-leadership")
        self.fetch_continues_in_new_epoch = self._of("fetch-continues-in-new-epoch")
        self.join_without_fetch = self._of("join-without-fetch")
        self.join_below_hw = self._of("join-below-hw")
        self.join_below_epoch_start = self._of("join-below-epoch-start")
        self.fetch_response_at_another_offset = self._of("fetch-response-at-another-offset")
        self.fetch_response_of_earlier_epoch = self._of("fetch-response-of-earlier-epoch")
        self.alter_partition_of_earlier_registration = self._of("alter-partition-of-earlier-registration")
        self.alter_partition_of_earlier_partition_epoch = self._of("alter-partition-of-earlier-partition-epoch")
        self.ack_before_replication = self._of("ack-before-replication")
        self.writes_kept_after_resignation = self._of("writes-kept-after-resignation")
        self.gap_in_sequences_accepted = self._of("gap-in-sequences-accepted")
        self.only_newest_batch_deduplicated = self._of("only-newest-batch-deduplicated")
        self.hw_ignores_min_isr = self._of("hw-ignores-min-isr")
        self.hw_without_joining_members = self._of("hw-without-joining-members")
        self.hw_without_leaving_members = self._of("hw-without-leaving-members")
        self.hw_from_leo_at_restart = self._of("hw-from-leo-at-restart")
        self.epoch_not_recorded_by_follower = self._of("epoch-not-recorded-by-follower")
        self.epochs_kept_at_truncation = self._of("epochs-kept-at-truncation")
        self.hw_kept_at_full_truncation = self._of("hw-kept-at-full-truncation")
        self.log_start_above_hw = self._of("log-start-above-hw")
        self.end_of_next_epoch = self._of("end-of-next-epoch")
        self.read_above_hw = self._of("read-above-hw")
        self.list_offsets_above_hw = self._of("list-offsets-above-hw")
        self.hw_of_diverging_response = self._of("hw-of-diverging-response")
        self.clean_stop_without_flush = self._of("clean-stop-without-flush")
        self.epoch_0_not_recovered = self._of("epoch-0-not-recovered")
        self.unclean_registration_taken_for_clean = self._of("unclean-registration-taken-for-clean")
        self.elr_kept_at_min_isr = self._of("elr-kept-at-min-isr")
        self.elr_keeps_unclean_member = self._of("elr-keeps-unclean-member")
        self.election_outside_isr = self._of("election-outside-isr")
        self.last_known_leader_forgotten = self._of("last-known-leader-forgotten")
        self.isr_written_over_newer_version = self._of("isr-written-over-newer-version")
        self.request_of_former_controller = self._of("request-of-former-controller")
        self.preferred_leader_outside_isr = self._of("preferred-leader-outside-isr")
        self.restored_setting_not_recorded = self._of("restored-setting-not-recorded")

    def note_append(self) -> None:
        """Note that a follower appends fetched batches: two mutants would append those of other responses, too."""
        self.fetch_response_at_another_offset.took = self.fetch_response_of_earlier_epoch.took = True

    def forget(self) -> None:
        """Forget what a run has executed, and who watched it."""
        for mutation in self.by_name.values():
            mutation.took = mutation.differed = False
            mutation.watch = None

    def _of(self, name: str) -> Mutation:
        mutation = self.by_name[name] = Mutation(is_on=name == self._mutant)
        return mutation

    @property
    def took(self) -> set[str]:
        """The mutants whose places were executed."""
        return {name for name, mutation in self.by_name.items() if mutation.took}

    @property
    def differed(self) -> set[str]:
        """The mutants whose answers differed, or would have, from the right ones."""
        return {name for name, mutation in self.by_name.items() if mutation.differed}
