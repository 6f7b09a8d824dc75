"""The kinds of this system, and of what the hub needs to serve them."""

from trimtab.systems.platform.kinds.addon import Addon, AddonSpec
from trimtab.systems.platform.kinds.artifact import Artifact
from trimtab.systems.platform.kinds.blueprint import Blueprint, BlueprintAddon, BlueprintSpec
from trimtab.systems.platform.kinds.cluster import Cluster, ClusterSpec, ClusterStatus, KubeconfigSecret
from trimtab.systems.platform.kinds.fields import LATEST, Part
from trimtab.systems.platform.kinds.project import Project, ProjectSpec, ProjectStatus
from trimtab.systems.platform.kinds.workload import Workload, WorkloadSpec, WorkloadStatus

__all__ = [
    "LATEST",
    "Addon",
    "AddonSpec",
    "Artifact",
    "Blueprint",
    "BlueprintAddon",
    "BlueprintSpec",
    "Cluster",
    "ClusterSpec",
    "ClusterStatus",
    "KubeconfigSecret",
    "Part",
    "Project",
    "ProjectSpec",
    "ProjectStatus",
    "Workload",
    "WorkloadSpec",
    "WorkloadStatus",
]
