"""The examples of real servers, read: documents, services, definitions, objects, and the Models that come of them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import msgspec
import yaml

from trimtab.systems.rest.compiling.compile import compile_model
from trimtab.systems.rest.kinds import RestDefinition, RestServiceSpec
from trimtab.systems.rest.model import Model
from trimtab.systems.rest.openapi import Document
from trimtab.systems.rest.openapi.loading import from_path

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "rest"
DATA = ROOT.parent / "shared" / "data" / "openapi"
"""Whole documents of these servers, where they are at hand."""
SERVERS = ("lxd", "powerdns", "alertmanager", "docker")


def documents(server: str, file: str) -> list[dict[str, Any]]:
    """The YAML documents of one file of an example."""
    return [each for each in yaml.safe_load_all((FOLDER / server / file).read_text()) if each]


@functools.cache
def openapi(server: str) -> Document:
    return from_path(FOLDER / server / "openapi.yaml")


def service(server: str) -> RestServiceSpec:
    (found,) = [each for each in documents(server, "service.yaml") if each["kind"] == "RestService"]
    return msgspec.convert(found["spec"], RestServiceSpec)


def definitions(server: str) -> dict[str, RestDefinition]:
    """By kind."""
    found = [msgspec.convert(each, RestDefinition) for each in documents(server, "definitions.yaml")]
    return {each.spec.names.kind: each for each in found}


@functools.cache
def models(server: str) -> dict[str, Model]:
    """By kind."""
    return {
        kind: compile_model(
            openapi(server),
            definition,
            service=service(server),
            service_name=server,
            group=f"{server}.rest.trimtab.dev",
        )
        for kind, definition in definitions(server).items()
    }
