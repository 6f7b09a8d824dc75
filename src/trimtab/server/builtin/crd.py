"""What the spec of a CustomResourceDefinition must say.

The real server checks a v1 CRD in an older shape, where fields that are the same in every version stand once, at the
top. That is why the errors of a CRD with one version speak of `spec.validation`, not of `spec.versions[0].schema`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.model import jsonpath
from trimtab.model.errors import FieldError
from trimtab.model.metadata import dns_1035_label_problems
from trimtab.model.names import dns_subdomain_problems
from trimtab.server.builtin import gosource
from trimtab.server.builtin.client_config import conversion_review_versions, webhook_client
from trimtab.server.builtin.problems import (
    at,
    duplicate,
    forbidden,
    immutable,
    invalid,
    invalid_go,
    required,
    unsupported,
)
from trimtab.server.strategy import Document

APPROVAL = "api-approved.kubernetes.io"
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
MAX_SELECTABLE = 8


def spec_problems(spec: Document) -> list[FieldError]:
    errors = []
    group = spec.get("group", "")
    if not group:
        errors.append(required("spec.group"))
    elif problems := dns_subdomain_problems(group):
        errors.append(invalid("spec.group", group, ",".join(problems)))
    elif "." not in group:
        errors.append(invalid("spec.group", group, "should be a domain with at least one dot"))
    scope = spec.get("scope", "")
    if not scope:
        errors.append(required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        errors.append(unsupported("spec.scope", scope, ["Cluster", "Namespaced"]))
    versions = spec.get("versions") or []
    for index, version in enumerate(versions):
        if at(version, "schema", "openAPIV3Schema") is None:
            errors.append(required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required"))
    tops = {field: _shared(versions, field) for field in _TOP}
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if problems := dns_1035_label_problems(version.get("name", "")):
            errors.append(invalid(f"{path}.name", version.get("name", ""), ",".join(problems)))
        own = {field: f"{path}.{field}" for field in _TOP if not tops[field]}
        errors += _version(version, path, own, status=_has_status(version))
    shown = gosource.crd_versions(spec.get("versions"), tops)
    if len({version.get("name") for version in versions}) != len(versions):
        errors.append(invalid_go("spec.versions", shown, "must contain unique version names"))
    if sum(1 for version in versions if version.get("storage")) != 1:
        errors.append(invalid_go("spec.versions", shown, "must have exactly one version marked as storage version"))
    first = versions[0].get("name", "") if versions else ""
    if first and (problems := dns_1035_label_problems(first)):
        errors.append(invalid("spec.version", first, ",".join(problems)))
    what = spec.get("names") or {}
    errors += [required(f"spec.names.{f}") for f in ("plural", "singular", "kind", "listKind") if not what.get(f)]
    errors += name_problems(what, "spec.names")
    if versions:
        shared = {field: f"spec.{top}" for field, top in _TOP.items() if tops[field]}
        errors += _version(versions[0], "", shared, status=any(_has_status(version) for version in versions))
    return errors + _conversion(spec.get("conversion"))


# Fields of a version, and where the real server has them when all versions agree.
_TOP = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}


def _shared(versions: list[Document], field: str) -> bool:
    first = versions[0].get(field) if versions else None
    return bool(first) and all(version.get(field) == first for version in versions)


def _has_status(version: Document) -> bool:
    return at(version, "subresources", "status") is not None


def _version(version: Document, path: str, paths: dict[str, str], *, status: bool) -> list[FieldError]:
    """The fields of one version that `paths` names, each reported at its path; "" is the path of what all share."""
    errors = []
    if path:
        errors += [
            invalid(f"{path}.deprecationWarning", version.get("deprecationWarning"), problem)
            for problem in _deprecation(version)
        ]
    if "schema" in paths:
        errors += _schema(version, paths["schema"], status)
    if "subresources" in paths:
        errors += _subresources(version.get("subresources"), paths["subresources"])
    if "additionalPrinterColumns" in paths:
        for index, column in enumerate(version.get("additionalPrinterColumns") or []):
            errors += _column(column, f"{paths['additionalPrinterColumns']}[{index}]")
    if "selectableFields" in paths and version.get("selectableFields"):
        if "schema" in paths:
            errors += _selectable(version, paths["selectableFields"])
        else:  # the real server does not look for the schema at the other level
            missing = "version.schema.openAPIV3Schema is not included" if path else "validations.schema is included"
            errors.append(invalid(paths["selectableFields"], "", f"selectableFields may only be set when {missing}"))
    return errors


def _deprecation(version: Document) -> list[str]:
    text = version.get("deprecationWarning")
    if text is None:
        return []
    if not version.get("deprecated"):
        return ["can only be set for deprecated versions"]
    problems = []
    if len(text.encode()) > 256:
        problems.append("must be <= 256 characters long")
    if not text:
        problems.append("must not be an empty string")
    for position, sign in enumerate(text):
        if not sign.isprintable():
            why = "must only contain printable UTF-8 characters; non-printable character found at index"
            problems.append(f"{why} {len(text[:position].encode())}")
            break
    return problems


def _schema(version: Document, path: str, status: bool) -> list[FieldError]:
    schema = at(version, "schema", "openAPIV3Schema")
    if schema is None:
        return []
    from trimtab.model.schema.structural import check

    here = f"{path}.openAPIV3Schema"
    errors = check(schema, here, status=status)
    if not errors and "x-kubernetes-validations" in msgspec.json.encode(schema).decode():
        from trimtab.model.schema.rules import Rules

        errors = list(Rules(schema).check(here))
    return errors


def _subresources(subresources: Any, path: str) -> list[FieldError]:
    scale = at(subresources, "scale")
    if scale is None:
        return []
    errors = []
    for field, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        where, text = f"{path}.scale.{field}", scale.get(field, "")
        if not text:
            errors.append(required(where))
        elif not text.startswith("."):
            errors.append(invalid(where, text, "must be a simple json path starting with ."))
        elif not text.startswith(root):
            errors.append(invalid(where, text, f"should be a json path under {root[:-1]}"))
        elif why := _unreadable(text):
            errors.append(invalid(where, text, why))
    text = scale.get("labelSelectorPath") or ""
    where = f"{path}.scale.labelSelectorPath"
    if text and not text.startswith("."):
        errors.append(invalid(where, text, "must be a simple json path starting with ."))
    elif text and not text.startswith((".spec.", ".status.")):
        errors.append(invalid(where, text, "should be a json path under either .spec or .status"))
    return errors


def _column(column: Document, path: str) -> list[FieldError]:
    errors = []
    if not column.get("name"):
        errors.append(required(f"{path}.name"))
    types = f"must be one of {','.join(COLUMN_TYPES)}"
    if not column.get("type"):
        errors.append(required(f"{path}.type", types))
    elif column["type"] not in COLUMN_TYPES:
        errors.append(invalid(f"{path}.type", column["type"], types))
    if column.get("format") and column["format"] not in COLUMN_FORMATS:
        errors.append(invalid(f"{path}.format", column["format"], f"must be one of {','.join(COLUMN_FORMATS)}"))
    text = column.get("jsonPath", "")
    if not text:
        errors.append(required(f"{path}.JSONPath"))
    elif not text.startswith("."):
        errors.append(invalid(f"{path}.JSONPath", text, "must be a simple json path starting with ."))
    elif why := _unreadable(text):
        errors.append(invalid(f"{path}.JSONPath", text, why))
    return errors


def _unreadable(path: str) -> str:
    """Why a path cannot be followed; "" when it can."""
    try:
        jsonpath.compile(path)
    except jsonpath.JSONPathError as error:
        return f"must be a simple json path: {error}"
    return ""


def _selectable(version: Document, path: str) -> list[FieldError]:
    errors = []
    seen = set()
    for index, one in enumerate(version.get("selectableFields") or []):
        where, text = f"{path}[{index}].jsonPath", one.get("jsonPath", "")
        if not text:
            errors.append(required(where))
            continue
        found = at(version, "schema", "openAPIV3Schema")
        for step in text.lstrip(".").split("."):
            found = at(found, "properties", step)
        if not text.startswith(".") or found is None:
            errors.append(invalid(where, text, "is an invalid path: does not refer to a valid field"))
            continue
        if text.startswith(".metadata"):
            errors.append(invalid(where, text, "must not point to fields in metadata"))
        if at(found, "type") not in ("string", "boolean", "integer"):
            why = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats"
            )
            errors.append(invalid(where, text, why + " are allowed."))
        if text in seen:
            errors.append(duplicate(where, text))
        seen.add(text)
    if len(seen) > MAX_SELECTABLE:
        errors.append(invalid(path, len(seen), f"must have at most {MAX_SELECTABLE} items"))
    return errors


def name_problems(what: Document, path: str) -> list[FieldError]:
    errors = [
        invalid(f"{path}.{field}", what[field], ",".join(problems))
        for field in ("plural", "singular")
        if what.get(field) and (problems := dns_1035_label_problems(what[field]))
    ]
    for field in ("kind", "listKind"):
        if what.get(field) and (problems := dns_1035_label_problems(what[field].lower())):
            why = "may have mixed case, but should otherwise match: " + ",".join(problems)
            errors.append(invalid(f"{path}.{field}", what[field], why))
    for field in ("shortNames", "categories"):
        if field == "categories" and what.get("kind") and what["kind"] == what.get("listKind"):
            errors.append(invalid(f"{path}.listKind", what["listKind"], "kind and listKind may not be the same"))
        for index, name in enumerate(what.get(field) or []):
            if problems := dns_1035_label_problems(name):
                errors.append(invalid(f"{path}.{field}[{index}]", name, ",".join(problems)))
    return errors


def _conversion(conversion: Any) -> list[FieldError]:
    if conversion is None:
        return []
    strategy = conversion.get("strategy", "")
    errors = []
    if not strategy:
        errors.append(required("spec.conversion.strategy"))
    elif strategy not in ("None", "Webhook"):
        errors.append(unsupported("spec.conversion.strategy", strategy, ["None", "Webhook"]))
    webhook = conversion.get("webhook")
    versions = at(webhook, "conversionReviewVersions")
    if strategy == "Webhook":
        config = at(webhook, "clientConfig")
        if config is None:
            where = "spec.conversion.webhookClientConfig"
            errors.append(required(where, "required when strategy is set to Webhook"))
        else:
            errors += webhook_client(config, "spec.conversion.webhookClientConfig")
        errors += conversion_review_versions(versions or [], "spec.conversion.conversionReviewVersions")
        return errors
    why = "should not be set when strategy is not set to Webhook"
    if at(webhook, "clientConfig") is not None:
        errors.append(forbidden("spec.conversion.webhookClientConfig", why))
    if versions:
        errors.append(forbidden("spec.conversion.conversionReviewVersions", why))
    return errors


def changed(spec: Document, old: Document) -> list[FieldError]:
    before = old.get("spec") or {}
    conditions = at(old, "status", "conditions") or []
    errors = []
    if any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions):
        errors += immutable("spec.scope", spec.get("scope"), before.get("scope"))
        errors += immutable("spec.names.kind", at(spec, "names", "kind"), at(before, "names", "kind"))
    errors += immutable("spec.group", spec.get("group"), before.get("group"))
    return errors + immutable("spec.names.plural", at(spec, "names", "plural"), at(before, "names", "plural"))


def stored_problems(stored: list[str], versions: list[Document]) -> list[FieldError]:
    path = "status.storedVersions"
    if not stored:
        return [invalid_go(path, gosource.strings(stored), "must have at least one stored version")]
    left = {name: index for index, name in enumerate(stored)}
    errors = []
    for version in versions:
        name = version.get("name", "")
        if version.get("storage") and name not in left:
            errors.append(invalid_go(path, gosource.strings(stored), f"must have the storage version {name}"))
        left.pop(name, None)
    return errors + [invalid(f"{path}[{index}]", name, "must appear in spec.versions") for name, index in left.items()]


def approval(new: Document, old: Document | None) -> list[FieldError]:
    """Groups of the Kubernetes community need a link to the review that approved the API."""
    group = at(new, "spec", "group") or ""
    if not any(group == g or group.endswith("." + g) for g in ("k8s.io", "kubernetes.io")):
        return []
    given = at(new, "metadata", "annotations", APPROVAL)
    if old is not None and at(old, "metadata", "annotations", APPROVAL) == given:
        return []
    path = f"metadata.annotations[{APPROVAL}]"
    rule = f'protected groups must have approval annotation "{APPROVAL}"'
    proposal = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not given:
        return [required(path, f"{rule}, {proposal}")]
    scheme, _, rest = given.partition("://")
    if given.startswith("unapproved") or (scheme and rest and not rest.startswith("/")):
        return []
    return [invalid(path, given, f'{rule} with either a URL or a reason starting with "unapproved", {proposal}')]
