"""`trimtab rest import`: what exists at the ARM emulator, as YAML that `trimtab apply` takes."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Any

from tests.cli.conftest import Ran
from tests.cli.rest_desk import LOCALLY, STORAGE, Desk, desk, quiet
from tests.needs import needs
from tests.systems.rest.arm_kit import DOCUMENT, GROUP
from trimtab.client.protocol import Ref
from trimtab.lab.arm import Normalise, Refused
from trimtab.model.yaml import load_all
from trimtab.systems.rest.kinds import RestDefinition

__all__ = ["desk", "quiet"]


def documents(ran: Ran) -> list[Any]:
    assert ran.code == 0, ran.err
    return list(load_all(ran.out))


async def test_what_is_imported_and_applied_becomes_ready_without_a_write(desk: Desk) -> None:
    await desk.serve()
    ran = await desk.imported("--all")
    assert [(each["kind"], each["metadata"]["name"]) for each in documents(ran)] == [
        ("ResourceGroup", "web"),
        ("StorageAccount", "files"),
        ("VirtualMachineScaleSet", "front"),
    ]
    applied = await desk("apply", "-f", "-", stdin=ran.out)
    assert applied.code == 0, applied.err
    for each in documents(ran):
        await desk.station.ready(each["kind"], each["metadata"]["name"])
    assert (await desk.imported("--all")).out == ran.out
    assert {asked.method for asked in desk.arm.requests} == {"GET"}


@LOCALLY
async def test_kubectl_takes_it_too_and_changes_nothing_the_second_time(desk: Desk) -> None:
    needs("kubectl")
    kubectl = ["kubectl", "apply", "--server-side", "-f", "-"]
    await desk.serve()
    ran = await desk.imported(GROUP)
    first, second = [await asyncio.to_thread(_piped, kubectl, ran.out, desk.program.env) for _ in range(2)]
    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    for each in documents(ran):
        found = await desk.station.ready(each["kind"], each["metadata"]["name"])
        assert found.metadata.generation == 1
    assert {asked.method for asked in desk.arm.requests} == {"GET"}


def _piped(command: list[str], text: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, env=env, capture_output=True, text=True, check=False)


@LOCALLY
async def test_secrets_are_named_and_never_shown(desk: Desk) -> None:
    await desk.serve()
    untold = await desk.imported(STORAGE)
    assert untold.err == ""
    assert "# secrets that the service does not show; refer to a Secret to set them: properties.localUserPassword" in (
        untold.lines
    )
    desk.arm.behave(normalise=Normalise(secrets="show"))
    ran = await desk.imported(STORAGE)
    assert "hush-hush" not in ran.out + ran.err
    assert documents(ran)[0]["spec"]["properties"]["localUserPassword"] == {
        "secretRef": {"name": "files-storageaccount", "key": "localUserPassword"}
    }
    assert ran.err == (
        f"make these Secrets in the namespace {desk.station.namespace} first: files-storageaccount (localUserPassword)\n"
    )


@LOCALLY
async def test_kinds_and_children_are_chosen(desk: Desk) -> None:
    await desk.serve()
    assert [each["kind"] for each in documents(await desk.imported("--all", "--no-children"))] == ["ResourceGroup"]
    chosen = documents(await desk.imported(GROUP, "--kind", "storageaccounts", "-n", "elsewhere"))
    assert [(each["kind"], each["metadata"]["namespace"]) for each in chosen] == [("StorageAccount", "elsewhere")]
    assert "parent" not in chosen[0]["spec"]


@LOCALLY
async def test_a_file_is_written_as_a_whole_or_not_at_all(desk: Desk) -> None:
    await desk.serve()
    ran = await desk.imported(GROUP, "--out", "web.yaml")
    assert (ran.code, ran.out) == (0, "")
    assert len(list(load_all((desk.program.folder / "web.yaml").read_text()))) == 3
    assert (await desk.imported("/nothing", "--out", "none.yaml")).code == 2
    assert (await desk.imported(GROUP, "--out", "no/such/folder.yaml")).code == 1
    assert [path.name for path in desk.program.folder.iterdir() if "yaml" in path.name] == ["web.yaml"]


@LOCALLY
async def test_what_goes_wrong_is_one_line_and_a_code(desk: Desk) -> None:
    await desk.serve()
    service = desk.station.service
    both = await desk.imported(GROUP, "--all")
    assert (both.code, both.err) == (2, "error: give either an ID or --all\n")
    assert (await desk.imported()).code == 2
    bad = await desk.imported("/subscriptions/x")
    assert bad.code == 2
    assert "is no ID of a kind of this service; they are like /subscriptions/{subscriptionId}/" in bad.err
    gone = await desk.imported(GROUP + "-gone")
    assert (gone.code, gone.err) == (3, f"error: there is no ResourceGroup {GROUP}-gone\n")
    kind = await desk.imported("--all", "--kind", "Elephant")
    assert kind.code == 2
    assert "--kind Elephant is no kind of this service; there are: ResourceGroup, StorageAccount" in kind.err
    other = await desk("rest", "import", "elsewhere", "--all")
    assert other.code == 3
    assert f"there is no RestService elsewhere; there are: {service}" in other.err


@LOCALLY
async def test_what_may_not_be_read_is_said_and_the_rest_is_there(desk: Desk) -> None:
    await desk.serve()
    desk.arm.fault(Refused(403, "AuthorizationFailed", "not for you"), "GET", "storageAccounts$", times=9)
    ran = await desk.imported("--all")
    assert ran.code == 1
    assert len(list(load_all(ran.out))) == 2
    assert ran.err.startswith("error: StorageAccount was left out: ")


@LOCALLY
async def test_a_login_that_is_missing_is_said(desk: Desk) -> None:
    await desk.serve(credentials={"type": "bearer", "secretRef": {"name": "login"}})
    ran = await desk.imported("--all")
    assert (ran.code, ran.out) == (4, "")
    assert f"{desk.station.namespace}/login" in ran.err


@LOCALLY
async def test_a_service_without_kinds_says_what_to_do(desk: Desk) -> None:
    name = desk.station.service
    await desk.station.serve(desk.arm.url, DOCUMENT, definitions=[])
    ran = await desk.imported("--all")
    said = f"error: RestService {name} has no RestDefinitions: `trimtab rest generate` proposes them\n"
    assert (ran.code, ran.err) == (3, said)


@LOCALLY
async def test_a_definition_that_nobody_looked_at_is_said(desk: Desk) -> None:
    name = desk.station.service
    await desk.station.serve(desk.arm.url, DOCUMENT, definitions=[])
    call = {"method": "GET", "path": "/things/{name}"}
    spec = {"serviceRef": name, "names": {"kind": "Thing", "plural": "things"}, "operations": {"create": call}}
    unlabelled = {"name": f"things.{name}"}  # the station's controllers do not see it
    document = {
        "apiVersion": "rest.trimtab.dev/v1alpha1",
        "kind": "RestDefinition",
        "metadata": unlabelled,
        "spec": spec,
    }
    made = await desk.station.create(document)
    ran = await desk.imported("--all")
    await desk.station.client.delete(Ref(RestDefinition, made.name))
    assert ran.code == 3
    assert f"things.{name}: nobody has looked at it yet; is the system rest running?" in ran.err
