"""Small requests that mean a lot of work: each is answered soon, and the server serves others meanwhile."""

import json
import time
from typing import Any

import pytest

from tests.e2e.raw import Raw
from tests.fuzz.conftest import Victim, sound
from tests.fuzz.wire import written

pytestmark = pytest.mark.slow

MAPS = b"/api/v1/namespaces/default/configmaps"
CRDS = b"/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
JSON, YAML = b"application/json", b"application/yaml"
SOON = 3.0  # seconds; the machine may be busy with other tests


def doubling(count: int) -> bytes:
    """A JSON patch that would double an object with each operation."""
    operations: list[dict[str, Any]] = [{"op": "add", "path": "/data", "value": {"x": "y" * 1000}}]
    operations += [{"op": "copy", "from": "", "path": f"/metadata/annotations/n{n}"} for n in range(count)]
    return json.dumps(operations).encode()


def definition(schema: dict[str, Any], **version: Any) -> bytes:
    names = {"plural": "bombs", "kind": "Bomb"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}]
    spec = {"group": "bombs.example.com", "scope": "Namespaced", "names": names, "versions": versions}
    document = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "bombs.bombs.example.com"},
        "spec": spec,
    }
    return json.dumps(document).encode()


def ruled(rule: str, schema: dict[str, Any] | None = None) -> bytes:
    return definition({"type": "object", **(schema or {}), "x-kubernetes-validations": [{"rule": rule}]})


def nested(depth: int, inside: dict[str, Any]) -> dict[str, Any]:
    for _ in range(depth):
        inside = {"type": "object", "properties": {"a": inside}}
    return inside


LISTS = {"properties": {"l": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}}}
PATTERN = nested(1, {"type": "string", "pattern": "(((a{1,999}){1,999}){1,999}){1,999}$"})
COLUMN = {"name": "c", "type": "string", "jsonPath": ".." + "*.." * 30_000}
TESTS = json.dumps([{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 40_000).encode()
FIELDS = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "data": {f"k{n}": "" for n in range(50_000)}}).encode()
LABELS = b'{"metadata":{"name":"x","labels":{%b}}}' % b",".join(b'"k %d":""' % n for n in range(100_000))
LAUGHS = b"".join(
    b"k%d: &k%d [%b]\n" % (n, n, b", ".join([b"*k%d" % (n - 1)] * 9) if n else b"x" * 50) for n in range(20)
)
BOMBS: dict[str, tuple[str, bytes, bytes, bytes]] = {
    "objects in JSON": ("POST", MAPS, JSON, b'{"a":' * 200_000),
    "objects in whole JSON": ("POST", MAPS, JSON, b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "lists in JSON": ("POST", MAPS, JSON, b"[" * 1_000_000),
    "brackets in YAML": ("POST", MAPS, YAML, b"[" * 1_000_000),
    "braces in YAML": ("POST", MAPS, YAML, b"{a: " * 200_000),
    "dashes in YAML": ("POST", MAPS, YAML, b"- " * 500_000),
    "question marks in YAML": ("POST", MAPS, YAML, b"? " * 500_000),
    "dashes on lines of YAML": ("POST", MAPS, YAML, b"\n".join(b" " * n + b"-" for n in range(1_500))),
    "mixed block YAML": ("POST", MAPS, YAML, b"- ? " * 200_000),
    "anchors in YAML": ("POST", MAPS, YAML, b"&a " * 400_000),
    "a billion laughs": ("POST", MAPS, YAML, LAUGHS),
    "an alias of itself": ("POST", MAPS, YAML, b"&a {x: *a}"),
    "merge keys": ("POST", MAPS, YAML, b"a: &a {x: y}\n" + b"b: {<<: [%b]}\n" % b",".join([b"*a"] * 50_000)),
    "a long number": ("POST", MAPS, JSON, b'{"metadata":{"generation":' + b"9" * 1_000_000 + b"}}"),
    "a long exponent": ("POST", MAPS, YAML, b"a: 1e" + b"9" * 100_000),
    "many keys": ("POST", MAPS, JSON, b"{" + b",".join(b'"k%d":0' % n for n in range(200_000)) + b"}"),
    "the same key many times": ("POST", MAPS, JSON, b"{" + b",".join([b'"k":0'] * 400_000) + b"}"),
    "many bad labels": ("POST", MAPS, JSON, LABELS),
    "a patch that doubles": ("PATCH", MAPS + b"/bomb", b"application/json-patch+json", doubling(60)),
    "a patch of many operations": ("PATCH", MAPS + b"/bomb", b"application/json-patch+json", TESTS),
    "an apply of many fields": (
        "PATCH",
        MAPS + b"/bomb?fieldManager=m&force=true",
        b"application/apply-patch+yaml",
        FIELDS,
    ),
    "a deep merge patch": (
        "PATCH",
        MAPS + b"/bomb",
        b"application/merge-patch+json",
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    ),
    "nested protobuf": ("POST", MAPS, b"application/vnd.kubernetes.protobuf", b"k8s\x00" + b"\x0b" * 500_000),
    "a deep schema": ("POST", CRDS, JSON, definition(nested(80, {"type": "string"}))),
    "a rule without bounds": (
        "POST",
        CRDS,
        JSON,
        ruled("self.l.all(a, self.l.all(b, a.all(c, b.all(d, c == d))))", LISTS),
    ),
    "a long rule": ("POST", CRDS, JSON, ruled("(" * 50_000 + "true" + ")" * 50_000)),
    "a rule of many terms": ("POST", CRDS, JSON, ruled(" && ".join(["true"] * 50_000))),
    "a rule of many signs": ("POST", CRDS, JSON, ruled("!" * 100_000 + "true")),
    "a pattern": ("POST", CRDS, JSON, definition(PATTERN)),
    "a column": ("POST", CRDS, JSON, definition({"type": "object"}, additionalPrinterColumns=[COLUMN])),
    "a long label selector": ("GET", MAPS + b"?labelSelector=" + b",".join([b"a%20in%20(b,c)"] * 3_000), b"", b""),
    "a broken label selector": ("GET", MAPS + b"?labelSelector=" + b"(" * 50_000, b"", b""),
    "a long field selector": ("GET", MAPS + b"?fieldSelector=" + b",".join([b"metadata.name!=b"] * 3_000), b"", b""),
    "a long token to continue": ("GET", MAPS + b"?limit=1&continue=" + b"A" * 50_000, b"", b""),
}


@pytest.fixture(scope="module", autouse=True)
def bomb(running: Victim) -> None:
    """What the patches are for."""
    body = {"metadata": {"name": "bomb", "annotations": {"a": "b"}}}
    assert Raw(running.server, admin=True)("POST", MAPS.decode(), body).code == 201


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_answered_soon(name: str, victim: Victim) -> None:
    method, target, media, body = BOMBS[name]
    headers = [*victim.headers["admin"], (b"Content-Type", media)]
    data = written(method, target, headers, body or None)
    with victim.line("admin") as line:
        started = time.monotonic()
        line.send(data)
        reply = line.reply(within=20)
        took = time.monotonic() - started
    assert reply is not None, "no answer"
    assert sound(reply, data), reply
    assert took < SOON
