"""The objects that hold a policy's parameters: of any kind that is served, found by name or by labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trimtab.model.selectors import LabelSelector
from trimtab.server.registry import Registry, Served
from trimtab.store.contract import Query


class Misconfigured(Exception):  # noqa: N818 - what is wrong is with a policy or a binding, not with the write
    """A policy or a binding that cannot be asked; its failurePolicy says what that means."""


class ParamsRef(NamedTuple):
    name: str
    namespace: str
    selector: LabelSelector | None
    must_be_found: bool


class Params:
    """Objects as they are now: read for each write, since a policy that judged by old ones would surprise."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def served(self, kind: Mapping[str, str] | None) -> Served | None:
        """None when the policy has no parameters."""
        if kind is None:
            return None
        api_version, name = kind.get("apiVersion", ""), kind.get("kind", "")
        found = self._registry.by_kind(api_version, name)
        if found is None:
            group, _, version = api_version.rpartition("/")
            raise Misconfigured(f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={name}'")
        return found

    async def collect(self, served: Served | None, ref: ParamsRef | None, namespace: str) -> Sequence[Any]:
        """The documents with which a binding asks its policy: [None] without parameters."""
        if served is None or ref is None:
            return [None]
        if not served.kind.namespaced:
            if ref.namespace:
                raise Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
            namespace = ""
        else:
            namespace = ref.namespace or namespace
            if not namespace:
                raise Misconfigured(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                )
        found = await self._found(served, ref, namespace)
        if not found and ref.must_be_found:
            raise Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
        return found

    async def _found(self, served: Served, ref: ParamsRef, namespace: str) -> Sequence[Any]:
        if ref.name:
            entry = await served.backend.get(served.key(namespace, ref.name))
            return [] if entry is None else [served.decode(entry)]
        query = Query(resource=served.strategy.storage, namespace=namespace or None, labels=ref.selector, counted=False)
        page = await served.backend.list(query)
        return [served.decode(entry) for entry in page.entries]
