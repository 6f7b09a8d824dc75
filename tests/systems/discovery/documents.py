"""What users write, as documents: each valid as it is, with what a test changes merged into its spec."""

from __future__ import annotations

from typing import Any

from trimtab.model.scheme import Untyped

GROUP = "discovery.trimtab.dev"
VERSION = f"{GROUP}/v1alpha1"

SPECS: dict[str, dict[str, Any]] = {
    "DiscoveryRule": {
        "ruleRef": {"group": GROUP, "version": "v1alpha1", "kind": "DiscoveryRuleIPRange", "name": "range"},
        "discoveryProfile": {"credentials": "login", "connectionProfiles": ["gnmi"]},
        "targetConnectionProfiles": [{"connectionProfile": "gnmi", "credentials": "login"}],
    },
    "DiscoveryRuleIPRange": {"prefixes": [{"prefix": "10.1.0.0/24"}]},
    "TargetConnectionProfile": {"protocol": "gnmi"},
    "TargetSyncProfile": {"sync": [{"name": "config", "paths": ["/"]}]},
    "DiscoveryVendorProfile": {"gnmi": {"organization": "Example"}},
    "Target": {"provider": "unknown", "address": "10.1.0.5"},
}


def made(kind: str, name: str, namespace: str, /, **spec: Any) -> Untyped:
    """None takes a field away."""
    fields = {key: value for key, value in {**SPECS.get(kind, {}), **spec}.items() if value is not None}
    metadata = {"name": name, "namespace": namespace}
    return Untyped({"apiVersion": VERSION, "kind": kind, "metadata": metadata, "spec": fields})
