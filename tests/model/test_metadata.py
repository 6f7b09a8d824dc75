"""ObjectMeta: what is dropped, what does not decode, and what is refused, in the words of kube-apiserver 1.32.13."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.model import metadata
from trimtab.model.errors import FieldError

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def created(**meta: Any) -> list[str]:
    return told(metadata.validate({"name": "a", "namespace": "n", **meta}, namespaced=True, old=None))


def told(errors: list[FieldError]) -> list[str]:
    return [str(error) for error in errors]


def test_unknown_fields_are_dropped_and_named() -> None:
    meta = {"name": "a", "foo": 1, "ownerReferences": [{"kind": "X", "bar": 2}], "kind": "x", "labels": None}
    assert metadata.coerce(meta) == ["metadata.foo", "metadata.kind", "metadata.ownerReferences[0].bar"]
    assert meta == {"name": "a", "ownerReferences": [{"kind": "X"}]}


def test_fields_of_managers_are_kept_as_they_are() -> None:
    meta = {"managedFields": [{"fieldsV1": {"f:spec": {"f:a": None}}}]}
    assert metadata.coerce(meta) == []
    assert meta == {"managedFields": [{"fieldsV1": {"f:spec": {"f:a": None}}}]}


@pytest.mark.parametrize(
    ("meta", "path", "message"),
    [
        ({"name": 1}, "metadata.name", "number into Go struct field ObjectMeta.{}name of type string"),
        ({"labels": {"a": 1}}, "metadata.labels.a", "number into Go struct field ObjectMeta.{}labels of type string"),
        (
            {"labels": "x"},
            "metadata.labels",
            "string into Go struct field ObjectMeta.{}labels of type map[string]string",
        ),
        (
            {"finalizers": "x"},
            "metadata.finalizers",
            "string into Go struct field ObjectMeta.{}finalizers of type []string",
        ),
        (
            {"ownerReferences": [{"uid": 1}]},
            "metadata.ownerReferences[0].uid",
            "number into Go struct field OwnerReference.{}ownerReferences.uid of type types.UID",
        ),
        (
            {"generation": "1"},
            "metadata.generation",
            "string into Go struct field ObjectMeta.{}generation of type int64",
        ),
        (
            {"creationTimestamp": 1},
            "metadata.creationTimestamp",
            "number into Go struct field ObjectMeta.{}creationTimestamp of type string",
        ),
    ],
)
def test_a_wrong_type_does_not_decode(meta: dict[str, Any], path: str, message: str) -> None:
    for native, prefix in ((False, ""), (True, "metadata.")):
        (error,) = metadata.decode(dict(meta), native=native).errors
        assert (error.path, error.message) == (path, f"json: cannot unmarshal {message.format(prefix)}")


def test_good_metadata_passes() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u", "controller": True}
    labels = {"app": "web", "example.com/tier": "", "a.b-c_d": "X_1"}
    assert created(labels=labels, annotations={"A/B": "any"}, ownerReferences=[owner], finalizers=["a.b/c"]) == []


@pytest.mark.parametrize(
    ("meta", "errors"),
    [
        ({"name": "A"}, [f'metadata.name: Invalid value: "A": {SUBDOMAIN}']),
        ({"name": "a" * 254}, [f'metadata.name: Invalid value: "{"a" * 254}": must be no more than 253 characters']),
        ({"name": ""}, ["metadata.name: Required value: name or generateName is required"]),
        ({"generateName": "B-"}, []),  # the real server masks the last two characters, and so passes this
        ({"generateName": "b_"}, [f'metadata.generateName: Invalid value: "b_": {SUBDOMAIN}']),
        ({"generateName": "b-"}, []),
        ({"namespace": ""}, ["metadata.namespace: Required value"]),
        ({"namespace": "a.b"}, ['metadata.namespace: Invalid value: "a.b": must not contain dots']),
        ({"namespace": "A"}, [f'metadata.namespace: Invalid value: "A": {LABEL}']),
        ({"generation": -1}, ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"]),
        ({"labels": {"a b": "c"}}, [f'metadata.labels: Invalid value: "a b": {NAME_PART}']),
        (
            {"labels": {"a": "x" * 64}},
            [f'metadata.labels: Invalid value: "{"x" * 64}": must be no more than 63 characters'],
        ),
        ({"annotations": {"a b": ""}}, [f'metadata.annotations: Invalid value: "a b": {NAME_PART}']),
        ({"annotations": {"a": "x" * 262144}}, ["metadata.annotations: Too long: may not be more than 262144 bytes"]),
        (
            {"ownerReferences": [{}]},
            [
                'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
                'metadata.ownerReferences.kind: Invalid value: "": kind must not be empty',
                'metadata.ownerReferences.name: Invalid value: "": name must not be empty',
                'metadata.ownerReferences.uid: Invalid value: "": uid must not be empty',
            ],
        ),
        ({"finalizers": ["x y"]}, [f'metadata.finalizers: Invalid value: "x y": {NAME_PART}']),
        (
            {"managedFields": [{"operation": "Update", "manager": "a\tb"}]},
            ['metadata.managedFields[0].manager: Invalid value: "a\\tb": invalid character U+0009 (at position 1)'],
        ),
    ],
)
def test_bad_metadata_is_refused_at_creation(meta: dict[str, Any], errors: list[str]) -> None:
    assert created(**meta) == errors


def test_annotations_are_measured_in_bytes() -> None:
    assert created(annotations={"a": "é" * 131_071}) == []
    assert created(annotations={"a": "é" * 131_072}) != []


def test_only_one_owner_may_be_the_controller() -> None:
    owners = [{"apiVersion": "v1", "kind": kind, "name": "x", "uid": "u", "controller": True} for kind in "AB"]
    (error,) = metadata.validate({"name": "a", "ownerReferences": owners}, namespaced=False, old=None)
    found = 'Found "true" in references for A/x and B/x'
    assert error.detail == f"Only one reference can have Controller set to true. {found}"


def test_a_namespace_is_not_allowed_where_there_are_none() -> None:
    errors = metadata.validate({"name": "a", "namespace": "n"}, namespaced=False, old=None)
    assert told(errors) == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_a_kind_may_have_names_of_its_own() -> None:
    meta = {"name": "system:a/b"}
    errors = metadata.validate(meta, namespaced=False, old=None, name_check=metadata.path_segment_name)
    assert told(errors) == ["""metadata.name: Invalid value: "system:a/b": may not contain '/'"""]


OLD = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 2, "creationTimestamp": "t"}


def updated(old: dict[str, Any] | None = None, **change: Any) -> list[str]:
    before = {**OLD, **(old or {})}
    return told(metadata.validate({**before, **change}, namespaced=True, old=before))


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        ({}, []),
        ({"resourceVersion": "2", "generation": 3, "labels": {"a": "b"}}, []),
        ({"resourceVersion": ""}, ['metadata.resourceVersion: Invalid value: "": must be specified for an update']),
        ({"generation": 1}, ["metadata.generation: Invalid value: 1: must not be decremented"]),
        ({"name": "b"}, ['metadata.name: Invalid value: "b": field is immutable']),
        ({"uid": "w"}, ['metadata.uid: Invalid value: "w": field is immutable']),
        ({"labels": {"a b": "c"}}, [f'metadata.labels: Invalid value: "a b": {NAME_PART}']),
    ],
)
def test_an_update_keeps_what_makes_the_object_itself(change: dict[str, Any], errors: list[str]) -> None:
    assert updated(**change) == errors


def test_finalizers_may_only_go_while_an_object_is_being_deleted() -> None:
    dying = {"deletionTimestamp": "t", "finalizers": ["a/b", "c/d"]}
    why = "no new finalizers can be added if the object is being deleted"
    assert updated(dying, finalizers=["a/b"]) == []
    assert updated(dying, finalizers=["a/b", "e/f"]) == [
        f'metadata.finalizers: Forbidden: {why}, found new finalizers []string{{"e/f"}}'
    ]


def test_core_kinds_want_finalizers_with_a_domain() -> None:
    errors = metadata.finalizer_errors({"finalizers": ["orphan", "kubernetes", "a/b", "mine"]})
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    assert told(errors) == [f'metadata.finalizers[3]: Invalid value: "mine": {detail}']
