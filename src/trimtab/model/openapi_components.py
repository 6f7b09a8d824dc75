"""What every OpenAPI document of the API contains: query parameters; schemas of metadata, options and answers."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def parameter(name: str, kind: str, says: str, place: str = "query") -> Document:
    written: Document = {"name": name, "in": place, "description": says}
    if place == "path":
        written["required"] = True
    return {**written, "schema": {"type": kind, "uniqueItems": True}}


PARAMETERS: dict[str, Document] = {
    name: parameter(name, kind, says, place)
    for name, kind, says, place in (
        ("namespace", "string", "object name and auth scope, such as for teams and projects", "path"),
        ("pretty", "string", "'true' indents the answer.", "query"),
        ("allowWatchBookmarks", "boolean", "Whether a watch may send BOOKMARK events.", "query"),
        ("continue", "string", "Goes on with a list from where the last page ended.", "query"),
        ("fieldSelector", "string", "Restricts the objects by their fields.", "query"),
        ("labelSelector", "string", "Restricts the objects by their labels.", "query"),
        ("limit", "integer", "How many objects one page has at most.", "query"),
        ("resourceVersion", "string", "Which state may be answered from.", "query"),
        ("resourceVersionMatch", "string", "How resourceVersion is meant: Exact or NotOlderThan.", "query"),
        ("sendInitialEvents", "boolean", "Whether a watch starts with the objects that exist.", "query"),
        ("timeoutSeconds", "integer", "After how many seconds the request ends, whatever it is doing.", "query"),
        ("watch", "boolean", "Asks for changes as they happen instead of a list.", "query"),
        ("dryRun", "string", "All: go through every stage and store nothing.", "query"),
        ("fieldManager", "string", "Who makes the change: at most 128 printable characters.", "query"),
        ("fieldValidation", "string", "What unknown and duplicate fields do: Ignore, Warn or Strict.", "query"),
        ("force", "boolean", "Lets an apply take fields from other managers.", "query"),
        ("gracePeriodSeconds", "integer", "How long the object may take to end; 0 deletes at once.", "query"),
        (
            "ignoreStoreReadErrorWithClusterBreakingPotential",
            "boolean",
            "Deletes even what can no longer be read; finalizers are not waited for.",
            "query",
        ),
        ("orphanDependents", "boolean", "Deprecated: say propagationPolicy.", "query"),
        ("propagationPolicy", "string", "What becomes of dependents: Orphan, Background or Foreground.", "query"),
    )
}


def text(description: str, **more: Any) -> Document:
    return {"description": description, "type": "string", **more}


def number(description: str, size: str = "int64") -> Document:
    return {"description": description, "type": "integer", "format": size}


def flag(description: str) -> Document:
    return {"description": description, "type": "boolean"}


def _ref(name: str, description: str, **more: Any) -> Document:
    return {"description": description, **more, "allOf": [{"$ref": "#/components/schemas/" + name}]}


def listed(description: str, items: Document, **more: Any) -> Document:
    plain = {"description": description, "type": "array", "items": items, "x-kubernetes-list-type": "atomic"}
    return {**plain, **more}


def _map(description: str) -> Document:
    return {"description": description, "type": "object", "additionalProperties": {"type": "string", "default": ""}}


def object_(description: str, properties: Document, **more: Any) -> Document:
    return {"description": description, "type": "object", "properties": properties, **more}


API_VERSION = text("The version of the schema that this representation of the object has.")
KIND = text("The kind of object that this is, in CamelCase. It cannot be changed.")
_META = "#/components/schemas/" + META

SHARED: dict[str, Document] = {
    META + "Time": text("A time as RFC 3339 writes it.", format="date-time"),
    META + "Patch": {"description": "The body of a PATCH.", "type": "object"},
    META + "FieldsV1": {"description": "A set of fields as a tree.", "type": "object"},
    META + "ListMeta": object_(
        "What is said of a list.",
        {
            "continue": text("What to send to get the next page."),
            "remainingItemCount": number("How many objects come after this page, when that is known."),
            "resourceVersion": text("The state that the list shows."),
            "selfLink": text("No longer set."),
        },
    ),
    META + "OwnerReference": object_(
        "Names an owner in the same namespace, or a cluster-scoped one.",
        {
            "apiVersion": text("The owner's API version.", default=""),
            "blockOwnerDeletion": flag("Whether foreground deletion of the owner waits for this object."),
            "controller": flag("Whether the owner is the managing controller."),
            "kind": text("The owner's kind.", default=""),
            "name": text("The owner's name.", default=""),
            "uid": text("The owner's UID.", default=""),
        },
        required=["apiVersion", "kind", "name", "uid"],
        **{"x-kubernetes-map-type": "atomic"},
    ),
    META + "ManagedFieldsEntry": object_(
        "Which fields a manager owns.",
        {
            "apiVersion": text("The version in which the fields are named."),
            "fieldsType": text("FieldsV1."),
            "fieldsV1": _ref(META + "FieldsV1", "The fields."),
            "manager": text("Who owns them."),
            "operation": text("Apply or Update."),
            "subresource": text("The subresource that was written; empty for the object itself."),
            "time": _ref(META + "Time", "When the fields were last changed."),
        },
    ),
    META + "ObjectMeta": object_(
        "What every stored object has.",
        {
            "annotations": _map("Data of tools; not for selecting."),
            "creationTimestamp": _ref(META + "Time", "When the object was created. Set by the server."),
            "deletionGracePeriodSeconds": number("How long the object may take to end. Set by the server."),
            "deletionTimestamp": _ref(META + "Time", "When the object goes. Set by the server on deletion."),
            "finalizers": listed(
                "Who has to act before the object goes.",
                {"type": "string", "default": ""},
                **{"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
            ),
            "generateName": text("A prefix from which the server makes a name that is free."),
            "generation": number("Counts changes of the desired state. Set by the server."),
            "labels": _map("Keys and values by which objects are selected."),
            "managedFields": listed(
                "Who manages which fields. Kept by the server.",
                {"default": {}, "allOf": [{"$ref": _META + "ManagedFieldsEntry"}]},
            ),
            "name": text("Unique in a namespace for a resource. It cannot be changed."),
            "namespace": text("The space in which the name is unique. It cannot be changed."),
            "ownerReferences": listed(
                "The objects that this one depends on; it goes with the last of them.",
                {"default": {}, "allOf": [{"$ref": _META + "OwnerReference"}]},
                **{
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["uid"],
                    "x-kubernetes-patch-merge-key": "uid",
                    "x-kubernetes-patch-strategy": "merge",
                },
            ),
            "resourceVersion": text("The state of the object, for conditions and watches. Opaque."),
            "selfLink": text("No longer set."),
            "uid": text("Unique in time and space. Set by the server."),
        },
    ),
    META + "Preconditions": object_(
        "What must hold of the object for the operation to be carried out.",
        {"resourceVersion": text("The resourceVersion it must have."), "uid": text("The UID it must have.")},
    ),
    META + "DeleteOptions": object_(
        "How to delete.",
        {
            "apiVersion": API_VERSION,
            "dryRun": listed("All: go through every stage and delete nothing.", {"type": "string", "default": ""}),
            "gracePeriodSeconds": number("How long the object may take to end; 0 deletes at once."),
            "ignoreStoreReadErrorWithClusterBreakingPotential": flag("Deletes even what can no longer be read."),
            "kind": KIND,
            "orphanDependents": flag("Deprecated: say propagationPolicy."),
            "preconditions": _ref(META + "Preconditions", "What must hold, else 409."),
            "propagationPolicy": text("What becomes of dependents: Orphan, Background or Foreground."),
        },
        **{"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "DeleteOptions"}]},
    ),
    META + "StatusCause": object_(
        "One of the things that are wrong.",
        {
            "field": text("The field that is wrong, as a path."),
            "message": text("What is wrong, for people."),
            "reason": text("What is wrong, for programs."),
        },
    ),
    META + "StatusDetails": object_(
        "What a failure is about.",
        {
            "causes": listed("What is wrong, one by one.", {"default": {}, "allOf": [{"$ref": _META + "StatusCause"}]}),
            "group": text("The group of the resource."),
            "kind": text("The kind or the resource."),
            "name": text("The name of the object."),
            "retryAfterSeconds": number("When to try again.", "int32"),
            "uid": text("The UID of the object."),
        },
    ),
    META + "Status": object_(
        "What is answered when there is no object to answer.",
        {
            "apiVersion": API_VERSION,
            "code": number("The HTTP status code.", "int32"),
            "details": _ref(META + "StatusDetails", "More about the reason.", **{"x-kubernetes-list-type": "atomic"}),
            "kind": KIND,
            "message": text("What happened, for people."),
            "metadata": _ref(META + "ListMeta", "What is said of a list.", default={}),
            "reason": text("Why, for programs."),
            "status": text("Success or Failure."),
        },
        **{"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Status"}]},
    ),
    "io.k8s.api.autoscaling.v1.ScaleSpec": object_(
        "How many there should be.", {"replicas": number("How many replicas are wanted.", "int32")}
    ),
    "io.k8s.api.autoscaling.v1.ScaleStatus": object_(
        "How many there are.",
        {
            "replicas": {**number("How many replicas were seen.", "int32"), "default": 0},
            "selector": text("The label selector of the replicas, as a query string has it."),
        },
        required=["replicas"],
    ),
    "io.k8s.api.autoscaling.v1.Scale": object_(
        "A request to scale a resource.",
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": _ref(META + "ObjectMeta", "Standard object's metadata.", default={}),
            "spec": _ref("io.k8s.api.autoscaling.v1.ScaleSpec", "How many there should be.", default={}),
            "status": _ref("io.k8s.api.autoscaling.v1.ScaleStatus", "How many there are.", default={}),
        },
        **{"x-kubernetes-group-version-kind": [{"group": "autoscaling", "version": "v1", "kind": "Scale"}]},
    ),
}
