"""A class becomes a CustomResourceDefinition that a real API server takes and enforces."""

from __future__ import annotations

import contextlib
import enum
import http.client
import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import pytest
from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.crd import crd, crds
from trimtab.model.duration import Duration
from trimtab.model.kind import Column, Scale
from trimtab.model.markers import (
    AlwaysEmit,
    Artifact,
    CreateOnly,
    Immutable,
    Initial,
    Keyed,
    OneOf,
    ReadOnly,
    Ref,
    Rule,
    Sensitive,
    Unordered,
    WriteOnly,
)
from trimtab.model.quantity import Quantity
from trimtab.model.references import KindRef
from trimtab.model.resource import Resource, Spec
from trimtab.model.scheme import Scheme
from trimtab.model.structural import structural
from trimtab.testing.cluster import RealCluster
from trimtab.testing.peer import read_access


class Speed(enum.Enum):
    SLOW = "Slow"
    FAST = "Fast"


class Port(Spec):
    """One port."""

    name: str
    number: Annotated[int, Meta(ge=1, le=65535), Immutable()]
    note: Annotated[str, CreateOnly()] | UnsetType = UNSET


class Unnamed(Spec):
    name: str | UnsetType = UNSET


class Limits(Spec, rules=Rule("self.low <= self.high", "low may not be above high", field=".high")):
    low: int = 1
    high: int = 10


class ProbeSpec(Spec, one_of=OneOf("http", "command")):
    """What to probe, and how."""

    target: Annotated[KindRef, Immutable(), Meta(description="Who is probed.")]
    zone: Annotated[str, Immutable()] | UnsetType = UNSET
    namespace: Annotated[str, CreateOnly()] | UnsetType = UNSET
    http: str | UnsetType = UNSET
    command: tuple[str, ...] | UnsetType = UNSET
    period: Duration = Duration("1m")
    size: Quantity | UnsetType = UNSET
    at: datetime | UnsetType = UNSET
    mode: Literal["Active", "Passive"] = "Active"
    speed: Speed = Speed.SLOW
    count: Annotated[int, Meta(gt=0, lt=100)] = 3
    ratio: float | UnsetType = UNSET
    strict: Annotated[bool, AlwaysEmit()] = False
    replicas: Annotated[int, Initial()] | UnsetType = UNSET
    password: Annotated[str, Sensitive(), WriteOnly()] | UnsetType = UNSET
    secret: Annotated[str, Ref("Secret")] | UnsetType = UNSET
    ports: Annotated[tuple[Port, ...], Keyed("name")] = ()
    by_name: dict[str, Port] | UnsetType = UNSET
    tags: Annotated[tuple[str, ...], Unordered(), Meta(max_length=8)] = ()
    labels: dict[str, str] | UnsetType = UNSET
    limits: Limits = Limits()
    port: int | str | UnsetType = UNSET
    anything: Any = UNSET
    values: dict[str, Any] | UnsetType = UNSET
    code: Annotated[str, Meta(pattern="^[a-z]+$", min_length=2, max_length=5), Rule("self != 'no'", "is no code")] = (
        "abc"
    )


class ProbeStatus(Spec):
    conditions: Conditions | UnsetType = UNSET
    replicas: Annotated[int, ReadOnly()] | UnsetType = UNSET
    report: Annotated[str, Artifact()] | UnsetType = UNSET


class Probe(
    Resource,
    group="checks",
    version="v1alpha1",
    short=("pb",),
    categories=("trimtab",),
    columns=(
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Mode", ".spec.mode", priority=1),
    ),
    scale=Scale(".spec.replicas", ".status.replicas"),
    selectable=(".spec.mode",),
):
    """Looks at something from time to time."""

    spec: ProbeSpec
    status: ProbeStatus | UnsetType = UNSET


SPEC = structural(Probe)["properties"]["spec"]
KIND = Scheme().kind_of(Probe)


def test_the_definition_carries_names_scope_and_subresources() -> None:
    made = crd(Probe)
    (version,) = made["spec"]["versions"]
    assert made["metadata"]["name"] == "probes.checks.trimtab.dev"
    assert made["spec"]["names"] == {
        "plural": "probes",
        "singular": "probe",
        "kind": "Probe",
        "listKind": "ProbeList",
        "shortNames": ["pb"],
        "categories": ["trimtab"],
    }
    assert made["spec"]["scope"] == "Namespaced"
    assert version["subresources"] == {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
    }
    assert [column["name"] for column in version["additionalPrinterColumns"]] == ["Ready", "Mode", "Age"]
    assert version["selectableFields"] == [{"jsonPath": ".spec.mode"}]


def test_the_same_class_always_gives_the_same_definition() -> None:
    assert json.dumps(crd(Probe, scheme=Scheme())) == json.dumps(crd(Probe, scheme=Scheme()))


def test_a_white_label_changes_the_group() -> None:
    assert crd(Probe, scheme=Scheme(suffix="example.org"))["spec"]["group"] == "checks.example.org"


def test_all_kinds_of_a_scheme_become_definitions() -> None:
    scheme = Scheme()
    scheme.register(Probe)
    assert [definition["metadata"]["name"] for definition in crds(scheme)] == ["probes.checks.trimtab.dev"]


@pytest.mark.parametrize(
    ("field", "schema"),
    [
        ("period", {"type": "string", "default": "1m"}),
        ("size", {"x-kubernetes-int-or-string": True}),
        ("at", {"type": "string", "format": "date-time"}),
        ("mode", {"type": "string", "enum": ["Active", "Passive"], "default": "Active"}),
        ("speed", {"type": "string", "enum": ["Slow", "Fast"], "default": "Slow"}),
        ("count", {"minimum": 0, "exclusiveMinimum": True, "maximum": 100, "exclusiveMaximum": True, "default": 3}),
        ("password", {"type": "string", "format": "password"}),
        ("ports", {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "maxItems": 64}),
        ("tags", {"x-kubernetes-list-type": "set", "maxItems": 8}),
        ("command", {"x-kubernetes-list-type": "atomic"}),
        ("labels", {"type": "object", "additionalProperties": {"type": "string"}}),
        ("limits", {"default": {"low": 1, "high": 10}}),
        ("port", {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}),
        ("anything", {"x-kubernetes-preserve-unknown-fields": True}),
        ("values", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        ("target", {"description": "Who is probed."}),
        ("code", {"pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5}),
    ],
)
def test_a_field_becomes_schema(field: str, schema: dict[str, Any]) -> None:
    assert SPEC["properties"][field] | schema == SPEC["properties"][field]


def test_only_fields_without_default_that_may_not_be_unset_are_required() -> None:
    assert SPEC["required"] == ["target"]


def test_docstrings_become_descriptions() -> None:
    assert structural(Probe)["description"] == "Looks at something from time to time."
    assert SPEC["description"] == "What to probe, and how."


def test_rules_name_reserved_words_as_cel_escapes_them() -> None:
    rules = [rule["rule"] for rule in SPEC["x-kubernetes-validations"]]
    assert "!has(self.__namespace__) || has(oldSelf.__namespace__)" in rules


def test_a_kind_that_is_called_as_lists_of_another_is_refused() -> None:
    class Ferry(Resource, group="harbour", version="v1"):
        spec: Spec

    class FerryList(Resource, group="harbour", version="v1"):
        spec: Spec

    scheme = Scheme()
    scheme.register(Ferry)
    scheme.register(FerryList)
    with pytest.raises(ValueError, match="a list of Ferry is called FerryList"):
        crds(scheme)


def test_an_immutable_field_of_a_list_without_keys_is_refused() -> None:
    class Lists(Spec):
        ports: tuple[Port, ...]

    with pytest.raises(TypeError, match=r"Lists\.ports: Port\.number: a list item has no old state"):
        structural(Lists)


def test_a_list_keyed_by_an_optional_field_is_refused() -> None:
    class Lists(Spec):
        items: Annotated[tuple[Unnamed, ...], Keyed("name")]

    with pytest.raises(TypeError, match="must be required or have a default"):
        structural(Lists)


def test_a_choice_between_fields_that_do_not_exist_is_refused() -> None:
    class Choice(Spec, one_of=OneOf("a", "b")):
        a: str | UnsetType = UNSET

    with pytest.raises(TypeError, match="Choice has no field b for OneOf"):
        structural(Choice)


def probe(name: str, **spec: Any) -> dict[str, Any]:
    target = {"group": "", "version": "v1", "kind": "Node", "name": "n"}
    return {
        "apiVersion": "checks.trimtab.dev/v1alpha1",
        "kind": "Probe",
        "metadata": {"name": name},
        "spec": {"target": target, "http": "x", **spec},
    }


FULL = {
    "zone": "a",
    "namespace": "b",
    "ports": [{"name": "p", "number": 1, "note": "x"}],
    "byName": {"p": {"name": "p", "number": 1}},
}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"command": ["x"]}, "exactly one of http, command must be set"),
    ({"count": 0}, "should be greater than 0"),
    ({"mode": "Other"}, 'Unsupported value: "Other"'),
    ({"period": "soon"}, "should match"),
    ({"tags": ["a", "a"]}, "Duplicate value"),
    ({"ports": [{"name": "a", "number": 1}, {"name": "a", "number": 2}]}, "Duplicate value"),
    ({"limits": {"low": 11}}, "low may not be above high"),
    ({"code": "no"}, "is no code"),
    ({"size": "1GiB"}, "should match"),
    ({"port": True}, "must be of type"),
]

HELD: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (FULL, {"zone": "other"}, "may not be changed"),
    (FULL, {"zone": None}, "zone may be neither set nor removed later"),
    ({}, {"zone": "a"}, "zone may be neither set nor removed later"),
    (FULL, {"zone": "a", "mode": "Passive"}, ""),
    (FULL, {"target": {"name": "other"}}, "may not be changed"),
    (FULL, {"namespace": "other"}, "may not be changed"),
    ({}, {"namespace": "b"}, "namespace may be given only at creation"),
    (FULL, {"namespace": None}, ""),
    (FULL, {"ports": [{"name": "p", "number": 2, "note": "x"}]}, "may not be changed"),
    (FULL, {"ports": [{"name": "p", "number": 1}, {"name": "q", "number": 2}]}, ""),
    (FULL, {"byName": {"p": {"number": 3}}}, "may not be changed"),
]


@pytest.mark.parametrize(("spec", "message"), REFUSED)
def test_our_own_schema_refuses(spec: dict[str, Any], message: str) -> None:
    schema, obj = KIND.schema, probe("refused", **spec)
    assert message in "; ".join(map(str, [*schema.walk(obj).errors, *schema.rules(obj, None)]))


@pytest.mark.parametrize(("before", "change", "message"), HELD)
def test_our_own_schema_holds_fields_as_marked(before: dict[str, Any], change: dict[str, Any], message: str) -> None:
    schema, old = KIND.schema, probe("held", **before)
    assert schema.walk(old).errors == []
    new = merged(old, {"spec": change})
    assert schema.walk(new).errors == []
    problems = "; ".join(map(str, schema.rules(new, old)))
    assert message in problems if message else not problems


def merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


# --- on a real kube-apiserver ---------------------------------------------------------------------------------------

Ask = Callable[..., tuple[int, dict[str, Any]]]
PROBES = "/apis/checks.trimtab.dev/v1alpha1/namespaces/default/probes"


@pytest.fixture(scope="module")
def ask(real_cluster: RealCluster) -> Ask:
    """Sends a request to the real server: (code, body)."""
    context = read_access(real_cluster.kubeconfig).tls()
    host = urlsplit(real_cluster.url).netloc

    def asked(method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, dict[str, Any]]:
        with contextlib.closing(http.client.HTTPSConnection(host, context=context, timeout=30)) as connection:
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text.startswith(b"{") else {"message": text.decode()}

    code, said = asked(
        "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldValidation=Strict", crd(Probe)
    )
    assert code == 201, said["message"]
    while asked("GET", PROBES)[0] != 200:  # until it is served; the test's own time-out ends it
        pass
    return asked


@pytest.mark.cluster
def test_a_real_server_defaults_what_the_class_defaults(ask: Ask) -> None:
    code, made = ask("POST", PROBES, probe("defaults"))
    assert code == 201
    wanted = {
        "period": "1m",
        "mode": "Active",
        "speed": "Slow",
        "count": 3,
        "strict": False,
        "limits": {"low": 1, "high": 10},
        "code": "abc",
    }
    assert made["spec"] | wanted == made["spec"]


@pytest.mark.cluster
@pytest.mark.parametrize(("spec", "message"), REFUSED)
def test_a_real_server_refuses(ask: Ask, spec: dict[str, Any], message: str) -> None:
    code, said = ask("POST", PROBES, probe("refused", **spec))
    assert code == 422
    assert message in said["message"]


@pytest.mark.cluster
@pytest.mark.parametrize(("before", "change", "message"), HELD)
def test_a_real_server_holds_fields_as_marked(
    ask: Ask, before: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    ask("DELETE", f"{PROBES}/held")
    code, made = ask("POST", PROBES, probe("held", **before))
    assert code == 201, made["message"]
    code, said = ask("PATCH", f"{PROBES}/held", {"spec": change}, "application/merge-patch+json")
    assert (code, message in said.get("message", "")) == (422 if message else 200, True)
