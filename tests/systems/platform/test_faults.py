"""What goes wrong with clusters is told by name, tried again, and leaves nothing half done in silence."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.systems.platform.stage import TOKEN, Document, Stage, condition_of, config_map, kubeconfig, part_of, until
from trimtab.client.config import ConfigError
from trimtab.client.protocol import Named, Query
from trimtab.client.transport import Call
from trimtab.model.errors import StatusError, forbidden
from trimtab.model.kubernetes import Event
from trimtab.model.scheme import Untyped
from trimtab.systems.platform.kinds import Cluster, Workload

CM = Named("v1", "ConfigMap")
DEFINITION = Named("apiextensions.k8s.io/v1", "CustomResourceDefinition")


@pytest.mark.row(24)
async def test_a_cluster_that_cannot_be_reached_holds_nobody_up_and_is_named(stage: Stage) -> None:
    await stage.namespace("team")
    one, two = await stage.imported("team", "one"), await stage.imported("team", "two")
    two.wire.cut = True
    async with stage.working():
        await stage.workload("team", "shop", config_map("a"), ["one", "two"])
        told = await stage.condition(Workload, "team", "shop", "Ready", "False", "PartlyApplied")
        assert part_of(told, "one")["phase"] == "Ready"
        assert part_of(told, "two")["reason"] == "Unreachable"
        assert "two" in condition_of(told, "Ready")["message"]
        assert "one" not in condition_of(told, "Ready")["message"]
        assert condition_of(told, "Applied")["status"] == "False"
        assert "a" in await one.config_maps("web")
        await stage.condition(Cluster, "team", "two", "Ready", "False", "Unreachable")
        two.wire.cut = False
        await stage.nudge(Cluster, "team", "two")
        await stage.ready(Workload, "team", "shop")
    assert "a" in await two.config_maps("web")


@pytest.mark.row(24)
async def test_a_part_that_a_cluster_refuses_is_named_and_retried_and_nothing_is_pruned_before(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    async with stage.working():
        await stage.workload("team", "shop", config_map("a") + config_map("old"), ["one"])
        await stage.ready(Workload, "team", "shop")

        def refuse(call: Call) -> StatusError | None:
            return forbidden("no", "configmaps", "", "bad") if call.path.endswith("/configmaps/bad") else None

        one.wire.refuse = lambda call: refuse(call) if call.method == "PATCH" else None
        stage.files["shop", "all.yaml"] = (config_map("a") + config_map("bad")).encode()
        await stage.nudge(Workload, "team", "shop")
        told = await stage.condition(Workload, "team", "shop", "Ready", "False", "ClustersFailed")
        assert part_of(told, "one")["reason"] == "ApplyFailed"
        assert "ConfigMap web/bad" in part_of(told, "one")["message"]
        assert "old" in await one.config_maps("web"), "nothing goes before all that is new is there"
        one.wire.refuse = lambda call: None
        await stage.nudge(Workload, "team", "shop")
        await stage.ready(Workload, "team", "shop")
    assert "bad" in await one.config_maps("web")
    assert "old" not in await one.config_maps("web")


async def test_expired_credentials_are_told_and_a_new_secret_is_used_at_once(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    async with stage.working():
        await stage.ready(Cluster, "team", "one")
        one.wire.expired = True
        await stage.nudge(Cluster, "team", "one")
        told = await stage.condition(Cluster, "team", "one", "Reachable", "False", "Unauthorized")
        assert condition_of(told, "BlueprintApplied")["status"] == "Unknown"
        one.wire.expired = False
        await stage.secret("team", "one-access", kubeconfig=kubeconfig(one.url, token=TOKEN + "2"))
        await stage.ready(Cluster, "team", "one")


async def test_a_workload_goes_when_its_cluster_is_gone_for_ever_and_the_user_says_so(stage: Stage) -> None:
    await stage.namespace("team")
    one, two = await stage.imported("team", "one"), await stage.imported("team", "two")
    async with stage.working():
        await stage.workload("team", "shop", config_map("a"), ["one", "two"])
        await stage.ready(Workload, "team", "shop")
        two.wire.cut = True
        await stage.delete(Workload, "team", "shop")
        told = await stage.until(
            Workload, "team", "shop", lambda w: condition_of(w, "Ready").get("reason") == "RemovalWaits"
        )
        assert "two" in condition_of(told, "Ready")["message"]
        assert "force-delete" in condition_of(told, "Ready")["message"]
        await stage.annotate(Workload, "team", "shop", {"hub.trimtab.dev/force-delete": "true"})
        await stage.gone(Workload, "team", "shop")
    assert "a" not in await one.config_maps("web")
    assert "a" in await two.config_maps("web"), "nobody could reach it"
    assert "LeftBehind" in [reason for reason, _ in await stage.events("shop", "team")]


async def test_two_trimtabs_do_not_fight_over_an_object(stage: Stage, tmp_path: Any) -> None:
    other = await Stage.made(tmp_path / "other")
    try:
        for each in (stage, other):
            await each.namespace("team")
        one = await stage.imported("team", "one")
        other.sites["one"] = one
        await other.imported("team", "one")
        async with stage.working():
            await stage.workload("team", "shop", config_map("a", by="first"), ["one"])
            await stage.ready(Workload, "team", "shop")
        async with other.working():
            await other.workload("team", "shop", config_map("a", by="second"), ["one"])
            told = await other.condition(Workload, "team", "shop", "Ready", "False")
            told = await other.until(Workload, "team", "shop", lambda w: part_of(w, "one").get("reason") == "NotOurs")
            assert "ConfigMap web/a" in part_of(told, "one")["message"]
            await other.delete(Workload, "team", "shop")
            await other.gone(Workload, "team", "shop")
        assert (await one.config_maps("web"))["a"] == {"by": "first"}
    finally:
        other.sites.clear()
        await other.close()


async def test_what_exists_and_belongs_to_nobody_is_taken_over_only_when_that_is_said(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    await one.client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}}))
    await one.client.create(
        Untyped({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "web"}, "data": {}})
    )
    async with stage.working():
        await stage.workload("team", "shop", config_map("a", x="1"), ["one"])
        told = await stage.until(Workload, "team", "shop", lambda w: part_of(w, "one").get("reason") == "AlreadyExists")
        assert "hub.trimtab.dev/adopt" in part_of(told, "one")["message"]
        await stage.annotate(Workload, "team", "shop", {"hub.trimtab.dev/adopt": "true"})
        await stage.ready(Workload, "team", "shop")
    assert (await one.config_maps("web"))["a"] == {"x": "1"}


async def test_many_objects_go_at_once_only_when_that_is_said_for_these_manifests(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    async with stage.working():
        many = "".join(config_map(f"c{number}") for number in range(12))
        await stage.workload("team", "shop", many, ["one"])
        await stage.ready(Workload, "team", "shop")
        stage.files["shop", "all.yaml"] = config_map("c0").encode()
        await stage.nudge(Workload, "team", "shop")
        told = await stage.until(Workload, "team", "shop", lambda w: part_of(w, "one").get("reason") == "MassDelete")
        assert "c11" in await one.config_maps("web")
        assert f"allow-mass-delete: {told['status']['digest']}" in part_of(told, "one")["message"]
        await stage.annotate(Workload, "team", "shop", {"hub.trimtab.dev/allow-mass-delete": told["status"]["digest"]})
        await stage.ready(Workload, "team", "shop")
    left = await one.config_maps("web")
    assert [name for name in left if name.startswith("c")] == ["c0"]


CARRIERS = """
apiVersion: v1
kind: Namespace
metadata: {name: cups}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cups.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Cup, plural: cups}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
"""
CUP = Named("example.com/v1", "Cup")


async def test_a_namespace_and_a_definition_that_leave_the_manifests_go_only_when_that_is_said(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    async with stage.working():
        await stage.workload("team", "shop", CARRIERS + config_map("stays"), ["one"])
        await stage.ready(Workload, "team", "shop")
        place = {"name": "theirs", "namespace": "cups"}
        await one.client.create(Untyped({"apiVersion": "example.com/v1", "kind": "Cup", "metadata": place}))
        await one.client.create(Untyped({"apiVersion": "v1", "kind": "ConfigMap", "metadata": place}))
        stage.files["shop", "all.yaml"] = config_map("stays").encode()
        await stage.nudge(Workload, "team", "shop")
        told = await stage.until(
            Workload, "team", "shop", lambda w: (w.get("status") or {}).get("objects") == 1 and _settled(w)
        )
        assert part_of(told, "one")["reason"] == "MassDelete"
        assert await one.has(CUP, "theirs", "cups")
        assert await one.has(CM, "theirs", "cups")
        message = part_of(told, "one")["message"]
        assert "Namespace cups: everything in it would go with it" in message
        assert "CustomResourceDefinition cups.example.com: every object of its kind would go with it" in message
        await stage.annotate(Workload, "team", "shop", {"hub.trimtab.dev/allow-mass-delete": told["status"]["digest"]})
        await stage.ready(Workload, "team", "shop")
    assert not await one.has(DEFINITION, "cups.example.com")


async def test_a_deleted_workload_takes_its_namespace_and_its_definition_with_it(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    async with stage.working():
        await stage.workload("team", "shop", CARRIERS, ["one"])
        await stage.ready(Workload, "team", "shop")
        await stage.delete(Workload, "team", "shop")
        await stage.gone(Workload, "team", "shop")
    assert not await one.has(DEFINITION, "cups.example.com")


def _settled(workload: Document) -> bool:
    return bool(condition_of(workload, "Ready")) and part_of(workload, "one").get("phase") in ("Ready", "Failed")


async def test_a_restart_in_the_midst_leaves_no_orphan(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    content = "".join(config_map(f"c{number}") for number in range(4))
    writes, dead = 0, asyncio.Event()

    def dies(call: Call) -> Exception | None:
        nonlocal writes
        if call.safe or "/namespaces/web/" not in call.path:
            return None
        writes += 1
        if writes < 3:
            return None
        dead.set()
        return RuntimeError("the process ends here")

    one.wire.refuse = dies
    async with stage.working():
        await stage.workload("team", "shop", content, ["one"])
        await dead.wait()
    assert 0 < len([name for name in await one.config_maps("web") if name.startswith("c")]) < 4
    one.wire.refuse = lambda call: None
    # The next process finds other manifests: what the first one made must not be left behind.
    stage.files["shop", "all.yaml"] = config_map("other").encode()
    async with stage.working():
        done = await stage.ready(Workload, "team", "shop")
        assert part_of(done, "one")["objects"] == 1
    assert [name for name in await one.config_maps("web") if name.startswith("c")] == []


@pytest.mark.parametrize(
    ("user", "says"),
    [
        ({"exec": {"command": "touch", "args": ["/tmp/x"], "apiVersion": "client.authentication.k8s.io/v1"}}, "exec"),
        ({"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}, "tokenFile"),
        ({"client-certificate": "/etc/c.pem", "client-key": "/etc/k.pem"}, "client-certificate"),
    ],
)
async def test_a_kubeconfig_that_names_files_or_programs_of_this_machine_is_refused(
    stage: Stage, user: Document, says: str
) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    await stage.secret("team", "one-access", kubeconfig=kubeconfig(one.url, **user))
    async with stage.working():
        told = await stage.condition(Cluster, "team", "one", "Ready", "False", "KubeconfigInvalid")
    assert says in condition_of(told, "Ready")["message"]
    assert one.wire.calls == []


@pytest.mark.parametrize("content", [b"\xff\xfe", b"{", b"[]", b"a: " * 300, json.dumps({"clusters": 1}).encode()])
async def test_a_kubeconfig_that_is_none_is_told_and_not_shown(stage: Stage, content: bytes) -> None:
    await stage.namespace("team")
    await stage.imported("team", "one")
    await stage.secret("team", "one-access", kubeconfig=content)
    async with stage.working():
        await stage.condition(Cluster, "team", "one", "Ready", "False", "KubeconfigInvalid")


async def test_a_password_that_is_taken_for_a_tag_of_yaml_is_told_to_nobody(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    config = kubeconfig(one.url).replace(f'"token": "{TOKEN}"', f"password: !{TOKEN} ")
    await stage.secret("team", "one-access", kubeconfig=config)
    async with stage.working():
        told = await stage.condition(Cluster, "team", "one", "Ready", "False", "KubeconfigInvalid")
        assert "a tag is not known" in condition_of(told, "Ready")["message"]
        assert TOKEN not in str(told) + str(await stage.events("one", "team"))


async def test_a_secret_that_is_missing_is_named(stage: Stage) -> None:
    await stage.namespace("team")
    spec = {"config": {"imported": {"kubeconfigSecretRef": {"name": "nowhere"}}}}
    await stage.create(Cluster, "team", "one", spec)
    async with stage.working():
        told = await stage.condition(Cluster, "team", "one", "Ready", "False", "SecretMissing")
    assert "nowhere" in condition_of(told, "Ready")["message"]


async def test_a_secret_whose_form_a_cluster_does_not_take_is_told_without_its_value(stage: Stage) -> None:
    await stage.namespace("team")
    await stage.imported("team", "one")
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: {a: hush}}\n"
    async with stage.working():
        await stage.workload("team", "shop", secret, ["one"])
        told = await stage.condition(Workload, "team", "shop", "Ready", "False", "ClustersFailed")
    assert "Secret web/s: the server refused it with status 500" in part_of(told, "one")["message"]
    assert "hush" not in str(told)


async def test_no_secret_is_in_a_status_an_event_or_a_log(stage: Stage) -> None:
    await stage.namespace("team")
    hidden = "hush-hush-value"
    one, two = await stage.imported("team", "one"), await stage.imported("team", "two")
    two.wire.expired = True
    secret = f'apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{password: "{hidden}"}}\n'

    def refuse(call: Call) -> StatusError | None:
        return StatusError(422, "Invalid", f"data: {hidden} is wrong") if call.path.endswith("/secrets/s") else None

    one.wire.refuse = lambda call: refuse(call) if call.method == "PATCH" else None
    with capture_logs() as logs:
        async with stage.working():
            await stage.workload("team", "shop", secret, ["one", "two"])
            await stage.condition(Workload, "team", "shop", "Ready", "False", "ClustersFailed")
            await stage.condition(Cluster, "team", "two", "Ready", "False")
    shown = [
        str(item.raw) for kind in (Cluster, Workload, Event) for item in (await stage.hub.list(kind, Query())).items
    ]
    for text in (*shown, str(logs)):
        assert hidden not in text
        assert TOKEN not in text


async def test_a_cluster_that_answers_too_slowly_holds_nobody_up(stage: Stage) -> None:
    await stage.namespace("team")
    one, two = await stage.imported("team", "one"), await stage.imported("team", "two")
    asked = asyncio.Event()
    async with stage.working():
        await stage.ready(Cluster, "team", "two")
        await stage.ready(Cluster, "team", "one")
        two.wire.slow = lambda call: asked.set() or not call.safe
        await stage.workload("team", "shop", config_map("a"), ["one", "two"])
        await asked.wait()
        await until(one.client, CM, "web", "a", lambda found: True)
        stage.clock.leap(100)
        told = await stage.condition(Workload, "team", "shop", "Ready", "False", "PartlyApplied")
        assert part_of(told, "two")["reason"] == "TooSlow"
        assert part_of(told, "one")["phase"] == "Ready"


async def test_our_own_records_on_a_cluster_are_nobody_s_manifests(stage: Stage) -> None:
    await stage.namespace("team")
    await stage.imported("team", "one")
    async with stage.working():
        await stage.workload("team", "shop", config_map("trimtab-workload-x", "trimtab-system"), ["one"])
        told = await stage.until(
            Workload, "team", "shop", lambda w: part_of(w, "one").get("reason") == "ManifestsInvalid"
        )
    assert "our own records" in part_of(told, "one")["message"]


async def test_a_cluster_that_says_it_is_not_ready_is_not(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    one.wire.refuse = lambda call: StatusError(500, "", "etcd failed") if call.path == "/readyz" else None
    async with stage.working():
        await stage.condition(Cluster, "team", "one", "Ready", "False", "NotHealthy")
        one.wire.refuse = lambda call: None
        await stage.nudge(Cluster, "team", "one")
        await stage.ready(Cluster, "team", "one")


async def test_a_cluster_that_never_answered_holds_no_deletion(stage: Stage) -> None:
    await stage.namespace("team")
    spec = {"config": {"imported": {"kubeconfigSecretRef": {"name": "nowhere"}}}}
    await stage.create(Cluster, "team", "one", spec)
    async with stage.working():
        await stage.workload("team", "shop", config_map("a"), ["one"])
        await stage.condition(Workload, "team", "shop", "Ready", "False", "ClustersFailed")
        await stage.condition(Cluster, "team", "one", "Ready", "False", "SecretMissing")
        await stage.delete(Workload, "team", "shop")
        await stage.gone(Workload, "team", "shop")
        await stage.delete(Cluster, "team", "one")
        await stage.gone(Cluster, "team", "one")


async def test_workloads_do_not_knock_at_a_cluster_that_is_known_to_be_unreachable(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    one.wire.expired = True
    knocks: list[Call] = []
    one.wire.slow = lambda call: knocks.append(call) or False
    async with stage.working():
        await stage.condition(Cluster, "team", "one", "Ready", "False", "Unauthorized")
        knocks.clear()
        await stage.workload("team", "shop", config_map("a"), ["one"])
        told = await stage.condition(Workload, "team", "shop", "Ready", "False", "ClustersFailed")
        assert part_of(told, "one")["reason"] == "Unauthorized"
        assert knocks == []


async def test_a_cluster_that_cannot_be_asked_without_doing_is_judged_by_what_was_declared(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    one.wire.refuse = lambda call: (
        StatusError(400, "BadRequest", "admission webhook does not support dry run")
        if call.query.get("dryRun")
        else None
    )
    async with stage.working():
        await stage.workload("team", "shop", config_map("empty") + config_map("a", x="1"), ["one"])
        await stage.ready(Workload, "team", "shop")
        live = await one.client.get(CM, "a", "web")
        await one.client.patch(live, Untyped({**live.raw, "data": {"x": "hacked"}}))
        await stage.nudge(Workload, "team", "shop")
        await until(one.client, CM, "web", "a", lambda found: found["data"] == {"x": "1"})
        told = [note for reason, note in await stage.events("shop", "team") if reason == "DriftCorrected"]
    assert told in ([], ["put back 1 object on cluster one"])


@pytest.mark.parametrize(
    ("server", "user"),
    [
        ("https://ann:hush@one.test", {}),
        ("https://one.test:hush", {}),
        ("https://one.test", {"as": "ann\r\nImpersonate-Group: hush"}),
    ],
)
async def test_a_kubeconfig_that_would_break_a_request_is_told_and_not_shown(
    stage: Stage, server: str, user: dict[str, str]
) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    await stage.secret("team", "one-access", kubeconfig=kubeconfig(server, **user))
    async with stage.working():
        told = await stage.condition(Cluster, "team", "one", "Ready", "False", "KubeconfigInvalid")
    assert "hush" not in str(told["status"])
    assert one.wire.calls == []


async def test_a_connection_that_cannot_be_made_of_a_kubeconfig_is_told(stage: Stage) -> None:
    def refuses(config: Any) -> Any:
        raise ConfigError("the certificate authority is no certificate in PEM")

    stage._dial = refuses  # type: ignore[method-assign]
    await stage.namespace("team")
    await stage.imported("team", "one")
    async with stage.working():
        await stage.condition(Cluster, "team", "one", "Ready", "False", "KubeconfigInvalid")
