"""A resource is the same by every way to it: its status, YAML, OpenAPI and Terraform, under every suffix."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.hub.served.conftest import INFRA, Home, addon
from tests.hub.served.test_served import answer
from trimtab.model.yaml import load
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.http import Request, Response
from trimtab.terraform.kinds.catalog import definitions


@pytest.mark.row(29)
async def test_a_status_stays_when_the_spec_is_written_again(home: Home) -> None:
    made = await home.apply(addon())
    path = f"/apis/{INFRA}/namespaces/default/addons/nginx"
    code, shown = await answer(home, f"{path}/status", "PUT", {**made, "status": {"observedGeneration": 1}})
    assert (code, shown["status"]) == (200, {"observedGeneration": 1})
    forged = {**shown, "spec": {**shown["spec"], "namespace": "edge"}, "status": {"observedGeneration": 7}}
    code, shown = await answer(home, path, "PUT", forged)
    assert (code, shown["spec"]["namespace"]) == (200, "edge")
    assert shown["status"] == {"observedGeneration": 1}
    code, shown = await answer(home, f"{path}/status")
    assert (code, shown["status"]) == (200, {"observedGeneration": 1})


@pytest.mark.row(26)
@pytest.mark.row(30)
async def test_a_resource_is_written_and_read_in_yaml_by_those_who_ask_for_it(home: Home) -> None:
    text = (
        f"apiVersion: {INFRA}\nkind: Addon\nmetadata: {{name: nginx, description: The front door.}}\n"
        "spec: {namespace: web, artifact: {uploadedYAML: {paths: [{name: a.yaml}]}}}\n"
    )
    path = f"/apis/{INFRA}/namespaces/default/addons"
    made = await yaml(home, path, "POST", text)
    assert made["metadata"]["description"] == "The front door."
    assert await yaml(home, f"{path}/nginx") == made
    assert (await yaml(home, path))["items"][0]["spec"] == made["spec"]


@pytest.mark.row(8)
@pytest.mark.row(10)
async def test_schemas_tell_defaults_and_the_group_under_every_suffix(home: Home) -> None:
    for suffix, reverse in (("trimtab.dev", "dev.trimtab"), ("acme.io", "io.acme")):
        api = f"infra.{suffix}/v3"
        code, told = await answer(home, f"/openapi/v3/apis/{api}")
        schema = told["components"]["schemas"][f"{reverse}.infra.v3.Cluster"]
        assert (code, schema["properties"]["spec"]["properties"]["probeInterval"]["default"]) == (200, "30s")
        [named] = schema["x-kubernetes-group-version-kind"]
        assert named == {"group": f"infra.{suffix}", "version": "v3", "kind": "Cluster"}


@pytest.mark.row(8)
@pytest.mark.row(10)
async def test_terraform_has_the_kinds_of_every_suffix_with_their_defaults(home: Home) -> None:
    loop = asyncio.get_running_loop()

    def get(path: str) -> Any:
        return asyncio.run_coroutine_threadsafe(answer(home, path), loop).result(30)[1]

    made = await asyncio.to_thread(definitions, get)
    found = {one.group: one for one in made if (one.kind, one.branch) == ("Cluster", ())}
    assert {"infra.trimtab.dev", "infra.acme.io"} <= found.keys()
    assert len({one.name for one in found.values()}) == len(found)
    for one in found.values():
        spec = one.root.field("spec")
        assert spec is not None
        interval = spec.shape.field("probeInterval")
        assert interval is not None
        assert interval.default == "30s"


async def yaml(home: Home, path: str, method: str = "GET", body: str = "") -> Any:
    media = b"application/yaml"
    request = Request(
        method=method,
        path=path,
        query={},
        headers={b"content-type": media, b"accept": media, b"user-agent": b"test/1"},
        body=body.encode(),
        user=User("ada", groups=(MASTERS, "system:authenticated")),
        warnings=[],
    )
    response = await home.server.handle(request)
    assert isinstance(response, Response)
    assert (response.code < 300, response.media) == (True, media)
    return load(response.body.decode())
