"""Watches: what is replayed, what selectors make of it, the other forms, bookmarks and bad requests."""

from ..exchange import Request
from ..kinds import CONFIGMAPS, SECRETS, WIDGETS, configmap, secret, widget
from ..verbs import METADATA, METADATA_LIST, TABLE, delete, get, merge, post, watch

A = f"{SECRETS}/a"
W = f"{WIDGETS}/a"
_LIFE = [
    post(SECRETS, secret("first")),
    post(SECRETS, secret(metadata={"labels": {"x": "1"}})),
    merge(A, {"data": {"k": "dg=="}}),
    merge(A, {"metadata": {"labels": {"x": "2"}}}),
    delete(A),
]
_WIDGET_LIFE = [
    post(WIDGETS, widget("first")),
    post(WIDGETS, widget(spec={"size": "small"}, metadata={"labels": {"x": "1"}})),
    merge(W, {"spec": {"size": "large"}}),
    merge(f"{W}/status", {"status": {"phase": "Running"}}),
    merge(W, {"metadata": {"labels": {"x": "2"}}}),
    delete(W),
]
_END = "timeoutSeconds=1"

SCENARIOS: dict[str, list[Request]] = {
    "replays what happened": [*_LIFE, watch(SECRETS, 4)],
    "replays what happened to widgets": [*_WIDGET_LIFE, watch(WIDGETS, 5)],
    "from a later revision": [*_LIFE, watch(SECRETS, 2, since="$rv:2")],
    "by label: enters and leaves": [*_LIFE, watch(SECRETS, 9, query=f"labelSelector=x=1&{_END}")],
    "by label: enters later": [*_LIFE, watch(SECRETS, 9, query=f"labelSelector=x=2&{_END}")],
    "by name": [*_LIFE, watch(SECRETS, 9, query=f"fieldSelector=metadata.name=a&{_END}")],
    "of one object": [*_LIFE, watch(A, 9, query=_END)],
    "of one object that is another": [*_LIFE, watch(f"{SECRETS}/b", 9, query=_END)],
    "of widgets by a field": [*_WIDGET_LIFE, watch(WIDGETS, 9, query=f"fieldSelector=spec.size=small&{_END}")],
    "of widgets by label": [*_WIDGET_LIFE, watch(WIDGETS, 9, query=f"labelSelector=x=1&{_END}")],
    "from 0 begins with what is there": [*_LIFE, watch(SECRETS, 9, since="0", query=_END)],
    "from nowhere begins with what is there": [*_LIFE, watch(SECRETS, 9, since="", query=_END)],
    "in initial events with a bookmark": [
        *_LIFE,
        watch(
            SECRETS,
            9,
            since="",
            query=f"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&{_END}",
        ),
    ],
    "in initial events of widgets": [
        *_WIDGET_LIFE,
        watch(
            WIDGETS,
            9,
            since="0",
            query=f"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&{_END}",
        ),
    ],
    "without initial events": [
        *_LIFE,
        watch(
            SECRETS,
            9,
            since="",
            query=f"sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&{_END}",
        ),
    ],
    "in initial events without a match": [watch(SECRETS, 9, since="", query=f"sendInitialEvents=true&{_END}")],
    "with a match alone": [watch(SECRETS, 9, since="0", query=f"resourceVersionMatch=NotOlderThan&{_END}")],
    "in initial events at an exact revision": [
        watch(SECRETS, 9, since="0", query=f"sendInitialEvents=true&resourceVersionMatch=Exact&{_END}")
    ],
    "as tables": [*_LIFE, watch(SECRETS, 4, accept=TABLE)],
    "of widgets as tables": [*_WIDGET_LIFE, watch(WIDGETS, 5, accept=TABLE)],
    "of widgets as tables with objects": [*_WIDGET_LIFE, watch(WIDGETS, 5, accept=TABLE, query="includeObject=Object")],
    "as metadata": [*_LIFE, watch(SECRETS, 4, accept=METADATA)],
    "as metadata lists": [*_LIFE, watch(SECRETS, 4, accept=METADATA_LIST)],
    "in a format that nobody has": [watch(SECRETS, 1, since="0", accept="text/html")],
    "from a revision that is no number": [watch(SECRETS, 1, since="abc")],
    "from a revision of long ago": [
        post(SECRETS, secret()),
        watch(SECRETS, 1, since="1", query=_END),
        watch(WIDGETS, 1, since="1", query=_END),
    ],
    "with a continue token": [watch(SECRETS, 1, since="0", query=f"continue=x&{_END}")],
    "with a limit": [*_LIFE, watch(SECRETS, 9, query=f"limit=1&{_END}")],
    "with a bad selector": [
        watch(SECRETS, 1, since="0", query="labelSelector=%3D"),
        watch(SECRETS, 1, since="0", query="fieldSelector=odd=1"),
    ],
    "with a time-out that is no number": [watch(SECRETS, 1, since="0", query="timeoutSeconds=x")],
    "by the old path": [
        *_LIFE,
        Request(method="GET", path=f"{SECRETS.replace('/api/v1', '/api/v1/watch')}?resourceVersion=$rv:0", events=4),
        Request(
            method="GET",
            path=f"{A.replace('/api/v1', '/api/v1/watch')}?resourceVersion=$rv:0&timeoutSeconds=1",
            events=9,
        ),
    ],
    "watch=1 and watch=false": [
        *_LIFE,
        Request(method="GET", path=f"{SECRETS}?watch=1&resourceVersion=$rv:0", events=4),
        Request(method="GET", path=f"{SECRETS}?watch=odd&resourceVersion=$rv:0&timeoutSeconds=1", events=9),
        get(f"{SECRETS}?watch=0"),
    ],
    "of all namespaces": [
        *_LIFE,
        Request(
            method="GET",
            path="/api/v1/secrets?watch=1&resourceVersion=$rv:0&fieldSelector=metadata.namespace=$ns",
            events=4,
        ),
    ],
    "in a namespace that is not there": [watch(SECRETS.replace("$ns", "no-$id"), 9, since="0", query=_END)],
    "a change without effect is no event": [
        post(CONFIGMAPS, configmap("z", data={"k": "v"})),
        merge(f"{CONFIGMAPS}/z", {"data": {"k": "v"}}),
        merge(f"{CONFIGMAPS}/z", {"data": {"k": "w"}}),
        watch(CONFIGMAPS, 9, query=f"fieldSelector=metadata.name=z&{_END}"),
    ],
    "finalizers make an event of a deletion": [
        post(SECRETS, secret("first")),
        post(SECRETS, secret(metadata={"finalizers": ["example.com/x"]})),
        delete(A),
        merge(A, {"metadata": {"finalizers": None}}),
        watch(SECRETS, 3),
    ],
}
