"""The roles view, edit and admin of a namespace hold for what is in it of the hub."""

from __future__ import annotations

import asyncio

import pytest

from tests.hub.served.conftest import Home
from trimtab.model.kubernetes import register
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.rights import grants
from trimtab.server.auth.identity import AUTHENTICATED, User
from trimtab.server.auth.rbac import Attributes
from trimtab.systems.gitops.system import SYSTEM as GITOPS
from trimtab.systems.platform.system import SYSTEM as PLATFORM

INFRA, HUB, LABELLED = "infra.trimtab.dev", "hub.trimtab.dev", "infra.acme.io"


def scheme() -> Scheme:
    made = register(Scheme())
    for system in (PLATFORM, GITOPS):
        for kind in system.hub:
            made.register(kind.cls)
    return made


@pytest.fixture
async def granted(home: Home) -> Home:
    """Somebody called by the name of each role has it in the project default."""
    made = scheme()
    for system in (PLATFORM, GITOPS):
        for document in grants(system, made, suffixes=("acme.io",)):
            if document["kind"] == "ClusterRole":
                await home.apply(document)
    for role in ("view", "edit", "admin"):
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": role, "namespace": "default"},
            "roleRef": reference,
            "subjects": [{"kind": "User", "name": role}],
        }
        await home.client.create(Untyped(binding))
    async with asyncio.timeout(10):
        while not may(home, "admin", "update", f"gitsyncs.{HUB}"):  # noqa: ASYNC110 - the last to be gathered
            await asyncio.sleep(0.005)
    return home


def may(home: Home, who: str, verb: str, what: str, namespace: str = "default") -> bool:
    resource, _, part = what.partition("/")
    plural, _, group = resource.partition(".")
    asked = Attributes(User(who, groups=(AUTHENTICATED,)), verb, group, "v3", plural, part, namespace, "x")
    return home.server.authorizer.authorize(asked).allowed


@pytest.mark.row(46)
@pytest.mark.parametrize(
    ("verb", "what", "who"),
    [
        ("list", f"addons.{INFRA}", ("view", "edit", "admin")),
        ("watch", f"gitsyncs.{HUB}", ("view", "edit", "admin")),
        ("get", f"clusters.{INFRA}/status", ("view", "edit", "admin")),
        ("get", f"blueprints.{INFRA}/versions", ("view", "edit", "admin")),
        ("get", f"addons.{INFRA}/artifacts", ("edit", "admin")),
        ("update", f"addons.{INFRA}/artifacts", ("edit", "admin")),
        ("create", "workloads.apps.trimtab.dev", ("edit", "admin")),
        ("delete", f"syncconflicts.{HUB}", ("edit", "admin")),
        ("list", f"addons.{LABELLED}", ("view", "edit", "admin")),
        ("get", f"blueprints.{LABELLED}/versions", ("view", "edit", "admin")),
        ("update", f"addons.{LABELLED}/artifacts", ("edit", "admin")),
        ("create", "gitsyncs.hub.acme.io", ("edit", "admin")),
        ("lineage", f"addons.{LABELLED}", ()),
        ("get", "projects.hub.acme.io", ()),
        ("create", "roles.rbac.authorization.k8s.io", ("admin",)),
        ("lineage", f"addons.{INFRA}", ()),
        ("patch", f"clusters.{INFRA}/status", ()),
        ("get", f"projects.{HUB}", ()),
    ],
)
async def test_each_role_may_do_what_its_name_says(granted: Home, verb: str, what: str, who: tuple[str, ...]) -> None:
    assert tuple(role for role in ("view", "edit", "admin") if may(granted, role, verb, what)) == who
    assert not any(may(granted, role, verb, what, "elsewhere") for role in ("view", "edit", "admin"))
