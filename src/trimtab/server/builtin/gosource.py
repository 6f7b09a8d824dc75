"""Values as Go source, for the messages in which the real server prints its own structs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def strings(values: Iterable[str] | None, of: str = "string") -> str:
    if not values:
        return f"[]{of}(nil)"
    return f"[]{of}{{{', '.join(quoted(value) for value in values)}}}"


def string_map(values: Mapping[str, str] | None) -> str:
    if values is None:
        return "map[string]string(nil)"
    return f"map[string]string{{{', '.join(f'{quoted(k)}:{quoted(values[k])}' for k in sorted(values))}}}"


def label_selector(selector: Mapping[str, Any] | None) -> str:
    if selector is None:
        return "null"
    requirements = selector.get("matchExpressions")
    listed = "(nil)"
    if requirements:
        words = (
            f"v1.LabelSelectorRequirement{{Key:{quoted(one.get('key', ''))}, "
            f"Operator:{quoted(one.get('operator', ''))}, Values:{strings(one.get('values'))}}}"
            for one in requirements
        )
        listed = f"{{{', '.join(words)}}}"
    labels = string_map(selector.get("matchLabels"))
    return f"v1.LabelSelector{{MatchLabels:{labels}, MatchExpressions:[]v1.LabelSelectorRequirement{listed}}}"


def label_selector_text(selector: Mapping[str, Any]) -> str:
    """A selector as its String method writes it."""
    labels = selector.get("matchLabels") or {}
    listed = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{one.get('key', '')},Operator:{one.get('operator', '')},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{listed}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )


def int_or_string(value: int | str) -> str:
    if isinstance(value, str):
        return f"intstr.IntOrString{{Type:1, IntVal:0, StrVal:{quoted(value)}}}"
    return f'intstr.IntOrString{{Type:0, IntVal:{value}, StrVal:""}}'


def numbers(values: Iterable[int] | None) -> str:
    if values is None:
        return "[]int32(nil)"
    return f"[]int32{{{', '.join(map(str, values))}}}"


def quantity(text: str) -> str:
    """A quantity in its canonical form."""
    number, _, exponent = text.partition("e")
    digits = number.rstrip("EGKMPTikmnu")
    suffix = number.removeprefix(digits)
    binary = suffix.endswith("i")
    value, scale = int(digits), int(exponent or 0)
    if binary:
        value *= 1024 ** " KMGTPE".index(suffix[0])
    elif suffix:
        scale = 3 * ("num kMGTPE".index(suffix) - 3)
    amount = f"resource.int64Amount{{value:{value}, scale:{scale}}}"
    form = "DecimalExponent" if exponent else "BinarySI" if binary else "DecimalSI"
    return (
        f"resource.Quantity{{i:{amount}, d:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}, "
        f's:{quoted(text)}, Format:"{form}"}}'
    )


def raw_extension(document: Any) -> str:
    """Embedded JSON: Go shows its bytes, as a client that writes no spaces sends them."""
    data = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    return (
        f"runtime.RawExtension{{Raw:[]uint8{{{', '.join(f'{byte:#x}' for byte in data)}}}, Object:runtime.Object(nil)}}"
    )


_VERSION_FIELDS = {
    "Schema": ("schema", "*apiextensions.CustomResourceValidation"),
    "Subresources": ("subresources", "*apiextensions.CustomResourceSubresources"),
    "AdditionalPrinterColumns": ("additionalPrinterColumns", "[]apiextensions.CustomResourceColumnDefinition"),
    "SelectableFields": ("selectableFields", "[]apiextensions.SelectableField"),
}


def crd_versions(versions: list[dict[str, Any]] | None, shared: Mapping[str, bool]) -> str:
    """Versions of a definition, without the fields that all share. What stands behind a pointer is an ellipsis here."""
    package = "apiextensions.CustomResourceDefinitionVersion"
    if versions is None:
        return f"[]{package}(nil)"
    shown = []
    for version in versions:
        words = [f'Name:"{version.get("name", "")}"']
        words += [f"{w.title()}:{str(bool(version.get(w))).lower()}" for w in ("served", "storage", "deprecated")]
        words.append(f"DeprecationWarning:(*string)({'…' if version.get('deprecationWarning') else 'nil'})")
        for name, (field, kind) in _VERSION_FIELDS.items():
            absent = shared[field] or not version.get(field)
            value = "(nil)" if absent else "{…}"
            words.append(f"{name}:{kind}{value}" if kind.startswith("[]") else f"{name}:({kind}){value}")
        shown.append(f"{package}{{{', '.join(words)}}}")
    return f"[]{package}{{{', '.join(shown)}}}"


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
