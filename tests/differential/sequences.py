"""Random requests to a small world: few names, few fields, so that they meet.

Every choice that the API gives is one strategy; a sequence is a list of requests and, sometimes, a watch of all of it.
"""

from typing import Any

from hypothesis import strategies as st

from .exchange import Request
from .kinds import CONFIGMAPS, DEPLOYMENTS, LEASES, SECRETS, WIDGETS, configmap, deployment, lease, secret, widget
from .verbs import APPLY, JSON, JSON_PATCH, MERGE, METADATA, METADATA_LIST, STRATEGIC, TABLE, YAML

_names = st.sampled_from(("a", "b"))
_managers = st.sampled_from(("one", "two", "three"))
_text = st.sampled_from(("v", "w", ""))
_labels = st.dictionaries(st.sampled_from(("x", "y")), st.sampled_from(("1", "2", "")), max_size=2)
_revision = st.integers(0, 6).map(lambda step: f"$rv:{step}")


def _some(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


_metadata = _some(
    {
        "labels": _labels,
        "annotations": _labels,
        "finalizers": st.just(["example.com/x"]),
        "resourceVersion": _revision,
        "uid": st.integers(0, 6).map(lambda step: f"$uid:{step}"),
    }
)
_entry = _some(
    {"protocol": st.sampled_from(("TCP", "UDP")), "port": st.integers(0, 3), "note": _text, "odd": st.just(1)}
)
_spec = _some(
    {
        "size": st.sampled_from(("small", "large", "huge")),
        "color": st.sampled_from(("red", "blue", "mauve", "x")),
        "replicas": st.sampled_from((0, 1, 2, 11, "1")),
        "ratio": st.sampled_from((0, 0.5, 1, 2)),
        "note": st.sampled_from(("n", None)),
        "port": st.sampled_from((80, "http", 1.5)),
        "on": st.booleans(),
        "tags": st.lists(st.sampled_from(("a", "b", "c")), max_size=3),
        "entries": st.lists(
            st.tuples(st.sampled_from(("p", "q")), _entry).map(lambda pair: {"name": pair[0]} | pair[1]), max_size=2
        ),
        "steps": st.lists(st.sampled_from(("s", "t")), max_size=2),
        "settings": st.dictionaries(st.sampled_from(("k", "l")), _text, max_size=2),
        "extra": st.sampled_from(({}, {"known": 1}, {"free": {"a": [1]}}, {"known": "x"})),
        "anything": st.sampled_from(([], {"a": None}, 1, "x", None)),
        "reference": st.sampled_from(({"name": "x"}, {"name": "x", "kind": "Y"}, {})),
        "bounded": st.sampled_from(({"low": 1}, {"low": 2, "high": 1}, {})),
        "fixed": st.sampled_from(("f", "g")),
        "tuning": st.sampled_from(({}, {"level": 4}, {"odd": 1}, None)),
        "nothing": st.just(1),
    }
)
_status = _some(
    {
        "phase": st.sampled_from(("Running", "Odd")),
        "replicas": st.integers(0, 2),
        "conditions": st.lists(
            st.sampled_from(({"type": "A", "status": "True"}, {"type": "B", "status": "False"}, {"type": "C"})),
            max_size=2,
        ),
    }
)
_data = st.dictionaries(st.sampled_from(("k", "l", "not ok")), _text, max_size=2)
_bodies: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    CONFIGMAPS: st.builds(lambda n, m, d: configmap(n, metadata=m, data=d), _names, _metadata, _data),
    SECRETS: st.builds(lambda n, m, d: secret(n, metadata=m, stringData=d), _names, _metadata, _data),
    LEASES: st.builds(
        lambda n, m, s: lease(n, metadata=m, spec=s),
        _names,
        _metadata,
        _some({"holderIdentity": _text, "leaseDurationSeconds": st.integers(0, 2)}),
    ),
    DEPLOYMENTS: st.builds(
        lambda n, image, spec: deployment(n, image=image, **spec),
        _names,
        st.sampled_from(("app:1", "app:2")),
        _some({"replicas": st.integers(-1, 2), "paused": st.booleans()}),
    ),
    WIDGETS: st.builds(
        lambda n, m, s, rest: widget(n, s, metadata=m, **rest),
        _names,
        _metadata,
        _spec,
        _some({"status": _status, "top": st.just(1)}),
    ),
}
_collections = st.sampled_from((CONFIGMAPS, SECRETS, LEASES, DEPLOYMENTS, WIDGETS, WIDGETS, WIDGETS))
_validation = st.sampled_from(("", "", "", "fieldValidation=Strict", "fieldValidation=Ignore"))
_dry = st.sampled_from(("", "", "", "", "dryRun=All"))
_accept = st.sampled_from((None, None, None, None, TABLE, METADATA, METADATA_LIST, YAML, "text/html"))


@st.composite
def _creates(draw: st.DrawFn) -> Request:
    path = draw(_collections)
    body = dict(draw(_bodies[path]))
    if draw(st.integers(0, 9)) == 0:
        body["metadata"] = {"generateName": "gen-"}
    query = _query(draw(_validation), draw(_dry), f"fieldManager={draw(_managers)}")
    return _request("POST", path + query, body, draw(_accept), draw(st.sampled_from((JSON, JSON, JSON, YAML))))


@st.composite
def _updates(draw: st.DrawFn) -> Request:
    path = draw(_collections)
    door = draw(st.sampled_from(("", "", "", "/status"))) if path in (WIDGETS, DEPLOYMENTS) else ""
    query = _query(draw(_validation), draw(_dry), f"fieldManager={draw(_managers)}")
    return _request("PUT", f"{path}/{draw(_names)}{door}{query}", draw(_bodies[path]), None, JSON)


@st.composite
def _applies(draw: st.DrawFn) -> Request:
    path = draw(_collections)
    door = draw(st.sampled_from(("", "", "", "/status"))) if path in (WIDGETS, DEPLOYMENTS) else ""
    name = draw(_names)
    body = draw(_bodies[path])
    body = body | {
        "metadata": {"name": name}
        | {key: value for key, value in body["metadata"].items() if key in ("labels", "annotations")}
    }
    query = _query(draw(_dry), f"fieldManager={draw(_managers)}", draw(st.sampled_from(("", "force=true"))))
    return _request("PATCH", f"{path}/{name}{door}{query}", body, None, APPLY)


@st.composite
def _merges(draw: st.DrawFn) -> Request:
    path = draw(_collections)
    body = draw(_bodies[path])
    gone = draw(
        st.lists(st.sampled_from(sorted(body.keys() - {"apiVersion", "kind", "metadata"}) or ["data"]), max_size=1)
    )
    changes = {
        key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")
    } | dict.fromkeys(gone)
    metadata = {
        key: value for key, value in body["metadata"].items() if key in ("labels", "finalizers", "resourceVersion")
    }
    content = draw(st.sampled_from((MERGE, MERGE, STRATEGIC)))
    door = draw(st.sampled_from(("", "", "", "/status"))) if path in (WIDGETS, DEPLOYMENTS) else ""
    query = _query(draw(_validation), draw(_dry), f"fieldManager={draw(_managers)}")
    return _request("PATCH", f"{path}/{draw(_names)}{door}{query}", changes | {"metadata": metadata}, None, content)


@st.composite
def _json_patches(draw: st.DrawFn) -> Request:
    path = draw(_collections)
    pointers = st.sampled_from(
        (
            "/data/k",
            "/spec/size",
            "/spec/tags",
            "/spec/tags/0",
            "/spec/tags/-",
            "/spec/replicas",
            "/metadata/labels",
            "/metadata/finalizers",
            "/nothing",
            "/spec",
        )
    )
    values = st.sampled_from(("v", 1, None, {}, [], ["a"], {"x": "1"}))
    operation = st.builds(
        lambda op, pointer, value: {"op": op, "path": pointer, "value": value},
        st.sampled_from(("add", "add", "replace", "remove", "test")),
        pointers,
        values,
    )
    return _request(
        "PATCH", f"{path}/{draw(_names)}", draw(st.lists(operation, min_size=1, max_size=2)), None, JSON_PATCH
    )


@st.composite
def _deletes(draw: st.DrawFn) -> Request:
    path = draw(_collections)
    options = draw(
        st.none()
        | _some(
            {
                "preconditions": _some(
                    {"resourceVersion": _revision, "uid": st.integers(0, 6).map(lambda step: f"$uid:{step}")}
                ),
                "propagationPolicy": st.sampled_from(("Background", "Odd")),
                "dryRun": st.just(["All"]),
            }
        )
    )
    return Request(method="DELETE", path=f"{path}/{draw(_names)}", body=options)


@st.composite
def _collection_deletes(draw: st.DrawFn) -> Request:
    selector = draw(st.sampled_from(("", "labelSelector=x", "fieldSelector=metadata.name=a", "labelSelector=!x")))
    return Request(
        method="DELETE", path=draw(st.sampled_from((SECRETS, LEASES, WIDGETS))) + _query(selector, draw(_dry))
    )


@st.composite
def _reads(draw: st.DrawFn) -> Request:
    path = draw(_collections)
    door = draw(st.sampled_from(("", "", "/status", "/scale"))) if path in (WIDGETS, DEPLOYMENTS) else ""
    return _request("GET", f"{path}/{draw(_names)}{door}", None, draw(_accept), None)


@st.composite
def _lists(draw: st.DrawFn) -> Request:
    path = draw(_collections)
    labels = draw(
        st.sampled_from(
            ("", "", "labelSelector=x", "labelSelector=x=1", "labelSelector=!x", "labelSelector=x%20in%20(1,2),y")
        )
    )
    fields = draw(
        st.sampled_from(
            ("", "", "fieldSelector=metadata.name=a", "fieldSelector=spec.size=small", "fieldSelector=metadata.name!=a")
        )
    )
    # No limit: what controllers put into a namespace would fill pages at other times here and there.
    return _request(
        "GET",
        path + _query(labels, fields, draw(st.sampled_from(("", "resourceVersion=0")))),
        None,
        draw(_accept),
        None,
    )


@st.composite
def _scales(draw: st.DrawFn) -> Request:
    path = draw(st.sampled_from((WIDGETS, DEPLOYMENTS)))
    body = {"spec": {"replicas": draw(st.sampled_from((0, 2, 11, -1)))}}
    return _request("PATCH", f"{path}/{draw(_names)}/scale?fieldManager={draw(_managers)}", body, None, MERGE)


_any = st.one_of(
    _creates(),
    _creates(),
    _updates(),
    _applies(),
    _applies(),
    _merges(),
    _json_patches(),
    _deletes(),
    _collection_deletes(),
    _reads(),
    _lists(),
    _scales(),
)


@st.composite
def sequences(draw: st.DrawFn) -> tuple[Request, ...]:
    """A few requests after a first create, and now and then a watch of all that they did."""
    path = draw(_collections)
    first = _request("POST", path, draw(_bodies[path]), None, JSON)
    requests = [first, *draw(st.lists(_any, min_size=1, max_size=7))]
    if draw(st.integers(0, 11)) == 0:
        watched = draw(st.sampled_from((SECRETS, LEASES, WIDGETS)))
        selector = draw(st.sampled_from(("", "&labelSelector=x", "&fieldSelector=metadata.name=a")))
        target = f"{watched}?watch=true&resourceVersion=$rv:0&timeoutSeconds=1{selector}"
        requests.append(Request(method="GET", path=target, events=50))
    return tuple(requests)


def _query(*parts: str) -> str:
    joined = "&".join(part for part in parts if part)
    return f"?{joined}" if joined else ""


def _request(method: str, path: str, body: Any, accept: str | None, content: str | None) -> Request:
    headers = (*((("Content-Type", content),) if content else ()), *((("Accept", accept),) if accept else ()))
    return Request(method=method, path=path, body=body, headers=headers)
