"""Published versions are read as they were."""

from __future__ import annotations

import pytest

from tests.hub.kit import Plan, Service, plan
from trimtab.hub.contract import ApplyOptions, GetOptions, Missing, Refused
from trimtab.hub.proxies.version import Version, is_versioned
from trimtab.hub.storage.contract import Snapshot
from trimtab.model.hub import HubResource


@pytest.fixture
async def service() -> Service:
    made = Service()
    sharing = {"enabled": True, "projects": [{"name": "*"}]}
    document = plan(spec={"version": "v2", "replicas": 2, "sharing": sharing}, status={"phase": "Ready"})
    await made.apply(document, ApplyOptions(project="red"))
    made.snapshots["red", "a"] = [
        Snapshot(version="v1", body={"version": "v1", "replicas": 1}),
        Snapshot(version="v2", body={"version": "v2", "replicas": 2}),
    ]
    return made


@pytest.mark.row(28)
async def test_a_version_is_read_with_the_sharing_of_now_and_without_the_status_of_now(service: Service) -> None:
    found = await Version(service, "Plan").get("a", GetOptions(project="red", version="v1"))
    assert found["spec"]["replicas"] == 1
    assert found["spec"]["sharing"] == {"enabled": True, "projects": [{"name": "*"}]}
    assert "status" not in found


@pytest.mark.row(28)
async def test_latest_is_what_was_published_last(service: Service) -> None:
    found = await Version(service, "Plan").get("a", GetOptions(project="red", version="latest"))
    assert found["spec"]["version"] == "v2"
    assert found["status"] == {"phase": "Ready"}


@pytest.mark.row(28)
async def test_a_draft_does_not_hide_the_latest(service: Service) -> None:
    await service.apply(plan(spec={"version": "", "replicas": 9}), ApplyOptions(project="red"))
    proxy = Version(service, "Plan")
    assert (await proxy.get("a", GetOptions(project="red")))["spec"]["replicas"] == 9
    assert (await proxy.get("a", GetOptions(project="red", version="latest")))["spec"]["replicas"] == 2


@pytest.mark.row(28)
async def test_an_unknown_version_is_missing_and_the_known_ones_are_told(service: Service) -> None:
    with pytest.raises(Missing, match="it has v1, v2"):
        await Version(service, "Plan").get("a", GetOptions(project="red", version="v3"))
    service.snapshots.clear()
    with pytest.raises(Missing, match="no published version"):
        await Version(service, "Plan").get("a", GetOptions(project="red", version="latest"))


async def test_a_kind_without_versions_says_so(service: Service) -> None:
    with pytest.raises(Refused, match="no published versions"):
        await Version(service, "Plan", versioned=False).get("a", GetOptions(project="red", version="v1"))


@pytest.mark.row(28)
def test_a_class_with_a_version_is_versioned() -> None:
    class Other(HubResource, group="infra", version="v3"):
        pass

    assert is_versioned(Plan)
    assert not is_versioned(Other)
    assert not is_versioned(None)
