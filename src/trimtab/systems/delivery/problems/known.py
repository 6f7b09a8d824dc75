"""The shapes of a Deployment's spec (apps/v1) and of a Service's (v1)."""

from __future__ import annotations

from trimtab.systems.delivery.problems.shapes import (
    Amount,
    Each,
    Fields,
    Flag,
    Free,
    Shape,
    Table,
    Text,
    Whole,
    WholeOrText,
)

TEXTS = Each(Text())
WORDS = Table(Text())
OBJECT = Fields()
PROTOCOL = Text(among=("TCP", "UDP", "SCTP"))

_HTTP_GET = Fields(
    {
        "path": Text(),
        "port": WholeOrText(required=True),
        "host": Text(),
        "scheme": Text(),
        "httpHeaders": Each(Fields({"name": Text(required=True), "value": Text()})),
    }
)
_EXEC = Fields({"command": TEXTS})
_PROBE = Fields(
    {
        "exec": _EXEC,
        "httpGet": _HTTP_GET,
        "tcpSocket": Fields({"port": WholeOrText(required=True), "host": Text()}),
        "grpc": Fields({"port": Whole(1, 65535, required=True), "service": Text()}),
        "initialDelaySeconds": Whole(),
        "timeoutSeconds": Whole(),
        "periodSeconds": Whole(),
        "successThreshold": Whole(),
        "failureThreshold": Whole(),
        "terminationGracePeriodSeconds": Whole(1),
    },
    whole=True,
)
_HANDLER = Fields({"exec": _EXEC, "httpGet": _HTTP_GET})
_NAMED = Fields({"name": Text(), "key": Text(), "optional": Flag()})
_CONTAINER = Fields(
    {
        "name": Text(required=True),
        "image": Text(),
        "command": TEXTS,
        "args": TEXTS,
        "workingDir": Text(),
        "ports": Each(
            Fields(
                {
                    "containerPort": Whole(1, 65535, required=True),
                    "name": Text(),
                    "protocol": PROTOCOL,
                    "hostPort": Whole(0, 65535),
                    "hostIP": Text(),
                },
                whole=True,
            )
        ),
        "envFrom": Each(Fields({"configMapRef": _NAMED, "secretRef": _NAMED, "prefix": Text()})),
        "env": Each(
            Fields(
                {
                    "name": Text(required=True),
                    "value": Text(),
                    "valueFrom": Fields(
                        {
                            "configMapKeyRef": _NAMED,
                            "secretKeyRef": _NAMED,
                            "fieldRef": Fields({"fieldPath": Text(required=True)}),
                            "resourceFieldRef": OBJECT,
                        }
                    ),
                }
            )
        ),
        "resources": Fields({"limits": Table(Amount()), "requests": Table(Amount()), "claims": Each(OBJECT)}),
        "volumeMounts": Each(
            Fields(
                {
                    "name": Text(required=True),
                    "mountPath": Text(required=True),
                    "subPath": Text(),
                    "readOnly": Flag(),
                }
            )
        ),
        "volumeDevices": Each(OBJECT),
        "livenessProbe": _PROBE,
        "readinessProbe": _PROBE,
        "startupProbe": _PROBE,
        "lifecycle": Fields({"postStart": _HANDLER, "preStop": _HANDLER}),
        "terminationMessagePath": Text(),
        "terminationMessagePolicy": Text(among=("File", "FallbackToLogsOnError")),
        "imagePullPolicy": Text(among=("Always", "IfNotPresent", "Never")),
        "securityContext": OBJECT,
        "stdin": Flag(),
        "stdinOnce": Flag(),
        "tty": Flag(),
        "resizePolicy": Each(OBJECT),
        "restartPolicy": Text(),
        "restartPolicyRules": Each(OBJECT),
    },
    whole=True,
)
_POD = Fields(
    {
        "containers": Each(_CONTAINER),
        "initContainers": Each(_CONTAINER),
        "volumes": Each(Fields({"name": Text(required=True)})),
        "restartPolicy": Text(),
        "terminationGracePeriodSeconds": Whole(),
        "nodeSelector": WORDS,
        "serviceAccountName": Text(),
        "automountServiceAccountToken": Flag(),
        "nodeName": Text(),
        "hostNetwork": Flag(),
        "hostPID": Flag(),
        "hostIPC": Flag(),
        "shareProcessNamespace": Flag(),
        "securityContext": OBJECT,
        "imagePullSecrets": Each(Fields({"name": Text()})),
        "affinity": OBJECT,
        "tolerations": Each(OBJECT),
        "hostAliases": Each(OBJECT),
        "priorityClassName": Text(),
        "priority": Whole(-(2**31)),
        "dnsPolicy": Text(among=("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")),
        "dnsConfig": OBJECT,
        "readinessGates": Each(OBJECT),
        "runtimeClassName": Text(),
        "enableServiceLinks": Flag(),
        "topologySpreadConstraints": Each(OBJECT),
        "overhead": Table(Amount()),
    }
)
DEPLOYMENT: Shape = Fields(
    {
        "replicas": Whole(),
        "selector": Free(),  # see `workload`
        "template": Fields(
            {"metadata": Fields({"labels": WORDS, "annotations": WORDS, "name": Text()}), "spec": _POD}, whole=True
        ),
        "strategy": Fields(
            {
                "type": Text(among=("RollingUpdate", "Recreate")),
                "rollingUpdate": Fields({"maxSurge": WholeOrText(), "maxUnavailable": WholeOrText()}, whole=True),
            },
            whole=True,
        ),
        "minReadySeconds": Whole(),
        "revisionHistoryLimit": Whole(),
        "paused": Flag(),
        "progressDeadlineSeconds": Whole(),
    },
    whole=True,
)
SERVICE: Shape = Fields(
    {
        "ports": Each(
            Fields(
                {
                    "port": Whole(1, 65535, required=True),
                    "targetPort": WholeOrText(),
                    "name": Text(),
                    "protocol": PROTOCOL,
                    "appProtocol": Text(),
                    "nodePort": Whole(0, 65535),
                },
                whole=True,
            )
        ),
        "selector": WORDS,
        "type": Text(among=("ClusterIP", "NodePort", "LoadBalancer")),
        "clusterIP": Text(),
        "clusterIPs": TEXTS,
        "externalIPs": TEXTS,
        "externalName": Text(),
        "sessionAffinity": Text(among=("ClientIP", "None")),
        "sessionAffinityConfig": OBJECT,
        "loadBalancerIP": Text(),
        "loadBalancerSourceRanges": TEXTS,
        "loadBalancerClass": Text(),
        "allocateLoadBalancerNodePorts": Flag(),
        "externalTrafficPolicy": Text(among=("Cluster", "Local")),
        "internalTrafficPolicy": Text(among=("Cluster", "Local")),
        "healthCheckNodePort": Whole(0, 65535),
        "publishNotReadyAddresses": Flag(),
        "ipFamilies": Each(Text(among=("IPv4", "IPv6"))),
        "ipFamilyPolicy": Text(),
        "trafficDistribution": Text(),
    },
    whole=True,
)
