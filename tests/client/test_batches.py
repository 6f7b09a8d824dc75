"""Many applies at once, by each transport that can."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trimtab.client.api import APPLY, ApiClient
from trimtab.client.batches import replies_of
from trimtab.client.http import HttpTransport
from trimtab.client.transport import Batching, Call, Reply
from trimtab.model.errors import StatusError


def call(namespace: str, name: str, data: Any) -> Call:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
    query = {"fieldManager": "a b", "force": "true"}
    return Call(method="PATCH", path=path, query=query, body=json.dumps(body).encode(), content_type=APPLY)


async def test_answers_are_those_of_calls(client: ApiClient, namespace: str) -> None:
    transport = client.transport
    assert isinstance(transport, Batching)
    if not transport.batches:  # over the network, where any server may be
        assert isinstance(transport, HttpTransport)
        assert not transport.config.socket
        return
    calls = [call(namespace, "one", {"a": "1"}), call("nowhere", "two", {}), call(namespace, "three", {"a": "3"})]
    one, two, three = await transport.batch(calls)
    assert isinstance(one, Reply)
    assert isinstance(three, Reply)
    assert json.loads(three.body)["data"] == {"a": "3"}
    assert json.loads(three.body)["metadata"]["managedFields"][0]["manager"] == "a b"
    assert isinstance(two, StatusError)
    assert (two.code, two.reason, two.message) == (404, "NotFound", 'namespaces "nowhere" not found')


@pytest.mark.parametrize("body", [b"{}", b"[]", b"page", b'[{"code":200,"body":{}},{"code":200,"body":{}}]'])
def test_other_answers_are_told(body: bytes) -> None:
    with pytest.raises(StatusError, match="batch"):
        replies_of(body, 1)
