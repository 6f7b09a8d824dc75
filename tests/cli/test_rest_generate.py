"""`trimtab rest generate`, as people run it: what it prints and writes, what servers make of it, what it says when it cannot."""

from __future__ import annotations

import base64
import gzip
import http.server
import json
import random
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Program, Zygote, environment
from tests.cli.rest_kit import ZONES, quiet, titled
from tests.e2e.kubectl import Kubectl, newest
from tests.needs import needs
from trimtab.model.document import convert
from trimtab.model.yaml import load_all
from trimtab.systems.rest.compiling.compile import compile_model
from trimtab.systems.rest.kinds import RestDefinition, RestService
from trimtab.systems.rest.model import ENCODER
from trimtab.systems.rest.openapi import Document, from_path, load
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import ApiServer

__all__ = ["quiet"]

ROOT = Path(__file__).parents[2]
COMPUTE = ROOT / "examples/rest/compute.json"
REAL = ROOT.parent / "shared" / "data" / "azure-specs"


def parts(text: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for document in load_all(text):
        found.setdefault(document["kind"], []).append(document)
    return found


def document_of(service: dict[str, Any], kept: dict[str, Any]) -> Document:
    """As the system loads it from the ConfigMap."""
    where = service["spec"]["document"]["configMap"]
    assert (where["name"], where["namespace"]) == (kept["metadata"]["name"], kept["metadata"]["namespace"])
    files = {name: base64.b64decode(content) for name, content in kept["binaryData"].items()}
    return load(files, where["key"])


@pytest.fixture
def zones(bare: Program) -> Program:
    bare.write("zones.json", json.dumps(ZONES))
    return bare


def test_it_prints_all_that_a_cluster_needs_for_the_kinds(zones: Program) -> None:
    ran = zones("rest", "generate", "zones.json")
    assert ran.code == 0, ran.err
    found = parts(ran.out)
    assert list(found) == [
        "CustomResourceDefinition",
        "ClusterRole",
        "ClusterRoleBinding",
        "ValidatingWebhookConfiguration",
        "RestDefinition",
    ]
    (crd,) = found["CustomResourceDefinition"]
    assert crd["metadata"]["name"] == "zones.zones.rest.trimtab.dev"
    (definition,) = found["RestDefinition"]
    assert definition["spec"]["names"] == {"kind": "Zone", "plural": "zones"}
    assert definition["spec"]["serviceRef"] == "zones"


def test_with_an_endpoint_the_service_and_its_document_are_there_too(zones: Program) -> None:
    ran = zones("rest", "generate", "zones.json", "--service", "dns", "--endpoint", "http://127.0.0.1:8081")
    found = parts(ran.out)
    (service,), (kept,) = found["RestService"], found["ConfigMap"]
    assert service["metadata"]["name"] == "dns"
    assert service["spec"]["endpoint"] == "http://127.0.0.1:8081"
    assert ("PUT", "/zones/{zone}") in document_of(service, kept).operations


def test_it_writes_files(zones: Program) -> None:
    ran = zones("rest", "generate", "zones.json", "--out", "made")
    names = ["service.yaml", "definitions.yaml", "crds.yaml", "cluster.yaml", "kinds.py", "docs.md"]
    assert ran.lines == [f"made/{name}" for name in names]
    assert ran.err == "1 kinds of zones\n"
    folder = zones.folder / "made"
    assert "class Zone(" in (folder / "kinds.py").read_text()
    assert "## Zone" in (folder / "docs.md").read_text()
    (service,) = parts((folder / "service.yaml").read_text())["RestService"]
    assert service["spec"]["endpoint"] == "https://dns.example.com", "as the document says"


def test_what_was_generated_can_be_corrected_and_generated_again(zones: Program) -> None:
    assert zones("rest", "generate", "zones.json", "--service", "dns", "--out", "made").code == 0
    path = zones.folder / "made/definitions.yaml"
    (definition,) = load_all(path.read_text())
    definition["spec"]["names"] = {"kind": "Area", "plural": "areas"}
    definition["spec"]["overlay"] = {"fields": {"ttl": {"class": "create-only"}}}
    path.write_text(json.dumps(definition))
    ran = zones("rest", "generate", "zones.json", "--definitions", "made/definitions.yaml")
    assert ran.code == 0, ran.err
    (crd,) = parts(ran.out)["CustomResourceDefinition"]
    assert crd["metadata"]["name"] == "areas.dns.rest.trimtab.dev"
    ran = zones(
        "rest", "explain", "areas", "--spec", "zones.json", "--definition", "made/definitions.yaml", "-o", "json"
    )
    classes = {row["path"]: (row["class"], row["why"]) for row in json.loads(ran.out)["fields"]}
    assert classes["ttl"] == ("create-only", "overlay")


def test_only_some_kinds(bare: Program) -> None:
    ran = bare("rest", "generate", str(COMPUTE), "--only", "VirtualMachineScaleSet,Subnet", "--only", "virtualnetworks")
    assert ran.code == 0, ran.err
    kinds = {each["spec"]["names"]["kind"]: each["spec"].get("parent") for each in parts(ran.out)["RestDefinition"]}
    assert kinds == {"VirtualMachineScaleSet": None, "Subnet": "VirtualNetwork", "VirtualNetwork": None}


def test_a_part_asks_for_the_parameters_that_its_parent_does_not_have(bare: Program) -> None:
    machines = str(ROOT / "tests/systems/rest/documents/machines.yaml")
    ran = bare("rest", "generate", machines, "--endpoint", "https://machines.example.com", "--out", "made")
    assert ran.code == 0, ran.err
    page = (bare.folder / "made/docs.md").read_text().partition("\n## Volume\n")[2].partition("\n## ")[0]
    assert "- A part of: [StoragePool](#storagepool), named in `spec.parent`." in page
    assert "- Needs in `spec.parameters`: `type`." in page


def test_reads_that_may_be_joined_are_named_where_they_can_be_added(bare: Program) -> None:
    document = titled("blue", "1", "things")
    (path,) = document["paths"]
    read = document["paths"][path]
    document["paths"][f"{path}/view"] = {"parameters": read["parameters"], "get": read["get"]}
    bare.write("it.json", json.dumps(document))
    ran = bare("rest", "generate", "it.json")
    (hint,) = [line for line in ran.lines if line.startswith("#")]
    assert hint.endswith(': "view"')


def compiled(definitions: list[dict[str, Any]], service: dict[str, Any], document: Document) -> list[bytes]:
    spec = convert(service, RestService).spec
    return [
        ENCODER.encode(
            compile_model(document, convert(each, RestDefinition), service=spec, service_name="it", group="it.example")
        )
        for each in definitions
    ]


def test_the_packed_document_gives_the_same_kinds_as_the_whole(bare: Program) -> None:
    ran = bare("rest", "generate", str(COMPUTE), "--endpoint", "https://management.azure.com")
    found = parts(ran.out)
    (service,), (kept,) = found["RestService"], found["ConfigMap"]
    packed, whole = document_of(service, kept), from_path(COMPUTE)
    assert compiled(found["RestDefinition"], service, packed) == compiled(found["RestDefinition"], service, whole)


def folder_of(program: Program) -> None:
    program.write("docs/b/blue.json", json.dumps(titled("blue", "2", "things", "others")))
    program.write("docs/green.json", json.dumps(titled("green", "1", "things", "trees")))
    program.write("docs/shared.json", json.dumps({"definitions": {}}))
    program.write("docs/examples/one.json", json.dumps(titled("example", "1", "examples")))
    program.write("docs/readme.yaml", "just: [text]")


def test_the_documents_of_a_folder_make_one_service(bare: Program) -> None:
    folder_of(bare)
    ran = bare("rest", "generate", "docs", "--service", "both", "--endpoint", "https://api.example.com")
    assert (ran.code, ran.err) == (0, "")
    found = parts(ran.out)
    kinds = {each["spec"]["names"]["kind"] for each in found["RestDefinition"]}
    assert kinds == {"Thing", "Other", "Tree", "GreenThing"}, "two documents have things; the newer chooses first"
    (service,), (kept,) = found["RestService"], found["ConfigMap"]
    document = document_of(service, kept)
    models = compiled(found["RestDefinition"], service, document)
    fields = {json.loads(model)["kind"]: list(json.loads(model)["spec"]["properties"]) for model in models}
    assert fields == {"Thing": ["blue"], "Other": ["blue"], "Tree": ["green"], "GreenThing": ["green"]}


def test_of_several_versions_the_newest_is_taken(bare: Program) -> None:
    for version in ("2024-01-01", "2025-01-01", "2026-01-01-preview"):
        bare.write(f"docs/{version}/it.json", json.dumps(titled("blue", version, "things")))
    bare.write("docs/2026-01-01-preview/it.json", json.dumps(titled("blue", "2026-01-01-preview", "things", "news")))
    ran = bare("rest", "generate", "docs", "--out", "made")
    assert ran.code == 0
    assert ran.err.splitlines() == [
        "left out: 2024-01-01/it.json: 1 resources that another document has",
        "left out: 2026-01-01-preview/it.json: 1 resources that another document has",
        "2 kinds of docs",
    ]
    kept = parts((bare.folder / "made/service.yaml").read_text())["ConfigMap"][0]["binaryData"]
    first = json.loads(gzip.decompress(base64.b64decode(kept["part-1.json.gz"])))
    assert first["info"]["version"] == "2025-01-01", "and not the preview"


def test_a_broken_file_of_a_folder_is_named_and_left_out(bare: Program) -> None:
    folder_of(bare)
    bare.write("docs/broken.json", '{"swagger": "2.0", "paths": {')
    ran = bare("rest", "generate", "docs")
    assert ran.code == 0
    assert ran.err.startswith("left out: broken.json: is not JSON: line 1")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "www").mkdir()
    (tmp_path / "www/zones.json").write_text(json.dumps(ZONES))

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, directory=str(tmp_path / "www"), **more)

        def log_message(self, *args: Any) -> None:
            """Not in a test's output."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_a_document_at_a_url_stays_there(bare: Program, server: str) -> None:
    ran = bare("rest", "generate", f"{server}/zones.json", "--endpoint", "http://127.0.0.1:1")
    assert ran.code == 0, ran.err
    found = parts(ran.out)
    assert "ConfigMap" not in found
    assert found["RestService"][0]["spec"]["document"] == {"url": f"{server}/zones.json"}


def test_a_url_without_a_document_is_named(bare: Program, server: str) -> None:
    ran = bare("rest", "generate", f"{server}/none.json")
    assert ran.code == 1
    assert "none.json cannot be fetched: the server answers 404" in ran.err


LEADS_OUT = {**ZONES, "components": {"schemas": {"Zone": {"$ref": "../secret.json#/Zone"}}}}
LEADS_NOWHERE = {**ZONES, "components": {"schemas": {}}}


@pytest.mark.parametrize(
    ("content", "words", "code", "said"),
    [
        ("{", (), 1, "a.json: is not JSON: line 1"),
        ("[]", (), 1, "is not an object"),
        ('{"openapi": "4.0"}', (), 1, "is of OpenAPI 4.0"),
        (json.dumps(LEADS_OUT), (), 1, "leaves the document's folder"),
        (json.dumps(LEADS_NOWHERE), (), 1, "#/components/schemas/Zone"),
        (json.dumps({**ZONES, "paths": {}}), (), 1, "no paths that are resources"),
        (
            json.dumps(ZONES),
            ("--only", "Zebra"),
            3,
            "there is no resource Zebra; --only takes kinds and paths, as Zone",
        ),
        (json.dumps(ZONES), ("--service", "No Name"), 2, '"No Name" cannot name a service'),
        (json.dumps(ZONES), ("--definitions", "d/a.json"), 1, "d/a.json"),
        (json.dumps(ZONES), ("--definitions", "none.yaml"), 1, "none.yaml"),
        (json.dumps({**ZONES, "servers": []}), ("--out", "made"), 2, "give --endpoint URL"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    bare: Program, content: str, words: tuple[str, ...], code: int, said: str
) -> None:
    bare.write("d/a.json", content)
    ran = bare("rest", "generate", "d/a.json", *words)
    assert ran.code == code, ran.err
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""


def test_a_file_that_is_not_there(bare: Program) -> None:
    ran = bare("rest", "generate", "none.json")
    assert (ran.code, ran.err) == (3, "error: there is no file or folder none.json\n")


def test_a_definition_that_does_not_fit_its_document_is_refused_whole(zones: Program) -> None:
    assert zones("rest", "generate", "zones.json", "--out", "made").code == 0
    (definition,) = load_all((zones.folder / "made/definitions.yaml").read_text())
    definition["spec"]["operations"]["read"]["path"] = "/zone/{zone}"
    definition["spec"]["overlay"] = {"fields": {"nothing": {"class": "secret"}}}
    zones.write("wrong.json", json.dumps(definition))
    ran = zones("rest", "generate", "zones.json", "--definitions", "wrong.json")
    assert ran.code == 1
    assert "zones.zones: spec.operations.read.path: the document has no GET /zone/{zone}" in ran.err


def test_a_document_that_does_not_fit_into_a_config_map_is_refused_with_a_way_out(bare: Program) -> None:
    noise = random.Random(1)
    large = json.loads(json.dumps(ZONES))
    text = "".join(noise.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(2_000_000))
    large["components"]["schemas"]["Zone"]["description"] = text
    assert len(gzip.compress(text.encode())) > 1_000_000
    bare.write("large.json", json.dumps(large))
    ran = bare("rest", "generate", "large.json", "--out", "made")
    assert ran.code == 1
    assert "fit into a ConfigMap: choose kinds with --only" in ran.err
    assert not (bare.folder / "made").exists()


def test_many_kinds_show_how_far_it_is(bare: Program) -> None:
    bare.write(
        "many.json", json.dumps(titled("many", "1", *(f"thing{chr(97 + n // 8)}{chr(97 + n % 8)}" for n in range(60))))
    )
    ran = bare("rest", "generate", "many.json")
    assert ran.code == 0
    assert "generate: 6 of 60: kinds" in ran.err.splitlines()


def test_help_has_an_example(bare: Program) -> None:
    ran = bare("rest", "generate", "--help")
    assert ran.code == 0
    assert "Example:  trimtab rest generate compute.json" in ran.out


def test_the_kinds_are_served_and_their_schemas_hold(quiet: Program) -> None:
    trimtab = quiet
    service = f"dns{uuid.uuid4().hex[:8]}"
    trimtab.write("zones.json", json.dumps(ZONES))
    assert trimtab("rest", "generate", "zones.json", "--service", service, "--out", "made").code == 0
    ran = trimtab("apply", "-f", "made/crds.yaml", "--server-side")
    assert ran.code == 0, ran.err
    ran = trimtab("wait", f"crd/zones.{service}.rest.trimtab.dev", "--for", "condition=Established")
    assert ran.code == 0, ran.err
    zone = {
        "apiVersion": f"{service}.rest.trimtab.dev/v1",
        "kind": "Zone",
        "metadata": {"name": "example"},
        "spec": {"ttl": 1, "key": {"secretRef": {"name": "dns", "key": "tsig"}}},
    }
    ran = trimtab("apply", "-f", "-", stdin=json.dumps(zone))
    assert ran.code == 0, ran.err
    ran = trimtab("apply", "-f", "-", stdin=json.dumps({**zone, "spec": {"ttl": 0}}))
    assert ran.code == 1
    assert "spec.ttl" in ran.err


def test_kubectl_applies_it_strictly(discovery_server: ApiServer, quiet: Program, tmp_path: Path) -> None:
    needs("kubectl")
    kubectl = Kubectl(newest(), discovery_server, quiet.namespace, tmp_path)
    service = f"dns{uuid.uuid4().hex[:8]}"
    quiet.write("zones.json", json.dumps(ZONES))
    made = parts(quiet("rest", "generate", "zones.json", "--service", service).out)
    definitions = json.dumps(made["CustomResourceDefinition"][0])
    kubectl("apply", "--validate=strict", "--server-side", "-f", "-", stdin=definitions)
    kubectl("wait", f"crd/zones.{service}.rest.trimtab.dev", "--for=condition=Established", "--timeout=30s")
    zone: dict[str, Any] = {"apiVersion": f"{service}.rest.trimtab.dev/v1", "kind": "Zone", "metadata": {"name": "it"}}
    zone["spec"] = {"ttl": 300, "key": {"secretRef": {"name": "dns", "key": "tsig"}}, "policy": {"drift": "report"}}
    kubectl("apply", "--validate=strict", "-f", "-", stdin=json.dumps(zone))
    assert kubectl.json("get", f"zones.{service}.rest.trimtab.dev", "it")["spec"]["ttl"] == 300
    zone["spec"]["ttl"] = "long"
    assert "spec.ttl" in kubectl.fails("apply", "--validate=strict", "-f", "-", stdin=json.dumps(zone))
    explained = " ".join(kubectl("explain", f"zones.{service}.rest.trimtab.dev.spec.key").split())
    assert "A secret: {secretRef: {name, key}}, a key of a Secret in the same namespace." in explained


def test_from_a_document_to_a_kind_that_is_managed(tmp_path: Path, zygote: Zygote) -> None:
    with TrimtabServer(tmp_path, flags=("--systems", "rest")) as server:
        trimtab = Program(tmp_path, environment(KUBECONFIG=str(server.kubeconfig)), zygote, "default")
        trimtab.write("zones.json", json.dumps(ZONES))
        made = trimtab("rest", "generate", "zones.json", "--service", "dns", "--endpoint", "http://127.0.0.1:1")
        defined = "crd/restdefinitions.rest.trimtab.dev"
        assert trimtab("wait", defined, "--for", "create").code == 0
        assert trimtab("wait", defined, "--for", "condition=Established").code == 0
        ran = trimtab("apply", "-f", "-", "--force-conflicts", stdin=made.out)
        assert ran.code == 0, ran.err + server.logs()
        ran = trimtab("wait", "restdefinition/zones.dns", "--for", "condition=Ready", "--timeout", "30s")
        assert ran.code == 0, ran.err + server.logs()
        ran = trimtab("rest", "explain", "Zone")
        assert ran.code == 0, ran.err
        assert ran.lines[0] == "Zone of dns.rest.trimtab.dev/v1, at /api/zones/{zone}"
        zone = {"apiVersion": "dns.rest.trimtab.dev/v1", "kind": "Zone", "metadata": {"name": "it"}}
        ran = trimtab("apply", "-f", "-", stdin=json.dumps({**zone, "spec": {"ttl": 1, "serial": 2}}))
        assert ran.code == 1
        assert "spec.serial" in ran.err, "admission names what nobody may write"


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_dir(), reason="the documents of ARM are not here (../shared/data/azure-specs)")
def test_all_real_documents_at_once(bare: Program) -> None:
    ran = bare("rest", "generate", str(REAL), "--service", "azure", "--out", "made")
    assert ran.code == 0, ran.err
    kinds = parts((bare.folder / "made/definitions.yaml").read_text())["RestDefinition"]
    assert len(kinds) > 150
    assert all("that another document has" in line for line in ran.err.splitlines() if "left out" in line)
