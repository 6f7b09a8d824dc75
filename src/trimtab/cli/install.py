"""`trimtab install`: all that a cluster needs, for `kubectl apply --server-side -f -`.

For each system: its kinds, its account with the least rights, two replicas of its controllers of which one leads, a
Service for its webhooks and metrics, and a budget that keeps one of them up while nodes are drained.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from trimtab import __version__
from trimtab.cli.codes import NOT_FOUND, OK, USAGE, complain
from trimtab.cli.systems import NoSystem, load, scheme_of
from trimtab.model.names import dns_subdomain_problems
from trimtab.model.scheme import Scheme
from trimtab.model.yaml import dump
from trimtab.runtime.prepare import documents
from trimtab.runtime.rights import webhooks_of
from trimtab.runtime.system import NAMESPACE, System

Document = dict[str, Any]

HEALTH, WEBHOOKS = 8081, 9443
SECRETS = (
    "The Secret <system>-env gives variables to the controllers (PGPASSWORD), the Secret <system>-files is mounted at "
    "/etc/trimtab (--option=--nats-credentials-file=/etc/trimtab/nats.creds)"
)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    systems: str = "all"
    operators: tuple[Path, ...] = ()
    image: str = f"trimtab:{__version__}"
    replicas: int = 2
    blobs: str = ""
    nats: str = ""
    hub: str = ""
    """The hub's storage; without it there is no hub, and its kinds are defined as custom resources."""
    suffixes: tuple[str, ...] = ()
    """Under which the hub serves its kinds, beside our own."""
    manage: bool = False
    """Grant the rights to define kinds, too."""
    more: tuple[str, ...] = ()
    """Further options of `trimtab controllers`, as --name=value."""


def install(options: Options) -> int:
    for option, url in (("--blobs", options.blobs), ("--nats", options.nats), ("--hub", options.hub)):
        if "@" in url and ":" in urlsplit(url.partition(",")[0]).netloc.rpartition("@")[0]:
            complain(f"{option} holds a password, and a manifest is no place for one: leave it out. {SECRETS}")
            return USAGE
    if problem := _suffix_problem(options):
        complain(problem)
        return USAGE
    try:
        systems = load(options.systems, options.operators)
    except NoSystem as error:
        complain(str(error))
        return NOT_FOUND
    if not systems:
        complain("there is nothing to install: no system is installed, and no --operator was given")
        return NOT_FOUND
    for system in systems:
        if system.needs_blobs and not options.blobs:
            said = (
                f'warning: the system "{system.name}" does not start without a place for blobs: give --blobs. {SECRETS}'
            )
            print(said, file=sys.stderr)
    sys.stdout.write("---\n".join(dump(document) for document in manifest(systems, scheme_of(systems), options)))
    return OK


def manifest(systems: Sequence[System], scheme: Scheme, options: Options) -> list[Document]:
    """Everything, in the order in which it can be applied."""
    made = documents(systems, scheme, manage=options.manage, hub=bool(options.hub), suffixes=options.suffixes)
    if options.hub:
        made += _hub(systems, options)
    for system in systems:
        made += [_service(system), _budget(system), _deployment(system, options)]
        if system.admissions:
            made += _webhooks(system, scheme)
    return made


def _suffix_problem(options: Options) -> str:
    """Why the suffixes cannot be; "" when they can."""
    if options.suffixes and not options.hub:
        return "--group-suffix is for the kinds that a hub serves: give --hub, too"
    for suffix in options.suffixes:
        if problems := dns_subdomain_problems(suffix):
            return f'--group-suffix: "{suffix}" cannot end the name of a group: {problems[0]}'
    return ""


def _hub(systems: Sequence[System], options: Options) -> list[Document]:
    from trimtab.cli.hub_serving import hub_kinds
    from trimtab.hub.install import Settings
    from trimtab.hub.install import documents as hub

    kinds = hub_kinds(tuple(systems), options.suffixes)
    if not kinds:
        return []
    names = "all" if options.systems == "all" else ",".join(system.name for system in systems if system.hub)
    settings = Settings(
        image=options.image,
        storage=options.hub,
        replicas=options.replicas,
        systems=names,
        suffixes=options.suffixes,
    )
    return hub(kinds, settings)


def _metadata(system: System, name: str) -> Document:
    return {"name": name, "namespace": NAMESPACE, "labels": {**_labels(system), "app.kubernetes.io/part-of": "trimtab"}}


def _labels(system: System) -> dict[str, str]:
    return {"app.kubernetes.io/name": system.name, "app.kubernetes.io/component": "controllers"}


def _service(system: System) -> Document:
    ports = [{"name": "health", "port": HEALTH, "targetPort": "health"}]
    if system.has_webhooks:
        ports.append({"name": "webhooks", "port": 443, "targetPort": "webhooks"})
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(system, system.name),
        "spec": {"selector": _labels(system), "ports": ports},
    }


def _budget(system: System) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(system, system.name),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _labels(system)}},
    }


def _deployment(system: System, options: Options) -> Document:
    arguments = ["controllers", "--data-dir", "/var/lib/trimtab", "--health-host", "0.0.0.0"]  # noqa: S104 - in a pod
    arguments += ["--health-port", str(HEALTH)]
    if system.source:
        arguments += ["--systems", "none", "--operator", system.source]
    else:
        arguments += ["--systems", system.name]
    if system.has_webhooks:
        arguments += ["--webhook-host", "0.0.0.0", "--webhook-port", str(WEBHOOKS)]  # noqa: S104
    for flag, value in (("--blobs", options.blobs), ("--nats", options.nats)):
        arguments += [flag, value] if value else []
    if options.manage and system.managed_rules:
        arguments.append("--manage-crds")
    arguments += options.more
    ports = [{"name": "health", "containerPort": HEALTH}]
    ports += [{"name": "webhooks", "containerPort": WEBHOOKS}] if system.has_webhooks else []
    container = {
        "name": "controllers",
        "image": options.image,
        "command": ["trimtab"],
        "args": arguments,
        "ports": ports,
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "envFrom": [{"secretRef": {"name": f"{system.name}-env", "optional": True}}],
        "volumeMounts": [
            {"name": "scratch", "mountPath": "/var/lib/trimtab"},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
            {"name": "files", "mountPath": "/etc/trimtab", "readOnly": True},
        ],
    }
    pod = {
        "serviceAccountName": system.name,
        "terminationGracePeriodSeconds": 60,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": _labels(system)},
            }
        ],
        "containers": [container],
        "volumes": [
            {"name": "scratch", "emptyDir": {"sizeLimit": "24Gi"}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}},
            {"name": "files", "secret": {"secretName": f"{system.name}-files", "optional": True}},
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(system, system.name),
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": _labels(system)},
            "template": {"metadata": {"labels": _labels(system)}, "spec": pod},
        },
    }


def _webhooks(system: System, scheme: Scheme) -> list[Document]:
    from trimtab.runtime.webhooks import Service, configurations

    at = Service(namespace=NAMESPACE, name=system.name)
    return configurations(system.admissions, name=webhooks_of(system), at=at, scheme=scheme)
