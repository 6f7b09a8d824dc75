"""The managers of an object: the entries of `metadata.managedFields`, read, told apart, sorted and bounded."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from trimtab.server.apply.fieldset import FieldSet, parse, union

MAX_UPDATE_MANAGERS = 10
_ANCIENT = "ancient-changes"


class Manager(msgspec.Struct, frozen=True, order=True):
    """Who owns fields. An applier is the same in all versions of a kind and has no `api_version` here; an updater's is
    part of who it is."""

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    @property
    def identifier(self) -> str:
        """The text by which the API sorts managers in messages."""
        named = {"manager": self.name, "operation": self.operation, "apiVersion": self.api_version}
        if self.subresource:
            named["subresource"] = self.subresource
        return orjson.dumps({key: value for key, value in named.items() if value}).decode()

    def __str__(self) -> str:
        text = orjson.dumps(self.name).decode()
        if self.subresource:
            text += f" with subresource {orjson.dumps(self.subresource).decode()}"
        if self.operation == "Update":
            text += f" using {self.api_version}"
        return text


class Owned(msgspec.Struct, frozen=True):
    """What a manager owns, in which version it said so, and when it last changed something."""

    fields: FieldSet
    api_version: str
    time: str | None = None


Managers = dict[Manager, Owned]


def decode(entries: Sequence[dict[str, Any]]) -> Managers:
    """The managers of a stored object, whose entries are known to be sound."""
    managers = {}
    for entry in entries:
        operation, version = entry["operation"], entry["apiVersion"]
        manager = Manager(
            entry.get("manager", ""), operation, "" if operation == "Apply" else version, entry.get("subresource", "")
        )
        managers[manager] = Owned(entry.get("fieldsV1") or {}, version, entry.get("time"))
    return managers


def check(entries: Any) -> list[dict[str, Any]]:
    """Entries that a client sent, in canonical form. Raises ValueError, in the words of the API, for unsound ones."""
    if not isinstance(entries, list):
        raise ValueError("managedFields is a list")
    return [_checked(index, entry) for index, entry in enumerate(entries)]


def encode(managers: Managers) -> list[dict[str, Any]]:
    """The entries of managers, sorted as the API sorts them: by operation, time and name."""
    entries = []
    for manager, owned in managers.items():
        entry: dict[str, Any] = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": owned.api_version,
        }
        if owned.time is not None:
            entry["time"] = owned.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = owned.fields
        if manager.subresource:
            entry["subresource"] = manager.subresource
        entries.append(entry)
    if len(entries) > 1:
        entries.sort(key=_order)
    return entries


def cap(managers: Managers) -> Managers:
    """Not more than ten updaters: the oldest of each version are merged into one bucket."""
    updaters = [manager for manager in managers if manager.operation == "Update"]
    excess = len(updaters) - MAX_UPDATE_MANAGERS
    if excess <= 0:
        return managers
    updaters.sort(key=lambda manager: (managers[manager].time or "", manager.identifier))
    result = dict(managers)
    firsts: dict[str, Manager] = {}
    for manager in updaters:
        if excess <= 0:
            break
        owned = managers[manager]
        first = firsts.setdefault(owned.api_version, manager)
        if first is manager:
            continue
        bucket = Manager(_ANCIENT, "Update", owned.api_version)
        held = result.get(bucket) or result.pop(first)
        result.pop(manager, None)
        result[bucket] = Owned(union(owned.fields, held.fields), owned.api_version, owned.time)
        excess -= 1
    return result


def _order(entry: dict[str, Any]) -> tuple[str, str, str, str, str]:
    subresource = entry.get("subresource", "")
    return entry["operation"], entry.get("time", ""), entry["manager"], entry["apiVersion"], subresource


def _checked(index: int, entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ValueError("an entry of managedFields is an object")
    if entry.get("operation") not in ("Apply", "Update"):
        raise ValueError("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise ValueError("apiVersion must not be empty")
    kind = entry.get("fieldsType", "")
    if not kind:
        raise ValueError(f"missing fieldsType in managed fields entry {index}")
    if kind != "FieldsV1":
        raise ValueError(f'invalid fieldsType "{kind}" in managed fields entry {index}')
    for name in ("manager", "apiVersion", "time", "subresource"):
        if not isinstance(entry.get(name, ""), str | None):
            raise ValueError(f"{name} of managed fields entry {index} is a string")
    sound = {"manager": entry.get("manager") or "", "operation": entry["operation"], "apiVersion": entry["apiVersion"]}
    if entry.get("time"):
        sound["time"] = _in_utc(entry["time"])
    sound["fieldsType"] = "FieldsV1"
    sound["fieldsV1"] = parse(entry.get("fieldsV1") or {})
    if entry.get("subresource"):
        sound["subresource"] = entry["subresource"]
    return sound


def _in_utc(time: str) -> str:
    moment = datetime.datetime.fromisoformat(time)
    if moment.tzinfo is None:
        raise ValueError(f"a time without a zone: {time}")
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
