"""OpenAPI documents: loading, references, one form for OpenAPI 2.0, 3.0 and 3.1.

loading      from memory, a folder, a web server; a Document with all files that it refers to
reading      from bytes to a tree: JSON or YAML
references   which files are needed, where a $ref leads
document     title, version, operations, definitions
operations   one method of one path: parameters, body, responses
schema       a handle on a schema that looks things up when asked
bundling     one file of a part of a document
"""

from trimtab.systems.rest.openapi.bundling import bundle
from trimtab.systems.rest.openapi.document import Document
from trimtab.systems.rest.openapi.errors import DocumentError
from trimtab.systems.rest.openapi.loading import from_path, from_url, load
from trimtab.systems.rest.openapi.operations import Operation, Param, Response
from trimtab.systems.rest.openapi.schema import Discriminator, Schema

__all__ = [
    "Discriminator",
    "Document",
    "DocumentError",
    "Operation",
    "Param",
    "Response",
    "Schema",
    "bundle",
    "from_path",
    "from_url",
    "load",
]
