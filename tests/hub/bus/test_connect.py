"""What `--bus` may be."""

from __future__ import annotations

import pytest

from trimtab.hub.bus.connect import BusConfigError, bus
from trimtab.hub.bus.nats import NatsBus
from trimtab.hub.bus.postgres import PostgresBus


def test_the_url_says_which_bus_it_is() -> None:
    assert isinstance(bus("postgresql://db.example/hub"), PostgresBus)
    assert isinstance(bus("postgres://db.example/hub", name="other_hub"), PostgresBus)


async def test_several_servers_of_nats_are_one_bus() -> None:
    assert isinstance(bus("nats://127.0.0.1:4222,nats://127.0.0.1:4223", name="hub-two", stream_replicas=3), NatsBus)


@pytest.mark.parametrize(
    ("url", "name", "why"),
    [
        ("", "", "must be postgresql://"),
        ("redis://cache", "", "does not know redis"),
        ("postgresql://db/hub", "Not A Channel", "lower case name"),
        ("nats://", "", "must be nats://HOST"),
        ("nats://user:hidden@192.0.2.1", "", "only over tls"),
    ],
)
async def test_what_it_cannot_be_is_said(url: str, name: str, why: str) -> None:
    with pytest.raises(BusConfigError, match=why) as caught:
        bus(url, name=name)
    assert "hidden" not in str(caught.value)
