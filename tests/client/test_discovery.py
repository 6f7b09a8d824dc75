"""Kinds by the names that people use, from both forms of discovery."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from trimtab.client.discovery import ApiResource, Catalogue, discover
from trimtab.client.transport import Call, Reply


def resource(plural: str, kind: str, group: str = "", version: str = "v1", **more: Any) -> ApiResource:
    return ApiResource(
        group=group, version=version, kind=kind, plural=plural, singular=kind.lower(), namespaced=True, **more
    )


EVENTS = resource("events", "Event", short_names=("ev",))
NEW_EVENTS = resource("events", "Event", "events.k8s.io")
DEPLOYMENTS = resource("deployments", "Deployment", "apps", short_names=("deploy",), categories=("all",))
OLD = resource("deployments", "Deployment", "apps", "v1beta1", categories=("all",))
CATALOGUE = Catalogue([EVENTS, DEPLOYMENTS, OLD, NEW_EVENTS])


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("deployments", DEPLOYMENTS),
        ("deployment", DEPLOYMENTS),
        ("Deployment", DEPLOYMENTS),
        ("deploy", DEPLOYMENTS),
        ("deployments.apps", DEPLOYMENTS),
        ("deployment.v1beta1.apps", OLD),
        ("events", EVENTS),
        ("events.events.k8s.io", NEW_EVENTS),
        ("nothing", None),
        ("deployments.batch", None),
    ],
)
def test_a_kind_is_found_by_each_of_its_names(word: str, found: ApiResource | None) -> None:
    assert CATALOGUE.find(word) is found


def test_a_category_has_each_kind_once() -> None:
    assert CATALOGUE.category("all") == [DEPLOYMENTS]


def test_a_label_has_the_group_only_where_there_is_one() -> None:
    assert (EVENTS.label, DEPLOYMENTS.label) == ("event", "deployment.apps")


class Old:
    """A server that knows the old form of discovery only."""

    documents: dict[str, Any] = {  # noqa: RUF012
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/api/v1": {
            "groupVersion": "v1",
            "resources": [
                {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["get"], "shortNames": ["po"]},
                {"name": "pods/log", "kind": "Pod", "namespaced": True, "verbs": ["get"]},
            ],
        },
        "/apis": {
            "kind": "APIGroupList",
            "groups": [
                {
                    "name": "g",
                    "versions": [{"groupVersion": "g/v1beta1"}, {"groupVersion": "g/v1"}],
                    "preferredVersion": {"groupVersion": "g/v1"},
                }
            ],
        },
        "/apis/g/v1": {"groupVersion": "g/v1", "resources": [{"name": "as", "kind": "A", "namespaced": False}]},
        "/apis/g/v1beta1": {"groupVersion": "g/v1beta1", "resources": []},
    }

    async def call(self, call: Call) -> Reply:
        return Reply(code=200, body=orjson.dumps(self.documents[call.path]))


async def test_a_server_without_aggregated_discovery_is_asked_group_by_group() -> None:
    found = await discover(Old())  # type: ignore[arg-type]
    assert [(r.api_version, r.plural, r.namespaced) for r in found] == [("v1", "pods", True), ("g/v1", "as", False)]
