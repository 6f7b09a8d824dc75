"""The Common Expression Language as Kubernetes 1.32 runs it: typed by schemas, bounded by cost.

`compile` an expression over typed variables, `evaluate` it with a budget, `estimate` what it may cost. Types of a
structural schema come from `type_of_schema`, and bind the values that an evaluation takes.
"""

from trimtab.model.cel.binding import type_of_schema
from trimtab.model.cel.errors import CelError, CostExceeded, EvaluationError, Issue
from trimtab.model.cel.program import PER_CALL, PER_OBJECT, Budget, Program, WrongResult, compile  # noqa: A004
from trimtab.model.cel.types import (
    AUTHORIZER,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    RESOURCE_CHECK,
    STRING,
    TIMESTAMP,
    UINT,
    ObjectType,
    Type,
    list_of,
    map_of,
    optional_of,
)
from trimtab.model.cel.values import NONE, Optional

__all__ = [
    "AUTHORIZER",
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DURATION",
    "DYN",
    "INT",
    "NONE",
    "NULL",
    "PER_CALL",
    "PER_OBJECT",
    "RESOURCE_CHECK",
    "STRING",
    "TIMESTAMP",
    "UINT",
    "Budget",
    "CelError",
    "CostExceeded",
    "EvaluationError",
    "Issue",
    "ObjectType",
    "Optional",
    "Program",
    "Type",
    "WrongResult",
    "compile",
    "list_of",
    "map_of",
    "optional_of",
    "type_of_schema",
]
