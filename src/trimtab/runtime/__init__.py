"""Controllers, and what they share. It knows the model and the client only, so that a controller runs anywhere.

What an operator's author needs is named here. To read: `controller` (what a user writes), `driver` (drives one), `manager`
(runs them all); `reflector`, `cache`, `informers` (how changes come in), `workqueue`, `limits` (how they wait), `cached` (how
they read and write). That is the core. Around it, each on its own:

    writing the API    apply, owners, finalizers, status, events, inventory
    one of many        election, guarded, lease; claim, fence
    over time          schedule, runs, progress
    work elsewhere     queue, workers
    the world          outbound, credentials
    being asked        webhooks, certificates
    being run          system, rights, prepare, health, metrics
"""

from trimtab.runtime.changes import Change, Request
from trimtab.runtime.controller import Controller, Result, TerminalError, Watch
from trimtab.runtime.index import Index
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
