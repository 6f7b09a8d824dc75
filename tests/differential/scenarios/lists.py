"""Lists: selectors, pages, revisions and the other forms."""

from ..exchange import Request
from ..kinds import (
    CONFIGMAPS,
    DEPLOYMENTS,
    LEASES,
    ROLES,
    SECRETS,
    WIDGETS,
    configmap,
    deployment,
    lease,
    role,
    secret,
    widget,
)
from ..verbs import METADATA, METADATA_LIST, TABLE, YAML, delete, get, post, put

_LABELS = ({"app": "a", "tier": "front"}, {"app": "b", "tier": "front"}, {"app": "c"}, {}, {"app": "", "x": "y"})
_FIVE = [post(SECRETS, secret(f"s-{index}", metadata={"labels": labels})) for index, labels in enumerate(_LABELS)]
_WIDGETS = [
    post(
        WIDGETS,
        widget(f"w-{index}", {"size": size, "color": color} if color else {"size": size}, metadata={"labels": labels}),
    )
    for index, (size, color, labels) in enumerate(
        zip(("small", "medium", "small", "large", "medium"), ("red", "", "blue", "red", "red"), _LABELS, strict=True)
    )
]
_SELECTORS = (
    "app",
    "!app",
    "app=a",
    "app==a",
    "app!=a",
    "app%20in%20(a,b)",
    "app%20notin%20(a,b)",
    "app=,x",
    "app%20in%20(,a)",
    "tier,app!=b",
    "app=a,app=b",
    "x>1",
    "app<5",
    "",
    ",",
    "app=a,",
    "=a",
    "app=not%20ok",
    "app=a!",
    "-bad=x",
    "app in (a",
    "app%20in%20a",
    "app%20in%20()",
    "a/b/c=d",
    "app=" + "x" * 64,
)
_FIELDS = (
    "metadata.name=w-1",
    "metadata.name!=w-1",
    "metadata.namespace=$ns",
    "metadata.namespace=other",
    "metadata.name=w-1,metadata.namespace=$ns",
    "metadata.uid=x",
    "spec.nothing=1",
    "metadata.name",
    "=x",
    "metadata.name=",
    "spec.size=small",
    "spec.size!=small",
    "spec.color=red",
    "spec.color=",
    "spec.color!=",
    "spec.color=red,spec.size=medium",
    "spec.replicas=1",
    "status.phase=Running",
)
_REVISIONS = (
    "resourceVersion=0",
    "resourceVersion=$rv:1",
    "resourceVersion=$rv:4&resourceVersionMatch=NotOlderThan",
    "resourceVersion=$rv:1&resourceVersionMatch=Exact",
    "resourceVersion=0&resourceVersionMatch=Exact",
    "resourceVersion=0&resourceVersionMatch=NotOlderThan",
    "resourceVersionMatch=Exact",
    "resourceVersionMatch=NotOlderThan",
    "resourceVersion=1&resourceVersionMatch=Odd",
    "resourceVersion=abc",
    "resourceVersion=-1",
    "resourceVersion=0&limit=2",
    "resourceVersion=$rv:2&limit=2",
    "resourceVersion=$rv:2&limit=2&resourceVersionMatch=Exact",
    "sendInitialEvents=true",
    "sendInitialEvents=false",
    "allowWatchBookmarks=true",
    "timeoutSeconds=5",
    "timeoutSeconds=x",
    "limit=x",
    "limit=-1",
    "limit=0",
    "limit=99999999999999999999",
    "watch=false",
    "nothing=1",
    "continue=nonsense",
    "continue=e30",
    "continue=nonsense&resourceVersion=0",
    "labelSelector=app&labelSelector=tier",
)

SCENARIOS: dict[str, list[Request]] = {
    "nothing": [get(SECRETS), get(WIDGETS), get(DEPLOYMENTS)],
    "everything, in the order of names": [*_FIVE, get(SECRETS)],
    **{
        f"label selector {selector!r}": [*_FIVE, get(f"{SECRETS}?labelSelector={selector}".replace(" ", "%20"))]
        for selector in _SELECTORS
    },
    **{
        f"label selector {selector!r} for widgets": [
            *_WIDGETS,
            get(f"{WIDGETS}?labelSelector={selector}".replace(" ", "%20")),
        ]
        for selector in _SELECTORS[:10]
    },
    **{
        f"field selector {selector!r} for widgets": [*_WIDGETS, get(f"{WIDGETS}?fieldSelector={selector}")]
        for selector in _FIELDS
    },
    **{
        f"field selector {selector!r} for config maps": [
            post(CONFIGMAPS, configmap("w-1")),
            get(f"{CONFIGMAPS}?fieldSelector={selector}"),
        ]
        for selector in _FIELDS[:10]
    },
    "field selectors of secrets": [
        post(SECRETS, secret("o")),
        post(SECRETS, secret("b", type="kubernetes.io/basic-auth", stringData={"username": "u"})),
        get(f"{SECRETS}?fieldSelector=type=Opaque"),
        get(f"{SECRETS}?fieldSelector=type!=Opaque"),
    ],
    "field selector of namespaces": [
        get("/api/v1/namespaces?fieldSelector=metadata.name=$ns"),
        get("/api/v1/namespaces?fieldSelector=status.phase=Active,metadata.name=$ns"),
    ],
    "both selectors": [*_WIDGETS, get(f"{WIDGETS}?labelSelector=tier=front&fieldSelector=spec.size=small")],
    "pages": [
        *_FIVE,
        get(f"{SECRETS}?limit=2"),
        get(f"{SECRETS}?limit=2&continue=$continue:5"),
        get(f"{SECRETS}?limit=2&continue=$continue:6"),
    ],
    "pages that end exactly": [
        *_FIVE,
        get(f"{SECRETS}?limit=5"),
        get(f"{SECRETS}?limit=4"),
        get(f"{SECRETS}?limit=1&continue=$continue:6"),
    ],
    "pages show one revision": [
        *_FIVE,
        get(f"{SECRETS}?limit=2"),
        delete(f"{SECRETS}/s-3"),
        post(SECRETS, secret("s-25")),
        put(f"{SECRETS}/s-4", secret("s-4", data={"k": "dg=="})),
        get(f"{SECRETS}?limit=2&continue=$continue:5"),
        get(f"{SECRETS}?continue=$continue:9"),
    ],
    "pages with a selector": [
        *_FIVE,
        get(f"{SECRETS}?limit=1&labelSelector=app"),
        get(f"{SECRETS}?limit=1&labelSelector=app&continue=$continue:5"),
        get(f"{SECRETS}?limit=9&labelSelector=app&continue=$continue:6"),
    ],
    "pages of widgets by a field": [
        *_WIDGETS,
        get(f"{WIDGETS}?limit=1&fieldSelector=spec.color=red"),
        get(f"{WIDGETS}?limit=1&fieldSelector=spec.color=red&continue=$continue:5"),
        get(f"{WIDGETS}?limit=1&fieldSelector=spec.color=red&continue=$continue:6"),
    ],
    "a token with a revision": [
        *_FIVE,
        get(f"{SECRETS}?limit=2"),
        get(f"{SECRETS}?limit=2&continue=$continue:5&resourceVersion=$rv:5"),
    ],
    "a token of another kind": [*_FIVE, get(f"{SECRETS}?limit=2"), get(f"{CONFIGMAPS}?limit=2&continue=$continue:5")],
    **{f"with {query}": [*_FIVE, get(f"{SECRETS}?{query}")] for query in _REVISIONS},
    **{f"widgets with {query}": [*_WIDGETS, get(f"{WIDGETS}?{query}")] for query in _REVISIONS},
    "read at a revision": [
        post(SECRETS, secret()),
        get(f"{SECRETS}/a?resourceVersion=0"),
        get(f"{SECRETS}/a?resourceVersion=$rv:0"),
        get(f"{SECRETS}/a?resourceVersion=abc"),
        get(f"{SECRETS}/a?resourceVersion=1&resourceVersionMatch=Exact"),
    ],
    "revisions in the future": [get(f"{SECRETS}?resourceVersion=999999999999&resourceVersionMatch=Exact")],
    **{
        f"as a table: {name}": [
            *requests,
            get(path, accept=TABLE),
            get(f"{path}?includeObject=Object&limit=1", accept=TABLE),
        ]
        for name, path, requests in (
            ("config maps", CONFIGMAPS, [post(CONFIGMAPS, configmap(data={"a": "1", "b": "2"}))]),
            ("secrets", SECRETS, _FIVE[:2]),
            ("leases", LEASES, [post(LEASES, lease(spec={"holderIdentity": "me"}))]),
            ("roles", ROLES, [post(ROLES, role())]),
            ("deployments", DEPLOYMENTS, [post(DEPLOYMENTS, deployment())]),
            ("widgets", WIDGETS, _WIDGETS),
            (
                "widgets with all columns",
                WIDGETS,
                [
                    post(WIDGETS, widget(spec={"tags": ["x", "y"], "on": True, "when": "2020-01-01T00:00:00Z"})),
                    put(
                        f"{WIDGETS}/a/status",
                        widget(
                            status={
                                "conditions": [
                                    {"type": "Ready", "status": "True"},
                                    {"type": "Other", "status": "False"},
                                ]
                            }
                        ),
                    ),
                ],
            ),
            ("nothing", WIDGETS, []),
        )
    },
    "as a table of pages": [
        *_FIVE,
        get(f"{SECRETS}?limit=2", accept=TABLE),
        get(f"{SECRETS}?limit=2&continue=$continue:5", accept=TABLE),
    ],
    "as metadata": [
        *_FIVE[:2],
        get(SECRETS, accept=METADATA_LIST),
        get(f"{SECRETS}/s-0", accept=METADATA),
        get(SECRETS, accept=METADATA),
    ],
    "widgets as metadata": [*_WIDGETS[:2], get(WIDGETS, accept=METADATA_LIST), get(f"{WIDGETS}/w-0", accept=METADATA)],
    "as YAML": [*_FIVE[:2], get(SECRETS, accept=YAML)],
    "of all namespaces": [
        post(SECRETS, secret("u-$id", metadata={"labels": {"mine": "$id"}})),
        get("/api/v1/secrets?labelSelector=mine=$id"),
        get("/api/v1/secrets?fieldSelector=metadata.name=u-$id,metadata.namespace=$ns"),
    ],
}
