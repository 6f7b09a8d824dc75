"""`trimtab up` is a network mirror, and Terraform installs from it."""

from __future__ import annotations

import json
import ssl
import stat
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.needs import needs
from tests.terraform.install.machine import Machine
from trimtab import __version__
from trimtab.terraform.install.hashing import h1_of
from trimtab.terraform.install.mirror import network_configuration
from trimtab.terraform.install.package import package
from trimtab.terraform.install.prepared import interpreter
from trimtab.testing.embedded import TrimtabServer


def authority(server: TrimtabServer) -> Path:
    return server.kubeconfig.parent / "pki" / "ca.crt"


def fetched(server: TrimtabServer, path: str) -> tuple[str, bytes]:
    """Without any credentials."""
    context = ssl.create_default_context(cafile=str(authority(server)))
    with urllib.request.urlopen(f"{server.url}/terraform/mirror/{path}", context=context) as answer:
        return answer.headers["content-type"], answer.read()


def test_the_mirror_tells_versions_and_archives_to_anyone(trimtab_server: TrimtabServer) -> None:
    kind, body = fetched(trimtab_server, "trimtab.dev/trimtab/trimtab/index.json")
    assert (kind, json.loads(body)) == ("application/json", {"versions": {__version__: {}}})
    _, body = fetched(trimtab_server, f"trimtab.dev/trimtab/trimtab/{__version__}.json")
    archives = json.loads(body)["archives"]
    assert {"linux_amd64", "linux_arm64", "darwin_arm64"} <= set(archives)
    assert package(__version__).h1 in archives["linux_amd64"]["hashes"], "the same as an install here has"


@pytest.mark.parametrize("path", ["", "x", "trimtab.dev/../../../etc/passwd", "../mirror"])
def test_nothing_else_is_in_it(trimtab_server: TrimtabServer, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as error:
        fetched(trimtab_server, path)
    assert error.value.code in (403, 404)
    error.value.close()


def test_terraform_installs_from_the_server_what_it_would_install_from_a_folder(
    tmp_path: Path, trimtab_server: TrimtabServer
) -> None:
    machine = Machine(tmp_path, trimtab_server.kubeconfig)
    settings = machine.work / "terraform.tfrc"
    settings.write_text(network_configuration(f"{trimtab_server.url}/terraform/mirror/"))
    machine.env |= {"TF_CLI_CONFIG_FILE": str(settings), "SSL_CERT_FILE": str(authority(trimtab_server))}
    machine.main("")
    machine.terraform("init")
    assert package(__version__).h1 in (machine.work / ".terraform.lock.hcl").read_text()

    del machine.env["TF_CLI_CONFIG_FILE"], machine.env["SSL_CERT_FILE"]
    machine.trimtab("install")
    machine.terraform("init")
    assert "The configuration is valid" in machine.terraform("validate")


def test_a_machine_that_has_nothing_of_us_works_with_what_it_got_from_the_server(
    tmp_path: Path, trimtab_server: TrimtabServer
) -> None:
    needs("openssl")
    machine = Machine(tmp_path, trimtab_server.kubeconfig)
    settings = machine.work / "terraform.tfrc"
    settings.write_text(network_configuration(f"{trimtab_server.url}/terraform/mirror/"))
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.symlink_to(interpreter())
    machine.env |= {
        "TF_CLI_CONFIG_FILE": str(settings),
        "SSL_CERT_FILE": str(authority(trimtab_server)),
        "PATH": f"{python.parent}:/usr/bin:/bin",
    }
    machine.main('data "trimtab_core_namespace" "it" {\n  metadata = { name = "default" }\n}\n')
    machine.terraform("init")
    machine.terraform("apply", "-auto-approve")
    (key,) = (machine.data / "identity").glob("*.pem")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(machine.data.stat().st_mode) == 0o700
    assert (machine.data / "kinds").is_file()
    assert list((machine.data / "pycache").rglob("*.pyc")), "compiled once, outside of the package"
    (program,) = machine.work.glob(".terraform/providers/**/terraform-provider-trimtab_*")
    assert h1_of(program.parent) == package(__version__).h1
