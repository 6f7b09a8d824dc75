"""Bring objects to what is wanted, and keep them so; never touch what is not ours.

Flow, for each object in turn: read it (from the cache, in a controller). When it is ours, it is applied unless nothing
would change. When it is not there, by the server's own word, it is applied without force: should another make it in the
same moment, the server says so instead of giving it to us. When it exists and is not ours, it is adopted where that is
allowed and nobody controls it, or a Conflict is told.

Guarantees: what another controls is never written to. No request is sent when nothing differs. An object whose wish did
not change since it was last written (`APPLIED`) and that differs now is drift: it is put back, and told with the field and
who wrote it. With `dry` nothing is written at all. `confirm` is awaited before each write: when it raises, nothing is
written.

Caveats: what previous owners of an adopted object said beside our fields stays theirs. Someone who replaces an object
without its owner, label and annotation has made another object: that is a Conflict.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.client.protocol import AnyKind, Client, Named, Preconditions, Ref
from trimtab.model.document import plain
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.runtime.apply import changes
from trimtab.runtime.objects import is_deleting, kind_of, uid_of, uncached
from trimtab.runtime.owners import controller_of, own, owner_reference
from trimtab.systems.delivery.kinds.canary import CanaryDeployment
from trimtab.systems.delivery.kinds.fields import ADOPT, OWNER
from trimtab.systems.delivery.objects.drifting import Drift, drifts
from trimtab.systems.delivery.objects.grounds import Confirm, unasked

MANAGER = "delivery"
APPLIED = "delivery.trimtab.dev/applied"
"""Annotation of what we made: the uid of its CanaryDeployment, and a digest of what was last wanted."""
ATTEMPTS = 4

Document = dict[str, Any]
Key = tuple[str, str]
Agreed = dict[Key, tuple[str, str]]
"""The resourceVersion of each object, and what was wanted, when they last were the same."""


class Conflict(msgspec.Struct, frozen=True):
    """An object that is in the way, or that cannot be as it should. It was left alone."""

    kind: str
    name: str
    why: str
    refused: bool = False
    """The server does not take it as it should be."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.why}"


class Enforced(msgspec.Struct, frozen=True, kw_only=True):
    """The objects as they are now, by kind and name, and what was met on the way. `made` were not there before."""

    objects: Mapping[Key, Document] = {}
    drifts: tuple[Drift, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    made: tuple[Key, ...] = ()

    def get(self, kind: str, name: str) -> Document | None:
        return self.objects.get((kind, name))


async def enforce(
    client: Client,
    canary: CanaryDeployment,
    desired: Sequence[Mapping[str, Any]],
    *,
    adopt: bool,
    expected: Collection[Key] = (),
    dry: bool = False,
    agreed: Agreed | None = None,
    confirm: Confirm = unasked,
) -> Enforced:
    """Enforce each of the documents. Those `expected` by kind and name were there before: it is drift when they are not.
    What is `agreed`, and kept by the caller from one round to the next, is not compared again. Nothing is made for a
    CanaryDeployment that is being deleted. Raises the StatusErrors that are no conflicts."""
    enforcing = _Enforcing(client, canary, adopt=adopt, expected=expected, dry=dry, agreed=agreed, confirm=confirm)
    for document in desired:
        await enforcing.enforce(document)
    return enforcing.result()


async def remove(client: Client, canary: CanaryDeployment, kind: AnyKind, name: str) -> bool:
    """Delete it if it is ours. True when nothing of ours is left there: gone, or never ours."""
    found = await _find(client, kind, name, canary.namespace)
    holder = controller_of(found) if found is not None else None
    if found is None or holder is None or holder.uid != uid_of(canary):
        return True
    if is_deleting(found):
        return False
    try:
        left = await client.delete(
            Ref(kind, name, canary.namespace),
            preconditions=Preconditions(uid=uid_of(found)),
            propagation="Background",
        )
    except StatusError as error:
        if error.code not in (404, 409):
            raise
        return True  # it is gone, and what has its name now is another
    return left is None


def digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(document, order="sorted")).hexdigest()[:16]


class _Enforcing:
    """One round over the objects of one CanaryDeployment."""

    def __init__(
        self,
        client: Client,
        canary: CanaryDeployment,
        *,
        adopt: bool,
        expected: Collection[Key],
        dry: bool,
        agreed: Agreed | None,
        confirm: Confirm,
    ) -> None:
        self._client, self._canary, self._confirm = client, canary, confirm
        self._adopt, self._expected, self._dry = adopt, expected, dry
        self._agreed = {} if agreed is None else agreed
        self._objects: dict[Key, Document] = {}
        self._drifts: list[Drift] = []
        self._conflicts: list[Conflict] = []
        self._made: list[Key] = []
        reference = owner_reference(canary, getattr(client, "scheme", None))
        self._owner: Document = plain(reference)

    def result(self) -> Enforced:
        return Enforced(
            objects=self._objects,
            drifts=tuple(self._drifts),
            conflicts=tuple(self._conflicts),
            made=tuple(self._made),
        )

    async def enforce(self, document: Mapping[str, Any]) -> None:
        wanted = self._wanted(document)
        kind, name = _kind(wanted), wanted["metadata"]["name"]
        live = await _find(self._client, kind, name, self._canary.namespace)
        if live is None and uncached(self._client) is not self._client:  # a cache may be behind
            live = await _find(uncached(self._client), kind, name, self._canary.namespace)
        for _ in range(ATTEMPTS):
            try:
                if live is None:
                    await self._make(wanted)
                elif self._is_ours(live):
                    await self._keep(wanted, live)
                else:
                    await self._take(wanted, live)
                return
            except StatusError as error:
                if error.code == 422:
                    self._conflicts.append(
                        Conflict(kind.kind, name, f"is refused by the server: {error.message[:512]}", refused=True)
                    )
                    return
                if error.code not in (404, 409):
                    raise
                refused = error
            # The world is not as we read it: look again, at the server itself.
            live = await _find(uncached(self._client), kind, name, self._canary.namespace)
        raise refused

    def _wanted(self, document: Mapping[str, Any]) -> Document:
        metadata = dict(document["metadata"])
        metadata["labels"] = {**metadata.get("labels", {}), OWNER: self._canary.name}
        applied = f"{uid_of(self._canary)}/{digest(document)}"
        metadata["annotations"] = {**metadata.get("annotations", {}), APPLIED: applied}
        metadata["ownerReferences"] = [self._owner]
        return {**document, "metadata": metadata}

    def _is_ours(self, live: Untyped) -> bool:
        """Also when nobody controls it any more, and it still says that this very CanaryDeployment made it; not when that
        is going, and may have let it go."""
        holder = controller_of(live)
        if holder is not None or is_deleting(self._canary):
            return holder is not None and holder.uid == uid_of(self._canary)
        metadata = live.raw.get("metadata") or {}
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        made_by, _, _ = str(annotations.get(APPLIED, "")).partition("/")
        return labels.get(OWNER) == self._canary.name and made_by == uid_of(self._canary)

    async def _make(self, wanted: Document) -> None:
        key = _key(wanted)
        if is_deleting(self._canary):
            return
        if key in self._expected:
            self._drifts.append(Drift(*key))
        if self._dry:
            return
        await self._confirm()
        try:
            made = await self._client.apply(Untyped(wanted), manager=MANAGER, force=False)
        except StatusError as error:
            if error.code == 409 and key in self._expected:
                self._drifts.pop()
            raise
        self._objects[key] = _document(made, wanted)
        self._made.append(key)

    async def _keep(self, wanted: Document, live: Untyped, *, new: bool = False) -> None:
        """Bring one of ours to what is wanted. One that is `new` to us cannot have drifted."""
        key = _key(wanted)
        if is_deleting(live):
            self._objects[key] = dict(live.raw)
            if key in self._expected:
                self._drifts.append(Drift(*key))
            return
        wanted, handed = _handed_over(wanted, live.raw)
        both = str(live.raw["metadata"].get("resourceVersion")), wanted["metadata"]["annotations"][APPLIED]
        if self._agreed.get(key) == both or not changes(live.raw, wanted, MANAGER):
            self._agreed[key] = both
            self._objects[key] = dict(live.raw)
            return
        if handed:  # what we hand over must be what is there now
            live = await _find(uncached(self._client), _kind(wanted), live.name, live.namespace) or live
            wanted, _ = _handed_over({**wanted, "spec": {**wanted["spec"], "replicas": None}}, live.raw)
        before = (live.raw["metadata"].get("annotations") or {}).get(APPLIED)
        same = not new and before in (None, wanted["metadata"]["annotations"][APPLIED])
        if self._dry and not same:
            self._objects[key] = dict(live.raw)
            return
        if not self._dry:
            await self._confirm()
        # Only this very object: another may have its name by now.
        meant = {**wanted, "metadata": {**wanted["metadata"], "uid": live.raw["metadata"]["uid"]}}
        answer = await self._client.apply(Untyped(meant), manager=MANAGER, force=True, dry_run=self._dry)
        after = _document(answer, wanted)
        if same:
            self._drifts += drifts(live.raw, after, wanted, MANAGER)
        self._objects[key] = dict(live.raw) if self._dry else after

    async def _take(self, wanted: Document, live: Untyped) -> None:
        why = self._refusal(wanted, live)
        if why:
            self._conflicts.append(Conflict(*_key(wanted), why))
            return
        if self._dry:
            return
        # An owner that is gone or going must not take anything with it.
        now = await _find(uncached(self._client), kind_of(self._canary), self._canary.name, self._canary.namespace)
        if now is None or uid_of(now) != uid_of(self._canary) or is_deleting(now):
            return
        await self._confirm()
        taken = await self._client.patch(live, own(live, self._canary, getattr(self._client, "scheme", None)))
        await self._keep(wanted, Untyped(_document(taken, wanted)), new=True)

    def _refusal(self, wanted: Document, live: Untyped) -> str:
        """Why it is not adopted."""
        holder = controller_of(live)
        if holder is not None:
            return f"is controlled by {holder.kind} {holder.name}: rename one of the two"
        annotations = (live.raw.get("metadata") or {}).get("annotations") or {}
        if is_deleting(live):
            return "is being deleted by others"
        if not self._adopt and annotations.get(ADOPT) != self._canary.name:
            return (
                f"exists and is not ours: delete it, or allow its adoption by spec.adopt, or by its annotation "
                f"{ADOPT}={self._canary.name}"
            )
        selector, ours = (live.raw.get("spec") or {}).get("selector"), wanted["spec"].get("selector")
        if live.kind == "Deployment" and selector != ours:
            return (
                "cannot be adopted: its selector is another one than ours, which has the label of the role, and the "
                "selector of a Deployment never changes. Delete it, or give the CanaryDeployment another name and delete "
                "it when the new pods serve"
            )
        return ""


def _handed_over(wanted: Document, live: Mapping[str, Any]) -> tuple[Document, bool]:
    """Replicas that we set until now and leave to an autoscaler from now on. Were they just left out, the server would
    give them their default, 1, and an autoscaler would have to start again. So they stay as they are until it sets them."""
    spec = wanted.get("spec") or {}
    if wanted.get("kind") != "Deployment" or spec.get("replicas") is not None:
        return wanted, False
    rest = {name: value for name, value in spec.items() if name != "replicas"}
    owners = {
        (entry.get("manager"), entry.get("operation"))
        for entry in (live.get("metadata") or {}).get("managedFields") or ()
        if "f:replicas" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    }
    replicas = (live.get("spec") or {}).get("replicas")
    if owners != {(MANAGER, "Apply")} or replicas is None:
        return {**wanted, "spec": rest}, False
    return {**wanted, "spec": {**rest, "replicas": replicas}}, True


async def _find(client: Client, kind: AnyKind, name: str, namespace: str) -> Any:
    """As its document, which names its kind; None when it is not there."""
    try:
        found = await client.get(kind, name, namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        return None
    names = {"apiVersion": kind.api_version, "kind": kind.kind} if isinstance(kind, Named) else {}
    return Untyped({**(found.raw or {}), **names})


def _kind(document: Mapping[str, Any]) -> Named:
    return Named(document["apiVersion"], document["kind"])


def _key(document: Mapping[str, Any]) -> Key:
    return document["kind"], document["metadata"]["name"]


def _document(answer: Any, wanted: Mapping[str, Any]) -> Document:
    return {**(answer.raw or {}), "apiVersion": wanted["apiVersion"], "kind": wanted["kind"]}
