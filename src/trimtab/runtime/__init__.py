"""Controllers, and what they share. It knows the model and the client only, so that a controller runs anywhere.

What an operator's author needs is named here. Read `controller` first, then `driver` and `manager`; `reflector`, `cache` and
`informers` are how changes come in, `workqueue` is how they wait.
"""

from trimtab.runtime.cache import Index
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.controller import Controller, Result, TerminalError, Watch
from trimtab.runtime.manager import Manager
from trimtab.runtime.predicates import (
    Predicate,
    annotations_changed,
    any_change,
    generation_changed,
    labels_changed,
)
from trimtab.runtime.system import Context, Rule, System

__all__ = [
    "Change",
    "Context",
    "Controller",
    "Index",
    "Manager",
    "Predicate",
    "Request",
    "Result",
    "Rule",
    "System",
    "TerminalError",
    "Watch",
    "annotations_changed",
    "any_change",
    "generation_changed",
    "labels_changed",
]
