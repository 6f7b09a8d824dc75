"""Admission webhooks: programs elsewhere that change or refuse a write before it is committed.

Flow: configurations are fed through `upsert` and `remove`. `mutate` asks the mutating webhooks one after the other, in
the order of their configurations' names, and once more those that asked to see what later ones changed; `validate` asks
all validating ones at once.

Guarantees: a webhook whose failurePolicy is Fail was asked, or the write is refused. Webhook configurations are exempt.

Caveats: what `mutate` returns is as the webhooks left it: pruning, defaults and validation come after.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from trimtab.model.errors import StatusError, forbidden, internal
from trimtab.model.kind import Kind
from trimtab.server.admission.policy_match import Labels, selects_namespace
from trimtab.server.admission.request import AdmissionRequest
from trimtab.server.admission.webhook_client import WebhookClient
from trimtab.server.admission.webhook_conditions import Authorize, conditions_met
from trimtab.server.admission.webhook_match import (
    Hook,
    Invocation,
    Service,
    exempt,
    hooks_of,
    seen_kind,
    selects,
)
from trimtab.server.admission.webhook_patch import applied
from trimtab.server.admission.webhook_review import (
    Answer,
    CallFailedError,
    check_dry_run,
    read_answer,
    review_request,
    review_version,
)
from trimtab.server.auth.rbac import Authorizer
from trimtab.server.auth.wording import quoted

MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"

Document = dict[str, Any]


def _no_equivalents(kind: Kind) -> Sequence[Kind]:
    return ()


async def _same_version(document: Document, kind: Kind) -> Document:
    return {**document, "apiVersion": kind.api_version}


class Webhooks:
    """The webhooks of the server. `equivalents` are the other served versions of a kind, `convert` gives a document in
    one of them; webhooks with matchPolicy Equivalent need both. `authorize` answers what conditions ask about rights.
    `asked_here` are Services whose functions the server has itself: manifests of a cluster may be applied here too."""

    def __init__(
        self,
        client: WebhookClient,
        namespace_labels: Labels,
        *,
        equivalents: Callable[[Kind], Sequence[Kind]] = _no_equivalents,
        convert: Callable[[Document, Kind], Awaitable[Document]] = _same_version,
        authorize: Authorize | None = None,
        asked_here: Callable[[Service], bool] = lambda service: False,
    ) -> None:
        self._client = client
        self._namespace_labels = namespace_labels
        self._equivalents = equivalents
        self._convert = convert
        self._authorize = authorize or Authorizer().authorize
        self._asked_here = asked_here
        self._configurations: dict[str, dict[str, tuple[Hook, ...]]] = {MUTATING: {}, VALIDATING: {}}
        self._hooks: dict[str, tuple[Hook, ...]] = {MUTATING: (), VALIDATING: ()}

    def upsert(self, resource: str, document: Mapping[str, Any]) -> None:
        """A configuration was written. `resource` is its plural."""
        self._configurations[resource][document["metadata"]["name"]] = hooks_of(document)
        self._sort(resource)

    def remove(self, resource: str, name: str) -> None:
        """A configuration was deleted."""
        self._configurations[resource].pop(name, None)
        self._sort(resource)

    def replace(self, resource: str, documents: Iterable[Mapping[str, Any]]) -> None:
        """These are all configurations there are."""
        self._configurations[resource] = {d["metadata"]["name"]: hooks_of(d) for d in documents}
        self._sort(resource)

    def mutates(self, request: AdmissionRequest) -> bool:
        """Whether `mutate` may do anything. Hot: without configurations it costs nothing."""
        return self._concerns(MUTATING, request)

    def validates(self, request: AdmissionRequest) -> bool:
        return self._concerns(VALIDATING, request)

    async def mutate(self, request: AdmissionRequest) -> Document:
        """The object as the mutating webhooks left it. Raises StatusError when one refuses, or fails and may not."""
        round_ = _Round(request.object)
        if not exempt(request):
            again = await self._mutate_once(round_, request, None)
            if again:
                await self._mutate_once(round_, request, again)
        return round_.object or {}

    async def validate(self, request: AdmissionRequest) -> None:
        """Ask the validating webhooks. Raises StatusError as `mutate` does."""
        if exempt(request):
            return
        concerned = [
            invocation
            for hook in self._hooks[VALIDATING]
            if (invocation := await self._invocation(hook, request, request.object)) is not None
        ]
        if not concerned:
            return
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._validated(i, request)) for i in concerned]
        for task in tasks:
            if (failure := task.result()) is not None:
                raise failure

    async def close(self) -> None:
        await self._client.close()

    def _sort(self, resource: str) -> None:
        by_name = sorted(self._configurations[resource].items())
        every = (hook for _, hooks in by_name for hook in hooks)
        self._hooks[resource] = tuple(h for h in every if h.service is None or not self._asked_here(h.service))

    def _concerns(self, resource: str, request: AdmissionRequest) -> bool:
        hooks = self._hooks[resource]
        if not hooks or exempt(request):
            return False
        equivalents = self._equivalents(request.kind)
        return any(seen_kind(hook, request, equivalents) is not None for hook in hooks)

    async def _mutate_once(
        self,
        round_: _Round,
        request: AdmissionRequest,
        only: frozenset[str] | None,
    ) -> frozenset[str]:
        """One round over the webhooks (`only` these); the ones that must see the object again."""
        invoked: set[str] = set()
        again: set[str] = set()
        for hook in self._hooks[MUTATING]:
            if only is not None and hook.uid not in only:
                continue
            invocation = await self._invocation(hook, request, round_.object)
            if invocation is None:
                continue
            try:
                answer = await self._ask(invocation, request, round_.object, mutating=True)
            except CallFailedError as error:
                if not hook.ignores_failure:
                    raise internal(str(error)) from None
                changed = False
            else:
                changed = round_.take(await self._patched(invocation, request, round_.object, answer))
            if changed:
                again |= invoked
                invoked.clear()
            if hook.reinvoke:
                invoked.add(hook.uid)
        return frozenset(again)

    async def _validated(self, invocation: Invocation, request: AdmissionRequest) -> StatusError | None:
        """A failure is returned, not raised: the others are asked to the end, as the reference server does."""
        try:
            await self._ask(invocation, request, request.object, mutating=False)
        except CallFailedError as error:
            return None if invocation.hook.ignores_failure else internal(str(error))
        except StatusError as error:
            return error
        return None

    async def _invocation(self, hook: Hook, request: AdmissionRequest, new: Document | None) -> Invocation | None:
        """How the webhook is to be called for this write; None when it does not concern it."""
        seen = seen_kind(hook, request, self._equivalents(request.kind))
        if seen is None or not selects(hook.objects, new, request.old):
            return None
        if not await selects_namespace(hook.namespaces, request, new, self._namespace_labels):
            return None
        if hook.conditions:
            subject = review_request(
                request,
                seen,
                uid="",
                new=await self._as(new, seen, request),
                old=await self._as(request.old, seen, request),
            )
            met, problem = conditions_met(hook, request, subject, self._authorize)
            if problem and not hook.ignores_failure:
                raise forbidden(request.kind.plural, request.kind.group, request.name, problem)
            if not met:
                return None
        return Invocation(hook, seen)

    async def _ask(
        self,
        invocation: Invocation,
        request: AdmissionRequest,
        new: Document | None,
        *,
        mutating: bool,
    ) -> Answer:
        hook, seen = invocation
        check_dry_run(hook, request)
        version = review_version(hook)
        uid = str(uuid.uuid4())
        asked = review_request(
            request,
            seen,
            uid=uid,
            new=await self._as(new, seen, request),
            old=await self._as(request.old, seen, request),
        )
        review = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": asked}
        body = await self._client.call(hook, review)
        answer = read_answer(hook, body, uid=uid, version=version, mutating=mutating)
        for warning in answer.warnings:
            request.warn(warning)
        for key, value in answer.annotations.items():
            request.annotate(key, value)
        if answer.refusal is not None:
            raise answer.refusal
        return answer

    async def _patched(
        self, invocation: Invocation, request: AdmissionRequest, current: Document | None, answer: Answer
    ) -> Document | None:
        if not answer.patch:
            return current
        if current is None:
            raise internal(
                f"admission webhook {quoted(invocation.hook.name)} attempted to modify the object, "
                "which is not supported for this operation"
            )
        shown = await self._as(current, invocation.kind, request)
        assert shown is not None  # noqa: S101 - current is not
        patched = applied(shown, answer.patch)
        same = request.form is not None or invocation.kind is request.kind
        return patched if same else await self._convert(patched, request.kind)

    async def _as(self, document: Document | None, kind: Kind, request: AdmissionRequest) -> Document | None:
        if document is None or request.form is not None or kind is request.kind:
            return document
        return await self._convert(document, kind)


class _Round:
    """The object on its way through the mutating webhooks."""

    def __init__(self, document: Document | None) -> None:
        self.object = document

    def take(self, patched: Document | None) -> bool:
        """Keep what a webhook made of it; whether that is something else."""
        changed = patched != self.object
        self.object = patched
        return changed
