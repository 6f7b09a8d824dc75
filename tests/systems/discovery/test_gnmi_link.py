"""What is left of a connection when it is over: nothing."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import uvloop

from tests.systems.discovery.gnmi_kit import CREDENTIALS, VENDORS, access, failure, identified, identifier
from trimtab.lab.gnmi import GnmiDevice
from trimtab.lab.gnmi_certificates import Authority, self_signed
from trimtab.lab.gnmi_devices import srlinux
from trimtab.lab.gnmi_faults import Fault
from trimtab.model.duration import Duration
from trimtab.systems.discovery.findings import NotIdentified, Outcome, Tls
from trimtab.systems.discovery.identify.gnmi_link import GREETING, Link
from trimtab.testing.processes import Process


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("fault", [Fault.NONE, Fault.GO_AWAY, Fault.HANG_ON_GET, Fault.GARBAGE, Fault.BREAK])
async def test_nothing_stays_open_whatever_the_device_does(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with (
        GnmiDevice(srlinux(), login=CREDENTIALS) as sound,
        GnmiDevice(srlinux(), login=CREDENTIALS, fault=fault, tls=self_signed()) as device,
        identifier() as asking,
    ):
        how = access(device, skip_verify=True, timeout=Duration("200ms"))
        for warm in (access(sound, insecure=True), how):
            await asyncio.gather(asking.identify(warm), return_exceptions=True)
        before = descriptors()
        ends = await asyncio.gather(*(asking.identify(how) for _ in range(10)), return_exceptions=True)
        assert {isinstance(end, NotIdentified) for end in ends} == {fault is not Fault.NONE}
        await settled(lambda: descriptors() <= before + 1)  # gRPC's own timer comes and goes
        assert files(tmp_path) == {"": 0o700}
    assert files(tmp_path) == {}


def files(folder: Path) -> dict[str, int]:
    """What identifiers have there, with modes; each one's folder is the empty name."""
    found = {}
    for made in folder.glob("trimtab-gnmi-*"):
        for path in (made, *made.iterdir()):
            found[str(path.relative_to(made)).lstrip(".")] = path.stat().st_mode & 0o777
    return found


async def settled(condition: Callable[[], bool]) -> None:
    """Both ends of a connection are ours, and the library closes its own when it likes: nothing tells when."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_question_that_is_cancelled_leaves_nothing() -> None:
    async with GnmiDevice(srlinux(), login=CREDENTIALS, fault=Fault.HANG) as device, identifier() as asking:
        task = asyncio.create_task(asking.identify(access(device, insecure=True)))
        await settled(lambda: device.calls["Capabilities"] == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        device.fault = Fault.NONE
        assert (await asking.identify(access(device, insecure=True))).info.hostname == "leaf1"


def test_it_works_on_uvloop() -> None:
    async def ask() -> None:
        authority = Authority()
        tls = authority.sign(addresses=["127.0.0.1"])
        async with GnmiDevice(srlinux(), login=CREDENTIALS, tls=tls) as device:
            assert (await identified(access(device, tls=Tls(authority.pem)))).info.hostname == "leaf1"
            assert "not signed by the system's CAs" in (await failure(access(device))).detail
        async with GnmiDevice(srlinux(), login=CREDENTIALS, fault=Fault.GO_AWAY) as device:
            assert (await failure(access(device, insecure=True))).outcome is Outcome.DISCONNECTED

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(ask())


async def test_a_process_may_be_started_while_devices_are_asked(tmp_path: Path) -> None:
    """gRPC's fork handlers, left on, kill one of five."""
    async with GnmiDevice(srlinux(), login=CREDENTIALS) as device, identifier() as asking:

        async def ask() -> None:
            while True:
                await asking.identify(access(device, insecure=True))

        tasks = [asyncio.create_task(ask()) for _ in range(4)]
        for number in range(15):
            asked = device.calls["Get"]
            await settled(lambda asked=asked: device.calls["Get"] > asked)
            start(tmp_path / str(number))
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def start(log: Path) -> None:
    """A process that says that it lives."""
    process = Process(["sh", "-c", "echo alive; exec sleep 60"], log=log)
    process.wait_until(lambda: "alive" in log.read_text(), within=10)
    process.stop()


async def test_a_device_that_talks_without_end_before_it_is_asked_is_cut(tmp_path: Path) -> None:
    cut = asyncio.Event()

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(b"\0" * GREETING)
                await writer.drain()
        except ConnectionError:
            cut.set()
        finally:
            writer.close()

    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    link = Link(tmp_path / "socket")
    await link.connect("127.0.0.1", server.sockets[0].getsockname()[1], None, "")
    async with asyncio.timeout(10):
        await cut.wait()
    assert link.lost
    await link.close()
    server.close()


@pytest.mark.parametrize("name", [".", "a..b", "x" * 64, "a\0b"])
async def test_a_server_name_that_is_none_is_named(name: str) -> None:
    async with GnmiDevice(srlinux(), tls=self_signed()) as device:
        why = await failure(access(device, skip_verify=True, server_name=name))
    assert (why.outcome, "serverName" in why.detail) == (Outcome.TLS_FAILED, True)


async def test_a_machine_without_room_for_a_socket_says_nothing_of_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    async with GnmiDevice(srlinux(), login=CREDENTIALS) as device, identifier(VENDORS) as asking:
        monkeypatch.setattr(tempfile, "tempdir", str(deep))
        with pytest.raises(NotIdentified) as raised:
            await asking.identify(access(device, insecure=True))
    assert raised.value.outcome is Outcome.NOT_SENT


async def test_an_address_that_is_no_address_is_not_resolved() -> None:
    async with GnmiDevice(srlinux()) as device:
        nobody = msgspec.structs.replace(access(device, insecure=True), address="127.0.0.1.invalid.")
        assert (await failure(nobody)).outcome is Outcome.NOT_RESOLVED
