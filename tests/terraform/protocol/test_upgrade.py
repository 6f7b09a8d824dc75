"""A server of protocol 5 behind protocol 6."""

from __future__ import annotations

import pytest

from tests.terraform.plugin.small import Small, pack, unpack
from tests.terraform.protocol.old import BLOCKS, Old
from trimtab.terraform.protocol import messages, messages5
from trimtab.terraform.protocol.contract import Message, Unimplemented
from trimtab.terraform.protocol.mux import Mux
from trimtab.terraform.protocol.server import Endpoint
from trimtab.terraform.protocol.upgrade import Upgraded
from trimtab.terraform.protocol.wire import decode, encode

pytestmark = pytest.mark.row(54)


def through(server: Upgraded | Mux, method: str, request: Message) -> Message:
    """Over the bytes of protocol 6, as Terraform would ask."""
    wants, gives = messages.METHODS[method]
    return decode(Endpoint(server)(f"/tfplugin6.Provider/{method}", encode(request, wants)), gives)


def test_its_schemas_keep_their_blocks_and_fields() -> None:
    schemas = through(Upgraded(Old()), "GetProviderSchema", {})["resource_schemas"]
    assert schemas["old_secret"]["block"]["block_types"] == BLOCKS
    (token,) = schemas["old_secret"]["block"]["attributes"]
    assert token["write_only"] is True
    assert token["deprecation_message"] == "use another"


@pytest.mark.parametrize(("method", "old"), [*messages5.RENAMED.items(), ("ReadResource", "ReadResource")])
def test_each_method_is_called_by_its_old_name(method: str, old: str) -> None:
    server = Old()
    if method == "StopProvider":
        through(Upgraded(server), method, {})
        assert server.small.stopped.is_set()
    else:
        request = {"current_state": pack(None)} if method == "ReadResource" else {"config": pack({})}
        through(Upgraded(server), method, {} if method.startswith("Get") else request)
        assert server.calls == [old]


def test_what_it_says_of_the_provider_s_configuration_is_kept() -> None:
    answer = through(Upgraded(Old()), "ValidateProviderConfig", {"config": pack({})})
    assert answer == {"diagnostics": [{"severity": 2, "summary": "heard"}]}


def test_an_old_and_a_new_server_are_one_provider() -> None:
    mux = Mux([Upgraded(Old()), Small("new")])
    assert set(through(mux, "GetProviderSchema", {})["resource_schemas"]) == {"old_thing", "old_secret", "new_thing"}
    for kind in ("old", "new"):
        request = {"type_name": f"{kind}_thing", "planned_state": pack({"name": "a"}), "prior_state": pack(None)}
        answer = through(mux, "ApplyResourceChange", request)
        assert unpack(answer["new_state"])["id"] == f"{kind}/a"


def test_a_method_that_protocol_5_lacks_is_unimplemented() -> None:
    with pytest.raises(Unimplemented):
        Upgraded(Old()).call("GetResourceIdentitySchemas", {})
