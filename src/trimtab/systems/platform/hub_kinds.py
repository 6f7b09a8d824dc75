"""The kinds as the hub serves them: each with its convertor and its defaulter."""

from __future__ import annotations

from trimtab.model.hub import HubKind
from trimtab.systems.platform import defaulters
from trimtab.systems.platform.convertors import StoredConvertor
from trimtab.systems.platform.kinds import Addon, Blueprint, Cluster, Project, Workload

HUB_KINDS = (
    HubKind(cls=Project, convertor=StoredConvertor(Project, shared=False), defaulter=defaulters.project),
    HubKind(cls=Addon, convertor=StoredConvertor(Addon, versioned=True), defaulter=defaulters.addon),
    HubKind(cls=Blueprint, convertor=StoredConvertor(Blueprint, versioned=True), defaulter=defaulters.blueprint),
    HubKind(cls=Cluster, convertor=StoredConvertor(Cluster), defaulter=defaulters.cluster),
    HubKind(cls=Workload, convertor=StoredConvertor(Workload, versioned=True), defaulter=defaulters.workload),
)
