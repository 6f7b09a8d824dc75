"""What must hold whoever asks: files, anonymous requests, tokens, escalation, and a log without secrets."""

import base64
import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tests.e2e.kubectl import Kubectl
from tests.e2e.raw import Raw
from trimtab.testing.embedded import TrimtabServer


def rules(verb: str, resource: str, group: str = "") -> dict[str, Any]:
    return {"rules": [{"apiGroups": [group], "resources": [resource], "verbs": [verb]}]}


def binding(role: str) -> dict[str, Any]:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subject = {"kind": "User", "name": "somebody", "apiGroup": "rbac.authorization.k8s.io"}
    return {"roleRef": reference, "subjects": [subject]}


def test_only_the_owner_can_open_anything_in_the_data_directory(ground: TrimtabServer) -> None:
    folder = ground.kubeconfig.parent
    modes = {path.relative_to(folder): stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]}
    assert {str(path): oct(mode) for path, mode in modes.items() if mode & 0o077} == {}
    assert Path("trimtab.sock") in modes


def test_anonymous_requests_get_health_and_version_only(ground: TrimtabServer) -> None:
    anonymous = Raw(ground)
    open_to_all = ["/healthz", "/livez", "/readyz", "/version"]
    closed = ["/", "/api", "/apis", "/api/v1", "/metrics", "/openapi/v2", "/openapi/v3", "/api/v1/namespaces"]
    closed += [
        "/apis/ground.example.com/v1/beacons",
        "/.well-known/openid-configuration",
        "/openid/v1/jwks",
        "/nowhere",
    ]
    assert {path: anonymous("GET", path).code for path in open_to_all} == dict.fromkeys(open_to_all, 200)
    assert {path: anonymous("GET", path).code for path in closed} == dict.fromkeys(closed, 403)
    assert anonymous("POST", "/api/v1/namespaces", {}).code == 403
    assert anonymous("DELETE", "/healthz").code == 403


RBAC = "apis/rbac.authorization.k8s.io/v1"
ATTEMPTS: list[tuple[str, str, Any]] = [
    ("POST", f"{RBAC}/namespaces/NS/roles", rules("get", "secrets")),
    ("POST", f"{RBAC}/namespaces/NS/roles", rules("*", "*", group="*")),
    ("PATCH", f"{RBAC}/namespaces/NS/roles/keeper", rules("*", "secrets")),
    ("PATCH", f"{RBAC}/clusterroles/view", rules("*", "secrets")),
    ("POST", f"{RBAC}/clusterroles", {"rules": []}),
    ("POST", f"{RBAC}/clusterrolebindings", binding("cluster-admin")),
    ("POST", f"{RBAC}/namespaces/NS/rolebindings", binding("edit")),
    ("POST", "api/v1/namespaces/NS/serviceaccounts/default/token", {"spec": {}}),
    ("POST", "api/v1/namespaces/kube-system/serviceaccounts/default/token", {"spec": {}}),
    ("POST", "apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
    ("POST", "apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": "x"}}),
    ("GET", "api/v1/namespaces/NS/secrets", None),
    ("GET", "api/v1/secrets?watch=true", None),
    ("DELETE", "api/v1/namespaces/NS", None),
]


@pytest.mark.parametrize(("method", "path", "body"), ATTEMPTS)
def test_an_account_that_may_write_roles_cannot_give_itself_more(
    method: str, path: str, body: Any, role_writer: Raw, namespace: str
) -> None:
    if isinstance(body, dict) and method == "POST":
        body = {**body, "metadata": {"name": "more"}}
    headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
    answer = role_writer(method, "/" + path.replace("NS", namespace), body, headers)
    assert (answer.code, answer.json()["reason"]) == (403, "Forbidden"), answer.body


@pytest.mark.parametrize(
    "headers",
    [
        {"Impersonate-User": "admin"},
        {"Impersonate-User": "system:admin", "Impersonate-Group": "system:masters"},
        {"Impersonate-Group": "system:masters"},
        {"Impersonate-User": "x", "Impersonate-Extra-Scopes": "all"},
        {"impersonate-user": "system:serviceaccount:kube-system:default"},
    ],
)
def test_impersonation_needs_the_right_to_it(headers: dict[str, str], role_writer: Raw, namespace: str) -> None:
    answer = role_writer("GET", f"/api/v1/namespaces/{namespace}/secrets", headers=headers)
    assert answer.code in (400, 403, 500)
    assert answer.json()["kind"] == "Status"


def test_headers_of_a_proxy_name_nobody(ground: TrimtabServer) -> None:
    headers = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    assert Raw(ground)("GET", "/api/v1/namespaces", headers=headers).code == 403


def test_a_token_ends_with_its_account(kubectl: Kubectl, ground: TrimtabServer) -> None:
    kubectl("create", "serviceaccount", "robot")
    robot = Raw(ground, token=kubectl("create", "token", "robot"))
    assert robot("GET", "/api").code == 200
    kubectl("delete", "serviceaccount", "robot")
    assert robot("GET", "/api").code == 401
    kubectl("create", "serviceaccount", "robot")
    assert robot("GET", "/api").code == 401  # the same name, but another account


def test_a_token_ends_with_the_secret_that_it_is_bound_to(kubectl: Kubectl, ground: TrimtabServer) -> None:
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "secret", "generic", "leash")
    bound = Raw(
        ground, token=kubectl("create", "token", "robot", "--bound-object-kind=Secret", "--bound-object-name=leash")
    )
    assert bound("GET", "/api").code == 200
    kubectl("delete", "secret", "leash")
    assert bound("GET", "/api").code == 401


def test_a_token_for_another_audience_opens_nothing(kubectl: Kubectl, ground: TrimtabServer) -> None:
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot", "--audience=somebody-else")
    assert Raw(ground, token=token)("GET", "/api").code == 401


def test_forged_tokens_open_nothing(kubectl: Kubectl, ground: TrimtabServer) -> None:
    kubectl("create", "serviceaccount", "robot")
    head, claims, signature = kubectl("create", "token", "robot").split(".")
    later = {**decode(claims), "exp": int(time.time()) + 10**6}
    other = {**decode(claims), "sub": "system:serviceaccount:kube-system:default"}
    foreign = ec.generate_private_key(ec.SECP256R1())
    forged = {
        "other claims": f"{head}.{encode(later)}.{signature}",
        "another account": f"{head}.{encode(other)}.{signature}",
        "no algorithm": f"{encode({'alg': 'none', 'typ': 'JWT'})}.{claims}.",
        "symmetric algorithm": f"{encode({**decode(head), 'alg': 'HS256'})}.{claims}.{signature}",
        "no signature": f"{head}.{claims}.",
        "a foreign key": signed(foreign, decode(head), decode(claims)),
        "two parts": f"{head}.{claims}",
        "many parts": ".".join([head, claims, signature, signature]),
        "nothing": "..",
        "long": "a." * 5000,
    }
    assert {why: Raw(ground, token=token)("GET", "/api").code for why, token in forged.items()} == dict.fromkeys(
        forged, 401
    )


def test_tokens_hold_within_their_time_only(kubectl: Kubectl, ground: TrimtabServer) -> None:
    kubectl("create", "serviceaccount", "robot")
    head, claims, _ = kubectl("create", "token", "robot").split(".")
    pem = (ground.kubeconfig.parent / "pki" / "sa.key").read_bytes()
    key = serialization.load_pem_private_key(pem, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    now = int(time.time())

    def answer(**changes: int) -> int:
        token = signed(key, decode(head), {**decode(claims), **changes})
        return Raw(ground, token=token)("GET", "/api").code

    assert answer() == 200
    assert answer(iat=now - 3600, nbf=now - 3600, exp=now - 60) == 401
    assert answer(nbf=now + 3600, exp=now + 7200) == 401


def test_the_log_never_shows_a_secret(kubectl: Kubectl, ground: TrimtabServer) -> None:
    word = "x9-very-secret-word"
    kubectl("create", "secret", "generic", "door", f"--from-literal=key={word}")
    kubectl("patch", "secret", "door", "--type=merge", "-p", json.dumps({"stringData": {"key": word + "2"}}))
    kubectl.run(
        "apply", "--server-side", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Secret", "data": word})
    )
    kubectl.run("create", "secret", "generic", "door", f"--from-literal=key={word}")
    admin = Raw(ground, admin=True)
    admin(
        "POST", f"/api/v1/namespaces/{kubectl.namespace}/secrets", {"stringData": {"a": word}, "metadata": {"name": 5}}
    )
    admin("POST", f"/api/v1/namespaces/{kubectl.namespace}/secrets", {"metadata": {"name": word + "/"}})
    Raw(ground, token=word)("GET", "/api")
    log = (ground.kubeconfig.parent.parent / "trimtab.log").read_text()
    encoded = base64.b64encode(word.encode()).decode()
    assert [each for each in (word, encoded[:-4]) if each in log] == []


@pytest.fixture
def role_writer(kubectl: Kubectl, ground: TrimtabServer) -> Raw:
    """The account of the examples, which may also write roles and bindings of its namespace."""
    kubectl("apply", "-f", "rbac.yaml")
    resources = "--resource=roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io"
    kubectl("create", "role", "writer", "--verb=get,create,update,patch,delete", resources)
    kubectl("create", "rolebinding", "writer", "--role=writer", f"--serviceaccount={kubectl.namespace}:keeper")
    return Raw(ground, token=kubectl("create", "token", "keeper"))


def decode(part: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return document


def encode(document: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def signed(key: ec.EllipticCurvePrivateKey, head: dict[str, Any], claims: dict[str, Any]) -> str:
    """A JSON web token by ES256."""
    text = f"{encode(head)}.{encode(claims)}"
    r, s = decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{text}.{base64.urlsafe_b64encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big')).rstrip(b'=').decode()}"
