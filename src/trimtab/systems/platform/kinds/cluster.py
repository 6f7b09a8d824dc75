"""A cluster: where it is or how it is made, and the blueprint that it follows."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.duration import Duration
from trimtab.model.hub import HubResource
from trimtab.model.kind import Column
from trimtab.model.markers import Keyed, OneOf, Ref, Sensitive
from trimtab.model.resource import Spec
from trimtab.systems.platform.kinds.fields import LATEST, Generation, Open, Part, Referred, Shared, Text, Wanted
from trimtab.systems.platform.kinds.mks import Arguments, MksConfig


class ClusterBlueprint(Spec):
    """What it follows."""

    name: Annotated[Referred, Ref("Blueprint"), Meta(description="A Blueprint.")]
    version: Wanted = LATEST


class KubeconfigSecret(Spec):
    """A key of a Secret in the project's namespace."""

    name: Annotated[str, Meta(min_length=1, max_length=253, description="Of the Secret.")]
    key: Annotated[str, Meta(min_length=1, max_length=253, description="In it.")] = "kubeconfig"


class ImportedConfig(Spec):
    """A cluster that exists. Its kubeconfig must hold all that it needs: it may name neither files nor programs."""

    kubeconfig_secret_ref: KubeconfigSecret
    context: Annotated[Text, Meta(description="Of the kubeconfig; the current one when not set.")] | UnsetType = UNSET


class ClusterConfig(Spec, one_of=OneOf("imported", "mks", "eks", "aks", "gke")):
    """Where it comes from. Exactly one."""

    imported: ImportedConfig | UnsetType = UNSET
    mks: MksConfig | UnsetType = UNSET
    eks: Annotated[Open, Meta(description="A cluster of Amazon: data of its provisioner.")] | UnsetType = UNSET
    aks: Annotated[Open, Meta(description="A cluster of Azure: data of its provisioner.")] | UnsetType = UNSET
    gke: Annotated[Open, Meta(description="A cluster of Google: data of its provisioner.")] | UnsetType = UNSET

    def flavour(self) -> str:
        """Which of them it is; "" for none."""
        return next((name for name in ("imported", "mks", "eks", "aks", "gke") if getattr(self, name) is not UNSET), "")


class Proxy(Spec):
    """How the cluster's machines reach the world."""

    allow_insecure_bootstrap: (
        Annotated[bool, Meta(description="Trust whoever answers, until the first contact is made.")] | UnsetType
    ) = UNSET
    bootstrap_ca: (
        Annotated[str, Meta(max_length=65536, description="Who signed the proxy's certificate, in PEM.")] | UnsetType
    ) = UNSET
    enabled: Annotated[bool, Meta(description="Whether it is used at all.")]
    http_proxy: Annotated[Text, Meta(description="For plain HTTP: http://proxy.example.com:3128.")]
    https_proxy: Annotated[Text, Meta(description="For HTTPS.")] | UnsetType = UNSET
    no_proxy: (
        Annotated[str, Meta(max_length=8192, description="Hosts and networks that are reached without it, by commas.")]
        | UnsetType
    ) = UNSET
    proxy_auth: (
        Annotated[str, Sensitive(), Meta(max_length=4096, description="What the proxy asks for: user:password.")]
        | UnsetType
    ) = UNSET


class Toleration(Spec):
    """A taint that does not keep them away."""

    effect: Annotated[Text, Meta(description="Of the taint; empty for all.")] = ""
    key: Annotated[Text, Meta(description="Of the taint; empty for all.")] = ""
    operator: Annotated[Text, Meta(description="Equal, or Exists for any value.")] | UnsetType = UNSET
    toleration_seconds: (
        Annotated[int, Meta(description="How long NoExecute is tolerated; for ever when not set.")] | UnsetType
    ) = UNSET
    value: Annotated[Text, Meta(description="Of the taint.")] | UnsetType = UNSET


Tolerations = Annotated[tuple[Toleration, ...], Meta(max_length=64, description="Taints that do not keep them away.")]


class DaemonSetOverride(Spec):
    """The same for those that run on every node."""

    node_selection_enabled: (
        Annotated[bool, Meta(description="Whether nodeSelector holds for them, too.")] | UnsetType
    ) = UNSET
    daemon_set_tolerations: Tolerations | UnsetType = UNSET


class Placement(Spec):
    """On which nodes the platform's own components run."""

    daemon_set_override: DaemonSetOverride | UnsetType = UNSET
    node_selector: Annotated[Arguments, Meta(description="Labels that a node must have.")] | UnsetType = UNSET
    tolerations: Tolerations | UnsetType = UNSET


class ClusterSpec(Spec):
    """Where it is or how it is made, and what it follows."""

    blueprint: ClusterBlueprint | UnsetType = UNSET
    cloud_credentials: Annotated[Text, Meta(description="For the provisioner, by name.")] | UnsetType = UNSET
    config: ClusterConfig
    probe_interval: Annotated[Duration, Meta(description="How often its health is looked at.")] = Duration("30s")
    proxy: Proxy | UnsetType = UNSET
    system_components_placement: Placement | UnsetType = UNSET
    sharing: Shared | UnsetType = UNSET


class AppliedBlueprint(Spec):
    """Which blueprint it was, with its version resolved."""

    name: Annotated[str, Meta(description="Of the Blueprint.")]
    project: Annotated[str, Meta(description="Where it lives, when it is another project's.")] | UnsetType = UNSET
    version: Annotated[str, Meta(description="None for a draft.")] | UnsetType = UNSET


class ClusterStatus(Spec):
    """How it does, and what it has."""

    observed_generation: Generation | UnsetType = UNSET
    phase: Annotated[str, Meta(description="How far it has come, in one word.")] | UnsetType = UNSET
    version: Annotated[str, Meta(description="Of its Kubernetes.")] | UnsetType = UNSET
    cluster_uid: Annotated[str, Meta(description="The uid of its kube-system namespace.")] | UnsetType = UNSET
    blueprint: AppliedBlueprint | UnsetType = UNSET
    addons: (
        Annotated[tuple[Part, ...], Keyed("name"), Meta(max_length=1024, description="How each of them does.")]
        | UnsetType
    ) = UNSET
    kubeconfig_secret_ref: Annotated[KubeconfigSecret, Meta(description="That a provisioner wrote.")] | UnsetType = (
        UNSET
    )
    provisioner: Annotated[Open, Meta(description="What the provisioner keeps and tells.")] | UnsetType = UNSET
    conditions: Conditions | UnsetType = UNSET


class Cluster(
    HubResource,
    group="infra",
    version="v3",
    plural="clusters",
    categories=("trimtab", "terraform-branches"),  # trimtab_mks_cluster and its like
    columns=(
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
        Column("Version", ".status.version"),
        Column("Blueprint", ".status.blueprint.name"),
        Column("Age", ".metadata.creationTimestamp", "date"),
        Column("Message", ".status.conditions[?(@.type=='Ready')].message", priority=1),
    ),
):
    """A Kubernetes that workloads are placed on."""

    spec: ClusterSpec
    status: ClusterStatus | UnsetType = UNSET

    def trigger_internal(self) -> None:
        """Changes start a sync to Git."""
