"""RestService: an API: where it is, how to log in, and the document that describes it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from trimtab.model.conditions import Conditions
from trimtab.model.duration import Period
from trimtab.model.kind import Column
from trimtab.model.markers import Rule
from trimtab.model.resource import Resource, Spec

Name = Annotated[str, Meta(min_length=1, max_length=253)]
Text = Annotated[str, Meta(max_length=1024)]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Count = Annotated[int, Meta(ge=0)]


class SecretReference(Spec):
    """Without a namespace it is the Secret of this name in the namespace of each object: a tenant brings its own."""

    name: Name
    namespace: Name | UnsetType = UNSET


class Credentials(Spec):
    """How to log in. The keys of the Secret are: bearer: token; basic: username, password; apiKey: key;
    mtls: tls.crt, tls.key; azure: tenantID, clientID, and clientSecret or clientCertificate, or none of them for the
    identity of the machine. With any type, ca.crt is trusted besides the system's authorities."""

    type: Annotated[Literal["none", "bearer", "basic", "apiKey", "mtls", "azure"], Meta(description="Which way.")] = (
        "none"
    )
    secret_ref: Annotated[SecretReference, Meta(description="The Secret with the keys of that way.")] | UnsetType = (
        UNSET
    )
    header: Annotated[str, Meta(max_length=128, description="The header of an API key.")] = "Authorization"
    prefix: Annotated[str, Meta(max_length=64, description="What goes before the key: `Token `.")] = ""
    query: Annotated[
        str, Meta(max_length=128, description="The query parameter of an API key, instead of a header.")
    ] = ""
    scope: Annotated[str, Meta(max_length=512, description="Of an Azure token.")] = (
        "https://management.azure.com/.default"
    )


class ConfigMapDocument(Spec):
    """A ConfigMap with the document. Keys ending in .gz are unpacked; other keys are files that it may refer to."""

    name: Name
    namespace: Name
    key: Annotated[str, Meta(max_length=253)] = "openapi.json"


class Document(Spec, rules=Rule(
    "(has(self.inline) ? 1 : 0) + (has(self.url) ? 1 : 0) + (has(self.configMap) ? 1 : 0) == 1",
    "give exactly one of inline, url and configMap",
)):  # fmt: skip
    """Where the OpenAPI document is: one of the three."""

    inline: Annotated[str, Meta(max_length=262144, description="The document itself, JSON or YAML.")] | UnsetType = (
        UNSET
    )
    url: (
        Annotated[
            str, Meta(max_length=2048, description="Fetched without credentials; references stay below its folder.")
        ]
        | UnsetType
    ) = UNSET
    config_map: ConfigMapDocument | UnsetType = UNSET
    refresh: Annotated[Period, Meta(description="How often a URL is fetched anew.")] = Period("1d")


class Limits(Spec):
    """How much is asked of the service at most, for each credential."""

    reads_per_second: Annotated[float, Meta(gt=0, le=10000)] = 20.0
    writes_per_second: Annotated[float, Meta(gt=0, le=10000)] = 5.0
    concurrent: Annotated[int, Meta(ge=1, le=256)] = 16
    timeout: Annotated[Period, Meta(description="Of one request.")] = Period("30s")


class Notifications(Spec):
    """What the service itself tells of changes, by `trimtab rest listen`."""

    token_secret: Annotated[SecretReference, Meta(description="The Secret with the key token that it sends.")]


class RestServiceSpec(Spec):
    """Where an API is and what it is like."""

    endpoint: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=2048,
            description="https://management.azure.com, http://127.0.0.1:8081/api/v1, or unix:///run/lxd.socket for a socket.",
        ),
    ]
    document: Document
    credentials: Credentials = Credentials()
    parameters: Annotated[
        dict[str, Text],
        Meta(max_length=64, description="Values of parameters that all its paths share: subscriptionId."),
    ] = field(default_factory=dict)
    headers: Annotated[dict[str, Text], Meta(max_length=32, description="Sent with each request; no secrets.")] = field(
        default_factory=dict
    )
    poll_hosts: Annotated[
        tuple[Text, ...],
        Meta(max_length=16, description="Hosts, besides the endpoint's, that an operation may be polled at."),
    ] = ()
    skip_tls_verify: Annotated[bool, Meta(description="Trust whoever answers. Only for trials.")] = field(
        default=False, name="skipTLSVerify"
    )
    limits: Limits = Limits()
    contract: Annotated[
        Literal["auto", "arm", "plain"],
        Meta(description="auto takes ARM's rules for a document of Azure's Resource Manager."),
    ] = "auto"
    notifications: Notifications | UnsetType = UNSET


class RestServiceStatus(Spec):
    """What came of the document."""

    conditions: Conditions | UnsetType = UNSET
    observed_generation: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    title: Text | UnsetType = UNSET
    version: Text | UnsetType = UNSET
    digest: (
        Annotated[str, Meta(max_length=80, description="Of the document with all that it refers to.")] | UnsetType
    ) = UNSET
    fetched_at: Time | UnsetType = UNSET
    operations: Count | UnsetType = UNSET


class RestService(
    Resource,
    group="rest",
    version="v1alpha1",
    plural="restservices",
    short=("restsvc",),
    namespaced=False,
    columns=(
        Column("Endpoint", ".spec.endpoint"),
        Column("API", ".status.title"),
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason", priority=1),
    ),
):
    """An API that this control plane manages resources of."""

    spec: RestServiceSpec
    status: RestServiceStatus | UnsetType = UNSET
