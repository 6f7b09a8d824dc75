"""`trimtab images …` from a registry to a report, with `trimtab up` and a real registry, as people use it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.cli.conftest import Program, Zygote, environment
from tests.systems.images.station import debian, osv
from trimtab.lab.registry import Registry as LabRegistry
from trimtab.lab.registry_images import Pusher, entry, index
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports

REGISTRY = """\
apiVersion: images.trimtab.dev/v1alpha1
kind: Registry
metadata: {{name: lab}}
spec:
  uri: {url}
  plainHTTP: true
  dbChangedRescan: true
  filters:
  - matchConditions: [{{name: no-nightlies, expression: "tag != 'nightly'"}}]
"""
VEX = {
    "@context": "https://openvex.dev/ns/v0.2.0",
    "@id": "https://example.com/vex",
    "author": "Vendor",
    "timestamp": "2026-01-01T00:00:00Z",
    "version": 1,
    "statements": [
        {
            "vulnerability": {"name": "DSA-2"},
            "products": [{"@id": "pkg:deb/debian/bash"}],
            "status": "not_affected",
            "justification": "vulnerable_code_not_in_execute_path",
        }
    ],
}


async def test_from_a_registry_to_a_report(tmp_path: Path, zygote: Zygote) -> None:
    (port,) = free_ports(1)
    amd, arm = debian("openssl=1.0-1", "bash=5.0-1"), debian("openssl=3.0-1", platform="linux/arm64/v8")
    with (
        LabRegistry(tmp_path / "registry", port) as lab,
        TrimtabServer(tmp_path, flags=("--systems", "images")) as server,
    ):
        async with Pusher(lab.url) as pusher:
            both = index([entry(amd, "linux/amd64"), entry(arm, "linux/arm64/v8")])
            await pusher.push("team/app", "1.0", both)
            await pusher.push("team/app", "nightly", amd)
        trimtab = Program(tmp_path, environment(KUBECONFIG=str(server.kubeconfig)), zygote, "default")
        trimtab.write("registry.yaml", REGISTRY.format(url=lab.url))
        ran = trimtab("images", "preview", "-f", "registry.yaml")
        assert "1 of 2 tags in 1 repositories would be discovered" in ran.lines, ran.err

        defined = ("crd/registries.images.trimtab.dev", "crd/vexsources.images.trimtab.dev")
        assert trimtab("wait", *defined, "--for", "create").code == 0
        assert trimtab("wait", *defined, "--for", "condition=Established").code == 0
        assert trimtab("apply", "-f", "registry.yaml").code == 0
        ran = trimtab("images", "discover", "lab", "--timeout", "60s")
        assert ran.code == 0, ran.err + server.logs()
        assert ": Succeeded in " in ran.lines[0]
        assert ["discovered", "2"] in ran.rows
        assert ["sboms", "2"] in ran.rows
        assert "tags: 1 added, 0 moved, 0 removed" in ran.lines

        assert trimtab("images", "sbom", "team/app:1.0").code == 2
        ran = trimtab("images", "sbom", "team/app:1.0", "--platform", "linux/amd64")
        assert {each["name"] for each in json.loads(ran.out)["packages"]} >= {"openssl", "bash"}

        trimtab.write("vendor.json", json.dumps(VEX))
        ran = trimtab("images", "import-vex", "vendor.json", "vendor")
        assert ran.code == 0, ran.err
        assert trimtab("wait", "vexsource/vendor", "--for", "condition=Ready").code == 0
        for number, (package, fixed) in enumerate((("openssl", "2.0-1"), ("bash", "6.0-1")), 1):
            trimtab.write(f"osv/DSA-{number}.json", json.dumps(osv(f"DSA-{number}", package, fixed)))
        ran = trimtab("images", "import-db", "osv")
        assert "2 advisories: 2 new or changed, 0 as they were" in ran.lines, ran.err

        waited = trimtab("wait", "sboms", "--all", "--for", "condition=Scanned", "--timeout", "60s")
        assert waited.code == 0, trimtab("get", "sboms", "-o", "yaml").out + server.logs()
        ran = trimtab("images", "discover", "lab", "--until", "Reports", "--timeout", "60s")
        assert ran.code == 0, ran.err + server.logs()
        assert ["reports", "2"] in ran.rows
        assert "nothing changed since the listing before" in ran.lines
        ran = trimtab("images", "report", "team/app:1.0", "--platform", "linux/amd64", "--all")
        assert ran.code == 0, ran.err
        assert [row[1] for row in ran.rows[:2]] == ["DSA-1", "DSA-2"]
        assert "by Vendor" in ran.lines[2]
        assert "1 suppressed" in ran.out
        ran = trimtab("images", "report", "team/app:1.0", "--platform", "linux/arm64")
        assert ran.lines[0] == "0 Critical, 0 High, 0 Medium, 0 Low, 0 Unknown"


def test_every_command_has_an_example(bare: Program) -> None:
    commands = ("discover", "release", "preview", "sbom", "report", "import-db", "import-vex", "worker", "listen")
    for command in commands:
        assert f"Example:  trimtab images {command}" in bare("images", command, "--help").out, command
    assert set(commands) <= set(bare("images", "--help").out.split())


def test_a_worker_without_a_queue_or_a_place_for_blobs_is_refused(bare: Program) -> None:
    process = bare.installed("images", "worker", stderr=subprocess.PIPE)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "name the queue with --nats URL" in err
    process = bare.installed("images", "worker", "--nats", "nats://127.0.0.1:1", stderr=subprocess.PIPE)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "name the place for blobs with --blobs URL" in err
