"""What a real kube-apiserver answers to the samples, in a form that can be kept and compared.

`python -m tests.server.builtin_real KUBECONFIG` asks one (without controllers) and records `test_builtin_answers.json`.
"""

from __future__ import annotations

import http.client
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from tests.server.builtin_samples import CHANGES, SAMPLES
from trimtab.model.kind import Kind
from trimtab.server.builtin import strategies
from trimtab.server.builtin.native import Native
from trimtab.testing.peer import read_access

ANSWERS = Path(__file__).with_name("test_builtin_answers.json")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
VARYING = ("uid", "resourceVersion", "managedFields", "creationTimestamp", "selfLink")

Answer = dict[str, Any]
Ask = Callable[..., tuple[int, bytes]]


def strategy_of(group: str, kind: str) -> Native:
    """The strategy of a kind; `group` may be an apiVersion, where the version matters."""
    return next(s for s in strategies() if group in (s.kind.group, s.kind.api_version) and s.kind.kind == kind)


def whole(kind: Kind, sample: dict[str, Any]) -> dict[str, Any]:
    """A sample as a complete object."""
    metadata = {"name": "sample", **({"namespace": "default"} if kind.namespaced else {}), **sample.get("metadata", {})}
    return json.loads(json.dumps({"apiVersion": kind.api_version, "kind": kind.kind, **sample, "metadata": metadata}))


def normal(document: dict[str, Any]) -> dict[str, Any]:
    """An object without what differs from one server to the next."""
    document = json.loads(without_uids(json.dumps(document)))
    for field in VARYING:
        document["metadata"].pop(field, None)
    for condition in _conditions(document) if document["kind"] == "APIService" else ():
        condition["lastTransitionTime"] = "TIME"
    spec = document.get("spec")
    if document["kind"] == "Service" and isinstance(spec, dict):
        if spec.get("clusterIP", "None") != "None":
            spec |= {"clusterIP": "ALLOCATED", "clusterIPs": ["ALLOCATED"]}
        for port in spec.get("ports", ()):
            if "nodePort" in port:
                port["nodePort"] = "ALLOCATED"
    return document


def without_uids(text: str) -> str:
    """A text in which all uids look alike: those of Jobs are in labels, selectors and messages."""
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", text)


def normal_cells(cells: list[Any]) -> list[Any]:
    texts = (re.sub(r"^(\d+[ydhms])+$|^\d{4}-.*Z$", "AGE", cell) if isinstance(cell, str) else cell for cell in cells)
    return [
        without_uids(re.sub(r":3\d{4}/|^10\..*", "ALLOCATED", cell)) if isinstance(cell, str) else cell
        for cell in texts
    ]


@contextmanager
def asking(kubeconfig: Path) -> Iterator[Ask]:
    access = read_access(kubeconfig)
    where = urlsplit(access.url)
    connection = http.client.HTTPSConnection(where.hostname or "", where.port, context=access.tls(), timeout=30)

    def ask(method: str, path: str, body: Any = None, accept: str = "application/json") -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json", "Accept": accept}
        connection.request(method, path, None if body is None else json.dumps(body, separators=(",", ":")), headers)
        response = connection.getresponse()
        return response.status, response.read()

    try:
        yield ask
    finally:
        connection.close()


def folder(kind: Kind) -> str:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    return f"{root}/namespaces/default/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


def created(ask: Ask, group: str, name: str, sample: dict[str, Any]) -> Answer:
    """What becomes of one sample; what is made is removed again."""
    kind = strategy_of(group, name).kind
    document = whole(kind, sample)
    status, body = ask("POST", folder(kind), document)
    if status != 201:
        return failure(status, body)
    path = f"{folder(kind)}/{quote(document['metadata']['name'])}"
    table = json.loads(ask("GET", path, None, TABLE)[1])
    names = ("name", "type", "format", "priority")
    columns = [[column[word] for word in names] for column in table["columnDefinitions"]]
    remove(ask, kind, path)
    cells = normal_cells(table["rows"][0]["cells"])
    return {"code": status, "object": normal(json.loads(body)), "columns": columns, "cells": cells}


def changed(ask: Ask, group: str, name: str, old: dict[str, Any], new: dict[str, Any], subresource: str) -> Answer:
    kind = strategy_of(group, name).kind
    before, after = whole(kind, old), whole(kind, new)
    path = f"{folder(kind)}/{quote(before['metadata']['name'])}"
    status, body = ask("POST", folder(kind), before)
    assert status == 201, body
    if name == "CustomResourceDefinition":
        until(ask, path, lambda crd: {"Established": "True"} in [{c["type"]: c["status"]} for c in _conditions(crd)])
    status = 409
    while status == 409:  # controllers of the real server write too
        live = json.loads(ask("GET", path)[1])["metadata"]
        after["metadata"] |= {"resourceVersion": live["resourceVersion"], "name": live["name"]}
        status, body = ask("PUT", f"{path}/{subresource}" if subresource else path, after)
    table = json.loads(ask("GET", path, None, TABLE)[1])
    remove(ask, kind, path)
    if status != 200:
        return failure(status, body)
    cells = normal_cells(table["rows"][0]["cells"])
    return {"code": status, "object": without_controllers(normal(json.loads(body))), "cells": cells}


def without_controllers(document: dict[str, Any]) -> dict[str, Any]:
    """An object without what the controller of definitions wrote."""
    if document["kind"] == "CustomResourceDefinition":
        document["status"] = {"storedVersions": document["status"]["storedVersions"]}
    return document


def _conditions(document: dict[str, Any]) -> list[dict[str, str]]:
    return document.get("status", {}).get("conditions") or []


def failure(status: int, body: bytes) -> Answer:
    causes = json.loads(body).get("details", {}).get("causes", [])
    return {"code": status, "causes": sorted({(cause["field"], without_uids(cause["message"])) for cause in causes})}


def until(ask: Ask, path: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + 20
    while True:
        _, body = ask("GET", path)
        document: dict[str, Any] = json.loads(body)
        if holds(document) or time.monotonic() > deadline:
            return document
        time.sleep(0.05)  # the other side is a server with controllers of its own


def remove(ask: Ask, kind: Kind, path: str) -> None:
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    ask("DELETE", path, {**options, "propagationPolicy": "Background"})
    if kind.kind == "Namespace":
        document = json.loads(ask("GET", path)[1])
        ask("PUT", f"{path}/finalize", {**document, "spec": {"finalizers": []}})
    if kind.kind == "CustomResourceDefinition":
        until(ask, path, lambda document: document.get("code") == 404)


def all_answers(ask: Ask) -> dict[str, Answer]:
    made = {case: created(ask, group, name, sample) for case, group, name, sample in SAMPLES}
    return made | {case: changed(ask, *change) for case, *change in CHANGES}


if __name__ == "__main__":
    with asking(Path(sys.argv[1])) as real:
        lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v, sort_keys=True)}" for k, v in all_answers(real).items())
    ANSWERS.write_text(f"{{\n{lines}\n}}\n")
