"""A real kube-apiserver still answers as recorded; discovery and protobuf agree with it too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.builtin_real import (
    ANSWERS,
    PROTOBUF,
    Ask,
    all_answers,
    asking,
    folder,
    remove,
    strategy_of,
    until,
    whole,
)
from tests.server.builtin_samples import SAMPLES
from trimtab.model.kind import Kind
from trimtab.server.builtin import reviews, strategies
from trimtab.server.builtin.protobuf import decode
from trimtab.server.builtin.tables import DEFINITIONS, descriptions
from trimtab.testing.cluster import BinariesMissing, RealCluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Without controllers, so that no admission plugin waits for what they make."""
    try:
        cluster = RealCluster(tmp_path_factory.mktemp("plain"), controllers=())
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    with cluster, asking(cluster.kubeconfig) as real:
        yield real


def test_a_real_server_answers_as_recorded(ask: Ask) -> None:
    assert json.loads(json.dumps(all_answers(ask))) == json.loads(ANSWERS.read_text())


@pytest.mark.parametrize("kind", [s.kind for s in (*strategies(), *reviews())], ids=lambda kind: kind.resource)
def test_discovery_names_a_kind_as_a_real_server_does(ask: Ask, kind: Kind) -> None:
    listed = {one["name"]: one for one in json.loads(ask("GET", kind_root(kind))[1])["resources"]}
    real = listed[kind.plural]
    strategy = next(s for s in (*strategies(), *reviews()) if s.kind is kind)
    assert {
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": sorted(strategy.verbs),
        "shortNames": list(kind.short_names),
        "categories": list(kind.categories),
        "status": kind.status,
        "scale": kind.scale is not None,
    } == {
        **{word: real.get(word) for word in ("singularName", "namespaced", "kind")},
        "verbs": sorted(real["verbs"]),
        "shortNames": real.get("shortNames", []),
        "categories": real.get("categories", []),
        "status": f"{kind.plural}/status" in listed,
        "scale": f"{kind.plural}/scale" in listed,
    }


def test_definitions_and_prose_are_those_of_a_real_server_but_for_defaults(ask: Ask) -> None:
    real: dict[str, Any] = {}
    for root in {kind_root(strategy.kind) for strategy in (*strategies(), *reviews())}:
        real |= json.loads(ask("GET", f"/openapi/v3{root}")[1])["components"]["schemas"]
    for name in DEFINITIONS.keys() & real.keys():
        prose = descriptions().get(name, {})
        ours = {**DEFINITIONS[name], **({"required": prose["required"]} if "required" in prose else {})}
        if "properties" not in ours:
            continue
        theirs = plain(real[name])
        assert {field: plain(part) for field, part in ours["properties"].items()} == {
            field: plain({word: value for word, value in part.items() if word != "description"})
            for field, part in theirs["properties"].items()
        }, name
        assert ours.get("required") == theirs.get("required"), name
        said = {f: part["description"] for f, part in theirs["properties"].items() if "description" in part}
        assert {field: text.split(ENUM)[0] for field, text in prose.get("fields", {}).items()} == said, name


ENUM = "\n\nPossible enum values:"


def kind_root(kind: Kind) -> str:
    return f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"


def plain(schema: dict[str, Any]) -> Any:
    """A schema in one notation, without what the packages that the tables are made from do not know."""
    unknown = ("default", "enum", "x-kubernetes-unions", "x-kubernetes-group-version-kind")
    result = {word: value for word, value in schema.items() if word not in unknown}
    if "description" in result:
        result["description"] = result["description"].split(ENUM)[0]
    if "properties" in result:
        result["properties"] = {field: plain(part) for field, part in result["properties"].items()}
    for word in ("items", "additionalProperties"):
        if word in result:
            result[word] = plain(result[word])
    if "allOf" in result:
        result |= result.pop("allOf")[0]
    if "$ref" in result:
        result["$ref"] = result["$ref"].rpartition("/")[2]
    return result


GOOD = [s for s in SAMPLES if json.loads(ANSWERS.read_text())[s[0]]["code"] == 201]


@pytest.mark.parametrize(("case", "group", "name", "sample"), GOOD, ids=[sample[0] for sample in GOOD])
def test_protobuf_of_a_real_server_says_what_its_json_says(
    ask: Ask, case: str, group: str, name: str, sample: dict[str, Any]
) -> None:
    kind = strategy_of(group, name).kind
    document = whole(kind, sample)
    status, _ = ask("POST", folder(kind), document)
    assert status == 201
    path = f"{folder(kind)}/{document['metadata']['name']}"
    try:
        if kind.kind == "CustomResourceDefinition":  # its controller writes too
            until(ask, path, lambda now: [c["status"] for c in now["status"]["conditions"] or ()] == ["True", "True"])
        written = json.loads(ask("GET", path)[1])
        for claim in written.get("spec", {}).get("volumeClaimTemplates") or ():
            del claim["apiVersion"], claim["kind"]  # protobuf has no types of parts: the server sets them anew
        decoded = decode(ask("GET", path, None, PROTOBUF)[1])
        assert decoded == without_nulls(written)
    finally:
        remove(ask, kind, path)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value
