"""Models of kinds that have one of everything, made by hand."""

from __future__ import annotations

import asyncio
from typing import Any

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Query
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.runtime.apply import apply
from trimtab.systems.rest.generating.crd import crd
from trimtab.systems.rest.model import (
    Call,
    Calls,
    Comparator,
    FieldClass,
    Identity,
    Join,
    Model,
    Node,
    Overlay,
    Parameter,
    Writer,
)

GROUP = "zoo.rest.trimtab.dev"
TEXT = Node(type="string")
NUMBER = Node(type="integer", format="int32")

ANIMAL = Node(
    type="object",
    discriminator="species",
    variants={"cat": "Cat", "fish": "Fish"},
    required=("species", "name"),
    properties={"species": TEXT, "name": TEXT},
)
TYPES = {
    "Animal": ANIMAL,
    "Cat": Node(
        type="object",
        properties={"species": TEXT, "name": TEXT, "lives": NUMBER, "habitat": Node(type="boolean")},
        required=("species", "lives"),
    ),
    "Fish": Node(
        type="object",
        properties={
            "species": TEXT,
            "name": TEXT,
            "habitat": TEXT,
            "prey": Node(type="array", items=Node(ref="Animal")),
        },
    ),
    "Group": Node(
        type="object",
        properties={
            "title": TEXT,
            "parts": Node(type="array", items=Node(ref="Group")),
            "byName": Node(type="map", items=Node(ref="Group")),
        },
    ),
}
BODY: dict[str, Node] = {
    "sku": Node(
        type="object",
        description="What is paid for.",
        required=("tier",),
        properties={
            "tier": Node(type="string", enum=("Small", "Large")),
            "family": Node(type="string", enum=("A", "B"), compare=Comparator.CASELESS),
            "colour": Node(type="string", enum=("red", "green"), open_enum=True),
            "mood": Node(type="string", enum=("calm", "wild"), nullable=True),
            "capacity": Node(type="integer", format="int64", minimum=0.0, maximum=100.0, field=FieldClass.INITIAL),
            "ratio": Node(type="number", format="double", minimum=0.5),
        },
    ),
    "location": Node(type="string", field=FieldClass.CREATE_ONLY, why="x-ms-mutability", compare=Comparator.LOCATION),
    "password": Node(type="string", field=FieldClass.SECRET, why="x-ms-secret", max_length=20, nullable=True),
    "keys": Node(type="map", items=Node(type="string", field=FieldClass.SECRET, why="x-ms-secret")),
    "subnetID": Node(type="string", reference="Microsoft.Network/virtualNetworks/subnets", compare=Comparator.ARM_ID),
    "subnets": Node(type="array", items=Node(type="string", reference="*")),
    "tags": Node(type="map", items=Node(type="string", nullable=True)),
    "animal": Node(ref="Animal"),
    "animals": Node(type="array", items=Node(ref="Animal"), keys=("name",)),
    "tree": Node(ref="Group", description="Groups in groups."),
    "rules": Node(
        type="array",
        keys=("name",),
        max_items=8,
        items=Node(type="object", required=("name",), properties={"name": TEXT, "port": NUMBER}),
    ),
    "loose": Node(type="array", keys=("name",), items=Node(type="object", properties={"name": TEXT})),
    "zones": Node(type="array", unordered=True, items=TEXT),
    "code": Node(type="string", pattern="^[a-z]+$", min_length=2, max_length=8),
    "clever": Node(type="string", pattern="^(?!no)[a-z]+$"),
    "anything": Node(type="any"),
    "class": Node(type="string", description="A name that Python has for itself."),
    "x-odd.name": Node(type="string", writers=Writer.CREATE | Writer.UPDATE),
    "when": Node(type="string", format="date-time", compare=Comparator.DATE_TIME),
    "bodyPolicy": Node(type="string", field=FieldClass.WRITE_ONLY, why="overlay"),
    "origin": Node(type="string"),
    "matrix": Node(type="array", items=Node(type="array", items=Node(type="number"))),
}


def machine(**changes: Any) -> Model:
    """A kind with one of everything."""
    fields: dict[str, Any] = {
        "group": GROUP,
        "version": "v1",
        "kind": "Machine",
        "plural": "machines",
        "short_names": ("mc",),
        "service": "zoo",
        "description": "A machine that has one of everything.",
        "spec": Node(type="object", properties=BODY, required=("sku", "origin", "name")),
        "types": TYPES,
        "read_only": {"id": "built-in", "properties.state": "readOnly"},
        "renamed": {"bodyPolicy": "policy"},
        "calls": Calls(
            create=Call(method="PUT", path="/groups/{group}/machines/{machine}", long_running=True),
            read=Call(method="GET", path="/groups/{group}/machines/{machine}"),
            update=Call(method="PUT", path="/groups/{group}/machines/{machine}"),
            patch=Call(
                method="PATCH", path="/groups/{group}/machines/{machine}", content_type="application/merge-patch+json"
            ),
            delete=Call(method="DELETE", path="/groups/{group}/machines/{machine}"),
            list=Call(method="GET", path="/groups/{group}/machines", items="value"),
        ),
        "parameters": (
            Parameter(name="group", source="object"),
            Parameter(name="machine", source="identity", pattern="^[a-z0-9-]+$", min_length=2, max_length=40),
        ),
        "identity": Identity(parameter="machine", field="name"),
        "joins": (Join(name="instanceView", path="instanceView", interval=30.0),),
        "overlay": Overlay(body={"origin": "trimtab"}),
        "scale_spec": ".spec.sku.capacity",
        "scale_status": ".status.observed.sku.capacity",
    }
    return Model(**{**fields, **changes})


def disk() -> Model:
    """A small kind below a machine."""
    path = "/groups/{group}/machines/{machine}/disks/{disk}"
    return machine(
        kind="Disk",
        plural="disks",
        short_names=(),
        description="A disk of a machine.",
        spec=Node(type="object", properties={"size": NUMBER}, required=("size",)),
        types={},
        read_only={},
        renamed={},
        calls=Calls(create=Call(method="PUT", path=path), read=Call(method="GET", path=path)),
        parameters=(
            Parameter(name="group", source="parent"),
            Parameter(name="machine", source="parent"),
            Parameter(name="disk", source="identity"),
        ),
        identity=Identity(parameter="disk"),
        parent="Machine",
        joins=(),
        overlay=Overlay(),
        scale_spec="",
        scale_status="",
    )


def an_object(called: str, namespace: str, /, **spec: Any) -> Untyped:
    """A machine with what it needs."""
    return Untyped(
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Machine",
            "metadata": {"name": called, "namespace": namespace},
            "spec": {"sku": {"tier": "Small"}, **spec},
        }
    )


async def define(client: ApiClient, *models: Model) -> None:
    """Apply the definitions, and return when the kinds are served."""
    for model in models:
        await apply(client, Untyped(crd(model)), manager="test", force=True)
    async with asyncio.timeout(30):
        for model in models:
            await _served(client, Named(f"{model.group}/{model.version}", model.kind))


async def _served(client: ApiClient, kind: Named) -> None:
    while True:
        try:
            await client.list(kind, Query(metadata_only=True, fields="metadata.name=none"))
        except StatusError as error:
            if error.code not in (404, 429, 503):
                raise
        else:
            return
        await asyncio.sleep(0.05)  # the server says by no watch when it serves a new kind
