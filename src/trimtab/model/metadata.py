"""ObjectMeta: the fields that every object has, and their rules as apimachinery's `validation/objectmeta.go` has them.

`decode` comes first: it changes the document as decoding into the Go struct would. The others only read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.names import dns_subdomain_problems, label_key_problems, label_value_problems
from trimtab.model.schema import finding, objectmeta
from trimtab.model.schema.gotext import Strings
from trimtab.model.schema.walker import Walk

Document = dict[str, Any]

NameCheck = Callable[[str, bool], Sequence[str]]
"""What is wrong with a name; the flag says that it is a prefix, to which more will be added."""

ANNOTATIONS_LIMIT = 262_144
"""Bytes of all keys and values of annotations together."""

MOST_TOLD = 5
"""Errors that each show a whole list."""


def decode(meta: Document, *, native: bool = False) -> Walk:
    """Drop nulls and unknown fields. Errors are `Undecodable`: values that do not fit the Go struct. Paths begin with
    `metadata`; in messages they do so for `native` kinds only, because metadata of the others is decoded alone."""
    found = objectmeta.check()(meta)
    if found is None:
        return Walk([], [])
    if native:
        found = finding.above(found, "metadata", None)
        return Walk(finding.errors(found), finding.unknown(found))
    errors = [msgspec.structs.replace(error, path=f"metadata.{error.path}") for error in finding.errors(found)]
    return Walk(errors, [f"metadata.{path}" for path in finding.unknown(found)])


def coerce(meta: Document) -> list[str]:
    """Drop nulls and unknown fields; the paths of the latter."""
    return decode(meta).unknown


def validate(
    meta: Mapping[str, Any],
    *,
    namespaced: bool,
    old: Mapping[str, Any] | None,
    name_check: NameCheck | None = None,
) -> list[FieldError]:
    """What is wrong with decoded metadata, at creation (`old` is None) or beside the old state."""
    if old is None:
        return validate_create(meta, namespaced=namespaced, name_check=name_check or dns_subdomain_name)
    return validate_update(meta, old)


def validate_create(meta: Mapping[str, Any], *, namespaced: bool, name_check: NameCheck) -> list[FieldError]:
    name, prefix, namespace = meta.get("name") or "", meta.get("generateName") or "", meta.get("namespace") or ""
    errors = [_invalid("generateName", prefix, problem) for problem in (name_check(prefix, True) if prefix else ())]
    if name:
        errors += [_invalid("name", name, problem) for problem in name_check(name, False)]
    else:
        errors.append(_error("name", FieldProblem.REQUIRED, "", "name or generateName is required"))
    if not namespaced:
        if namespace:
            errors.append(_error("namespace", FieldProblem.FORBIDDEN, "", "not allowed on this type"))
    elif not namespace:
        errors.append(_error("namespace", FieldProblem.REQUIRED, ""))
    else:
        errors += [_invalid("namespace", namespace, problem) for problem in dns_label_name(namespace, False)]
    if (meta.get("generation") or 0) < 0:
        errors.append(_invalid("generation", meta["generation"], "must be greater than or equal to 0"))
    errors += _labels(meta)
    errors += _annotations(meta)
    errors += _owners(meta)
    errors += _finalizers(meta)
    errors += _managed_fields(meta)
    return errors


def validate_update(meta: Mapping[str, Any], old: Mapping[str, Any]) -> list[FieldError]:
    errors = []
    if old.get("deletionTimestamp"):
        added = sorted(set(meta.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            shown = ", ".join(f'"{name}"' for name in added)
            why = "no new finalizers can be added if the object is being deleted"
            detail = f"{why}, found new finalizers []string{{{shown}}}"
            errors.append(_error("finalizers", FieldProblem.FORBIDDEN, "", detail))
    if not meta.get("resourceVersion"):
        errors.append(_invalid("resourceVersion", meta.get("resourceVersion") or "", "must be specified for an update"))
    if (meta.get("generation") or 0) < (old.get("generation") or 0):
        errors.append(_invalid("generation", meta.get("generation") or 0, "must not be decremented"))
    errors += [
        _invalid(field, meta.get(field) or _EMPTY.get(field), "field is immutable")
        for field in _FIXED
        if (meta.get(field) or None) != (old.get(field) or None)
    ]
    errors += _labels(meta)
    errors += _annotations(meta)
    errors += _owners(meta)
    errors += _managed_fields(meta)
    return errors


def finalizer_errors(meta: Mapping[str, Any]) -> list[FieldError]:
    """What kinds of the core group say besides, at creation: a name without a domain must be one of the known ones."""
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    known = ("orphan", "foregroundDeletion", "kubernetes")
    names = enumerate(meta.get("finalizers") or ())
    return [_invalid(f"finalizers[{i}]", name, detail) for i, name in names if "/" not in name and name not in known]


def dns_subdomain_name(name: str, prefix: bool) -> list[str]:
    return dns_subdomain_problems(_unfinished(name) if prefix else name)


def dns_label_name(name: str, prefix: bool) -> list[str]:
    return dns_label_problems(_unfinished(name) if prefix else name)


def dns_label_problems(value: str) -> list[str]:
    """A label of RFC 1123."""
    problems = ["must be no more than 63 characters"] if _size(value) > 63 else []
    if not _is_label(value):
        problems.append("must not contain dots" if not dns_subdomain_problems(value)[-1:] else _LABEL_SAYS)
    return problems


def dns_1035_label_problems(value: str) -> list[str]:
    """A label of RFC 1035, which does not begin with a digit."""
    problems = ["must be no more than 63 characters"] if _size(value) > 63 else []
    return problems if _is_1035_label(value) else [*problems, _1035_LABEL_SAYS]


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_is_label = re.compile(_LABEL).fullmatch
_is_1035_label = re.compile(_1035_LABEL).fullmatch
_LABEL_SAYS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_1035_LABEL_SAYS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character "
    f"(e.g. 'my-name',  or 'abc-123', regex used for validation is '{_1035_LABEL}')"
)


def path_segment_name(name: str, prefix: bool) -> list[str]:
    """What may stand in a URL: the rule of RBAC kinds and of embedded resources."""
    if not prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


def _unfinished(name: str) -> str:
    """A prefix may end in a dash. The real server masks two characters; so do we."""
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name


_FIXED = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_EMPTY = {"name": "", "namespace": "", "uid": ""}


def _error(field: str, problem: FieldProblem, value: Any, detail: str = "") -> FieldError:
    return FieldError(f"metadata.{field}", problem, value, detail)


def _invalid(field: str, value: Any, detail: str) -> FieldError:
    return _error(field, FieldProblem.INVALID, value, detail)


def _labels(meta: Mapping[str, Any]) -> list[FieldError]:
    errors = []
    for key, value in (meta.get("labels") or {}).items():
        errors += [_invalid("labels", key, problem) for problem in label_key_problems(key)]
        errors += [_invalid("labels", value, problem) for problem in label_value_problems(value)]
    return errors


def _annotations(meta: Mapping[str, Any]) -> list[FieldError]:
    annotations = meta.get("annotations")
    if not annotations:
        return []
    errors = []
    size = 0
    for key, value in annotations.items():
        errors += [_invalid("annotations", key, problem) for problem in label_key_problems(key.lower())]
        size += _size(key) + _size(value)
    if size > ANNOTATIONS_LIMIT:
        detail = f"may not be more than {ANNOTATIONS_LIMIT} bytes"
        errors.append(_error("annotations", FieldProblem.TOO_LONG, None, detail))
    return errors


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _owners(meta: Mapping[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    first, told = "", 0
    owners = meta.get("ownerReferences") or ()
    for owner in owners:
        version, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
        if not version.rpartition("/")[2] or version.count("/") > 1:
            errors.append(_invalid("ownerReferences.apiVersion", version, "version must not be empty"))
        for field, value in (("kind", kind), ("name", owner.get("name") or ""), ("uid", owner.get("uid") or "")):
            if not value:
                errors.append(_invalid(f"ownerReferences.{field}", "", f"{field} must not be empty"))
        if (version, kind) == ("v1", "Event"):
            errors.append(_invalid("ownerReferences", owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            name = f"{kind}/{owner.get('name') or ''}"
            if first and told < MOST_TOLD:
                told += 1
                found = f'Found "true" in references for {first} and {name}'
                detail = f"Only one reference can have Controller set to true. {found}"
                errors.append(_invalid("ownerReferences", owners, detail))
            first = first or name
    return errors


def _finalizers(meta: Mapping[str, Any]) -> list[FieldError]:
    finalizers = meta.get("finalizers")
    if not finalizers:
        return []
    errors = [_invalid("finalizers", name, problem) for name in finalizers for problem in label_key_problems(name)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(_invalid("finalizers", Strings(finalizers), detail))
    return errors


def _managed_fields(meta: Mapping[str, Any]) -> list[FieldError]:
    errors = []
    for index, entry in enumerate(meta.get("managedFields") or ()):
        path = f"managedFields[{index}]"
        operation, fields_type = entry.get("operation") or "", entry.get("fieldsType") or ""
        if operation not in ("Apply", "Update"):
            errors.append(_invalid(f"{path}.operation", operation, "must be `Apply` or `Update`"))
        if fields_type not in ("", "FieldsV1"):
            errors.append(_invalid(f"{path}.fieldsType", fields_type, "must be `FieldsV1`"))
        errors += [
            _error(f"{path}.manager", *problem) for problem in field_manager_problems(entry.get("manager") or "")
        ]
        if _size(entry.get("subresource") or "") > 256:
            errors.append(_error(f"{path}.subresource", FieldProblem.TOO_LONG, None, "may not be more than 256 bytes"))
    return errors


def field_manager_problems(name: str) -> list[tuple[FieldProblem, Any, str]]:
    """What is wrong with a field manager's name."""
    problems: list[tuple[FieldProblem, Any, str]] = []
    if _size(name) > 128:
        problems.append((FieldProblem.TOO_LONG, None, "may not be more than 128 bytes"))
    position = 0
    for char in name if not name.isprintable() else "":
        if not char.isprintable():
            detail = f"invalid character U+{ord(char):04X} (at position {position})"
            problems.append((FieldProblem.INVALID, name, detail))
        position += _size(char)
    return problems
