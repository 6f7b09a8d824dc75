"""Several servers behind one endpoint."""

from __future__ import annotations

from typing import Any

import pytest

from tests.terraform.plugin.small import THING, Small, attribute, pack, schema, unpack
from trimtab.terraform.protocol.contract import Encoded, Message, Unimplemented
from trimtab.terraform.protocol.messages import METHODS, SCHEMA
from trimtab.terraform.protocol.mux import Clash, Mux
from trimtab.terraform.protocol.wire import decode, encode

pytestmark = pytest.mark.row(54)


class Ready(Small):
    """Its schemas were encoded before."""

    def call(self, method: str, request: Message) -> Message | Encoded:
        answer = super().call(method, request)
        assert isinstance(answer, dict)
        return Encoded(encode(answer, METHODS[method][1]))


class Wordless(Small):
    """An older server that has no metadata."""

    def call(self, method: str, request: Message) -> Message | Encoded:
        if method == "GetMetadata":
            raise Unimplemented(method)
        return super().call(method, request)


def asked(server: Any, method: str, **request: Any) -> Message:
    answer = server.call(method, request)
    table = METHODS[method][1]
    return decode(answer.data if isinstance(answer, Encoded) else encode(answer, table), table)


@pytest.mark.parametrize("second", [Small, Ready, Wordless])
def test_the_schemas_are_the_union_of_all_servers(second: type[Small]) -> None:
    mux = Mux([Small("old"), second("new")])
    schemas = asked(mux, "GetProviderSchema")
    assert set(schemas["resource_schemas"]) == {"old_thing", "new_thing"}
    assert set(schemas["data_source_schemas"]) == {"old_echo", "new_echo"}
    assert set(schemas["functions"]) == {"old_join", "new_join"}
    assert "diagnostics" not in schemas
    assert schemas["resource_schemas"]["new_thing"]["block"]["attributes"][0]["name"] == "name"
    metadata = asked(mux, "GetMetadata")
    assert [item["type_name"] for item in metadata["resources"]] == ["old_thing", "new_thing"]
    assert metadata["server_capabilities"] == schemas["server_capabilities"]


@pytest.mark.parametrize("second", [Small, Ready, Wordless])
def test_two_servers_with_the_same_type_cannot_start_and_both_are_named(second: type[Small]) -> None:
    with pytest.raises(Clash, match=r"resource same_thing is in both Small \(server 1\) and .* \(server 3\)"):
        Mux([Small("same"), Small("other"), second("same")])


def test_what_is_asked_of_a_type_goes_to_its_server_alone() -> None:
    old, new = Small("old"), Small("new")
    mux = Mux([old, new])
    old.calls.clear()
    new.calls.clear()
    planned = pack({"name": "a", "id": None})
    answer = asked(mux, "ApplyResourceChange", type_name="new_thing", planned_state=planned, prior_state=pack(None))
    assert unpack(answer["new_state"]) == {"name": "a", "id": "new/a"}
    assert (old.calls, new.calls) == ([], ["ApplyResourceChange"])
    answer = asked(mux, "CallFunction", name="old_join", arguments=[pack("x"), pack("y")])
    assert unpack(answer["result"]) == "x-y"
    assert (old.calls, new.calls) == (["CallFunction"], ["ApplyResourceChange"])


def test_all_servers_are_configured_and_stopped() -> None:
    old, new = Small("old"), Small("new")
    mux = Mux([old, new])
    asked(mux, "ValidateProviderConfig", config=pack({}))
    asked(mux, "ConfigureProvider", config=pack({}))
    mux.stop()
    for server in (old, new):
        assert server.calls[-2:] == ["ValidateProviderConfig", "ConfigureProvider"]
        assert server.stopped.is_set()


def test_what_two_servers_warn_of_alike_is_said_once() -> None:
    class Warns(Small):
        def ConfigureProvider(self, request: Message) -> Message:
            return {
                "diagnostics": [
                    {"severity": 2, "summary": "endpoint is deprecated"},
                    {"severity": 2, "summary": self.prefix},
                ]
            }

    said = asked(Mux([Warns("old"), Warns("new")]), "ConfigureProvider")["diagnostics"]
    assert [one["summary"] for one in said] == ["endpoint is deprecated", "old", "new"]


def test_servers_whose_provider_schemas_differ_are_an_error_that_names_the_attributes() -> None:
    class Other(Small):
        def GetProviderSchema(self, request: Message) -> Message:
            provider = schema(attribute("endpoint", optional=True, sensitive=True), attribute("token", optional=True))
            return super().GetProviderSchema(request) | {"provider": provider}

    (said,) = asked(Mux([Small("old"), Other("new")]), "GetProviderSchema")["diagnostics"]
    assert said["severity"] == 1
    assert "Small (server 1)" in said["detail"]
    assert "Other (server 2)" in said["detail"]
    assert said["detail"].endswith("They differ in: endpoint, token.")


def test_provider_schemas_are_the_same_in_any_order_and_with_zeros_spelt_out() -> None:
    class Same(Small):
        def GetProviderSchema(self, request: Message) -> Message:
            provider = schema(attribute("b", optional=True), attribute("a", optional=True))
            if self.prefix == "new":
                provider = schema(
                    attribute("a", optional=True, required=False, description=""), attribute("b", optional=True)
                )
            return super().GetProviderSchema(request) | {"provider": provider}

    assert "diagnostics" not in asked(Mux([Same("old"), Same("new")]), "GetProviderSchema")


def test_provider_schemas_that_say_nothing_are_the_same_however_they_say_it() -> None:
    class Empty(Small):
        def GetProviderSchema(self, request: Message) -> Message:
            return super().GetProviderSchema(request) | {
                "provider": {"block": {}} if self.prefix == "old" else schema()
            }

    assert "diagnostics" not in asked(Mux([Empty("old"), Empty("new")]), "GetProviderSchema")


def test_a_server_that_cannot_plan_a_destroy_is_spared_it() -> None:
    old = Small("old", capabilities={})
    new = Small("new")
    mux = Mux([old, new])
    request = {
        "proposed_new_state": pack(None),
        "prior_state": pack({"name": "a", "id": "b"}),
        "prior_private": b"kept",
    }
    answer = asked(mux, "PlanResourceChange", type_name="old_thing", **request)
    assert answer == {"planned_state": pack(None), "planned_private": b"kept"}
    assert "PlanResourceChange" not in old.calls
    asked(mux, "PlanResourceChange", type_name="new_thing", **request)
    assert "PlanResourceChange" in new.calls


def test_a_server_that_must_be_asked_for_its_schema_first_is_asked_once() -> None:
    old = Small("old", capabilities={})
    mux = Mux([old, Small("new")])
    for _ in range(2):
        asked(mux, "ReadResource", type_name="old_thing", current_state=pack(None))
    assert old.calls == ["GetMetadata", "GetProviderSchema", "ReadResource", "ReadResource"]


def test_a_move_is_offered_when_one_server_can_and_refused_for_the_others() -> None:
    can = {"plan_destroy": True, "get_provider_schema_optional": True, "move_resource_state": True}
    mux = Mux([Small("old"), Small("new", capabilities=can)])
    assert asked(mux, "GetMetadata")["server_capabilities"]["move_resource_state"]
    (said,) = asked(mux, "MoveResourceState", target_type_name="old_thing")["diagnostics"]
    assert "'old_thing' cannot take over" in said["detail"]


@pytest.mark.parametrize(("method", "key"), [("ReadResource", "type_name"), ("CallFunction", "name")])
def test_a_type_that_no_server_has_is_named(method: str, key: str) -> None:
    assert "'gone'" in str(asked(Mux([Small("old")]), method, **{key: "gone"}))


def test_identities_are_joined_and_servers_without_them_left_out() -> None:
    class Identified(Small):
        def GetResourceIdentitySchemas(self, request: Message) -> Message:
            return {
                "identity_schemas": {"new_thing": {"identity_attributes": [attribute("id", required_for_import=True)]}}
            }

    answer = asked(Mux([Small("old"), Identified("new")]), "GetResourceIdentitySchemas")
    assert set(answer["identity_schemas"]) == {"new_thing"}


def test_a_mux_can_be_in_a_mux() -> None:
    mux = Mux([Mux([Small("a"), Small("b")]), Ready("c")])
    schemas = asked(mux, "GetProviderSchema")["resource_schemas"]
    assert set(schemas) == {"a_thing", "b_thing", "c_thing"}
    assert decode(encode(THING, SCHEMA), SCHEMA) == schemas["c_thing"]
