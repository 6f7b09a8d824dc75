"""The diagrams of the documentation, drawn as SVG: boxes in rows, arrows between them. Dashed is what is planned."""

from html import escape

WIDTH, HEIGHT = 960, 700
FONT = "font-family='system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif'"
INK, SOFT, EDGE = "#1f2937", "#5b6676", "#94a3b8"
CHANGE = "#2f855a"
CLIENT, SERVER, PART, STORE, PLAN = "#e0ecff", "#f1f5f9", "#ffffff", "#e3f4e6", "#fafafa"
FADING, GONE = "#fdf3d7", "#fde4e1"


def architecture() -> str:
    """From those who ask, through the server, to the disk, and back as watch events."""
    clients = [("kubectl", ""), ("trimtab get, apply …", ""), ("Python client", ""), ("kopf, kr8s, lightkube", "")]
    lifecycle = "namespaces · garbage collection · definitions · expiry of events"
    drawn = [
        *_row(34, clients, CLIENT),
        *_row(34, [("Terraform, web", "planned")], PLAN, left=762, planned=True),
        *_arrow(480, 82, 480, 122, "HTTPS, unix socket"),
        _box(28, 124, 904, 268, SERVER),
        _text(44, 148, "server", bold=True),
        *_pipeline(
            164,
            [
                ("wire", "HTTP/1.1, TLS", "bounded reading"),
                ("door", "who is it?", "too many at once?"),
                ("authorize", "RBAC, from memory", ""),
                ("verb", "get · list · watch", "create · patch · delete"),
                ("admit", "webhooks, schema,", "CEL, escalation"),
            ],
        ),
        *_labelled(44, 266, 250, 52, "broadcast", "an event is framed once, for all"),
        *_labelled(314, 266, 292, 52, "registry of kinds", "built in, and from CRDs at run time"),
        *_labelled(626, 266, 290, 52, "apply, patch, tables, OpenAPI", "pure functions"),
        *_labelled(314, 328, 602, 52, "lifecycle", lifecycle),
        *_arrow(610, 392, 610, 432, "Backend: this one, or the hub's over services"),
        _box(28, 434, 904, 96, STORE),
        _text(44, 458, "store", bold=True),
        *_labelled(44, 470, 250, 48, "watch fan-out", "in order, no gap, or 410 Gone"),
        *_labelled(314, 470, 292, 48, "group commit", "what queued while the disk was busy"),
        *_labelled(626, 470, 290, 48, "SQLite: log, and latest into it", "each value once; WAL, synced"),
        *_arrow(606, 494, 626, 494, ""),
        *_arrow(314, 494, 294, 494, "", colour=CHANGE),
        *_arrow(169, 470, 169, 320, "", colour=CHANGE),
        *_arrow(124, 266, 124, 238, "", colour=CHANGE),
        _path("M200,470 V354 H312", CHANGE),
        _text(210, 418, "changes", colour=CHANGE, size=12),
        _box(28, 566, 904, 110, SERVER),
        _text(44, 590, "runtime", bold=True),
        _text(124, 590, RUNTIME, colour=SOFT, size=12),
        *_labelled(44, 608, 138, 48, "your operators", "any kinds"),
        *_labelled(190, 608, 138, 48, "discovery", "devices"),
        *_labelled(336, 608, 138, 48, "images", "registries"),
        *_labelled(482, 608, 138, 48, "rest", "any REST API"),
        *_labelled(628, 608, 138, 48, "delivery", "traffic"),
        *_labelled(774, 608, 142, 48, "platform, gitops", "clusters, Git"),
        _path("M932,620 H946 V258 H934", "#475569"),
    ]
    return _picture(drawn, HEIGHT, "The architecture of Trimtab")


def operators() -> str:
    """How a change comes to a reconcile, and how what that writes comes back."""
    drawn = [
        _box(28, 34, 140, 336, CLIENT),
        _text(98, 190, "API server", bold=True, middle=True),
        _text(98, 210, "ours, or any", colour=SOFT, size=12, middle=True),
        _text(98, 226, "Kubernetes", colour=SOFT, size=12, middle=True),
        _box(238, 34, 694, 336, SERVER),
        _text(254, 58, "manager", bold=True),
        _text(340, 58, "one process, any number of controllers", colour=SOFT, size=12),
        *_labelled(262, 80, 180, 64, "informer", "one list-watch for each kind"),
        *_labelled(482, 80, 200, 64, "which requests?", "when · owns · watches"),
        *_labelled(722, 80, 186, 64, "work queue", "each key once; fair; back-off"),
        *_labelled(262, 184, 180, 64, "cache", "bytes; own writes; indexes"),
        *_labelled(722, 206, 186, 64, "reconcile(request)", "your code", fill=STORE),
        *_labelled(262, 288, 420, 64, "self.client", "reads: the cache. writes: the server, then the cache"),
        *_arrow(168, 112, 262, 112, "", colour=CHANGE),
        _text(180, 104, "changes", colour=CHANGE, size=12),
        *_arrow(442, 112, 482, 112, "", colour=CHANGE),
        *_arrow(682, 112, 722, 112, ""),
        *_arrow(352, 144, 352, 184, "", colour=CHANGE),
        *_arrow(780, 144, 780, 206, ""),
        _text(728, 179, "request", colour=SOFT, size=12),
        *_arrow(850, 206, 850, 144, ""),
        _text(858, 172, "again:", colour=SOFT, size=12),
        _text(858, 187, "later", colour=SOFT, size=12),
        *_arrow(322, 248, 322, 288, ""),
        _text(280, 272, "reads", colour=SOFT, size=12),
        *_arrow(382, 288, 382, 248, ""),
        _text(392, 272, "own writes", colour=SOFT, size=12),
        _path("M815,270 V320 H684", "#475569"),
        _text(694, 312, "find, apply, patch", colour=SOFT, size=12),
        *_arrow(262, 320, 168, 320, ""),
        _text(182, 312, "writes", colour=SOFT, size=12),
    ]
    return _picture(drawn, 404, "How a change comes to a reconcile and back")


def discovery() -> str:
    """The life of a Target: how it comes, how it fades, and what stops that."""
    steps = [
        ("addresses", "prefixes, names,", "Pods, Services"),
        ("probe", "TCP connect, or one", "SNMP question; no login"),
        ("identify", "gnmi, netconf, ssh or", "snmp; one login"),
        ("identity", "serial, keys, MAC:", "one device, one Target"),
        ("Target", "written only when", "something changed"),
    ]
    states = (
        (44, "Ready", "it answers", STORE),
        (290, "Stale", "a sweep has missed it", FADING),
        (536, "Lost", "nobody relies on it", GONE),
    )
    drawn = [
        _text(44, 44, "each sweep", bold=True),
        *_pipeline(56, steps),
        _text(44, 172, "a Target's life", bold=True),
        *(part for x, title, about, fill in states for part in _labelled(x, 238, 158, 60, title, about, fill=fill)),
        _box(782, 238, 134, 60, PLAN, planned=True),
        _text(849, 265, "deleted", bold=True, size=13, middle=True),
        _text(849, 282, "a new start", colour=SOFT, size=11, middle=True),
        *_arrow(202, 268, 290, 268, ""),
        _text(246, 258, "1 miss", colour=SOFT, size=12, middle=True),
        *_arrow(448, 268, 536, 268, ""),
        _text(492, 258, "3 misses", colour=SOFT, size=12, middle=True),
        _text(492, 286, "and 10 min", colour=SOFT, size=12, middle=True),
        *_arrow(694, 268, 782, 268, ""),
        _text(738, 258, "10 misses", colour=SOFT, size=12, middle=True),
        _text(738, 286, "and 24 h", colour=SOFT, size=12, middle=True),
        _path("M369,238 V206 H150 V236", CHANGE),
        _path("M615,238 V190 H96 V236", CHANGE),
        _text(168, 184, "it answers, or refuses our password: either way it is there", colour=CHANGE, size=12),
        *_labelled(44, 336, 278, 56, "before Lost, and before it goes", "every known address is probed once more"),
        *_labelled(341, 336, 278, 56, "a poor sweep", "takes no step: packets lost here, a busy machine"),
        *_labelled(638, 336, 278, 56, "too many at once", "takes no step: condition MassLoss, until released"),
    ]
    return _picture(drawn, 420, "How a Target comes, and how it goes")


def images() -> str:
    """A discovery from its trigger to reports, who does what of it, and how an Image goes."""
    steps = [
        ("claim", "a job, a schedule or a", "push; never two at once"),
        ("list", "HEAD each tag; read", "what is not known yet"),
        ("Images", "one for each tag and", "platform"),
        ("SBOMs", "new layers only, read as", "a stream; two formats"),
        ("reports", "OSV database and VEX;", "again when they change"),
    ]
    drawn = [
        _text(44, 44, "a discovery", bold=True),
        *_pipeline(56, steps),
        _text(44, 168, "who does it", bold=True),
        *_labelled(44, 184, 158, 60, "controllers", "one leads; claims, Images", fill=STORE),
        *_labelled(290, 184, 158, 60, "queue", "in process, or NATS"),
        *_labelled(536, 184, 158, 60, "workers", "lists, SBOMs, reports", fill=CLIENT),
        *_labelled(782, 184, 134, 60, "registry", "only read"),
        *_arrow(202, 214, 290, 214, ""),
        _text(246, 204, "messages", colour=SOFT, size=12, middle=True),
        *_arrow(448, 214, 536, 214, ""),
        *_arrow(694, 214, 782, 214, ""),
        _text(738, 204, "HTTPS", colour=SOFT, size=12, middle=True),
        _path("M615,244 V272 H123 V246", CHANGE),
        _text(
            369, 290, "resources: what was found, and why not; documents are blobs", colour=CHANGE, size=12, middle=True
        ),
        _text(44, 330, "an Image's life", bold=True),
        *_labelled(44, 346, 158, 60, "present", "a tag points to it", fill=STORE),
        *_labelled(414, 346, 158, 60, "missing", "no tag does any more", fill=FADING),
        _box(782, 346, 134, 60, PLAN, planned=True),
        _text(849, 373, "removed", bold=True, size=13, middle=True),
        _text(849, 390, "with SBOM and report", colour=SOFT, size=11, middle=True),
        *_arrow(202, 366, 414, 366, ""),
        _text(308, 358, "a whole listing without it", colour=SOFT, size=12, middle=True),
        *_arrow(414, 388, 202, 388, "", colour=CHANGE),
        _text(308, 404, "the tag is back", colour=CHANGE, size=12, middle=True),
        *_arrow(572, 376, 782, 376, ""),
        _text(677, 366, "a later one, after a grace", colour=SOFT, size=12, middle=True),
        *_labelled(44, 436, 278, 56, "a listing with gaps", "marks nothing and removes nothing"),
        *_labelled(341, 436, 278, 56, "a listing of what was pushed", "marks nothing and removes nothing"),
        *_labelled(638, 436, 278, 56, "too many at once", "removes nothing: RemovalHeld, until released"),
    ]
    return _picture(drawn, 520, "How images are discovered, and how they go")


def rest() -> str:
    """From a document to kinds, one turn of an object, and what is compared in it."""
    steps = [
        ("look", "GET; an operation that", "runs is polled once"),
        ("compare", "spec, last applied,", "what is there"),
        ("announce", "finalizer; the status says", "what is about to be sent"),
        ("write", "PATCH if it takes all", "paths, else GET and PUT"),
        ("settle", "follow, read again,", "remember the outcome"),
    ]
    drawn = [
        _text(44, 44, "from a document to kinds", bold=True),
        *_labelled(44, 60, 170, 60, "OpenAPI document", "2 and 3, any size", fill=CLIENT),
        *_labelled(278, 60, 170, 60, "RestDefinition", "which paths are one kind"),
        *_labelled(512, 60, 170, 60, "Model", "fields, classes, calls"),
        *_labelled(746, 60, 170, 60, "a kind", "CRD, admission, controller", fill=STORE),
        *_arrow(214, 90, 278, 90, ""),
        _text(246, 82, "generate", colour=SOFT, size=11, middle=True),
        *_arrow(448, 90, 512, 90, ""),
        _text(480, 82, "compile", colour=SOFT, size=11, middle=True),
        *_arrow(682, 90, 746, 90, ""),
        _text(44, 168, "one turn of an object", bold=True),
        *_pipeline(180, steps),
        _path("M837,252 V282 H123 V254", CHANGE),
        _text(
            480,
            300,
            "again: when the spec changes, a Secret changes, the service tells, or it is time to look",
            colour=CHANGE,
            size=12,
            middle=True,
        ),
        _text(44, 346, "what is compared, for each field", bold=True),
        *_labelled(44, 362, 206, 60, "the spec changed", "spec \u2260 last applied: written", fill=STORE),
        *_labelled(266, 362, 206, 60, "it drifted", "there \u2260 spec = last applied", fill=FADING),
        *_labelled(488, 362, 206, 60, "it was removed", "last applied, not in the spec", fill=GONE),
        *_labelled(710, 362, 206, 60, "someone else's", "in neither: left alone"),
        *_labelled(
            44, 440, 428, 56, "a known difference", "what the service answered right after the last write: no drift"
        ),
        *_labelled(488, 440, 428, 56, "initial", "given at creation, then an autoscaler's: never written, never drift"),
    ]
    return _picture(drawn, 524, "From a document to kinds, and how an object is reconciled")


def delivery() -> str:
    """The life of a release, and the way of requests meanwhile."""
    phases = [
        ("Stable", "nothing runs", STORE),
        ("Starting", "pods, 0 % traffic", PART),
        ("Progressing", "step, check, step", FADING),
        ("WaitingPromotion", "a gate, a group", FADING),
        ("Promoting", "stable rolls", PART),
        ("Returning", "0 % to the canary", PART),
        ("Finalising", "the canary goes", PART),
    ]
    widths, gap, x = [104, 112, 118, 150, 112, 116, 112], 14.0, 26.0
    drawn = [_text(44, 40, "the life of a release: status.phase", bold=True)]
    middle = []
    for (name, what, fill), width in zip(phases, widths, strict=True):
        drawn += _labelled(x, 56, width, 56, name, what, fill=fill)
        if middle:
            drawn += _arrow(x - gap, 84, x, 84, "")
        middle.append(x + width / 2)
        x += width + gap
    drawn += [
        *_labelled(
            middle[1] - 60, 160, middle[4] - middle[1] + 120, 50, "RollingBack", "stable has all again", fill=GONE
        ),
        *(line for place in range(1, 5) for line in _arrow(middle[place], 112, middle[place], 160, "")),
        _path(f"M{middle[4] + 60:g},185 H{middle[6]:g} V114", EDGE),
        _text((middle[5] + middle[6]) / 2 - 20, 178, "failed, aborted,", colour=SOFT, size=11, middle=True),
        _text((middle[5] + middle[6]) / 2 - 20, 202, "reverted, superseded", colour=SOFT, size=11, middle=True),
        _path(f"M{middle[6] + 30:g},112 V236 H{middle[0]:g} V114", CHANGE),
        _text(480, 254, "the run is history; the next change begins the next one", colour=CHANGE, size=12, middle=True),
        _text(44, 300, "requests, and what is learnt from them", bold=True),
        *_labelled(44, 360, 130, 56, "clients", "any", fill=CLIENT),
        *_labelled(246, 350, 190, 76, "Envoy", "as the VirtualService says", fill=SERVER),
        *_labelled(560, 318, 170, 56, "shop", "stable: proven", fill=STORE),
        *_labelled(560, 404, 170, 56, "shop-canary", "the new revision", fill=FADING),
        *_arrow(174, 388, 246, 388, ""),
        *_arrow(436, 370, 560, 348, ""),
        *_arrow(436, 406, 560, 430, ""),
        _text(498, 342, "70 %", colour=SOFT, size=12, middle=True),
        _text(498, 440, "30 %", colour=SOFT, size=12, middle=True),
        *_labelled(246, 520, 190, 56, "metrics", "Prometheus, or Envoy itself", fill=PART),
        *_labelled(560, 520, 170, 56, "judges", "pass, fail, not sure yet", fill=PART),
        *_labelled(786, 520, 130, 56, "the machine", "one move at a time", fill=PART),
        *_arrow(341, 426, 341, 520, ""),
        _text(350, 478, "requests of a window", colour=SOFT, size=11),
        *_arrow(436, 548, 560, 548, ""),
        *_arrow(730, 548, 786, 548, ""),
        _path("M851,520 V292 H400 V348", CHANGE),
        _text(640, 286, "weights, which count when Envoy has them", colour=CHANGE, size=12, middle=True),
    ]
    return _picture(drawn, 604, "The life of a release, and the way of requests meanwhile")


def _picture(drawn: list[str], height: int, about: str) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(about)}">'
    )
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="context-stroke"/></marker></defs>'
    )
    ground = f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#ffffff"/>'
    return "\n".join([head, marker, ground, *drawn, "</svg>"]) + "\n"


RUNTIME = "controllers in a process of their own, clients like any other: informer → queue → reconcile; blobs, scratch, workers"


def _box(x: float, y: float, width: float, height: float, fill: str, *, planned: bool = False) -> str:
    dash = ' stroke-dasharray="5 4"' if planned else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8" fill="{fill}" stroke="{EDGE}"{dash}/>'
    )


def _text(
    x: float, y: float, text: str, *, bold: bool = False, colour: str = INK, size: int = 14, middle: bool = False
) -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" {FONT} font-size="{size}" fill="{colour}"{weight}{anchor}>{escape(text)}</text>'


def _labelled(
    x: float, y: float, width: float, height: float, title: str, about: str, *, fill: str = PART
) -> list[str]:
    centre = x + width / 2
    return [
        _box(x, y, width, height, fill),
        _text(centre, y + height / 2 - 3, title, bold=True, size=13, middle=True),
        _text(centre, y + height / 2 + 14, about, colour=SOFT, size=11, middle=True),
    ]


def _row(
    y: float,
    cells: list[tuple[str, str]],
    fill: str,
    *,
    left: float = 28,
    width: float = 170,
    planned: bool = False,
) -> list[str]:
    drawn = []
    for number, (title, about) in enumerate(cells):
        x = left + number * (width + (8 if planned else 13.5))
        drawn.append(_box(x, y, width, 48, fill, planned=planned))
        drawn.append(_text(x + width / 2, y + (21 if about else 29), title, bold=True, size=13, middle=True))
        if about:
            drawn.append(_text(x + width / 2, y + 38, about, colour=SOFT, size=11, middle=True))
    return drawn


def _pipeline(y: float, steps: list[tuple[str, str, str]]) -> list[str]:
    drawn, width, gap = [], 158.0, 20.5
    for number, (title, *about) in enumerate(steps):
        x = 44 + number * (width + gap)
        drawn.append(_box(x, y, width, 72, PART))
        drawn.append(_text(x + width / 2, y + 24, title, bold=True, middle=True))
        lines = [line for line in about if line]
        drawn += [
            _text(x + width / 2, y + 43 + 16 * place, line, colour=SOFT, size=12, middle=True)
            for place, line in enumerate(lines)
        ]
        if number:
            drawn += _arrow(x - gap, y + 36, x, y + 36, "")
    return drawn


def _arrow(
    x1: float, y1: float, x2: float, y2: float, label: str, *, colour: str = "#475569", planned: bool = False
) -> list[str]:
    dash = ' stroke-dasharray="5 4"' if planned else ""
    line = (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="1.6"{dash} '
        'marker-end="url(#tip)"/>'
    )
    return [line, *([_text(x1 + 10, (y1 + y2) / 2 + 4, label, colour=SOFT, size=12)] if label else [])]


def _path(route: str, colour: str, *, planned: bool = False) -> str:
    dash = ' stroke-dasharray="5 4"' if planned else ""
    return f'<path d="{route}" fill="none" stroke="{colour}" stroke-width="1.6"{dash} marker-end="url(#tip)"/>'
