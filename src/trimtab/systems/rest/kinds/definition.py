"""RestDefinition: which paths of an API are one kind, and what its document does not say about it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from trimtab.model.conditions import Conditions
from trimtab.model.duration import Period
from trimtab.model.kind import Column
from trimtab.model.markers import Immutable, Keyed
from trimtab.model.resource import Resource, Spec
from trimtab.systems.rest.kinds.service import Name, Text, Time

Path = Annotated[str, Meta(max_length=1024, description="A path of fields: properties.sku.name, rules[].name, tags.*")]


class Names(Spec):
    """What the kind is called."""

    kind: Annotated[str, Meta(min_length=1, max_length=63, pattern="^[A-Z][A-Za-z0-9]*$")]
    plural: Annotated[str, Meta(min_length=1, max_length=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    short_names: Annotated[tuple[Annotated[str, Meta(max_length=63)], ...], Meta(max_length=8)] = ()


class Operation(Spec):
    """One operation of the document."""

    method: Literal["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD"]
    path: Annotated[str, Meta(min_length=1, max_length=2048)]
    query: Annotated[dict[str, Text], Meta(max_length=32, description="Constants, and {parameters}.")] = field(
        default_factory=dict
    )
    content_type: Annotated[str, Meta(max_length=128, description="Of the body, when the document offers several.")] = (
        ""
    )
    items: Annotated[Path, Meta(description="In the answer of a list; empty is what the document says.")] = ""
    next_link: Path = ""
    whole: Annotated[bool, Meta(description="Whether a list's items are all that a read would give.")] = True


class Operations(Spec):
    """create is needed, and read or list. What is left out cannot be done."""

    create: Operation
    read: Operation | UnsetType = UNSET
    update: Operation | UnsetType = UNSET
    patch: Operation | UnsetType = UNSET
    delete: Operation | UnsetType = UNSET
    list: Operation | UnsetType = UNSET


class IdentitySpec(Spec):
    """How an object is known to the service."""

    parameter: Annotated[Text, Meta(description="The parameter of the path that is its own name.")] = ""
    field: Annotated[Path, Meta(description="The body's property that holds the name too.")] = ""
    assigned: Annotated[Literal["client", "server"], Meta(description="Who chooses it.")] = "client"
    answer: Annotated[Path, Meta(description="Where a creation's answer has it: a path, or header:Location.")] = ""
    find: Annotated[
        tuple[Path, ...], Meta(max_length=16, description="Fields that together tell one's own resource in a list.")
    ] = ()


class FieldOverlay(Spec):
    """What the document does not say about a field."""

    class_: (
        Literal["writable", "read-only", "create-only", "write-only", "secret", "initial", "ignored"] | UnsetType
    ) = field(default=UNSET, name="class")
    compare: (
        Literal[
            "exact", "caseless", "arm-id", "location", "duration", "date-time", "number", "quantity", "json", "dns-name"
        ]
        | UnsetType
    ) = UNSET
    keys: Annotated[tuple[Text, ...], Meta(max_length=8, description="What identifies the items of a list.")] = ()
    unordered: Annotated[bool, Meta(description="The list is a set.")] = False
    removal: Literal["null", "empty", "default", "omit"] | UnsetType = UNSET
    patch: Annotated[bool, Meta(description="False: PATCH does not take it, whatever the document says.")] = True
    default: Any = UNSET
    required: bool = False
    keep: Annotated[
        bool, Meta(description="A list that is a kind of its own too: untouched unless the spec has it.")
    ] = False
    reference: Annotated[Text, Meta(description="It is a resource ID of this type.")] = ""


class ErrorRule(Spec):
    """What an error means here."""

    status: Annotated[int, Meta(ge=100, le=599)] | UnsetType = UNSET
    code: Text = ""
    message: Annotated[str, Meta(max_length=256, description="A regular expression (RE2) found in the message.")] = ""
    class_: Literal[
        "terminal", "immutable", "dependency", "conflict", "throttled", "auth", "transient", "unknown", "gone", "exists"
    ] = field(name="class")


class Polling(Spec):
    """How long-running operations are followed where ARM's way does not fit. Locators: code, header.<name>, body.<path>."""

    url: Text = ""
    status: Text = ""
    pending: Annotated[tuple[Text, ...], Meta(max_length=16)] = ()
    success: Annotated[tuple[Text, ...], Meta(max_length=16)] = ()
    error: Text = ""
    deadline: Period = Period("1h")


class Quirks(Spec):
    """How this kind departs from what its document promises."""

    fields: Annotated[dict[str, FieldOverlay], Meta(max_length=512)] = field(default_factory=dict)
    update: Annotated[
        Literal["merge", "replace", "patch", "none"],
        Meta(description="merge: read, change, PUT. replace: PUT only what the spec says. none: there is no update."),
    ] = "merge"
    upsert: Annotated[bool, Meta(description="A creation that names what exists changes it.")] = False
    envelope: Annotated[Path, Meta(description="Where answers have what is meant: metadata.")] = ""
    wrap: Annotated[Path, Meta(description="Where requests have it.")] = ""
    gone: Annotated[
        dict[str, Any], Meta(max_length=8, description="Path and value in a read that mean that it is gone.")
    ] = field(default_factory=dict)
    body: Annotated[dict[str, Any], Meta(max_length=32, description="Constants of each body.")] = field(
        default_factory=dict
    )
    errors: Annotated[tuple[ErrorRule, ...], Meta(max_length=64)] = ()
    polling: Polling = Polling()
    rename: Annotated[dict[str, Text], Meta(max_length=16, description="Field of the spec → property of the body.")] = (
        field(default_factory=dict)
    )
    hooks: Annotated[tuple[Name, ...], Meta(max_length=16, description="Entry points of trimtab.rest.hooks.")] = ()


class JoinSpec(Spec):
    """One more read whose answer goes to status.joined.<name>."""

    name: Annotated[str, Meta(min_length=1, max_length=63, pattern="^[A-Za-z][A-Za-z0-9]*$")]
    path: Annotated[str, Meta(min_length=1, max_length=2048, description="Below the resource: instanceView.")]
    query: dict[str, Text] = field(default_factory=dict)
    interval: Period = Period("1m")
    required: Annotated[bool, Meta(description="Whether Ready waits for it.")] = False
    select: Annotated[str, Meta(max_length=1024, description="JMESPath over the answer.")] = ""


class ExportSpec(Spec):
    """Values for others to use, in the namespace of the object."""

    to: Literal["Secret", "ConfigMap"]
    name: Annotated[str, Meta(min_length=1, max_length=253, description="{name} stands for the object's name.")]
    data: Annotated[dict[str, Text], Meta(min_length=1, max_length=64, description="Key → JMESPath.")]
    operation: Annotated[Operation, Meta(description="Ask for them by a call such as listKeys.")] | UnsetType = UNSET


class ScaleSpec(Spec):
    """For `kubectl scale`."""

    spec_replicas_path: Annotated[str, Meta(max_length=512)]
    status_replicas_path: Annotated[str, Meta(max_length=512)]


class Refresh(Spec):
    """How often what exists is looked at."""

    interval: Annotated[str, Meta(max_length=64, pattern=r"^(never|([0-9]+(\.[0-9]+)?(ms|s|m|h|d|w))+)$")] = "10m"
    batch: Annotated[int, Meta(ge=1, le=100000, description="From so many siblings on, one list is read instead.")] = 5


class RestDefinitionSpec(Spec):
    """Which operations are one kind."""

    service_ref: Annotated[
        Name, Immutable(), Meta(description="The RestService; the kind lives in <it>.rest.trimtab.dev.")
    ]
    names: Annotated[Names, Immutable()]
    version: Annotated[str, Immutable(), Meta(min_length=1, max_length=63, pattern="^v[1-9][a-z0-9]*$")] = "v1"
    operations: Operations
    identity: IdentitySpec = IdentitySpec()
    parent: Annotated[str, Meta(max_length=63, description="The kind whose URL this one's begins with.")] = ""
    overlay: Quirks = Quirks()
    joins: Annotated[tuple[JoinSpec, ...], Keyed("name"), Meta(max_length=16)] = ()
    exports: Annotated[tuple[ExportSpec, ...], Meta(max_length=16)] = ()
    scale: ScaleSpec | UnsetType = UNSET
    refresh: Refresh = Refresh()


class Quirk(Spec):
    """Something that was learned about the service while working with it."""

    path: Path
    behaviour: Annotated[str, Meta(max_length=64, description="RemovedByEmpty, NullKept, NotReturned, …")]
    evidence: Annotated[str, Meta(max_length=1024)]
    object: Annotated[str, Meta(max_length=512, description="Where it was first seen.")]
    first_seen: Time


class RestDefinitionStatus(Spec):
    """What came of it."""

    conditions: Conditions | UnsetType = UNSET
    observed_generation: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    api_version: Annotated[Text, Meta(description="Of the generated kind.")] | UnsetType = UNSET
    model: Annotated[Text, Meta(description="The ConfigMap that holds what was compiled.")] | UnsetType = UNSET
    model_digest: Text | UnsetType = UNSET
    fields: Annotated[dict[str, int], Meta(description="How many fields are of which class.")] | UnsetType = UNSET
    quirks: Annotated[tuple[Quirk, ...], Meta(max_length=64)] | UnsetType = UNSET


class RestDefinition(
    Resource,
    group="rest",
    version="v1alpha1",
    plural="restdefinitions",
    short=("restdef",),
    namespaced=False,
    columns=(
        Column("Service", ".spec.serviceRef"),
        Column("Kind", ".spec.names.kind"),
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
    ),
):
    """Makes some paths of an API a kind of this one."""

    spec: RestDefinitionSpec
    status: RestDefinitionStatus | UnsetType = UNSET
