"""Documents that load, and what is said of those that do not: from memory, from a folder, from a web server."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from trimtab.runtime.outbound import Outbound
from trimtab.systems.rest.openapi import Document, DocumentError, from_path, from_url, load
from trimtab.systems.rest.openapi.reading import MOST_BYTES

DOCUMENTS = Path(__file__).parent / "documents"
FLEET = DOCUMENTS / "specification/fleet/2026-01-01/fleet.json"


def document(**more: Any) -> dict[str, Any]:
    return {"swagger": "2.0", "info": {"title": "Small", "version": "1"}, "paths": {}, **more}


def loaded(files: Mapping[str, Any] | None = None, **more: Any) -> Document:
    """From memory: one document, and other files by their names."""
    texts = {
        name: tree if isinstance(tree, bytes) else json.dumps(tree).encode() for name, tree in (files or {}).items()
    }
    return load({"api.json": json.dumps(document(**more)).encode(), **texts}, "api.json", folder="/specs")


def refused(files: Mapping[str, Any] | None = None, **more: Any) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        loaded(files, **more)
    assert "\n" not in str(caught.value)
    return caught.value


def refused_text(text: bytes) -> str:
    with pytest.raises(DocumentError) as caught:
        load({"api": text}, "api")
    return str(caught.value)


class TestForms:
    def test_json_and_yaml_say_the_same(self) -> None:
        as_yaml = b"swagger: '2.0'\ninfo: {title: Small, version: '1'}\npaths: {/a: {get: {responses: {200: {}}}}}\n"
        found = load({"api": as_yaml}, "api")
        same = loaded(paths={"/a": {"get": {"responses": {"200": {}}}}})
        assert (found.title, found.version, list(found.operations)) == (same.title, same.version, list(same.operations))
        assert list(found.operations["GET", "/a"].responses) == [200]

    def test_a_byte_order_mark_is_no_part_of_the_text(self) -> None:
        assert load({"api": b"\xef\xbb\xbf" + json.dumps(document()).encode()}, "api").title == "Small"

    def test_a_packed_file_is_unpacked_and_has_the_same_digest(self) -> None:
        text = json.dumps(document()).encode()
        assert load({"api": gzip.compress(text)}, "api").digest == load({"api": text}, "api").digest

    def test_keys_of_yaml_are_text_and_only_true_and_false_are_truth_values(self) -> None:
        zoo = from_path(DOCUMENTS / "zoo-3.1.yaml")
        pet = next(schema for schema in zoo.definitions() if schema.name == "Pet")
        dog = next(schema for schema in zoo.definitions() if schema.name == "Dog")
        assert pet.properties["on"].get("default") is False
        assert dog.properties["bark"].get("enum") == ["no", "yes"]

    @pytest.mark.parametrize(
        ("path", "spec", "base"),
        [("names.yaml", "2.0", "/api/v1"), ("zoo-3.1.yaml", "3.1", "/zoo/v2"), ("machines.yaml", "2.0", "")],
    )
    def test_what_goes_before_paths_is_known_in_each_version(self, path: str, spec: str, base: str) -> None:
        found = from_path(DOCUMENTS / path)
        assert (found.spec, found.base_path) == (spec, base)

    def test_the_digest_is_that_of_all_files(self) -> None:
        use = {"A": {"$ref": "other.json#/definitions/B"}}
        one = loaded({"other.json": {"definitions": {"B": {"type": "string"}}}}, definitions=use)
        two = loaded({"other.json": {"definitions": {"B": {"type": "number"}}}}, definitions=use)
        assert one.digest != two.digest
        assert one.digest == loaded({"other.json": {"definitions": {"B": {"type": "string"}}}}, definitions=use).digest


class TestFolders:
    def test_azures_documents_refer_to_files_below_specification(self) -> None:
        fleet = from_path(FLEET)
        assert set(fleet.files.trees) == {
            "common/types.json",
            "fleet/2026-01-01/cargo.json",
            "fleet/2026-01-01/fleet.json",
        }
        assert fleet.is_arm

    def test_other_documents_stay_in_their_own_folder(self, tmp_path: Path) -> None:
        (tmp_path / "types.json").write_text(json.dumps({"definitions": {"A": {}}}))
        (tmp_path / "apis").mkdir()
        entry = tmp_path / "apis/api.json"
        entry.write_text(json.dumps(document(definitions={"B": {"$ref": "../types.json#/definitions/A"}})))
        with pytest.raises(DocumentError, match=rf"leaves the document's folder {tmp_path}/apis; .*--root"):
            from_path(entry)
        assert len(from_path(entry, root=tmp_path).files.trees) == 2

    def test_a_link_does_not_lead_out_of_the_folder(self, tmp_path: Path) -> None:
        (tmp_path / "secret.json").write_text(json.dumps({"definitions": {"A": {}}}))
        (tmp_path / "apis").mkdir()
        (tmp_path / "apis/types.json").symlink_to(tmp_path / "secret.json")
        entry = tmp_path / "apis/api.json"
        entry.write_text(json.dumps(document(definitions={"B": {"$ref": "types.json#/definitions/A"}})))
        with pytest.raises(DocumentError, match=r"types\.json: is a link that leaves"):
            from_path(entry)

    def test_a_file_outside_of_the_root_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "apis").mkdir()
        with pytest.raises(DocumentError, match="is not in the folder"):
            from_path(FLEET, root=tmp_path)

    def test_a_file_that_is_not_there_is_said_where_it_is_asked_for(self, tmp_path: Path) -> None:
        entry = tmp_path / "api.json"
        entry.write_text(json.dumps(document(definitions={"B": {"$ref": "types.json"}})))
        with pytest.raises(DocumentError, match=r"^api\.json#/definitions/B: needs the file types\.json, which cannot"):
            from_path(entry)


class TestWhatIsRefused:
    def test_json_that_does_not_parse_is_told_by_its_line(self) -> None:
        assert "line 2, column" in refused_text(b'{"swagger": "2.0",\n "paths": }')

    def test_yaml_that_does_not_parse_is_told_by_its_line(self) -> None:
        assert "line 2" in refused_text(b"swagger: '2.0'\npaths: {a: ]}\n")

    def test_text_that_is_not_utf_8_is_told_by_its_line(self) -> None:
        assert "line 2 is not UTF-8" in refused_text(b"swagger: '2.0'\ninfo: \xff\n")

    def test_a_document_is_an_object(self) -> None:
        assert "is not an object" in refused_text(b"[]")
        assert "is not an object" in refused_text(b"<html>Not found</html>")

    def test_gzip_that_is_damaged_or_too_short_is_refused(self) -> None:
        packed = gzip.compress(json.dumps(document()).encode())
        assert "ends too early" in refused_text(packed[:-9])
        assert "damaged" in refused_text(packed[:12] + b"\xff\xff" + packed[14:])

    def test_a_bomb_of_gzip_is_refused_before_it_is_unpacked(self) -> None:
        assert "larger than 16 MiB" in refused_text(gzip.compress(b" " * (MOST_BYTES + 1)))

    def test_a_bomb_of_aliases_is_refused(self) -> None:
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
        assert "unfolds to more" in refused_text("\n".join(lines).encode())

    def test_an_alias_of_itself_is_refused(self) -> None:
        assert "line 1: found unconstructable recursive node" in refused_text(b"a: &a [*a]\n")

    @pytest.mark.parametrize("opening", [b"[", b'{"a":'])
    def test_deep_nesting_is_refused(self, opening: bytes) -> None:
        depth = 300
        text = b'{"x": ' + opening * depth + b"1" + {b"[": b"]"}.get(opening, b"}") * depth + b"}"
        assert "nested deeper than 200" in refused_text(text)
        assert "nested deeper than 200" in refused_text(b"x: " + b"[" * 5000 + b"]" * 5000)

    def test_a_reference_that_leads_nowhere_names_what_is_there(self) -> None:
        error = refused(definitions={"Cat": {}, "A": {"properties": {"x/y": {"$ref": "#/definitions/Cats"}}}})
        assert (error.file, error.pointer) == ("api.json", "/definitions/A/properties/x~1y")
        assert "leads nowhere; there are: A, Cat" in str(error)

    def test_a_reference_to_a_missing_file_names_the_file(self) -> None:
        assert "needs the file more/b.json" in str(refused(definitions={"A": {"$ref": "more/b.json#/x"}}))

    @pytest.mark.parametrize(
        "reference", ["../b.json#/x", "/etc/passwd", "http://127.0.0.1/b.json", "file:///etc/passwd", "a/../../b.json"]
    )
    def test_a_reference_does_not_leave_the_folder(self, reference: str) -> None:
        error = refused(definitions={"A": {"$ref": reference}})
        assert "leaves the document's folder /specs; name a folder that holds both with --root" in str(error)

    def test_references_alone_do_not_make_a_schema(self) -> None:
        error = refused(definitions={"A": {"$ref": "#/definitions/B"}, "B": {"$ref": "#/definitions/A"}})
        assert "leads back to itself" in str(error)

    def test_an_anchor_is_refused_with_the_way_that_works(self) -> None:
        assert "name it by its path: #/" in str(refused(definitions={"A": {"$ref": "#Cat"}}))

    def test_many_files_are_refused(self) -> None:
        uses = {f"A{n}": {"$ref": f"f{n}.json"} for n in range(300)}
        assert "more than 256 files" in str(refused(definitions=uses))

    def test_a_document_without_paths_is_refused(self) -> None:
        assert "has no paths" in refused_text(b'{"swagger": "2.0"}')

    @pytest.mark.parametrize("text", [b'{"swaggerVersion": "1.2", "apis": []}', b'{"openapi": "4.0.0", "paths": {}}'])
    def test_other_versions_are_refused(self, text: bytes) -> None:
        assert "convert it to 2.0, 3.0 or 3.1" in refused_text(text)

    def test_something_else_is_told_from_a_document(self) -> None:
        assert "is no OpenAPI document" in refused_text(b'{"paths": {}}')

    def test_a_reference_in_an_example_is_none(self) -> None:
        value = {"$ref": "#/nowhere"}
        loaded(definitions={"A": {"example": value, "default": value, "x-ms-examples": {"a": value}}})

    def test_a_property_that_is_called_example_is_no_example(self) -> None:
        assert "leads nowhere" in str(refused(definitions={"A": {"properties": {"example": {"$ref": "#/nowhere"}}}}))


class Server:
    """Files on loopback; `asked` are the paths that were."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.asked: list[str] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        assert "Authorization" not in request.headers
        if request.path in self.redirects:
            raise web.HTTPFound(self.redirects[request.path])
        if request.path not in self.files:
            return web.Response(status=404)
        return web.Response(body=self.files[request.path])


async def started(server: Server) -> web.AppRunner:
    application = web.Application()
    application.router.add_get("/{path:.*}", server.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    return runner


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    runner = await started(made)
    yield made
    await runner.cleanup()


@pytest.fixture
async def outbound() -> AsyncIterator[Outbound]:
    async with Outbound() as made:
        yield made


class TestWebServers:
    async def test_a_document_and_the_files_below_it_are_fetched_once_each(
        self, server: Server, outbound: Outbound
    ) -> None:
        uses = {"A": {"$ref": "more/b.json#/x"}, "B": {"$ref": "more/b.json#/x"}}
        server.files["/v1/api.json"] = json.dumps(document(definitions=uses)).encode()
        server.files["/v1/more/b.json"] = b'{"x": {"type": "string"}}'
        found = await from_url(outbound, f"{server.url}/v1/api.json")
        assert found.title == "Small"
        assert server.asked == ["/v1/api.json", "/v1/more/b.json"]

    async def test_a_reference_does_not_lead_above_the_documents_folder(
        self, server: Server, outbound: Outbound
    ) -> None:
        server.files["/v1/api.json"] = json.dumps(document(definitions={"A": {"$ref": "../b.json"}})).encode()
        with pytest.raises(DocumentError, match=r"leaves the document's folder http://127\.0\.0\.1"):
            await from_url(outbound, f"{server.url}/v1/api.json")
        assert server.asked == ["/v1/api.json"]

    async def test_a_file_that_is_not_there_is_said_where_it_is_asked_for(
        self, server: Server, outbound: Outbound
    ) -> None:
        server.files["/api.json"] = json.dumps(document(definitions={"A": {"$ref": "b.json"}})).encode()
        with pytest.raises(DocumentError, match=r"^api\.json#/definitions/A: b\.json .* answers 404"):
            await from_url(outbound, f"{server.url}/api.json")

    async def test_a_redirect_to_another_server_is_refused(self, server: Server, outbound: Outbound) -> None:
        other = Server()
        runner = await started(other)
        other.files["/api.json"] = json.dumps(document()).encode()
        server.redirects["/api.json"] = f"{other.url}/api.json"
        try:
            with pytest.raises(DocumentError, match="redirected to another server"):
                await from_url(outbound, f"{server.url}/api.json")
        finally:
            await runner.cleanup()

    async def test_a_server_that_is_down_is_a_problem_of_the_document(self, outbound: Outbound) -> None:
        gone = Server()
        await (await started(gone)).cleanup()
        with pytest.raises(DocumentError, match=r"api\.json cannot be fetched"):
            await from_url(outbound, f"{gone.url}/api.json")
