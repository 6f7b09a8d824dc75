"""What is known of one generated kind: its fields with their classes, its calls, its identity. The contract of the whole
system: `compiling` makes a Model from an OpenAPI document and a RestDefinition, and everything else reads only this.

A Model is plain data: it is kept as JSON in a ConfigMap, so that neither admission nor a reconcile parses a document.

The tree of `spec` holds what may be written. A type that occurs again or contains itself is in `types` and referred to by
`Node.ref`; `Model.node` follows references. Classes are inherited downwards by whoever walks: what is below a create-only
field is create-only. Read-only fields are not in `spec` at all; they are in `observed`, and `Model.read_only` names them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec


class FieldClass(enum.Enum):
    """What may be done with a field."""

    WRITABLE = "writable"
    READ_ONLY = "read-only"
    CREATE_ONLY = "create-only"  # given at creation, never changed
    WRITE_ONLY = "write-only"  # never returned
    SECRET = "secret"  # noqa: S105 - write-only, and given as a reference to a Secret
    INITIAL = "initial"  # given at creation, then someone else's


class Comparator(enum.Enum):
    """When two values of a leaf are the same."""

    EXACT = "exact"
    CASELESS = "caseless"  # enums
    ARM_ID = "arm-id"  # caseless, without a trailing slash
    LOCATION = "location"  # "West US" is "westus"
    DURATION = "duration"  # ISO 8601
    DATE_TIME = "date-time"
    NUMBER = "number"  # "5" is 5
    QUANTITY = "quantity"  # "1Gi"
    JSON = "json"  # a document in a string
    DNS_NAME = "dns-name"  # caseless, with or without the final dot


class Writer(enum.Flag):
    """Which calls take a field."""

    NONE = 0
    CREATE = 1
    UPDATE = 2
    PATCH = 4
    ALL = 7


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One schema: of a field, of the items of a list, of the values of a map. With `ref`, type and children are those of
    that type; class, writers, comparator and description are those of the field."""

    type: str = "any"  # object, map, array, string, integer, number, boolean, any
    ref: str = ""
    field: FieldClass = FieldClass.WRITABLE
    why: str = ""  # what decided the class: overlay, x-ms-mutability, readOnly, x-ms-secret, built-in, schemas, default
    writers: Writer = Writer.ALL
    description: str = ""
    properties: dict[str, Node] = {}
    additional: bool = False
    """An object with properties that also takes others."""
    items: Node | None = None  # of an array or a map
    required: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """What identifies the items of a list; without it the list is one value."""
    unordered: bool = False  # a list of scalars that is a set
    compare: Comparator = Comparator.EXACT
    discriminator: str = ""
    variants: dict[str, str] = {}
    """By the discriminator's value, the name of the type."""
    nullable: bool = False
    default: Any = None
    fill: bool = False  # the default is the overlay's: a body has it where the spec says nothing
    enum: tuple[Any, ...] = ()
    open_enum: bool = False
    format: str = ""
    pattern: str = ""
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    reference: str = ""
    """A resource ID of this ARM type ("Microsoft.Network/virtualNetworks/subnets"), or "*": may be given as a reference
    to another object."""


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One operation. `path` has {parameters}; `query` gives constants and {parameters} of the query string."""

    method: str
    path: str
    query: dict[str, str] = {}
    content_type: str = "application/json"
    conditional: bool = False  # takes If-Match, or If-None-Match
    long_running: bool = False
    items: str = ""  # of a list: the path to the items; "" is the body itself
    next_link: str = ""  # of a list: the path to the URL of the next page
    name_in_list: bool = True  # whether the items of a list are whole resources, as a read gives them


class Calls(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`create` may be `update` (a PUT to the resource's own URL). Without `read`, `list` and the identity find it."""

    create: Call
    read: Call | None = None
    update: Call | None = None  # PUT of the whole; or a POST that changes what has the same identity
    patch: Call | None = None
    delete: Call | None = None
    list: Call | None = None


class Parameter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A parameter of a path, and where its value comes from: "identity" is the own name, "parent" the same parameter of
    the parent's path, "object" `spec.parameters`, "service" the RestService's parameters."""

    name: str
    source: str
    encode: bool = True
    pattern: str = ""
    min_length: int | None = None
    max_length: int | None = None


class Identity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an object is known to the service. `resourceID` is the path of its URL, with every parameter in it."""

    parameter: str = ""  # the parameter of the path that is the own name
    field: str = ""  # the body's property that holds it too, which the spec then leaves to `name`
    writers: Writer = Writer.ALL  # the calls that take that property
    server: bool = False  # the server chooses it
    answer: str = ""  # where the answer to a creation has it: a path in the body, or "header:Location"
    find: tuple[str, ...] = ()  # the fields that together tell whether one that is there is ours


class Join(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A further read whose answer goes to `status.joined.<name>`. `path` is relative to the resource ID, or a template."""

    name: str
    path: str
    query: dict[str, str] = {}
    interval: float = 60.0
    required: bool = False
    select: str = ""  # JMESPath over the answer


class Export(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Values that are written to a Secret or a ConfigMap in the object's namespace. `call` is one more request (a POST
    such as listKeys); without it the values come from what is observed."""

    to: str  # Secret or ConfigMap
    name: str  # {name} stands for the object's
    data: dict[str, str]  # key → JMESPath
    call: Call | None = None


class Polling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a long-running operation of an API with rules of its own is followed. Empty is ARM's way, which also fits
    Operation-Location and Location with 202. Locators are `code`, `header.<name>` or `body.<path>`."""

    url: str = ""
    status: str = ""
    pending: tuple[str, ...] = ()
    success: tuple[str, ...] = ()
    error: str = ""
    deadline: float = 3600.0


class Overlay(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the document does not say. Everything that is about fields is already in the tree."""

    update: str = "merge"
    """merge: GET, change, PUT. replace: PUT of what the spec says, only. patch: PATCH alone. none: no update at all."""
    envelope: str = ""  # the path in every answer to what is meant: LXD's "metadata"
    wrap: str = ""  # the path in every request's body to put it at
    gone: dict[str, Any] = {}
    """Path → value in a read that means that the resource is gone."""
    removal: dict[str, str] = {}
    """Path → how this API removes a field: null, empty, default, omit."""
    forbidden_patch: tuple[str, ...] = ()
    upsert: bool = False  # a POST to the collection with the identity in it changes what exists
    ignored: tuple[str, ...] = ()  # fields that are neither in the spec nor compared; a PUT keeps them as they are
    keep: tuple[str, ...] = ()  # lists that are also kinds of their own: never touched unless the spec names them
    body: dict[str, Any] = {}  # constants of every body
    errors: tuple[dict[str, str], ...] = ()  # status, code, message (a regular expression), class
    hooks: tuple[str, ...] = ()  # names of entry points


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One generated kind."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str = ""
    short_names: tuple[str, ...] = ()
    service: str
    api_version: str = ""  # of the document
    description: str = ""
    spec: Node
    observed: Node = Node(type="object")
    types: dict[str, Node] = {}
    read_only: dict[str, str] = {}
    """Path → why, of the fields that a read gives and nobody may write, down to where all below is read-only."""
    renamed: dict[str, str] = {}
    """Top-level field of the spec → property of the body, where the body's name is one of ours."""
    calls: Calls
    parameters: tuple[Parameter, ...] = ()
    identity: Identity
    parent: str = ""  # the kind of the same group whose URL ours begins with
    joins: tuple[Join, ...] = ()
    exports: tuple[Export, ...] = ()
    polling: Polling = Polling()
    overlay: Overlay = Overlay()
    scale_spec: str = ""  # `.spec.sku.capacity`
    scale_status: str = ""  # `.status.observed.sku.capacity`
    refresh: float | None = 600.0  # seconds between two looks; None is never
    batch: int = 5  # from so many objects of one parent on, they are listed and not read one by one
    etag: str = ""  # the path in the body, where the ETag is there too

    def node(self, node: Node) -> Node:
        """The node with its type followed."""
        if not node.ref:
            return node
        shared = self.types[node.ref]
        return msgspec.structs.replace(
            self.node(shared),
            ref="",
            field=node.field,
            why=node.why,
            writers=node.writers,
            compare=node.compare,
            description=node.description or shared.description,
            nullable=node.nullable or shared.nullable,
            reference=node.reference or shared.reference,
            keys=node.keys or shared.keys,
            unordered=node.unordered or shared.unordered,
            default=node.default if node.fill else shared.default,
            fill=node.fill,
        )

    def variant(self, node: Node, value: Mapping[str, Any]) -> Node:
        """The node of the variant that the discriminator of this value names; the node itself when it names none."""
        node = self.node(node)
        name = node.variants.get(str(value.get(node.discriminator, ""))) if node.discriminator else None
        if name is None:
            return node
        shared = self.node(self.types[name])
        return msgspec.structs.replace(shared, field=node.field, why=node.why, writers=node.writers, discriminator="")


CONTROL = ("name", "parent", "parameters", "resourceID", "policy")
"""The fields of a generated kind's spec that are ours and not the service's."""

ENCODER = msgspec.json.Encoder(order="deterministic")
DECODER = msgspec.json.Decoder(Model)
