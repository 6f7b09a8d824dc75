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
        reason="HEAD is refused everywhere; kube-apiserver answers it for custom kinds only.",
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
        path=r"^body\.(groups|resources)$",
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
