"""Where the server is: said in the configuration, in the environment, or in a kubeconfig."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.kinds.conftest import Waters
from tests.terraform.kinds.terraforming import Terraform
from trimtab.terraform.kinds.access import NoAccess, Settings, access
from trimtab.testing.ports import free_ports

pytestmark = pytest.mark.slow


def kubeconfig(folder: Path, **user: Any) -> str:
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "https://host:1/base/"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [
            {"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "there"}},
            {"name": "y", "context": {"cluster": "c", "user": "u"}},
        ],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(document))
    return str(path)


@pytest.mark.row(70)
def test_what_is_given_wins_over_the_environment() -> None:
    env = {"TRIMTAB_ENDPOINT": "https://other:1", "TRIMTAB_TOKEN": "theirs", "TRIMTAB_PROJECT": "theirs"}
    given = access(Settings(endpoint="https://host:2", token="ours", project="ours"), env)
    assert (given.url, given.token, given.project) == ("https://host:2", "ours", "ours")
    fallen = access(Settings(), env)
    assert (fallen.url, fallen.token, fallen.project) == ("https://other:1", "theirs", "theirs")


@pytest.mark.row(70)
def test_a_kubeconfig_is_used_from_the_configuration_and_from_the_environment(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, token="t")
    for found in (access(Settings(kubeconfig=path), {}), access(Settings(), {"KUBECONFIG": path})):
        assert (found.url, found.token, found.project) == ("https://host:1/base", "t", "there")
    assert access(Settings(kubeconfig=path, context="y"), {}).project == "default"
    assert access(Settings(kubeconfig=path, project="ours"), {}).project == "ours"


def test_a_kubeconfig_that_the_environment_names_and_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        NoAccess, match=r"KUBECONFIG names \.trimtab/none, which is not there: give its path from the root"
    ):
        access(Settings(), {"KUBECONFIG": ".trimtab/none", "HOME": str(tmp_path)})


def test_a_token_file_lies_beside_its_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from a file\n")
    assert access(Settings(kubeconfig=kubeconfig(tmp_path, tokenFile="token")), {}).token == "from a file"


@pytest.mark.parametrize(
    ("user", "says"),
    [
        ({"exec": {"command": "sh"}}, "running a program"),
        ({"client-certificate-data": "%%%"}, "client-certificate-data is not base64"),
        ({"client-certificate": "absent", "client-key": "absent"}, "client-certificate absent cannot be read"),
        ({"client-certificate-data": "QQ==", "client-key-data": "QQ=="}, "certificates cannot be used"),
    ],
)
def test_credentials_that_cannot_be_used_are_named(tmp_path: Path, user: dict[str, Any], says: str) -> None:
    with pytest.raises(NoAccess, match=says):
        access(Settings(kubeconfig=kubeconfig(tmp_path, **user)), {})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (Settings(endpoint="host:1"), "is not a URL"),
        (Settings(endpoint="http://example.com"), "is not encrypted"),
        (Settings(endpoint="https://h", ca_file="/absent"), "certificates cannot be used"),
        (Settings(kubeconfig="/absent"), "/absent cannot be read"),
    ],
)
def test_settings_that_lead_nowhere_are_named(settings: Settings, says: str) -> None:
    with pytest.raises(NoAccess, match=says):
        access(settings, {})


def test_nothing_at_all_says_what_to_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoAccess, match="TRIMTAB_ENDPOINT and KUBECONFIG"):
        access(Settings(), {"HOME": str(tmp_path)})


@pytest.mark.parametrize("given", ["s3cret\n", " s3cret\r\n"])
def test_a_token_from_a_file_ends_before_its_line_does(given: str) -> None:
    assert access(Settings(endpoint="https://127.0.0.1:1", token=given), {}).token == "s3cret"


@pytest.mark.parametrize("given", ["s3cret\nX-Remote-User: root", "s3crét", "s3cret\x00"])
def test_a_token_that_no_header_can_carry_is_refused_and_not_shown(given: str) -> None:
    with pytest.raises(NoAccess, match="token") as refused:
        access(Settings(endpoint="https://127.0.0.1:1", token=given), {})
    assert "s3cr" not in str(refused.value)


@pytest.mark.parametrize(
    ("endpoint", "says"),
    [
        ("https://127.0.0.1:99999", "The endpoint is not a URL such as https://host:7443: Port out of range"),
        ("https://[::1", "The endpoint is not a URL such as https://host:7443: Invalid IPv6 URL"),
        ("https://host:door", "The endpoint is not a URL such as https://host:7443: Port could not be cast"),
        ("https://me:hush@host:7443", "The endpoint has a user or a password in it"),
        ("https://me@host:7443", "The endpoint has a user or a password in it"),
    ],
)
def test_an_endpoint_that_leads_nowhere_is_said_to(endpoint: str, says: str) -> None:
    with pytest.raises(NoAccess, match=re.escape(says)) as raised:
        access(Settings(endpoint=endpoint), {})
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize("name", ["absent", ".", "with\0null"])
def test_a_token_file_that_cannot_be_read_is_said_to_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(NoAccess, match=r"tokenFile .* cannot be read"):
        access(Settings(kubeconfig=kubeconfig(tmp_path, tokenFile=name)), {})


def test_a_token_is_in_no_repr() -> None:
    settings = Settings(endpoint="https://h", token="hush")
    assert "hush" not in repr(settings)
    assert "hush" not in repr(access(settings, {}))


@pytest.mark.row(70)
def test_a_server_that_is_down_is_said_to_be_and_the_state_stays(sea: Terraform, waters: Waters) -> None:
    it = {"trimtab_core_config_map": {"it": {"metadata": {"name": "down"}, "data": {"a": "1"}}}}
    sea.apply(it)
    sea.provider = {"endpoint": f"http://127.0.0.1:{free_ports(1)[0]}", "token": "t"}
    told = sea.plan(it, fails=True)
    assert "The server cannot be reached: ConfigMap default/down cannot be read" in told
    assert sea.addresses() == ["trimtab_core_config_map.it"]


def test_an_endpoint_that_is_no_url_is_said_to_be_none(sea: Terraform) -> None:
    sea.provider = {"endpoint": "https://127.0.0.1:99999", "token": "t"}
    told = sea.plan({"trimtab_core_config_map": {"it": {"metadata": {"name": "x"}}}}, fails=True)
    assert "The endpoint is not a URL such as https://host:7443: Port out of range 0-65535." in told


@pytest.mark.row(70)
def test_a_token_that_is_wrong_is_said_to_be(sea: Terraform, waters: Waters, tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes(_authority(waters.kubeconfig))
    url = waters.api.access.url
    sea.provider = {"endpoint": url, "token": "wrong", "ca_file": str(ca)}
    told = sea.apply({"trimtab_core_config_map": {"it": {"metadata": {"name": "x"}}}}, fails=True)
    assert "Not allowed" in told
    assert "Check the provider's token" in told


@pytest.mark.row(70)
def test_a_server_whose_certificate_nobody_vouches_for_is_refused_at_once(sea: Terraform, waters: Waters) -> None:
    sea.provider = {"endpoint": waters.api.access.url, "token": "x"}
    told = sea.apply({"trimtab_core_config_map": {"it": {"metadata": {"name": "x"}}}}, fails=True)
    assert "CERTIFICATE_VERIFY_FAILED" in told


def _authority(path: Path) -> bytes:
    import base64

    import yaml

    cluster = yaml.safe_load(path.read_text())["clusters"][0]["cluster"]
    return base64.b64decode(cluster["certificate-authority-data"])
