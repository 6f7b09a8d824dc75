"""The pictures of the documentation, made by the project itself: `make docs`.

    python scripts/pictures.py [FOLDER]        # docs/pictures unless told

Terminal pictures show a tour of a server that is started for it; the diagrams are drawn by `diagram.py`. What differs
from run to run (ages, ports) is replaced, so that an unchanged project gives unchanged files.
"""

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from diagram import architecture, delivery, discovery, images, operators, rest
from diagram_hub import gitops, hub
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.processes import Process

ROOT = Path(__file__).resolve().parent.parent
WIDTH, WIDE = 96, 112
BLACK, RED, GREEN, YELLOW = (57, 64, 76), (240, 113, 120), (140, 212, 122), (240, 198, 116)
BLUE, MAGENTA, CYAN, WHITE = (122, 170, 245), (199, 146, 234), (110, 205, 220), (214, 222, 235)
COLOURS = [BLACK, RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN, WHITE]
THEME = TerminalTheme((22, 27, 34), WHITE, COLOURS, [*COLOURS[:-1], (255, 255, 255)])
# Without a font from the network: a picture must look the same wherever it is shown.
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""

CONFLICT = """\
apiVersion: ground.example.com/v1
kind: Beacon
metadata: {name: north}
spec: {color: green}
"""

OPERATOR = (
    "kubectl apply -f examples/operator/lighthouses.yaml",
    "kubectl wait lighthouses --all --for=condition=Ready",
    "kubectl get lighthouses",
    "trimtab tree lighthouse roter-sand",
    "kubectl delete configmap roter-sand-logbook",
    "kubectl wait configmap/roter-sand-logbook --for=jsonpath='{.data.light}'=red",
    "kubectl delete harbour bremerhaven",
    "kubectl wait lighthouse/roter-sand --for=condition=Ready=false",
    'kubectl patch lighthouse pharos --type=merge -p \'{"spec":{"light":"black"}}\'',
    "kubectl events --for=lighthouse/roter-sand",
)
"""An operator at work: it makes what is declared, brings back what was deleted, says what is missing, refuses what is wrong."""

DEVICES = (
    "kubectl apply -f examples/discovery/vendors/ -f examples/discovery/ | tail -3",
    "kubectl wait discoveryrule/lab --for=condition=Ready --timeout=60s",
    "kubectl get targets",
    "trimtab discovery why 127.10.0.8",
    "trimtab discovery plan lab",
    "trimtab discovery run lab 2>/dev/null",
)
"""Discovery at work: devices are found, one refuses the password, and a sweep has its price."""

REGISTRY = (
    "trimtab images import-db examples/images/osv 2>/dev/null",
    "kubectl apply -f examples/images/registry.yaml -f examples/images/vex.yaml",
    "kubectl wait registry/lab --for=condition=Ready --timeout=60s",
    "trimtab images discover lab --until Reports 2>/dev/null",
    "kubectl get vulnerabilityreports | cut -c56-",
    "trimtab images report team/web:1.0 --severity high",
)
"""Image discovery at work: a registry is listed, one image is damaged, the others have their SBOMs and reports."""

SCALE_SET = (
    "kubectl create configmap compute --from-file=examples/rest/compute.json",
    "kubectl apply -f examples/rest/service.yaml -f examples/rest/definitions.yaml | grep restd",
    "kubectl wait restdefinitions --all --for=condition=Ready --timeout=60s | wc -l",
    "kubectl apply -f examples/rest/scaleset.yaml",
    "kubectl wait vmss/web --for=condition=Ready --timeout=60s",
    "python examples/rest/requests.py | cut -c-104",
    "kubectl scale vmss web --replicas=5",
    "kubectl wait vmss/web --for=jsonpath='{.status.observed.sku.capacity}'=5 --timeout=60s",
    "python examples/rest/requests.py",
    'kubectl patch vmss web --type=merge -p \'{"spec":{"location":"eastus","sku":{"capcity":3}}}\'',
)
"""The generic reconciler at work: kinds from a document, a change that is one PATCH, and one that is refused."""

RELEASES = (
    "kubectl apply -f examples/delivery/shop.yaml",
    "kubectl wait canary/shop --for=condition=Ready --timeout=60s",
    'sed \'s/"1"/"2"/\' examples/delivery/shop.yaml | kubectl apply -f -',
    "kubectl wait canary/shop --for=jsonpath='{.status.run.verifiedWeight}'=30 --timeout=60s",
    "trimtab canary status shop | head -6",
    "kubectl wait canary/shop --for=condition=Ready --timeout=60s",
    'sed \'s/"1"/"3", --errors, "0.1"/\' examples/delivery/shop.yaml | kubectl apply -f -',
    "kubectl wait canary/shop --for=jsonpath='{.status.conditions[?(@.type==\"Ready\")].reason}'=RolledBack --timeout=60s",
    "kubectl get canary shop",
    "kubectl events --for canary/shop | cut -c13-37,62-",
    "trimtab canary replay shop --set request-success-rate.min=80 | tail -2",
)
"""Canary delivery at work: a good release, a bad one, and what a milder threshold would have made of that."""

SYNC = (
    "kubectl apply -f examples/gitops/sync.yaml",
    "kubectl config set-context --current --namespace=shop",
    "kubectl wait gitsync/fleet --for=condition=Ready --timeout=60s",
    "git clone -q -c user.name=Bo -c user.email=bo@example.com git://127.0.0.1:7418/fleet.git",
    'kubectl patch configmap settings --type=merge -p \'{"data":{"limit":"350"}}\'',
    "trimtab git sync fleet 2>/dev/null",
    "git -C fleet pull -q; git -C fleet log -1 --patch --format='%an: %s' --unified=1 | sed '2,5d'",
    "trimtab git suspend fleet",
    'sed -i \'s/"350"/"400"/\' fleet/settings.yaml; git -C fleet rm -q teams.yaml',
    "git -C fleet commit -qam 'Fewer teams, more requests'; git -C fleet push -q",
    'kubectl patch configmap settings --type=merge -p \'{"data":{"limit":"450"}}\'',
    "trimtab git plan fleet",
    "trimtab git resume fleet; trimtab git sync fleet 2>/dev/null",
    "kubectl get syncconflicts -o jsonpath='{.items[0].spec.fields}{\"\\n\"}'",
    'kubectl patch $(kubectl get syncconflicts -o name) --type=merge -p \'{"spec":{"resolution":"system"}}\'',
    "trimtab git confirm fleet; trimtab git sync fleet 2>/dev/null",
)
"""Git sync at work: a change by kubectl is a commit; a conflict and deletions wait for a person."""

PLATFORM = (
    "kubectl apply -f examples/hub/platform.yaml",
    "kubectl wait project/shop --for=condition=Ready --timeout=60s",
    "kubectl config set-context --current --namespace=shop",
    "for each in limits rules; do trimtab hub artifacts put addon/$each $each.yaml examples/hub/manifests/$each.yaml; done",
    "kubectl create secret generic edge-1 --from-file=kubeconfig=edge/data/kubeconfig",
    "kubectl apply -f examples/hub/cluster.yaml",
    "kubectl wait cluster/edge-1 --for=condition=Ready --timeout=60s",
    "kubectl --kubeconfig edge/data/kubeconfig get configmaps -n shop-system",
    'kubectl patch blueprint edge --type=merge -p \'{"spec":{"version":"v1"}}\'',
    'kubectl patch blueprint edge --type=merge -p \'{"spec":{"addons":[{"name":"limits"}]}}\'',
    "kubectl apply -f examples/hub/workload.yaml",
    "trimtab hub artifacts put workload/web web.yaml examples/hub/manifests/web.yaml",
    "kubectl wait workload/web --for=condition=Ready --timeout=60s",
    "kubectl get clusters,workloads",
)
"""The hub at work: a blueprint on a cluster, a version that does not change, a workload."""

HARBOUR = (
    "trimtab terraform install | head -4",
    "cp -r examples/terraform harbour",
    "terraform -chdir=harbour init | grep Installed",
    "terraform -chdir=harbour apply -auto-approve | grep complete!",
    "terraform -chdir=harbour plan | grep 'No changes'",
    'kubectl patch registry store -n harbour --type=merge -p \'{"spec":{"uri":"https://elsewhere.example.com"}}\'',
    "terraform -chdir=harbour plan | grep '~' | head -4",
    "terraform -chdir=harbour apply -auto-approve | grep complete!",
)
"""Terraform at work: the provider is installed, a plan after an apply is empty, drift is shown and taken back."""

TOUR: dict[str, tuple[str, ...]] = {
    "kubectl": (
        "kubectl apply -f examples/ground/crd.yaml",
        "kubectl wait --for=condition=Established crd/beacons.ground.example.com",
        "kubectl apply --server-side -f examples/ground/beacons.yaml",
        "kubectl get beacons -o wide",
        "kubectl explain beacon.spec.color",
        'kubectl patch beacon north --type=merge -p \'{"spec":{"site":"hill"}}\'',
        "kubectl scale beacon north --replicas=3",
    ),
    "access": (
        "kubectl apply -f examples/ground/rbac.yaml",
        'kubectl config set-credentials keeper --token="$(kubectl create token keeper)"',
        "kubectl config set-context keeper --cluster=trimtab --user=keeper",
        "kubectl --context=keeper get beacons",
        "kubectl --context=keeper delete beacon north",
        "kubectl auth can-i list beacons --as=system:serviceaccount:default:keeper",
        "kubectl auth can-i list secrets --as=system:serviceaccount:default:keeper",
    ),
    "trimtab": (
        "trimtab apply -f examples/ground/deployment.yaml",
        "trimtab get deployments,beacons",
        "trimtab tree deployment web",
        "trimtab wait beacon/north --for='jsonpath={.spec.replicas}=3'",
        "trimtab apply -f green.yaml --field-manager=painter",
        "trimtab describe beacon south",
    ),
}
"""The commands of each picture, in order: what one leaves behind the next finds."""


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "architecture.svg").write_text(architecture())
    (folder / "operators.svg").write_text(operators())
    (folder / "discovery.svg").write_text(discovery())
    (folder / "images.svg").write_text(images())
    (folder / "rest.svg").write_text(rest())
    (folder / "delivery.svg").write_text(delivery())
    (folder / "hub.svg").write_text(hub())
    (folder / "gitops.svg").write_text(gitops())
    with tempfile.TemporaryDirectory() as place:
        operator(folder, Path(place))
    with tempfile.TemporaryDirectory() as place:
        devices(folder, Path(place))
    with tempfile.TemporaryDirectory() as place:
        registry(folder, Path(place))
    with tempfile.TemporaryDirectory() as place:
        scale_set(folder, Path(place))
    with tempfile.TemporaryDirectory() as place:
        releases(folder, Path(place))
    with tempfile.TemporaryDirectory() as place:
        sync(folder, Path(place))
    with tempfile.TemporaryDirectory() as place:
        platform(folder, Path(place))
    with tempfile.TemporaryDirectory() as place:
        terraform(folder, Path(place))
    with tempfile.TemporaryDirectory() as place, TrimtabServer(Path(place)) as server:
        stage = Stage(Path(place), server.kubeconfig)
        stage.settle()
        ready = Path(place, "trimtab.log").read_text().replace(str(server.kubeconfig.parent), ".trimtab")
        save(folder, "up", "make up", up(stage, normal(ready)))
        for name, commands in TOUR.items():
            save(folder, name, name, [(command, stage.run(command)) for command in commands])


def operator(folder: Path, place: Path) -> None:
    """The operator of the examples, beside a server."""
    file = ROOT / "examples" / "operator" / "lighthouses.py"
    with TrimtabServer(place, flags=("--operator", str(file), "--log-format", "text")) as server:
        stage = Stage(place, server.kubeconfig)
        server.wait_until(lambda: "controller works" in server.log(), within=60)
        started = f"trimtab is ready at {server.url}  kubeconfig .trimtab/kubeconfig"
        scenes = [(command, stage.run(command)) for command in OPERATOR]
        command = "trimtab up --operator examples/operator/lighthouses.py"
        save(folder, "operator", "an operator", [(command, normal(started)), ("", ""), *scenes])


def devices(folder: Path, place: Path) -> None:
    """The example of network discovery, with its fleet."""
    log = place / "fleet.log"
    fleet = [sys.executable, "-m", "trimtab.lab.fleet"]
    with TrimtabServer(place, flags=("--systems", "discovery")) as server, Process(fleet, log=log) as started:
        stage = Stage(place, server.kubeconfig, WIDE)
        server.wait_until(lambda: "controller works" in server.log(), within=60)
        started.wait_until(lambda: "Ctrl-C ends it" in log.read_text(), within=60)
        scenes = [(command.removesuffix(" 2>/dev/null"), stage.run(command)) for command in DEVICES]
        save(folder, "devices", "network discovery", [("python -m trimtab.lab.fleet &", ""), *scenes], WIDE)


def registry(folder: Path, place: Path) -> None:
    """The example of image discovery, with its registry."""
    log = place / "registry.log"
    command = [sys.executable, "-m", "trimtab.lab.registry_demo"]
    with TrimtabServer(place, flags=("--systems", "images")) as server, Process(command, log=log) as started:
        stage = Stage(place, server.kubeconfig, WIDE)
        server.wait_until(lambda: "controller works" in server.log(), within=60)
        started.wait_until(lambda: "Ctrl-C ends it" in log.read_text(), within=60)
        scenes = [(command.removesuffix(" 2>/dev/null"), stage.run(command)) for command in REGISTRY]
        save(folder, "images-tour", "image discovery", [("python -m trimtab.lab.registry_demo &", ""), *scenes], WIDE)


def scale_set(folder: Path, place: Path) -> None:
    """The example of the generic reconciler, with its emulator."""
    words = "trimtab.lab.arm examples/rest/compute.json --port 7490 --token lab"
    emulator = [sys.executable, "-m", *words.replace("examples", str(ROOT / "examples")).split()]
    log = place / "arm.log"
    with TrimtabServer(place, flags=("--systems", "rest")) as server, Process(emulator, log=log) as started:
        stage = Stage(place, server.kubeconfig, WIDE)
        server.wait_until(lambda: "controller works" in server.log(), within=60)
        started.wait_until(lambda: "127.0.0.1:7490" in log.read_text(), within=60)
        scenes = [(command, stage.run(command).replace(":7443", ":7490")) for command in SCALE_SET]
        save(folder, "rest-tour", "any REST API", [(f"python -m {words} &", ""), *scenes], WIDE)


def releases(folder: Path, place: Path) -> None:
    """The example of canary delivery, with steady requests."""
    flags = ("--local-workloads", "--systems", "delivery")
    load = "trimtab.lab.load http://127.20.0.80:8000/"
    with TrimtabServer(place, flags=flags) as server:
        stage = Stage(place, server.kubeconfig, WIDE)
        server.wait_until(lambda: "controller works" in server.log(), within=60)
        scenes = [(command, stage.run(command)) for command in RELEASES[:2]]
        log = place / "load.log"
        with Process([sys.executable, "-m", *load.split()], log=log) as started:
            started.wait_until(lambda: "version 1" in log.read_text(), within=60)
            scenes += [(f"python -m {load} > load.log &", "")]
            scenes += [(command, measured(stage.run(command))) for command in RELEASES[2:]]
    up = "trimtab up --local-workloads --systems delivery &"
    save(folder, "delivery-tour", "canary delivery", [(up, ""), *scenes], WIDE)


def sync(folder: Path, place: Path) -> None:
    """The example of Git sync, with its Git server."""
    words = "trimtab.lab.git_demo examples/gitops/fleet"
    log = place / "git.log"
    command = [sys.executable, "-m", *words.replace("examples", str(ROOT / "examples")).split()]
    with TrimtabServer(place, flags=("--systems", "gitops,platform")) as server, Process(command, log=log) as started:
        stage = Stage(place, server.kubeconfig, WIDE)
        server.wait_until(lambda: '"gitsync", "event": "controller works"' in server.log(), within=60)
        started.wait_until(lambda: "Ctrl-C ends it" in log.read_text(), within=60)
        scenes = [(command.removesuffix(" 2>/dev/null"), committed(stage.run(command))) for command in SYNC]
    save(folder, "gitops-tour", "Git sync", [(f"python -m {words} &", ""), *scenes], WIDE)


def committed(text: str) -> str:
    """With the same commits each time."""
    return re.sub(r"(?<=sync with )[0-9a-f]{12}\b", "25072fac2877", text)


def platform(folder: Path, place: Path) -> None:
    """The example of the hub, with a second server that plays a cluster."""
    (place / "edge").mkdir()
    with (
        TrimtabServer(place, flags=("--systems", "platform")) as server,
        TrimtabServer(place / "edge", flags=("--systems", "none")),
    ):
        stage = Stage(place, server.kubeconfig, WIDE)
        server.wait_until(lambda: '"workload", "event": "controller works"' in server.log(), within=60)
        scenes = [(command.replace("edge/data", ".trimtab/edge"), stage.run(command)) for command in PLATFORM]
    up = "trimtab up --data-dir .trimtab/edge --port 7543 --systems none &"
    save(folder, "hub-tour", "the hub", [("trimtab up &", ""), (up, ""), *scenes], WIDE)


def terraform(folder: Path, place: Path) -> None:
    """The example of Terraform, from the install on."""
    with TrimtabServer(place) as server:
        stage = Stage(place, server.kubeconfig, WIDE)
        scenes = [(command, _at_home(stage.run(command), place)) for command in HARBOUR]
    save(folder, "terraform-tour", "Terraform", [("trimtab up &", ""), *scenes], WIDE)


def _at_home(text: str, place: Path) -> str:
    """With the same home and the same hash each time."""
    return re.sub(r"h1:\S+", "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", text.replace(str(place), "~"))


def measured(text: str) -> str:
    """Without what no two runs measure alike."""
    text = re.sub(r"\d{8}t\d{6}-", "20260101t120000-", text)
    text = re.sub(r"\d\d:\d\d:\d\d", "12:00:00", text)
    text = re.sub(r"[\d.]+ % of \d+ requests", "90.91 % of 99 requests", text)
    return re.sub(r"began \d+s ago", "began 6s ago", re.sub(r"next in \d+ s", "next in 5 s", text))


class Stage:
    """Where the commands run: a folder with the examples in it, and nothing of the user's own."""

    def __init__(self, folder: Path, kubeconfig: Path, width: int = WIDTH) -> None:
        self._folder, self._width = folder, width
        (folder / "examples").symlink_to(ROOT / "examples")
        (folder / "green.yaml").write_text(CONFLICT)
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        tools = os.environ.get("TRIMTAB_TOOLS") or cache / "trimtab" / "tools" / "bin"  # as scripts/packages.sh has it
        self._env = {
            "PATH": os.pathsep.join(map(str, (Path(sys.executable).parent, os.environ["PATH"], tools))),
            "HOME": str(folder),
            "TERM": "xterm-256color",
            "KUBECONFIG": str(kubeconfig),
        }

    def run(self, command: str) -> str:
        """What a command says on a terminal of the picture's width, colours included."""
        ours, its = pty.openpty()
        termios.tcsetwinsize(its, (50, self._width))
        process = subprocess.Popen(command, shell=True, cwd=self._folder, env=self._env, stdout=its, stderr=its)
        os.close(its)
        said = b"".join(iter(lambda: _read(ours), b""))
        os.close(ours)
        process.wait(timeout=60)
        return normal(said.decode())

    def settle(self) -> None:
        """Wait until the namespaces have what belongs in them."""
        for _ in range(100):
            if "default" in self.run("kubectl get serviceaccounts -n kube-public"):
                return
            time.sleep(0.05)


def _read(terminal: int) -> bytes:
    """The next bytes; none at the end, which a terminal tells by an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def up(stage: Stage, ready: str) -> list[tuple[str, str]]:
    commands = ("export KUBECONFIG=.trimtab/kubeconfig", "kubectl version | grep Server", "kubectl get namespaces")
    shown = [(command, "" if command.startswith("export") else stage.run(command)) for command in commands]
    return [("make up", ready), ("", ""), *shown]


def normal(text: str) -> str:
    """Without what differs from run to run; columns keep their places."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-01-01T12:00:00Z", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:7443", text)
    text = re.sub(r"(?<![\w.-])\d+(ms|s)(?= ago|\s|$)", lambda found: "1s".ljust(len(found[0])), text)
    text = re.sub(r"(?i)(?<=succeeded in )\d+ s", "2 s", text)
    text = re.sub(r"(?<=discoveryjob/lab-)[a-z0-9]{5}", "x7k2p", text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def save(folder: Path, name: str, title: str, scenes: Sequence[tuple[str, str]], width: int = WIDTH) -> None:
    """A picture of commands and what they say."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="standard")
    for command, said in scenes:
        if command:
            console.print(Text.assemble(("$ ", "green"), (command, "bold bright_white")))
        if said or not command:
            console.print(Text.from_ansi(said), highlight=False)
    svg = console.export_svg(title=title, theme=THEME, code_format=FORMAT, unique_id=name)
    (folder / f"{name}.svg").write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")


if __name__ == "__main__":
    main()
