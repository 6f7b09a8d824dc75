"""Waiting until an object is what it declares, or is gone: by a watch, so that it ends in the moment that it is so.

The watch starts from the object that was read, so that nothing is missed between; one that ends or breaks is begun again
with a new read. Health is judged as everywhere in Trimtab (`trimtab.model.health`).
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable
from typing import Any

from trimtab.model.health import Health, State, health
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.kinds.api import Api, collection_path, object_path
from trimtab.terraform.kinds.definition import Definition

Document = dict[str, Any]

TURN = 60.0
"""Seconds of one watch, at most."""
AGAIN = 1.0
"""Seconds before a watch that broke is begun again."""
FIRST_WORD = 10.0
"""Seconds in which whoever reconciles a kind says something of a new object. Silence longer than that: nobody does."""
SILENT = frozenset({("hub", "SyncConflict"), ("infra", "Addon"), ("infra", "Blueprint")})
"""Kinds that nobody reconciles by themselves: how they do is told by what uses them. By the group's first label."""
LONGER = "give it longer by `timeouts`"
LONGER_OR_NOT = f"{LONGER}, or do not wait by `wait = false`"
TOLD = 10.0
"""Seconds between two lines of the log that say the same."""


class Place:
    """Where an object is."""

    def __init__(self, definition: Definition, name: str, namespace: str = "") -> None:
        self.definition, self.name, self.namespace = definition, name, namespace
        names = (definition.group, definition.version, definition.plural)
        self.path = object_path(*names, name, namespace)
        self.collection = collection_path(*names, namespace)

    def __str__(self) -> str:
        return f"{self.definition.kind} {self.namespace}/{self.name}" if self.namespace else self.named

    @property
    def named(self) -> str:
        return f"{self.definition.kind} {self.name}"


def judged(definition: Definition, document: Document) -> Health:
    """Health; but a kind that tells by conditions how its objects do has not told yet while there are none."""
    found = health(document)
    if found.state is State.CURRENT and _is_unseen(definition, document):
        return Health(State.IN_PROGRESS, "no controller has seen it yet")
    return found


def _is_unseen(definition: Definition, document: Document) -> bool:
    silent = (definition.group.partition(".")[0], definition.kind) in SILENT
    return definition.observed and not silent and not document.get("status")


def wait_current(api: Api, place: Place, document: Document, context: Context, within: float) -> Document:
    """The object once it is Current. Failed when it fails, goes, or takes longer."""
    first_word = time.monotonic() + FIRST_WORD

    def done(seen: Document | None) -> bool:
        if seen is None:
            raise Failed(f"{place} is gone", "It was deleted while Terraform waited for it to become ready.")
        if time.monotonic() >= first_word and _is_unseen(place.definition, seen):
            context.warning(
                f"Nobody tells how {place} does",
                f"It was written {FIRST_WORD:g} seconds ago, and no controller has said anything of it. Is one running?",
            )
            return True
        verdict = judged(place.definition, seen)
        if verdict.state is State.FAILED:
            raise Failed(f"{place} has failed", _sentence(verdict.reason))
        return verdict.state is State.CURRENT

    found = _wait(api, place, document, context, within, done, "to be ready", look=first_word)
    if found is None:
        raise Failed(f"{place} is gone", "It was deleted while Terraform waited for it to become ready.")
    return found


def wait_gone(
    api: Api, place: Place, document: Document, context: Context, within: float, *, must: bool = False
) -> None:
    """Until the object, or its successor of the same name, is no more the one that was read. `must`: there is no choice."""
    uid = (document.get("metadata") or {}).get("uid")

    def done(seen: Document | None) -> bool:
        return seen is None or (seen.get("metadata") or {}).get("uid") != uid

    _wait(api, place, document, context, within, done, "to be gone", advice=LONGER if must else LONGER_OR_NOT)


def _wait(
    api: Api,
    place: Place,
    document: Document,
    context: Context,
    within: float,
    done: Callable[[Document | None], bool],
    aim: str,
    look: float = 0.0,
    advice: str = LONGER_OR_NOT,
) -> Document | None:
    """`look` is a moment at which to judge anew though nothing may have happened."""
    deadline = time.monotonic() + within
    progress = _Progress(place, context)
    latest: Document | None = document
    while not done(latest) and latest is not None:
        progress.tell(latest)
        until = min(deadline, look) if look > time.monotonic() else deadline
        latest, ended = _follow(api, place, latest, context, until, done, progress)
        if ended:
            break
        _check(place, context, deadline, within, aim, latest, advice)
        latest = api.find(place.path)
    return latest


def _follow(
    api: Api,
    place: Place,
    latest: Document,
    context: Context,
    deadline: float,
    done: Callable[[Document | None], bool],
    progress: _Progress,
) -> tuple[Document | None, bool]:
    """One watch: the newest object, and whether it is the end."""
    query = {
        "watch": "true",
        "fieldSelector": f"metadata.name={place.name}",
        "resourceVersion": str((latest.get("metadata") or {}).get("resourceVersion") or ""),
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(int(TURN)),
    }
    within = max(0.0, min(TURN, deadline - time.monotonic()))
    try:
        for event in api.watch(place.collection, query, within=within, cancelled=context.cancelled):
            if event.type in ("ADDED", "MODIFIED"):
                latest = event.object
                progress.tell(latest)
                if done(latest):
                    return latest, True
            elif event.type == "DELETED" and done(None):
                return None, True
            elif event.type == "ERROR":
                break  # too old, or refused: a new read tells
    except (OSError, ValueError, http.client.HTTPException) as error:
        context.log("debug", f"the watch on {place} broke, and is begun again", error=str(error))
    context.cancelled.wait(min(AGAIN, max(0.0, deadline - time.monotonic())))
    return latest, False


def _check(
    place: Place, context: Context, deadline: float, within: float, aim: str, latest: Document | None, advice: str
) -> None:
    last = judged(place.definition, latest).reason if latest else ""
    if context.cancelled.is_set():
        raise Failed(f"Interrupted while waiting for {place} {aim}", _sentence(last))
    if time.monotonic() >= deadline:
        raise Failed(
            f"{place} took too long {aim}",
            f"{_sentence(last)} Waited {within:g} seconds; {advice}.",
        )


def _sentence(reason: str) -> str:
    text = (reason or "It says nothing of itself").strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


class _Progress:
    """Says in the log how it goes: when that changes, and from time to time."""

    def __init__(self, place: Place, context: Context) -> None:
        self._place, self._context = place, context
        self._said, self._at, self._began = "", 0.0, time.monotonic()

    def tell(self, document: Document) -> None:
        verdict = judged(self._place.definition, document)
        now = time.monotonic()
        words = f"{verdict.state.value}: {verdict.reason}"
        if words != self._said or now - self._at > TOLD:
            self._said, self._at = words, now
            self._context.log(
                "info",
                f"waiting for {self._place}",
                state=verdict.state.value,
                reason=verdict.reason,
                elapsed=round(now - self._began, 1),
            )
