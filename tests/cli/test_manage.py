"""`--manage-crds`: whether systems may define kinds is for the home to say, in the manifests and in the controllers."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimtab.cli import controllers, install
from trimtab.cli.means import means
from trimtab.client.api import ApiClient
from trimtab.model import kubernetes
from trimtab.model.scheme import Scheme
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.system import Context, Rule, System
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore

DEFINES = Rule(kinds=("customresourcedefinitions.apiextensions.k8s.io",), verbs=("create",))
MAKER = System(name="maker", managed_rules=(DEFINES,))
OTHER = System(name="other")


def manifest(*, manage: bool) -> tuple[list[str], set[str]]:
    """Which systems are started with the option, and which verbs on definitions are granted."""
    documents = install.manifest([MAKER, OTHER], Scheme(), install.Options(manage=manage))
    started = [
        document["metadata"]["name"]
        for document in documents
        if document["kind"] == "Deployment"
        and "--manage-crds" in document["spec"]["template"]["spec"]["containers"][0]["args"]
    ]
    rules = [rule for document in documents for rule in document.get("rules", ())]
    return started, {
        verb for rule in rules for verb in rule["verbs"] if "customresourcedefinitions" in rule["resources"]
    }


def test_without_it_nobody_may_define_kinds() -> None:
    assert manifest(manage=False) == ([], set())


def test_with_it_a_system_that_defines_kinds_may_and_is_told_so() -> None:
    assert manifest(manage=True) == (["maker"], {"create"})


@pytest.mark.parametrize(
    ("options", "manage"),
    [({}, False), ({"manage": True}, True), ({"socket": Path("server.sock")}, True)],
    ids=["cluster", "--manage-crds", "embedded"],
)
async def test_controllers_learn_it_and_know_who_runs_them(
    options: dict[str, object], manage: bool, tmp_path: Path
) -> None:
    seen: list[Context] = []

    def made(context: Context) -> tuple[()]:
        seen.append(context)
        return ()

    given = controllers.Options(data_dir=tmp_path, elect=False, **options)  # type: ignore[arg-type]
    manager = await _manager(System(name="maker", controllers=made), given)
    (context,) = seen
    assert (context.manage, context.manager) == (manage, manager)


async def _manager(system: System, options: controllers.Options) -> Manager:
    store = MemoryStore()
    server = Server(store)
    await server.start()
    try:
        admin = User("admin", groups=(MASTERS, "system:authenticated"))
        client: ApiClient = local_client(server, admin, kubernetes.register(Scheme()))
        async with means(options) as given:
            return controllers._manager(system, client, Metrics(), given, options)
    finally:
        await server.stop()
        await store.close()
