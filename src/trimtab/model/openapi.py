"""OpenAPI v3 of one group and version: paths for every verb, and schemas under the names that the real server uses.

kubectl looks up a kind by `x-kubernetes-group-version-kind` (explain, validation) and finds in the parameters of PATCH
whether the server knows `fieldValidation` and `dryRun`; client generators go by operation ids. So these agree with a
real server to the letter; the prose need not. Loaded only when a client asks for a document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.model.kind import Kind
from trimtab.model.openapi_components import API_VERSION, KIND, META, PARAMETERS, SHARED, parameter
from trimtab.model.openapi_parts import DIGEST, NONE, PATH, VERSION, Parts, further, schemas

Document = dict[str, Any]

SCHEMAS = "#/components/schemas/"


def document(
    kinds: Sequence[Kind],
    *,
    prose: Mapping[str, Any] | None = None,
    parts: Mapping[str, Parts] | None = None,
    version: str = "1.32",
) -> Document:
    """One document for kinds of one group and version.

    `prose` describes the definitions of built-in kinds, by definition: `description`, and `fields` by name. `parts`
    tells what kinds have beyond their status, by their plurals.
    """
    components = _Components(prose or {})
    paths: Document = {}
    for kind in kinds:
        paths |= _Paths(kind, components, (parts or {}).get(kind.plural, NONE)).written()
    native = any(kind.schema.definitions for kind in kinds)
    info = (
        {"title": "Kubernetes", "version": version}
        if native
        else {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
    )
    return {
        "openapi": "3.0.0",
        "info": info,
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(components.written.items()))},
    }


def definition_name(kind: Kind) -> str:
    """`dev.trimtab.discovery.v1alpha1.DiscoveryRule`, or `io.k8s.api.apps.v1.Deployment` for a built-in kind."""
    if kind.schema.definitions:
        if kind.group == "apiextensions.k8s.io":
            return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{kind.version}.{kind.kind}"
        if kind.group == "apiregistration.k8s.io":
            return f"io.k8s.kube-aggregator.pkg.apis.apiregistration.{kind.version}.{kind.kind}"
        return f"io.k8s.api.{kind.group.split('.')[0] or 'core'}.{kind.version}.{kind.kind}"
    return ".".join((*reversed(kind.group.split(".")), kind.version, kind.kind))


class _Components:
    """Collects schemas, each with all that it refers to."""

    def __init__(self, prose: Mapping[str, Any]) -> None:
        self.written: Document = {}
        self._prose = prose

    def shared(self, name: str) -> Document:
        """A reference to one of the API machinery's own schemas."""
        if name not in self.written:
            self.written[name] = SHARED[name]
            self._follow(SHARED[name])
        return {"$ref": SCHEMAS + name}

    def kind(self, kind: Kind) -> Document:
        name = definition_name(kind)
        if name not in self.written:
            if kind.schema.definitions:
                self._native(name, kind.schema.definitions)
            else:
                self.written[name] = self._custom(kind)
            self.written[name] = {**self.written[name], "x-kubernetes-group-version-kind": [_gvk(kind)]}
            if kind.selectable:
                self.written[name]["x-kubernetes-selectable-fields"] = _selectable(kind)
        return {"$ref": SCHEMAS + name}

    def part(self, kind: Kind, name: str) -> Document:
        """A reference to what a part of the kind's objects answers."""
        self.shared(META + "ListMeta")
        own = f"{definition_name(kind)}.{name}"
        self.written[own] = schemas(definition_name(kind))[own]
        return {"$ref": SCHEMAS + own}

    def list_of(self, kind: Kind) -> Document:
        item = self.kind(kind)
        name = definition_name(kind)[: -len(kind.kind)] + kind.list_kind
        self.written[name] = {
            "description": f"{kind.list_kind} is a list of {kind.kind}",
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": API_VERSION,
                "items": {"description": f"The {kind.plural}.", "type": "array", "items": item},
                "kind": KIND,
                "metadata": {"description": "What is said of the list.", "allOf": [self.shared(META + "ListMeta")]},
            },
            "x-kubernetes-group-version-kind": [_gvk(kind, kind.list_kind)],
        }
        if kind.selectable:
            self.written[name]["x-kubernetes-selectable-fields"] = _selectable(kind)
        return {"$ref": SCHEMAS + name}

    def _custom(self, kind: Kind) -> Document:
        schema = dict(kind.schema.document)
        metadata = {"description": "Standard object's metadata.", "allOf": [self._metadata(kind)]}
        if "properties" in schema:
            schema["properties"] = {
                **schema["properties"],
                "apiVersion": API_VERSION,
                "kind": KIND,
                "metadata": metadata,
            }
        return schema

    def _metadata(self, kind: Kind) -> Document:
        """The schema of metadata: every object's own, or one with the further words that this kind has there."""
        common = self.shared(META + "ObjectMeta")
        said = (kind.schema.document.get("properties") or {}).get("metadata") or {}
        known = SHARED[META + "ObjectMeta"]["properties"]
        further = {word: schema for word, schema in (said.get("properties") or {}).items() if word not in known}
        if not further:
            return common
        name = f"{definition_name(kind)}.ObjectMeta"
        self.written[name] = {**SHARED[META + "ObjectMeta"], "properties": {**known, **further}}
        return {"$ref": SCHEMAS + name}

    def _native(self, name: str, definitions: Mapping[str, Any]) -> None:
        """A built-in definition and those it refers to, from references of OpenAPI v2 to those of v3."""
        waiting = [name]
        while waiting:
            current = waiting.pop()
            if current in self.written:
                continue
            try:
                definition = definitions[current]
            except KeyError:
                definition = SHARED.get(current, {"type": "object"})
            found: list[str] = []
            prose = self._prose.get(current, {})
            self.written[current] = _described(_translated(definition, found), prose)
            waiting += found

    def _follow(self, schema: Any) -> None:
        if isinstance(schema, dict):
            reference = schema.get("$ref")
            if isinstance(reference, str):
                self.shared(reference.removeprefix(SCHEMAS))
            for inner in schema.values():
                self._follow(inner)
        elif isinstance(schema, list):
            for inner in schema:
                self._follow(inner)


class _Paths:
    """The operations of one kind."""

    def __init__(self, kind: Kind, components: _Components, parts: Parts) -> None:
        self._kind = kind
        self._parts = parts
        self._native = bool(kind.schema.definitions)
        self._item = components.kind(kind)
        self._list = components.list_of(kind)
        self._status = components.shared(META + "Status")
        self._patch = components.shared(META + "Patch")
        self._options = components.shared(META + "DeleteOptions")
        self._components = components

    def written(self) -> Document:
        kind = self._kind
        base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        paths: Document = {}
        root = f"{base}/{kind.plural}"
        if kind.namespaced:
            everywhere = self._operation("list", "list", "", f"{kind.kind}ForAllNamespaces", self._list)
            hoisted = [*everywhere.pop("parameters"), PARAMETERS["pretty"]]  # what all operations of a path share
            paths[root] = {"get": everywhere, "parameters": sorted(hoisted, key=lambda one: str(one["name"]))}
            root = f"{base}/namespaces/{{namespace}}/{kind.plural}"
        whole = self._options if self._native else None
        paths[root] = {
            "get": self._operation("list", "list", "", self._named(), self._list),
            "post": self._operation("create", "post", "", self._named(), self._item, body=self._item),
            "delete": self._operation(
                "delete", "deletecollection", "", "Collection" + self._named(), self._status, body=whole
            ),
            "parameters": self._parameters(),
        }
        paths[f"{root}/{{name}}"] = {
            "get": self._operation("read", "get", "", self._named(), self._item),
            "put": self._operation("replace", "put", "", self._named(), self._item, body=self._item),
            "delete": self._operation("delete", "delete", "", self._named(), self._status, body=self._options),
            "patch": self._operation("patch", "patch", "", self._named(), self._item, body=self._patch),
            "parameters": self._parameters("name"),
        }
        if kind.status:
            paths[f"{root}/{{name}}/status"] = self._subresource("status", self._item)
        if kind.scale:
            paths[f"{root}/{{name}}/scale"] = self._subresource("scale", self._components.shared(_SCALE))
        if self._parts.files:
            paths[f"{root}/{{name}}/artifacts"] = self._listing("artifacts", "ArtifactList", [VERSION])
            paths[f"{root}/{{name}}/artifacts/{{path}}"] = self._file()
        if self._parts.versions:
            paths[f"{root}/{{name}}/versions"] = self._listing("versions", "VersionList", [])
        return paths

    def _listing(self, name: str, answer: str, taken: list[Document]) -> Document:
        """A part that is a list of its own."""
        schema = self._components.part(self._kind, answer)
        get = self._operation("read", "get", name, self._named() + name.title(), schema)
        return {"get": self._as_part(get, taken), "parameters": self._parameters("name")}

    def _file(self) -> Document:
        """One file: its bytes, in and out."""
        named, written = self._named() + "Artifact", self._components.part(self._kind, "Artifact")
        sub = "an artifact"
        put = self._operation("replace", "put", sub, named, written, body=_BYTES)
        put["requestBody"]["content"] = {_OCTETS: {"schema": _BYTES}}
        put["responses"].pop("201")
        delete = self._operation("delete", "delete", sub, named, self._status)
        delete["responses"].pop("202")
        return {
            "get": self._as_part(self._operation("read", "get", sub, named, _BYTES), [VERSION], _OCTETS),
            "put": self._as_part(put, [DIGEST, PARAMETERS["fieldManager"]]),
            "delete": self._as_part(delete, [PARAMETERS["fieldManager"]]),
            "parameters": [PATH, *self._parameters("name")],
        }

    def _as_part(self, operation: Document, taken: list[Document], media: str = "application/json") -> Document:
        """Parts answer in one form, and take what they take: a version where the kind has such."""
        operation["parameters"] = [one for one in taken if one is not VERSION or self._parts.versions]
        for answer in operation["responses"].values():
            if content := answer.get("content"):
                answer["content"] = {media: content["application/json"]}
        return operation

    def _subresource(self, name: str, schema: Document) -> Document:
        named = self._named() + name.title()
        return {
            "get": self._operation("read", "get", name, named, schema),
            "put": self._operation("replace", "put", name, named, schema, body=schema),
            "patch": self._operation("patch", "patch", name, named, schema, body=self._patch),
            "parameters": self._parameters("name"),
        }

    def _named(self) -> str:
        return ("Namespaced" if self._kind.namespaced else "") + self._kind.kind

    def _parameters(self, *names: str) -> list[Document]:
        listed = []
        if "name" in names:
            listed.append(parameter("name", "string", f"name of the {self._kind.kind}", place="path"))
        if self._kind.namespaced:
            listed.append(PARAMETERS["namespace"])
        return [*listed, PARAMETERS["pretty"]]

    def _operation(
        self, verb: str, action: str, sub: str, named: str, answer: Document, body: Document | None = None
    ) -> Document:
        kind = self._kind
        group = _group_words(kind.group)
        operation: Document = {
            "tags": [f"{group[0].lower()}{group[1:]}_{kind.version}"],
            "description": _sentence(kind.kind, verb, action, sub, self._native),
            "operationId": f"{verb}{group}{kind.version[:1].upper()}{kind.version[1:]}{named}",
        }
        taken = (_NATIVE_TAKEN if self._native else {}).get(action, _TAKEN[action])
        parameters = [*(PARAMETERS[name] for name in taken), *further(self._parts, action, sub)]
        if parameters:
            operation["parameters"] = parameters
        if body is not None:
            operation["requestBody"] = {"content": {media: {"schema": body} for media in self._consumes(action)}}
            if action not in ("delete", "deletecollection"):
                operation["requestBody"]["required"] = True
        produced = ("application/json", "application/yaml")
        content = {media: {"schema": answer} for media in produced}
        operation["responses"] = {
            **{
                str(code): {"description": says, "content": content} for code, says in _ANSWERS.get(action, _OK).items()
            },
            "401": {"description": "Unauthorized"},
        }
        operation["x-kubernetes-action"] = action
        operation["x-kubernetes-group-version-kind"] = _gvk(kind)
        return operation

    def _consumes(self, action: str) -> tuple[str, ...]:
        if action == "patch":
            return (*_PATCHES, "application/strategic-merge-patch+json") if self._native else _PATCHES
        return ("*/*",) if self._native else ("application/json", "application/yaml")


def _sentence(kind: str, verb: str, action: str, sub: str, native: bool) -> str:
    of = f" {sub} of" if sub else ""
    if sub == "an artifact":
        return f"{verb} one file of the specified {kind}"
    match action:
        case "list":
            return f"list or watch objects of kind {kind}" if native else f"list objects of kind {kind}"
        case "deletecollection":
            return f"delete collection of {kind}"
        case "post" | "delete":
            return f"{verb} {'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"
        case "patch":
            return f"partially update{of} the specified {kind}"
    return f"{verb}{of} the specified {kind}"


def _group_words(group: str) -> str:
    """`checks.trimtab.dev` is ChecksTrimtabDev; `rbac.authorization.k8s.io` is RbacAuthorization; core is Core."""
    words = group.removesuffix(".k8s.io").replace("-", ".").split(".") if group else ["core"]
    return "".join(word[:1].upper() + word[1:] for word in words)


def _gvk(kind: Kind, name: str = "") -> Document:
    return {"group": kind.group, "version": kind.version, "kind": name or kind.kind}


def _selectable(kind: Kind) -> list[Document]:
    return [{"fieldPath": path.removeprefix(".")} for path in kind.selectable]


def _translated(schema: Any, found: list[str]) -> Any:
    if isinstance(schema, list):
        return [_translated(inner, found) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.removeprefix("#/definitions/").removeprefix(SCHEMAS)
        found.append(name)
        rest = {word: value for word, value in schema.items() if word != "$ref"}
        return {**rest, "allOf": [{"$ref": SCHEMAS + name}]} if rest else {"$ref": SCHEMAS + name}
    return {word: _translated(inner, found) for word, inner in schema.items()}


def _described(schema: Document, prose: Mapping[str, Any]) -> Document:
    described = dict(schema)
    if text := prose.get("description"):
        described["description"] = text
    if required := prose.get("required"):
        described["required"] = list(required)
    fields: Mapping[str, str] = prose.get("fields") or {}
    if fields and "properties" in schema:
        described["properties"] = {
            name: _with_description(inner, fields[name]) if name in fields else inner
            for name, inner in schema["properties"].items()
        }
    return described


def _with_description(schema: Document, text: str) -> Document:
    if "$ref" in schema:
        return {"description": text, "allOf": [schema]}
    return {"description": text, **schema}


_BYTES: Document = {"type": "string", "format": "binary"}
_OCTETS = "application/octet-stream"
_SCALE = "io.k8s.api.autoscaling.v1.Scale"
_PATCHES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_OK = {200: "OK"}
_ANSWERS = {
    "post": {200: "OK", 201: "Created", 202: "Accepted"},
    "put": {200: "OK", 201: "Created"},
    "delete": {200: "OK", 202: "Accepted"},
}
_LISTED = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_WRITTEN = ("dryRun", "fieldManager", "fieldValidation")
_DELETED = (
    "dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents",
    "propagationPolicy",
)  # fmt: skip
_TAKEN: dict[str, tuple[str, ...]] = {
    "list": _LISTED,
    "deletecollection": _LISTED,
    "get": ("resourceVersion",),
    "post": _WRITTEN,
    "put": _WRITTEN,
    "patch": (*_WRITTEN, "force"),
    "delete": _DELETED,
}
_NATIVE_TAKEN: dict[str, tuple[str, ...]] = {
    "get": (),
    "deletecollection": tuple(sorted({*_LISTED, *_DELETED} - {"allowWatchBookmarks", "watch"})),
}
