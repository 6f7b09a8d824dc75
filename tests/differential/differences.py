"""The differences from a real kube-apiserver that are accepted, each with its reason.

An entry matches by the path of the difference in the answer and, where given, by the scenario, the request and both
values; all are regular expressions that must match somewhere. An accepted difference of the status code covers the
whole answer. docs/compatibility.md tells users the same.
"""

import re
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from .compare import Difference
    from .exchange import Request


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of difference, and why it is right to have it."""

    reason: str
    path: str
    scenario: str = ""
    request: str = ""
    real: str = ""
    ours: str = ""


ACCEPTED: tuple[Accepted, ...] = (
    Accepted(
        reason="A mistake of the client is answered 400, also where kube-apiserver answers 500.",
        path=r"^status$",
        real=r"^500$",
        ours=r"^400$",
    ),
    Accepted(
        reason="A revision that is not there yet is a time-out; kube-apiserver hands on the words of etcd.",
        path=r"^status$",
        scenario=r"^lists: revisions in the future$",
    ),
    Accepted(
        reason="An object that is too big is answered 413 at 1.5 MiB; kube-apiserver finds out from etcd, with 500.",
        path=r"^status$",
        scenario=r"^bodies: an object of 2 MiB$",
    ),
    Accepted(
        reason="A body that is not protobuf is answered 415; kube-apiserver breaks the connection.",
        path=r"^status$",
        scenario=r"^bodies: protobuf that is not$",
    ),
    Accepted(
        reason="A method that HTTP does not have is refused by the HTTP parser, with 400.",
        path=r"^status$",
        request=r"^ODD ",
    ),
    Accepted(
        reason="HEAD has no body to compare; it is answered for custom kinds only.",
        path=r"^status$",
        request=r"^HEAD ",
    ),
    Accepted(
        reason="A method that a path does not have is refused before the body is looked at, for custom kinds too.",
        path=r"^status$",
        request=r"^(PATCH|PUT|POST) ",
        scenario=r"^discovery: \w+ of (a widget|widgets|an object)$",
        ours=r"^4(05|15)$",
    ),
    Accepted(
        reason="OPTIONS and TRACE on custom kinds say what they say on built-in ones.",
        path=r"^body\.(message|details)",
        request=r"^(OPTIONS|TRACE) ",
    ),
    Accepted(
        reason="A whole number written as 2.0 or 1e1 is a whole number, for the replicas of the scale subresource too.",
        path=r"^status$",
        scenario=r"whole (number|fraction)|number with an exponent",
    ),
    Accepted(
        reason="The log is kept from the first revision on until it is compacted: old revisions can be watched.",
        path=r"^body",
        scenario=r"^watches: from a revision of long ago$",
    ),
    Accepted(
        reason="Answers about media types name those that are accepted; there they come from a routing library.",
        path=r"^body(\.message|\.details)?$",
        real=r"406: Not Acceptable|415: Unsupported Media Type|^\{\}$",
        ours=r"media types|nothing",
    ),
    Accepted(
        reason="An answer that is not acceptable names the media types of answers: protobuf is not among them.",
        path=r"^body\.message$",
        real=r"only the following media types are accepted: .*protobuf",
        ours=r"only the following media types are accepted: application/json, application/yaml\W*$",
    ),
    Accepted(
        reason="Built-in kinds answer in JSON when the client also accepts it; protobuf is read, and not written.",
        path=r"^(body|headers\.content-type\[0\])$",
        scenario=r"as protobuf$",
    ),
    Accepted(
        reason="The columns of tables have shorter descriptions.",
        path=r"columnDefinitions\[\d+\]\.description$",
    ),
    Accepted(
        reason="The version says which server it is.",
        path=r"^body\.(compiler|gitCommit|gitVersion|goVersion|platform|buildDate|gitTreeState)$",
        request=r"^GET /version",
    ),
    Accepted(
        reason="Groups and kinds that need nodes are not served.",
        path=r"^body\.(groups|resources)(\[\d+\]\..*)?$",
        request=r"^GET /apis?/(v1/)?$",
    ),
    Accepted(
        reason="An error of the YAML parser has the words of another parser.",
        path=r"^body\.message$",
        real=r"yaml: |YAML",
    ),
    Accepted(
        reason="A patched object that is refused is shown with its keys in another order.",
        path=r"^body\.(message|details\.causes\[\d+\]\.message)$",
        real=r'Invalid value: "(\{|map\[)',
        ours=r'Invalid value: "\{',
    ),
    Accepted(
        reason="A continue token that is not ours is refused without the words of the JSON parser.",
        path=r"^body\.message$",
        real=r"^invalid continue token: ",
        ours=r"^invalid continue token: ",
    ),
    Accepted(
        reason="Precondition failures do not name keys of etcd.",
        path=r"^body\.message$",
        real=r"StorageError: invalid object",
    ),
    Accepted(
        reason="An empty list has an empty array of items; kube-apiserver has null when it reads from its cache.",
        path=r"^body\.items$",
        real=r"^None$",
        ours=r"^\[\]$",
    ),
    Accepted(
        reason="A key that occurs twice in YAML is refused in every mode: one of the two is a mistake.",
        path=r"^status$",
        scenario=r"^bodies: YAML with a key twice$",
    ),
    Accepted(
        reason="Metadata of an embedded resource that is of a wrong type is found with the other errors, in a 422.",
        path=r"^status$",
        scenario=r"^schemas: an embedded resource with bad metadata$",
    ),
    Accepted(
        reason="`Accept: application/*` is answered with JSON, for built-in kinds too.",
        path=r"^status$",
        scenario=r"^bodies: accept 'application/\*'$",
    ),
    Accepted(
        reason="A scale can be applied, also of custom kinds; a write through it keeps the time in managedFields.",
        path=r"^status$|^body.*managedFields",
        scenario=r"scale",
    ),
    Accepted(
        reason="A scale of a custom kind can be applied with force, and then has its effect.",
        path=r"^body\.(metadata|spec)",
        scenario=r"^apply: a widget's scale$",
    ),
    Accepted(
        reason="What is wrong with a Scale is told of the Scale, not of the object behind it.",
        path=r"^body\.(message|details)",
        scenario=r"^customs: scale$",
    ),
    Accepted(
        reason="The times of entries in managedFields are kept for every door.",
        path=r"managedFields\[\d*\]\.time$",
        scenario=r"managers of create, update, patch and status$",
    ),
    Accepted(
        reason="Who writes labels at the door of status does not own them: they are not written there.",
        path=r"managedFields\[\d*\]\.fieldsV1\.f:metadata$",
        scenario=r"(patch of|at the door of) (the )?status",
    ),
    Accepted(
        reason="Reviews are answered and not kept: they have no managedFields.",
        path=r"managedFields$",
        request=r"^POST (/apis/auth|/api/v1/namespaces/\S+/token$)",
    ),
    Accepted(
        reason="Managers that work for the server have other names, and wrote at another time.",
        path=r"managedFields",
        scenario=r"^objects: namespace that is going|^policies: |^quotas: ",
    ),
    Accepted(
        reason="What is at no path is a plain 404.",
        path=r"^body$|content-type",
        scenario=r"^discovery: path /(openapi/v3/nothing|apis/differential.*/x/y/z)$",
    ),
    Accepted(
        reason="A watch that asks for PartialObjectMetadataList is sent the metadata of each object.",
        path=r"^body$",
        scenario=r"^watches: as metadata lists$",
    ),
    Accepted(
        reason="`kube-root-ca.crt` is in a namespace at once, so there is one ConfigMap more.",
        path=r"^body\.metadata\.(continue|remainingItemCount)$",
        scenario=r"^lists: as a table: config maps$",
    ),
    Accepted(
        reason="Kinds that do not count generations have none, whatever the body of a create says.",
        path=r"^body\.metadata\.generation$",
        scenario=r"fields that only the server sets$",
    ),
    Accepted(
        reason="The server does not guess by which address clients reach it.",
        path=r"serverAddress$",
        request=r"^GET /api$",
    ),
    Accepted(
        reason="Values in messages are printed as JSON would have them, where kube-apiserver prints its Go structs.",
        path=r"message$",
        real=r"v1\.OwnerReference\{|CustomResourceDefinitionVersion|\+0000|accessor|1e\+20|string\{\"app\"|PodTemplateSpec",
    ),
    Accepted(
        reason="A deployment without a selector is told so in another order.",
        path=r"^body\.(message|details)",
        scenario=r"removes the selector$",
    ),
    Accepted(
        reason="The labels that a job has from its template are written with it, not at the next write.",
        path=r"^body\.metadata\.resourceVersion$",
        scenario=r"^workloads: a job (is applied|loses its labels)$",
    ),
    Accepted(
        reason="The count of a daemon set's templates is in its metadata, also where these are asked for alone.",
        path=r"metadata\.annotations$",
        scenario=r"^workloads: a daemon set is",
        ours=r"deprecated\.daemonset\.template\.generation",
    ),
    Accepted(
        reason="A name that is missing from a version is told with the schema's other problems.",
        path=r"^body\.(message|details)",
        scenario=r"^definitions: (version: no name|spec: no versions)$",
    ),
    Accepted(
        reason="Of several names that are taken, another one is told first.",
        path=r"conditions\[\d*\]\.(message|reason)$",
        scenario=r"^definitions: the same names twice$",
    ),
    Accepted(
        reason="Unknown and duplicate fields are told in the order in which the schema, not the body, has them.",
        path=r"^body\.message$|^headers\.warning",
        real=r"(unknown|duplicate) field",
    ),
    Accepted(
        reason="A version that is not served is refused before its body is read, so nothing in it is warned of.",
        path=r"^headers\.warning",
        scenario=r"^customs: a version that is not there$",
    ),
    Accepted(
        reason="The types of Go are not named where they help nobody.",
        path=r"^body\.(message|details)",
        scenario=r"^(discovery: a review of another kind|objects: lease with bad times and numbers)$",
    ),
    Accepted(
        reason="A list asked for as the metadata of one object is refused without naming a type of Go.",
        path=r"^body\.(message|details)|^status$",
        real=r"you requested PartialObjectMetadata|^None$|^406",
        request=r"^(GET|POST|PUT|PATCH) ",
        ours=r"you requested PartialObjectMetadata|^\{\}$|^20[01]",
    ),
    Accepted(
        reason="A body without an object in it is told apart by less.",
        path=r"^body\.message$",
        scenario=r"^bodies: (protobuf that is not|create a widget from null)$",
    ),
    Accepted(
        reason="One custom object asked for as a list of metadata is shown; kube-apiserver writes it and then fails.",
        path=r"^status$",
        real=r"^500",
        ours=r"^20[01]",
    ),
    Accepted(
        reason="The administrator of the kubeconfig has another name here.",
        path=r"\.username$",
        scenario=r"who am I$",
    ),
)


def accepted(scenario: str, request: "Request", difference: "Difference") -> Accepted | None:
    """The entry that covers a difference, or None."""
    for entry in ACCEPTED:
        pairs: tuple[tuple[str, Any], ...] = (
            (entry.path, difference.path),
            (entry.scenario, scenario),
            (entry.request, f"{request.method} {request.path}"),
            (entry.real, difference.real),
            (entry.ours, difference.ours),
        )
        if all(re.search(pattern, str(text)) for pattern, text in pairs):
            return entry
    return None
