"""Writes that were recorded with ARM, answered again: each operation is followed to its end where ARM's own was."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from tests.systems.rest.calling_kit import VERBS, SkippingClock, World, followed, freely, model, serving
from trimtab.systems.rest.calling.contract import CallError, Request
from trimtab.systems.rest.calling.operations import Done, Failed
from trimtab.systems.rest.calling.service import Service

OURS = Path(__file__).parent / "documents" / "calling"
RECORDED = Path(__file__).parents[3].parent / "shared" / "data" / "arm-recordings"
HOST = "https://management.azure.com"
TOLD = ("location", "azure-asyncoperation", "operation-location", "retry-after", "content-type")


def interactions_of(recording: Path) -> list[dict[str, Any]]:
    return list(yaml.load(recording.read_text(), Loader=yaml.CSafeLoader)["interactions"])


async def replayed(recording: Path) -> Counter[str]:
    """How the writes of a recording end: `PUT 201 done by status`, `DELETE 404 gone`."""
    ends: Counter[str] = Counter()
    interactions = interactions_of(recording)
    for number, interaction in enumerate(interactions):
        request, response = interaction["request"], interaction["response"]
        if request["method"] in VERBS:
            outcome = await _replay(request, response, interactions[number + 1 :])
            ends[f"{request['method']} {response['code']} {outcome}"] += 1
    return ends


async def _replay(written: dict[str, Any], response: dict[str, Any], later: list[dict[str, Any]]) -> str:
    method, path = written["method"], written["url"].removeprefix(HOST)
    async with serving() as world:
        world.otherwise = _Player(world, response, later)
        clock = SkippingClock()
        async with Service(world.url, throttle=freely(clock), clock=clock) as service:
            verb = "create" if method == "PUT" else VERBS[method]
            body = json.loads(written["body"]) if written.get("body") else None
            try:
                answer = await service.call(Request(verb=verb, method=method, url=path, body=body))
            except CallError as error:
                return error.kind.value
            end, styles = await followed(service, model(), answer, method=method, resource=path)
    if isinstance(end, Failed):
        return f"failed {end.error.code} {end.error.kind.value}"
    return f"done by {styles[0]}" if isinstance(end, Done) else "done"


class _Player:
    """Gives the recorded answers to reads of a URL in their order, the last one for ever."""

    def __init__(self, world: World, first: dict[str, Any], later: list[dict[str, Any]]) -> None:
        self._world, self._first = world, first
        self._reads: dict[str, list[dict[str, Any]]] = {}
        for interaction in later:
            if interaction["request"]["method"] == "GET":
                place = _unsigned(interaction["request"]["url"].removeprefix(HOST))
                self._reads.setdefault(place, []).append(interaction["response"])

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.method != "GET":
            return self._said(self._first)
        answers = self._reads.get(_unsigned(request.raw_path))
        if answers is None:  # whoever was recorded took the first answer for the end
            return web.json_response({"error": {"code": "NotFound", "message": "not recorded"}}, status=404)
        return self._said(answers.pop(0) if len(answers) > 1 else answers[0])

    def _said(self, recorded: dict[str, Any]) -> web.Response:
        headers = {
            name: values[0].replace(HOST, self._world.url)
            for name, values in recorded["headers"].items()
            if name.lower() in TOLD
        }
        return web.Response(status=recorded["code"], body=(recorded.get("body") or "").encode(), headers=headers)


def _unsigned(url: str) -> str:
    """A monitor gets another signature with each answer, which does not make it another monitor."""
    return re.sub(r"&[tcsh]=[^&]*", "", url)


async def test_a_recording_of_our_own_ends_as_it_did() -> None:
    assert await replayed(OURS / "operations.yaml") == {
        "PUT 201 done by status": 1,
        "PUT 200 done": 1,
        "PUT 429 dependency": 1,
        "DELETE 202 done by location": 1,
        "DELETE 404 gone": 1,
    }


FAILED = {  # as ARM itself said
    "Test_Cache_Redis_20241101_CRUD": ["PUT 201 failed AzureCacheForRedisLongRunningOperationFailure unknown"],
    "Test_Networking_VirtualNetworkGateway_20240301_CRUD": ["DELETE 202 failed VmssGatewayDeploymentFailed transient"],
}


@pytest.mark.skipif(not RECORDED.is_dir(), reason="needs ../shared/data/arm-recordings")
@pytest.mark.parametrize("recording", sorted(RECORDED.glob("*.yaml")), ids=lambda path: path.stem)
async def test_operations_that_were_recorded_with_arm_end_as_they_did(recording: Path) -> None:
    ends = await replayed(recording)
    assert [end for end in ends if "failed" in end] == FAILED.get(recording.stem, [])
    assert {end for end in ends if "done" not in end and "failed" not in end} <= {
        "PUT 409 conflict",  # Conflict
        "POST 409 dependency",  # StorageAccountIsNotProvisioned
        "PUT 429 dependency",  # RetryableError, ReferencedResourceNotProvisioned
        "DELETE 400 dependency",  # it has linked servers
        "DELETE 404 gone",
        "PUT 404 dependency",
        "PUT 400 dependency",  # FailedIdentityOperation
    }
