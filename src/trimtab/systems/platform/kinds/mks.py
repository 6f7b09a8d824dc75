"""A cluster on machines of one's own, as its provider's specification has it. Names are kept; a provisioner acts on it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.markers import Keyed, Sensitive, Unordered
from trimtab.model.resource import Spec
from trimtab.systems.platform.kinds.fields import Text

Arguments = Annotated[dict[str, Text], Meta(max_length=256)]
Long = Annotated[str, Meta(max_length=65536)]
Secret = Annotated[str, Sensitive(), Meta(max_length=4096)]


class UpgradeParams(Spec):
    """How many of them at a time."""

    worker_concurrency: Annotated[Text, Meta(description="A number, or a percentage.")]


class KubernetesUpgrade(Spec):
    """How worker nodes are upgraded."""

    params: UpgradeParams
    strategy: Annotated[Literal["concurrent", "sequential"], Meta(description="Several at a time, or one by one.")]


class ComponentOverrides(Spec):
    """One component of the control plane."""

    extra_args: Annotated[Arguments, Meta(description="Further arguments of its program.")] | UnsetType = UNSET
    extra_volumes: Annotated[Long, Meta(description="Further volumes of its pod, as YAML.")] | UnsetType = UNSET
    extra_volume_mounts: Annotated[Long, Meta(description="Where they are mounted, as YAML.")] | UnsetType = UNSET


class ControlPlaneOverrides(Spec):
    """What differs from the provider's own settings in the control plane."""

    kube_apiserver: Annotated[ComponentOverrides, Meta(description="The API server.")] | UnsetType = UNSET
    kube_controller_manager: Annotated[ComponentOverrides, Meta(description="The controllers.")] | UnsetType = UNSET
    kube_scheduler: Annotated[ComponentOverrides, Meta(description="The scheduler.")] | UnsetType = UNSET


class Cni(Spec):
    """The plugin that connects pods."""

    name: Annotated[Text, Meta(description="Such as Calico or Cilium.")]
    version: Annotated[Text, Meta(description="Such as 3.26.1.")] | UnsetType = UNSET


PodSubnet = Annotated[Text, Meta(description="Where pods have their addresses: 10.244.0.0/16.")]
ServiceSubnet = Annotated[Text, Meta(description="Where services have their addresses: 10.96.0.0/12.")]


class Ipv6(Spec):
    """The second family of addresses, for a cluster with both."""

    pod_subnet: Annotated[Text, Meta(description="Where pods have their IPv6 addresses.")] | UnsetType = UNSET
    service_subnet: Annotated[Text, Meta(description="Where services have their IPv6 addresses.")] | UnsetType = UNSET


class Network(Spec):
    """Addresses, names and the plugin that connects pods."""

    cni: Cni
    ipv6: Ipv6 | UnsetType = UNSET
    pod_subnet: PodSubnet
    service_subnet: ServiceSubnet
    nameservers: Annotated[Arguments, Meta(description="DNS servers that nodes ask.")] | UnsetType = UNSET


Passphrase = Annotated[Secret, Meta(description="Of the private key.")]
Port = Annotated[Text, Meta(description="That sshd listens on.")]
KeyPath = Annotated[Text, Meta(description="Where the provisioner finds the private key.")]
Username = Annotated[Text, Meta(description="Who logs in.")]


class ClusterSsh(Spec):
    """How to log in to nodes that do not say themselves."""

    passphrase: Passphrase | UnsetType = UNSET
    port: Port | UnsetType = UNSET
    private_key_path: KeyPath | UnsetType = UNSET
    username: Username | UnsetType = UNSET


class NodeSsh(Spec):
    """How to log in to one node."""

    ip_address: Annotated[Text, Meta(description="Where it is reached, if not by privateIp.")] | UnsetType = UNSET
    passphrase: Passphrase | UnsetType = UNSET
    port: Port | UnsetType = UNSET
    private_key_path: KeyPath | UnsetType = UNSET
    username: Username | UnsetType = UNSET


class Taint(Spec):
    """Keeps pods away that do not tolerate it."""

    effect: Annotated[Text, Meta(description="NoSchedule, PreferNoSchedule or NoExecute.")]
    key: Annotated[Text, Meta(description="What tolerations name.")]
    value: Annotated[Text, Meta(description="What goes with the key.")] | UnsetType = UNSET


class Node(Spec):
    """One machine."""

    arch: Annotated[Text, Meta(description="Of its processor: amd64, arm64.")]
    hostname: Annotated[Text, Meta(description="What the machine calls itself.")]
    interface: Annotated[Text, Meta(description="The network interface that the cluster uses.")] | UnsetType = UNSET
    labels: Annotated[Arguments, Meta(description="That the node gets.")] | UnsetType = UNSET
    annotations: Annotated[Arguments, Meta(description="That the node gets.")] | UnsetType = UNSET
    kubelet_extra_args: Annotated[Arguments, Meta(description="Further arguments of its kubelet.")] | UnsetType = UNSET
    kubelet_configuration_overrides: (
        Annotated[Long, Meta(description="What differs in its KubeletConfiguration.")] | UnsetType
    ) = UNSET
    operating_system: Annotated[Text, Meta(description="With its version, as the provider names it.")]
    private_ip: Annotated[Text, Meta(description="Its address in the cluster's network.")]
    roles: Annotated[
        tuple[Literal["ControlPlane", "Worker", "Storage"], ...],
        Unordered(),
        Meta(min_length=1, max_length=3, description="What it does in the cluster."),
    ]
    ssh: NodeSsh | UnsetType = UNSET
    taints: (
        Annotated[tuple[Taint, ...], Keyed("key", "effect"), Meta(max_length=64, description="That the node gets.")]
        | UnsetType
    ) = UNSET


class MksConfig(Spec):
    """A Kubernetes that is installed on given machines."""

    auto_approve_nodes: (
        Annotated[bool, Meta(description="Machines that announce themselves join without being asked for.")] | UnsetType
    ) = UNSET
    dedicated_control_plane: (
        Annotated[bool, Meta(description="No workloads on nodes of the control plane.")] | UnsetType
    ) = UNSET
    high_availability: Annotated[bool, Meta(description="Needs three nodes of the control plane.")] | UnsetType = UNSET
    kubernetes_upgrade: KubernetesUpgrade | UnsetType = UNSET
    kubernetes_version: Annotated[Text, Meta(description="Of the control plane, such as v1.31.4.")]
    installer_ttl: Annotated[int, Meta(ge=0, description="How long the provider's installer may be used.")] = 365
    platform_version: Annotated[Text, Meta(description="Of the provider's own parts.")] | UnsetType = UNSET
    kubelet_extra_args: Annotated[Arguments, Meta(description="Further arguments of every kubelet.")] | UnsetType = (
        UNSET
    )
    kubelet_configuration_overrides: (
        Annotated[Long, Meta(description="What differs in every KubeletConfiguration.")] | UnsetType
    ) = UNSET
    control_plane_overrides: ControlPlaneOverrides | UnsetType = UNSET
    location: Annotated[Text, Meta(description="The data centre that the machines are in.")] | UnsetType = UNSET
    network: Network
    nodes: Annotated[
        dict[str, Node], Meta(min_length=1, max_length=1000, description="The machines, by names of your own.")
    ]
    cluster_ssh: ClusterSsh | UnsetType = UNSET
