"""Random requests: real paths, queries and headers of the Kubernetes API with something wrong in them."""

from random import Random
from typing import NamedTuple
from urllib.parse import quote

from tests.fuzz import documents, wire


class Ask(NamedTuple):
    """A request that is whole HTTP, whatever it says."""

    method: str
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes | None

    def written(self, *more: tuple[bytes, bytes]) -> bytes:
        return wire.written(self.method, self.target, (*self.headers, *more), self.body)


ROOTS = {
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    "namespaces": "/api/v1",
    "selfsubjectaccessreviews": "/apis/authorization.k8s.io/v1",
    "deployments": "/apis/apps/v1/namespaces/default",
    "leases": "/apis/coordination.k8s.io/v1/namespaces/default",
    "roles": "/apis/rbac.authorization.k8s.io/v1/namespaces/default",
    "beacons": "/apis/ground.example.com/v1/namespaces/default",
}
OTHER_PATHS = [
    "/", "/api", "/apis", "/api/v1", "/apis/apps", "/version", "/healthz", "/readyz", "/livez", "/metrics",
    "/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/openapi/v3/nothing", "/api/v1/watch/configmaps",
    "/api/v1/namespaces/default/pods/x/log", "/api/v1/namespaces/default/pods/x/exec", "/api/v1/componentstatuses",
    "/apis/metrics.k8s.io/v1beta1/pods", "//api//v1", "/api/v1/../v1", "/api/v1/namespaces/default",
    "/api/v1/namespaces//configmaps", "/api/v1/namespaces/%2e%2e/configmaps", "/%00", "/api/v1/\xff", "*", "",
    "http://localhost/api", "/api/v1/namespaces/" + "x" * 5000, "/apis/ground.example.com/v2/beacons",
    "/.well-known/openid-configuration",
]  # fmt: skip
VALUES = [
    "", "0", "1", "-1", "true", "false", "abc", "1.5", "99999999999999999999", "18446744073709551616", "é", "\0",
    "%", "a=b", "a==b,c!=d", "a in (b,c),!d", "a in (", "metadata.name=words",
    "metadata.name=words,metadata.namespace=default", "spec.site=cape", "x.y=z", "All", "Strict", "Warn", "Ignore",
    "Background", "Foreground", "Orphan", "Exact", "NotOlderThan", "x" * 2000, "eyJ2IjoiIn0", "AAAA", "null", "[]",
    "=", "==", "!",
]  # fmt: skip
PARAMETERS = [
    "watch", "resourceVersion", "resourceVersionMatch", "limit", "continue", "labelSelector", "fieldSelector",
    "timeoutSeconds", "pretty", "dryRun", "fieldManager", "fieldValidation", "force", "gracePeriodSeconds",
    "propagationPolicy", "orphanDependents", "allowWatchBookmarks", "sendInitialEvents", "timeout", "as",
    "includeObject", "nonsense",
]  # fmt: skip
ACCEPTS = [
    b"*/*", b"application/json", b"application/yaml", b"application/vnd.kubernetes.protobuf", b"text/html", b"",
    b";;;", b"application/json;q=2", b"application/json;as=Table;v=v1;g=meta.k8s.io",
    b"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", b"a/b;" * 500,
    b"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
    b"application/json;as=Nothing;g=x;v=y", b"\xff\xfe",
    b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    b"application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
]  # fmt: skip
ODD_HEADERS = [
    (b"Impersonate-User", b"ann"), (b"Impersonate-Group", b"system:masters"), (b"Impersonate-Uid", b"1"),
    (b"Impersonate-User", b""), (b"Impersonate-Extra-%zz", b"x"), (b"Impersonate-User", b"\xff"),
    (b"Content-Encoding", b"gzip"), (b"Accept-Encoding", b"gzip"), (b"If-None-Match", b"*"), (b"If-Match", b'"x"'),
    (b"Range", b"bytes=0-1"), (b"X-Forwarded-For", b"1.2.3.4"), (b"Expect", b"100-continue"),
    (b"Cookie", b"a=b" * 500), (b"User-Agent", b"\xf0\x9f\x98\x80"), (b"X-Remote-User", b"admin"),
    (b"Origin", b"null"), (b"Audit-Id", b"x" * 2000),
]  # fmt: skip


def ask(random: Random) -> Ask:
    resource = random.choice(list(documents.OBJECTS))
    method = random.choice(
        ["GET"] * 4 + ["POST"] * 5 + ["PUT"] * 3 + ["PATCH"] * 5 + ["DELETE", "HEAD", "OPTIONS", "TRACE", "MKCOL"]
    )
    path = target(random, resource, method)
    headers: list[tuple[bytes, bytes]] = []
    body: bytes | None = None
    if method in ("POST", "PUT", "PATCH") or random.random() < 0.1:
        body, media = (documents.patch if method == "PATCH" else documents.body)(random, resource)
        headers.append((b"Content-Type", media))
    if random.random() < 0.5:
        headers.append((b"Accept", random.choice(ACCEPTS)))
    while random.random() < 0.15:
        headers.append(random.choice(ODD_HEADERS))
    return Ask(method, path, tuple(headers), body)


def target(random: Random, resource: str, method: str) -> bytes:
    if random.random() < 0.1:
        path = random.choice(OTHER_PATHS)
    else:
        path = f"{ROOTS.get(resource, '/api/v1/namespaces/default')}/{resource}"
        if method != "POST" or random.random() < 0.1:
            # a collection is deleted now and then only: there would be little left to talk about
            path += random.choice(
                [
                    f"/n{random.randrange(6)}",
                    f"/n{random.randrange(6)}",
                    "/words",
                    "" if method != "DELETE" else "/x",
                    "/",
                    "/a b",
                    "/é",
                ]
            )
        if random.random() < 0.15:
            path += random.choice(
                [
                    "/status",
                    "/scale",
                    "/token",
                    "/log",
                    "/finalize",
                    "/nothing",
                    "/status/",
                    "/eviction",
                    "/binding",
                    "/proxy/a/b",
                ]
            )
    encoded = path.encode() if random.random() < 0.03 else quote(path, safe="/%*:").encode()
    names = [name for name in PARAMETERS if random.random() < 0.02]
    pairs = [f"{name}={quote(random.choice(VALUES))}" for name in names]
    if random.random() < 0.02:
        pairs.append(random.choice(["&" * 300, "a=%zz", "=", "%00=%00", "a=b;c=d", "a=1&" * 300]))
    encoded = encoded.replace(b" ", b"%20").replace(b"\0", b"%00")
    return encoded + (b"?" + "&".join(pairs).encode() if pairs else b"")
