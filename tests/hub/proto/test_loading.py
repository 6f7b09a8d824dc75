"""Kinds from proto3 files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cli.hub_proto import loaded
from trimtab.cli.systems import NoSystem
from trimtab.hub.proto.loading import load
from trimtab.hub.proto.parser import parse
from trimtab.hub.proto.tokens import ProtoError
from trimtab.hub.proxies.default import defaulted
from trimtab.hub.proxies.validate import wrong
from trimtab.hub.references import EACH, Reference
from trimtab.hub.scheme import HubConfig, HubScheme
from trimtab.model.kind import Kind

TICKET = """
syntax = "proto3";
package acme.types.desk;
import "acme/types/common/common.proto";
import "acme/types/desk/parts.proto";
option go_package = "acme/deskpb";

// A wish that somebody has.
message Ticket {
  string apiVersion = 1;
  string kind = 2;
  commonpb.Metadata metadata = 3;
  TicketSpec spec = 4;
  commonpb.Status status = 5;
}

message TicketSpec {
  // How soon.
  Priority priority = 1;
  string due_date = 2 [json_name = "due"]; // A day.
  repeated string watchers = 3;
  map<string, int32> hours = 4;
  oneof origin {
    Mail mail = 5;
    string phone = 6;
  }
  commonpb.SharingSpec sharing = 7;
  repeated commonpb.File files = 8;
  commonpb.ProjectMeta billed = 9;
  enum Priority { LOW = 0; HIGH = 1; }
  message Mail {
    string from = 1;
    Inner inner = 2;
    message Inner { bool seen = 1; Mail again = 2; }
  }
  Cost cost = 10;
  google.protobuf.Struct extra = 11;
  string team = 12 [(trimtab.hub.common.ref) = "Team", (hub.default) = "\\"blue\\"", deprecated = true];
  reserved 20 to 30, 99;
  reserved "old";
}

service Tickets { rpc Get(Ticket) returns (Ticket) { option (x) = { a: 1 }; } }
"""
PARTS = """
syntax = "proto3";
package acme.types.desk;
/* What it
 * costs. */
message Cost { double amount = 1; uint64 cents = 2; bytes proof = 3; }
"""
SOURCES = {"acme/types/desk/ticket.proto": TICKET, "acme/types/desk/parts.proto": PARTS}


@pytest.fixture
def kind() -> Kind:
    loaded = load(SOURCES, group="desk", version="v3")
    assert loaded.config.kind is not None
    return loaded.config.kind


@pytest.mark.row(6)
def test_a_message_becomes_a_kind_with_its_comments_as_descriptions(kind: Kind) -> None:
    document = kind.schema.document
    spec = document["properties"]["spec"]["properties"]
    assert document["description"] == "A wish that somebody has."
    assert list(document["properties"])[:3] == ["apiVersion", "kind", "metadata"]
    assert spec["priority"] == {"type": "string", "enum": ["LOW", "HIGH"], "description": "How soon."}
    assert spec["due"] == {"type": "string", "description": "A day."}
    assert spec["hours"]["additionalProperties"]["type"] == "integer"
    assert spec["watchers"]["items"] == {"type": "string"}
    assert spec["cost"]["description"] == "What it\ncosts."
    assert spec["cost"]["properties"]["cents"] == {"type": "integer", "format": "int64", "minimum": 0}
    assert spec["mail"]["properties"]["inner"]["properties"]["again"] == {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    assert kind.status
    assert (kind.plural, kind.kind, kind.version) == ("tickets", "Ticket", "v3")


@pytest.mark.row(6)
@pytest.mark.row(9)
def test_a_loaded_kind_validates_and_defaults_like_any_other(kind: Kind) -> None:
    scheme = HubScheme()
    scheme.add(HubConfig(kind=kind))
    served = scheme.by_plural("tickets").kind
    document = {"metadata": {"name": "a", "project": "red"}, "spec": {"mail": {}, "phone": "1", "priority": "MID"}}
    problems = dict(wrong(document, served, rules=False))
    assert list(problems) == ["spec.priority"]
    del document["spec"]["priority"]  # type: ignore[attr-defined]
    [(field, why)] = wrong(document, served, rules=True)
    assert (field, "at most one of mail, phone" in why) == ("spec", True)
    whole = defaulted({"metadata": {"name": "a", "project": "red"}}, served)
    assert whole["spec"] == {"team": "blue", "sharing": {"enabled": False}}
    assert whole["apiVersion"] == "desk.trimtab.dev/v3"


@pytest.mark.row(22)
@pytest.mark.row(23)
@pytest.mark.row(27)
def test_references_and_files_come_from_the_common_types(kind: Kind) -> None:
    loaded = load(SOURCES, "Ticket", group="desk", version="v3")
    assert set(loaded.config.references) == {
        (("spec", "sharing", "projects", EACH, "name"), "Project"),
        (("spec", "billed", "name"), "Project"),
        (("spec", "team"), "Team"),
    }
    assert loaded.files.places == (("spec", "files", "*"),)
    scheme = HubScheme()
    project = Kind(group="hub", version="v3", kind="Project", plural="projects", namespaced=False, schema=kind.schema)
    scheme.add(HubConfig(kind=project), loaded.config)
    assert set(scheme.references(scheme.by_plural("tickets"))) == {
        Reference(("spec", "sharing", "projects", EACH, "name"), "projects.hub"),
        Reference(("spec", "billed", "name"), "projects.hub"),
    }, "teams are nobody's kind here"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('syntax = "proto2";', "proto3"),
        ("message A { string a = 1; string b = 1; }", "name or number"),
        ("message A { string a_b = 1; string aB = 2; }", "aB has the name or number of a_b"),
        ("message A { required string a = 1; }", "required"),
        ("message A { string a = 1 }", "line 1"),
        ("message A {", "ends too early"),
        ("message A {} message A {}", "defined twice"),
        ("message A { string a = x; }", "no number"),
        ("§", "nothing that proto3 knows"),
        ("message A { " * 40 + "}" * 40, "deeper"),
        ("flurb A {}", "begins no definition"),
    ],
)
def test_what_is_no_proto3_is_told_with_its_line(text: str, why: str) -> None:
    with pytest.raises(ProtoError, match=why):
        parse(text)


DOUBLING = "".join(f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }}" for n in range(40)) + "message M40 {}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("message A { string metadata = 1; string spec = 2; B b = 3; }", "type B, which no file brings"),
        ("message A {}", "with metadata and spec are: none"),
        ("message A { string metadata = 1; string spec = 2; string a = 3 [(hub.default) = 'x']; }", "no JSON"),
        ("message A { string metadata = 1; M0 spec = 2; }" + DOUBLING, "over 20000 fields"),
    ],
)
def test_what_makes_no_kind_is_told(text: str, why: str) -> None:
    with pytest.raises(ProtoError, match=why):
        load({"a.proto": text}, group="g", version="v1")


def test_a_kind_needs_a_group_and_a_version() -> None:
    with pytest.raises(ProtoError, match="has no group and version: give GROUP/VERSION=FILE"):
        load(SOURCES)
    with pytest.raises(ProtoError, match="has no version: give"):
        load(SOURCES, group="desk")


@given(text=st.text(alphabet='message{}[]()<>=;,"/*\n abstring1.', max_size=120))
def test_any_text_is_a_file_or_a_proto_error(text: str) -> None:
    try:
        parse(text)
    except ProtoError:
        return


@pytest.mark.row(6)
@pytest.mark.parametrize(
    ("scalar", "least", "most"),
    [("int32", -(2**31), 2**31 - 1), ("uint32", 0, 2**32 - 1), ("fixed32", 0, 2**32 - 1), ("uint64", 0, None)],
)
def test_a_number_is_within_what_its_type_holds(scalar: str, least: int, most: int | None) -> None:
    text = f"""syntax = "proto3";
    message Box {{ Meta metadata = 1; Spec spec = 2; }}
    message Meta {{ string name = 1; }}
    message Spec {{ {scalar} size = 1; }}"""
    kind = load({"box.proto": text}, group="boxes", version="v1").config.kind
    assert kind is not None

    def problems(size: int) -> list[tuple[str, str]]:
        return wrong({"metadata": {"name": "a", "project": "p"}, "spec": {"size": size}}, kind)

    assert not problems(least)
    assert [path for path, _ in problems(least - 1)] == ["spec.size"]
    if most is not None:
        assert not problems(most)
        assert [path for path, _ in problems(most + 1)] == ["spec.size"]


@pytest.mark.row(6)
def test_a_list_with_keys_is_told_apart_by_them() -> None:
    text = """syntax = "proto3";
    message Box { Meta metadata = 1; Spec spec = 2; }
    message Meta { string name = 1; }
    message Side { string name = 1; }
    message Spec { repeated Side sides = 1 [(hub.keys) = "name"]; repeated Side others = 2; }"""
    kind = load({"box.proto": text}, group="boxes", version="v1").config.kind
    assert kind is not None
    spec = kind.schema.document["properties"]["spec"]["properties"]
    assert spec["sides"]["x-kubernetes-list-type"] == "map"
    assert spec["sides"]["x-kubernetes-list-map-keys"] == ["name"]
    assert spec["others"]["x-kubernetes-list-type"] == "atomic"


def test_only_what_a_file_imports_is_read_with_it(tmp_path: Path) -> None:
    kind = 'import "acme/parts.proto"; message Desk { trimtab.hub.common.Metadata metadata = 1; Part spec = 2; }'
    files = {
        "desk.proto": f'syntax = "proto3"; package acme; import "trimtab/hub/common.proto"; {kind}',
        "parts.proto": 'syntax = "proto3"; package acme; import "woods.proto"; message Part { Wood wood = 1; }',
        "woods.proto": 'syntax = "proto3"; package acme; message Wood { string name = 1; }',
        "legacy.proto": 'syntax = "proto2"; message Old { required string name = 1; }',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    made = loaded(f"acme/v1={tmp_path / 'desk.proto'}").config.kind
    assert made is not None
    spec = made.schema.document["properties"]["spec"]["properties"]
    assert spec["wood"]["properties"]["name"] == {"type": "string"}
    (tmp_path / "woods.proto").write_text(files["legacy.proto"])
    with pytest.raises(NoSystem, match=r"woods\.proto: line 1: syntax"):
        loaded(f"acme/v1={tmp_path / 'desk.proto'}")
