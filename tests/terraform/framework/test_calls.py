"""Calls of the protocol that the Terraform of this machine is too old for, or never makes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.terraform.framework.toy import Thing, Toy, World, thing_schema
from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.config_validators import AtLeastOneOf, ExactlyOneOf
from trimtab.terraform.framework.encoding import pack, unpack
from trimtab.terraform.framework.provider import Provider
from trimtab.terraform.framework.resource import (
    Create,
    Delete,
    Plan,
    PlanCreate,
    PlanDelete,
    PlanUpdate,
    Read,
    Resource,
)
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.serving import FrameworkServer
from trimtab.terraform.framework.trees import State
from trimtab.terraform.framework.types import NUMBER, STRING, ObjectOf, Type
from trimtab.terraform.framework.values import UNKNOWN
from trimtab.terraform.protocol.contract import Encoded, InvalidRequest, Unimplemented

TYPE = thing_schema().value_type()
IDENTITY = ObjectOf({"name": STRING})


def config(**values: Any) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(TYPE.attributes)
    return {**empty, "disk": [], "access": [], "volume": {}, **values}


def dynamic(value: Any, type_: Type = TYPE) -> dict[str, bytes]:
    return {"msgpack": pack(value, type_)}


class Client:
    def __init__(self, server: FrameworkServer) -> None:
        self.server = server

    def call(self, method: str, **request: Any) -> dict[str, Any]:
        answer = self.server.call(method, request)
        assert isinstance(answer, dict)
        return answer

    def plan(self, wanted: dict[str, Any], prior: Any = None, **request: Any) -> dict[str, Any]:
        return self.call(
            "PlanResourceChange",
            type_name="toy_thing",
            prior_state=dynamic(prior),
            proposed_new_state=dynamic(wanted),
            config=dynamic(wanted),
            **request,
        )

    def apply(self, wanted: dict[str, Any]) -> dict[str, Any]:
        return self.call(
            "ApplyResourceChange",
            type_name="toy_thing",
            prior_state=dynamic(None),
            planned_state=self.plan(wanted)["planned_state"],
            config=dynamic(wanted),
        )


@pytest.fixture
def toy(world: World) -> Client:
    return Client(FrameworkServer(Toy(world)))


def only(answer: dict[str, Any]) -> str:
    (item,) = answer["diagnostics"]
    return f"{item['summary']}: {item['detail']}"


@pytest.mark.row(61)
def test_identity_is_told_planned_read_and_imported_by(toy: Client) -> None:
    told = toy.call("GetResourceIdentitySchemas")["identity_schemas"]
    assert told == {
        "toy_thing": {"identity_attributes": [{"name": "name", "type": b'"string"', "required_for_import": True}]}
    }
    here = {"identity_data": dynamic({"name": "it"}, IDENTITY)}
    wanted = config(name="it")
    assert toy.plan(wanted)["planned_identity"] == here
    applied = toy.apply(wanted)
    assert applied["new_identity"] == here
    assert toy.call("ReadResource", type_name="toy_thing", current_state=applied["new_state"])["new_identity"] == here
    (imported,) = toy.call("ImportResourceState", type_name="toy_thing", identity=here)["imported_resources"]
    assert imported["identity"] == here
    assert unpack(imported["state"]["msgpack"], TYPE)["name"] == "it"


@pytest.mark.row(61)
def test_an_identity_that_is_not_known_yet_is_not_told(toy: Client) -> None:
    assert "planned_identity" not in toy.plan(config(name=UNKNOWN))


def test_an_import_by_a_wrong_identity_is_refused(toy: Client) -> None:
    lacking = {"identity_data": dynamic({"name": None}, IDENTITY)}
    assert "needs name" in only(toy.call("ImportResourceState", type_name="toy_thing", identity=lacking))
    none = {"identity_data": dynamic({}, ObjectOf({}))}
    assert "has no identity" in only(toy.call("ImportResourceState", type_name="toy_choice", identity=none))
    assert "Import not supported" in only(toy.call("ImportResourceState", type_name="toy_choice", id="x"))


def test_identities_are_upgraded(toy: Client) -> None:
    raw = {"json": b'{"name": "it"}'}
    answer = toy.call("UpgradeResourceIdentity", type_name="toy_thing", version=0, raw_identity=raw)
    assert answer["upgraded_identity"] == {"identity_data": dynamic({"name": "it"}, IDENTITY)}
    answer = toy.call("UpgradeResourceIdentity", type_name="toy_thing", version=1, raw_identity=raw)
    assert "State is newer than the provider" in only(answer)


@pytest.mark.row(68)
@pytest.mark.parametrize(
    ("version", "raw", "says"),
    [
        (3, {"json": b"{}"}, "has schema version 3; this version of the provider knows 2 at most"),
        (2, {"json": b'{"metadata": 5}'}, "metadata: an object is required, not int"),
        (2, {"json": b"[]"}, "Unreadable state: It is not an object."),
        (2, {"json": b"{"}, "Unreadable state"),
        (0, {"json": b"{}"}, "KeyError: 'title'"),
        (0, {"flatmap": {"title": "x"}}, "State too old"),
    ],
)
def test_state_that_cannot_be_upgraded_is_refused_with_a_reason(toy: Client, version: int, raw: Any, says: str) -> None:
    answer = toy.call("UpgradeResourceState", type_name="toy_versioned", version=version, raw_state=raw)
    assert says in only(answer)
    assert "upgraded_state" not in answer


def test_an_upgrade_that_nobody_wrote_is_told(world: World) -> None:
    class Gap(Thing):
        def schema(self) -> Schema:
            return Schema({"x": Attribute(STRING, optional=True)}, version=5)

    client = of(lambda: Gap(world))
    answer = client.call("UpgradeResourceState", type_name="one_it", version=3, raw_state={"json": b"{}"})
    assert "has schema version 3, and this provider does not know how to upgrade it to 5" in only(answer)


def test_a_move_that_nobody_knows_is_told(toy: Client) -> None:
    answer = toy.call(
        "MoveResourceState",
        source_provider_address="example.com/a/b",
        source_type_name="b_thing",
        source_state={"json": b"{}"},
        target_type_name="toy_versioned",
    )
    assert "cannot be made of a b_thing of example.com/a/b" in only(answer)


@pytest.mark.row(68)
def test_a_terraform_without_write_only_attributes_is_told_so(toy: Client) -> None:
    wanted = dynamic(config(name="it", secret="s"))
    old = toy.call("ValidateResourceConfig", type_name="toy_thing", config=wanted)
    assert "secret is write-only: it needs Terraform or OpenTofu 1.11" in only(old)
    able = {"write_only_attributes_allowed": True}
    new = toy.call("ValidateResourceConfig", type_name="toy_thing", config=wanted, client_capabilities=able)
    assert new["diagnostics"] == []


@pytest.mark.row(68)
def test_an_ephemeral_resource_is_opened_renewed_and_closed(toy: Client, world: World) -> None:
    type_ = ObjectOf({"for": STRING, "token": STRING})
    opened = toy.call(
        "OpenEphemeralResource", type_name="toy_token", config=dynamic({"for": "x", "token": None}, type_)
    )
    assert unpack(opened["result"]["msgpack"], type_) == {"for": "x", "token": "s3cret-of-x"}
    assert opened["renew_at"]["seconds"] > 1_700_000_000
    renewed = toy.call("RenewEphemeralResource", type_name="toy_token", private=opened["private"])
    assert renewed["private"] == opened["private"]
    assert "renew_at" not in renewed
    assert toy.call("CloseEphemeralResource", type_name="toy_token", private=renewed["private"]) == {"diagnostics": []}
    assert world.calls == ["open", "renew x", "close x"]


def test_functions_with_wrong_arguments(toy: Client) -> None:
    def call(*arguments: Any) -> dict[str, Any]:
        return toy.call("CallFunction", name="join", arguments=[dynamic(item, STRING) for item in arguments])

    assert unpack(call("-", "a", "b")["result"]["msgpack"], STRING) == "a-b"
    assert call("-", "a", "b-c")["error"]["function_argument"] == 2
    assert call("")["error"] == {"text": 'separator must have at least 1 characters, not "".', "function_argument": 0}
    with pytest.raises(InvalidRequest, match="1 arguments are needed, not 0"):
        call()
    with pytest.raises(InvalidRequest, match="no function 'nothing'"):
        toy.call("CallFunction", name="nothing")


def test_requests_that_no_terraform_makes_are_refused(toy: Client) -> None:
    with pytest.raises(Unimplemented):
        toy.call("ListResource")
    with pytest.raises(InvalidRequest, match="no 'toy_other'"):
        toy.call("ReadResource", type_name="toy_other")
    with pytest.raises(InvalidRequest, match="type_name is missing"):
        toy.call("PlanResourceChange")
    with pytest.raises(InvalidRequest, match="config must be an object"):
        toy.call("ValidateResourceConfig", type_name="toy_thing")
    with pytest.raises(InvalidRequest, match="config: cannot be read"):
        toy.call("ValidateResourceConfig", type_name="toy_thing", config={"msgpack": b"\xc1"})
    unknown = dynamic(config(name=UNKNOWN))
    with pytest.raises(InvalidRequest, match="nothing is unknown when a plan is applied"):
        toy.call("ApplyResourceChange", type_name="toy_thing", planned_state=unknown, config=unknown)


def test_both_capabilities_and_names_are_told_without_making_anything(world: World) -> None:
    made: list[str] = []

    class Counted(Toy):
        def resources(self) -> Any:
            return {
                name: lambda make=make, name=name: (made.append(name), make())[1]
                for name, make in super().resources().items()
            }

    server = FrameworkServer(Counted(world), precomputed=b"encoded before")
    client = Client(server)
    told = client.call("GetMetadata")
    assert [item["type_name"] for item in told["resources"]] == ["toy_choice", "toy_thing", "toy_versioned"]
    assert told["server_capabilities"] == {
        "plan_destroy": True,
        "get_provider_schema_optional": True,
        "move_resource_state": True,
    }
    assert server.call("GetProviderSchema", {}) == Encoded(b"encoded before")
    assert made == []
    client.plan(config(name="it"))
    client.plan(config(name="it"))
    assert made == ["toy_thing"]


@pytest.mark.row(57)
def test_a_schema_has_its_capabilities_with_it(toy: Client) -> None:
    told = toy.call("GetProviderSchema")
    assert told["server_capabilities"]["plan_destroy"]
    assert sorted(told["resource_schemas"]) == ["toy_choice", "toy_thing", "toy_versioned"]
    assert told["diagnostics"] == []


@pytest.mark.row(59)
def test_a_rule_about_a_place_that_is_not_there_is_an_error_not_a_silence() -> None:
    class Lost(One):
        config_validators = (AtLeastOneOf("x", "spec.nowhere"),)

    assert "one_it: AtLeastOneOf: there is no spec.nowhere" in only(of(Lost).call("GetProviderSchema"))


def test_a_rule_inside_a_set_names_the_set_and_no_index() -> None:
    class Sets(One):
        config_validators = (ExactlyOneOf("a", "b", within="rules[*]"),)

        def schema(self) -> Schema:
            text = Attribute(STRING, optional=True)
            return Schema({"rules": Attribute(Nested({"a": text, "b": text}, "set"), optional=True)})

    type_ = Sets().schema().value_type()
    wrong = dynamic({"rules": [{"a": "x", "b": None}, {"a": None, "b": None}]}, type_)
    answer = of(Sets).call("ValidateResourceConfig", type_name="one_it", config=wrong)
    assert "Exactly one of these attributes must be set: rules.a, rules.b. None is set." in only(answer)
    assert answer["diagnostics"][0]["attribute"] == {"steps": [{"attribute_name": "rules"}]}


def test_what_a_plan_hook_may_not_do_is_told_before_terraform_says_it() -> None:
    class Wrong(One):
        def plan(self, op: PlanCreate | PlanUpdate | PlanDelete) -> Plan | None:
            return None if isinstance(op, PlanDelete) else Plan({**op.plan.value, "x": "other"})

    assert 'x is "mine" in the configuration, but planned as "other".' in only(planned(of(Wrong), "mine"))


def test_a_plan_hook_that_replaces_for_nothing_is_told() -> None:
    class Lost(One):
        def plan(self, op: PlanCreate | PlanUpdate | PlanDelete) -> Plan | None:
            if isinstance(op, PlanUpdate):
                op.replace("spec.nowhere")
            return None

    assert "There is no spec.nowhere." in only(planned(of(Lost), "a", prior={"x": "b", "n": 1}))


def test_what_cannot_be_planned_yet_is_put_off_where_terraform_can() -> None:
    class Later(One):
        def plan(self, op: PlanCreate | PlanUpdate | PlanDelete) -> Plan | None:
            op.context.defer("absent prerequisite")
            return None

    assert planned(of(Later), "x", client_capabilities={"deferral_allowed": True})["deferred"] == {"reason": 3}
    assert "this Terraform cannot put it off" in only(planned(of(Later), "x"))


def test_a_default_that_does_not_fit_is_told() -> None:
    class Odd(One):
        def schema(self) -> Schema:
            return Schema({"x": Attribute(STRING, optional=True), "n": Attribute(NUMBER, default="many")})

    assert "n: its default does not fit: must be a number, not str" in only(planned(of(Odd), "x"))


def test_a_failure_in_the_code_is_told_and_logged(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(One):
        def read(self, op: Read) -> State | None:
            raise ZeroDivisionError("oops")

    before = dynamic({"x": "a", "n": 1}, Broken.TYPE)
    answer = of(Broken).call("ReadResource", type_name="one_it", current_state=before)
    assert only(answer) == "The provider failed: ZeroDivisionError: oops"
    assert answer["new_state"] == before
    line = json.loads(capsys.readouterr().err)
    assert line["@level"] == "error"
    assert "in read" in line["traceback"]


def test_state_with_unknown_values_is_not_believed() -> None:
    class Vague(One):
        def read(self, op: Read) -> State | None:
            return State({"x": UNKNOWN, "n": 1})

    answer = of(Vague).call("ReadResource", type_name="one_it", current_state=dynamic({"x": "a", "n": 1}, Vague.TYPE))
    assert "x is still unknown." in only(answer)


class One(Resource):
    """The least that a resource can be."""

    TYPE = ObjectOf({"x": STRING, "n": NUMBER})

    def schema(self) -> Schema:
        return Schema({"x": Attribute(STRING, optional=True), "n": Attribute(NUMBER, computed=True)})

    def create(self, op: Create) -> State:
        return State({**op.plan.value, "n": 1})

    def read(self, op: Read) -> State | None:
        return op.state

    def delete(self, op: Delete) -> None:
        return None


def of(make: Callable[[], Resource]) -> Client:
    class Small(Provider):
        def resources(self) -> Mapping[str, Callable[[], Resource]]:
            return {"one_it": make}

    return Client(FrameworkServer(Small("one", "1")))


def planned(client: Client, x: str, prior: Any = None, **request: Any) -> dict[str, Any]:
    wanted = dynamic({"x": x, "n": None}, One.TYPE)
    return client.call(
        "PlanResourceChange",
        type_name="one_it",
        prior_state=dynamic(prior, One.TYPE),
        proposed_new_state=wanted,
        config=wanted,
        **request,
    )
