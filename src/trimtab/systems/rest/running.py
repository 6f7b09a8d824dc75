"""The controllers of generated kinds, by definition: started, told of changes, and ended. And what they learn of services
while they work, until the definition's status has it."""

from __future__ import annotations

import random
from collections.abc import Callable

from trimtab.client.protocol import Named, Query
from trimtab.model.clock import format_time
from trimtab.runtime import Context, Request
from trimtab.systems.rest import models
from trimtab.systems.rest.calling.connecting import Connections
from trimtab.systems.rest.hooks import Hooks
from trimtab.systems.rest.kinds import RestDefinition, RestService
from trimtab.systems.rest.kinds.definition import Quirk
from trimtab.systems.rest.measures import Measures
from trimtab.systems.rest.model import Model
from trimtab.systems.rest.object_controller import ObjectController
from trimtab.systems.rest.reconciling.board import Board
from trimtab.systems.rest.reconciling.looking import Looks
from trimtab.systems.rest.reconciling.place import Place
from trimtab.systems.rest.syncing.removing import RUNGS

MOST_QUIRKS = 64


class Running:
    """`learned` is called with a definition's name when there is something new for its status; `objects` limits what is
    reconciled, for tests."""

    def __init__(
        self, context: Context, connections: Connections, objects: Query, learned: Callable[[str], None]
    ) -> None:
        self._context, self._connections, self._objects, self._learned = context, connections, objects, learned
        self._board = Board()
        self._measures = Measures(context.metrics.registry)
        self._controllers: dict[str, ObjectController] = {}
        self._quirks: dict[str, dict[tuple[str, str], Quirk]] = {}

    async def run(
        self, definition: RestDefinition, service: RestService, model: Model, hooks: Hooks, key: bytes
    ) -> None:
        """Its objects are reconciled by this Model from now on."""
        manager = self._context.manager
        if manager is None:
            raise RuntimeError("the rest system runs its controllers by the manager of its home, and there is none")
        name, digest = definition.name, models.digest_of(model)
        controller = self._controllers.get(name)
        is_new = controller is None
        if controller is None:
            controller = ObjectController(f"{model.group}/{model.version}", model.kind, model.plural, self._objects)
        before = controller.place
        generation = service.metadata.generation
        if before is not None and (before.digest, before.service.metadata.generation) == (digest, generation):
            return
        clock = self._context.clock
        if is_new:
            manager.add(controller)
            self._controllers[name] = controller
        controller.place = Place(
            model=model,
            digest=digest,
            hooks=hooks,
            client=manager.cached,
            clock=clock,
            chance=random.Random(),  # noqa: S311 - jitter
            connections=self._connections,
            service=service,
            key=key,
            board=self._board,
            looks=Looks(model, clock),
            events=controller.events,
            log=controller.log,
            measures=self._measures,
            learn=lambda path, behaviour, evidence, of: self._learn(name, path, behaviour, evidence, of),
            children=lambda: self._children(model),
            removals=_removals(definition),
        )
        if not is_new:
            controller.wake_all()

    async def end(self, name: str) -> None:
        controller = self._controllers.pop(name, None)
        self._quirks.pop(name, None)
        if controller is None or self._context.manager is None:
            return
        self._board.forget(controller.wake)
        if controller.place is not None:
            self._measures.forget(controller.place.model.service, controller.place.model.kind)
        await self._context.manager.remove(controller)

    def quirks(self, name: str, known: tuple[Quirk, ...]) -> tuple[Quirk, ...]:
        """Those that are known with those that were learned since."""
        by_key = {(quirk.path, quirk.behaviour): quirk for quirk in known}
        return tuple({**self._quirks.get(name, {}), **by_key}.values())[:MOST_QUIRKS]

    def _children(self, model: Model) -> list[Named]:
        others = [each.place.model for each in self._controllers.values() if each.place is not None]
        below = [other for other in others if (other.service, other.parent) == (model.service, model.kind)]
        return [Named(f"{other.group}/{other.version}", other.kind) for other in below]

    def _learn(self, name: str, path: str, behaviour: str, evidence: str, of: Request) -> None:
        controller, rung = self._controllers.get(name), _RUNG_OF.get(behaviour)
        if controller is not None and controller.place is not None and rung is not None:
            controller.place.removals[path] = rung
        found = self._quirks.setdefault(name, {})
        if (path, behaviour) in found or len(found) >= MOST_QUIRKS:
            return
        found[path, behaviour] = Quirk(
            path=path[:1024],
            behaviour=behaviour,
            evidence=evidence[:1024],
            object=str(of)[:512],
            first_seen=format_time(self._context.clock.now()),
        )
        self._learned(name)


_RUNG_OF = {
    "RemovedByNull": RUNGS.index("null"),
    "RemovedByEmpty": RUNGS.index("empty"),
    "RemovedByDefault": RUNGS.index("default"),
}


def _removals(definition: RestDefinition) -> dict[str, int]:
    """Path → the way to remove it that was learned."""
    quirks = definition.status.quirks or () if definition.status else ()
    return {quirk.path: _RUNG_OF[quirk.behaviour] for quirk in quirks if quirk.behaviour in _RUNG_OF}
