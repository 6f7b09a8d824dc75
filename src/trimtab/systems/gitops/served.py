"""What the API serves: each kind's place, and its schema, to judge a whole revision before the first write.

Schemas come from the server's own OpenAPI v3, one request a group and version, when a document of it is first seen; what is
judged here needs no dry run on the server. The server still has the last word: admission and what depends on other objects
are known to it alone.

Caveat: kinds that come while we look are found at the next `refresh`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from trimtab.client.discovery import ApiResource, Catalogue, discover
from trimtab.client.paths import Place
from trimtab.client.transport import Call, Transport, document_of
from trimtab.model.errors import Bare, FieldError, FieldProblem, StatusError
from trimtab.model.schema import Schema

MOST = 10
"""Errors of one document that are told."""
MISSHAPEN = (AttributeError, KeyError, TypeError, ValueError)
"""What comes of a schema that is none."""


class Served:
    """Of one server. Ask `know` for the versions first; everything else is without I/O."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._catalogue: Catalogue | None = None
        self._by_name: dict[tuple[str, str], ApiResource] = {}
        self._by_group: dict[tuple[str, str], ApiResource] = {}
        self._documents: dict[str, dict[str, Schema]] = {}
        self._places: dict[tuple[str, str], str] = {}  # of OpenAPI documents, by api version and address
        self._announced: dict[tuple[str, str], tuple[ApiResource, Schema]] = {}

    async def refresh(self) -> None:
        """Look anew which kinds there are. Schemas whose address, which has their hash, is the same are kept."""
        self._catalogue = await discover(self._transport)
        self._by_name = {(r.api_version, r.kind): r for r in reversed(tuple(self._catalogue))}
        self._by_group = {(r.group, r.kind): r for r in reversed(tuple(self._catalogue))}
        addresses = await self._addresses()
        fresh = {(version, address) for version, address in addresses.items()}
        for version, address in [key for key in self._places if key not in fresh]:
            self._documents.pop(version, None)
            del self._places[version, address]

    async def know(self, versions: Iterable[tuple[str, str]]) -> None:
        """Make sure that these (apiVersion, kind)s are known with their schemas, as far as the server has them."""
        wanted = set(versions)
        if self._catalogue is None or any(name not in self._by_name for name in wanted):
            await self.refresh()
        missing = {version for version, kind in wanted if (version, kind) in self._by_name} - set(self._documents)
        if missing:
            addresses = await self._addresses()
            for version in sorted(missing):
                self._documents[version] = await self._schemas(version, addresses.get(version, ""))
                self._places[version, addresses.get(version, "")] = ""

    def announce(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        """Kinds that CustomResourceDefinitions of a revision are about to bring: their documents are in it, too."""
        for definition in definitions:
            for resource, schema in _defined(definition):
                name = (resource.api_version, resource.kind)
                if name not in self._by_name:
                    self._announced[name] = (resource, schema)

    def is_served(self, api_version: str, kind: str) -> bool:
        """Not one that is only announced."""
        return (api_version, kind) in self._by_name

    def resource(self, api_version: str, kind: str) -> ApiResource | None:
        found = self._by_name.get((api_version, kind))
        if found is None and (api_version, kind) in self._announced:
            return self._announced[api_version, kind][0]
        return found

    def of_group(self, group: str, kind: str) -> ApiResource | None:
        """The kind in the version that the server prefers."""
        found = self._by_group.get((group, kind))
        if found is None and self._announced:
            coming = (resource for resource, _ in self._announced.values())
            return next((r for r in coming if (r.group, r.kind) == (group, kind)), None)
        return found

    def place(self, api_version: str, kind: str) -> Place | None:
        found = self.resource(api_version, kind)
        return found.place if found is not None else None

    def namespaced(self, group: str, kind: str) -> bool | None:
        found = self.of_group(group, kind)
        return found.namespaced if found is not None else None

    def plural(self, group: str, kind: str) -> str | None:
        found = self.of_group(group, kind)
        return found.plural if found is not None else None

    def home(self, group: str, suffix: str) -> str:
        """The group of this suffix whose objects a group shows once more, as white labels of the hub do: it begins with
        the same word and has the very same kinds. Else the group itself."""
        own = f"{group.partition('.')[0]}.{suffix}"
        return own if own != group and self._kinds(group) == self._kinds(own) != set() else group

    def _kinds(self, group: str) -> set[tuple[str, str, str]]:
        return {(r.version, r.kind, r.plural) for r in self._by_name.values() if r.group == group}

    def resources(self) -> tuple[ApiResource, ...]:
        """Each kind once, in its preferred version."""
        return tuple(self._by_group.values())

    def problems(self, document: Mapping[str, Any], hidden: Callable[[str], bool] = lambda path: False) -> list[str]:
        """All that its schema has against a document; an unknown kind is told with those that are known. `hidden`: fields
        whose values are in no message."""
        version, kind = str(document.get("apiVersion", "")), str(document.get("kind", ""))
        resource = self.resource(version, kind)
        if resource is None:
            return [self._unknown(version, kind)]
        if "patch" not in resource.verbs:
            return [f"kind: {kind} of {version} cannot be applied: it takes no patch"]
        schema = self._documents.get(version, {}).get(kind)
        if schema is None and (version, kind) in self._announced and not self.is_served(version, kind):
            schema = self._announced[version, kind][1]
        if schema is None:
            return []  # the server publishes none: it will judge by itself
        judged = msgspec.json.decode(msgspec.json.encode(document))  # the walk prunes and defaults what it is given
        judged.pop("status", None)
        try:
            walk = schema.walk(judged)
            errors = [*walk.errors, *schema.rules(judged, None, walk.errors)]
        except MISSHAPEN:
            if self.is_served(version, kind):
                raise
            return []  # its definition is in the revision, too, and has problems of its own
        found = [f"{field}: unknown field; see `kubectl explain {resource.plural}`" for field in walk.unknown]
        found += [f"{_without_value(error) if hidden(error.path) else error}{_hint(error)}" for error in errors]
        return found if len(found) <= MOST else [*found[:MOST], f"and {len(found) - MOST} more"]

    def _unknown(self, version: str, kind: str) -> str:
        group = version.rpartition("/")[0]
        same_kind = sorted({r.api_version for r in self._by_name.values() if r.kind == kind})
        if same_kind:
            return f"apiVersion: {kind} is not in {version}; it is in {', '.join(same_kind)}"
        kinds = sorted({r.kind for r in self._by_name.values() if r.group == group})
        if kinds:
            return f"kind: {kind} is not in {version}; there are {', '.join(kinds)}"
        groups = sorted({r.api_version for r in self._by_name.values()})
        return f"apiVersion: {version} is not served; there are {', '.join(groups)}"

    async def _addresses(self) -> dict[str, str]:
        """Of the OpenAPI document of each version; none on servers without OpenAPI v3."""
        try:
            reply = await self._transport.call(Call(method="GET", path="/openapi/v3"))
        except StatusError as error:
            if error.code in (403, 404, 406):
                return {}
            raise
        paths = document_of(reply.body).get("paths") or {}
        found = {}
        for name, link in paths.items():
            version = name.removeprefix("apis/").removeprefix("api/")
            found[version] = str(link.get("serverRelativeURL", "")) if isinstance(link, dict) else ""
        return found

    async def _schemas(self, version: str, address: str) -> dict[str, Schema]:
        if not address.startswith("/openapi/v3/"):
            return {}
        path, _, query = address.partition("?")
        parameters = dict(part.split("=", 1) for part in query.split("&") if "=" in part)
        try:
            reply = await self._transport.call(Call(method="GET", path=path, query=parameters))
        except StatusError as error:
            if error.code in (403, 404, 503):
                return {}
            raise
        schemas = (document_of(reply.body).get("components") or {}).get("schemas") or {}
        found = {}
        for schema in schemas.values():
            for names in schema.get("x-kubernetes-group-version-kind") or ():
                group = names.get("group", "")
                if f"{group}/{names.get('version')}".removeprefix("/") == version:
                    found[names["kind"]] = _schema(schema, schemas, group)
        return found


def _without_value(error: FieldError) -> FieldError:
    return msgspec.structs.replace(error, value=Bare("(not shown)"))


def _hint(error: FieldError) -> str:
    if error.detail == "[]uint8":
        return "; it must be base64" + (", or under stringData" if error.path.startswith("data.") else "")
    return "; quote it, if it is meant as text" if _unquoted(error) else ""


def _unquoted(error: FieldError) -> bool:
    """Whether text is wanted where there is a truth or a number: YAML takes words such as `no` and `1.10` for those."""
    if error.problem is not FieldProblem.TYPE_INVALID:
        return False
    native = error.detail == "string" and isinstance(error.value, bool | int | float)
    return native or any(
        error.detail.endswith(f'of type string: "{word}"') for word in ("boolean", "integer", "number")
    )


def _defined(definition: Mapping[str, Any]) -> Iterator[tuple[ApiResource, Schema]]:
    """The kinds of a CustomResourceDefinition, as far as it is of the right shape: the server judges the rest."""
    spec = definition.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict) or not isinstance(spec.get("versions"), list):
        return
    for version in spec["versions"]:
        given = version.get("schema") if isinstance(version, dict) else None
        schema = given.get("openAPIV3Schema") if isinstance(given, dict) else None
        if not isinstance(schema, dict) or not version.get("served"):
            continue
        group, kind = str(spec.get("group", "")), str(names.get("kind", ""))
        resource = ApiResource(
            group=group,
            version=str(version.get("name", "")),
            kind=kind,
            plural=str(names.get("plural", "")),
            singular=str(names.get("singular") or kind.lower()),
            namespaced=spec.get("scope") == "Namespaced",
            verbs=frozenset({"get", "list", "watch", "patch", "create", "delete"}),
        )
        try:
            made = _schema(schema, {}, group)
        except MISSHAPEN:
            continue
        yield resource, made


def _schema(document: dict[str, Any], schemas: dict[str, Any], group: str) -> Schema:
    """Built-in kinds are Go structs with references; all others are structural."""
    if not group or "." not in group or group.endswith(".k8s.io"):
        return Schema(document, native=True, definitions=schemas)
    properties = {
        name: {"type": "object"} if name == "metadata" else part
        for name, part in (document.get("properties") or {}).items()
    }
    return Schema({**document, "properties": properties})
