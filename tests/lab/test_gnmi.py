"""The lab's gNMI device, asked by a plain gRPC client."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from trimtab.lab.gnmi import GnmiDevice, authority
from trimtab.lab.gnmi_certificates import self_signed
from trimtab.lab.gnmi_devices import DEVICES, srlinux
from trimtab.lab.gnmi_faults import Fault
from trimtab.systems.discovery.identify import gnmi_messages as messages
from trimtab.systems.discovery.identify.gnmi_grpc import grpc
from trimtab.systems.discovery.identify.gnmi_paths import parse, to_message
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

LOGIN = (("username", "admin"), ("password", "admin"))


async def capabilities(where: str, metadata: tuple[tuple[str, str], ...] = LOGIN) -> Any:
    async with grpc.aio.insecure_channel(where, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        data = await channel.unary_unary(messages.CAPABILITIES)(b"", metadata=metadata, timeout=10)
    return messages.CapabilityResponse.FromString(data)


async def get(where: str, *paths: str, encoding: str = "JSON_IETF") -> dict[str, Any]:
    """The values by the last name of their paths."""
    request = messages.GetRequest(
        path=[to_message(parse(path), modules=True) for path in paths], encoding=messages.Encoding[encoding].value
    )
    async with grpc.aio.insecure_channel(where, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        data = await channel.unary_unary(messages.GET)(request.SerializeToString(), metadata=LOGIN, timeout=10)
    updates = messages.GetResponse.FromString(data).notification[0].update
    return {update.path.elem[-1].name: getattr(update.val, update.val.WhichOneof("value")) for update in updates}


@pytest.mark.parametrize("vendor", sorted(DEVICES))
async def test_a_device_lists_its_models_and_encodings(vendor: str) -> None:
    made = DEVICES[vendor]()
    async with GnmiDevice(made) as device:
        answer = await capabilities(f"127.0.0.1:{device.port}")
    assert [model.name for model in answer.supported_models] == [model.name for model in made.models]
    assert [messages.Encoding(each).name for each in answer.supported_encodings] == list(made.encodings)


async def test_a_get_gives_what_is_at_a_path_and_below() -> None:
    async with GnmiDevice(srlinux()) as device:
        where = f"127.0.0.1:{device.port}"
        assert await get(where, "system/name/host-name") == {"host-name": b'"leaf1"'}
        assert set(await get(where, "platform/chassis")) == {"type", "serial-number", "hw-mac-address"}
        assert set(await get(where, "platform/control")) == {"software-version", "oper-state"}
        assert await get(where, "platform/control[slot=B]") == {}
        assert await get(where, "system/name/host-name", encoding="ASCII") == {"host-name": "leaf1"}


async def test_a_wrong_password_is_refused() -> None:
    async with GnmiDevice(srlinux()) as device:
        with pytest.raises(grpc.RpcError) as raised:
            await capabilities(f"127.0.0.1:{device.port}", (("username", "admin"), ("password", "x")))
        assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert device.calls["refused"] == 1


async def test_one_device_answers_at_many_addresses() -> None:
    addresses = [f"127.0.8.{last}" for last in range(1, 9)] + ["::1"]
    async with GnmiDevice(srlinux(), addresses=addresses) as device:
        for address in addresses:
            assert (await capabilities(authority(address, device.port))).gNMI_version == "0.10.0"


async def test_a_fault_comes_and_goes_while_the_device_runs() -> None:
    async with GnmiDevice(srlinux(), fault=Fault.NONE) as device:
        where = f"127.0.0.1:{device.port}"
        assert (await get(where, "system"))["host-name"] == b'"leaf1"'
        device.fault = Fault.GO_AWAY
        with pytest.raises(grpc.RpcError, match="UNAVAILABLE"):
            await get(where, "system")
        device.fault = Fault.BREAK
        with pytest.raises(grpc.RpcError, match="UNAVAILABLE"):
            await capabilities(where)
        device.fault = Fault.NONE
        assert (await get(where, "system"))["host-name"] == b'"leaf1"'


async def test_a_device_with_tls_shows_its_certificate() -> None:
    tls = self_signed("device")
    async with GnmiDevice(srlinux(), tls=tls) as device:
        credentials = grpc.ssl_channel_credentials(tls.certificate)
        options = [("grpc.ssl_target_name_override", "device")]
        async with grpc.aio.secure_channel(f"127.0.0.1:{device.port}", credentials, options=options) as channel:
            assert await channel.unary_unary(messages.CAPABILITIES)(b"", metadata=LOGIN, timeout=10)


async def test_the_command_serves_a_device(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    command = [
        sys.executable,
        "-m",
        "trimtab.lab.gnmi",
        "--vendor",
        "eos",
        "--port",
        str(port),
        "--address",
        "127.0.8.77",
        "--name",
        "spine9",
    ]
    process = Process(command, log=tmp_path / "gnmi.log")
    try:
        process.wait_until(lambda: "Ctrl-C" in (tmp_path / "gnmi.log").read_text(), within=20)
        answer = await capabilities(f"127.0.8.77:{port}")
        assert answer.supported_models[0].organization == "Arista Networks, Inc."
        assert await get(f"127.0.8.77:{port}", "system/state/hostname") == {"hostname": b'"spine9"'}
    finally:
        process.stop()
