"""What NETCONF tells of a device, in both framings, and what becomes of devices that misbehave."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from tests.systems.discovery.ssh_access import VENDORS, access, vendor
from trimtab.lab.ssh import SshDevice
from trimtab.lab.ssh_personalities import EOS, LINUX, Fault, Netconf, Personality
from trimtab.systems.discovery.findings import Identified, NotIdentified, Outcome
from trimtab.systems.discovery.identify.netconf import SYSTEM, NetconfIdentifier, local_names
from trimtab.systems.discovery.kinds import DiscoveryInfo, Evidence, NetconfPath, NetconfVendor
from trimtab.systems.discovery.vendors.choice import Vendors

EOS_INFO = DiscoveryInfo(
    protocol="netconf",
    provider="eos.arista",
    platform="DCS-7050SX3-48YC8-F",
    version="4.30.2F",
    hostname="leaf-11",
    serial_number="JPE21160AB1",
)
DENIED = """<rpc-error><error-type>application</error-type><error-tag>{}</error-tag>\
<error-severity>error</error-severity></rpc-error>"""


def speaking(*capabilities: str, reply: str = "<data/>", versions: tuple[str, ...] = ("1.0", "1.1")) -> Personality:
    return replace(LINUX, netconf=Netconf(capabilities=capabilities, reply=reply, versions=versions))


async def identify(
    device: SshDevice, vendors: Vendors = VENDORS, *, newest: str = "1.1", timeout: str = "5s"
) -> Identified:
    asked = access("netconf", device.address, device.port, newest=newest, timeout=timeout)
    return await NetconfIdentifier(vendors).identify(asked)


@pytest.mark.parametrize("ours", ["1.0", "1.1"])
@pytest.mark.parametrize("theirs", [("1.0",), ("1.0", "1.1")])
async def test_a_device_is_read_in_either_framing(ours: str, theirs: tuple[str, ...]) -> None:
    assert EOS.netconf
    async with SshDevice(replace(EOS, netconf=replace(EOS.netconf, versions=theirs))) as device:
        found = await identify(device, newest=ours)
    assert found.info == EOS_INFO
    assert found.evidence == Evidence(serial_number="JPE21160AB1", ssh_host_key=device.pin, hostname="leaf-11")


async def test_a_device_of_1_1_only_is_not_read_by_a_profile_of_1_0() -> None:
    async with SshDevice(speaking(versions=("1.1",))) as device:
        with pytest.raises(NotIdentified, match="base version") as caught:
            await identify(device, newest="1.0")
    assert caught.value.outcome is Outcome.PROTOCOL_ERROR


async def test_one_get_asks_for_what_the_paths_name_and_then_the_session_is_closed() -> None:
    async with SshDevice(EOS) as device:
        await identify(device)
    get, goodbye = device.requests
    assert '<system xmlns=""><state><hostname/><software-version/></state></system>' in get
    assert "<close-session/>" in goodbye


async def test_the_filter_of_the_profile_goes_before_its_paths() -> None:
    block = NetconfVendor(
        capability_match="acme", filter='<a xmlns="urn:a"><b/></a>', paths=(NetconfPath(key="version", path="a/b"),)
    )
    async with SshDevice(speaking("urn:acme", reply="<data><a><b>7</b></a></data>")) as device:
        found = await identify(device, Vendors([vendor("acme", netconf=block)]))
    assert '<filter type="subtree"><a xmlns="urn:a"><b/></a></filter>' in device.requests[0]
    assert found.info.version == "7"


async def test_a_device_of_no_known_vendor_is_asked_by_ietf_system() -> None:
    reply = f'<data><system xmlns="{SYSTEM}"><hostname>r1</hostname></system></data>'
    async with SshDevice(speaking(f"{SYSTEM}?module=ietf-system&amp;revision=2014-08-06", reply=reply)) as device:
        found = await identify(device)
    assert found.info == DiscoveryInfo(protocol="netconf", hostname="r1")


async def test_a_device_that_tells_nothing_is_identified_by_its_host_key() -> None:
    async with SshDevice(speaking()) as device:
        found = await identify(device)
    assert found.info == DiscoveryInfo(protocol="netconf")
    assert found.evidence == Evidence(ssh_host_key=device.pin)
    assert len(device.requests) == 1  # the goodbye


async def test_a_device_that_answers_its_vendors_get_with_an_error_keeps_its_vendor() -> None:
    async with SshDevice(speaking("http://arista.com/yang", reply=DENIED.format("unknown-element"))) as device:
        found = await identify(device)
    assert found.info.provider == "eos.arista"
    assert found.info.version is UNSET


async def test_a_user_who_may_not_read_is_told_and_is_no_refused_login() -> None:
    async with SshDevice(speaking("http://arista.com/yang", reply=DENIED.format("access-denied"))) as device:
        with pytest.raises(NotIdentified, match="may not read") as caught:
            await identify(device)
    assert caught.value.outcome is not Outcome.AUTHENTICATION_FAILED
    assert caught.value.login == "accepted"
    assert caught.value.pin == device.pin


async def test_a_device_without_netconf_says_so() -> None:
    async with SshDevice(LINUX) as device:
        with pytest.raises(NotIdentified, match="no NETCONF") as caught:
            await identify(device)
    assert caught.value.outcome is Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize("newest", ["1.0", "1.1"])
@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault.DROP_AFTER_LOGIN, Outcome.DISCONNECTED),
        (Fault.DROP_IN_ANSWER, Outcome.DISCONNECTED),
        (Fault.HANG, Outcome.TIMED_OUT),
        (Fault.BAD_XML, Outcome.PROTOCOL_ERROR),
    ],
)
async def test_a_device_that_misbehaves_is_told_by_its_host_key(fault: Fault, outcome: Outcome, newest: str) -> None:
    async with SshDevice(EOS, fault=fault) as device:
        with pytest.raises(NotIdentified) as caught:
            await identify(device, newest=newest, timeout="1s" if fault is Fault.HANG else "5s")
    assert caught.value.outcome is outcome, caught.value.detail
    assert caught.value.login == "accepted"
    assert caught.value.pin == device.pin
    assert device.failed_logins == 0


@pytest.mark.parametrize("fault", [Fault.BAD_FRAMING, Fault.FLOOD])
async def test_a_malformed_or_huge_chunk_is_a_protocol_error(fault: Fault) -> None:
    async with SshDevice(EOS, fault=fault) as device:
        with pytest.raises(NotIdentified) as caught:
            await identify(device)
    assert caught.value.outcome is Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("system/state/hostname", ("system", "state", "hostname")),
        ("/oc-sys:system/name", ("system", "name")),
        ("a[b='c']/d", ()),
        ("a//b", ()),
        ("", ()),
    ],
)
def test_a_path_is_local_names_from_the_top(path: str, names: tuple[str, ...]) -> None:
    assert local_names(path) == names
