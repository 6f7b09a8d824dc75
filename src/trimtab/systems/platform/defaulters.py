"""What a document gets that its author left out, in place. Twice is once; nothing that was said is changed but the order
and the duplicates of sharing. What is no document of the right shape is left for validation to judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.systems.platform.kinds.fields import LATEST
from trimtab.systems.platform.sharing import canonical

Document = dict[str, Any]


def project(document: Document) -> None:
    spec = _spec(document)
    if spec is not None:
        spec.setdefault("adopt", False)
        spec.setdefault("deletion", "Refuse")


def addon(document: Document) -> None:
    _complete(document, _artifact)


def workload(document: Document) -> None:
    _complete(document, _artifact, _drift)


def blueprint(document: Document) -> None:
    def versions(spec: Document) -> None:
        for entry in (spec.get("base"), *_listed(spec.get("addons"))):
            if isinstance(entry, dict):
                entry.setdefault("version", LATEST)

    _complete(document, versions)


def cluster(document: Document) -> None:
    def filled(spec: Document) -> None:
        if isinstance(chosen := spec.get("blueprint"), dict):
            chosen.setdefault("version", LATEST)
        spec.setdefault("probeInterval", "30s")
        config = _mapping(spec.get("config"))
        if isinstance(imported := config.get("imported"), dict):
            reference = imported.get("kubeconfigSecretRef")
            if isinstance(reference, dict):
                reference.setdefault("key", "kubeconfig")
        if isinstance(mks := config.get("mks"), dict):
            mks.setdefault("installerTtl", 365)

    _complete(document, filled)


def _complete(document: Document, *fill: Callable[[Document], None]) -> None:
    spec = _spec(document)
    if spec is None:
        return
    for each in fill:
        each(spec)
    metadata = _mapping(document.get("metadata"))
    sharing = spec.get("sharing")
    if _is_sound(sharing):
        spec["sharing"] = canonical(sharing, str(metadata.get("project") or metadata.get("namespace") or ""))


def _is_sound(sharing: Any) -> bool:
    """Whether `canonical` loses nothing that validation must see: a mixed `*`, nobody at all, other shapes."""
    if sharing is None:
        return True
    if not isinstance(sharing, dict) or not sharing.keys() <= {"enabled", "projects"}:
        return False
    projects = sharing.get("projects") or []
    if not isinstance(sharing.get("enabled", False), bool) or not isinstance(projects, list):
        return False
    if not all(
        isinstance(p, dict) and set(p) == {"name"} and isinstance(p["name"], str) and p["name"] for p in projects
    ):
        return False
    if not sharing.get("enabled"):
        return True
    names = {p["name"] for p in projects}
    return bool(names) and ("*" not in names or names == {"*"})


def _artifact(spec: Document) -> None:
    artifact = spec.get("artifact")
    if isinstance(artifact, dict) and isinstance(source := artifact.get("yamlInRepo"), dict):
        source.setdefault("revision", "HEAD")


def _drift(spec: Document) -> None:
    drift = spec.setdefault("drift", {})
    if isinstance(drift, dict):
        drift.setdefault("action", "Correct")
        drift.setdefault("interval", "1m")


def _spec(document: Document) -> Document | None:
    spec = document.setdefault("spec", {})
    return spec if isinstance(spec, dict) else None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Document:
    return value if isinstance(value, dict) else {}
