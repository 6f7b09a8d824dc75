"""Kubeconfigs are merged and read as kubectl does, and what is wrong is named by file and field."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trimtab.client.config import Config, ConfigError, in_cluster, load, unix
from trimtab.client.credentials import REREAD, Identity, TokenFile
from trimtab.client.kubeconfig import parse, read

SERVER = "https://127.0.0.1:6443"
V1 = "client.authentication.k8s.io/v1"


def written(
    path: Path,
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    **top: Any,
) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", **(context or {})}}],
        "current-context": "x",
        **top,
    }
    path.write_text(json.dumps(document))
    return path


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def identity(config: Config) -> Identity:
    assert config.credentials is not None
    return await config.credentials.current()


# what is read


def test_the_current_context_says_where_and_in_which_namespace(tmp_path: Path) -> None:
    config = load(written(tmp_path / "k", context={"namespace": "team"}))
    assert (config.server, config.namespace, config.verify) == (SERVER, "team", True)


def test_another_context_can_be_asked_for(tmp_path: Path) -> None:
    contexts = [{"name": "y", "context": {"cluster": "c", "user": "u", "namespace": "other"}}]
    assert load(written(tmp_path / "k", contexts=contexts), context="y").namespace == "other"


async def test_inline_data_wins_over_files(tmp_path: Path) -> None:
    (tmp_path / "cert").write_text("file")
    user = {
        "client-certificate-data": encoded("inline"),
        "client-certificate": "cert",
        "client-key-data": encoded("key"),
    }
    found = await identity(load(written(tmp_path / "k", user=user)))
    assert (found.certificate, found.key) == (b"inline", b"key")


def test_relative_paths_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"authority")
    assert load(written(tmp_path / "k", cluster={"certificate-authority": "ca.crt"})).ca == b"authority"


async def test_a_token_becomes_a_bearer_header(tmp_path: Path) -> None:
    assert (await identity(load(written(tmp_path / "k", user={"token": "t"})))).authorization == "Bearer t"


async def test_a_name_and_a_password_become_basic_authentication(tmp_path: Path) -> None:
    found = await identity(load(written(tmp_path / "k", user={"username": "me", "password": "pw"})))
    assert found.authorization == "Basic " + encoded("me:pw")


def test_impersonation_goes_into_headers(tmp_path: Path) -> None:
    user = {"token": "t", "as": "jane", "as-groups": ["a", "b"], "as-user-extra": {"scope": ["x"]}}
    assert load(written(tmp_path / "k", user=user)).headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scope", "x"),
    )


def test_a_unix_socket_is_a_server(tmp_path: Path) -> None:
    config = load(written(tmp_path / "k", cluster={"server": "unix:///run/trimtab.sock"}))
    assert config.socket == "/run/trimtab.sock"
    assert unix("/run/trimtab.sock").socket == "/run/trimtab.sock"


# several files


def test_of_several_files_the_first_that_names_an_entry_wins(tmp_path: Path) -> None:
    first = written(tmp_path / "one", cluster={"server": "https://first"}, users=[], contexts=[])
    second = written(tmp_path / "two", cluster={"server": "https://second"}, context={"namespace": "two"})
    env = {"KUBECONFIG": f"{first}:{tmp_path / 'missing'}:{second}"}
    config = load(env=env)
    assert (config.server, config.namespace) == ("https://first", "two")


def test_without_a_variable_the_file_at_home_is_read(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    written(tmp_path / ".kube" / "config")
    assert load(env={}, home=tmp_path).server == SERVER


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere: cannot be read: No such file"):
        load(tmp_path / "nowhere")


def test_with_nothing_at_all_it_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"KUBECONFIG is not set, .*config does not exist"):
        load(env={}, home=tmp_path)


# what is wrong


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"current-context": ""}, r"current-context: is not set"),
        ({"current-context": "z"}, r'contexts: there is no context named "z"'),
        ({"users": []}, r'users: there is no user named "u"'),
        ({"clusters": {}}, r'clusters: there is no cluster named "c"'),
        ({"clusters": "c"}, r"clusters: must be a list"),
        ({"cluster": {"server": ""}}, r'clusters\["c"\].cluster.server: is missing'),
        ({"cluster": {"server": "ftp://x"}}, r"server: 'ftp://x' is no https, http or unix address"),
        ({"cluster": {"proxy-url": "http://p"}}, r"proxy-url: proxies are not supported"),
        ({"cluster": {"insecure-skip-tls-verify": "yes"}}, r"insecure-skip-tls-verify: must be true or false"),
        (
            {"cluster": {"insecure-skip-tls-verify": True, "certificate-authority-data": encoded("x")}},
            r"insecure-skip-tls-verify: must not be set together",
        ),
        ({"cluster": {"certificate-authority-data": "%"}}, r"certificate-authority-data: is not base64"),
        ({"cluster": {"certificate-authority": "gone"}}, r"certificate-authority: .*gone cannot be read"),
        ({"user": {"client-key-data": encoded("k")}}, r"client-certificate: a certificate and its key belong together"),
        ({"user": {"auth-provider": {"name": "gcp"}}}, r"auth-provider: is not supported"),
        ({"user": {"token": 5}}, r'users\["u"\].user.token: must be text'),
        ({"user": {"as-groups": ["a"]}}, r"as: must be set"),
        ({"user": {"exec": {"command": "x"}}}, r"exec.apiVersion: is missing"),
        ({"user": {"exec": {"command": "x", "apiVersion": "v0"}}}, r"exec.apiVersion: 'v0' is not one of"),
        (
            {"user": {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}}},
            r"exec.interactiveMode: must be Never, IfAvailable or Always",
        ),
    ],
)
def test_a_mistake_is_named_by_file_and_field(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    path = written(tmp_path / "config", **change)
    with pytest.raises(ConfigError, match=told) as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"), [("a: [", "is no YAML"), ("- a", "is no kubeconfig"), ("[" * 5000, "is no YAML")]
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(ConfigError, match=told):
        read((tmp_path / "config",))


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    with pytest.raises(ConfigError, match="is larger than"):
        read((tmp_path / "config",))


FIELDS = [
    "server",
    "certificate-authority",
    "certificate-authority-data",
    "insecure-skip-tls-verify",
    "tls-server-name",
    "extensions",
    "token",
    "tokenFile",
    "username",
    "password",
    "client-certificate",
    "client-key-data",
    "as",
    "as-uid",
    "as-groups",
    "as-user-extra",
    "exec",
    "command",
    "args",
    "env",
    "apiVersion",
    "interactiveMode",
    "provideClusterInfo",
    "installHint",
    "namespace",
    "cluster",
    "user",
    "name",
    "value",
]
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "x", "c", "u", "eA==", "https://h", "Never", V1]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=12,
)


SOME = st.dictionaries(st.sampled_from(FIELDS), ODD, max_size=4)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cluster=SOME,
    user=SOME,
    context=SOME,
    top=st.dictionaries(st.sampled_from(["clusters", "current-context"]), ODD, max_size=1),
)
def test_whatever_is_in_a_file_it_is_read_or_refused(
    tmp_path: Path, cluster: Any, user: Any, context: Any, top: dict[str, Any]
) -> None:
    document = {
        "clusters": [{"name": "c", "cluster": {"server": SERVER, **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {**context, "cluster": "c", "user": "u"}}],
        "current-context": "x",
        **top,
    }
    (tmp_path / "config").write_text(json.dumps(document))
    with contextlib.suppress(ConfigError):
        assert load(tmp_path / "config").server


# secrets


def test_no_secret_is_in_a_repr(tmp_path: Path) -> None:
    user = {"token": "hush", "client-certificate-data": encoded("hush"), "client-key-data": encoded("hush")}
    config = load(written(tmp_path / "k", user=user))
    identity = Identity(authorization="Bearer hush", certificate=b"hush", key=b"hush")
    assert "hush" not in repr((config, config.credentials, identity))


# token files


async def test_a_token_file_is_read_again_after_a_while(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first\n")
    now = 0.0
    credentials = TokenFile(tmp_path / "token", now=lambda: now)
    assert (await credentials.current()).authorization == "Bearer first"
    (tmp_path / "token").write_text("second")
    assert (await credentials.current()).authorization == "Bearer first"
    now = REREAD
    assert (await credentials.current()).authorization == "Bearer second"


async def test_a_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    credentials = TokenFile(tmp_path / "token")
    old = await credentials.current()
    assert credentials.refused(old) is False
    (tmp_path / "token").write_text("second")
    assert credentials.refused(old) is True
    assert (await credentials.current()).authorization == "Bearer second"


@pytest.mark.parametrize("content", [None, "", " \n"])
async def test_a_token_file_without_a_token_is_an_error_that_names_it(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "token").write_text(content)
    with pytest.raises(ConfigError, match="token"):
        await TokenFile(tmp_path / "token").current()


# in a cluster


async def test_a_pod_finds_its_server(tmp_path: Path) -> None:
    for name, content in (("token", "t"), ("ca.crt", "authority"), ("namespace", "team\n")):
        (tmp_path / name).write_text(content)
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    config = in_cluster(env, tmp_path)
    assert (config.server, config.namespace, config.ca) == ("https://[fd00::1]:443", "team", b"authority")
    assert (await identity(config)).authorization == "Bearer t"


def test_outside_of_a_cluster_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not in a cluster"):
        in_cluster({}, tmp_path)
    with pytest.raises(ConfigError, match=r"token does not exist"):
        in_cluster({"KUBERNETES_SERVICE_HOST": "h"}, tmp_path)


SELF_CONTAINED = {
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    "clusters": [{"name": "k", "cluster": {"server": "https://example.test:6443"}}],
    "users": [{"name": "u", "user": {"token": "hush"}}],
}


def test_a_kubeconfig_from_elsewhere_is_read_when_it_holds_all_it_needs() -> None:
    config = parse(json.dumps(SELF_CONTAINED).encode(), source="Secret p/k")
    assert config.server == "https://example.test:6443"
    assert "hush" not in repr(config)


@pytest.mark.parametrize(
    ("section", "name", "change", "says"),
    [
        ("clusters", "cluster", {"certificate-authority": "/etc/ca.crt"}, "certificate-authority-data instead"),
        ("clusters", "cluster", {"server": "unix:///run/x.sock"}, "https address"),
        ("clusters", "cluster", {"server": "http://example.test"}, "https address"),
        ("users", "user", {"client-key": "key.pem", "client-key-data": "eA=="}, "client-key-data instead"),
        ("users", "user", {"client-certificate": "c.pem"}, "client-certificate-data instead"),
        ("users", "user", {"tokenFile": "/var/run/token"}, "give token instead"),
        (
            "users",
            "user",
            {"exec": {"command": "sh", "apiVersion": "client.authentication.k8s.io/v1"}},
            "run a program",
        ),
    ],
)
def test_a_kubeconfig_from_elsewhere_may_name_nothing_of_this_machine(
    section: str, name: str, change: dict[str, object], says: str
) -> None:
    document = json.loads(json.dumps(SELF_CONTAINED))
    document[section][0][name] |= change
    with pytest.raises(ConfigError, match=says) as refused:
        parse(json.dumps(document).encode(), source="Secret p/k")
    assert str(refused.value).startswith("Secret p/k: ")
    assert "hush" not in str(refused.value)
