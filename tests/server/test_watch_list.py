"""A watch that begins with the list (sendInitialEvents), asked of our server and of a real one."""

from __future__ import annotations

import base64
import subprocess
from typing import Any

import orjson
import pytest

from tests.server.api import Api
from trimtab.testing.peer import ApiServer

BEGUN = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"
SPACES = "/api/v1/namespaces?fieldSelector=metadata.name=default"


@pytest.fixture(params=["trimtab_server", pytest.param("real_cluster", marks=pytest.mark.cluster)])
def peer(request: pytest.FixtureRequest) -> ApiServer:
    found: ApiServer = request.getfixturevalue(request.param)
    return found


def asked(peer: ApiServer, query: str) -> list[dict[str, Any]]:
    command = ["kubectl", "--kubeconfig", str(peer.kubeconfig), "get", "--raw", f"{SPACES}&{query}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [orjson.loads(line) for line in ran.stdout.splitlines()]


@pytest.mark.parametrize("since", ["", "&resourceVersion=0", "&resourceVersion=1"])
def test_the_list_comes_first_and_a_bookmark_ends_it(peer: ApiServer, since: str) -> None:
    events = asked(peer, BEGUN + since)
    assert [(one["type"], one["object"]["metadata"].get("name")) for one in events[:1]] == [("ADDED", "default")]
    end = events[1]
    assert (end["type"], end["object"]["kind"]) == ("BOOKMARK", "Namespace")
    notes = end["object"]["metadata"]["annotations"]
    assert notes["k8s.io/initial-events-end"] == "true"
    assert base64.b64decode(notes["kubernetes.io/initial-events-list-blueprint"]) == (
        b'{"kind":"NamespaceList","apiVersion":"v1","metadata":{},"items":null}\n'
    )


def test_a_state_that_is_not_there_yet_is_waited_for_and_not_made_up(peer: ApiServer) -> None:
    events = asked(peer, f"{BEGUN}&resourceVersion=4000000000")
    assert [one["type"] for one in events] == ["ERROR"]
    status = events[0]["object"]
    assert (status["code"], status["reason"]) == (504, "Timeout")
    assert status["message"].startswith("Timeout: Too large resource version: 4000000000, current: ")
    assert status["details"]["causes"] == [
        {"message": "Too large resource version", "reason": "ResourceVersionTooLarge"},
    ]


def test_without_bookmarks_the_list_just_comes(peer: ApiServer) -> None:
    assert [one["type"] for one in asked(peer, BEGUN.replace("&allowWatchBookmarks=true", ""))] == ["ADDED"]


def test_continue_is_refused_in_the_same_words(peer: ApiServer) -> None:
    command = ["kubectl", "--kubeconfig", str(peer.kubeconfig), "get", "--raw", f"{SPACES}&{BEGUN}&continue=x"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided" in ran.stderr


async def test_tables_have_no_place_for_the_end_of_the_list(api: Api) -> None:
    answer = await api.get(f"/api/v1/namespaces?{BEGUN}", accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    assert (answer.code, answer.doc["reason"]) == (406, "NotAcceptable")
