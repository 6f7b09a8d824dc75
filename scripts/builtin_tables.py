"""Generates the tables of facts about built-in kinds that the server reads, and checks that the committed ones agree.

    python scripts/builtin_tables.py [--check]

Sources, found by name: the PyPI package `kubernetes-validate` (the OpenAPI definitions of 1.32), and the Go modules
`k8s.io/api`, `k8s.io/apimachinery`, `k8s.io/apiextensions-apiserver` and `k8s.io/kube-aggregator` (protobuf field numbers in
`generated.proto`; JSON names, pointers and omitempty in the tags of the Go types). Results, in `src/trimtab/server/builtin/`:

- `definitions.json`: the OpenAPI definitions, one a line, without prose and required fields.
- `descriptions.json.gz`: the prose and the required fields, for `kubectl explain` and OpenAPI.
- `defaults.json`: for each definition the fields that Go leaves out when they are zero, and the fields that are never
  absent: what the real server defaults, and what Go always writes.
- `protobuf.bin`: a FileDescriptorSet. It says with proto3 what Go's tags say: a field that Go leaves out when it is
  zero has implicit presence, a pointer explicit; `json_name` is the name in JSON ("inline:…" where Go inlines).
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2

KUBERNETES = "1.32"
MODULES = {
    "k8s.io.api.": ("k8s.io/api", "v0.32.13"),
    "k8s.io.apimachinery.": ("k8s.io/apimachinery", "v0.32.13"),
    "k8s.io.apiextensions_apiserver.": ("k8s.io/apiextensions-apiserver", "v0.32.13"),
    "k8s.io.kube_aggregator.": ("k8s.io/kube-aggregator", "v0.32.13"),
}
TARGET = Path(__file__).parent.parent / "src" / "trimtab" / "server" / "builtin"

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
AGGREGATION = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1"
ROOTS = [
    *(f"io.k8s.api.core.v1.{kind}" for kind in (
        "Namespace", "ConfigMap", "Secret", "Event", "ServiceAccount", "Service", "Endpoints", "Pod",
        "ResourceQuota", "LimitRange", "Node", "Binding", "ReplicationController",
    )),
    "io.k8s.api.events.v1.Event",
    "io.k8s.api.coordination.v1.Lease",
    *(f"io.k8s.api.rbac.v1.{kind}" for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")),
    f"{CRD}.CustomResourceDefinition",
    f"{AGGREGATION}.APIService",
    "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
    "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
    "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy",
    "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding",
    *(f"io.k8s.api.apps.v1.{kind}" for kind in (
        "Deployment", "ReplicaSet", "ControllerRevision", "StatefulSet", "DaemonSet",
    )),
    *(f"io.k8s.api.batch.v1.{kind}" for kind in ("Job", "CronJob")),
    "io.k8s.api.networking.v1.Ingress",
    "io.k8s.api.scheduling.v1.PriorityClass",
    *(f"io.k8s.api.autoscaling.{version}.HorizontalPodAutoscaler" for version in ("v2", "v1")),
    "io.k8s.api.autoscaling.v1.Scale",
    *(f"io.k8s.api.policy.v1.{kind}" for kind in ("PodDisruptionBudget", "Eviction")),
    "io.k8s.api.certificates.v1.CertificateSigningRequest",
    *(f"io.k8s.api.authorization.v1.{kind}" for kind in (
        "SubjectAccessReview", "SelfSubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectRulesReview",
    )),
    *(f"io.k8s.api.authentication.v1.{kind}" for kind in ("SelfSubjectReview", "TokenReview", "TokenRequest")),
    f"{META}.Status",
    f"{META}.DeleteOptions",
]  # fmt: skip

ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}
SPECIAL: dict[str, dict[str, Any]] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"x-kubernetes-int-or-string": True},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"format": "quantity", **ANYTHING},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object", **ANYTHING},
    f"{META}.FieldsV1": {"type": "object", **ANYTHING},
    f"{CRD}.JSON": ANYTHING,
    f"{CRD}.JSONSchemaPropsOrArray": ANYTHING,
    f"{CRD}.JSONSchemaPropsOrBool": ANYTHING,
    f"{CRD}.JSONSchemaPropsOrStringArray": ANYTHING,
}

# What the real server sets where the client says nothing and no other field matters. The rest is in the strategies.
DEFAULTS: dict[str, dict[str, Any]] = {
    "io.k8s.api.core.v1.Secret": {"type": "Opaque"},
    "io.k8s.api.core.v1.Service": {"spec": {}},
    "io.k8s.api.core.v1.ServicePort": {"protocol": "TCP"},
    "io.k8s.api.core.v1.EndpointPort": {"protocol": "TCP"},
    "io.k8s.api.core.v1.PodSpec": {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
    },
    "io.k8s.api.core.v1.Container": {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    },
    "io.k8s.api.core.v1.EphemeralContainer": {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    },
    "io.k8s.api.core.v1.ContainerPort": {"protocol": "TCP"},
    "io.k8s.api.core.v1.Probe": {
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    },
    "io.k8s.api.core.v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "io.k8s.api.core.v1.GRPCAction": {"service": ""},
    "io.k8s.api.core.v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "io.k8s.api.core.v1.ResourceFieldSelector": {"divisor": "0"},
    "io.k8s.api.core.v1.SecretVolumeSource": {"defaultMode": 420},
    "io.k8s.api.core.v1.ConfigMapVolumeSource": {"defaultMode": 420},
    "io.k8s.api.core.v1.DownwardAPIVolumeSource": {"defaultMode": 420},
    "io.k8s.api.core.v1.ProjectedVolumeSource": {"defaultMode": 420},
    "io.k8s.api.core.v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "io.k8s.api.core.v1.HostPathVolumeSource": {"type": ""},
    "io.k8s.api.core.v1.TopologySpreadConstraint": {},
    "io.k8s.api.apps.v1.DeploymentSpec": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    },
    "io.k8s.api.apps.v1.DeploymentStrategy": {"type": "RollingUpdate"},
    "io.k8s.api.apps.v1.RollingUpdateDeployment": {"maxUnavailable": "25%", "maxSurge": "25%"},
    "io.k8s.api.apps.v1.ReplicaSetSpec": {"replicas": 1},
    "io.k8s.api.apps.v1.StatefulSetSpec": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "podManagementPolicy": "OrderedReady",
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
    "io.k8s.api.apps.v1.StatefulSetUpdateStrategy": {"type": "RollingUpdate"},
    "io.k8s.api.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    },
    "io.k8s.api.apps.v1.DaemonSetSpec": {"revisionHistoryLimit": 10},
    "io.k8s.api.apps.v1.DaemonSetUpdateStrategy": {"type": "RollingUpdate"},
    "io.k8s.api.batch.v1.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    "io.k8s.api.core.v1.ReplicationControllerSpec": {"replicas": 1},
    "io.k8s.api.core.v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "io.k8s.api.scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "io.k8s.api.rbac.v1.RoleRef": {"apiGroup": "rbac.authorization.k8s.io"},
    "io.k8s.api.admissionregistration.v1.MutatingWebhook": {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
        "reinvocationPolicy": "Never",
    },
    "io.k8s.api.admissionregistration.v1.ValidatingWebhook": {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
    },
    "io.k8s.api.admissionregistration.v1.RuleWithOperations": {"scope": "*"},
    "io.k8s.api.admissionregistration.v1.NamedRuleWithOperations": {"scope": "*"},
    "io.k8s.api.admissionregistration.v1.MatchResources": {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
    },
    "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "io.k8s.api.admissionregistration.v1.ServiceReference": {"port": 443},
    f"{CRD}.CustomResourceDefinitionSpec": {"conversion": {"strategy": "None"}},
    f"{CRD}.ServiceReference": {"port": 443},
    f"{AGGREGATION}.ServiceReference": {"port": 443},
    "io.k8s.api.authentication.v1.TokenRequestSpec": {"expirationSeconds": 3600},
}  # fmt: skip


class Tag(NamedTuple):
    """What a Go struct says of one field."""

    json: str  # "" where it is inlined
    pointer: bool
    omitempty: bool
    go: str  # the Go type without * and []


class Proto(NamedTuple):
    """One message of a generated.proto: its fields as (label, type, name, number)."""

    fields: list[tuple[str, str, str, int]]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when the committed tables differ")
    check = parser.parse_args().check
    stale = []
    for name, data in generate().items():
        path = TARGET / name
        if path.exists() and content(name, path.read_bytes()) == content(name, data):
            continue
        if check:
            stale.append(name)
        else:
            path.write_bytes(data)
    if stale:
        print(f"out of date: {', '.join(stale)}", file=sys.stderr)
    return 1 if stale else 0


def content(name: str, data: bytes) -> bytes:
    """What counts in a table. Compressed bytes may differ between versions of zlib."""
    return gzip.decompress(data) if name.endswith(".gz") else data


def generate() -> dict[str, bytes]:
    """Every table by its file name."""
    source = openapi()
    names = reachable(source, ROOTS)
    go = Go()
    prose = {name: descriptions(source[name], go.choices(proto_name(name))) for name in names}
    return {
        "definitions.json": lines(
            {name: definition(name, source[name], go.choices(proto_name(name))) for name in names}
        ),
        "defaults.json": lines({name: made for name in names if (made := defaults(name, source[name], go))}),
        "descriptions.json.gz": gzip.compress(
            json.dumps(prose, separators=(",", ":"), ensure_ascii=False).encode(), mtime=0
        ),
        "protobuf.bin": descriptors(go),
    }


def lines(table: dict[str, Any]) -> bytes:
    """A JSON object with one member a line, so that a change is easy to read."""
    members = ",\n".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in table.items())
    return f"{{\n{members}\n}}\n".encode()


def openapi() -> dict[str, Any]:
    spec = importlib.util.find_spec("kubernetes_validate")
    if spec is None or spec.origin is None:
        raise LookupError("kubernetes-validate is not installed")
    path = Path(spec.origin).parent / "kubernetes-json-schema" / f"v{KUBERNETES}.0-local" / "_definitions.json"
    definitions: dict[str, Any] = json.loads(path.read_bytes())["$defs"]
    return definitions


def reachable(source: dict[str, Any], roots: list[str]) -> list[str]:
    found: set[str] = set()
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        if name not in SPECIAL:
            pending += re.findall(r'"#/\$defs/([^"]+)"', json.dumps(source[name]))
    return sorted(found)


KEPT = ("format", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
        "x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy", "x-kubernetes-group-version-kind")  # fmt: skip


def definition(name: str, source: dict[str, Any], choices: dict[str, dict[str, str]]) -> dict[str, Any]:
    if name in SPECIAL:
        return SPECIAL[name]
    result = compact(source)
    for field in choices.keys() & result.get("properties", {}).keys():
        part = result["properties"][field]
        part.get("items", part)["enum"] = sorted(choices[field])
    if len(result.get("x-kubernetes-group-version-kind", ())) > 1:
        del result["x-kubernetes-group-version-kind"]  # DeleteOptions is of every group
    return result


def defaults(name: str, source: dict[str, Any], go: Go) -> dict[str, Any]:
    """`omits`: absent when zero. `always`: set to this when absent."""
    if name in SPECIAL:
        return {}
    always, omits = go.shape(proto_name(name))
    always |= DEFAULTS.get(name, {})
    known = source.get("properties", {}).keys()
    if name == f"{META}.ObjectMeta":
        always, omits = {"creationTimestamp": None}, []
    result = {
        "always": {field: value for field, value in sorted(always.items()) if field in known},
        "omits": sorted(field for field in omits if field in known),
    }
    return {key: value for key, value in result.items() if value}


def compact(source: dict[str, Any]) -> dict[str, Any]:
    """A schema as OpenAPI v3 has it; the package writes the absence of a value as a type of its own."""
    result: dict[str, Any] = {}
    if "$ref" in source:
        result["$ref"] = source["$ref"].replace("#/$defs/", "#/definitions/")
    kind = source.get("type")
    if isinstance(kind, list):
        (kind,) = [word for word in kind if word != "null"]
    if kind:
        result["type"] = kind
    result |= {word: source[word] for word in KEPT if word in source}
    if "properties" in source:
        result["properties"] = {k: compact(v) for k, v in sorted(source["properties"].items())}
    for word in ("items", "additionalProperties"):
        if isinstance(source.get(word), dict):
            result[word] = compact(source[word])
    return result


def descriptions(source: dict[str, Any], choices: dict[str, dict[str, str]]) -> dict[str, Any]:
    """The prose of a definition, and of its fields, and which of them are required."""
    fields = {k: v["description"] for k, v in source.get("properties", {}).items() if "description" in v}
    for field, meanings in choices.items():
        if field in fields and source["properties"][field].get("items") is None:
            listed = "\n".join(sorted(f' - `"{word}"` {said}'.rstrip() for word, said in meanings.items()))
            fields[field] += f"\n\nPossible enum values:\n{listed}"
    result = {
        "description": source.get("description", ""),
        "fields": fields,
        "required": source.get("required", []),
    }
    return {key: value for key, value in result.items() if value}


def proto_name(definition: str) -> str:
    return definition.replace("io.k8s.", "k8s.io.", 1).replace("-", "_")


class Go:
    """The facts of the Go modules, one package at a time."""

    def __init__(self) -> None:
        self._modules: dict[str, Path] = {}
        self._packages: dict[str, tuple[dict[str, Proto], dict[str, dict[str, Tag]]]] = {}
        self._enums: dict[str, dict[str, dict[str, str]]] = {}

    def message(self, name: str) -> tuple[Proto, dict[str, Tag]]:
        """A message by its full name: its fields, and the Go tags by protobuf field name."""
        package, _, short = name.rpartition(".")
        if package not in self._packages:
            folder = self._folder(package)
            structs: dict[str, dict[str, Tag]] = {}
            enums = self._enums[package] = {}
            for path in sorted(folder.glob("*.go")):
                if not path.name.endswith(("_test.go", ".pb.go")):
                    structs |= go_structs(path.read_text())
                    enums |= go_enums(path.read_text())
            self._packages[package] = (proto_messages((folder / "generated.proto").read_text(), package), structs)
        messages, structs = self._packages[package]
        return messages[short], structs.get(short, {})

    def shape(self, name: str) -> tuple[dict[str, Any], list[str]]:
        """The fields that Go always writes, with the values that they have when nobody set them; and those that it
        leaves out when they are zero, although they are no pointers."""
        try:
            message, tags = self.message(name)
        except KeyError:
            return {}, []
        always: dict[str, Any] = {}
        omits: list[str] = []
        for label, kind, field, _ in message.fields:
            tag = tags.get(field)
            if tag is None or tag.pointer:
                continue
            if label == "repeated" or kind.startswith("map<") or kind == "bytes":
                if not tag.omitempty:
                    always[tag.json] = None
            elif kind in ZERO:
                if tag.omitempty:
                    omits.append(tag.json)
                else:
                    always[tag.json] = ZERO[kind]
            elif not tag.json:
                inner_always, inner_omits = self.shape(kind)
                always |= inner_always
                omits += inner_omits
            elif kind in TIMES:
                always[tag.json] = None
            elif kind not in OPAQUE:
                always[tag.json] = {}
        return always, omits

    def choices(self, name: str) -> dict[str, dict[str, str]]:
        """The fields that are a choice of few words: each word, and what it means."""
        try:
            message, tags = self.message(name)
        except KeyError:
            return {}
        enums = self._enums[name.rpartition(".")[0]]
        found: dict[str, dict[str, str]] = {}
        for _, kind, field, _ in message.fields:
            tag = tags.get(field)
            if tag is not None and not tag.json and kind not in SCALARS:
                found |= self.choices(kind)
            elif tag is not None and tag.go in enums:
                found[tag.json] = enums[tag.go]
        return dict(sorted(found.items()))

    def _folder(self, package: str) -> Path:
        prefix, (module, version) = next((k, v) for k, v in MODULES.items() if package.startswith(k))
        if prefix not in self._modules:
            command = ["go", "mod", "download", "-json", f"{module}@{version}"]
            answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")
            self._modules[prefix] = Path(json.loads(answer.stdout)["Dir"])
        return self._modules[prefix].joinpath(*package.removeprefix(prefix).split("."))


TIMES = {f"k8s.io.apimachinery.pkg.apis.meta.v1.{name}" for name in ("Time", "MicroTime")}
ZERO = {"string": "", "bool": False, "int32": 0, "int64": 0}
OPAQUE = {
    "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString",
    "k8s.io.apimachinery.pkg.api.resource.Quantity",
    "k8s.io.apimachinery.pkg.runtime.RawExtension",
    "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON",
}

STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r'^\s+(?:\w+\s+)?(\S+)\s+`json:"([^"]*)"[^`\n]*protobuf:"([^"]+)"[^`\n]*`', re.MULTILINE)
MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^  (?:(optional|repeated) )?(map<[^>]+>|[\w.]+) (\w+) = (\d+);", re.MULTILINE)


def go_structs(text: str) -> dict[str, dict[str, Tag]]:
    result = {}
    for name, body in STRUCT.findall(text):
        tags = {}
        for kind, words, protobuf in FIELD.findall(body):
            number = protobuf.split(",")[1] if "," in protobuf else "-"
            field = dict(part.split("=") for part in protobuf.split(",") if "=" in part).get("name")
            if number == "-":
                continue
            if field is None:  # the generator's rule where the tag has no name
                field = kind.split(".")[-1][0].lower() + kind.split(".")[-1][1:]
            json_name, _, options = words.partition(",")
            tags[field] = Tag(json_name, kind.startswith("*"), "omitempty" in options, kind.lstrip("*[]"))
        result[name] = tags
    return result


ENUM = re.compile(r"// \+enum\n(?://.*\n)*type (\w+) string")
CONSTANT = re.compile(r'((?:^[ \t]*//.*\n)*)^(?:const)?\s*(\w+)\s+(\w+)\s*=\s*"([^"]*)"', re.MULTILINE)


def go_enums(text: str) -> dict[str, dict[str, str]]:
    """The named strings of a Go file that are enums: their values, with what the comments say of each."""
    enums: dict[str, dict[str, str]] = {name: {} for name in ENUM.findall(text)}
    for comment, name, kind, value in CONSTANT.findall(text):
        if kind in enums:
            said = " ".join(line.strip().removeprefix("//").strip() for line in comment.strip().split("\n"))
            enums[kind][value] = re.sub(r"\s+", " ", said.strip().removeprefix(name).strip())
    return enums


def proto_messages(text: str, package: str) -> dict[str, Proto]:
    result = {}
    for name, body in MESSAGE.findall(text):
        fields = []
        for label, kind, field, number in LINE.findall(body):
            if kind.startswith("map<"):
                key, value = kind.removeprefix("map<").removesuffix(">").split(", ")
                kind = f"map<{key}, {absolute(value, package)}>"
            fields.append((label, absolute(kind, package), field, int(number)))
        result[name] = Proto(fields)
    return result


SCALARS = {"string": 9, "bytes": 12, "bool": 8, "int32": 5, "int64": 3, "double": 1, "uint32": 13}


def absolute(kind: str, package: str) -> str:
    if kind in SCALARS or kind.startswith("map<"):
        return kind
    return kind.removeprefix(".") if kind.startswith(".") else f"{package}.{kind}"


def descriptors(go: Go) -> bytes:
    """The messages of all kinds, one file a package, dependencies first."""
    files: dict[str, descriptor_pb2.FileDescriptorProto] = {}
    done: set[str] = set()
    pending = ["k8s.io.apimachinery.pkg.runtime.Unknown", *(proto_name(name) for name in ROOTS)]
    while pending:
        name = pending.pop()
        if name in done:
            continue
        done.add(name)
        package, _, short = name.rpartition(".")
        file = files.setdefault(
            package, descriptor_pb2.FileDescriptorProto(name=package, package=package, syntax="proto3")
        )
        message, tags = go.message(name)
        for kind in build(file.message_type.add(name=short), name, message, tags):
            pending.append(kind)
            other = kind.rpartition(".")[0]
            if other != package and other not in file.dependency:
                file.dependency.append(other)
    for file in files.values():
        file.dependency.sort()
        ordered = sorted(file.message_type, key=lambda message: message.name)
        del file.message_type[:]
        file.message_type.extend(ordered)
    result = descriptor_pb2.FileDescriptorSet()
    while files:
        for package in sorted(files):
            if not any(needed in files for needed in files[package].dependency):
                result.file.append(files.pop(package))
                break
        else:
            raise ValueError("packages import each other")
    return result.SerializeToString(deterministic=True)


def build(target: descriptor_pb2.DescriptorProto, name: str, message: Proto, tags: dict[str, Tag]) -> list[str]:
    """Fills one message; the names of the messages that it refers to."""
    refers = []
    explicit = []
    for label, kind, field, number in message.fields:
        tag = tags.get(field)
        made = target.field.add(name=field, number=number, label=3 if label == "repeated" else 1)
        json_name = field if tag is None else tag.json or f"inline:{field}"
        made.json_name = json_name
        if kind.startswith("map<"):
            key, value = kind.removeprefix("map<").removesuffix(">").split(", ")
            entry_name = field[0].upper() + field[1:] + "Entry"
            entry = target.nested_type.add(name=entry_name)
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, label=1, type=SCALARS[key])
            refers += typed(entry.field.add(name="value", number=2, label=1), value)
            made.label, made.type, made.type_name = 3, 11, f".{name}.{entry_name}"
            continue
        refers += typed(made, kind)
        if label != "repeated" and kind in SCALARS and tag is not None and (tag.pointer or not tag.omitempty):
            explicit.append(made)
    for made in explicit:
        made.proto3_optional = True
        made.oneof_index = len(target.oneof_decl)
        target.oneof_decl.add(name=f"_{made.name}")
    return refers


def typed(field: descriptor_pb2.FieldDescriptorProto, kind: str) -> list[str]:
    if kind in SCALARS:
        field.type = SCALARS[kind]
        return []
    field.type, field.type_name = 11, f".{kind}"
    return [kind]


if __name__ == "__main__":
    sys.exit(main())
