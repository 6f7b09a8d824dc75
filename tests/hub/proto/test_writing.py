"""Kinds as proto3 files: read back by us, and by protoc."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hub.kit import TYPES, Plan
from tests.needs import lacks
from trimtab.cli import hub_proto
from trimtab.hub.artifacts.digests import file_paths
from trimtab.hub.proto import common
from trimtab.hub.proto.loading import load
from trimtab.hub.proto.lock import SHIPPED, Lock, LockError, MessageLock, Numbered, numbered, read, write
from trimtab.hub.proto.parser import parse
from trimtab.hub.proto.writing import kind_key, written
from trimtab.hub.references import references_of
from trimtab.model.hub import HubResource
from trimtab.model.scheme import Scheme
from trimtab.systems.platform.hub_kinds import HUB_KINDS

CLASSES = [Plan, *(kind.cls for kind in HUB_KINDS)]
EVERY = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


def fields(schema: dict[str, Any], path: str = "") -> dict[str, Any]:
    """path → type of everything in a schema."""
    found = {path: schema.get("type")}
    for name, part in (schema.get("properties") or {}).items():
        found |= fields(part, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            found |= fields(schema[word], f"{path}[]")
    return found


@pytest.mark.row(6)
@EVERY
def test_a_kind_that_is_loaded_from_what_was_written_is_the_same(cls: type[HubResource]) -> None:
    made = written(cls, Lock())
    loaded = load({made.path: made.text})
    kind = loaded.config.kind
    assert kind is not None
    own = Scheme().kind_of(cls)
    assert (kind.kind, kind.plural, kind.version, kind.namespaced) == (
        own.kind,
        own.plural,
        own.version,
        own.namespaced,
    )
    spec, own_spec = (each.schema.document["properties"].get("spec", {}) for each in (kind, own))
    assert fields(dict(spec)) == fields(dict(own_spec))
    types = {**TYPES, "Blueprint": "blueprints.infra"}
    references = {(path, types[name]) for path, name in loaded.config.references if name in types}
    assert references == {(each.path, each.type) for each in references_of(cls, types)}
    assert set(loaded.files.places) == set(file_paths(cls).places)


@EVERY
def test_what_is_written_is_the_same_each_time(cls: type[HubResource]) -> None:
    first = written(cls, Lock())
    assert written(cls, first.lock) == first
    assert {kind_key(cls)} == set(first.lock.kinds)


@pytest.mark.row(6)
def test_protoc_takes_every_kind(tmp_path: Path) -> None:
    if importlib.util.find_spec("grpc_tools") is None:
        lacks("needs grpcio-tools, which has protoc")
    hub_proto.write(CLASSES, tmp_path / "out", tmp_path / "lock.json")
    files = sorted(path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*.proto"))
    assert len(files) == len(CLASSES) + 1
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", ".", f"--descriptor_set_out={tmp_path / 'set'}"]
    done = subprocess.run(
        [*command, *map(str, files)], cwd=tmp_path / "out", capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_common_file_is_one_that_we_can_read() -> None:
    file = parse(common.TEXT)
    assert file.package == common.PACKAGE
    assert [field.json_name for field in file.messages["Metadata"].fields] == [
        "name",
        "project",
        "description",
        "labels",
        "annotations",
    ]


names = st.sampled_from("abcdefgh")
shapes = st.dictionaries(names, st.sampled_from(["string", "int64"]), max_size=6)


@given(history=st.lists(shapes, min_size=1, max_size=6))
def test_a_number_never_means_two_things(history: list[dict[str, str]]) -> None:
    lock = MessageLock()
    meant: dict[int, tuple[str, str]] = {}
    for shape in history:
        lock = numbered(lock, shape)
        numbers = [one.number for one in lock.fields.values()]
        assert list(lock.fields) == list(shape)
        assert len(set(numbers)) == len(numbers)
        assert not set(numbers) & {each.number for each in lock.reserved}
        for name, one in lock.fields.items():
            assert meant.setdefault(one.number, (name, one.type)) == (name, one.type)
        assert set(meant) == set(numbers) | {each.number for each in lock.reserved}, "what was used once is never free"
        assert numbered(lock, shape) == lock


def test_protobufs_own_numbers_are_left_out() -> None:
    lock = MessageLock({"a": numbered(MessageLock(), {"a": "string"}).fields["a"].__class__(18_999, "string")})
    assert numbered(lock, {"a": "string", "b": "string"}).fields["b"].number == 20_000


def test_removed_fields_are_reserved_in_the_file(tmp_path: Path) -> None:
    made = written(Plan, Lock())
    messages = made.lock.kinds[kind_key(Plan)]
    before = numbered(
        messages["PlanSpec"], {**{n: f.type for n, f in messages["PlanSpec"].fields.items()}, "old": "bool"}
    )
    lock = Lock({kind_key(Plan): {**messages, "PlanSpec": before}})
    text = written(Plan, lock).text
    number = before.fields["old"].number
    assert f'reserved {number};\n    reserved "old";' in text


def test_a_lock_file_comes_back_as_it_was_and_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "lock.json"
    assert read(path) == Lock()
    lock = written(Plan, Lock()).lock
    write(path, lock)
    assert read(path) == lock
    first = path.read_bytes()
    write(path, read(path))
    assert path.read_bytes() == first
    path.write_text("[]")
    with pytest.raises(LockError, match="no lock file"):
        read(path)


def blueprint_proto(folder: Path) -> str:
    """What the command writes, with the lock that is there."""
    assert hub_proto.run(["Blueprint"], folder / "out", folder / "lock.json") == 0
    return next((folder / "out").rglob("blueprint.proto")).read_text()


def test_the_command_keeps_the_number_of_a_field_that_was_removed(tmp_path: Path) -> None:
    plain = blueprint_proto(tmp_path)
    kinds = read(tmp_path / "lock.json").kinds
    spec = kinds["infra/v3/Blueprint"]["BlueprintSpec"]
    last = max(each.number for each in spec.fields.values())
    older = {**spec.fields, "gone": Numbered(last + 1, "string")}
    kinds["infra/v3/Blueprint"]["BlueprintSpec"] = MessageLock(older)
    write(tmp_path / "lock.json", Lock(kinds))
    for _ in range(2):
        text = blueprint_proto(tmp_path)
        assert f'reserved {last + 1};\n    reserved "gone";' in text
        assert {*plain.splitlines()} <= {*text.splitlines()}, "the others keep theirs"


RENEW = "trimtab hub proto --out /tmp/proto --lock src/trimtab/hub/proto/shipped.lock.json"


@pytest.mark.row(6)
def test_every_field_of_the_kinds_that_ship_has_its_number_in_the_lock_that_ships(tmp_path: Path) -> None:
    lock = tmp_path / "lock.json"
    lock.write_bytes(SHIPPED.read_bytes())
    assert hub_proto.run([], tmp_path / "out", lock) == 0
    assert lock.read_text() == SHIPPED.read_text(), f"{RENEW} renews the numbers of fields; commit them"


def test_a_lock_that_is_begun_has_the_numbers_that_ship_for_the_kinds_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has kept no lock still finds the numbers of the release before."""
    blueprint_proto(tmp_path)
    (tmp_path / "lock.json").replace(tmp_path / "shipped.json")
    kinds = read(tmp_path / "shipped.json").kinds
    fields = kinds["infra/v3/Blueprint"]["BlueprintSpec"].fields
    moved = MessageLock({name: Numbered(each.number + 100, each.type) for name, each in fields.items()})
    kinds["infra/v3/Blueprint"]["BlueprintSpec"] = moved
    write(tmp_path / "shipped.json", Lock(kinds))
    monkeypatch.setattr("trimtab.hub.proto.lock.SHIPPED", tmp_path / "shipped.json")
    text = blueprint_proto(tmp_path)
    assert all(f"{name} = {each.number}" in text for name, each in moved.fields.items())
    assert set(read(tmp_path / "lock.json").kinds) == {"infra/v3/Blueprint"}


def test_the_command_writes_the_kinds_that_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = hub_proto.run(["Blueprint", "addons"], tmp_path / "out", tmp_path / "lock.json")
    assert code == 0
    shown = capsys.readouterr().out.splitlines()
    assert [Path(line).name for line in shown] == ["common.proto", "addon.proto", "blueprint.proto"]
    assert (tmp_path / "lock.json").exists()
    assert hub_proto.run(["Nothing"], tmp_path / "out", tmp_path / "lock.json") == 3
    assert "there is no hub kind Nothing; there are" in capsys.readouterr().err
