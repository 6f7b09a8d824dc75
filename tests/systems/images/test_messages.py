"""What controllers ask workers for: it comes as it went, and what is no such message is called unreadable."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.images import messages
from trimtab.systems.images.messages import CreateCatalog, GenerateSBOM, Message, ScanSBOM, Unreadable, decode, encode

CATALOG = CreateCatalog(
    namespace="prod",
    registry="lab",
    registry_uid="u-1",
    type="scheduled",
    job="discovery-job-lab",
    job_uid="u-2",
    run="20260101t000000-abcd",
    only={"team/app": ["1.0"]},
)

names = st.text(st.characters(codec="utf-8"), max_size=20)
fields = {"namespace": names, "registry": names, "registry_uid": names}
onlys = st.none() | st.dictionaries(names, st.lists(names, max_size=3), max_size=3)
catalogs = st.builds(CreateCatalog, **fields, type=names, job=names, job_uid=names, run=names, only=onlys)
sboms = st.builds(GenerateSBOM, **fields, image=names, image_uid=names, run=names)
scans = st.builds(ScanSBOM, **fields, sbom=names, sbom_uid=names, run=names)


@given(catalogs | sboms | scans)
@settings(max_examples=100)
def test_a_message_comes_as_it_went(message: Message) -> None:
    assert decode(encode(message), type(message)) == message


def test_a_request_says_what_it_came_from() -> None:
    assert json.loads(encode(CATALOG)) == {
        "namespace": "prod",
        "registry": "lab",
        "registryUid": "u-1",
        "type": "scheduled",
        "job": "discovery-job-lab",
        "jobUid": "u-2",
        "run": "20260101t000000-abcd",
        "only": {"team/app": ["1.0"]},
    }


def test_a_listing_of_all_is_not_one_of_nothing() -> None:
    assert decode(encode(msgspec.structs.replace(CATALOG, only=None)), CreateCatalog).only is None
    assert decode(encode(msgspec.structs.replace(CATALOG, only={})), CreateCatalog).only == {}


def test_what_a_newer_controller_adds_is_skipped() -> None:
    newer = {**json.loads(encode(CATALOG)), "priority": 7}
    assert decode(json.dumps(newer).encode(), CreateCatalog) == CATALOG


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b'{"namespace": "\xff"}',
        b'{"namespace": 1, "registry": "lab"}',
        encode(ScanSBOM(namespace="a", registry="b", sbom="c", sbom_uid="d")),
        b"[" * 100_000,
    ],
)
def test_what_is_no_such_message_is_unreadable(payload: bytes) -> None:
    with pytest.raises(Unreadable, match="the message is no CreateCatalog"):
        decode(payload, CreateCatalog)


def test_each_kind_has_a_subject_of_its_own() -> None:
    assert len({messages.CATALOG, messages.SBOMS, messages.SCANS}) == 3
