"""Charts by a real helm: what it makes, and what a chart that means harm comes to."""

from __future__ import annotations

import asyncio
import base64
import functools
import gzip
import hashlib
import io
import os
import resource
import shutil
import ssl
import tarfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.needs import TOOLS, needs
from tests.systems.platform.stage import Stage, condition_of, part_of
from tests.systems.platform.test_sources import Repository
from trimtab.client.protocol import Named
from trimtab.lab.git_http import GitHttp
from trimtab.model.redacted import Redacted
from trimtab.model.yaml import load_all
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.systems.platform.faults import Fault
from trimtab.systems.platform.kinds import Workload
from trimtab.systems.platform.rendering.helm import ChartFolder, Helm, RemoteChart, confined
from trimtab.testing.pki import Authority
from trimtab.testing.ports import free_ports

WORD = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {word: {{ .Values.word | quote }}}\n"
CRD = b"""apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.com}
spec:
  group: sea.example.com
  names: {kind: Ship, plural: ships, singular: ship, listKind: ShipList}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
"""
SHIP = b"apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: ann}\n"
HOOK = b"""apiVersion: v1
kind: ConfigMap
metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}
"""


def chart(templates: dict[str, bytes], **more: bytes) -> dict[str, bytes]:
    files = {"Chart.yaml": b"apiVersion: v2\nname: tiny\nversion: 0.1.0\n", "values.yaml": b"word: none\n"}
    return {**files, **{f"templates/{name}": content for name, content in templates.items()}, **more}


def packed(files: dict[str, bytes], *extra: tarfile.TarInfo, folder: str = "tiny/") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{folder}{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in extra:
            archive.addfile(info)
    return out.getvalue()


@pytest.fixture(scope="session")
def program() -> str:
    """On the path, or built by `make packages`."""
    found = shutil.which("helm", path=os.pathsep.join((os.environ.get("PATH", os.defpath), str(TOOLS))))
    if not found:
        needs("helm", hint="make packages builds it")
    return str(found)


@pytest.fixture
def helm(program: str) -> Helm:
    return Helm(program)


async def test_an_uploaded_chart_with_values_crds_and_hooks_is_applied(stage: Stage, helm: Helm) -> None:
    stage.helm = helm
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    files = chart({"a.yaml": WORD, "ship.yaml": SHIP, "hook.yaml": HOOK}, **{"crds/ship.yaml": CRD})
    stage.files["shop", "c.tgz"] = packed(files)
    stage.files["shop", "v.yaml"] = b"word: first\n"
    stage.files["shop", "w.yaml"] = b"word: last\n"
    values = [{"name": "v.yaml"}, {"name": "w.yaml"}]
    artifact = {"uploadedHelm": {"chartPath": {"name": "c.tgz"}, "valuesPaths": values}}
    async with stage.working():
        await stage.workload("team", "shop", "", ["one"], artifact=artifact)
        done = await stage.ready(Workload, "team", "shop")
        assert part_of(done, "one")["objects"] == 3
        maps = await one.config_maps("web")
        assert maps["shop"] == {"word": "last"}
        assert "hook" not in maps
        assert await one.has(Named("sea.example.com/v1", "Ship"), "ann", "web")
        await stage.change(
            Workload,
            "team",
            "shop",
            lambda spec: spec["artifact"]["uploadedHelm"].update(valuesPaths=list(reversed(values))),
        )
        await stage.until(Workload, "team", "shop", lambda w: w["status"]["digest"] != done["status"]["digest"])
        await stage.ready(Workload, "team", "shop")
        assert (await one.config_maps("web"))["shop"] == {"word": "first"}


async def test_a_chart_in_a_git_repository_is_rendered_and_its_links_are_not_followed(
    stage: Stage, helm: Helm, tmp_path: Path
) -> None:
    needs("git")
    stage.helm = helm
    await prepare(stage.hub, (System(name="gitops", kinds=(Repository,)),), rights=False)
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    with GitHttp(tmp_path / "git", free_ports(1)[0]) as server:
        server.repositories.create("charts")
        reads = (
            b'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: read}\ndata: {held: {{ .Files.Get "held" | quote }}}\n'
        )
        files = {f"deploy/{name}": body for name, body in chart({"a.yaml": WORD, "read.yaml": reads}).items()}
        files["deploy/held"] = str(tmp_path / "hush").encode()
        (tmp_path / "hush").write_text("hush")
        commit = server.repositories.commit("charts", files, modes={"deploy/held": "120000"})
        await stage.create(Repository, "team", "charts", {"endpoint": server.url("charts")})
        async with stage.working():
            artifact = {"helmInRepo": {"repository": "charts", "path": "deploy"}}
            await stage.workload("team", "shop", "", ["one"], artifact=artifact)
            done = await stage.ready(Workload, "team", "shop")
    assert done["status"]["revision"] == commit
    maps = await one.config_maps("web")
    assert maps["shop"] == {"word": "none"}
    assert maps["read"] == {"held": ""}


class Shelf(ThreadingHTTPServer):
    """A Helm repository: an index and its charts, for who knows the password if there is one."""

    daemon_threads = True

    def __init__(self, folder: Path, *, tls: bool, password: str = "") -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.password = password
        super().__init__(("127.0.0.1", 0), Page)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server_port}"
        self.ca = ""
        if tls:
            folder.mkdir()
            authority = Authority(folder)
            pair = authority.server("127.0.0.1")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair.certificate, pair.key)
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self.ca = authority.certificate.read_text()
        self._thread = threading.Thread(target=functools.partial(self.serve_forever, 0.02))
        self._thread.start()

    def put(self, version: str, files: dict[str, bytes], *, url: str = "") -> None:
        content = packed(files)
        name = f"tiny-{version}.tgz"
        self.files[f"/{name}"] = content
        entries = self.files.get("/index.yaml", b"apiVersion: v1\nentries:\n  tiny:\n").decode()
        digest = hashlib.sha256(content).hexdigest()
        entries += f"  - {{apiVersion: v2, name: tiny, version: {version}, digest: {digest}, urls: [{url or name}]}}\n"
        self.files["/index.yaml"] = entries.encode()

    def end(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Of a client that goes in the midst, as one that does not trust us."""


class Page(BaseHTTPRequestHandler):
    server: Shelf

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        told = base64.b64encode(f"ann:{self.server.password}".encode()).decode()
        content = self.server.files.get(self.path)
        code = 200 if content is not None else 404
        if self.server.password and self.headers.get("Authorization") != f"Basic {told}":
            code, content = 401, b""
        self.send_response(code)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(tmp_path / "pki", tls=True, password="pass-of-ann")
    made.put("0.1.0", chart({"a.yaml": WORD}))
    yield made
    made.end()


async def test_a_chart_of_a_repository_is_fetched_by_its_version_over_verified_tls(helm: Helm, shelf: Shelf) -> None:
    wanted = RemoteChart(
        endpoint=shelf.url, chart="tiny", version="0.1.0", username="ann", password=Redacted("pass-of-ann"), ca=shelf.ca
    )
    assert b'word: "hello"' in await helm.template("shop", wanted, [b"word: hello"], "web")
    assert set(shelf.asked) == {"/index.yaml", "/tiny-0.1.0.tgz"}


@pytest.mark.parametrize("lacks", ["ca", "password", "version"])
async def test_a_repository_that_is_not_trusted_or_does_not_know_us_gives_nothing(
    helm: Helm, shelf: Shelf, lacks: str
) -> None:
    wanted = RemoteChart(
        endpoint=shelf.url,
        chart="tiny",
        version="9.9.9" if lacks == "version" else "0.1.0",
        username="ann",
        password=Redacted("wrong-pass" if lacks == "password" else "pass-of-ann"),
        ca="" if lacks == "ca" else shelf.ca,
    )
    with pytest.raises(Fault) as failed:
        await helm.template("shop", wanted, [], "web")
    assert failed.value.reason == ("HelmFailed" if lacks == "version" else "RepositoryUnreadable")
    assert failed.value.again
    told = {"ca": "certificate", "password": "401", "version": "9.9.9"}
    assert told[lacks] in failed.value.message
    assert "pass" not in failed.value.message


async def test_a_range_of_versions_follows_the_repository_and_a_version_is_fetched_once(
    stage: Stage, helm: Helm, tmp_path: Path
) -> None:
    stage.helm = helm
    await prepare(stage.hub, (System(name="gitops", kinds=(Repository,)),), rights=False)
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    shelf = Shelf(tmp_path / "pki", tls=False)
    try:
        shelf.put("0.1.0", chart({"a.yaml": WORD}))
        await stage.create(Repository, "team", "charts", {"endpoint": shelf.url, "type": "helm"})
        source = {"repository": "charts", "chart": "tiny", "version": "~0.1.0"}
        async with stage.working():
            await stage.workload("team", "shop", "", ["one"], artifact={"helmInRepo": source})
            done = await stage.ready(Workload, "team", "shop")
            shelf.put("0.1.1", chart({"a.yaml": WORD}, **{"values.yaml": b"word: newer\n"}))
            await stage.nudge(Workload, "team", "shop")
            await stage.until(Workload, "team", "shop", lambda w: w["status"]["digest"] != done["status"]["digest"])
            assert (await one.config_maps("web"))["shop"] == {"word": "newer"}
            source["version"] = "0.1.0"
            await stage.change(Workload, "team", "shop", lambda spec: spec.update(artifact={"helmInRepo": source}))
            await stage.until(Workload, "team", "shop", lambda w: w["status"]["digest"] == done["status"]["digest"])
            await stage.ready(Workload, "team", "shop")
            asked = len(shelf.asked)
            one.wire.calls.clear()
            await stage.nudge(Workload, "team", "shop")
            await one.wire.seen(bool)
            assert len(shelf.asked) == asked
    finally:
        shelf.end()


async def test_a_chart_knows_nothing_of_clusters_and_names_on_the_network(helm: Helm) -> None:
    template = b"""apiVersion: v1
kind: ConfigMap
metadata: {name: seen}
data:
  found: {{ lookup "v1" "Namespace" "" "kube-system" | toJson | quote }}
  address: {{ getHostByName "localhost" | quote }}
  home: {{ .Files.Get "../../etc/passwd" | quote }}
"""
    text = await helm.template("shop", ChartFolder(files=chart({"a.yaml": template})), [], "web")
    data = next(iter(load_all(text.decode())))["data"]
    assert data == {"found": "{}", "address": "", "home": ""}


def _link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


async def test_an_archive_that_leads_out_of_its_folder_writes_and_reads_nothing(helm: Helm, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("hush")
    reads = b'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: r}\ndata: {held: {{ .Files.Get "held" | quote }}}\n'
    linked = packed(chart({"a.yaml": reads}), _link("tiny/held", str(outside)))
    assert b"hush" not in await helm.template("shop", linked, [], "web")
    climbing = packed({**chart({"a.yaml": WORD}), f"../../../../../../..{tmp_path}/evil": b"x"})
    with pytest.raises(Fault, match="helm ended with 1"):
        await helm.template("shop", climbing, [], "web")
    assert not (tmp_path / "evil").exists()


ENDLESS = b"{{ range until 9000 }}{{ range until 9000 }}{{ $x := . }}{{ end }}{{ end }}" * 200
EACH = b'---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: "a{{ . }}"}\ndata: {x: "{{ repeat 10000 "x" }}"}\n'
HUGE = b"{{ range until 1800 }}" + EACH + b"{{ end }}"
HUNGRY = b'{{ $x := list }}{{ range until 4000 }}{{ $x = append $x (repeat 1000000 "x") }}{{ end }}{{ len $x }}'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "says"),
    [(ENDLESS, "did not finish"), (HUGE, "more than 16 MiB"), (HUNGRY, "helm ended with")],
    ids=["endless", "huge", "hungry"],
)
async def test_a_chart_has_limits_of_time_output_and_memory(program: str, template: bytes, says: str) -> None:
    helm = Helm(program, time=1.0 if template is ENDLESS else 60.0)
    begin = time.monotonic()
    with pytest.raises(Fault) as failed:
        await helm.template("shop", ChartFolder(files=chart({"a.yaml": template})), [], "web")
    assert says in failed.value.message
    assert not failed.value.again, "the same chart would fail in the same way"
    assert time.monotonic() - begin < 30


@pytest.mark.slow
async def test_an_archive_that_unfolds_without_end_is_refused(helm: Helm) -> None:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb") as stream:
        files = io.BytesIO()
        with tarfile.open(fileobj=files, mode="w") as archive:
            for name, content in chart({"a.yaml": WORD}, held=b"\0" * (150 << 20)).items():
                info = tarfile.TarInfo(f"tiny/{name}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        stream.write(files.getvalue())
    with pytest.raises(Fault, match="larger than the maximum"):
        await helm.template("shop", out.getvalue(), [], "web")


async def test_a_chart_that_cannot_be_rendered_says_where_and_hides_sensitive_values(stage: Stage, helm: Helm) -> None:
    stage.helm = helm
    await stage.namespace("team")
    await stage.imported("team", "one")
    stage.files["shop", "c.tgz"] = packed(chart({"a.yaml": b'{{ fail (printf "the word is %s" .Values.word) }}'}))
    stage.files["shop", "v.yaml"] = b"word: hush\n"
    values = {"name": "v.yaml"}
    artifact: dict[str, Any] = {"uploadedHelm": {"chartPath": {"name": "c.tgz"}, "valuesPaths": [values]}}
    async with stage.working():
        await stage.workload("team", "shop", "", ["one"], artifact=artifact)
        told = await stage.condition(Workload, "team", "shop", "Rendered", "False", "HelmFailed")
        assert "templates/a.yaml" in condition_of(told, "Rendered")["message"]
        values["sensitive"] = True  # type: ignore[assignment]
        await stage.change(Workload, "team", "shop", lambda spec: spec.update(artifact=artifact))
        told = await stage.condition(Workload, "team", "shop", "Rendered", "False", "HelmFailed")
        assert "hush" not in str(told["status"])


class Counting(Helm):
    """Counts those that are at it."""

    now = most = 0

    async def _templated(self, *given: Any) -> bytes:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(5):
            await asyncio.sleep(0)  # the others have their turn
        self.now -= 1
        return b""


async def test_no_more_than_a_few_run_at_a_time(program: str) -> None:
    helm = Counting(program)
    await asyncio.gather(*(helm.template("r", b"x", [], "web") for _ in range(9)))
    assert helm.most == 4


async def test_limits_that_are_stricter_already_stay() -> None:
    process = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, 4096))
        confined(process.pid)
        assert resource.prlimit(process.pid, resource.RLIMIT_FSIZE) == (4096, 4096)
        assert resource.prlimit(process.pid, resource.RLIMIT_DATA) == (1 << 30, 1 << 30)
        assert resource.prlimit(process.pid, resource.RLIMIT_CORE) == (0, 0)
    finally:
        process.kill()
        await process.wait()
    confined(process.pid)  # it ended: nothing to do
