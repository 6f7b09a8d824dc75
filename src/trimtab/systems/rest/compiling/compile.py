"""From a document and a RestDefinition to a Model: which fields there are and what may be done with them, which calls.

A creation by PUT to the resource's own URL is its update too, when the definition names none; so is a creation of which the
overlay says that it is an upsert. Everything wrong is said at once, by the definition's own fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
from msgspec import UNSET

from trimtab.model.duration import Period
from trimtab.systems.rest.addressing import parameters_of
from trimtab.systems.rest.compiling.calls import Named, answer, base_path, body, call, found, items_of, query_of
from trimtab.systems.rest.compiling.classes import takers
from trimtab.systems.rest.compiling.observing import observed
from trimtab.systems.rest.compiling.overlays import Overlaid
from trimtab.systems.rest.compiling.parameters import parameters, parents
from trimtab.systems.rest.compiling.problems import CompileError, Problem, nearest
from trimtab.systems.rest.compiling.quirks import overlay_of, polling
from trimtab.systems.rest.compiling.renaming import renamed
from trimtab.systems.rest.compiling.sharing import Shared
from trimtab.systems.rest.compiling.slots import OPEN, Slot, Slots
from trimtab.systems.rest.compiling.tree import Tree
from trimtab.systems.rest.compiling.values import described, sentence
from trimtab.systems.rest.kinds import definition as written
from trimtab.systems.rest.kinds.definition import RestDefinition, RestDefinitionSpec
from trimtab.systems.rest.kinds.service import RestServiceSpec
from trimtab.systems.rest.model import Call, Calls, Export, Identity, Join, Model, Node
from trimtab.systems.rest.openapi.document import Document
from trimtab.systems.rest.openapi.operations import Operation
from trimtab.systems.rest.openapi.schema import Schema
from trimtab.systems.rest.syncing.paths import PathError, covers, parse

_VERBS = ("create", "read", "update", "patch", "delete", "list")


def compile_model(
    document: Document,
    definition: RestDefinition,
    *,
    service: RestServiceSpec,
    service_name: str,
    group: str,
    parent: RestDefinition | None = None,
) -> Model:
    """`parent` is the definition of the kind that it names as its parent: without it, all parameters before the own name
    are taken for the parent's. Raises CompileError."""
    return _Compiling(document, definition.spec, service).model(service_name, group, parent)


class _Compiling:
    """One run; `_problems` is what it finds wrong on its way."""

    def __init__(self, document: Document, spec: RestDefinitionSpec, service: RestServiceSpec) -> None:
        self._document = document
        self._spec = spec
        self._service = service
        self._arm = service.contract == "arm" or (service.contract == "auto" and document.is_arm)
        self._problems: list[Problem] = []
        self._operations: dict[str, Named] = {}
        self._calls: dict[str, Call] = {}

    def model(self, service_name: str, group: str, parent: RestDefinition | None) -> Model:
        spec, quirks = self._spec, self._spec.overlay
        self._check_paths()
        self._find()
        self._raise()  # without its operations nothing more can be said of a definition
        own = self._own()
        identity = self._identity(own)
        exports = tuple(self._export(index, export) for index, export in enumerate(spec.exports))
        slots = self._slots()
        if identity.field:
            identity = msgspec.structs.replace(identity, writers=takers(slots, identity.field))
        overlay = self._overlaid()
        tree = Tree(arm=self._arm, constants=quirks.body)
        root = tree.root(slots, overlay)
        seen, read_only = observed(root, tree.made)
        shared = Shared(root, tree.made)
        self._check_overlay(overlay, shared, read_only)
        root, names = renamed(shared.root, shared.types, quirks.rename, self._problems)
        self._check_scale(root, shared.types)
        self._raise()
        top = slots.read if isinstance(slots.read, Schema) else slots.main
        calls = Calls(**self._calls)
        return Model(
            group=group,
            version=spec.version,
            kind=spec.names.kind,
            plural=spec.names.plural,
            singular=spec.names.kind.lower(),
            short_names=spec.names.short_names,
            service=service_name,
            api_version=self._document.version,
            description=described(slots.main) or sentence(self._operations["create"].operation.summary),
            spec=root,
            observed=seen,
            types=shared.types,
            read_only=read_only,
            renamed=names,
            calls=calls,
            parameters=parameters(
                own,
                list(self._calls.values()),
                list(self._operations.values()),
                identity.parameter,
                above=self._above(own, identity, parent),
                given=self._service.parameters,
            ),
            identity=identity,
            parent=spec.parent,
            joins=tuple(self._join(join, own) for join in spec.joins),
            exports=exports,
            polling=polling(quirks.polling),
            overlay=overlay_of(quirks, self._calls, tree.ignored),
            scale_spec=spec.scale.spec_replicas_path if spec.scale else "",
            scale_status=spec.scale.status_replicas_path if spec.scale else "",
            refresh=None if spec.refresh.interval == "never" else Period(spec.refresh.interval).seconds,
            batch=spec.refresh.batch,
            etag="etag" if top is not None and "etag" in top.properties else "",
        )

    def _check_paths(self) -> None:
        """Those that are used from here on."""
        quirks = self._spec.overlay
        paths = {"spec.overlay.envelope": quirks.envelope, "spec.overlay.wrap": quirks.wrap}
        paths["spec.identity.field"] = self._spec.identity.field
        paths |= {f"spec.identity.find[{index}]": path for index, path in enumerate(self._spec.identity.find)}
        paths |= {f"spec.overlay.gone[{json.dumps(path)}]": path for path in quirks.gone}
        for field, path in paths.items():
            try:
                parse(path)
            except PathError as error:
                self._wrong(field, str(error))

    def _find(self) -> None:
        asked = self._spec.operations
        for verb in _VERBS:
            one = getattr(asked, verb)
            if one is UNSET:
                continue
            operation = found(self._document, one, f"spec.operations.{verb}", self._problems)
            if operation is not None:
                self._operations[verb] = operation
                self._calls[verb] = call(
                    operation,
                    one,
                    self._document,
                    self._service,
                    listing=verb == "list",
                    envelope=self._spec.overlay.envelope,
                )
        if asked.read is UNSET and asked.list is UNSET:
            self._wrong("spec.operations", "give read or list: without one of them nothing can be found again")
        for verb in ("read", "list"):
            one = getattr(asked, verb)
            if one is not UNSET and one.method not in ("GET", "HEAD"):
                self._wrong(f"spec.operations.{verb}.method", f"a {verb} is a GET, not a {one.method}")
        if asked.create.method not in ("PUT", "POST", "PATCH"):
            self._wrong("spec.operations.create.method", f"a creation is a PUT or a POST, not a {asked.create.method}")
        self._choose_updates()

    def _choose_updates(self) -> None:
        """By the overlay, and by what a creation does to what exists."""
        create, quirks = self._calls.get("create"), self._spec.overlay
        if create is not None and "update" not in self._calls and (create.method == "PUT" or quirks.upsert):
            self._calls["update"] = create
            self._operations["update"] = self._operations["create"]
        left_out = {"none": ("update", "patch"), "patch": ("update",), "replace": ("patch",)}.get(quirks.update, ())
        for verb in left_out:
            self._calls.pop(verb, None)
            self._operations.pop(verb, None)

    def _operation(self, verb: str) -> Operation | None:
        named = self._operations.get(verb)
        return named.operation if named is not None else None

    def _own(self) -> str:
        """The template of the resource's own URL."""
        verbs = ("read", "update", "patch", "delete", "create")
        return next(self._calls[verb].path for verb in verbs if verb in self._calls)

    def _identity(self, own: str) -> Identity:
        asked = self._spec.identity
        names = parameters_of(own)
        if asked.parameter and asked.parameter not in names:
            there = f"; it has {', '.join(names)}" if names else ""
            self._wrong("spec.identity.parameter", f"{asked.parameter} is no parameter of {own}{there}")
        last = names[-1] if names and own.rstrip("/").endswith(f"{{{names[-1]}}}") else ""
        return Identity(
            parameter=asked.parameter or last,
            field=asked.field,
            server=asked.assigned == "server",
            answer=asked.answer,
            find=asked.find,
        )

    def _above(self, own: str, identity: Identity, parent: RestDefinition | None) -> tuple[str, ...]:
        """The parameters that the parent gives."""
        if not self._spec.parent:
            return ()
        if parent is None:
            return parents(own, identity.parameter)
        asked = parent.spec.operations
        theirs = asked.read or asked.update or asked.patch or asked.delete or asked.create
        return parents(own, identity.parameter, base_path(self._document, self._service) + theirs.path)

    def _slots(self) -> Slots:
        """The bodies, and what a read answers; what the document does not tell may be anything."""
        asked, quirks = self._spec.operations, self._spec.overlay
        bodies: dict[str, Slot] = {}
        for verb in ("create", "update", "patch"):
            one = getattr(asked, verb) or asked.create
            operation = self._operation(verb)
            schema = body(operation, one, quirks.wrap)
            if schema is None and operation is not None and operation.body is not None:
                self._wrong("spec.overlay.wrap", f"the body of {verb} has no {quirks.wrap}")
            if schema is not None and schema.type not in ("object", ""):
                self._wrong(f"spec.operations.{verb}", f"its body is no object but of type {schema.type}")
                schema = None
            bodies[verb] = schema
        read = answer(self._operation("read"), quirks.envelope)
        if quirks.envelope and read is None and answer(self._operation("read"), "") is not None:
            self._wrong("spec.overlay.envelope", f"the answer of read has no {quirks.envelope}")
        if read is None and asked.list and asked.list.whole:
            read = items_of(self._operation("list"), self._calls.get("list"), quirks.envelope)
        return Slots(**bodies, read=OPEN if read is None or not read.properties else read)

    def _overlaid(self) -> Overlaid:
        root = Overlaid()
        for path, says in self._spec.overlay.fields.items():
            try:
                root.add(path).says = says
            except PathError as error:
                self._wrong(_field(path), str(error))
        if self._spec.identity.field:
            try:
                root.add(self._spec.identity.field).ours = True
            except PathError as error:
                self._wrong("spec.identity.field", str(error))
        return root

    def _check_overlay(self, overlay: Overlaid, shared: Shared, read_only: Mapping[str, str]) -> None:
        known: list[str] = []
        for place in overlay.unseen():
            known = known or [*shared.paths(), *read_only]
            above = next((path for path in read_only if covers(parse(path), place.path)), None)
            if above is not None:
                text = f"it is below {above}, which is read-only ({read_only[above]}); give that one a class first"
            elif place.ours:
                text = f"{place} is no field of the body or of what is read{nearest(str(place), known)}"
            else:
                text = f"no body has this field{nearest(str(place), known)}"
            self._wrong("spec.identity.field" if place.ours else _field(str(place)), text)

    def _check_scale(self, root: Node, shared: Mapping[str, Node]) -> None:
        if not self._spec.scale:
            return
        path = self._spec.scale.spec_replicas_path
        node: Node | None = root
        if not path.startswith(".spec."):
            self._wrong("spec.scale.specReplicasPath", "it begins with .spec.")
            return
        for name in path.removeprefix(".spec.").split("."):
            node = shared[node.ref] if node is not None and node.ref else node
            node = node.properties.get(name) if node is not None else None
        if node is None or node.type not in ("integer", "any"):
            self._wrong("spec.scale.specReplicasPath", f"{path} is no whole number in the spec")

    def _join(self, join: written.JoinSpec, own: str) -> Join:
        """Its query is what the document says, when it has such a path; ARM always wants to know the version."""
        base = base_path(self._document, self._service)
        below = join.path if join.path.startswith("/") else f"{own.removeprefix(base)}/{join.path}"
        operation = self._document.operations.get(("GET", below.partition("?")[0]))
        query = {"api-version": self._document.version} if self._arm and self._document.version else {}
        if operation is not None:
            query = query_of(operation, written.Operation(method="GET", path=below), self._document)
        return Join(
            name=join.name,
            path=base + join.path if join.path.startswith("/") and operation is not None else join.path,
            query=query | join.query,
            interval=join.interval.seconds,
            required=join.required,
            select=join.select,
        )

    def _export(self, index: int, export: written.ExportSpec) -> Export:
        made = None
        if export.operation:
            operation = found(self._document, export.operation, f"spec.exports[{index}].operation", self._problems)
            if operation is not None:
                made = call(operation, export.operation, self._document, self._service)
        return Export(to=export.to, name=export.name, data=export.data, call=made)

    def _wrong(self, path: str, text: str) -> None:
        self._problems.append(Problem(path, text))

    def _raise(self) -> None:
        if self._problems:
            raise CompileError(self._problems)


def _field(path: str) -> str:
    return f"spec.overlay.fields[{json.dumps(path)}]"
