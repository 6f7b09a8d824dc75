"""What is said about a spec of a generated kind: everything at once, by the field's path, and never a secret's value."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.systems.rest.generating_kit import BODY, NUMBER, TEXT, disk, machine
from trimtab.systems.rest.model import Call, Calls, FieldClass, Identity, Model, Node, Parameter
from trimtab.systems.rest.state import Policy
from trimtab.systems.rest.validating import problems, warnings
from trimtab.systems.rest.validating.finding import MOST

SKU = {"tier": "Small"}
ID = "/groups/east/machines/web"


def good(**spec: Any) -> dict[str, Any]:
    return {"sku": SKU, "parameters": {"group": "east"}, **spec}


def said(model: Model | None = None, /, old: dict[str, Any] | None = None, **spec: Any) -> list[str]:
    """The errors as a user reads them."""
    return [str(error) for error in problems(model or machine(), good(**spec), old, name="web")]


def changed(new: dict[str, Any], old: dict[str, Any], **more: Any) -> list[str]:
    """Of a change to what exists."""
    errors = problems(machine(), good(**new), good(**old), exists=True, name="web", **more)
    return [str(error) for error in errors]


def test_a_good_spec_has_no_problems() -> None:
    assert said(tags={"team": "blue"}, rules=[{"name": "web", "port": 80}], zones=["1", "2"]) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"sku": {"tier": "Small", "capcity": 3}}, 'spec.sku.capcity: Forbidden: unknown field; did you mean "capacity"?'),
        ({"Tags": {}}, 'spec.Tags: Forbidden: unknown field; did you mean "tags"?'),
        ({"id": "/x"}, "spec.id: Forbidden: is read-only (built-in): the service sets it, see status.observed"),
        ({"sku": {}}, "spec.sku.tier: Required value"),
        ({"sku": None}, 'spec.sku: Invalid value: "null": must not be null; leave the field out to unset it'),
        ({"sku": "Small"}, 'spec.sku: Invalid value: "string": must be an object'),
        ({"sku": {"tier": "small"}}, 'must be one of "Small", "Large"; did you mean "Small"?'),
        ({"sku": {**SKU, "family": "C"}}, 'spec.sku.family: Invalid value: "C": must be one of "A", "B"'),
        ({"sku": {**SKU, "capacity": 101}}, "spec.sku.capacity: Invalid value: 101: must be at most 100"),
        ({"sku": {**SKU, "capacity": "3"}}, 'spec.sku.capacity: Invalid value: "string": must be an integer'),
        ({"sku": {**SKU, "capacity": True}}, 'spec.sku.capacity: Invalid value: "boolean": must be an integer'),
        ({"sku": {**SKU, "capacity": 1.5}}, 'spec.sku.capacity: Invalid value: "number": must be an integer'),
        ({"sku": {**SKU, "ratio": 0.25}}, "spec.sku.ratio: Invalid value: 0.25: must be at least 0.5"),
        ({"rules": [{"name": "a", "port": 2**31}]}, "spec.rules[0].port: Invalid value: 2147483648: does not fit into int32"),
        ({"rules": [{"port": 1}]}, "spec.rules[0].name: Required value"),
        ({"rules": {}}, 'spec.rules: Invalid value: "object": must be a list'),
        ({"rules": [{"name": str(i)} for i in range(9)]}, "spec.rules: Invalid value: 9: must have at most 8 items"),
        ({"rules": [{"name": "a"}, {"name": "a"}]}, 'spec.rules[1]: Duplicate value: {"name": "a"}'),
        ({"zones": ["1", "1"]}, 'spec.zones[1]: Duplicate value: "1"'),
        ({"code": "UP"}, 'spec.code: Invalid value: "UP": must match ^[a-z]+$'),
        ({"code": "a"}, 'spec.code: Invalid value: "a": must have at least 2 characters'),
        ({"tags": {"a.b": 5}}, 'spec.tags["a.b"]: Invalid value: "integer": must be a string'),
        ({"matrix": [[1, "x"]]}, 'spec.matrix[0][1]: Invalid value: "string": must be a number'),
        ({"animal": {"species": "dog", "name": "a"}}, 'spec.animal.species: Invalid value: "dog": must be one of "cat", "fish"'),
        ({"animal": {"name": "a"}}, 'spec.animal.species: Required value: one of "cat", "fish"'),
        ({"animal": {"species": "cat", "name": "a", "lives": 9, "prey": []}}, "spec.animal.prey: Forbidden: unknown field"),
        (
            {"animal": {"species": "fish", "name": "a", "prey": [{"species": "cat", "name": "b"}]}},
            "spec.animal.prey[0].lives: Required value",
        ),
        ({"tree": {"parts": [{"byName": {"x": {"titel": "a"}}}]}}, 'spec.tree.parts[0].byName.x.titel: Forbidden: unknown'),
        ({"subnetID": {"ref": {"kind": "Subnet"}}}, "spec.subnetID.ref.name: Required value"),
        ({"subnetID": {"name": "a"}}, "spec.subnetID.name: Forbidden: unknown field"),
        ({"subnetID": 5}, 'spec.subnetID: Invalid value: "integer": must be a string'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_path(spec: dict[str, Any], expected: str) -> None:
    found = said(**spec)
    assert len([text for text in found if expected in text]) == 1, found


def test_all_is_said_at_once() -> None:
    found = said(sku={"tier": "Huge", "capacity": -1}, id="x", nope=1, password="hunter2", name="A")
    assert [text.partition(":")[0] for text in found] == [
        "spec.name",
        "spec.name",
        "spec.sku.tier",
        "spec.sku.capacity",
        "spec.id",
        "spec.nope",
        "spec.password",
    ]


def test_an_enumeration_in_any_case_takes_any_case() -> None:
    assert said(sku={**SKU, "family": "a"}) == []


def test_an_open_enumeration_only_warns() -> None:
    spec = good(sku={**SKU, "colour": "blue"})
    assert problems(machine(), spec, name="web") == []
    assert warnings(machine(), spec) == [
        'spec.sku.colour: "blue" is none of the values that the document knows: "red", "green"'
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {"tags": {"a": None}},
        {"password": None},
        {"anything": None},
        {"anything": {"a": [1]}},
        {"clever": "nono"},  # RE2 knows no look-around: the service judges
        {"subnetID": "/x"},
        {"subnetID": {"ref": {"kind": "Subnet", "name": "a"}}},
        {"subnets": [{"ref": {"kind": "Subnet", "name": "a", "apiVersion": "net.rest.trimtab.dev/v1"}}, "/x"]},
        {"password": {"secretRef": {"name": "login", "key": "password"}}},
        {"x-odd.name": "a"},
        {"sku": {**SKU, "capacity": 3.0}},
    ],
)
def test_what_is_right_is_taken(spec: dict[str, Any]) -> None:
    assert said(**spec) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"password": "hunter2"},
        {"keys": {"a": "hunter2"}},
        {"password": {"secretRef": "hunter2"}},
        {"password": {"value": "hunter2"}},
        {"password": ["hunter2"]},
        {"bodyPolicy": ["hunter2"]},
        {"passwrd": "hunter2"},
    ],
)
def test_a_secret_comes_by_reference_and_is_never_echoed(spec: dict[str, Any]) -> None:
    errors = problems(machine(), good(**spec), name="web")
    assert errors
    assert "hunter2" not in str(errors)


def test_a_plain_secret_is_refused_with_what_is_right() -> None:
    assert said(password="hunter2") == [
        "spec.password: Forbidden: is a secret: give {secretRef: {name: …, key: …}}, a key of a Secret in the same namespace"
    ]


def test_what_is_never_returned_is_not_echoed() -> None:
    node = Node(type="string", field=FieldClass.WRITE_ONLY, max_length=3)
    model = machine(spec=Node(type="object", properties={"sku": BODY["sku"], "code": node}))
    assert said(model, code="hunter2") == ["spec.code: Forbidden: must have at most 3 characters"]


def test_what_rendering_fills_is_not_asked_for() -> None:
    filled = Node(type="string", default="x", why="overlay")
    model = machine(
        spec=Node(type="object", properties={**BODY, "filled": filled}, required=("sku", "filled", "origin"))
    )
    assert said(model) == []


def test_of_what_exists_a_spec_need_not_say_everything() -> None:
    assert problems(machine(), {"resourceID": ID}, name="web") == []


def test_a_value_that_is_too_deep_is_refused() -> None:
    tree: dict[str, Any] = {}
    for _ in range(80):
        tree = {"byName": {"x": tree}}
    assert "deeper than 64" in said(tree=tree)[0]


def test_a_body_made_of_mistakes_is_judged_up_to_a_bound() -> None:
    assert len(problems(machine(), good(**{f"f{i}": 1 for i in range(5000)}))) == MOST


# The fields that are ours.


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"name": "UP"}, 'spec.name: Invalid value: "UP": must match ^[a-z0-9-]+$'),
        ({"name": "a"}, 'spec.name: Invalid value: "a": must have at least 2 characters'),
        ({"name": 5}, 'spec.name: Invalid value: "integer": must be a string'),
        ({"parent": {"name": "a"}}, "spec.parent: Forbidden: a Machine is part of nothing else"),
        ({"parameters": {}}, "spec.parameters.group: Required value: it is part of /groups/{group}/machines/{machine}"),
        ({"parameters": {"group": "a", "gruop": "b"}}, 'spec.parameters.gruop: Forbidden: unknown parameter; did you mean'),
        ({"parameters": {"group": "a", "machine": "b"}}, "spec.parameters.machine: Forbidden: unknown parameter; that is spec."),
        ({"parameters": {"group": ".."}}, 'spec.parameters.group: Invalid value: "..": would lead to another path'),
        ({"parameters": {"group": 5}}, 'spec.parameters.group: Invalid value: "integer": must be a string'),
        ({"resourceID": "/machines/web"}, "is no ID of a Machine: it must be /groups/{group}/machines/{machine}"),
        ({"resourceID": ID, "name": "db"}, 'spec.name: Invalid value: "db": is not the name in spec.resourceID, "web"'),
        ({"policy": {"drfit": "ignore"}}, 'spec.policy.drfit: Forbidden: unknown field; did you mean "drift"?'),
        ({"policy": {"drift": "fix"}}, 'spec.policy.drift: Invalid value: "fix": must be one of "correct", "report", "ignore"'),
        ({"policy": {"refresh": "often"}}, 'spec.policy.refresh: Invalid value: "often": must match'),
        ({"policy": {"paused": "yes"}}, 'spec.policy.paused: Invalid value: "string": must be true or false'),
        ({"policy": "ignore"}, 'spec.policy: Invalid value: "string": must be an object'),
    ],
)  # fmt: skip
def test_our_own_fields_are_judged_too(spec: dict[str, Any], expected: str) -> None:
    found = said(**spec)
    assert len([text for text in found if expected in text]) == 1, found


def test_the_name_of_the_object_must_do_for_the_service_where_the_spec_gives_none() -> None:
    errors = problems(machine(), good(), name="a.b")
    assert [str(error) for error in errors] == [
        'metadata.name: Invalid value: "a.b": must match ^[a-z0-9-]+$; the service\'s own name may be given in spec.name'
    ]
    assert problems(machine(), good(name="web"), name="a.b") == []


@pytest.mark.parametrize(
    ("parent", "expected"),
    [
        ({}, "spec.parent: Required value: it is part of a Machine: give parent.name, or parent.resourceID"),
        ({"parent": {}}, "must have either name or resourceID"),
        ({"parent": {"name": "a", "resourceID": "/b"}}, "must have either name or resourceID"),
        ({"parent": {"resourceID": "b"}}, "spec.parent.resourceID: Invalid value"),
        ({"parent": {"nmae": "a"}}, 'spec.parent.nmae: Forbidden: unknown field; did you mean "name"?'),
    ],
)
def test_a_part_names_what_it_is_part_of_in_one_way(parent: dict[str, Any], expected: str) -> None:
    (error,) = problems(disk(), {"size": 1, **parent})
    assert expected in str(error)


@pytest.mark.parametrize(
    "spec",
    [{"parent": {"name": "web"}}, {"parent": {"resourceID": ID}}, {"resourceID": f"{ID}/disks/one"}],
)
def test_a_part_with_one_way_is_taken(spec: dict[str, Any]) -> None:
    assert problems(disk(), {"size": 1, **spec}) == []


# What may not change.


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ({"location": "west"}, {"location": "east"}, "spec.location: Forbidden: is create-only and may not change"),
        ({"location": "west"}, {}, "spec.location: Forbidden: is create-only and may not be set later"),
        ({}, {"location": "east"}, "spec.location: Forbidden: is create-only and may not be unset"),
        ({"name": "db"}, {"name": "web"}, "spec.name: Forbidden: may not change once the resource exists"),
        ({"parameters": {"group": "a"}}, {}, "spec.parameters: Forbidden: may not change once the resource exists"),
        ({"resourceID": ID}, {}, "spec.resourceID: Forbidden: may not change once the resource exists"),
        ({}, {"resourceID": ID}, "spec.resourceID: Forbidden: may not change once the resource exists"),
    ],
)
def test_what_is_fixed_may_not_change_once_it_exists(new: dict[str, Any], old: dict[str, Any], expected: str) -> None:
    (error,) = changed(new, old)
    assert error.startswith(expected)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ({"location": "west"}, {"location": "east"}),
        ({"name": "db"}, {"name": "web"}),
        ({"parameters": {"group": "a"}}, {}),
        ({"resourceID": ID}, {"resourceID": "/groups/east/machines/wbe"}),
    ],
)
def test_before_it_exists_all_of_that_may_change(new: dict[str, Any], old: dict[str, Any]) -> None:
    assert problems(machine(), good(**new), good(**old), exists=False, name="web") == []


def test_until_it_exists_an_id_may_be_given_and_after_that_it_stays() -> None:
    new, old = good(resourceID=ID), good()
    assert problems(machine(), new, old, exists=False, name="web") == []
    for before, after in ((old, new), (new, old), (new, good(resourceID="/groups/east/machines/other"))):
        (error,) = problems(machine(), after, before, exists=True, name="web")
        assert str(error).startswith("spec.resourceID: Forbidden: may not change once the resource exists")


WAYS_OUT = [
    "/groups/east/machines/..",
    "/groups/east/machines/.",
    "/groups/east/machines/%2e%2e",
    "/groups/east/machines/%252E%252e",
    "/groups/east/machines/..%2f..%2fusers",
    "/groups/../machines/web",
    "/groups/east/machines/web?force=1",
    "/groups/east/machines/web#x",
]


@pytest.mark.parametrize("given", WAYS_OUT)
def test_an_id_that_would_lead_elsewhere_is_refused(given: str) -> None:
    (error,) = said(resourceID=given)
    assert error.startswith("spec.resourceID: Invalid value")
    assert "without '.', '..', '?' or '#'" in error


@pytest.mark.parametrize("given", [*WAYS_OUT, "/groups/east", "/users/east/machines/web", f"{ID}/disks/one"])
def test_so_is_the_id_of_a_parent(given: str) -> None:
    (error,) = problems(disk(), {"size": 1, "parent": {"resourceID": given}})
    assert str(error).startswith("spec.parent.resourceID: Invalid value")


@pytest.mark.parametrize("name", ["..", "a/../b", "%2e%2e", "..\\x"])
def test_a_name_that_would_climb_is_refused(name: str) -> None:
    assert any("would lead to another path" in error for error in said(name=name))


def test_an_id_with_a_slash_in_a_name_is_taken() -> None:
    assert said(resourceID="/groups/east/machines/a%2Fb") == []


def test_a_service_manages_only_what_has_its_parameters() -> None:
    kind = machine(parameters=(Parameter(name="group", source="service"), *machine().parameters[1:]))
    parameters = {"group": "East"}
    assert problems(kind, {"sku": SKU, "resourceID": ID}, name="web", parameters=parameters) == []
    other = {"sku": SKU, "resourceID": "/groups/west/machines/web"}
    (error,) = problems(kind, other, name="web", parameters=parameters)
    assert str(error).startswith("spec.resourceID: Invalid value")
    assert "this service manages group East, and not west" in str(error)


def test_with_the_policy_recreate_a_body_may_change_and_an_address_may_not() -> None:
    policy = {"createOnly": "recreate"}
    new, old = good(location="west", policy=policy), good(location="east", policy=policy)
    assert problems(machine(), new, old, exists=True, name="web") == []
    assert "created anew" in warnings(machine(), new, old, exists=True)[0]
    assert problems(machine(), new, old, exists=True, name="web", policy=Policy()) != []
    assert problems(machine(), {**new, "name": "db"}, old, exists=True) != []


def test_what_the_service_says_already_may_be_written_down() -> None:
    """An object that was adopted by its ID alone is completed later."""
    assert changed({"location": "west"}, {}, observed={"location": "west"}) == []
    assert changed({"location": "west"}, {}, observed={"location": "east"}) != []
    assert changed({"location": "west"}, {"location": "east"}, observed={"location": "west"}) != []


def test_what_counts_only_at_creation_changes_with_a_warning() -> None:
    new, old = good(sku={**SKU, "capacity": 3}), good(sku={**SKU, "capacity": 2})
    assert problems(machine(), new, old, exists=True, name="web") == []
    (warning,) = warnings(machine(), new, old, exists=True)
    assert warning == "spec.sku.capacity: has no effect any more: it counts only when the resource is created"
    assert warnings(machine(), new, old, exists=False) == []


FIXED = Node(
    type="object", properties={"name": TEXT, "size": msgspec.structs.replace(NUMBER, field=FieldClass.CREATE_ONLY)}
)
LISTS = machine(
    spec=Node(
        type="object",
        properties={
            "keyed": Node(type="array", keys=("name",), items=FIXED),
            "plain": Node(type="array", items=FIXED),
            "byName": Node(type="map", items=FIXED),
            "inner": FIXED,
            "whole": Node(type="object", field=FieldClass.CREATE_ONLY, properties={"a": TEXT}),
        },
    )
)


def moved(new: dict[str, Any], old: dict[str, Any]) -> list[str]:
    errors = problems(LISTS, {"resourceID": ID, **new}, {"resourceID": ID, **old}, exists=True)
    return [error.path for error in errors]


@pytest.mark.parametrize(
    ("new", "old", "paths"),
    [
        ({"keyed": [{"name": "b", "size": 2}, {"name": "a", "size": 1}]}, {"keyed": [{"name": "a", "size": 1}]}, []),
        ({"keyed": [{"name": "b"}, {"name": "a", "size": 3}]}, {"keyed": [{"name": "a"}]}, ["spec.keyed[name=a].size"]),
        ({"keyed": []}, {"keyed": [{"name": "a", "size": 1}]}, []),
        ({"plain": [{"size": 2}]}, {"plain": [{"size": 1}]}, ["spec.plain[0].size"]),
        ({"plain": [{"size": 2}, {"size": 1}]}, {"plain": [{"size": 1}]}, []),
        ({"byName": {"a": {"size": 2}}}, {"byName": {"a": {"size": 1}}}, ["spec.byName.a.size"]),
        ({"inner": {"size": 1}}, {}, ["spec.inner.size"]),
        ({}, {"inner": {"size": 1}}, ["spec.inner.size"]),
        ({"inner": {"name": "b", "size": 1}}, {"inner": {"name": "a", "size": 1}}, []),
        ({"whole": {"a": "x"}}, {"whole": {"a": "y"}}, ["spec.whole"]),
    ],
)  # fmt: skip
def test_a_change_is_found_wherever_it_is(new: dict[str, Any], old: dict[str, Any], paths: list[str]) -> None:
    assert moved(new, old) == paths


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*BODY, "name", "species", "secretRef", "ref", "parts", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
SPECS = st.dictionaries(
    st.sampled_from([*BODY, "name", "parent", "parameters", "policy", "resourceID", "x"]), JSON, max_size=5
)


@given(SPECS, SPECS)
def test_whatever_is_written_is_judged_without_failing(new: dict[str, Any], old: dict[str, Any]) -> None:
    for error in problems(machine(), new, old, exists=True, name="web"):
        assert error.path
        assert str(error)


@given(SPECS)
def test_nothing_has_changed_in_a_spec_that_stays(spec: dict[str, Any]) -> None:
    assert problems(machine(), spec, spec, exists=True) == problems(machine(), spec)


@given(JSON, st.sampled_from(["password", "keys", "bodyPolicy"]))
def test_no_secret_is_ever_echoed_whatever_it_is_wrapped_in(wrapped: Any, field: str) -> None:
    def hidden(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: hidden(inner) for name, inner in value.items()}
        return [hidden(inner) for inner in value] if isinstance(value, list) else "hunter2"

    new, old = good(**{field: hidden(wrapped)}), good(**{field: "hunter2"})
    assert "hunter2" not in str(problems(machine(), new, old, exists=True))
    assert "hunter2" not in str(warnings(machine(), new, old, exists=True))


def test_a_kind_whose_names_the_server_chooses_takes_any_name_of_an_object() -> None:
    path = "/machines/{machine}"
    model = machine(
        calls=Calls(create=Call(method="POST", path="/machines"), read=Call(method="GET", path=path)),
        parameters=(Parameter(name="machine", source="identity", pattern="^[0-9]+$"),),
        identity=Identity(parameter="machine", server=True),
    )
    assert problems(model, {"sku": SKU}, name="web") == []


def test_an_id_of_azure_hides_no_other_kind_behind_an_encoded_slash() -> None:
    from tests.systems.rest.arm_kit import DOCUMENT, GROUP
    from trimtab.systems.rest.compiling.compile import compile_model
    from trimtab.systems.rest.compiling.proposing import propose
    from trimtab.systems.rest.kinds.service import Document, RestServiceSpec
    from trimtab.systems.rest.openapi.loading import from_path

    document = from_path(DOCUMENT)
    definition = next(each for each in propose(document, "azure") if each.spec.names.kind == "ResourceGroup")
    service = RestServiceSpec(endpoint="https://management.azure.com", document=Document(inline="{}"))
    kind = compile_model(document, definition, service=service, service_name="azure", group="azure.rest.trimtab.dev")
    given = f"{GROUP}%2Fproviders%2FMicrosoft.Compute%2FvirtualMachineScaleSets%2Fk9"
    assert [error.path for error in problems(kind, {"resourceID": given})] == ["spec.resourceID"]
    assert [error.path for error in problems(kind, {"name": "a/b", "location": "westus"})] == ["spec.name"]
