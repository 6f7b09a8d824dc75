"""Answers without what may differ between two servers that behave alike.

Identifiers become placeholders numbered by first appearance; the resourceVersions of objects become their rank, so that
their order is still compared; times keep only their precision. The revision of a list is only checked to be there: on a
shared server it moves with writes that are none of ours.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from .exchange import Answer, Request

_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_REVISION = re.compile(r"resource ?version", re.IGNORECASE)
_ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
_TOKEN = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+")
_ISSUER = re.compile(r"https://kubernetes\.default\.svc(\.cluster\.local)?")
_DIGEST = re.compile(r"\b[0-9A-Fa-f]{64}\b")
_POINTER = re.compile(r"\b0x[0-9a-f]+\b")
_TOO_OLD = re.compile(r"too old resource version: \d+ \(\d+\)")
_PREFIX = re.compile(r'"generateName": "([^"]+)"')
# How many of the errors are named, and in which order, is left to chance: they come from a map.
_TYPED = re.compile(r"(failed to create typed patch object \([^)]*\): ).*", re.DOTALL)
_CONTROLLERS = ("kube-apiserver", "kube-controller-manager", "trimtab")
_BACKGROUND = {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")}


def normalised(requests: Sequence[Request], answers: list[Answer], words: dict[str, str]) -> list[dict[str, Any]]:
    """All answers of a scenario by one server; they are normalised together."""
    state = _State(requests, answers, words)
    return [
        {
            "status": answer.status,
            "headers": {name: [state.text(value) for value in values] for name, values in answer.headers.items()},
            "body": state.value(answer.body),
        }
        for answer in answers
    ]


class _State:
    def __init__(self, requests: Sequence[Request], answers: list[Answer], words: dict[str, str]) -> None:
        revisions: set[int] = set()
        self._generated: dict[str, str] = {}
        prefixes = set(
            _PREFIX.findall(
                "".join(json.dumps(request.body) for request in requests if not isinstance(request.body, bytes))
            )
        )
        self._suffix = (
            re.compile(rf"\b({'|'.join(map(re.escape, sorted(prefixes)))})[bcdfghjklmnpqrstvwxz2456789]{{5}}\b")
            if prefixes
            else None
        )
        for answer in answers:
            self._collect(answer.body, revisions)
        self._ranks = {str(revision): f"<rv {rank}>" for rank, revision in enumerate(sorted(revisions), 1)}
        self._uids: dict[str, str] = {}
        self._words = sorted(words.items(), key=lambda word: -len(word[1]))

    def _collect(self, value: Any, revisions: set[int]) -> None:
        if isinstance(value, list):
            for item in value:
                if not background(item):
                    self._collect(item, revisions)
        elif isinstance(value, dict):
            metadata = value.get("metadata")
            if isinstance(metadata, dict):
                revision = metadata.get("resourceVersion")
                if not is_list(value) and isinstance(revision, str) and revision.isdigit():
                    revisions.add(int(revision))
            for item in value.values():
                self._collect(item, revisions)

    def value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            return self._ranks.get(value, value) if key == "resourceVersion" else self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value if not background(item)]
        if isinstance(value, dict):
            return self._object(value)
        return value

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        result = {self.text(name): self.value(item, name) for name, item in value.items()}
        metadata = value.get("metadata")
        if isinstance(metadata, dict) and is_list(value):
            for name in ("resourceVersion", "continue"):
                if metadata.get(name):
                    result["metadata"][name] = f"<{name}>"
        details = result.get("details")
        if isinstance(details, dict) and len(details.get("causes") or ()) > 1:
            # In no order, for they come from a map; and some twice, for metadata are validated twice.
            details["causes"] = sorted({str(cause): cause for cause in details["causes"]}.values(), key=str)
            if len(details["causes"]) > 1:
                result["message"] = " ".join(sorted(re.split(r"[ \[\],]+", str(result.get("message")))))
        if value.get("kind") == "APIResourceList":  # custom kinds come in no order
            result["resources"].sort(key=lambda resource: str(resource["name"]))
        if isinstance(value.get("cells"), list):  # an age is a matter of when one asks
            result["cells"] = ["<age>" if re.fullmatch(r"\d+s", str(cell)) else cell for cell in result["cells"]]
        if isinstance(value.get("managedFields"), list):
            for entry in result["managedFields"]:
                if isinstance(entry, dict) and entry.get("manager") in _CONTROLLERS:
                    entry["manager"] = "<controller>"
            result["managedFields"].sort(key=manager_key)
        return result

    def text(self, text: str) -> str:
        if _REVISION.search(text):
            text = re.sub(r"\b\d+\b", lambda number: self._ranks.get(number[0], number[0]), text)
        if self._suffix:
            text = self._suffix.sub(
                lambda name: self._generated.setdefault(name[0], f"{name[1]}<generated {len(self._generated) + 1}>"),
                text,
            )
        text = _TIME.sub(lambda time: f"<time{'.' + str(len(time[1]) - 1) if time[1] else ''}>", text)
        text = _UID.sub(lambda uid: self._uids.setdefault(uid[0], f"<uid {len(self._uids) + 1}>"), text)
        text = _ADDRESS.sub("<server>", text)
        text = _ISSUER.sub("<issuer>", _TOKEN.sub("<token>", text))
        text = _TYPED.sub(r"\1<errors>", text)
        text = _DIGEST.sub("<digest>", text)
        text = _POINTER.sub("<pointer>", text)
        text = _TOO_OLD.sub("too old resource version: <old> (<oldest>)", text)
        for name, word in self._words:
            text = text.replace(word, f"${name}")
        return text


def is_list(value: dict[str, Any]) -> bool:
    """Lists have items, and Tables have rows."""
    return str(value.get("kind", "")).endswith(("List", "Table")) and ("items" in value or "rows" in value)


def background(item: Any) -> bool:
    """What controllers put into every namespace in their own time."""
    if not isinstance(item, dict):
        return False
    subject = item.get("object", item)  # an event, or a row of a table
    if not isinstance(subject, dict) or not isinstance(subject.get("metadata"), dict):
        return False
    name = subject["metadata"].get("name")
    return (subject.get("kind"), name) in _BACKGROUND or name == "kube-root-ca.crt"


def manager_key(entry: Any) -> tuple[str, ...]:
    return tuple(str(entry.get(name, "")) for name in ("manager", "operation", "subresource", "apiVersion"))
