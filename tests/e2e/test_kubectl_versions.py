"""The main flows of kubectl, in every version that is on this machine."""

from collections.abc import Callable

import pytest

from tests.e2e.kubectl import Kubectl, programs

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("version", programs())]
Bind = Callable[[str], Kubectl]


def test_apply_creates_then_changes_then_leaves_alone(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    assert kubectl("apply", "-f", "beacons.yaml").splitlines() == [
        "beacon.ground.example.com/north created",
        "beacon.ground.example.com/south created",
    ]
    assert kubectl("apply", "-f", "deployment.yaml").splitlines() == [
        "deployment.apps/web created",
        "service/web created",
    ]
    assert kubectl("apply", "-f", "deployment.yaml").splitlines() == [
        "deployment.apps/web unchanged",
        "service/web unchanged",
    ]


def test_server_side_apply_reports_conflicts_until_forced(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    apply = ("apply", "--server-side", "-f", "-", "--field-manager")
    kubectl(*apply, "ann", stdin=configmap("shared", "one"))
    message = kubectl.fails(*apply, "bob", stdin=configmap("shared", "two"))
    assert 'conflict with "ann": .data.key' in message
    assert (
        kubectl(*apply, "bob", "--force-conflicts", stdin=configmap("shared", "two"))
        == "configmap/shared serverside-applied"
    )
    assert kubectl("get", "configmap", "shared", "-o", "jsonpath={.data.key}") == "two"


def test_unknown_fields_are_refused(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    message = kubectl.fails("apply", "-f", "-", stdin=configmap("odd", "x") + "dta: {}\n")
    assert 'unknown field "dta"' in message
    assert "deployment" not in kubectl("get", "all")


def test_get_prints_columns_of_a_custom_kind(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    kubectl("apply", "-f", "beacons.yaml")
    lines = [line.split() for line in kubectl("get", "beacons", "-o", "wide").splitlines()]
    assert lines[0] == ["NAME", "SITE", "LAMPS", "READY", "COLOR", "AGE"]
    assert lines[1][:4] == ["north", "cape", "2", "red"]


def test_create_makes_objects_of_built_in_kinds(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    assert kubectl("create", "configmap", "words", "--from-literal=a=1") == "configmap/words created"
    assert kubectl("create", "secret", "generic", "door", "--from-literal=key=v") == "secret/door created"
    assert kubectl("create", "serviceaccount", "robot") == "serviceaccount/robot created"
    assert kubectl("create", "deployment", "shop", "--image=shop:1") == "deployment.apps/shop created"
    assert kubectl("create", "role", "r", "--verb=get", "--resource=pods") == "role.rbac.authorization.k8s.io/r created"
    assert kubectl("create", "service", "clusterip", "shop", "--tcp=80:80") == "service/shop created"
    assert kubectl("get", "configmap", "words", "-o", "jsonpath={.data}") == '{"a":"1"}'


def test_patches_of_three_types_and_of_the_status(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    kubectl("apply", "-f", "beacons.yaml", "-f", "deployment.yaml")
    kubectl("patch", "beacon", "north", "--type=merge", "-p", '{"spec":{"color":"green"}}')
    kubectl("patch", "beacon", "north", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":5}]')
    kubectl("patch", "beacon", "north", "--subresource=status", "--type=merge", "-p", '{"status":{"replicas":1}}')
    kubectl(
        "patch", "deployment", "web", "-p", '{"spec":{"template":{"spec":{"containers":[{"name":"b","image":"b"}]}}}}'
    )
    assert (
        kubectl("get", "beacon", "north", "-o", "jsonpath={.spec.color} {.spec.replicas} {.status.replicas}")
        == "green 5 1"
    )
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[*].name}") == "b web"


def test_scale_label_annotate_and_set_image(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    kubectl("apply", "-f", "beacons.yaml", "-f", "deployment.yaml")
    assert kubectl("scale", "beacon/north", "--replicas=3") == "beacon.ground.example.com/north scaled"
    assert kubectl("scale", "deployment/web", "--replicas=0") == "deployment.apps/web scaled"
    assert kubectl("label", "beacon", "north", "a=b") == "beacon.ground.example.com/north labeled"
    assert kubectl("annotate", "beacon", "north", "a=b").startswith("beacon.ground.example.com/north annotate")
    assert kubectl("set", "image", "deployment/web", "web=web:2") == "deployment.apps/web image updated"


def test_explain_knows_built_in_and_custom_kinds(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    assert "The color of its light." in kubectl("explain", "beacon.spec.color")
    assert "binaryData" in kubectl("explain", "configmap", "--recursive")


def test_describe_shows_a_custom_object(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    kubectl("apply", "-f", "beacons.yaml")
    assert "Site:      reef" in kubectl("describe", "beacon", "south")


def test_wait_ends_when_the_condition_holds(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    kubectl("apply", "-f", "beacons.yaml")
    waiting = kubectl.start("wait", "--for=condition=Ready", "beacon/north", "--timeout=30s")
    ready = '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
    kubectl("patch", "beacon", "north", "--subresource=status", "--type=merge", "-p", ready)
    out, _ = waiting.communicate(timeout=30)
    assert (waiting.returncode, out) == (0, "beacon.ground.example.com/north condition met\n")


def test_delete_waits_until_finalizers_are_gone(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    kubectl("create", "configmap", "held")
    kubectl("patch", "configmap", "held", "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    deleting = kubectl.start("delete", "configmap", "held", "--timeout=30s")
    kubectl("wait", "configmap/held", "--for=jsonpath={.metadata.deletionGracePeriodSeconds}=0", "--timeout=30s")
    assert deleting.poll() is None
    kubectl("patch", "configmap", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert deleting.communicate(timeout=30)[0] == 'configmap "held" deleted\n'


def test_a_restricted_account_is_held_to_its_role(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    kubectl("apply", "-f", "rbac.yaml", "-f", "beacons.yaml")
    keeper = kubectl.as_account(kubectl("create", "token", "keeper"))
    assert len(keeper("get", "beacons", "-o", "name").splitlines()) == 2
    assert "cannot list resource" in keeper.fails("get", "secrets")
    assert "cannot delete resource" in keeper.fails("delete", "beacon", "north")


def test_auth_tells_who_may_do_what(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    kubectl("apply", "-f", "rbac.yaml")
    keeper = f"--as=system:serviceaccount:{kubectl.namespace}:keeper"
    assert kubectl("auth", "can-i", "list", "beacons", keeper) == "yes"
    assert kubectl.run("auth", "can-i", "delete", "beacons", keeper)[:2] == (1, "no\n")
    assert "beacons.ground.example.com" in kubectl("auth", "can-i", "--list", keeper)
    if version != "1.27":  # it asks for v1beta1, which Kubernetes 1.32 does not serve
        assert kubectl.namespace in kubectl("auth", "whoami", keeper)


def test_discovery_names_kinds_versions_and_the_server(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    assert ["beacons", "bcn", "ground.example.com/v1", "true", "Beacon"] in [
        line.split() for line in kubectl("api-resources").splitlines()
    ]
    assert {"v1", "apps/v1", "ground.example.com/v1"} <= set(kubectl("api-versions").split())
    assert kubectl.json("version")["serverVersion"]["minor"] == "32"


def test_diff_exits_with_1_on_a_difference(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    kubectl("apply", "-f", "beacons.yaml")
    assert kubectl("diff", "-f", "beacons.yaml") == ""
    outcome = kubectl.run("diff", "-f", "-", stdin=configmap("fresh", "new"))
    assert outcome.code == 1
    assert "+  key: new" in outcome.out


def test_edit_saves_what_the_editor_left(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    kubectl("apply", "-f", "beacons.yaml")
    edited = kubectl("edit", "beacon", "north", env={"KUBE_EDITOR": "sed -i s/color:.red/color:\\ green/"})
    assert edited == "beacon.ground.example.com/north edited"
    assert kubectl("get", "beacon", "north", "-o", "jsonpath={.spec.color}") == "green"


def test_watch_prints_changes_as_they_come(version: str, kubectl_of: Bind) -> None:
    kubectl = kubectl_of(version)
    kubectl("apply", "-f", "beacons.yaml")
    watching = kubectl.start("get", "beacons", "--watch", "--output-watch-events")
    try:
        assert watching.stdout is not None
        seen = [next(watching.stdout).split()[:2] for _ in range(3)]
        kubectl("label", "beacon", "north", "a=b")
        kubectl("delete", "beacon", "south")
        seen += [next(watching.stdout).split()[:2] for _ in range(2)]
    finally:
        watching.kill()
        watching.communicate()
    assert seen == [
        ["EVENT", "NAME"],
        ["ADDED", "north"],
        ["ADDED", "south"],
        ["MODIFIED", "north"],
        ["DELETED", "south"],
    ]


def configmap(name: str, value: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  key: {value}\n"
