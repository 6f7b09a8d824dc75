"""The file of a server's kinds: quick to open, read piece by piece, never half written."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from trimtab.terraform.framework.serving import FrameworkServer
from trimtab.terraform.kinds.api import ApiError
from trimtab.terraform.kinds.catalog import definitions
from trimtab.terraform.kinds.definition import OBJECT, STRING, Definition, Field, Shape
from trimtab.terraform.kinds.precomputing import encoded_schema
from trimtab.terraform.kinds.provider import TrimtabProvider
from trimtab.terraform.kinds.served import served_kinds
from trimtab.terraform.kinds.shaping import metadata
from trimtab.terraform.kinds.snapshot import BadSnapshot, Kinds, Snapshot, snapshot_bytes, write_snapshot
from trimtab.terraform.protocol.contract import Encoded


def kind(name: str, fields: int = 1) -> Definition:
    spec = Shape(
        OBJECT, fields=tuple(Field(f"f{at}", f"f{at}", Shape(STRING), description="x" * 40) for at in range(fields))
    )
    meta = metadata(place="namespace", hub=False, versioned=False)
    root = Shape(OBJECT, fields=(meta, Field("spec", "spec", spec)))
    return Definition(f"a_{name}", f"a_{name}s", "a.example.com", "v1", name.title(), f"{name}s", True, False, root)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    kinds = [kind("one"), kind("two")]
    write_snapshot(tmp_path / "kinds", snapshot_bytes(kinds, b"schema"))
    read = Snapshot(tmp_path / "kinds")
    assert [read.definition(name) for name in read.heads] == kinds
    assert read.schema() == b"schema"


def test_the_order_of_kinds_does_not_change_the_bytes() -> None:
    one, two = kind("one"), kind("two")
    assert snapshot_bytes([one, two]) == snapshot_bytes([two, one])


def test_using_one_kind_reads_no_other(tmp_path: Path) -> None:
    data = snapshot_bytes([kind("one"), kind("two")])
    path = tmp_path / "kinds"
    path.write_bytes(data[:-40] + b"\0" * 40)  # the last segment is spoilt
    read = Snapshot(path)
    assert read.definition("a_one") == kind("one")
    with pytest.raises(ValueError, match="line 1"):
        read.definition("a_two")


@pytest.mark.parametrize("data", [b"", b"nonsense", b"trimtab terraform kinds 1\n" + b"\0" * 7 + b"\x03{]}"])
def test_another_file_is_refused_with_advice(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "kinds").write_bytes(data)
    with pytest.raises(BadSnapshot, match="trimtab terraform install"):
        Snapshot(tmp_path / "kinds")


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kinds").write_bytes(snapshot_bytes([kind("one")])[:-5])
    with pytest.raises(BadSnapshot, match="damaged"):
        Snapshot(tmp_path / "kinds").definition("a_one")


def test_sixty_large_schemas_are_answered_in_fifty_milliseconds(tmp_path: Path) -> None:
    kinds = [kind(f"k{number}", fields=700) for number in range(60)]
    write_snapshot(tmp_path / "kinds", snapshot_bytes(kinds, encoded_schema(kinds)))

    def once() -> float:
        began = time.perf_counter()
        read = Snapshot(tmp_path / "kinds")
        answer = FrameworkServer(TrimtabProvider(read), read.schema()).call("GetProviderSchema", {})
        took = time.perf_counter() - began
        assert isinstance(answer, Encoded)
        assert len(answer.data) > 2_000_000
        return took

    assert min(once() for _ in range(5)) < 0.05


def test_a_provider_of_kinds_at_hand_serves_the_same_schema(tmp_path: Path) -> None:
    kinds = [kind("one"), kind("two")]
    names = sorted(TrimtabProvider(Kinds(kinds)).resources())
    assert names == ["trimtab_a_one", "trimtab_a_two"]
    assert sorted(TrimtabProvider(Kinds(kinds)).data_sources()) == [
        "trimtab_a_one",
        "trimtab_a_ones",
        "trimtab_a_two",
        "trimtab_a_twos",
    ]


def test_a_group_that_goes_while_the_server_is_asked_is_left_out() -> None:
    def get(path: str) -> Any:
        if path == "/apis":
            version = {"version": "v1"}
            return {"groups": [{"name": "gone.example.com", "preferredVersion": version, "versions": [version]}]}
        if path == "/api/v1":
            verbs = ["create", "delete", "get", "list", "patch", "watch"]
            return {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": verbs}]}
        raise ApiError(404, {})

    assert [one.kind for one in served_kinds(get)] == ["ConfigMap"]
    assert definitions(get) == []
