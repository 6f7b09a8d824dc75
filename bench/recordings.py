"""False drift on recorded traffic of ARM: how often a look at a resource that nobody touched reads as a change.

    python bench/recordings.py FOLDER [SPECIFICATIONS]

The recordings are go-vcr's YAML. After each PUT that was taken, the first settled read of the same URL is the baseline; each
later read without a write in between is a re-read, and whatever a method calls drift there is false. Three methods look at
the same reads: an exact comparison with what was sent, one with the knobs that AzAPI has (casing, regions, missing, null,
masked values, lists by name), and ours.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import yaml

from trimtab.systems.rest.addressing import matched
from trimtab.systems.rest.compiling.compile import compile_model
from trimtab.systems.rest.compiling.proposing import proposals
from trimtab.systems.rest.kinds.definition import RestDefinition
from trimtab.systems.rest.kinds.service import Document as RestDocument
from trimtab.systems.rest.kinds.service import RestServiceSpec
from trimtab.systems.rest.model import Call, Calls, Identity, Model, Node
from trimtab.systems.rest.openapi.document import Document
from trimtab.systems.rest.openapi.loading import from_path
from trimtab.systems.rest.syncing.comparing import MASKS, equal
from trimtab.systems.rest.syncing.difference import difference
from trimtab.systems.rest.syncing.leaves import walk
from trimtab.systems.rest.syncing.paths import get
from trimtab.systems.rest.syncing.settling import settle

ANYTHING = Model(
    group="recorded.rest.trimtab.dev",
    version="v1",
    kind="Anything",
    plural="anythings",
    service="recorded",
    spec=Node(),
    calls=Calls(
        create=Call(method="PUT", path="/subscriptions/{subscriptionId}/providers/Microsoft.Any/things/{name}")
    ),
    identity=Identity(parameter="name"),
)
"""Of a resource of ARM that no document is at hand for: everything may be written, and nothing is known."""

SERVICE = RestServiceSpec(
    endpoint="https://127.0.0.1", document=RestDocument(inline="{}"), parameters={"subscriptionId": "recorded"}
)

TERMINAL = frozenset({"", "succeeded", "failed", "canceled"})


class Interaction(NamedTuple):
    """One request and what came back."""

    method: str
    url: str
    """The path, in lower case, with the API version."""
    plain: bool
    """Whether the query has nothing but the API version: other reads are polls."""
    sent: Any
    code: int
    received: Any


class Look(NamedTuple):
    """A re-read: what was sent, the settled read after it, and the read that is judged."""

    file: str
    url: str
    sent: dict[str, Any]
    baseline: dict[str, Any]
    live: dict[str, Any]


class FalseDrift(NamedTuple):
    """How many of the re-reads each method calls drift."""

    baselines: int
    rereads: int
    exact: int
    knobs: int
    ours: int


def measure(folder: Path, model_for: Callable[[str], Model] = lambda _: ANYTHING) -> FalseDrift:
    """Over all recordings in a folder. `model_for` gives what is known of the resource at a URL's path."""
    baselines = rereads = exact = knobs = ours = 0
    for look in looks(folder):
        if look.live is look.baseline:
            baselines += 1
            continue
        rereads += 1
        leaves = walk(ANYTHING, look.sent).values()
        exact += any(not equal(leaf.value, get(look.live, leaf.steps)) for leaf in leaves)
        knobs += not _alike({**look.sent, "name": None}, look.live)  # AzAPI has the name apart from the body
        ours += bool(drifted(model_for(look.url.partition("?")[0]), look))
    return FalseDrift(baselines, rereads, exact, knobs, ours)


def compiled(specs: Path) -> Callable[[str], Model]:
    """What the documents in a folder say of the resource at a path; ANYTHING when none of them has it. The API version of
    a recording need not be the document's: what identifies the items of a list rarely changes."""
    proposed: list[tuple[str, Document, RestDefinition]] = []
    for file in sorted(specs.rglob("*/resource-manager/**/*.json")):
        if "examples" not in file.parts and b'"paths"' in file.read_bytes():
            document = from_path(file)
            proposed += [(found.path, document, found.definition) for found in proposals(document, "recorded")]
    models: dict[str, Model] = {}

    def model_for(path: str) -> Model:
        for template, document, definition in proposed:
            if matched(template, path) is not None:
                if template not in models:
                    models[template] = compile_model(
                        document, definition, service=SERVICE, service_name="recorded", group=ANYTHING.group
                    )
                return models[template]
        return ANYTHING

    return model_for


def drifted(model: Model, look: Look) -> dict[str, tuple[Any, Any]]:
    """What our method calls drift in a re-read."""
    known = settle(model, look.sent, look.baseline, previous=None).known
    return difference(model, desired=look.sent, applied=look.sent, live=look.live, known=known).drift


def looks(folder: Path) -> Iterator[Look]:
    """The baselines (whose `live` is the baseline itself) and the re-reads of all recordings."""
    for file in sorted(folder.glob("*.yaml")):
        sent: dict[str, dict[str, Any]] = {}
        baselines: dict[str, dict[str, Any]] = {}
        for seen in interactions(file):
            if seen.method != "GET":
                baselines.pop(seen.url, None)
                sent.pop(seen.url, None)
                if seen.method == "PUT" and 200 <= seen.code < 300 and isinstance(seen.sent, dict):
                    sent[seen.url] = seen.sent
            elif seen.plain and seen.code == 200 and seen.url in sent and _settled(seen.received):
                baseline = baselines.setdefault(seen.url, seen.received)
                yield Look(file.name, seen.url, sent[seen.url], baseline, seen.received)


def interactions(file: Path) -> Iterator[Interaction]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with file.open(encoding="utf-8") as text:
        document = yaml.load(text, Loader=loader)
    for each in document.get("interactions") or ():
        request, response = each["request"], each["response"]
        parts = urlsplit(request["url"])
        query = dict(parse_qsl(parts.query))
        yield Interaction(
            method=request["method"],
            url=f"{parts.path.lower()}?{query.get('api-version', '')}",
            plain=set(query) <= {"api-version"},
            sent=_decoded(request.get("body")),
            code=response["code"],
            received=_decoded(response.get("body")),
        )


def _decoded(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


def _settled(body: Any) -> bool:
    if not isinstance(body, dict):
        return False
    properties = body.get("properties")
    state = properties.get("provisioningState") if isinstance(properties, dict) else ""
    return str(state or "").lower() in TERMINAL


def _alike(wanted: Any, live: Any) -> bool:
    """As AzAPI compares with all of its knobs turned to ignore: only what both have counts."""
    if wanted is None or live is None or (isinstance(live, str) and live in MASKS):
        return True
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(_alike(value, live.get(name)) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list):
        return _alike_lists(wanted, live)
    if isinstance(wanted, str) and isinstance(live, str):
        return wanted.replace(" ", "").casefold() == live.replace(" ", "").casefold()
    return equal(wanted, live)


def _alike_lists(wanted: list[Any], live: list[Any]) -> bool:
    if all(isinstance(item, dict) and "name" in item for item in [*wanted, *live]):
        named = {str(item["name"]).casefold(): item for item in live}
        return all(_alike(item, named.get(str(item["name"]).casefold())) for item in wanted)
    return len(wanted) == len(live) and all(_alike(one, other) for one, other in zip(wanted, live, strict=True))


def main() -> None:
    found = measure(Path(sys.argv[1]), *(compiled(Path(folder)) for folder in sys.argv[2:3]))
    print(f"baselines {found.baselines}, re-reads {found.rereads}")
    for method, count in (("exact", found.exact), ("knobs", found.knobs), ("ours", found.ours)):
        print(f"{method:6} {count:5} false drifts ({count / max(found.rereads, 1):.1%})")


if __name__ == "__main__":
    main()
