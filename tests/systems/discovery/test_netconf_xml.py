"""NETCONF's messages: what is read from them, and what is refused."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.systems.discovery.identify import netconf_xml as xml


async def test_texts_are_read_by_paths_of_local_names_whatever_their_prefixes() -> None:
    message = await xml.read(
        b'<r xmlns:a="u"><a:x><a:y> one </a:y><z>no</z></a:x><x><y/><y>two</y></x></r>', [("x", "y")]
    )
    assert message.texts == {("x", "y"): ["one", "", "two"]}


async def test_the_first_text_that_is_not_empty_counts() -> None:
    message = await xml.read(b"<r><x/><x>1</x><x>2</x></r>", [("x",)])
    assert message.first(("x",)) == "1"


async def test_a_large_message_is_read_in_slices() -> None:
    message = await xml.read(b"<r>" + b"<a><b>n</b></a>" * 20_000 + b"<x>last</x></r>", [("x",)])
    assert message.first(("x",)) == "last"


async def test_errors_are_read_and_warnings_are_not() -> None:
    message = await xml.read(
        b"<rpc-reply><rpc-error><error-tag>access-denied</error-tag><error-severity>error</error-severity>"
        b"<error-message>no</error-message></rpc-error>"
        b"<rpc-error><error-tag>other</error-tag><error-severity>warning</error-severity></rpc-error></rpc-reply>",
        [],
    )
    assert message.errors == (xml.RpcError("access-denied", "no"),)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no xml",
        b"<a>",
        b"<a></b>",
        b"<a/><b/>",
        b"\xff<a/>",
        b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b"<a>&x;</a>",
        b"<a>" * 200 + b"</a>" * 200,
    ],
)
async def test_what_netconf_does_not_allow_is_refused(text: bytes) -> None:
    with pytest.raises(xml.BadMessage):
        await xml.read(text, [])


async def test_long_texts_are_cut() -> None:
    message = await xml.read(b"<r><x>" + b"y" * 100_000 + b"</x></r>", [("x",)])
    assert len(message.first(("x",))) == xml.LONGEST_TEXT


def test_a_filter_is_made_of_paths_and_matches_in_any_namespace() -> None:
    paths = [("system", "state", "hostname"), ("system", "state", "version"), ("top",)]
    assert xml.subtree(paths) == ('<system xmlns=""><state><hostname/><version/></state></system><top xmlns=""/>')


async def test_what_is_written_is_well_formed() -> None:
    greeting = await xml.read(xml.hello(["a&b", "<c>"]), [("capabilities", "capability")])
    assert greeting.texts[("capabilities", "capability")] == ["a&b", "<c>"]
    assert (await xml.read(xml.get(1, "<x/>"), [("get", "filter", "x")])).root == "rpc"


@given(st.binary(max_size=80) | st.text(alphabet="<>/ab&;!? =\"'", max_size=80).map(str.encode))
async def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    with contextlib.suppress(xml.BadMessage):
        await xml.read(text, [("a", "b")])
