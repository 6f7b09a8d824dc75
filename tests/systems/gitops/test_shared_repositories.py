"""A Repository of another project, which that one shares."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from tests.systems.gitops.desk import Desk, config
from trimtab.client.protocol import Ref
from trimtab.model.hub import HubMeta, SharedWith, Sharing
from trimtab.model.kubernetes import Namespace
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.gitops.kinds import Repository, RepositorySpec


@pytest.fixture
async def elsewhere(desk: Desk) -> AsyncIterator[str]:
    name = f"other-{uuid.uuid4().hex[:8]}"
    await desk.client.create(Namespace(metadata=ObjectMeta(name=name)))
    yield name
    await desk.client.delete(Ref(Namespace, name))


async def share(desk: Desk, namespace: str, *projects: str) -> None:
    endpoint = desk.daemon.url(f"{desk.namespace}/team")
    sharing = Sharing(enabled=True, projects=tuple(SharedWith(name=project) for project in projects))
    made = Repository(
        metadata=HubMeta(name="common", namespace=namespace), spec=RepositorySpec(endpoint=endpoint, sharing=sharing)
    )
    await desk.client.create(made)


async def test_a_sync_may_use_a_repository_that_is_shared_with_its_project(desk: Desk, elsewhere: str) -> None:
    desk.git.create("team", {"a.yaml": config("a", color="red")})
    await share(desk, elsewhere, desk.namespace)
    async with desk.working():
        await desk.sync(repository="common")
        await desk.ready()
        assert await desk.names() == ["a"]


async def test_one_that_is_shared_with_others_only_is_not_there(desk: Desk, elsewhere: str) -> None:
    desk.git.create("team", {"a.yaml": config("a", color="red")})
    await share(desk, elsewhere, "somebody-else")
    async with desk.working():
        await desk.sync(repository="common")
        await desk.reason("RepositoryMissing")
