"""A revision is the same for whoever says the same, and for every release."""

from __future__ import annotations

import copy
import hashlib
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.server.builtin.apps import STRATEGIES
from trimtab.systems.delivery.kinds import TrackedConfig
from trimtab.systems.delivery.revisions.hashing import canonical, revision_of, short
from trimtab.systems.delivery.revisions.shapes import TEMPLATE, pull_policy

SMALL: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "shop/web:1.0"}]},
}
LARGE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web", "empty": ""}, "annotations": {"team": "shop"}},
    "spec": {
        "serviceAccountName": "web",
        "terminationGracePeriodSeconds": 45,
        "initContainers": [{"name": "migrate", "image": "shop/web:1.0", "command": ["migrate"], "args": ["", "up"]}],
        "containers": [
            {
                "name": "web",
                "image": "registry:5000/shop/web:2.1",
                "command": ["/web"],
                "env": [
                    {"name": "MODE", "value": "fast"},
                    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                    {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "main"}}},
                    {"name": "CORES", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                ],
                "envFrom": [{"configMapRef": {"name": "settings"}}],
                "ports": [{"name": "http", "containerPort": 8080}, {"containerPort": 53, "protocol": "UDP"}],
                "readinessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 5},
                "livenessProbe": {"tcpSocket": {"port": 8080}},
                "lifecycle": {"preStop": {"httpGet": {"path": "/stop", "port": 8080}}},
                "resources": {"limits": {"cpu": "0.5", "memory": "1Gi"}, "requests": {"cpu": "250m"}},
                "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False},
                "volumeMounts": [{"name": "settings", "mountPath": "/settings"}],
            }
        ],
        "volumes": [
            {"name": "settings", "configMap": {"name": "settings"}},
            {"name": "keys", "secret": {"secretName": "keys"}},
            {"name": "space"},
            {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
            {"name": "pod", "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        ],
        "tolerations": [{"key": "spot", "value": "yes", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ],
    },
}
RARE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "web",
                "startupProbe": {"grpc": {"port": 9000}},
                "lifecycle": {"postStart": {"httpGet": {"port": 80}}, "preStop": {"exec": {"command": ["stop"]}}},
                "resources": {"limits": {"cpu": "1500m", "example.com/gpu": 1}, "requests": {"cpu": "0.0001"}},
                "volumeMounts": [{"name": "disk", "mountPath": "/disk"}],
            }
        ],
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}
                ]
            }
        },
        "volumes": [
            {"name": "disk", "azureDisk": {"diskName": "d", "diskURI": "https://a.blob.core.windows.net/b/c.vhd"}},
            {"name": "rbd", "rbd": {"monitors": ["a"], "image": "i"}},
            {
                "name": "scale",
                "scaleIO": {"gateway": "g", "system": "s", "secretRef": {"name": "x"}, "volumeName": "v"},
            },
            {"name": "iscsi", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2000-01.com.example:a", "lun": 0}},
            {"name": "host", "hostPath": {"path": "/srv"}},
            {"name": "size", "emptyDir": {"sizeLimit": "0.5Gi"}},
            {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}},
            {
                "name": "own",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "storageClassName": "",
                            "resources": {"requests": {"storage": "1024Mi"}},
                        }
                    }
                },
            },
        ],
    },
}
CONFIGS = (
    TrackedConfig(kind="ConfigMap", name="settings", checksum="sha256:aa"),
    TrackedConfig(kind="Secret", name="keys", checksum="sha256:bb"),
)

Edit = Callable[[dict[str, Any]], object]


def edited(edit: Edit, template: dict[str, Any] = LARGE) -> dict[str, Any]:
    changed = copy.deepcopy(template)
    edit(changed)
    return changed


def web(template: dict[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = template["spec"]["containers"][0]
    return container


@pytest.mark.parametrize(
    ("template", "configs", "revision"),
    [
        ({}, (), "v1:3a063a6cc85c07b5d8d45ce0d054eb7978a1162f0fa1a67881774edf3c2bb3a3"),
        (SMALL, (), "v1:2fd62e4438006be5366e93c0284af447bdd7e8760cff223211128b63a4f9a20f"),
        (LARGE, (), "v1:f5edcfc2f9ad2bcd6c6d35502c36816defe7342d528c708fa423658137b90253"),
        (RARE, (), "v1:5c72d4785987a455bc143d9dee594a32bec116b740c8e911b829b1d8ff6729e7"),
        (LARGE, CONFIGS, "v1:251692027ff73feaa776f8f86bad6717acb97896a7726f4f2105af1b67f36e3f"),
    ],
    ids=["empty", "small", "large", "rare", "configs"],
)
def test_no_release_changes_these_revisions(
    template: dict[str, Any], configs: tuple[TrackedConfig, ...], revision: str
) -> None:
    assert revision_of(template, configs) == revision


def test_a_revision_is_the_digest_of_plain_json() -> None:
    text = (
        '{"configs":[["ConfigMap","settings","sha256:aa"]],"template":{"metadata":{"labels":{"app":"web"}},'
        '"spec":{"containers":[{"image":"shop/web:1.0","name":"web"}]}}}'
    )
    assert revision_of(SMALL, CONFIGS[:1]) == "v1:" + hashlib.sha256(text.encode()).hexdigest()


SAME: dict[str, Edit] = {
    "pull policy": lambda t: web(t).update(imagePullPolicy="IfNotPresent"),
    "grace period of the other value": lambda t: t["spec"].update(restartPolicy="Always", dnsPolicy="ClusterFirst"),
    "scheduler": lambda t: t["spec"].update(schedulerName="default-scheduler", securityContext={}, hostNetwork=False),
    "old name of the account": lambda t: t["spec"].update(serviceAccount="web"),
    "protocol": lambda t: web(t)["ports"][0].update(protocol="TCP"),
    "probe": lambda t: web(t)["readinessProbe"].update(failureThreshold=3, timeoutSeconds=1, initialDelaySeconds=0),
    "probe's path": lambda t: web(t)["readinessProbe"]["httpGet"].update(path="/", scheme="HTTP"),
    "hook's scheme": lambda t: web(t)["lifecycle"]["preStop"]["httpGet"].update(scheme="HTTP"),
    "messages": lambda t: web(t).update(terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File"),
    "amounts": lambda t: web(t)["resources"]["limits"].update(cpu="500m", memory="1024Mi"),
    "amounts as numbers": lambda t: web(t)["resources"]["limits"].update(cpu=0.5, memory=1 << 30),
    "request of the limit": lambda t: web(t)["resources"]["requests"].update(memory="1048576Ki"),
    "whole float": lambda t: t["spec"].update(terminationGracePeriodSeconds=45.0),
    "empty folder": lambda t: t["spec"]["volumes"][2].update(emptyDir={"medium": ""}),
    "mode of files": lambda t: t["spec"]["volumes"][0]["configMap"].update(defaultMode=420, optional=False, items=[]),
    "token's life": lambda t: t["spec"]["volumes"][3]["projected"]["sources"][0]["serviceAccountToken"].update(
        expirationSeconds=3600
    ),
    "version of a field": lambda t: web(t)["env"][1]["valueFrom"]["fieldRef"].update(apiVersion="v1"),
    "divisor": lambda t: web(t)["env"][3]["valueFrom"]["resourceFieldRef"].update(divisor="0"),
    "toleration": lambda t: t["spec"]["tolerations"][0].update(operator="Equal"),
    "nothing": lambda t: t["spec"].update(affinity=None, hostAliases=[], nodeSelector={}, hostname=""),
    "mount": lambda t: web(t)["volumeMounts"][0].update(readOnly=False),
    "our labels": lambda t: t["metadata"]["labels"].update({"delivery.trimtab.dev/role": "stable"}),
    "last applied": lambda t: t["metadata"]["annotations"].update(
        {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    ),
    "metadata that no pod gets": lambda t: t["metadata"].update(creationTimestamp=None, name="web", namespace="shop"),
}


@pytest.mark.parametrize("edit", SAME.values(), ids=SAME)
def test_what_says_the_same_is_the_same_revision(edit: Edit) -> None:
    assert revision_of(edited(edit)) == revision_of(LARGE)


OTHER: dict[str, Edit] = {
    "image": lambda t: web(t).update(image="registry:5000/shop/web:2.2"),
    "image of an init container": lambda t: t["spec"]["initContainers"][0].update(image="shop/web:1.1"),
    "command": lambda t: web(t)["command"].append("--fast"),
    "order of arguments": lambda t: t["spec"]["initContainers"][0]["args"].reverse(),
    "no empty argument": lambda t: t["spec"]["initContainers"][0]["args"].remove(""),
    "value": lambda t: web(t)["env"][0].update(value="slow"),
    "order of variables": lambda t: web(t)["env"].reverse(),
    "another pull policy": lambda t: web(t).update(imagePullPolicy="Always"),
    "another grace period": lambda t: t["spec"].update(terminationGracePeriodSeconds=0),
    "a label": lambda t: t["metadata"]["labels"].update(tier="front"),
    "a label without a value": lambda t: t["metadata"]["labels"].pop("empty"),
    "a restart": lambda t: t["metadata"]["annotations"].update({"kubectl.kubernetes.io/restartedAt": "2026-01-01"}),
    "a limit": lambda t: web(t)["resources"]["limits"].update(memory="1G"),
    "another request": lambda t: web(t)["resources"]["requests"].update(memory="512Mi"),
    "root": lambda t: web(t)["securityContext"].pop("runAsUser"),
    "no escalation": lambda t: web(t)["securityContext"].pop("allowPrivilegeEscalation"),
    "a sidecar": lambda t: t["spec"]["initContainers"][0].update(restartPolicy="Always"),
    "another port": lambda t: web(t)["ports"][0].update(containerPort=8081),
    "a folder in memory": lambda t: t["spec"]["volumes"][2].update(emptyDir={"medium": "Memory"}),
    "a source of a volume": lambda t: t["spec"]["volumes"][2].update(downwardAPI={}),
    "a selector of everything": lambda t: t["spec"]["topologySpreadConstraints"][0].update(labelSelector={}),
    "a selector of nothing": lambda t: t["spec"]["topologySpreadConstraints"][0].pop("labelSelector"),
    "a field of tomorrow": lambda t: t["spec"].update(hyperdrive=False),
    "false is not zero": lambda t: web(t)["readinessProbe"].update(initialDelaySeconds=False),
}


def test_every_real_change_is_another_revision() -> None:
    revisions = {name: revision_of(edited(edit)) for name, edit in OTHER.items()}
    assert revision_of(LARGE) not in revisions.values()
    assert len(set(revisions.values())) == len(OTHER)


def test_what_is_in_a_config_counts_and_the_order_of_configs_does_not() -> None:
    assert revision_of(LARGE, CONFIGS) == revision_of(LARGE, (*reversed(CONFIGS), CONFIGS[0]))
    assert revision_of(LARGE, CONFIGS) != revision_of(LARGE)
    assert revision_of(LARGE, CONFIGS) != revision_of(LARGE, (CONFIGS[0].replace(checksum="sha256:cc"), CONFIGS[1]))


@pytest.mark.parametrize("template", [SMALL, LARGE, RARE], ids=["small", "large", "rare"])
def test_a_template_that_a_server_has_filled_is_the_same_revision(template: dict[str, Any]) -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": copy.deepcopy(template)},
    }
    strategy = next(strategy for strategy in STRATEGIES if strategy.kind.kind == "Deployment")
    strategy.default(deployment)
    filled = deployment["spec"]["template"]
    assert filled != template
    assert revision_of(filled) == revision_of(template)


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("web", "Always"),
        ("web:latest", "Always"),
        ("registry:5000/web", "Always"),
        ("registry:5000/web:1", "IfNotPresent"),
        ("web@sha256:aa", "IfNotPresent"),
        ("web:latest@sha256:aa", "Always"),
        ("web:1@sha256:aa", "IfNotPresent"),
    ],
)
def test_the_pull_policy_that_is_meant_follows_the_tag(image: str, policy: str) -> None:
    assert pull_policy(image) == policy
    said = {"spec": {"containers": [{"name": "web", "image": image, "imagePullPolicy": policy}]}}
    unsaid = {"spec": {"containers": [{"name": "web", "image": image}]}}
    assert revision_of(said) == revision_of(unsaid)


def test_odd_templates_have_revisions_and_bottomless_ones_are_refused() -> None:
    odd: list[Any] = [
        {"spec": "x"},
        {"spec": {"containers": "x", "volumes": [None, 1, {}], "initContainers": {"a": 1}}},
        {"metadata": []},
        {"spec": {"containers": [{"resources": {"limits": {"cpu": "many", "memory": [1]}, "requests": 1}}]}},
    ]
    assert len({revision_of(template) for template in odd}) == len(odd)
    deep: Any = {}
    for _ in range(100):
        deep = {"a": deep, "b": 1}
    with pytest.raises(ValueError, match="nested deeper"):
        revision_of({"spec": deep})


def test_the_short_form_is_twelve_digits() -> None:
    revision = revision_of(SMALL)
    assert revision.startswith("v1:")
    assert len(revision) == 67
    assert short(revision) == revision[3:15]


NAMES = st.sampled_from(["name", "image", "cpu", "limits", "env", "value", "containers", "spec", "labels", "x", ""])
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)


@st.composite
def templates(draw: st.DrawFn) -> dict[str, Any]:
    """The large one with parts left out and others put in."""
    template = copy.deepcopy(LARGE)
    for name in draw(st.sets(st.sampled_from(sorted(web(template))))):
        del web(template)[name]
    for name in draw(st.sets(st.sampled_from([*SAME, *OTHER]), max_size=6)):
        try:
            (SAME | OTHER)[name](template)
        except (KeyError, ValueError):
            continue  # of a part that is left out
    web(template)["more"] = draw(DOCUMENTS)
    return template


def shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        names = list(value)
        chance.shuffle(names)
        return {name: shuffled(value[name], chance) for name in names}
    return [shuffled(item, chance) for item in value] if isinstance(value, list) else value


@given(templates(), st.randoms(use_true_random=False))
def test_the_order_of_keys_never_matters(template: dict[str, Any], chance: random.Random) -> None:
    assert revision_of(shuffled(template, chance)) == revision_of(template)


@given(templates())
def test_the_canonical_form_is_its_own(template: dict[str, Any]) -> None:
    once = canonical(template, TEMPLATE)
    assert canonical(once, TEMPLATE) == once


@given(DOCUMENTS)
def test_the_canonical_form_of_anything_is_its_own(value: Any) -> None:
    template = {"metadata": value, "spec": {"containers": [value], "volumes": value, "tolerations": value}}
    once = canonical(template, TEMPLATE)
    assert canonical(once, TEMPLATE) == once


@given(templates(), st.sets(st.sampled_from(sorted(SAME))))
def test_saying_defaults_never_matters(template: dict[str, Any], names: set[str]) -> None:
    quiet = copy.deepcopy(template)
    for name in names - {"pull policy", "request of the limit"}:  # they depend on other fields, which may be edited
        try:
            _fill(template, edited(SAME[name], template))
        except (KeyError, ValueError):
            continue
    assert revision_of(template) == revision_of(quiet)


def _fill(into: Any, said: Any) -> None:
    """Only where it does not overrule what is said."""
    if isinstance(into, dict) and isinstance(said, dict):
        for name, value in said.items():
            if name in into:
                _fill(into[name], value)
            else:
                into[name] = value
    elif isinstance(into, list) and isinstance(said, list) and len(into) == len(said):
        for mine, theirs in zip(into, said, strict=True):
            _fill(mine, theirs)


@given(templates(), st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_another_image_variable_or_command_is_always_another_revision(
    template: dict[str, Any], one: str, other: str
) -> None:
    for put in (
        lambda t, text: web(t).update(image=text),
        lambda t, text: web(t).update(command=[text]),
        lambda t, text: web(t).update(args=["--name", text]),
        lambda t, text: web(t).update(env=[{"name": "A", "value": text}]),
        lambda t, text: web(t).update(env=[{"name": text, "value": "1"}]),
    ):
        first, second = copy.deepcopy(template), copy.deepcopy(template)
        put(first, one)
        put(second, other)
        assert (revision_of(first) == revision_of(second)) is (one == other)
