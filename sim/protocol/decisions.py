"""Decisions: the protocol's queries of rules, which record whether a rule had an effect.

Code in which releases differ asks a `Decision`, which answers and records that it was asked. Code asks only in
situations in which the values of the rule act differently::

    if len(isr) < self.min_insync_replicas and self._decide.hw_needs_min_isr.yes():

The situation is tested first, the rule last. So a run records, rule by rule, the other values that would have acted
differently (`Decisions.parted`). If two sets of rules differ only in values that would not have acted differently in a
run, both give the same history, because they act alike up to the first decision on which they differ. This holds as
long as

* outside of the situation all values of the rule act alike, whatever the values of *other* rules are;
* a rule whose value has a later effect (a message that carries an epoch, a file that is written) is asked when the
  value is applied, or in every situation in which the effect shows;
* code reads ``answer``, which records nothing, only where the same decision was asked before, or where both answers
  lead to the same result.

`make hunt` compares runs (`tests.verification.hunt.deciding`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Final, TypeVar, final

from sim.protocol.mutations import Mutations
from sim.protocol.rules import ADDED_VALUES, RULES, Rules, built_in

T = TypeVar("T")

VALUES: Final[list[tuple[str, str]]] = []
"""All values of all rules: (rule, value)."""
_PLACES: Final[dict[tuple[str, str], int]] = {}
"""(rule, value) -> its index in `VALUES`, and the number of its bit."""
_MASKS: Final[dict[str, int]] = {}
"""Rule -> bits of its values."""
_SPARE: Final[list[Decisions]] = []
"""Tables of ended runs, the newest last."""
_MOST_SPARE: Final = 32


@final
class Decision:
    """A yes/no query of a rule: the answer of the current value, and whether the run asked it."""

    __slots__ = ("answer", "asked")

    def __init__(self, *, answer: bool) -> None:
        self.answer = answer
        self.asked = False

    def yes(self) -> bool:
        """Ask, in a situation in which the other answer would act differently."""
        self.asked = True
        return self.answer

    def note(self) -> None:
        """Record an effect without using the answer, on which later behaviour elsewhere depends."""
        self.asked = True


@final
class Choice:
    """A query of a rule with an answer for each value.

    Attributes:
        against: values that would have answered differently at some time.
    """

    __slots__ = ("against", "rule", "value")

    def __init__(self, rule: str, value: str) -> None:
        self.rule = rule
        self.value = value
        self.against: set[str] = set()

    def pick(self, answers: Mapping[str, T]) -> T:
        """The answer of the current value. Values with another answer are added to `against`."""
        chosen = answers[self.value]
        for value, answer in answers.items():
            if answer != chosen:
                self.against.add(value)
        return chosen


@final
class Decisions:
    """All queries of one set of rules, with a record of which were asked. Brokers with the same rules share an object.

    Attributes:
        mutants: queries of the mutant, which do not count as queries of a rule.
        plugged: whether plug-ins add values; only then the protocol calls `by_plugins`.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.mutants = Mutations(rules.mutant)
        self._decisions: list[Decision] = []
        self._choices: list[Choice] = []
        self.plugged = len(ADDED_VALUES) > 0
        self._noted = 0
        self._earlier = 0
        """`bits` up to the last call of `take`."""
        # Truncation.
        truncation = rules.follower_truncation
        self.truncates_to_hw = self._on(truncation == "high-watermark" or truncation == "high-watermark-delayed")
        self.awaits_records = self._on(truncation == "high-watermark-delayed")
        self.truncates_on_fetch = self._on(truncation == "on-fetch")
        self.answers_epochs = self._on(truncation == "leader-epoch" or rules.names_epochs)
        self.names_epochs = self._on(rules.names_epochs)
        self.truncates_on_error = self._on(rules.epoch_request_error == "high-watermark")
        self.fences_truncation = self._on(rules.truncation_fencing == "yes")
        self.drops_epochs_at_leo = self._on(rules.truncate_at_leo == "drops-epochs")
        self.writes_log_start_at_once = self._on(rules.log_start_checkpoint == "at-once")
        self.records_epoch_at_election = self._on(rules.epoch_recorded_at == "election")
        # Fetching.
        self.fetcher_restart = self._of("fetcher_restart")
        self.fences_fetches = self._on(rules.fetch_fencing == "leader-epoch")
        self.compares_last_epoch = self._on(rules.fetch_fencing == "last-epoch")
        self.fences_first_fetch_only = self._on(rules.session_epoch == "first-fetch")
        self.fenced_fetcher = self._of("fenced_fetcher")
        self.drops_late_fetches = self._on(rules.late_reply == "leader-epoch")
        self.drops_recreated = self._on(rules.recreated_reply == "dropped")
        self.refuses_recreated = self._on(rules.recreated_fetch == "refused")
        self.drops_late_epoch_ends = self._on(rules.late_reply != "offset")
        self.checks_first_offset = self._on(rules.append_check == "first-offset")
        self.error_kills_thread = self._on(rules.append_error == "thread-dies")
        self.recovery_fails_on_overlaps = self._on(rules.overlap_recovery == "fails")
        self.fails_on_unreadable_checkpoint = self._on(rules.unreadable_checkpoint == "fails-directory")
        self.takes_for_stray = self._on(rules.missing_topic_id == "stray")
        self.carries_epochs = self._on(rules.moved_log_epochs == "carried-over")
        self.keeps_log = self._on(rules.lagging_future_log == "keeps-log")
        self.avoids_cordoned = self._on(rules.cordoned_directory == "avoided")
        self.uses_skipped_log = self._on(rules.skipped_log == "used")
        self.halts_out_of_range = self._on(rules.out_of_range == "halts")
        # High watermark and ISR.
        self.hw_needs_min_isr = self._on(rules.hw_needs_min_isr == "yes")
        self.caps_min_isr = self._on(rules.min_isr_cap == "replicas")
        self.hw_needs_epoch = self._on(rules.hw_needs_epoch == "yes")
        self.hw_at_every_fetch = self._on(rules.hw_at_fetch == "every-fetch")
        self.lags_by_time = self._on(rules.isr_lag == "time")
        self.fetched_at_reelection = self._on(rules.lag_at_reelection == "fetched")
        self.forgets_at_skipped_epoch = self._on(rules.skipped_epoch == "forgets-leo")
        self.refuses_unassigned = self._on(rules.unassigned_fetch == "refused")
        self.forgets_refused = self._on(rules.refused_fetch == "forgets-leo")
        self.joins_at_epoch_start = self._on(rules.isr_join == "leader-epoch-start")
        self.admits_any_member = self._on(rules.isr_eligibility == "any")
        self.admits_live_members = self._on(rules.isr_eligibility == "alive")
        self.admits_registered_members = self._on(rules.isr_eligibility == "registered")
        self.asks_controller = self._on(rules.isr_update == "alter-partition")
        # Controller.
        self.registration_bumps_epoch = self._on(rules.registration_epoch == "bumped")
        self.notices_missed_bounces = self._on(rules.missed_bounce == "noticed")
        self.stopping_leader_is_online = self._on(rules.shutting_down_leader == "online")
        self.last_member_leaves = self._on(rules.last_isr_member == "leaves-if-unclean")
        self.elects_preferred_again = self._on(rules.preferred_election == "always")
        self.keeps_reassignment_marks = self._on(rules.reassignment_state == "adding-and-removing")
        self.checks_broker_epochs = self._on(rules.broker_epoch == "checked")
        self.refuses_newer_broker_epochs = self._on(rules.newer_broker_epoch == "refused")
        self.stopping_brokers_get_new_leaders = self._on(rules.shutdown_recipients == "all-live")
        self.answers_stopped_writes = self._on(rules.stopped_writes == "refused")
        self.same_leader_keeps_leos = self._on(rules.same_leader == "keeps-leo")
        self.counts_previous_fetch = self._on(rules.caught_up == "previous-fetch")
        self.resends_unanswered_requests = self._on(rules.control_retry == "until-answered")
        self.fences_controller_writes = self._on(rules.controller_writes == "fenced")
        self.starts_with_all_replicas = self._on(rules.controller_startup == "all-replicas")
        self.takes_last_sent_metadata = self._on(rules.broker_metadata == "last-sent")
        self.checks_stop_replica = self._on(rules.stop_replica == "checked")
        self.keeps_epoch_of_deleted = self._on(rules.deleted_replica == "keeps-epoch")
        # Clients.
        self.guards_list_offsets = self._on(rules.list_offsets_guard == "yes")
        self.fences_clients = self._on(rules.list_offsets_fencing == "yes")
        self.keeps_newest_metadata = self._on(rules.client_metadata == "newest-epoch")
        self.takes_back_newest_first = self._on(rules.lost_requests == "newest-first")
        self.validates_position = self._on(rules.consumer_validation == "yes")
        self.reads_new_partitions = self._on(rules.new_partition_reset == "earliest")
        self.stopped_partition = self._of("stopped_partition")
        self.resets_to_latest_unless_in_time = self._on(rules.duration_reset == "latest")
        self.followers_serve_consumers = self._on(rules.read_replica != "leader")
        self.checks_enabled_unclean = self._on(rules.enabled_unclean_election == "checked")
        self.reads_in_sync_only = self._on(rules.read_replica == "in-sync")
        self.replays_offsets = self._on(rules.group_coordinator == "replayed")
        self.refuses_unstable = self._on(rules.group_coordinator != "cached")
        self.stopped_load_fails = self._on(rules.stopped_load == "fails")
        self.ignores_follower_hw = self._on(rules.coordinator_hw == "leader")
        self.confirms_fetches = self._on(rules.offset_fetch == "confirmed")
        self.dedups = self._on(rules.producer_dedup == "yes")
        self.takes_unknown_producer = self._on(rules.unknown_producer != "refused")
        self.empty_log_takes_unknown = self._on(
            rules.unknown_producer == "refused" or rules.unknown_producer == "taken"
        )
        self.takes_any_first_sequence = self._on(rules.unknown_producer != "out-of-order")
        self.snapshots_have_last = self._on(rules.snapshot_batches == "last")
        self.snapshots_reloads = self._on(rules.producer_snapshots != "rolled")
        self.keeps_all_snapshots = self._on(rules.producer_snapshots != "of-segments")
        self.bumps_producer_epoch = self._on(rules.producer_recovery != "new-producer-id")
        self.producer_survives_fencing = self._on(rules.producer_recovery == "epoch-bump-when-fenced")
        # KRaft.
        self.has_quorum = self._on(rules.control_plane == "kraft")
        self.refuses_stale_fetches = self._on(rules.stale_fetch == "refused")
        self.refuses_newer_fetches = self._on(rules.newer_fetch == "refused")
        self.shrink_bumps_epoch = self._on(rules.isr_shrink_epoch == "bumped")
        self.reassignment_completes = self._of("reassignment_completes")
        self.ignores_removed_voters = self._on(rules.removed_voter == "ignored")
        self.knows_directories = self._on(rules.directory_assignment != "none")
        self.assignment_clears_elr = self._on(rules.directory_assignment == "clears-elr")
        self.excludes_reported = self._on(rules.reported_directory == "excluded")
        self.refuses_offline_replica = self._on(rules.offline_replica == "refused")
        self.misses_directories = self._on(rules.removed_directory == "unclean")
        self.ignores_offline_directories = self._on(rules.offline_directory == "ignored")
        self.replaces_reassignment_marks = self._on(rules.resubmitted_reassignment == "replaces-marks")
        self.elr = self._on(rules.elr == "on")
        self.drops_elr_outsiders = self._on(rules.elr_outside_assignment == "dropped")
        self.keeps_disabled_elr = self._on(rules.disabled_elr == "kept")
        self.remembers_last_candidate = self._on(rules.last_candidate == "remembered")
        self.last_known_elr = self._of("last_known_elr")
        self.last_known_must_be_unfenced = self._on(rules.last_known_leader == "unfenced")
        self.reads_clean_shutdown = self._on(rules.clean_shutdown == "checked")
        self.marks_unloaded_clean = self._on(rules.clean_shutdown_file == "always")
        self.caps_by_first_partition = self._on(rules.controller_min_isr == "first-partition")
        self.min_isr_change = self._of("min_isr_change")
        self.clears_disabled_elr = self._on(rules.min_isr_change_while_disabled == "clears-if-enough")
        self.leaves_disabled_elr = self._on(rules.unclean_shutdown_while_disabled == "leaves-elr")
        self.unclean_registration_changes = self._on(rules.unclean_registration == "transitions")
        self.deletes_reassigned_replica = self._on(rules.reassigned_replica == "deleted")
        self.begins_sessions_at_activation = self._on(rules.activation_sessions == "unfenced")
        self.keeps_fenced_sessions = self._on(rules.fenced_session == "kept")
        self.lifecycle_backs_off = self._on(rules.lifecycle_retry == "back-off")
        self.elects_uncleanly = self._on(rules.unclean_recovery == "election")
        self.recovery_takes_first = self._on(rules.unclean_recovery == "first-replies")
        self.holds_small_isr = self._on(rules.isr_floor == "min-isr")
        self.keeps_pending_isr = self._on(rules.equal_partition_epoch == "keeps-pending-isr")
        self.applies_configs_last = self._on(rules.config_replay == "after-topics")
        self.adopts_answered_min_isr = self._on(rules.isr_response == "with-min-isr")
        # Raft of the metadata quorum.
        self.asks_for_pre_votes = self._on(rules.pre_vote == "asked")
        self.voters_search_leader = self._on(rules.leader_search == "all-members")
        self.observer_keeps_bootstrap = self._on(rules.observer_fetch_timeout == "bootstrap-only")
        self.hw_answers_fetches = self._on(rules.raft_high_watermark == "at-once")
        self.begins_with_silent_voters = self._on(rules.begin_quorum_epoch == "silent-voters")

    def _on(self, answer: bool) -> Decision:
        decision = Decision(answer=answer)
        self._decisions.append(decision)
        return decision

    def _of(self, rule: str) -> Choice:
        choice = Choice(rule, getattr(self.rules, rule))
        self._choices.append(choice)
        return choice

    def by_plugins(self, point: str, answer: T, at: object) -> T:
        """The answer at a decision point (`sim.protocol.decision_points`), which plug-ins' values in force may change.

        Also records which of the plug-ins' other values would have answered differently.

        Args:
            point: name of the decision point.
            answer: the answer of Highwater's own values.
            at: the situation.

        Raises:
            PluginError: a function's answer is wrong (`scenarios.format.plugin_border`).
        """
        for added in ADDED_VALUES.values():
            function = added.functions.get(point)
            if function is None:
                continue
            bit = 1 << _PLACES[added.rule, added.value]
            if self.rules.value(added.rule) == added.value:
                given = function(answer, at)
                if given != answer:
                    self._noted |= _MASKS[added.rule] & ~bit
                    answer = given
            elif not self._noted & bit:
                try:
                    differs = function(answer, at) != answer
                except (KeyboardInterrupt, MemoryError):
                    raise
                except BaseException:  # A value that is not in force must not end the run.
                    differs = True
                if differs:
                    self._noted |= bit
        return answer

    @property
    def bits(self) -> int:
        """Values other than the current ones that would have acted differently at some time: see `to_values`."""
        return self._earlier | self._since()

    def take(self, bits: int) -> bool:
        """Whether any of these values would have acted differently since the last call."""
        found = self._since()
        if not found:
            return False
        self._earlier |= found
        self._noted = 0
        for choice in self._choices:
            choice.against.clear()
        for decision in self._decisions:
            decision.asked = False
        return found & bits != 0

    def forget(self) -> None:
        """Forget what a run has asked."""
        self._noted = self._earlier = 0
        for choice in self._choices:
            choice.against.clear()
        for decision in self._decisions:
            decision.asked = False
        self.mutants.forget()

    def _since(self) -> int:
        """`bits` since the last call of `take`."""
        found = self._noted
        for choice in self._choices:
            if not choice.against:
                continue
            for value in RULES[choice.rule].values:
                if built_in(choice.rule, value) in choice.against:
                    found |= 1 << _PLACES[choice.rule, value]
        questions = _questions()
        for place, decision in enumerate(self._decisions):
            if decision.asked:
                agreeing, others = questions[place]
                found |= others if decision.answer else agreeing
        return found

    def parted(self) -> set[tuple[str, str]]:
        """`bits` as (rule, value) pairs."""
        return to_values(self.bits)

    def decided(self) -> list[str]:
        """The rules that had an effect, in the order of `RULES`."""
        bits = self.bits
        return [rule for rule, mask in _MASKS.items() if bits & mask]

    def answers(self) -> list[bool]:
        """The answers of all decisions, in the order of their creation."""
        return [decision.answer for decision in self._decisions]


def table_of(rules: Rules) -> Decisions:
    """A table in which nothing was asked: one that an ended run gave back, or a new one."""
    for place, table in enumerate(_SPARE):
        if table.rules is rules:
            return _SPARE.pop(place)
    return Decisions(rules)


def give_back(tables: Iterable[Decisions]) -> None:
    """Keep the tables of an ended run for later runs with the same rules: to create one takes a hundredth of a run."""
    for table in tables:
        table.forget()
        _SPARE.append(table)
    del _SPARE[:-_MOST_SPARE]


def rebuild() -> None:
    """Number the values of all rules again, after plug-ins have added some; between runs only."""
    VALUES[:] = [(rule, value) for rule, spec in RULES.items() for value in spec.values]
    _PLACES.clear()
    _MASKS.clear()
    for place, (rule, value) in enumerate(VALUES):
        _PLACES[rule, value] = place
        _MASKS[rule] = _MASKS.get(rule, 0) | 1 << place
    _SPARE.clear()
    _questions.cache_clear()
    replaced.cache_clear()


@cache
def _questions() -> tuple[tuple[int, int], ...]:
    """For each decision, bits of the values of its rule that answer yes and of those that answer no.

    Found by trying. A decision depends on one rule, so many rules are changed at once: each of those that have a value
    in this place is numbered, and each bit of these numbers is a trial, in which a decision differs if its rule does.
    """
    some = Rules.of({name: spec.values[0] for name, spec in RULES.items()})
    first = Decisions(some).answers()
    masks, others = [0] * len(first), [0] * len(first)
    for place in range(1, max([len(spec.values) for spec in RULES.values()])):
        values = [(rule, spec.values[place]) for rule, spec in RULES.items() if len(spec.values) > place]
        numbers = [0] * len(first)
        for bit in range(len(values).bit_length()):
            changes = {rule: value for number, (rule, value) in enumerate(values, 1) if number >> bit & 1}
            for decision, answer in enumerate(Decisions(some.override(changes)).answers()):
                numbers[decision] |= (answer != first[decision]) << bit
        for decision, number in enumerate(numbers):
            if number:
                rule, value = values[number - 1]
                masks[decision] = _MASKS[rule]
                others[decision] |= 1 << _PLACES[rule, value]
    pairs = [(mask & ~other, other) for mask, other in zip(masks, others, strict=True)]
    return tuple([pair if answer else pair[::-1] for answer, pair in zip(first, pairs, strict=True)])


def decided(tables: Iterable[Decisions]) -> int:
    """Values that would have acted differently in a run, at any broker, client or controller: see `to_values`.

    If these have different sets of rules, and a rule had an effect, all its values count.
    """
    every = [table.bits for table in tables]
    found = 0
    for bits in every:
        found |= bits
    if len(every) > 1:
        for mask in _MASKS.values():
            if found & mask:
                found |= mask
    return found


def added_that_decided(rules: Rules, bits: int) -> list[tuple[str, str]]:
    """The plug-ins' values that had an effect in a run with these rules, as (rule, value) pairs.

    A plug-in's value in force had an effect if the value that it is like (`AddedValue.like`) would have acted
    differently. If that one is in force, the plug-in's had an effect if it would have acted differently. If neither is
    in force, the plug-in's value is not listed.
    """
    found = []
    for (rule, value), added in ADDED_VALUES.items():
        own = rules.value(rule)
        if own in (value, added.like):
            other = added.like if own == value else value
            found += [(rule, value)] if bits >> _PLACES[rule, other] & 1 else []
    return found


@lru_cache(maxsize=1024)
def replaced(rules: Rules, others: Rules) -> int:
    """The values of `others` for the rules in which the two differ: see `to_values`.

    If none of them would have acted differently in a run (`decided`), a run with `others` has the same history.
    """
    names = [name for name in RULES if rules.value(name) != others.value(name)]
    return sum(1 << _PLACES[name, others.value(name)] for name in names)


def to_values(bits: int) -> set[tuple[str, str]]:
    """The (rule, value) pairs of a number with a bit for each of `VALUES`."""
    return {pair for place, pair in enumerate(VALUES) if bits >> place & 1}


rebuild()
