"""What a difference between the spec and what runs asks for. Pure: facts in, one answer out.

The fence: the hash of a template may come out differently after an upgrade of this program. That is no change of the
user's, and must not roll anything out. A target that a snapshot hashes to today goes by the name of that snapshot
(`snapshots.known_as`, before this is asked). Where there is no such snapshot, a new hash still counts only when the spec
moved on (`metadata.generation`) or a tracked config did.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

import msgspec

from trimtab.systems.delivery.kinds import TrackedConfig
from trimtab.systems.delivery.kinds.canary import Phase

LEAVING: frozenset[Phase] = frozenset({"Promoting", "Returning", "RollingBack", "Finalising"})
"""A run in one of these phases is finished first: what it does is decided."""


class Change(enum.Enum):
    INITIAL = "Initial"
    """Nothing is stable yet: the first revision has nothing to be proven against."""
    NO_CHANGE = "NoChange"
    IN_PLACE = "InPlace"
    """Another spec with the same revision (replicas, service, routes): applied at once, a run goes on."""
    NEW_RUN = "NewRun"
    PROMOTE_NOW = "PromoteNow"
    """By the annotation for this very revision: straight out, as a new run or in the middle of one."""
    ROLLBACK_WINDOW = "RollbackWindow"
    """Was stable not long ago: straight out."""
    REVERT = "Revert"
    """Back to what is stable: the run ends, and has not failed."""
    SUPERSEDED = "Superseded"
    """Another revision is wanted than the one that runs: that run ends, and the other begins."""
    LATER = "Later"
    """Another revision is wanted, when the present run has come to its end."""
    FAILED_BEFORE = "FailedBefore"
    """Does not run again before another retry token is given, or promote-now."""
    REBASELINE = "Rebaseline"
    """The same template under a new hash: the old one stays its name, and nothing is done. (A new name would be a new
    label of its pods, and so a rollout after all.)"""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """`target` is of the spec as it is; the others are of the status, where nothing else is said."""

    target: str
    target_before: str = ""
    stable: str = ""
    failed: str = ""
    run_revision: str = ""
    """Empty when there is no run."""
    phase: Phase = "Stable"
    generation: int = 0
    """metadata.generation."""
    target_generation: int = 0
    """metadata.generation when the target was last computed. It is to be written at each look, together with the target
    and the tracked configs, and not only with a new target: or the fence stands too far back."""
    configs_changed: bool = False
    retry_token: str = ""
    """Of the spec, and of the annotation."""
    failed_token: str = ""
    history_revisions: tuple[str, ...] = ()
    """Those that were stable, newest first."""
    rollback_window: int = 0
    promote_now: str = ""
    """The revision of the annotation."""


def classify(facts: Facts) -> Change:
    """What to do about the target."""
    if not facts.stable and not facts.run_revision:
        return Change.INITIAL
    if is_rebaseline(facts):
        return Change.REBASELINE
    return _in_run(facts) if facts.run_revision else _at_rest(facts)


def is_rebaseline(facts: Facts) -> bool:
    """Whether only the hash is new."""
    if not facts.target_before or facts.target == facts.target_before:
        return False
    return facts.generation == facts.target_generation and not facts.configs_changed


def configs_changed(before: Iterable[TrackedConfig], now: Iterable[TrackedConfig]) -> bool:
    """Whether any was changed, added or removed."""
    return _configs(before) != _configs(now)


def within_window(target: str, stable: str, history: Sequence[str], window: int) -> bool:
    """Whether the target is one of the last `window` revisions that were stable before this one."""
    earlier = [revision for revision in dict.fromkeys(history) if revision != stable]
    return target in earlier[:window]


def _in_run(facts: Facts) -> Change:
    if facts.target == facts.run_revision:
        if facts.promote_now == facts.target and facts.phase not in LEAVING:
            return Change.PROMOTE_NOW
        return _same_revision(facts)
    if facts.phase in LEAVING:
        return Change.LATER
    return Change.REVERT if facts.target == facts.stable else Change.SUPERSEDED


def _at_rest(facts: Facts) -> Change:
    if facts.target == facts.stable:
        return _same_revision(facts)
    if facts.promote_now == facts.target:
        return Change.PROMOTE_NOW
    if facts.target == facts.failed and facts.retry_token == facts.failed_token:
        return Change.FAILED_BEFORE
    if within_window(facts.target, facts.stable, facts.history_revisions, facts.rollback_window):
        return Change.ROLLBACK_WINDOW
    return Change.NEW_RUN


def _same_revision(facts: Facts) -> Change:
    return Change.NO_CHANGE if facts.generation == facts.target_generation else Change.IN_PLACE


def _configs(configs: Iterable[TrackedConfig]) -> set[tuple[str, str, str]]:
    return {(config.kind, config.name, config.checksum) for config in configs}
