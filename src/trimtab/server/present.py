"""The last step of an answer: JSON as it is, indented for people, or YAML."""

from __future__ import annotations

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
    from trimtab.model import yaml

    return yaml.dump(orjson.loads(body)).encode()
