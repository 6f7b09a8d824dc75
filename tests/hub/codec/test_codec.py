"""Documents as bytes and back, in every form."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hub.kit import KEY, Plan, plan
from trimtab.hub.codec import Codec, continue_token, read_token
from trimtab.hub.contract import Hub, HubError, HubList, Refused
from trimtab.hub.proxies.default import defaulted
from trimtab.hub.reading import MAX_BYTES, Media, Unreadable
from trimtab.hub.scheme import HubConfig, HubScheme, UnknownKind

EVERY = pytest.mark.parametrize("media", list(Media), ids=lambda media: media.name.lower())

SCHEME = HubScheme()
SCHEME.add(HubConfig(cls=Plan))
PLANS = SCHEME.by_plural("plans")
CODEC = Codec(SCHEME)
STRICT = Codec(SCHEME, strict=True)

words = st.text("abc", min_size=1, max_size=4)
documents = st.builds(
    lambda name, spec, labels: defaulted(
        {**plan(name, spec=spec), "metadata": {"name": name, "project": "red", "namespace": "red", **labels}},
        PLANS.kind,
    ),
    words,
    st.fixed_dictionaries(
        {},
        optional={
            "replicas": st.integers(0, 4),
            "version": st.sampled_from(["", "v1", "no", "1.0", "0x1"]),
            "places": st.lists(words, max_size=3),
            "byZone": st.dictionaries(words, words, max_size=3),
            "parts": st.lists(words, unique=True, max_size=3).map(lambda names: [{"name": name} for name in names]),
        },
    ),
    st.fixed_dictionaries({}, optional={"labels": st.dictionaries(words, words, min_size=1, max_size=3)}),
)


@pytest.mark.row(26)
@EVERY
@given(document=documents)
def test_what_is_encoded_decodes_to_the_same(media: Media, document: Hub) -> None:
    once = CODEC.encode(document, media)
    assert STRICT.decode(once, media) == document
    assert CODEC.encode(STRICT.decode(once, media), media) == once


@pytest.mark.row(26)
@EVERY
@given(some=st.lists(documents, max_size=3))
def test_streams_and_lists_decode_to_the_same(media: Media, some: list[Hub]) -> None:
    assert list(STRICT.decode_all(CODEC.encode_all(some, media), media)) == some
    page = CODEC.encode_list(HubList(items=some, revision=7), PLANS, media)
    assert list(STRICT.decode_all(page, media)) == some


@pytest.mark.row(3)
@pytest.mark.row(4)
def test_five_words_of_metadata_leave_and_no_other() -> None:
    document = plan(annotations={"note": "x", KEY: "git"})
    document["metadata"] |= {
        "uid": "u",
        "resourceVersion": "7",
        "generation": 1,
        "managedFields": [{}],
        "labels": {"a": "b"},
    }
    document["metadata"]["description"] = "words"
    shown = json.loads(CODEC.encode(document))
    assert list(shown["metadata"]) == ["name", "project", "description", "labels", "annotations"]
    assert shown["metadata"]["annotations"] == {"note": "x"}, "lineage is not copied by an export"
    assert KEY in json.loads(Codec(SCHEME, lineage=True).encode(document))["metadata"]["annotations"]


@pytest.mark.row(7)
def test_defaults_are_left_out_but_those_that_are_always_sent() -> None:
    document = defaulted(plan(spec={"parts": [{"name": "x"}]}), PLANS.kind)
    assert document["spec"]["parts"] == [{"name": "x", "enabled": True}]
    assert json.loads(CODEC.encode(document))["spec"] == {
        "parts": [{"name": "x"}],
        "replicas": 1,
        "sharing": {"enabled": False},
    }


@pytest.mark.row(26)
def test_the_order_is_that_of_the_definition_and_never_another() -> None:
    one = plan(spec={"replicas": 2, "byZone": {"z": "1", "a": "2"}, "version": "v1", "sharing": {"enabled": False}})
    other = plan(spec={"sharing": {"enabled": False}, "version": "v1", "byZone": {"a": "2", "z": "1"}, "replicas": 2})
    assert CODEC.encode(one, Media.YAML) == CODEC.encode(other, Media.YAML)
    assert CODEC.encode(one, Media.YAML).decode() == (
        "apiVersion: infra.trimtab.dev/v3\n"
        "kind: Plan\n"
        "metadata:\n  name: a\n  project: red\n"
        "spec:\n  version: v1\n  byZone:\n    a: '2'\n    z: '1'\n  replicas: 2\n  sharing:\n    enabled: false\n"
    )


@pytest.mark.row(25)
def test_a_list_has_its_kind_its_count_its_revision_and_where_it_goes_on() -> None:
    page = HubList(items=[plan()], revision=9, after=("red", "a"))
    document = json.loads(CODEC.encode_list(page, PLANS))
    assert (document["apiVersion"], document["kind"]) == ("infra.trimtab.dev/v3", "PlanList")
    assert document["metadata"] == {"count": 1, "resourceVersion": "9", "continue": continue_token(page)}
    assert read_token(document["metadata"]["continue"]) == (9, ("red", "a"))
    with pytest.raises(Unreadable):
        read_token("bogus!")


@pytest.mark.row(26)
def test_a_strict_codec_names_every_field_that_is_not_there() -> None:
    document = {**plan(spec={"replica": 1, "parts": [{"name": "x", "on": True}]}), "extra": 1}
    document["metadata"]["uid"] = "u"
    with pytest.raises(Refused) as refused:
        STRICT.decode(json.dumps(document).encode())
    assert {field for field, _ in refused.value.problems} == {
        "metadata.uid",
        "spec.replica",
        "spec.parts[0].on",
        "extra",
    }
    assert "replica" not in CODEC.decode(json.dumps(document).encode())["spec"]


@pytest.mark.row(26)
def test_a_key_that_occurs_twice_is_a_mistake() -> None:
    twice = b'{"apiVersion":"infra.trimtab.dev/v3","kind":"Plan","metadata":{"name":"a","name":"b"}}'
    with pytest.raises(Unreadable, match='"name" occurs twice'):
        STRICT.decode(twice)
    with pytest.raises(Unreadable, match="duplicate key"):
        CODEC.decode(b"kind: Plan\nkind: Plan\n", Media.YAML)


@pytest.mark.row(2)
@EVERY
def test_an_unknown_kind_is_refused_with_the_known_ones(media: Media) -> None:
    document = {"apiVersion": "infra.trimtab.dev/v9", "kind": "Plan", "metadata": {"name": "a"}}
    data = {Media.JSON: msgspec.json, Media.MSGPACK: msgspec.msgpack}.get(media, msgspec.json).encode(document)
    with pytest.raises(UnknownKind, match=r"known are infra\.trimtab\.dev/v3 Plan"):
        CODEC.decode(data, media)


@pytest.mark.row(26)
@pytest.mark.parametrize(
    ("data", "media", "why"),
    [
        (b"[" * 100_000, Media.JSON, "nested|line 1"),
        (b'{"a":' * 1000 + b"1" + b"}" * 1000, Media.JSON, "nested"),
        (b"a: " + b"[" * 5000, Media.YAML, "nested|line 1"),
        (b"\x91" * 100_000, Media.MSGPACK, "nested|msgpack"),
        (b"x" * (MAX_BYTES + 1), Media.JSON, "too many"),
        (b"\xff\xfe", Media.YAML, "UTF-8"),
        (b"{1: a, metadata: {}}", Media.YAML, "quote it"),
        (b"a: .nan", Media.YAML, "no number"),
        (b'{"a": NaN}', Media.JSON, "no number|malformed"),
        (b"a: !!binary aGVsbG8=", Media.YAML, "bytes"),
        (b"\x81\xa1a\xc4\x01x", Media.MSGPACK, "bytes"),
        (b"\x81\xa1a\xd6\xff\x00\x00\x00\x00", Media.MSGPACK, "datetime"),
        (b"\x81\x81\xa1a\x01\x02", Media.MSGPACK, "msgpack"),
        (b"- 1", Media.YAML, "object"),
        (b"", Media.YAML, "are 0"),
        (b"\xc1", Media.MSGPACK, "msgpack"),
        (b'{"apiVersion": "v1", "kind": "List", "items": 3}', Media.JSON, "list"),
        (b'{"a": ' + b"9" * 6000 + b"}", Media.JSON, "digits|integer|apiVersion|kind"),
    ],
)
def test_bad_bytes_are_told_and_nothing_worse(data: bytes, media: Media, why: str) -> None:
    with pytest.raises(HubError, match=why):
        CODEC.decode(data, media)


@pytest.mark.row(26)
def test_a_yaml_bomb_does_not_unfold() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(Unreadable, match="unfolds"):
        CODEC.decode("\n".join(lines).encode(), Media.YAML)


@given(data=st.binary(max_size=200), media=st.sampled_from(list(Media)))
def test_any_bytes_are_a_document_or_an_error_of_the_hub(data: bytes, media: Media) -> None:
    with contextlib.suppress(HubError):
        list(CODEC.decode_all(data, media))


@pytest.mark.row(26)
def test_a_wrong_type_is_told_with_its_field_and_document() -> None:
    good, bad = plan("a"), plan("b", spec={"replicas": "x"})
    stream = json.dumps(good) + "\n" + json.dumps(bad)
    found: list[Any] = []
    with pytest.raises(Refused, match=r"spec\.replicas.*document 2"):
        found.extend(CODEC.decode_all(stream.encode(), Media.JSON))
    assert len(found) == 1


@pytest.mark.row(6)
def test_a_document_without_a_name_is_refused() -> None:
    with pytest.raises(Refused, match=r"metadata\.name"):
        CODEC.decode(json.dumps({**plan(), "metadata": {"project": "red"}}).encode())
    with pytest.raises(Refused, match=r"metadata\.labels"):
        CODEC.decode(json.dumps({**plan(), "metadata": {"name": "a", "labels": {"x": 1}}}).encode())


@pytest.mark.row(3)
def test_a_project_and_a_namespace_that_contradict_each_other_are_refused() -> None:
    document = plan()
    document["metadata"] |= {"project": "red", "namespace": "blue"}
    with pytest.raises(Refused, match=r"metadata.project: is red, and metadata.namespace is blue"):
        CODEC.decode(json.dumps(document).encode())
    document["metadata"]["namespace"] = "red"
    assert CODEC.decode(json.dumps(document).encode())["metadata"]["project"] == "red"


@pytest.mark.row(26)
def test_there_is_a_bound_of_documents_and_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    some = CODEC.encode_all([plan("a"), plan("b"), plan("c")])
    monkeypatch.setattr("trimtab.hub.codec.MAX_DOCUMENTS", 2)
    with pytest.raises(Unreadable, match="more than 2 documents"):
        list(CODEC.decode_all(some))
    monkeypatch.setattr("trimtab.hub.reading.MAX_NODES", 8)
    wide = json.dumps({**plan(), "spec": {"places": ["x"] * 9}}).encode()
    with pytest.raises(Unreadable, match="8 values at most"):
        CODEC.decode(wide)
