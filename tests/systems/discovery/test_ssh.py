"""What SSH tells of a device: by exec or by a shell with a pager, by greeting or by probes."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from tests.systems.discovery.ssh_access import VENDORS, access, vendor
from trimtab.lab.ssh import SshDevice
from trimtab.lab.ssh_personalities import EOS, IOS, LINUX, Exec, Fault, Personality
from trimtab.systems.discovery.findings import Identified, NotIdentified, Outcome
from trimtab.systems.discovery.identify.ssh import SshIdentifier
from trimtab.systems.discovery.kinds import DiscoveryInfo, Evidence, SshCommand, SshVendor
from trimtab.systems.discovery.vendors.choice import Vendors

IOS_INFO = DiscoveryInfo(
    protocol="ssh",
    provider="ios.cisco",
    platform="WS-C2960X-24TS-L",
    version="15.2(7)E6",
    hostname="access-sw7",
    serial_number="FOC2042W0AB",
    mac_address="00:5D:73:12:AB:80",
)


async def identify(device: SshDevice, vendors: Vendors = VENDORS) -> Identified:
    return await SshIdentifier(vendors).identify(access("ssh", device.address, device.port))


async def test_a_device_without_exec_is_read_by_its_shell_through_the_pager() -> None:
    async with SshDevice(IOS) as device:
        found = await identify(device)
    assert found.info == IOS_INFO


async def test_a_device_with_exec_is_read_by_exec() -> None:
    async with SshDevice(replace(IOS, exec=Exec.SERVED)) as device:
        found = await identify(device)
    assert found.info == IOS_INFO


async def test_the_host_key_is_the_pin_and_part_of_the_evidence() -> None:
    async with SshDevice(IOS) as device:
        found = await identify(device)
    assert found.pin == device.pin
    assert found.evidence == Evidence(
        serial_number="FOC2042W0AB",
        ssh_host_key=device.pin,
        mac_address="00:5D:73:12:AB:80",
        hostname="access-sw7",
    )


@pytest.mark.parametrize("way", [Exec.SERVED, Exec.REFUSED])
async def test_a_command_that_several_keys_read_is_run_once(way: Exec) -> None:
    async with SshDevice(replace(IOS, exec=way)) as device:
        await identify(device)
    assert device.commands == ["show version"]


async def test_where_the_greeting_tells_nothing_the_probes_tell_the_vendor() -> None:
    async with SshDevice(replace(EOS, exec=Exec.SERVED)) as device:
        found = await identify(device)
    assert found.info.provider == "eos.arista"
    assert found.info.hostname == "leaf-11"


async def test_a_device_that_hangs_up_after_one_exec_is_asked_the_rest_by_a_shell() -> None:
    async with SshDevice(EOS) as device:
        found = await identify(device)
    assert (found.info.serial_number, found.info.hostname) == ("JPE21160AB1", "leaf-11")
    assert (device.logins, device.failed_logins) == (2, 0)


async def test_a_shell_that_does_not_echo_is_read() -> None:
    async with SshDevice(replace(IOS, echo=False)) as device:
        found = await identify(device)
    assert found.info == IOS_INFO


async def test_a_device_that_takes_exec_and_says_nothing_is_asked_by_a_shell() -> None:
    async with SshDevice(replace(IOS, exec=Exec.WAITS)) as device:
        found = await SshIdentifier(VENDORS).identify(access("ssh", device.address, device.port, timeout="1500ms"))
    assert found.info == IOS_INFO


@pytest.mark.parametrize("question", ["User:", "New password: ", "login: "])
async def test_no_command_is_typed_where_the_shell_asks_who_we_are(question: str) -> None:
    async with SshDevice(replace(IOS, prompt=question)) as device:
        with pytest.raises(NotIdentified, match="asks again who we are") as caught:
            await identify(device)
    assert caught.value.outcome is Outcome.PROTOCOL_ERROR
    assert device.commands == []


async def test_a_device_of_no_known_vendor_is_identified_by_its_host_key() -> None:
    async with SshDevice(LINUX) as device:
        found = await identify(device, Vendors([]))
    assert found.info == DiscoveryInfo(protocol="ssh")
    assert found.evidence == Evidence(ssh_host_key=device.pin)


async def test_vendors_that_match_equally_are_named() -> None:
    both = SshVendor(banner_match="OpenSSH")
    async with SshDevice(LINUX) as device:
        found = await identify(device, Vendors([vendor("b", ssh=both), vendor("a", ssh=both)]))
    assert (found.info.provider, found.tied) == ("a", ("a", "b"))


@pytest.mark.parametrize("way", [Exec.SERVED, Exec.REFUSED])
async def test_a_page_of_text_in_which_the_regex_finds_nothing_is_no_value(way: Exec) -> None:
    commands = (SshCommand(key="version", command="show version", regex="no such thing"),)
    async with SshDevice(replace(IOS, exec=way)) as device:
        found = await identify(device, Vendors([vendor("v", ssh=SshVendor(banner_match="Cisco", commands=commands))]))
    assert found.info.version is UNSET


@pytest.mark.parametrize("way", [Exec.SERVED, Exec.REFUSED])
async def test_a_command_that_the_device_does_not_know_gives_no_value(way: Exec) -> None:
    commands = (SshCommand(key="hostname", command="show host"), SshCommand(key="hostname", command="show name"))
    ios: Personality = replace(IOS, exec=way, commands={"show name": "sw9\n"})
    async with SshDevice(ios) as device:
        found = await identify(device, Vendors([vendor("v", ssh=SshVendor(banner_match="Cisco", commands=commands))]))
    assert found.info.hostname == "sw9"


async def test_commands_that_switch_paging_off_may_come_first() -> None:
    commands = (
        SshCommand(key="version", command="terminal length 0"),
        SshCommand(key="version", command="show version", regex=r"Version ([^,]+),"),
    )
    async with SshDevice(IOS) as device:
        found = await identify(device, Vendors([vendor("v", ssh=SshVendor(banner_match="Cisco", commands=commands))]))
    assert found.info.version == "15.2(7)E6"


@pytest.mark.parametrize("way", [Exec.SERVED, Exec.REFUSED])
@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault.DROP_AFTER_LOGIN, Outcome.DISCONNECTED),
        (Fault.DROP_IN_ANSWER, Outcome.DISCONNECTED),
        (Fault.HANG, Outcome.TIMED_OUT),
        (Fault.FLOOD, Outcome.PROTOCOL_ERROR),
    ],
)
async def test_a_device_that_misbehaves_after_the_login_is_told_by_its_host_key(
    way: Exec, fault: Fault, outcome: Outcome
) -> None:
    async with SshDevice(replace(IOS, exec=way, page=0), fault=fault) as device:
        asked = access("ssh", device.address, device.port, timeout="1s" if fault is Fault.HANG else "5s")
        with pytest.raises(NotIdentified) as caught:
            await SshIdentifier(VENDORS).identify(asked)
    assert caught.value.outcome is outcome, caught.value.detail
    assert caught.value.pin == device.pin
    assert device.failed_logins == 0


async def test_a_device_that_is_away_for_good_is_logged_in_to_twice_at_most() -> None:
    async with SshDevice(IOS, fault=Fault.DROP_AFTER_LOGIN) as device:
        with pytest.raises(NotIdentified):
            await identify(device)
    assert device.logins <= 2
