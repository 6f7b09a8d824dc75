"""The calls of a kind, its parameters, and what is taken over from a definition as it is."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.systems.rest.compiling_kit import (
    ARM,
    PLAIN,
    TEXT,
    arm,
    compiled,
    definition,
    obj,
    operation,
    plain,
    problems,
    ref,
    swagger,
)
from trimtab.systems.rest.compiling.compile import compile_model
from trimtab.systems.rest.kinds import RestServiceSpec
from trimtab.systems.rest.model import Export, Join, Parameter
from trimtab.systems.rest.openapi import Document
from trimtab.systems.rest.openapi.loading import load

BODY = obj(size=TEXT)
VERSION = {"name": "api-version", "in": "query", "required": True, "type": "string"}


def things(read: dict[str, Any] | None = None, create: dict[str, Any] | None = None, **paths: Any) -> Document:
    """The plain resource with one operation of another shape."""
    tree = {
        "/things": {"post": create or operation(body=BODY, status=201)},
        PLAIN: {"get": read or operation(answer=BODY), "put": operation(body=BODY)},
    }
    return swagger({**tree, **paths})


class TestPaths:
    @pytest.mark.parametrize(
        ("base", "endpoint", "path"),
        [
            ("", "http://127.0.0.1:1", "/things"),
            ("/api/v1", "http://127.0.0.1:1", "/api/v1/things"),
            ("/api/v1", "http://127.0.0.1:1/api/v1", "/things"),
            ("/api/v1", "http://127.0.0.1:1/api/v1/", "/things"),
            ("/api/v1", "http://127.0.0.1:1/behind/api/v1", "/things"),
            ("/api/v1", "http://127.0.0.1:1/behind", "/api/v1/things"),
            ("/1.0", "unix:///run/zoo/1.0", "/1.0/things"),
        ],
    )
    def test_the_base_path_is_in_front_unless_the_endpoint_ends_with_it(
        self, base: str, endpoint: str, path: str
    ) -> None:
        paths = {"/things": {"post": operation(body=BODY)}, PLAIN: {"get": operation(answer=BODY)}}
        document = swagger(paths, basePath=base)
        assert compiled(document, service={"endpoint": endpoint}).calls.create.path == path

    def test_a_definition_may_name_a_parameter_otherwise(self) -> None:
        model = compiled(things(), operations={"read": {"method": "GET", "path": "/things/{thing}"}})
        assert model.calls.read is not None
        assert model.calls.read.path == "/things/{thing}"

    def test_a_definition_may_fill_a_parameter(self) -> None:
        path = "/pools/{pool}/volumes/{type}/{volume}"
        slashed = {"name": "pool", "in": "path", "required": True, "type": "string", "x-ms-skip-url-encoding": True}
        item = {"get": operation(answer=BODY, parameters=[slashed]), "put": operation(body=BODY)}
        named = "/pools/{p}/volumes/custom/{volume}"
        model = compiled(
            swagger({path: item}),
            operations={"create": {"method": "PUT", "path": named}, "read": {"method": "GET", "path": named}},
        )
        assert model.calls.create.path == named
        assert [(each.name, each.encode) for each in model.parameters] == [("p", False), ("volume", True)]

    def test_a_path_with_a_query_is_that_path(self) -> None:
        listing = operation(answer={"type": "array", "items": BODY})
        urls = operation(answer={"type": "array", "items": TEXT})
        document = things(**{"/all": {"get": urls}, "/all?recursion=1": {"get": listing}})
        for asked in ({"path": "/all?recursion=1"}, {"path": "/all", "query": {"recursion": "1"}}):
            model = compiled(document, operations={"list": {"method": "GET", **asked}})
            assert model.calls.list is not None
            assert (model.calls.list.path, model.calls.list.query) == ("/all", {"recursion": "1"})


class TestQuery:
    @pytest.mark.parametrize(
        ("parameter", "value"),
        [
            (VERSION, "2024-01-01"),
            ({**VERSION, "name": "kind", "enum": ["web"]}, "web"),
            ({**VERSION, "name": "limit", "default": 5}, "5"),
            ({**VERSION, "name": "full", "type": "boolean", "default": True}, "true"),
            ({**VERSION, "name": "tenant"}, "{tenant}"),
        ],
    )
    def test_a_required_parameter_has_a_value_or_is_asked_for(self, parameter: dict[str, Any], value: str) -> None:
        model = compiled(things(read=operation(answer=BODY, parameters=[parameter])))
        assert model.calls.read is not None
        assert model.calls.read.query == {parameter["name"]: value}

    def test_an_optional_parameter_is_left_out(self) -> None:
        model = compiled(things(read=operation(answer=BODY, parameters=[{**VERSION, "required": False}])))
        assert model.calls.read is not None
        assert model.calls.read.query == {}

    def test_a_query_parameter_without_a_value_is_one_of_the_object(self) -> None:
        model = compiled(things(read=operation(answer=BODY, parameters=[{**VERSION, "name": "tenant"}])))
        assert Parameter(name="tenant", source="object") in model.parameters

    def test_the_definition_has_the_last_word(self) -> None:
        read = {"method": "GET", "path": PLAIN, "query": {"api-version": "2030-01-01"}}
        model = compiled(things(read=operation(answer=BODY, parameters=[VERSION])), operations={"read": read})
        assert model.calls.read is not None
        assert model.calls.read.query == {"api-version": "2030-01-01"}


class TestUpdates:
    def test_a_creation_by_put_is_the_update_too(self) -> None:
        model = compiled(arm(BODY), operations={"update": None})
        assert model.calls.update == model.calls.create

    def test_an_upsert_is_the_update_too(self) -> None:
        model = compiled(plain(BODY), overlay={"upsert": True})
        assert model.calls.update == model.calls.create
        assert model.overlay.update == "merge"

    def test_without_an_update_there_is_patch_or_none(self) -> None:
        assert compiled(plain(BODY, patch=BODY)).overlay.update == "patch"
        assert compiled(plain(BODY)).overlay.update == "none"

    @pytest.mark.parametrize(
        ("update", "there"),
        [("merge", {"update", "patch"}), ("replace", {"update"}), ("patch", {"patch"}), ("none", set[str]())],
    )
    def test_the_overlay_says_which_way_to_change(self, update: str, there: set[str]) -> None:
        model = compiled(plain(BODY, BODY, patch=BODY), overlay={"update": update})
        assert {verb for verb in ("update", "patch") if getattr(model.calls, verb) is not None} == there
        assert model.overlay.update == update


class TestShapes:
    def test_a_patch_is_a_merge_patch_when_it_may_be(self) -> None:
        patch = operation(body=BODY, consumes=["application/json", "application/merge-patch+json"])
        item = {"get": operation(answer=BODY), "patch": patch}
        document = swagger({"/things": {"post": operation(body=BODY)}, PLAIN: item})
        model = compiled(document)
        assert model.calls.patch is not None
        assert model.calls.patch.content_type == "application/merge-patch+json"
        assert model.calls.create.content_type == "application/json"

    def test_each_content_type_may_have_a_body_of_its_own(self) -> None:
        def content(kind: str, schema: Any) -> dict[str, Any]:
            return {"content": {kind: {"schema": schema}}}

        merge = content("application/merge-patch+json", obj(size=TEXT))["content"]
        steps = content("application/json", {"type": "array", "items": obj(op=TEXT)})["content"]
        tree = {
            "openapi": "3.0.0",
            "info": {"title": "Zoo", "version": "1"},
            "paths": {
                "/things": {"post": {"requestBody": content("application/json", BODY), "responses": {}}},
                PLAIN: {
                    "get": {"responses": {"200": {"description": "ok", **content("application/json", BODY)}}},
                    "patch": {"requestBody": {"content": steps | merge}, "responses": {"200": {"description": "ok"}}},
                },
            },
        }
        model = compiled(load({"zoo.json": json.dumps(tree).encode()}, "zoo.json"))
        assert model.spec.properties["size"].writers.name == "CREATE|PATCH"

    @pytest.mark.parametrize(
        ("more", "conditional"),
        [
            ({}, False),
            ({"parameters": [{"name": "If-Match", "in": "header", "type": "string"}]}, True),
            ({"headers": ["ETag"]}, True),
        ],
    )
    def test_etags_are_used_where_they_are_declared(self, more: dict[str, Any], conditional: bool) -> None:
        assert compiled(things(create=operation(body=BODY, **more))).calls.create.conditional is conditional

    @pytest.mark.parametrize(
        ("more", "long_running"),
        [
            ({}, False),
            ({"x-ms-long-running-operation": True}, True),
            ({"status": 202}, True),
            ({"status": 202, "headers": ["Location"]}, True),
        ],
    )
    def test_an_operation_that_may_take_long_says_so(self, more: dict[str, Any], long_running: bool) -> None:
        assert compiled(things(create=operation(body=BODY, **more))).calls.create.long_running is long_running

    @pytest.mark.parametrize(
        ("answer", "more", "items", "next_link"),
        [
            ({"type": "array", "items": BODY}, {}, "", ""),
            (obj(things={"type": "array", "items": BODY}, total=TEXT), {}, "things", ""),
            (obj(value={"type": "array", "items": BODY}, nextLink=TEXT),
             {"x-ms-pageable": {"nextLinkName": "nextLink"}}, "value", "nextLink"),
            (obj(rows={"type": "array", "items": BODY}),
             {"x-ms-pageable": {"itemName": "rows", "nextLinkName": "@odata.nextLink"}}, "rows", '["@odata.nextLink"]'),
            (obj(value={"type": "array", "items": BODY}), {"x-ms-pageable": {"nextLinkName": None}}, "value", ""),
        ],
    )  # fmt: skip
    def test_a_list_says_where_its_items_are(
        self, answer: dict[str, Any], more: dict[str, Any], items: str, next_link: str
    ) -> None:
        document = things(**{"/all": {"get": operation(answer=answer, **more)}})
        model = compiled(document, operations={"list": {"method": "GET", "path": "/all"}})
        assert model.calls.list is not None
        assert (model.calls.list.items, model.calls.list.next_link) == (items, next_link)

    def test_what_is_in_an_envelope_is_the_resource(self) -> None:
        document = plain(BODY, BODY, obj(type=TEXT, metadata=obj(size=TEXT, uptime=TEXT)))
        model = compiled(document, overlay={"envelope": "metadata"})
        assert model.read_only == {"uptime": "schemas: read, in no body that is written"}

    def test_what_a_request_wraps_is_the_resource(self) -> None:
        wrapped = obj(thing=BODY)
        model = compiled(plain(wrapped, wrapped, BODY), overlay={"wrap": "thing"})
        assert list(model.spec.properties) == ["size"]

    def test_without_a_read_the_items_of_the_list_tell_what_is_read(self) -> None:
        listing = operation(answer={"type": "array", "items": obj(size=TEXT, uptime=TEXT)})
        collection = {"post": operation(body=BODY), "get": listing}
        document = swagger({"/things": collection, PLAIN: {"put": operation(body=BODY)}})
        model = compiled(document, operations={"list": {"method": "GET", "path": "/things"}})
        assert list(model.read_only) == ["uptime"]


class TestParameters:
    def sources(self, document: Document, **more: Any) -> dict[str, str]:
        return {each.name: each.source for each in compiled(document, **more).parameters}

    def test_the_last_parameter_is_the_name_unless_another_is_named(self) -> None:
        model = compiled(arm(BODY))
        assert model.identity.parameter == "widgetName"
        assert self.sources(arm(BODY), identity={"parameter": "group"})["group"] == "identity"

    def test_what_the_service_has_a_value_for_is_the_services(self) -> None:
        found = self.sources(arm(BODY), service={"parameters": {"subscriptionId": "s"}})
        assert found == {"subscriptionId": "service", "group": "object", "widgetName": "identity"}

    def test_what_all_operations_share_is_the_services(self) -> None:
        shared = {"name": "subscriptionId", "in": "path", "required": True, "type": "string"}
        method = {**shared, "name": "group", "x-ms-parameter-location": "method"}
        uses = [{"$ref": "#/parameters/Subscription"}, {"$ref": "#/parameters/Group"}]
        item = {"put": operation(body=BODY, parameters=uses), "get": operation(answer=BODY, parameters=uses)}
        document = swagger({ARM: item}, parameters={"Subscription": shared, "Group": method})
        found = self.sources(document, service={"contract": "arm"})
        assert found == {"subscriptionId": "service", "group": "object", "widgetName": "identity"}

    def test_what_is_before_the_name_is_the_parents(self) -> None:
        found = self.sources(arm(BODY), parent="Group", service={"parameters": {"subscriptionId": "s"}})
        assert found == {"subscriptionId": "parent", "group": "parent", "widgetName": "identity"}

    def test_only_what_is_in_the_path_of_a_known_parent_is_the_parents(self) -> None:
        path = "/houses/{house}/rooms/{room}/lamps/{lamp}"
        document = swagger({path: {"put": operation(body=BODY), "get": operation(answer=BODY)}})
        named = {"create": {"method": "PUT", "path": path}, "read": {"method": "GET", "path": path}}
        above = {verb: {**each, "path": "/houses/{name}"} for verb, each in named.items()}
        model = compile_model(
            document,
            definition(document, operations=named, parent="House"),
            service=msgspec.convert({"endpoint": "http://127.0.0.1:1", "document": {"inline": "{}"}}, RestServiceSpec),
            service_name="zoo",
            group="zoo.rest.trimtab.dev",
            parent=definition(document, operations=above),
        )
        found = {each.name: each.source for each in model.parameters}
        assert found == {"house": "parent", "room": "object", "lamp": "identity"}

    def test_bounds_and_encoding_are_kept(self) -> None:
        name = {"name": "name", "in": "path", "required": True, "type": "string", "pattern": "^a", "maxLength": 9}
        model = compiled(things(read=operation(answer=BODY, parameters=[{**name, "x-ms-skip-url-encoding": True}])))
        assert model.parameters == (
            Parameter(name="name", source="identity", encode=False, pattern="^a", max_length=9),
        )


class TestTakenOver:
    def test_joins_ask_as_the_document_says(self) -> None:
        document = things(**{f"{PLAIN}/state": {"get": operation(answer=BODY, parameters=[VERSION])}})
        model = compiled(document, joins=[{"name": "state", "path": "state", "interval": "30s", "select": "phase"}])
        assert model.joins == (
            Join(name="state", path="state", query={"api-version": "2024-01-01"}, interval=30, select="phase"),
        )

    def test_exports_call_an_operation_of_the_document(self) -> None:
        document = things(**{f"{PLAIN}/listKeys": {"post": operation(answer=BODY, parameters=[VERSION])}})
        export = {"to": "Secret", "name": "{name}-keys", "data": {"key": "keys[0]"}}
        model = compiled(document, exports=[{**export, "operation": {"method": "POST", "path": f"{PLAIN}/listKeys"}}])
        (found,) = model.exports
        assert isinstance(found, Export)
        assert found.call is not None
        assert (found.call.path, found.call.query) == (f"{PLAIN}/listKeys", {"api-version": "2024-01-01"})

    def test_what_a_definition_says_of_its_api_is_in_the_model(self) -> None:
        model = compiled(
            plain(obj(size={"type": "integer"}), obj(size={"type": "integer"})),
            scale={"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.observed.size"},
            refresh={"interval": "1h", "batch": 9},
            overlay={
                "gone": {"status.state": "expired"},
                "errors": [{"status": 409, "code": "Busy", "class": "conflict"}],
                "polling": {"url": "header.Location", "pending": ["Running"], "deadline": "5m"},
                "body": {"api": "v1"},
                "hooks": ["mine"],
            },
        )
        assert (model.scale_spec, model.scale_status) == (".spec.size", ".status.observed.size")
        assert (model.refresh, model.batch) == (3600, 9)
        assert model.overlay.gone == {"status.state": "expired"}
        assert model.overlay.errors == ({"status": "409", "code": "Busy", "class": "conflict"},)
        assert (model.polling.url, model.polling.pending) == ("header.Location", ("Running",))
        assert model.polling.deadline == 300
        assert (model.overlay.body, model.overlay.hooks) == ({"api": "v1"}, ("mine",))

    def test_a_kind_may_never_be_looked_at_again(self) -> None:
        assert compiled(plain(BODY, BODY), refresh={"interval": "never"}).refresh is None

    def test_how_it_is_identified(self) -> None:
        identity = {"parameter": "name", "assigned": "server", "answer": "id", "find": ["size"]}
        model = compiled(plain(BODY, BODY), identity=identity)
        assert (model.identity.server, model.identity.answer, model.identity.find) == (True, "id", ("size",))


class TestProblems:
    def test_they_come_all_at_once(self) -> None:
        found = problems(
            plain(BODY, BODY),
            operations={
                "read": {"method": "GET", "path": "/thing/{name}"},
                "patch": {"method": "PATCH", "path": PLAIN},
            },
        )
        assert found == {
            "spec.operations.read.path": f"the document has no GET /thing/{{name}}; nearest: {PLAIN}",
            "spec.operations.patch.path": f"the document has no PATCH {PLAIN}; it has DELETE, GET, PUT",
        }

    def test_something_must_find_it_again(self) -> None:
        found = problems(plain(BODY, BODY), operations={"read": None})
        assert found == {"spec.operations": "give read or list: without one of them nothing can be found again"}

    @pytest.mark.parametrize(
        ("spec", "field", "part"),
        [
            ({"identity": {"parameter": "id"}}, "spec.identity.parameter", "it has name"),
            ({"identity": {"field": "nmae"}}, "spec.identity.field", "is no field of the body"),
            ({"identity": {"find": ["a..b"]}}, "spec.identity.find[0]", "is no path"),
            ({"overlay": {"envelope": "metadata"}}, "spec.overlay.envelope", "the answer of read has no metadata"),
            ({"overlay": {"wrap": "thing"}}, "spec.overlay.wrap", "has no thing"),
            ({"scale": {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.x"}},
             "spec.scale.specReplicasPath", "is no whole number in the spec"),
            ({"operations": {"create": {"method": "GET", "path": PLAIN}}}, "spec.operations.create.method", "not a GET"),
            ({"operations": {"list": {"method": "POST", "path": "/things"}}}, "spec.operations.list.method", "not a POST"),
            ({"exports": [{"to": "Secret", "name": "x", "data": {"a": "b"},
                           "operation": {"method": "POST", "path": "/keys"}}]},
             "spec.exports[0].operation.path", "the document has no POST /keys"),
        ],
    )  # fmt: skip
    def test_each_names_the_field_that_has_to_change(self, spec: dict[str, Any], field: str, part: str) -> None:
        assert part in problems(plain(BODY, BODY, obj(size=TEXT, name=TEXT)), **spec)[field]

    def test_a_body_must_be_an_object(self) -> None:
        found = problems(plain({"type": "array", "items": ref("Disk")}, BODY, definitions={"Disk": BODY}))
        assert found == {"spec.operations.create": "its body is no object but of type array"}
