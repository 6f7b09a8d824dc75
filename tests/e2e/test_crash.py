"""A server that is killed while it is written to: what it acknowledged is there again, and revisions go on."""

import itertools
import threading
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.e2e.raw import Raw
from trimtab.testing.embedded import TrimtabServer

pytestmark = pytest.mark.slow

MAPS = "/api/v1/namespaces/default/configmaps"


def test_nothing_acknowledged_is_lost_by_kills_during_writes(tmp_path: Path) -> None:
    acknowledged: dict[str, int] = {}
    deleted: set[str] = set()
    highest = 0
    for life in range(3):
        server = TrimtabServer(tmp_path)
        survived = read_all(server)
        assert {name: survived[name] for name in acknowledged} == acknowledged
        assert not deleted & survived.keys()
        killer = threading.Timer(0.4, server.kill)
        killer.start()
        try:
            write_until_it_ends(server, f"life{life}", acknowledged, deleted)
        finally:
            killer.join()
        assert acknowledged
        assert min(revision for name, revision in acknowledged.items() if name.startswith(f"life{life}")) > highest
        highest = max(acknowledged.values())
    with TrimtabServer(tmp_path) as server:
        survived = read_all(server)
        assert {name: survived[name] for name in acknowledged} == acknowledged
        assert not deleted & survived.keys()


def test_a_server_that_was_stopped_comes_back_with_all_it_had(tmp_path: Path) -> None:
    with TrimtabServer(tmp_path) as server:
        admin = Raw(server, admin=True)
        uid = admin("POST", MAPS, {"metadata": {"name": "words"}}).json()["metadata"]["uid"]
        authority = (server.kubeconfig.parent / "pki" / "ca.crt").read_bytes()
    with TrimtabServer(tmp_path) as server:
        assert Raw(server, admin=True)("GET", f"{MAPS}/words").json()["metadata"]["uid"] == uid
        assert (server.kubeconfig.parent / "pki" / "ca.crt").read_bytes() == authority


def write_until_it_ends(server: TrimtabServer, prefix: str, acknowledged: dict[str, int], deleted: set[str]) -> None:
    """Creates, changes and deletes until the connection breaks; keeps count of what was acknowledged only."""
    admin = Raw(server, admin=True)
    try:
        for number in itertools.count():
            name = f"{prefix}-{number}"
            answer = admin("POST", MAPS, {"metadata": {"name": name}, "data": {"text": "x" * 500}})
            acknowledged[name] = revision(answer.json())
            if number % 3 == 1:
                maybe = acknowledged.pop(name)
                answer = admin(
                    "PATCH", f"{MAPS}/{name}", {"data": {"n": "1"}}, {"Content-Type": "application/merge-patch+json"}
                )
                acknowledged[name] = revision(answer.json())
                assert acknowledged[name] > maybe
            if number % 3 == 2:
                del acknowledged[name]
                assert admin("DELETE", f"{MAPS}/{name}").code == 200
                deleted.add(name)
    except (OSError, HTTPException):
        return


def read_all(server: TrimtabServer) -> dict[str, int]:
    listed = Raw(server, admin=True)("GET", MAPS).json()["items"]
    return {item["metadata"]["name"]: revision(item) for item in listed}


def revision(document: dict[str, dict[str, str]]) -> int:
    return int(document["metadata"]["resourceVersion"])
