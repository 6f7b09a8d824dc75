"""OpenAPI v2: every kind with its schema, in JSON and in protobuf, for clients that know nothing newer."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.server.api import Api
from tests.server.test_definitions import DEFINITIONS, launch
from trimtab.model.openapi2 import schema
from trimtab.server import openapi2
from trimtab.testing.embedded import TrimtabServer

BOAT = "com.example.sea.v1.Boat"
ASKED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


async def test_every_reference_leads_somewhere_and_nothing_is_of_v3(api: Api) -> None:
    await launch(api)
    answer = await api.get("/openapi/v2")
    assert answer.doc["swagger"] == "2.0"
    known = answer.doc["definitions"]
    assert {BOAT, "io.k8s.api.apps.v1.Deployment", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"} <= known.keys()
    assert known[BOAT]["x-kubernetes-group-version-kind"] == [
        {"group": "sea.example.com", "version": "v1", "kind": "Boat"}
    ]
    assert {one for one in references(answer.doc) if one.removeprefix("#/definitions/") not in known} == set()
    assert b"components/schemas" not in answer.raw
    assert b'"requestBody"' not in answer.raw
    assert b'"anyOf":[' not in answer.raw
    put = answer.doc["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["put"]
    assert put["parameters"][0] == {
        "name": "body", "in": "body", "required": True, "schema": {"$ref": "#/definitions/io.k8s.api.apps.v1.Deployment"},
    }  # fmt: skip


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ({"type": "integer", "default": 1, "minimum": 0}, {"type": "integer", "minimum": 0}),
        ({"type": "string", "nullable": True, "description": "d"}, {"description": "d"}),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "string"}]}, {"x-kubernetes-int-or-string": True}),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}},
            {"x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            {"description": "d", "default": {}, "allOf": [{"$ref": "#/components/schemas/a.B"}]},
            {"description": "d", "$ref": "#/definitions/a.B"},
        ),
        ({"type": "array", "items": {"type": "string", "default": ""}}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "object", "oneOf": [{"required": ["a"]}]}, {"type": "object"}),
    ],
)
def test_what_v2_cannot_say_is_left_out(said: dict[str, Any], written: dict[str, Any]) -> None:
    assert schema(said) == written


async def test_protobuf_says_the_same(api: Api) -> None:
    await launch(api)
    plain = (await api.get("/openapi/v2")).doc
    answer = await api.get("/openapi/v2", accept=ASKED)
    assert answer.media == openapi2.PROTOBUF.decode()
    read = openapi2.message_class("Document").FromString(answer.raw)
    assert {each.name for each in read.paths.path} == {*plain["paths"]}
    found = {each.name: each.value for each in read.definitions.additional_properties}
    assert found.keys() == plain["definitions"].keys()
    boat = {each.name for each in found[BOAT].properties.additional_properties}
    assert boat == {*plain["definitions"][BOAT]["properties"]}
    extensions = {each.name: orjson.loads(each.value.yaml) for each in found[BOAT].vendor_extension}
    assert extensions["x-kubernetes-group-version-kind"][0]["kind"] == "Boat"


async def test_a_client_that_has_it_is_told_so_until_a_kind_changes(api: Api) -> None:
    await launch(api)
    tags = {
        accept: (await api.get("/openapi/v2", accept=accept)).headers["etag"] for accept in ("application/json", ASKED)
    }
    assert len({*tags.values()}) == 2
    for accept, tag in tags.items():
        assert (await api.get("/openapi/v2", accept=accept, if_none_match=tag)).code == 304
    assert (await api.delete(f"{DEFINITIONS}/boats.sea.example.com")).code == 200
    await api.until("/openapi/v2", lambda answer: BOAT.encode() not in answer.raw)
    assert (await api.get("/openapi/v2", accept=ASKED, if_none_match=tags[ASKED])).code == 200
    assert (await api.get("/openapi/v2", accept="text/html")).code == 406


GO = """
package main

import (
	"fmt"
	"os"

	openapi "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"gopkg.in/yaml.v3"
)

func main() {
	data, _ := os.ReadFile(os.Args[1])
	doc := &openapi.Document{}
	if err := proto.Unmarshal(data, doc); err != nil {
		panic(err)
	}
	for _, each := range doc.GetDefinitions().GetAdditionalProperties() {
		for _, more := range each.GetValue().GetVendorExtension() {
			var value interface{}
			if err := yaml.Unmarshal([]byte(more.GetValue().GetYaml()), &value); err != nil {
				panic(err)
			}
		}
		fmt.Println(each.GetName(), len(each.GetValue().GetProperties().GetAdditionalProperties()))
	}
	text, _ := os.ReadFile(os.Args[2])
	if _, err := openapi.ParseDocument(text); err != nil {
		panic(err)
	}
	if len(doc.ProtoReflect().GetUnknown()) != 0 {
		panic("unknown fields")
	}
}
"""


@pytest.mark.slow
def test_a_go_client_reads_both_forms(trimtab_server: TrimtabServer, tmp_path: Path) -> None:
    import http.client
    import socket

    for name, accept in (("a.pb", ASKED), ("a.json", "application/json")):
        link = http.client.HTTPConnection("trimtab")
        link.sock = socket.socket(socket.AF_UNIX)
        link.sock.connect(str(trimtab_server.kubeconfig.parent / "trimtab.sock"))
        link.request("GET", "/openapi/v2", headers={"Accept": accept})
        (tmp_path / name).write_bytes(link.getresponse().read())
        link.close()
    (tmp_path / "main.go").write_text(GO)
    (tmp_path / "go.mod").write_text(
        "module example.com/read\n\ngo 1.23\n\nrequire (\n\tgithub.com/google/gnostic-models v0.6.8\n"
        "\tgoogle.golang.org/protobuf v1.35.1\n\tgopkg.in/yaml.v3 v3.0.1\n)\n"
    )
    subprocess.run(["go", "mod", "tidy"], cwd=tmp_path, check=True, capture_output=True)
    ran = subprocess.run(
        ["go", "run", ".", "a.pb", "a.json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    counts = dict(line.split() for line in ran.stdout.splitlines())
    plain = orjson.loads((tmp_path / "a.json").read_bytes())["definitions"]
    assert counts == {name: str(len(each.get("properties") or ())) for name, each in plain.items()}
