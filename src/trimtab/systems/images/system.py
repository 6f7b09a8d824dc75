"""Image discovery as a system: its kinds, its controllers, and what they may do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trimtab.model.kubernetes import ConfigMap, Secret
from trimtab.runtime import Context, Controller, Rule, System
from trimtab.systems.images.admission import ADMISSIONS
from trimtab.systems.images.job_controller import JobController
from trimtab.systems.images.kinds import SBOM, DiscoveryJob, Image, Registry, VEXSource, VulnerabilityReport
from trimtab.systems.images.registry_controller import RegistryController
from trimtab.systems.images.sbom_controller import SbomController
from trimtab.systems.images.vex_controller import VexController


def _controllers(context: Context) -> Iterable[Controller[Any]]:
    return (RegistryController(context), JobController(context), SbomController(context), VexController(context))


SYSTEM = System(
    name="images",
    kinds=(Registry, DiscoveryJob, Image, SBOM, VulnerabilityReport, VEXSource),
    reconciles=(RegistryController, JobController, SbomController, VexController),
    controllers=_controllers,
    rules=(
        Rule(kinds=(DiscoveryJob,), verbs=("create", "delete")),
        Rule(kinds=(Image,), verbs=("create", "patch", "delete")),
        Rule(kinds=(SBOM,), verbs=("create",)),
        Rule(kinds=("images.images.trimtab.dev/status",), verbs=("patch",)),
        Rule(
            kinds=("registries.images.trimtab.dev/finalizers", "images.images.trimtab.dev/finalizers"),
            verbs=("update",),
        ),
        Rule(kinds=(Secret,), verbs=("get", "list", "watch")),
        Rule(kinds=(ConfigMap,), verbs=("get",)),
    ),
    admissions=ADMISSIONS,
    needs_blobs=True,
)
