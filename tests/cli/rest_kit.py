"""Documents of our own, and servers where nobody acts on the kinds that are generated from them."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Program, Zygote, in_namespace
from trimtab.client.connect import connect
from trimtab.testing.peer import ApiServer

ZONES: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Zones", "version": "1"},
    "servers": [{"url": "https://dns.example.com/api"}],
    "paths": {
        "/zones": {
            "post": {
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Zone"}}}},
                "responses": {"201": {"description": "made"}},
            },
            "get": {
                "responses": {
                    "200": {
                        "description": "all",
                        "content": {
                            "application/json": {
                                "schema": {"type": "array", "items": {"$ref": "#/components/schemas/Zone"}}
                            }
                        },
                    }
                }
            },
        },
        "/zones/{zone}": {
            "parameters": [{"name": "zone", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {
                "responses": {
                    "200": {
                        "description": "one",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Zone"}}},
                    }
                }
            },
            "put": {
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Zone"}}}},
                "responses": {"200": {"description": "changed"}},
            },
            "delete": {"responses": {"204": {"description": "gone"}}},
        },
    },
    "components": {
        "schemas": {
            "Zone": {
                "type": "object",
                "required": ["name", "ttl"],
                "properties": {
                    "name": {"type": "string"},
                    "ttl": {"type": "integer", "minimum": 1},
                    "serial": {"type": "integer", "readOnly": True},
                    "key": {"type": "string", "format": "password"},
                },
            }
        }
    },
}


def titled(title: str, version: str, *names: str) -> dict[str, Any]:
    """A document with resources of these names."""
    body = {"name": "it", "in": "body", "schema": {"$ref": "#/definitions/It"}}
    answer = {"responses": {"200": {"description": "it", "schema": {"$ref": "#/definitions/It"}}}}
    own = [{"name": "name", "in": "path", "required": True, "type": "string"}]
    return {
        "swagger": "2.0",
        "host": "api.example.com",
        "info": {"title": title, "version": version},
        "paths": {
            f"/{title}/{name}/{{name}}": {
                "parameters": own,
                "put": {"parameters": [body], **answer},
                "get": answer,
                "delete": {"responses": {"204": {"description": "gone"}}},
            }
            for name in names
        },
        "definitions": {"It": {"type": "object", "properties": {title: {"type": "string"}}}},
    }


@pytest.fixture
async def quiet(discovery_server: ApiServer, tmp_path: Path, zygote: Zygote) -> AsyncIterator[Program]:
    """On servers where nobody acts on the kinds, nor judges their objects."""
    client = connect(discovery_server.kubeconfig)
    try:
        yield await in_namespace(f"rest-{uuid.uuid4().hex[:12]}", client, discovery_server, tmp_path, zygote)
    finally:
        await client.close()
