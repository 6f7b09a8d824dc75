"""`trimtab rest explain`: the class of each field and what decided it, from files and from a server."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Program
from tests.cli.rest_kit import ZONES, quiet
from trimtab.model.crd import crd
from trimtab.model.scheme import Scheme
from trimtab.systems.rest.compiling.compile import compile_model
from trimtab.systems.rest.compiling.proposing import propose
from trimtab.systems.rest.kinds import RestDefinition
from trimtab.systems.rest.kinds.service import Document, RestServiceSpec
from trimtab.systems.rest.models import config_map
from trimtab.systems.rest.openapi import load

__all__ = ["quiet"]

COMPUTE = str(Path(__file__).parents[2] / "examples/rest/compute.json")


@pytest.fixture
def zones(bare: Program) -> Program:
    bare.write("zones.json", json.dumps(ZONES))
    return bare


@pytest.mark.parametrize("word", ["Zone", "zone", "zones", "zones.zones", "zones.zones.rest.trimtab.dev"])
def test_a_kind_is_named_in_several_ways(zones: Program, word: str) -> None:
    ran = zones("rest", "explain", word, "--spec", "zones.json")
    assert ran.code == 0, ran.err
    assert ran.lines[0] == "Zone of zones.rest.trimtab.dev/v1, at /api/zones/{zone}"
    assert ran.lines[1] == "managed by create (POST), read (GET), update (PUT), delete (DELETE), list (GET)"
    assert ran.lines[3].split() == ["FIELD", "TYPE", "CLASS", "WHY", "TAKEN", "BY", "COMPARED"]
    rows = {line.split()[0]: line.split() for line in ran.lines[4:]}
    assert rows["ttl"] == ["ttl", "integer", "writable", "default", "create,update"]
    assert rows["key"][2] == "secret"
    assert rows["serial"] == ["serial", "read-only", "readOnly"]


def test_only_fields_of_a_class(bare: Program) -> None:
    ran = bare("rest", "explain", "VirtualMachineScaleSet", "--spec", COMPUTE, "--class", "Create-Only")
    assert ran.code == 0, ran.err
    assert {line.split()[2] for line in ran.lines[4:] if "list by" not in line} == {"create-only"}
    assert bare("rest", "explain", "VirtualMachineScaleSet", "--spec", COMPUTE, "--class", "odd").code == 2


def test_programs_read_json(bare: Program) -> None:
    ran = bare("rest", "explain", "VirtualMachineScaleSet", "--spec", COMPUTE, "-o", "json")
    found = json.loads(ran.out)
    assert (found["kind"], found["plural"]) == ("VirtualMachineScaleSet", "virtualmachinescalesets")
    rows: dict[str, dict[str, Any]] = {row["path"]: row for row in found["fields"]}
    assert rows["location"]["class"] == "create-only"
    assert rows["location"]["compare"] == "location"
    assert rows["sku.capacity"]["writers"] == ["create", "update", "patch"]


def test_a_kind_that_is_not_there_is_named_with_those_that_are(zones: Program) -> None:
    ran = zones("rest", "explain", "Zebra", "--spec", "zones.json")
    assert (ran.code, ran.err) == (3, "error: there is no generated kind Zebra; there are: Zone\n")


def test_a_definition_alone_is_not_enough(zones: Program) -> None:
    ran = zones("rest", "explain", "Zone", "--definition", "d.yaml")
    assert (ran.code, ran.err) == (2, "error: --definition needs --spec: the document that it is about\n")


def test_a_server_is_asked_for_what_it_compiled(quiet: Program) -> None:
    trimtab = quiet
    assert trimtab("apply", "-f", "-", stdin=json.dumps(crd(RestDefinition))).code == 0
    assert trimtab("wait", "crd/restdefinitions.rest.trimtab.dev", "--for", "condition=Established").code == 0
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trimtab-system"}}
    assert trimtab("apply", "-f", "-", stdin=json.dumps(system)).code == 0
    name = f"dns{uuid.uuid4().hex[:8]}"
    document = load({"zones.json": json.dumps(ZONES).encode()}, "zones.json")
    (definition,) = propose(document, name)
    assert trimtab("apply", "-f", "-", stdin=json.dumps(Scheme().document(definition))).code == 0

    ran = trimtab("rest", "explain", f"zones.{name}")
    assert ran.code == 3
    assert f"nothing was compiled of RestDefinition zones.{name} yet" in ran.err

    service = RestServiceSpec(endpoint="https://dns.example.com", document=Document(inline="{}"))
    group = f"{name}.rest.trimtab.dev"
    model = compile_model(document, definition, service=service, service_name=name, group=group)
    assert trimtab("apply", "-f", "-", stdin=json.dumps(config_map(model, "it").raw)).code == 0
    ran = trimtab("rest", "explain", f"zones.{name}", "-o", "json")
    assert ran.code == 0, ran.err
    assert {row["path"]: row["class"] for row in json.loads(ran.out)["fields"]}["serial"] == "read-only"
    assert trimtab("delete", "restdefinition", f"zones.{name}").code == 0
