"""The hub's own types, which every kind's file imports, and the options that say what proto3 has no words for."""

from __future__ import annotations

from functools import cache
from typing import Any

from trimtab.model.hub import File, HubResource, Sharing
from trimtab.model.structural import structural

PACKAGE = "trimtab.hub.common"
FILE = "trimtab/hub/common.proto"

TEXT = """\
// What all kinds of the hub share.
syntax = "proto3";

package trimtab.hub.common;

import "google/protobuf/descriptor.proto";

// All of a resource's metadata that leaves the hub.
message Metadata {
  string name = 1;
  // The project that the resource is in: its namespace.
  string project = 2;
  string description = 3;
  map<string, string> labels = 4;
  map<string, string> annotations = 5;
}

message ListMetadata {
  int64 count = 1;
  string resource_version = 2;
  string continue = 3;
}

// A project, by its name.
message ProjectRef {
  string name = 1;
}

// Who beside the owner may use a resource: nobody, everybody (`*`), or the projects that are named.
message Sharing {
  bool enabled = 1;
  repeated ProjectRef projects = 2;
}

// A file that belongs to a resource, named by its path relative to the document.
message File {
  string name = 1;
  string digest = 2;
  bool sensitive = 3;
}

// How far a resource has come. Each kind has fields of its own beside these.
message Status {
  int64 observed_generation = 1;
  repeated Condition conditions = 2;
}

message Condition {
  string type = 1;
  string status = 2;
  string reason = 3;
  string message = 4;
  string last_transition_time = 5;
  int64 observed_generation = 6;
}

// What makes a message a kind.
message Kind {
  string group = 1;
  string version = 2;
  string plural = 3;
  bool cluster_scoped = 4;
}

extend google.protobuf.MessageOptions {
  Kind kind = 50900;
}

extend google.protobuf.FieldOptions {
  // The kind that this field names an object of.
  string ref = 50901;
  bool required = 50902;
  bool always_emit = 50903;
  // As JSON.
  string default = 50904;
  // All that a text may be.
  repeated string values = 50905;
  // Tells the items of a list apart.
  repeated string keys = 50906;
  string format = 50907;
}

extend google.protobuf.OneofOptions {
  bool one_required = 50901;
}
"""

METADATA = "Metadata"
PROJECTS = ("ProjectRef", "ProjectMeta")
SHARING = ("Sharing", "SharingSpec")
FILES = ("File",)
STATUS = ("Status",)


class _Shown(HubResource, group="common", version="v1"):
    sharing: Sharing = Sharing()
    file: File = File(name="x")


@cache
def schema_of(name: str) -> dict[str, Any]:
    """The schema of one of the hub's own types. KeyError when it is none of them."""
    properties = structural(_Shown)["properties"]
    if name in SHARING:
        return _without_default(properties["sharing"])
    if name in FILES:
        return _without_default(properties["file"])
    if name in PROJECTS:
        return {
            "type": "object",
            "description": "A project, by its name.",
            "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 63}},
            "required": ["name"],
        }
    if name in STATUS:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    raise KeyError(name)


def _without_default(schema: dict[str, Any]) -> dict[str, Any]:
    return {word: value for word, value in schema.items() if word != "default"}
