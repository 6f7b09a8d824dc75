"""What every OpenAPI document of the API contains: query parameters; schemas of metadata, options and answers."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def parameter(name: str, kind: str, text: str, place: str = "query") -> Document:
    written: Document = {"name": name, "in": place, "description": text}
    if place == "path":
        written["required"] = True
    return {**written, "schema": {"type": kind, "uniqueItems": True}}


PARAMETERS: dict[str, Document] = {
    name: parameter(name, kind, text, place)
    for name, kind, text, place in (
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


def _text(description: str, **more: Any) -> Document:
    return {"description": description, "type": "string", **more}


def _number(description: str, size: str = "int64") -> Document:
    return {"description": description, "type": "integer", "format": size}


def _flag(description: str) -> Document:
    return {"description": description, "type": "boolean"}


def _ref(name: str, description: str, **more: Any) -> Document:
    return {"description": description, **more, "allOf": [{"$ref": "#/components/schemas/" + name}]}


def _list(description: str, items: Document, **more: Any) -> Document:
    listed = {"description": description, "type": "array", "items": items, "x-kubernetes-list-type": "atomic"}
    return {**listed, **more}


def _map(description: str) -> Document:
    return {"description": description, "type": "object", "additionalProperties": {"type": "string", "default": ""}}


def _object(description: str, properties: Document, **more: Any) -> Document:
    return {"description": description, "type": "object", "properties": properties, **more}


API_VERSION = _text("The version of the schema that this representation of the object has.")
KIND = _text("The kind of object that this is, in CamelCase. It cannot be changed.")
_META = "#/components/schemas/" + META

SHARED: dict[str, Document] = {
    META + "Time": _text("A time as RFC 3339 writes it.", format="date-time"),
    META + "Patch": {"description": "The body of a PATCH.", "type": "object"},
    META + "FieldsV1": {"description": "A set of fields as a tree.", "type": "object"},
    META + "ListMeta": _object(
        "What is said of a list.",
        {
            "continue": _text("What to send to get the next page."),
            "remainingItemCount": _number("How many objects come after this page, when that is known."),
            "resourceVersion": _text("The state that the list shows."),
            "selfLink": _text("No longer set."),
        },
    ),
    META + "OwnerReference": _object(
        "Names an owner in the same namespace, or a cluster-scoped one.",
        {
            "apiVersion": _text("The owner's API version.", default=""),
            "blockOwnerDeletion": _flag("Whether foreground deletion of the owner waits for this object."),
            "controller": _flag("Whether the owner is the managing controller."),
            "kind": _text("The owner's kind.", default=""),
            "name": _text("The owner's name.", default=""),
            "uid": _text("The owner's UID.", default=""),
        },
        required=["apiVersion", "kind", "name", "uid"],
        **{"x-kubernetes-map-type": "atomic"},
    ),
    META + "ManagedFieldsEntry": _object(
        "Which fields a manager owns.",
        {
            "apiVersion": _text("The version in which the fields are named."),
            "fieldsType": _text("FieldsV1."),
            "fieldsV1": _ref(META + "FieldsV1", "The fields."),
            "manager": _text("Who owns them."),
            "operation": _text("Apply or Update."),
            "subresource": _text("The subresource that was written; empty for the object itself."),
            "time": _ref(META + "Time", "When the fields were last changed."),
        },
    ),
    META + "ObjectMeta": _object(
        "What every stored object has.",
        {
            "annotations": _map("Data of tools; not for selecting."),
            "creationTimestamp": _ref(META + "Time", "When the object was created. Set by the server."),
            "deletionGracePeriodSeconds": _number("How long the object may take to end. Set by the server."),
            "deletionTimestamp": _ref(META + "Time", "When the object goes. Set by the server on deletion."),
            "finalizers": _list(
                "Who has to act before the object goes.",
                {"type": "string", "default": ""},
                **{"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
            ),
            "generateName": _text("A prefix from which the server makes a name that is free."),
            "generation": _number("Counts changes of the desired state. Set by the server."),
            "labels": _map("Keys and values by which objects are selected."),
            "managedFields": _list(
                "Who manages which fields. Kept by the server.",
                {"default": {}, "allOf": [{"$ref": _META + "ManagedFieldsEntry"}]},
            ),
            "name": _text("Unique in a namespace for a resource. It cannot be changed."),
            "namespace": _text("The space in which the name is unique. It cannot be changed."),
            "ownerReferences": _list(
                "The objects that this one depends on; it goes with the last of them.",
                {"default": {}, "allOf": [{"$ref": _META + "OwnerReference"}]},
                **{
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["uid"],
                    "x-kubernetes-patch-merge-key": "uid",
                    "x-kubernetes-patch-strategy": "merge",
                },
            ),
            "resourceVersion": _text("The state of the object, for conditions and watches. Opaque."),
            "selfLink": _text("No longer set."),
            "uid": _text("Unique in time and space. Set by the server."),
        },
    ),
    META + "Preconditions": _object(
        "What must hold of the object for the operation to be carried out.",
        {"resourceVersion": _text("The resourceVersion it must have."), "uid": _text("The UID it must have.")},
    ),
    META + "DeleteOptions": _object(
        "How to delete.",
        {
            "apiVersion": API_VERSION,
            "dryRun": _list("All: go through every stage and delete nothing.", {"type": "string", "default": ""}),
            "gracePeriodSeconds": _number("How long the object may take to end; 0 deletes at once."),
            "ignoreStoreReadErrorWithClusterBreakingPotential": _flag("Deletes even what can no longer be read."),
            "kind": KIND,
            "orphanDependents": _flag("Deprecated: say propagationPolicy."),
            "preconditions": _ref(META + "Preconditions", "What must hold, else 409."),
            "propagationPolicy": _text("What becomes of dependents: Orphan, Background or Foreground."),
        },
        **{"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "DeleteOptions"}]},
    ),
    META + "StatusCause": _object(
        "One of the things that are wrong.",
        {
            "field": _text("The field that is wrong, as a path."),
            "message": _text("What is wrong, for people."),
            "reason": _text("What is wrong, for programs."),
        },
    ),
    META + "StatusDetails": _object(
        "What a failure is about.",
        {
            "causes": _list("What is wrong, one by one.", {"default": {}, "allOf": [{"$ref": _META + "StatusCause"}]}),
            "group": _text("The group of the resource."),
            "kind": _text("The kind or the resource."),
            "name": _text("The name of the object."),
            "retryAfterSeconds": _number("When to try again.", "int32"),
            "uid": _text("The UID of the object."),
        },
    ),
    META + "Status": _object(
        "What is answered when there is no object to answer.",
        {
            "apiVersion": API_VERSION,
            "code": _number("The HTTP status code.", "int32"),
            "details": _ref(META + "StatusDetails", "More about the reason.", **{"x-kubernetes-list-type": "atomic"}),
            "kind": KIND,
            "message": _text("What happened, for people."),
            "metadata": _ref(META + "ListMeta", "What is said of a list.", default={}),
            "reason": _text("Why, for programs."),
            "status": _text("Success or Failure."),
        },
        **{"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Status"}]},
    ),
    "io.k8s.api.autoscaling.v1.ScaleSpec": _object(
        "How many there should be.", {"replicas": _number("How many replicas are wanted.", "int32")}
    ),
    "io.k8s.api.autoscaling.v1.ScaleStatus": _object(
        "How many there are.",
        {
            "replicas": {**_number("How many replicas were seen.", "int32"), "default": 0},
            "selector": _text("The label selector of the replicas, as a query string has it."),
        },
        required=["replicas"],
    ),
    "io.k8s.api.autoscaling.v1.Scale": _object(
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
