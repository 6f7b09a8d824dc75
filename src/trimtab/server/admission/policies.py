"""ValidatingAdmissionPolicies: expressions that refuse a write, warn of it, or note it for the audit log.

Flow: policies and bindings are fed through `upsert` and `remove`; `validate` asks each policy once for each binding that
concerns the write and each object of parameters that the binding names. A policy without a binding does nothing.

Guarantees: policies are asked in the order of their names, bindings too; all are asked, and the first refusal is told.
A policy is compiled when it first concerns a write, not before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import orjson

from trimtab.model.errors import StatusError, forbidden
from trimtab.model.kind import Kind
from trimtab.model.selectors import LabelSelector
from trimtab.server.admission.policy_evaluation import Judgement, Refusal, judged
from trimtab.server.admission.policy_expressions import CompiledPolicy, compiled_policy
from trimtab.server.admission.policy_match import Criteria, Labels, criteria_of
from trimtab.server.admission.policy_params import Misconfigured, Params, ParamsRef
from trimtab.server.admission.request import AdmissionRequest
from trimtab.server.admission.webhook_conditions import Authorize, bindings_of
from trimtab.server.admission.webhook_expressions import variables
from trimtab.server.admission.webhook_match import GROUP, is_namespace
from trimtab.server.admission.webhook_review import review_request
from trimtab.server.judging import Judging

POLICIES, BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
AUDITED = "validation.policy.admission.k8s.io/validation_failure"
YIELD = 20  # judgements by as many parameters, then others are served

Document = dict[str, Any]


class Binding(msgspec.Struct, frozen=True):
    name: str
    policy: str
    criteria: Criteria | None
    params: ParamsRef | None
    actions: tuple[str, ...]


class Policy:
    """A policy as it is stored."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        spec = document["spec"]
        self.name: str = document["metadata"]["name"]
        self.criteria = criteria_of(spec.get("matchConstraints") or {})
        self.ignores_failure = spec.get("failurePolicy") == "Ignore"
        self.param_kind: Mapping[str, str] | None = spec.get("paramKind")
        self.slow = False
        self._spec = spec
        self._compiled: CompiledPolicy | None = None

    @property
    def compiled(self) -> CompiledPolicy:
        if self._compiled is None:
            self._compiled = compiled_policy(self._spec)
        return self._compiled


class _Denied(msgspec.Struct, frozen=True):
    policy: str
    binding: str
    refusal: Refusal


class Policies:
    """The policies of the server. `equivalents` and `convert` are as for webhooks; `namespace` gives the document of one."""

    def __init__(
        self,
        params: Params,
        labels: Labels,
        namespace: Callable[[str], Awaitable[Document]],
        *,
        equivalents: Callable[[Kind], Sequence[Kind]],
        convert: Callable[[Document, Kind], Awaitable[Document]],
        authorize: Authorize,
        judging: Judging,
    ) -> None:
        self._params = params
        self._labels = labels
        self._namespace = namespace
        self._equivalents = equivalents
        self._convert = convert
        self._authorize = authorize
        self._judging = judging
        self._policies: dict[str, Policy] = {}
        self._bindings: dict[str, Binding] = {}
        self._bound: tuple[tuple[Policy, tuple[Binding, ...]], ...] = ()

    def upsert(self, resource: str, document: Mapping[str, Any]) -> None:
        """A policy or a binding was written. `resource` is its plural."""
        name = document["metadata"]["name"]
        if resource == POLICIES:
            self._policies[name] = Policy(document)
        else:
            self._bindings[name] = _binding(document)
        self._join()

    def remove(self, resource: str, name: str) -> None:
        (self._policies if resource == POLICIES else self._bindings).pop(name, None)
        self._join()

    def replace(self, resource: str, documents: Iterable[Mapping[str, Any]]) -> None:
        """These are all there are."""
        if resource == POLICIES:
            self._policies = {d["metadata"]["name"]: Policy(d) for d in documents}
        else:
            self._bindings = {d["metadata"]["name"]: _binding(d) for d in documents}
        self._join()

    def param_kind(self, policy: str) -> Mapping[str, str] | None:
        """Raises LookupError when there is no such policy."""
        return self._policies[policy].param_kind

    def validates(self, request: AdmissionRequest) -> bool:
        """Whether `validate` may do anything. Hot: without bound policies it costs nothing."""
        if not self._bound or _is_exempt(request.kind):
            return False
        equivalents = self._equivalents(request.kind)
        return any(policy.criteria.kind(request, equivalents) is not None for policy, _ in self._bound)

    async def validate(self, request: AdmissionRequest) -> None:
        """Raises StatusError when a policy refuses the write. To be asked only when `validates` says so."""
        denied: list[_Denied] = []
        for policy, bindings in self._bound:
            seen = policy.criteria.kind(request, self._equivalents(request.kind))
            if seen is None:
                continue
            try:
                if not await policy.criteria.selects(request, self._labels):
                    continue
                kind = self._params.served(policy.param_kind)
            except (StatusError, Misconfigured) as error:
                _misconfigured(denied, policy, None, error)
                continue
            await self._ask(policy, bindings, kind, request, seen, denied)
        if denied:
            raise _refused(request, denied[0])

    async def _ask(
        self,
        policy: Policy,
        bindings: tuple[Binding, ...],
        params: Any,
        request: AdmissionRequest,
        seen: Kind,
        denied: list[_Denied],
    ) -> None:
        values: dict[str, Any] | None = None
        namespace: Any = None
        notes: dict[str, list[str]] = {}
        for binding in bindings:
            try:
                if not await self._concerns(binding, request):
                    continue
                found = await self._params.collect(params, binding.params, request.namespace)
            except (StatusError, Misconfigured) as error:
                _misconfigured(denied, policy, binding, error)
                continue
            if values is None and found:
                values = await self._values(request, seen)
                namespace = await self._shown_namespace(request)
            for place, one in enumerate(found, 1):
                judge = partial(_judged, policy, {**(values or {}), "params": one}, namespace)
                judgement = await self._judging.judged(request.user.name, policy, judge)
                if not place % YIELD:
                    await asyncio.sleep(0)
                _act(judgement, policy, binding, request, denied)
                for key, value in judgement.annotations.items():
                    if value not in notes.setdefault(key, []):
                        notes[key].append(value)
        for key, texts in notes.items():
            request.annotate(f"{policy.name}/{key}", ", ".join(texts))

    async def _concerns(self, binding: Binding, request: AdmissionRequest) -> bool:
        criteria = binding.criteria
        if criteria is None:
            return True
        if criteria.kind(request, self._equivalents(request.kind)) is None:
            return False
        return await criteria.selects(request, self._labels)

    async def _values(self, request: AdmissionRequest, seen: Kind) -> dict[str, Any]:
        new, old = [await self._as(document, seen, request) for document in (request.object, request.old)]
        review = review_request(request, seen, uid="", new=new, old=old)
        return bindings_of(request, review, self._authorize)

    async def _as(self, document: Document | None, kind: Kind, request: AdmissionRequest) -> Document | None:
        if document is None or request.form is not None or kind is request.kind:
            return document
        return await self._convert(document, kind)

    async def _shown_namespace(self, request: AdmissionRequest) -> Any:
        if not request.namespace or is_namespace(request.kind):
            return None
        return variables()["namespaceObject"].bind(await self._namespace(request.namespace))

    def _join(self) -> None:
        by_policy: dict[str, list[Binding]] = {}
        for _, binding in sorted(self._bindings.items()):
            by_policy.setdefault(binding.policy, []).append(binding)
        self._bound = tuple(
            (policy, tuple(by_policy[name])) for name, policy in sorted(self._policies.items()) if name in by_policy
        )


def _judged(policy: Policy, bound: Mapping[str, Any], namespace: Any) -> Judgement:
    return judged(policy.compiled, bound, namespace, ignores_failure=policy.ignores_failure)


def _is_exempt(kind: Kind) -> bool:
    """Policies do not judge policies: one that refuses everything could otherwise never be repaired."""
    return kind.group == GROUP and kind.plural in (POLICIES, BINDINGS)


def _binding(document: Mapping[str, Any]) -> Binding:
    spec = document["spec"]
    resources, ref = spec.get("matchResources"), spec.get("paramRef")
    selector = None if ref is None else ref.get("selector")
    return Binding(
        name=document["metadata"]["name"],
        policy=spec.get("policyName", ""),
        criteria=None if resources is None else criteria_of(resources),
        params=None
        if ref is None
        else ParamsRef(
            name=ref.get("name") or "",
            namespace=ref.get("namespace") or "",
            selector=None if selector is None else LabelSelector.from_document(selector),
            must_be_found=ref.get("parameterNotFoundAction") == "Deny",
        ),
        actions=tuple(spec.get("validationActions") or ()),
    )


def _misconfigured(denied: list[_Denied], policy: Policy, binding: Binding | None, error: Exception) -> None:
    if not policy.ignores_failure:
        what = "policy" if binding is None else "binding"
        message = f"failed to configure {what}: {error}"
        denied.append(_Denied(policy.name, "" if binding is None else binding.name, Refusal(0, message)))


def _act(
    judgement: Judgement, policy: Policy, binding: Binding, request: AdmissionRequest, denied: list[_Denied]
) -> None:
    for refusal in judgement.refusals:
        if "Deny" in binding.actions:
            denied.append(_Denied(policy.name, binding.name, refusal))
        if "Audit" in binding.actions:
            failure = {
                "message": refusal.message,
                "policy": policy.name,
                "binding": binding.name,
                "expressionIndex": refusal.place,
                "validationActions": list(binding.actions),
            }
            request.annotate(AUDITED, orjson.dumps([failure]).decode())
        if "Warn" in binding.actions:
            whose = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
            request.warn(f"Validation failed for {whose}: {refusal.message}")
    denied += (_Denied(policy.name, binding.name, Refusal(0, message)) for message in judgement.failures)


def _refused(request: AdmissionRequest, denied: _Denied) -> StatusError:
    with_binding = f" with binding '{denied.binding}'" if denied.binding else ""
    why = f"ValidatingAdmissionPolicy '{denied.policy}'{with_binding} denied request: {denied.refusal.message}"
    error = forbidden(request.kind.plural, request.kind.group, request.name, why)
    error.reason = denied.refusal.reason or "Invalid"
    error.code = CODES.get(error.reason, 422)
    error.details = {**(error.details or {}), "causes": [{"message": why}]}
    return error
