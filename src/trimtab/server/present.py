"""The last step of an answer: JSON as it is, indented for people, or YAML."""

from __future__ import annotations

import io
import json

import orjson

from trimtab.server.http import Response
from trimtab.server.negotiate import Form

YAML = b"application/yaml"


def present(response: Response, form: Form) -> Response:
    if form.yaml:
        response.body, response.media = _yaml(response.body), YAML
    elif form.pretty:
        response.body = orjson.dumps(orjson.loads(response.body), option=orjson.OPT_INDENT_2) + b"\n"
    return response


def _yaml(body: bytes) -> bytes:
    from ruamel.yaml import YAML as Yaml

    yaml = Yaml(typ="safe", pure=True)
    yaml.default_flow_style = False
    stream = io.BytesIO()
    yaml.dump(json.loads(body), stream)
    return stream.getvalue()
