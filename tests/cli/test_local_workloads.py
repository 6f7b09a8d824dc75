"""Options of `trimtab up` for a laptop: whether Deployments run here at all, and which Prometheus is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Program
from trimtab.cli import controllers, up
from trimtab.cli.means import means
from trimtab.cli.systems import LOCAL, NoSystem, installed, load, scheme_of
from trimtab.client.api import ApiClient
from trimtab.model import kubernetes
from trimtab.model.scheme import Scheme
from trimtab.model.yaml import load_all
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.system import Context, System
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore

ADMIN = User("admin", groups=(MASTERS, "system:authenticated"))


def command(chosen: str, *, prometheus: str = "", local: bool = False) -> tuple[str, ...]:
    """Of the second process."""
    return up._controllers(Path("data"), chosen, (), "auto", prometheus, local).command


def test_local_workloads_are_no_part_of_all() -> None:
    assert LOCAL not in installed()
    assert LOCAL not in [system.name for system in load("all")]


def test_asking_for_them_by_name_says_which_option_allows_them() -> None:
    with pytest.raises(NoSystem, match="commands of this machine: say so by `trimtab up --local-workloads`"):
        load("rest,local")


@pytest.mark.parametrize(
    ("chosen", "found"), [("none", ["local"]), ("local", ["local"]), ("rest,local", ["rest", "local"])]
)
def test_the_option_adds_them_to_whatever_is_chosen(chosen: str, found: list[str]) -> None:
    assert [system.name for system in load(chosen, local=True)] == found


def test_the_server_passes_the_option_on() -> None:
    assert command("none", local=True)[-1] == "--local-workloads"
    assert "--local-workloads" not in command("rest")


def test_the_server_passes_the_address_of_prometheus_on() -> None:
    assert command("rest", prometheus="http://127.0.0.1:9090")[-2:] == ("--prometheus", "http://127.0.0.1:9090")
    assert "--prometheus" not in command("rest")


def test_the_program_refuses_them_without_the_option(bare: Program) -> None:
    ran = bare("up", "--systems", "local", "--port", "0")
    assert ran.code == 1
    assert "--local-workloads" in ran.err


def test_controllers_of_a_cluster_never_run_them(bare: Program) -> None:
    ran = bare("controllers", "--systems", "none", "--local-workloads", "--kubeconfig", "nowhere")
    assert ran.code == 1
    assert "an option of `trimtab up`" in ran.err


def test_controllers_do_not_show_the_option(bare: Program) -> None:
    assert "--local-workloads" not in bare("controllers", "--help").out
    assert "--local-workloads" in bare("up", "--help").out


@pytest.mark.parametrize("name", ["up", "controllers"])
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("prometheus:9090", "is no URL"),
        ("ftp://prometheus", "is no URL"),
        ("http://", "is no URL"),
        ("http://prometheus:port", "is no URL"),
        ("http://a b", "is no URL"),
        ("http://me:secret@prometheus:9090", "no credentials"),
        ("http://prometheus/?token=secret", "no ?query"),
    ],
)
def test_an_address_that_is_none_is_wrong_usage(bare: Program, name: str, url: str, why: str) -> None:
    ran = bare(name, "--systems", "none", "--prometheus", url)
    assert ran.code == 2
    assert why in " ".join(ran.err.replace("│", " ").split())
    assert "secret" not in ran.err.replace("secretRef", "")


@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "cluster"])
async def test_controllers_learn_the_address_and_the_home(embedded: bool, tmp_path: Path) -> None:
    seen: list[Context] = []

    def made(context: Context) -> tuple[()]:
        seen.append(context)
        return ()

    options = controllers.Options(
        data_dir=tmp_path / "x" / "..", elect=False, prometheus="http://p:9090", socket=Path("s") if embedded else None
    )
    store = MemoryStore()
    server = Server(store)
    await server.start()
    try:
        client: ApiClient = local_client(server, ADMIN, kubernetes.register(Scheme()))
        async with means(options) as given:
            controllers._manager(System(name="maker", controllers=made), client, Metrics(), given, options)
    finally:
        await server.stop()
        await store.close()
    (context,) = seen
    assert context.prometheus == "http://p:9090"
    assert context.data_dir == (tmp_path if embedded else None)


def test_kinds_of_others_are_known_and_printed_apart(bare: Program) -> None:
    assert scheme_of(load("all")).kind("networking.istio.io/v1", "VirtualService") is not None
    assert "istio.io" not in bare("crds").out
    borrowed = bare("crds", "--borrowed", "--group", "networking")
    assert "name: virtualservices.networking.istio.io" in borrowed.out
    assert "name: destinationrules.networking.istio.io" in borrowed.out
    assert "trimtab.dev" not in borrowed.out


def test_a_cluster_gets_rights_on_kinds_of_others_and_no_definitions_of_them(bare: Program) -> None:
    printed = [document for document in load_all(bare("install", "--systems", "delivery").out) if document]
    defined = [each["metadata"]["name"] for each in printed if each["kind"] == "CustomResourceDefinition"]
    assert defined
    assert all(name.endswith(".delivery.trimtab.dev") for name in defined)
    rules = [rule for each in printed if each["kind"] == "ClusterRole" for rule in each["rules"]]
    assert any("networking.istio.io" in rule["apiGroups"] and "patch" in rule["verbs"] for rule in rules)
