"""The diagrams of the hub and of Git sync, drawn as those of `diagram`."""

from diagram import CHANGE, CLIENT, FADING, GONE, PART, PLAN, SERVER, SOFT, STORE
from diagram import _arrow as arrow
from diagram import _box as box
from diagram import _labelled as labelled
from diagram import _path as path
from diagram import _picture as picture
from diagram import _pipeline as pipeline
from diagram import _text as text


def hub() -> str:
    """From those who ask, through the proxies, to the services that hold the data."""
    steps = ["auth", "validate", "default", "version", "lineage", "hydrate", "cache"]
    width, gap = 112.0, 13.0
    drawn = [
        *labelled(44, 34, 200, 56, "people, programs", "kubectl, clients", fill=CLIENT),
        *labelled(260, 34, 200, 56, "Git", "GitSync, both ways", fill=CLIENT),
        *labelled(476, 34, 200, 56, "white labels", "the same rows, other groups", fill=CLIENT),
        box(692, 34, 224, 56, PLAN, planned=True),
        text(804, 59, "Terraform", bold=True, size=13, middle=True),
        text(804, 76, "planned", colour=SOFT, size=11, middle=True),
        *arrow(480, 90, 480, 128, "names, never IDs; the Kubernetes API"),
        box(28, 130, 904, 262, SERVER),
        text(44, 154, "hub", bold=True),
        text(84, 154, "in trimtab up, or behind a cluster's API server, in replicas", colour=SOFT, size=12),
        *labelled(
            44, 168, 872, 48, "a backend for each kind", "verbs, apply, watch, tables, OpenAPI: as for all kinds"
        ),
        *arrow(480, 216, 480, 240, ""),
    ]
    abouts = [
        "may they?",
        "schema, CEL",
        "twice is once",
        "what is published",
        "seen by few",
        "names ↔ IDs",
        "never stale",
    ]
    for number, (name, about) in enumerate(zip(steps, abouts, strict=True)):
        x = 44 + number * (width + gap)
        drawn += labelled(x, 242, width, 52, name, about)
        if number:
            drawn += arrow(x - gap, 268, x, 268, "")
    drawn += [
        *labelled(44, 326, 430, 52, "storage accessor", "convertor: a resource ↔ row, snapshots, sharing, blobs"),
        *labelled(486, 326, 430, 52, "ledger, your accessor", "convertor: a resource ↔ what the service has"),
        path("M850,294 V310 H259 V324", "#475569"),
        path("M850,310 H701 V324", "#475569"),
        *arrow(259, 378, 259, 430, "IDs"),
        *arrow(701, 378, 701, 430, "IDs"),
        *labelled(44, 432, 430, 60, "storage service", "SQLite, PostgreSQL, or a process of its own", fill=STORE),
        *labelled(486, 432, 208, 60, "PowerDNS", "zones.py: one file", fill=STORE),
        *labelled(708, 432, 208, 60, "your service", "its IDs, its shapes", fill=STORE),
        path("M916,462 H946 V352 H918", CHANGE),
        text(701, 516, "what others change there comes back as watch events", colour=CHANGE, size=12, middle=True),
        text(44, 560, "the kinds that ship", bold=True),
        *labelled(44, 596, 140, 56, "Blueprint", "addons, in order"),
        *labelled(228, 596, 140, 56, "Addon", "manifests, a chart"),
        *labelled(412, 596, 140, 56, "Cluster", "a kubeconfig"),
        *labelled(596, 596, 140, 56, "Workload", "manifests, a chart"),
        *labelled(780, 596, 136, 56, "any Kubernetes", "or another Trimtab", fill=STORE),
        *arrow(184, 624, 228, 624, ""),
        path("M482,596 V578 H114 V594", "#475569"),
        text(298, 572, "follows", colour=SOFT, size=11, middle=True),
        *arrow(596, 624, 552, 624, ""),
        path("M482,652 V672 H848 V654", CHANGE),
        text(
            664, 690, "server-side apply; inventory there; health and drift back", colour=CHANGE, size=12, middle=True
        ),
    ]
    return picture(drawn, 710, "From a request through the hub to the services that hold the data")


def gitops() -> str:
    """One run of a sync, what starts it, and how a field is merged."""
    steps = [
        ("fetch", "the branch; is it signed", "by whom it should be?"),
        ("judge", "every document, before", "the first write"),
        ("merge", "Git, the system, the", "state after the last sync"),
        ("commit", "edits in place, one push", "that expects the branch"),
        ("apply, prune", "in order; deletions", "past the guards"),
    ]
    drawn = [
        text(44, 40, "what starts a run", bold=True),
        *labelled(44, 54, 158, 52, "webhook", "GitHub, GitLab, …", fill=CLIENT),
        *labelled(222, 54, 158, 52, "interval, cron", "at the latest", fill=CLIENT),
        *labelled(401, 54, 158, 52, "a change here", "kubectl, programs", fill=CLIENT),
        *labelled(579, 54, 158, 52, "a person", "trimtab git sync", fill=CLIENT),
        *labelled(758, 54, 158, 52, "a decision", "resolution, confirm", fill=CLIENT),
        path("M837,106 V122 H123 V148", "#475569"),
        *(path(f"M{x},106 V121", "#475569").replace('marker-end="url(#tip)"', "") for x in (123, 301, 480, 658)),
        text(140, 140, "one run", bold=True),
        *pipeline(150, steps),
        path("M837,222 V252 H480 V224", CHANGE),
        text(658, 270, "what was done is the new base: no loop", colour=CHANGE, size=12, middle=True),
        text(44, 316, "a field, against the state after the last sync", bold=True),
        *labelled(44, 332, 206, 56, "changed in Git", "applied", fill=STORE),
        *labelled(266, 332, 206, 56, "changed here", "committed, comments kept", fill=STORE),
        *labelled(488, 332, 206, 56, "both, the same", "nothing to do"),
        *labelled(710, 332, 206, 56, "both, otherwise", "SyncConflict; or a policy", fill=FADING),
        text(44, 434, "what nothing is deleted by", bold=True),
        *labelled(44, 450, 206, 56, "an empty folder", "EmptySource: confirm", fill=GONE),
        *labelled(266, 450, 206, 56, "many at once", "MassDelete: confirm", fill=GONE),
        *labelled(488, 450, 206, 56, "a mistake in a file", "nothing is written at all", fill=GONE),
        *labelled(710, 450, 206, 56, "not in the inventory", "never ours to delete", fill=PART),
    ]
    return picture(drawn, 534, "One run of a sync, and how a field is merged")
