"""Where reconciles of one kind take place: what all its objects share."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.client.protocol import Named
from trimtab.model.clock import Clock
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.changes import Request
from trimtab.systems.rest.hooks import Hooks
from trimtab.systems.rest.kinds import RestService
from trimtab.systems.rest.measures import Measures
from trimtab.systems.rest.model import Model
from trimtab.systems.rest.reconciling.board import Board

if TYPE_CHECKING:
    from trimtab.runtime.events import Recorder
    from trimtab.systems.rest.calling.connecting import Connections
    from trimtab.systems.rest.reconciling.looking import Looks

Learn = Callable[[str, str, str, Request], None]
"""(path, behaviour, evidence, object): something about the service that its document does not say."""


class Place(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All that a turn needs besides its object."""

    model: Model
    digest: str
    hooks: Hooks
    client: CachedClient
    clock: Clock
    chance: random.Random
    connections: Connections
    service: RestService
    key: bytes  # for the HMACs of secrets
    board: Board
    looks: Looks
    events: Recorder
    log: Any
    measures: Measures
    learn: Learn
    children: Callable[[], Sequence[Named]]
    """The kinds whose objects may be parts of one of this kind."""
    removals: dict[str, int]
    """Path → the way to remove it that was found to work, for all objects of the kind."""
