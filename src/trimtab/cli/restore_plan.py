"""What a restore onto a running server would do, object by object. Pure.

An object that the server has not is created. One that it has and that says the same is left alone. One that says something
else is a conflict: it is left alone too, unless the archive is to win. Owners come before what they own, and references to
them are written anew, since a created object has a new uid. An object whose owners are neither in the archive nor on the
server would be collected at once, so it is left out; so is what the server or its clients make by themselves, and what is
of a project that is not there.

Resources of the hub are judged apart (`restore_hub_plan`), and come after everything that they may need: first what tells
where others came from, Clusters last, so that nothing is placed on one while it is half there.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.model.hub import ADOPTED_BY, MADE_FOR, lineage_key
from trimtab.model.scheme import SUFFIX

Document = dict[str, Any]

PROJECT = "Project"
FIRST = ("Namespace", PROJECT, "CustomResourceDefinition")
HUB_FIRST, HUB_LAST = ("Repository", "GitSync", "SyncConflict", "Addon", "Blueprint", "Workload"), "Cluster"
LINEAGE = lineage_key(SUFFIX)
CHANGED_BY = f"hub.{SUFFIX}/changed-by"
RESTORING = f"hub.{SUFFIX}/restoring"
"""Annotation of a resource of the hub that is brought back in several writes, until the last of them: its uid in the archive."""
OF_THE_SERVER = frozenset((MADE_FOR, ADOPTED_BY, CHANGED_BY, RESTORING))
"""Annotations that say what is so on one server."""
COMPARED = ("labels", "annotations", "finalizers")
AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"
CHATTER = ("Event", "Lease")
SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
OWN = frozenset(
    ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionTimestamp",
     "deletionGracePeriodSeconds", "ownerReferences")
)  # fmt: skip


class Act(enum.Enum):
    CREATE = "create"
    SAME = "unchanged"
    CONFLICT = "conflict"
    OVERWRITE = "overwrite"
    LEAVE = "left out"
    LOST = "lost"


class Name(msgspec.Struct, frozen=True):
    """Which object is meant, whatever its uid."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        group = self.api_version.rpartition("/")[0]
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind.lower()}{'.' + group if group else ''} {where}{self.name}"


class Step(msgspec.Struct, frozen=True):
    """What becomes of one object, and why where that is not plain."""

    act: Act
    name: Name
    document: Document
    why: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """What was found of a resource of the hub. `settled`: a conflict in which the archive cannot win."""

    act: Act
    why: str = ""
    settled: bool = False


def name_of(document: Document) -> Name:
    metadata = document["metadata"]
    return Name(document["apiVersion"], document["kind"], metadata.get("namespace", ""), metadata["name"])


def plan(
    archived: Iterable[Document],
    live: Mapping[Name, Document],
    *,
    known: set[tuple[str, str]],
    overwrite: bool,
    hub: Mapping[Name, Verdict] | None = None,
) -> list[Step]:
    """`live` is what the server has, `known` the kinds (apiVersion, kind) that it serves or will after the definitions,
    `hub` what was found of the resources of the hub among `archived`."""
    documents = {name_of(each): each for each in archived}
    by_uid = {each["metadata"].get("uid"): name for name, each in documents.items()}
    verdicts = hub or {}
    projects = {name.name for name in live if name.kind == PROJECT}
    tells = any(kind == PROJECT and version.startswith(f"hub.{SUFFIX}/") for version, kind in known)
    steps: list[Step] = []
    kept: set[Name] = set()
    for name in ordered(documents, by_uid, verdicts):
        document = documents[name]
        why = _left_out(name, document, known) or _without_owner(document, by_uid, kept, live)
        if tells and name in verdicts and name.namespace and name.namespace not in projects:
            why = why or f"the project {name.namespace} is not there"
        if why:
            steps.append(Step(Act.LEAVE, name, document, why))
            continue
        kept.add(name)
        present = live.get(name)
        if name in verdicts:
            if name.kind == PROJECT:
                projects.add(name.name)
            found = verdicts[name]
            wins = overwrite and found.act is Act.CONFLICT and not found.settled
            steps.append(Step(Act.OVERWRITE if wins else found.act, name, document, found.why))
        elif present is None:
            steps.append(Step(Act.CREATE, name, document))
        elif difference := differs(document, present):
            act = Act.OVERWRITE if overwrite else Act.CONFLICT
            steps.append(Step(act, name, document, f"{difference} is another on the server"))
        else:
            steps.append(Step(Act.SAME, name, document))
    return steps


def ordered(documents: Mapping[Name, Document], by_uid: Mapping[Any, Name], hub: Collection[Name] = ()) -> list[Name]:
    """Namespaces, projects and the namespaces that they make, definitions, the rest, and the hub's; in each an owner before
    what it owns. A circle is cut anywhere."""
    done: dict[Name, None] = {}

    def visit(first: Name) -> None:
        waiting, seen = [first], {first}
        while waiting:
            name = waiting[-1]
            owners = [by_uid.get(one.get("uid")) for one in _references(documents[name])]
            missing = next((o for o in owners if o is not None and o not in done and o not in seen), None)
            if missing is not None:
                seen.add(missing)
                waiting.append(missing)
            else:
                done.setdefault(waiting.pop())

    def place(name: Name) -> tuple[int, str, str, str, str]:
        return _rank(name, documents[name], by_uid, hub), name.api_version, name.kind, name.namespace, name.name

    for name in sorted(documents, key=place):
        visit(name)
    return list(done)


def _rank(name: Name, document: Document, by_uid: Mapping[Any, Name], hub: Collection[Name]) -> int:
    if name.kind == "Namespace" and _annotations(document).get(MADE_FOR) in by_uid:
        return FIRST.index(PROJECT) * 2 + 1  # the project makes it, and it is the project's
    if name.kind in FIRST:
        return FIRST.index(name.kind) * 2
    if name not in hub:
        return len(FIRST) * 2
    if name.kind == HUB_LAST:
        return 1000
    return 100 + (HUB_FIRST.index(name.kind) if name.kind in HUB_FIRST else len(HUB_FIRST))


def differs(archived: Document, present: Document, words: Sequence[str] = COMPARED) -> str:
    """The first field in which the two say something else; "" for none. What the server alone writes is not looked at."""
    archived, present = without_address(archived), without_address(present)
    for word in sorted({*archived, *present} - {"metadata", "status", "apiVersion", "kind"}):
        if archived.get(word) != present.get(word):
            return word
    one, other = _compared(archived), _compared(present)
    for word in words:
        if (one.get(word) or None) != (other.get(word) or None):
            return f"metadata.{word}"
    return ""


def _compared(document: Document) -> Document:
    """Metadata without what one server says; of a sync that is told as the origin, its name and not its uid."""
    kept = {key: value for key, value in _annotations(document).items() if key not in OF_THE_SERVER}
    if LINEAGE in kept:
        kept[LINEAGE] = kept[LINEAGE].partition("@")[0]
    return {**document["metadata"], "annotations": kept}


def to_write(document: Document, uids: Mapping[str, str]) -> Document:
    """The object as it is sent: without what the server sets, and with owners by their uids there."""
    metadata = {word: value for word, value in document["metadata"].items() if word not in OWN}
    references = [{**one, "uid": uids[one["uid"]]} for one in _references(document) if one.get("uid") in uids]
    if references:
        metadata["ownerReferences"] = references
    if annotations := _rewritten(_annotations(document), uids):
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    sent = {word: value for word, value in document.items() if word != "status"}
    return {**sent, "metadata": metadata}


def address_of(document: Document) -> str:
    """That a Service has in the cluster; "" for none."""
    given = (document.get("spec") or {}).get("clusterIP") if document["kind"] == "Service" else None
    return "" if given in (None, "None") else str(given)


def without_address(document: Document) -> Document:
    """The server gives addresses out, and they never change: whether two are the same says nothing of the two objects."""
    if not address_of(document):
        return document
    spec = {word: value for word, value in document["spec"].items() if word not in ("clusterIP", "clusterIPs")}
    return {**document, "spec": spec}


def _rewritten(annotations: Mapping[str, str], uids: Mapping[str, str]) -> dict[str, str]:
    """With the uids that projects and syncs have there. The lineage of a sync that is nowhere stays as it is."""
    found = {key: value for key, value in annotations.items() if key not in OF_THE_SERVER}
    for key in (MADE_FOR, ADOPTED_BY):
        if annotations.get(key) in uids:
            found[key] = uids[annotations[key]]
    if LINEAGE in found:
        sync, at, uid = found[LINEAGE].rpartition("@")
        found[LINEAGE] = f"{sync}{at}{uids.get(uid, uid)}"
    return found


def owner_elsewhere(reference: Mapping[str, Any], namespace: str, live: Mapping[Name, Document]) -> str:
    """The uid on the server of an owner that the archive has not; "" for none."""
    for where in (namespace, ""):
        found = live.get(Name(reference["apiVersion"], reference["kind"], where, reference["name"]))
        if found is not None:
            return str(found["metadata"]["uid"])
    return ""


def _left_out(name: Name, document: Document, known: set[tuple[str, str]]) -> str:
    metadata = document["metadata"]
    if name.kind in CHATTER:
        return "it is made anew by those who need it"
    if name.kind == "CertificateSigningRequest":
        return "who wants a certificate of this server asks for it"
    if metadata.get("deletionTimestamp"):
        return "it was being deleted"
    if (name.api_version, name.kind) not in known:
        return "the server does not serve this kind"
    labels = metadata.get("labels") or {}
    if labels.get("kubernetes.io/bootstrapping") == "rbac-defaults" or AUTOMANAGED in labels:
        return "it is the server's own"
    own = {
        ("ConfigMap", "kube-root-ca.crt"),
        ("ConfigMap", "extension-apiserver-authentication"),
        ("ServiceAccount", "default"),
    }
    if (name.kind, name.name) in own or (name.kind == "Namespace" and name.name in (*SYSTEM, "default")):
        return "it is the server's own"
    if document.get("type") == "kubernetes.io/service-account-token":
        return "it belongs to an account of another server"
    return ""


def _without_owner(
    document: Document, by_uid: Mapping[Any, Name], kept: set[Name], live: Mapping[Name, Document]
) -> str:
    references = _references(document)
    namespace = document["metadata"].get("namespace", "")
    for one in references:
        owner = by_uid.get(one.get("uid"))
        if owner in kept or owner_elsewhere(one, namespace, live):
            return ""
    return f"its owner {references[0].get('kind')} {references[0].get('name')} is not there" if references else ""


def _references(document: Document) -> Sequence[dict[str, Any]]:
    return document["metadata"].get("ownerReferences") or ()


def _annotations(document: Document) -> dict[str, str]:
    return document["metadata"].get("annotations") or {}
