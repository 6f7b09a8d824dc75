"""CustomResourceDefinition. Conditions and accepted names are the CRD controller's; rules of the spec are in `crd`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.model.clock import format_time
from trimtab.model.errors import FieldError
from trimtab.server.builtin.crd import approval, changed, name_problems, spec_problems, stored_problems
from trimtab.server.builtin.native import Plain, kind
from trimtab.server.builtin.problems import at, invalid, items
from trimtab.server.builtin.tables import DEFINITIONS, defaults
from trimtab.server.strategy import Document

PRESERVING = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
_PROPS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


class CustomResourceDefinition(Plain):
    graceful = False
    has_generation = True
    unconditional_update = False
    finalizers_on_delete = ("customresourcecleanup.apiextensions.k8s.io",)

    def deleting(self, obj: Document) -> None:
        """The objects go first; a condition says so."""
        status = obj.get("status") or {}
        others = [c for c in status.get("conditions") or [] if c.get("type") != "Terminating"]
        terminating = {
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": format_time(self.clock.now()),
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        }
        obj["status"] = {**status, "conditions": [*others, terminating]}

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        super().prepare(new, old, subresource)
        if subresource:
            return
        stored = list(at(new, "status", "storedVersions") or [])
        for version in items(new, "spec", "versions"):
            if version.get("storage") is True and version.get("name") not in stored:
                new["status"] = {**(new.get("status") or {}), "storedVersions": [*stored, version.get("name", "")]}
                break

    def complete(self, obj: Document) -> None:
        what = at(obj, "spec", "names")
        if isinstance(what, dict) and isinstance(what.get("kind", ""), str):
            name = what.get("kind", "")
            if not what.get("singular"):
                what["singular"] = name.lower()
            if not what.get("listKind") and name:
                what["listKind"] = name + "List"
        for version in items(obj, "spec", "versions"):
            prune(at(version, "schema", "openAPIV3Schema"))

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            return name_problems(at(new, "status", "acceptedNames") or {}, "status.acceptedNames")
        spec = new.get("spec") or {}
        errors = []
        expected = f"{at(spec, 'names', 'plural') or ''}.{spec.get('group', '')}"
        if old is None and new["metadata"].get("name") != expected:
            why = 'must be spec.names.plural+"."+spec.group'
            errors.append(invalid("metadata.name", new["metadata"].get("name", ""), why))
        errors += spec_problems(spec)
        if old is not None:
            errors += changed(spec, old)
        errors += stored_problems(at(new, "status", "storedVersions") or [], spec.get("versions") or [])
        errors += approval(new, old)
        if spec.get("preserveUnknownFields") and not at(old, "spec", "preserveUnknownFields"):
            errors.append(invalid("spec.preserveUnknownFields", True, PRESERVING))
        return errors


def prune(schema: Any) -> None:
    """Drops the words that a schema does not have, and those that say nothing, at every depth, as Go does."""
    if not isinstance(schema, dict):
        return
    known, omits = DEFINITIONS[_PROPS]["properties"], defaults()[_PROPS]["omits"]
    for word in [w for w, value in schema.items() if w not in known or (w in omits and value in ("", False))]:
        del schema[word]
    for word in ("properties", "patternProperties", "definitions"):
        if isinstance(schema.get(word), dict):
            for child in schema[word].values():
                prune(child)
    for word in ("items", "additionalProperties", "additionalItems", "not", "allOf", "anyOf", "oneOf"):
        found = schema.get(word)
        for child in found if isinstance(found, list) else [found]:
            prune(child)


STRATEGIES = (
    CustomResourceDefinition(
        kind(
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
            "customresourcedefinitions",
            group="apiextensions.k8s.io",
            namespaced=False,
            short=("crd", "crds"),
            categories=("api-extensions",),
            status=True,
        )
    ),
)
