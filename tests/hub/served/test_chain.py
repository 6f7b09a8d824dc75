"""The chain of proxies as a process has it: all of them, in their order, for every kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.hub.served.conftest import INFRA, Home, addon
from trimtab.client.protocol import Named
from trimtab.hub.contract import ApplyOptions
from trimtab.model.errors import StatusError
from trimtab.server.audit.log import AuditLog
from trimtab.server.audit.policy import policy_of
from trimtab.server.audit.trail import Auditor


def layers(accessor: Any) -> Iterator[str]:
    while accessor is not None:
        yield type(accessor).__name__
        accessor = getattr(accessor, "inner", None)


@pytest.mark.row(21)
async def test_every_kind_is_served_through_the_whole_chain_in_its_order(home: Home) -> None:
    above, below = ["Validate", "Default", "Version", "Lineage", "View"], ["Hydrate", "Cached", "StorageAccessor"]

    def wanted(kind: str) -> list[str]:
        return [*above, *(["Inhabited"] if kind == "Project" else []), *below]

    for registered in home.hub.scheme.registered():
        accessor = home.hub.registry.accessor(registered.kind.resource)
        assert list(layers(accessor)) == ["Auth", *wanted(registered.kind.kind)], registered.kind.resource
    for backend in home.hub.backends:
        assert list(layers(backend.accessor)) in (wanted("Project"), wanted("Addon"))


@pytest.mark.row(21)
async def test_who_may_not_is_told_so_before_what_is_wrong(home: Home) -> None:
    accessor = home.hub.registry.accessor("addons.infra.trimtab.dev")
    wrong = {**addon(), "spec": {"colour": "red"}}
    with pytest.raises(StatusError) as refusal:
        await accessor.apply(wrong, ApplyOptions(project="default", user="bob"))
    assert refusal.value.code == 403


@pytest.mark.row(21)
async def test_what_is_asked_of_the_hub_is_in_the_servers_audit_log_before_anything_is_decided(
    home: Home, tmp_path: Path
) -> None:
    """Audit is no proxy of the chain: the server's own tells of hub kinds as of all others."""
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
    log = AuditLog(str(tmp_path / "audit.log"), now=home.server.clock.now)
    home.server.audit = Auditor(policy_of(policy), log, home.server.clock)
    await home.apply(addon())
    with pytest.raises(StatusError):
        await home.as_user("bob").get(Named(INFRA, "Addon"), "nginx", "default")
    log.close()
    events = [orjson.loads(line) for line in (tmp_path / "audit.log").read_bytes().splitlines()]
    told = [
        (event["stage"], event["user"]["username"], event["verb"], event.get("responseStatus", {}).get("code"))
        for event in events
        if event.get("objectRef", {}).get("resource") == "addons"
    ]
    assert told == [
        ("RequestReceived", "ada", "patch", None),
        ("ResponseComplete", "ada", "patch", 201),
        ("RequestReceived", "bob", "get", None),
        ("ResponseComplete", "bob", "get", 403),
    ]
