"""What a Secret says about SNMP."""

from __future__ import annotations

import asyncio

import pytest
from gufo.snmp import KeyExpansion
from msgspec import UNSET

from trimtab.model.redacted import Redacted
from trimtab.systems.discovery.findings import Login
from trimtab.systems.discovery.identify.snmp_login import BadLogin, Users, community
from trimtab.systems.discovery.kinds import TargetConnectionProfileSpec


def login(**values: str) -> Login:
    return Login("lab", {key.replace("_", "-"): Redacted(value) for key, value in values.items()})


SEALED = {
    "snmp_user": "sealed",
    "auth_protocol": "SHA",
    "auth_password": "maplesyrup",
    "priv_protocol": "AES",
    "priv_password": "battery staple",
}


@pytest.mark.parametrize(
    ("said", "values", "version"),
    [
        (UNSET, {"community": "public"}, "v2c"),
        (UNSET, {"snmp_user": "u", "community": "public"}, "v3"),
        (UNSET, {"snmp_user": "", "community": "public"}, "v2c"),
        ("v1", {"community": "public"}, "v1"),
        ("v2c", {"snmp_user": "u", "community": "public"}, "v2c"),
        ("v3", {"community": "public"}, "v3"),
    ],
)
def test_the_version_is_the_profile_s_else_follows_from_the_secret(
    said: str, values: dict[str, str], version: str
) -> None:
    profile = TargetConnectionProfileSpec(protocol="snmp", snmp_version=said)
    assert profile.spoken_snmp(login(**values).values) == version


def test_a_community_may_be_any_octets() -> None:
    assert community(Login("lab", {"community": Redacted(b"\xff\x00")})) == b"\xff\x00"


async def test_the_master_key_is_that_of_the_standard() -> None:
    user = await Users().user(login(**SEALED))
    assert user.auth_key is not None
    # RFC 3414 A.3.2
    assert user.auth_key.key.hex() == "9fb5cc0381497b3793528939ff788d5d79145211"


async def test_keys_are_computed_once_also_for_many_devices_at_a_time() -> None:
    users = Users()
    first, *others = await asyncio.gather(*(users.user(login(**SEALED)) for _ in range(50)))
    assert all(other is first for other in others)


async def test_a_changed_password_makes_other_keys() -> None:
    users = Users()
    before = await users.user(login(**SEALED))
    after = await users.user(login(**{**SEALED, "auth_password": "another one"}))
    assert before.auth_key is not None
    assert after.auth_key is not None
    assert before.auth_key.key != after.auth_key.key


async def test_values_of_two_keys_are_not_taken_for_each_other() -> None:
    users = Users()
    one = await users.user(login(**{**SEALED, "auth_password": "aaaaaaaa", "priv_password": "bbbbbbbb"}))
    two = await users.user(login(**{**SEALED, "auth_password": "bbbbbbbb", "priv_password": "aaaaaaaa"}))
    assert one is not two


async def test_cisco_s_way_to_stretch_a_key_is_asked_for_by_name() -> None:
    user = await Users().user(login(**{**SEALED, "priv_protocol": "AES-256-C"}))
    assert user.key_expansion is KeyExpansion.Cisco


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"snmp_user": ""}, "no key snmp-user"),
        ({"auth_protocol": "ROT13"}, "MD5, SHA, SHA224, SHA256, SHA384, SHA512"),
        ({"auth_protocol": ""}, "auth-protocol of the Secret lab is missing"),
        ({"priv_protocol": "3DES"}, "DES, AES, AES192, AES256, AES192C, AES256C"),
        ({"auth_password": ""}, "has a priv-password and no auth-password"),
        ({"auth_password": "short"}, "auth-password of the Secret lab has less than 8"),
        ({"priv_password": "short"}, "priv-password of the Secret lab has less than 8"),
        ({"snmp_user": "u" * 33}, "1 to 32 octets"),
    ],
)
async def test_a_bad_secret_is_refused_with_the_name_of_the_key(changed: dict[str, str], told: str) -> None:
    with pytest.raises(BadLogin, match=told) as caught:
        await Users().user(login(**{**SEALED, **changed}))
    assert "staple" not in str(caught.value)
    assert "maple" not in str(caught.value)
