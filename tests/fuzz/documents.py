"""Random bodies: real objects with something wrong in them, as JSON, YAML or protobuf, and plain nonsense."""

import copy
import json
from random import Random
from typing import Any

_META = {"name": "words", "labels": {"a": "b"}, "annotations": {"note": "x"}, "finalizers": [], "ownerReferences": []}
_TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}], "env": []}]},
}
OBJECTS: dict[str, dict[str, Any]] = {
    "configmaps": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _META, "data": {"a": "1"}},
    "secrets": {"apiVersion": "v1", "kind": "Secret", "metadata": _META, "type": "Opaque", "data": {"a": "YQ=="}},
    "namespaces": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "words"}},
    "serviceaccounts": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _META},
    "services": {"apiVersion": "v1", "kind": "Service", "metadata": _META, "spec": {"ports": [{"port": 80}]}},
    "pods": {"apiVersion": "v1", "kind": "Pod", "metadata": _META, "spec": _TEMPLATE["spec"]},
    "deployments": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _META,
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": _TEMPLATE},
    },
    "leases": {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": _META,
        "spec": {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 3},
    },
    "roles": {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": _META,
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    },
    "beacons": {
        "apiVersion": "ground.example.com/v1",
        "kind": "Beacon",
        "metadata": _META,
        "spec": {"site": "cape", "color": "red", "replicas": 2, "ports": [{"name": "a", "port": 1}]},
        "status": {"replicas": 1, "conditions": [{"type": "Ready", "status": "True"}]},
    },
    "customresourcedefinitions": {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                            "x-kubernetes-validations": [{"rule": "has(self.spec)"}],
                        }
                    },
                }
            ],
        },
    },
    "selfsubjectaccessreviews": {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    },
}
TEXTS = [
    "",
    "a",
    "A",
    "true",
    "null",
    "-1",
    "\0",
    "\ud7ff",
    "é",
    "a/b",
    "../..",
    "a" * 300,
    "a" * 70000,
    "{}",
    "٣",
    "\u202e",
    "😀",
    "%00",
]
SCALARS: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**40, 0.1, -0.0, 1e308, 1e-320, [], {}, *TEXTS,
]  # fmt: skip


def document(random: Random, resource: str) -> Any:
    """An object of the resource with up to four things wrong in it."""
    made: Any = copy.deepcopy(OBJECTS[resource])
    if random.random() < 0.5 and isinstance(made.get("metadata"), dict):
        made["metadata"]["name"] = f"n{random.randrange(6)}"
    for _ in range(random.choice([0, 0, 1, 1, 2, 4])):
        made = mutated(random, made)
    return made


def mutated(random: Random, value: Any) -> Any:
    """The same with one change, somewhere in it."""
    if random.random() < 0.1 or not isinstance(value, (dict, list)) or not value:
        return anything(random)
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = random.choice(keys)
    match random.randrange(6):
        case 0:
            del value[key]
        case 1 if isinstance(value, dict):
            value[random.choice(TEXTS)] = anything(random)
        case 1:
            value *= random.choice([2, 40])
        case 2:
            value[key] = anything(random)
        case _:
            value[key] = mutated(random, value[key])
    return value


def anything(random: Random, depth: int = 3) -> Any:
    if not depth or random.random() < 0.7:
        return copy.copy(random.choice(SCALARS))
    if random.random() < 0.5:
        return [anything(random, depth - 1) for _ in range(random.randrange(4))]
    return {random.choice(TEXTS[:12]): anything(random, depth - 1) for _ in range(random.randrange(4))}


def body(random: Random, resource: str) -> tuple[bytes, bytes]:
    """A body and the media type that it claims."""
    made = document(random, resource)
    match random.randrange(10):
        case 0:
            return protobuf(random, resource), b"application/vnd.kubernetes.protobuf"
        case 1:
            return nonsense(random), random.choice(MEDIA)
        case 2:
            return scrambled(random, dumps(made)), b"application/json"
        case 3:
            return scrambled(random, dumps(made)), b"application/yaml"
        case 4:
            return yaml(random), b"application/yaml"
        case _:
            return dumps(made), random.choice(
                [b"application/json", b"application/json", b"application/yaml", random.choice(MEDIA)]
            )


def patch(random: Random, resource: str) -> tuple[bytes, bytes]:
    media = random.choice([kind for kind in MEDIA if b"patch" in kind])
    if media == b"application/json-patch+json" and random.random() < 0.9:
        return dumps([operation(random) for _ in range(random.randrange(4))]), media
    if random.random() < 0.1:
        return nonsense(random), media
    made = document(random, resource)
    if random.random() < 0.3 and isinstance(made, dict):
        made[
            random.choice(
                ["$patch", "$setElementOrder/containers", "$retainKeys", "$deleteFromPrimitiveList/finalizers"]
            )
        ] = anything(random)
    return dumps(made), media


def operation(random: Random) -> Any:
    paths = [
        "",
        "/",
        "/metadata",
        "/metadata/labels/a",
        "/spec/ports/0",
        "/spec/ports/-",
        "/data/~1~0",
        "/a/~2",
        "/0",
        "/metadata/finalizers/99",
    ]
    made = {
        "op": random.choice(["add", "remove", "replace", "move", "copy", "test", "x"]),
        "path": random.choice(paths),
    }
    if random.random() < 0.8:
        made["value"] = anything(random)
    if random.random() < 0.4:
        made["from"] = random.choice(paths)
    return made if random.random() < 0.95 else anything(random)


MEDIA = [
    b"application/json", b"application/yaml", b"application/merge-patch+json", b"application/json-patch+json",
    b"application/strategic-merge-patch+json", b"application/apply-patch+yaml", b"application/apply-patch+cbor",
    b"application/cbor", b"text/plain", b"", b"application/json; charset=x", b"application/vnd.kubernetes.protobuf",
    b"\xff;",
]  # fmt: skip


def dumps(value: Any) -> bytes:
    return json.dumps(value).encode()


def nonsense(random: Random) -> bytes:
    return random.choice(
        [
            b"", b"{", b"null", b"[]", b'"text"', b"0", b"\xff\xfe", b"\0" * 10, b"{" * 5000,
            b'{"a":' * 3000 + b"1" + b"}" * 3000, b"[" * 100000, b'{"metadata":{"name":"a","name":"b"}}',
            b'{"a":1}{"b":2}', b"9" * 5000, b'{"metadata":' + b"1" * 400 + b"}", b"k8s\x00",
            b"k8s\x00\xff\xff\xff\xff", b"\xef\xbb\xbf{}",
            b'{"apiVersion":"v1","kind":"ConfigMap","data":{"\\ud800":"x"}}',
            random.randbytes(random.randrange(200)),
        ]
    )  # fmt: skip


def yaml(random: Random) -> bytes:
    return random.choice(
        [
            b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c, *c]\n", b"&a [*a]\n",
            b"a: !!python/object/apply:os.system [id]\n", b"a: !!binary x\n", b"? {a: b}\n: c\n",
            b"a: 0o17\nb: 1_000\nc: 2001-01-01\nd: .inf\ne: .nan\n", b"---\n---\n", b"%YAML 1.9\n---\na\n",
            b"a:\n\tb\n", b"- " * 100000, b"? " * 100000, b"[" * 3000, b"{a: " * 3000, b"\"\\x",
            b"a: |\n" + b" x\n" * 20000, b"<<: *x\n", b"a: &a {<<: *a}\n",
            b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y, name: z}\n1: 2\ntrue: x\n",
            b"".join(b"k%d: &k%d [%b]\n" % (n, n, b", ".join([b"*k%d" % (n - 1)] * 9) if n else b"x") for n in range(12)),
        ]
    )  # fmt: skip


def scrambled(random: Random, data: bytes) -> bytes:
    """The bytes with a few of them changed, lost or doubled."""
    changed = bytearray(data)
    for _ in range(random.randrange(1, 6)):
        where = random.randrange(len(changed) or 1)
        match random.randrange(4):
            case 0:
                changed[where : where + 1] = random.randbytes(1)
            case 1:
                del changed[where : where + random.randrange(20)]
            case 2:
                changed[where:where] = changed[where : where + random.randrange(40)]
            case _:
                del changed[where:]
    return bytes(changed)


def protobuf(random: Random, resource: str) -> bytes:
    """The envelope of Kubernetes around a message that has a name and a map, scrambled more often than not."""
    kind = OBJECTS[resource]
    name = field(1, f"n{random.randrange(6)}".encode())
    entry = field(2, field(1, b"key") + field(2, random.randbytes(5)))
    raw = (
        field(1, name)
        + entry
        + random.choice([b"", field(3, b"\xff" * 20), b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x0b" * 200])
    )
    types = field(1, kind["apiVersion"].encode()) + field(2, kind["kind"].encode())
    whole = b"k8s\x00" + field(1, types) + field(2, raw)
    return scrambled(random, whole) if random.random() < 0.7 else whole


def field(number: int, data: bytes) -> bytes:
    """A field of length-delimited type."""
    length, size = b"", len(data)
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data
