"""Query parameters of the verbs, checked as `apimachinery/pkg/apis/meta/v1/validation` checks them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.model.errors import FieldError, FieldProblem, bad_request, invalid
from trimtab.model.schema import gotext
from trimtab.model.selectors import FieldSelector, LabelSelector

META = "meta.k8s.io"
MOST_DIGITS = 30
"""More than any number of 64 bits has, and fewer than Python refuses to read."""
_WHOLE = re.compile(r"[+-]?[0-9]+")
FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Of create, update, patch and apply."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool | None = None


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Of list and watch."""

    labels: LabelSelector | None = None
    fields: FieldSelector | None = None
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_token: str = ""
    timeout: float | None = None
    bookmarks: bool = False
    initial_events: bool | None = None


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Of delete and deletecollection."""

    dry_run: bool = False
    propagation: str = ""  # "" is the kind's default
    grace_period: int | None = None
    uid: str | None = None
    resource_version: str | None = None


def write_options(query: Mapping[str, str], kind: str, *, patch_type: str = "") -> WriteOptions:
    """`kind` is the options' name in messages: CreateOptions, UpdateOptions, PatchOptions."""
    if not query:
        return _PLAIN if patch_type != "apply" else _checked(WriteOptions(), kind, "", patch_type)
    validation = query.get("fieldValidation", "")
    options = WriteOptions(
        dry_run=_dry_run(query.get("dryRun"), kind),
        field_manager=query.get("fieldManager", ""),
        field_validation=validation or "Warn",
        force=_boolean(query, "force") if "force" in query else None,
    )
    return _checked(options, kind, validation, patch_type)


_PLAIN = WriteOptions()


def _checked(options: WriteOptions, kind: str, validation: str, patch_type: str) -> WriteOptions:
    errors = []
    if patch_type and patch_type != "apply" and options.force is not None:
        errors.append(FieldError("force", FieldProblem.FORBIDDEN, None, "may not be specified for non-apply patch"))
    if patch_type == "apply" and not options.field_manager:
        errors.append(FieldError("fieldManager", FieldProblem.REQUIRED, None, "is required for apply patch"))
    manager = options.field_manager
    if len(manager) > 128:
        errors.append(FieldError("fieldManager", FieldProblem.TOO_LONG, manager, "may not be more than 128 bytes"))
    odd = next(((index, char) for index, char in enumerate(manager) if not char.isprintable()), None)
    if odd is not None:
        why = f"invalid character U+{ord(odd[1]):04X} (at position {odd[0]})"
        errors.append(FieldError("fieldManager", FieldProblem.INVALID, manager, why))
    if validation not in FIELD_VALIDATION:
        allowed = ", ".join(f'"{value}"' for value in FIELD_VALIDATION)
        errors.append(
            FieldError("fieldValidation", FieldProblem.UNSUPPORTED, validation, f"supported values: {allowed}")
        )
    if errors:
        raise invalid(kind, META, "", errors)
    return options


def list_options(query: Mapping[str, str]) -> ListOptions:
    if not query:
        return _EVERYTHING
    options = ListOptions(
        labels=LabelSelector.parse(query["labelSelector"]) if query.get("labelSelector") else None,
        fields=FieldSelector.parse(query["fieldSelector"]) if query.get("fieldSelector") else None,
        resource_version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        limit=_integer(query, "limit"),
        continue_token=query.get("continue", ""),
        timeout=float(_integer(query, "timeoutSeconds")) if query.get("timeoutSeconds") else None,
        bookmarks=_boolean(query, "allowWatchBookmarks"),
        initial_events=_boolean(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
    )
    errors = list(_list_errors(options, is_watching(query)))
    if errors:
        raise invalid("ListOptions", META, "", errors)
    return options


_EVERYTHING = ListOptions()


def _list_errors(options: ListOptions, watch: bool) -> list[FieldError]:
    """The matrix of resourceVersion, its match and the rest (internalversion/validation)."""

    def forbidden(field: str, why: str) -> FieldError:
        return FieldError(field, FieldProblem.FORBIDDEN, None, why)

    field = "resourceVersionMatch"
    errors = []
    if watch and options.initial_events is not None:
        if not options.match:
            errors.append(forbidden(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
        elif options.match != "NotOlderThan":
            errors.append(forbidden(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
            errors.append(
                FieldError(field, FieldProblem.UNSUPPORTED, options.match, 'supported values: "NotOlderThan"')
            )
        if options.continue_token:
            errors.append(forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
        return errors
    if watch and options.continue_token:
        errors.append(forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
    if options.initial_events is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if options.match:
        if watch:
            errors.append(
                forbidden(field, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
            )
            return errors
        if not options.resource_version:
            errors.append(forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.continue_token:
            errors.append(forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
        if options.match not in ("Exact", "NotOlderThan"):
            errors.append(
                FieldError(
                    field, FieldProblem.UNSUPPORTED, options.match, 'supported values: "Exact", "NotOlderThan", ""'
                )
            )
        if options.match == "Exact" and options.resource_version == "0":
            errors.append(forbidden(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return errors


def is_watching(query: Mapping[str, str]) -> bool:
    return "watch" in query and _boolean(query, "watch")


def delete_options(query: Mapping[str, str], body: Mapping[str, Any] | None) -> DeleteOptions:
    """The body wins; the query serves where there is none."""
    source: Mapping[str, Any] = body or {}
    if not source and query:
        source = {
            "dryRun": [query["dryRun"]] if query.get("dryRun") else None,
            "propagationPolicy": query.get("propagationPolicy"),
            "orphanDependents": _boolean(query, "orphanDependents") if "orphanDependents" in query else None,
            "gracePeriodSeconds": _integer(query, "gracePeriodSeconds") if query.get("gracePeriodSeconds") else None,
        }
    preconditions = source.get("preconditions") or {}
    orphan, policy = source.get("orphanDependents"), source.get("propagationPolicy") or ""
    errors = []
    if orphan is not None and policy:
        errors.append(
            FieldError(
                "propagationPolicy",
                FieldProblem.INVALID,
                policy,
                "orphanDependents and deletionPropagation cannot be both set",
            )
        )
    if policy not in ("", "Foreground", "Background", "Orphan"):
        allowed = '"Foreground", "Background", "Orphan", "nil"'
        errors.append(FieldError("propagationPolicy", FieldProblem.UNSUPPORTED, policy, f"supported values: {allowed}"))
    if errors:
        raise invalid("DeleteOptions", META, "", errors)
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    return DeleteOptions(
        dry_run=any(_dry_run(value, "DeleteOptions") for value in source.get("dryRun") or ()),
        propagation=policy,
        grace_period=source.get("gracePeriodSeconds"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
    )


def _dry_run(value: str | None, kind: str) -> bool:
    if not value:
        return False
    if value != "All":
        given = gotext.Strings([value])
        error = FieldError("dryRun", FieldProblem.UNSUPPORTED, given, 'supported values: "All"')
        raise invalid(kind, META, "", [error])
    return True


def _boolean(query: Mapping[str, str], name: str) -> bool:
    """As apimachinery converts a query string: absent or "false" or "0" is false, anything else is true."""
    return query.get(name, "false").lower() not in ("false", "0")


def _integer(query: Mapping[str, str], name: str) -> int:
    value = query.get(name)
    if not value:
        return 0
    if not _WHOLE.fullmatch(value):
        raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax')
    if len(value) > MOST_DIGITS or not -(2**63) <= (number := int(value)) < 2**63:
        raise bad_request(f'strconv.ParseInt: parsing "{value}": value out of range')
    return number


def revision_of(text: str) -> int:
    """A resourceVersion parameter as a number."""
    why = "invalid syntax"
    if text.isascii() and text.isdigit():
        if len(text) <= MOST_DIGITS and (number := int(text)) < 2**64:
            return number
        why = "value out of range"
    detail = f'strconv.ParseUint: parsing "{text}": {why}'
    raise bad_request(f"invalid resource version: {FieldError('resourceVersion', FieldProblem.INVALID, text, detail)}")
