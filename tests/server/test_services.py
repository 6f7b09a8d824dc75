"""Services: what is allocated for them, and who may reach their load balancers. Messages are those of kube-apiserver 1.32."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.server.api import Api
from trimtab.server.builtin.services import NODE_PORTS, SOURCE_RANGES

SERVICES = "/api/v1/namespaces/default/services"
CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
ONLY = "may only be used when `type` is 'LoadBalancer'"


def service(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "annotations": annotations or {}}, "spec": {"ports": [{"port": 80}]} | spec}


async def test_more_ports_than_nodes_have_are_refused(api: Api) -> None:
    ports = [{"name": f"p{number}", "port": number} for number in range(1, len(NODE_PORTS) + 2)]
    async with asyncio.timeout(30):
        answer = await api.post(SERVICES, service(type="NodePort", ports=ports))
        assert (answer.code, answer.doc["message"]) == (400, "failed to allocate a nodePort: range is full")
        answer = await api.post(SERVICES, service(type="NodePort", ports=ports[:-1]))
    assert answer.code == 201, answer.doc
    assert {port["nodePort"] for port in answer.doc["spec"]["ports"]} == set(NODE_PORTS)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (
            service(type="LoadBalancer", loadBalancerSourceRanges=["1.2.3.4/33", " 10.0.0.0/8 "]),
            f'spec.LoadBalancerSourceRanges[0]: Invalid value: "1.2.3.4/33": {CIDR}',
        ),
        (
            service(type="LoadBalancer", loadBalancerSourceRanges=["2001:db8::/32", "10.0.0.0"]),
            f'spec.LoadBalancerSourceRanges[1]: Invalid value: "10.0.0.0": {CIDR}',
        ),
        (
            service(loadBalancerSourceRanges=["1.2.3.0/24"]),
            f"spec.LoadBalancerSourceRanges: Forbidden: {ONLY}",
        ),
        (
            service({SOURCE_RANGES: "1.2.3.0/33"}, type="LoadBalancer"),
            f'metadata.annotations[{SOURCE_RANGES}]: Invalid value: "1.2.3.0/33": {CIDR}',
        ),
        (
            service({SOURCE_RANGES: "1.2.3.0/24"}),
            f"metadata.annotations[{SOURCE_RANGES}]: Forbidden: {ONLY}",
        ),
    ],
)
async def test_ranges_are_networks_of_a_load_balancer(api: Api, document: dict[str, Any], why: str) -> None:
    answer = await api.post(SERVICES, document)
    assert (answer.code, answer.doc["message"]) == (422, f'Service "a" is invalid: {why}')


async def test_ranges_that_are_right_are_kept(api: Api) -> None:
    right = ["10.0.0.0/8", "2001:db8::/32"]
    answer = await api.post(SERVICES, service(type="LoadBalancer", loadBalancerSourceRanges=right))
    assert (answer.code, answer.doc["spec"]["loadBalancerSourceRanges"]) == (201, right)
