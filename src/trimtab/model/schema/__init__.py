"""The one meaning of a schema: validate, prune and default an object in one walk."""

from trimtab.model.schema.walker import Schema, Walk

__all__ = ["Schema", "Walk"]
