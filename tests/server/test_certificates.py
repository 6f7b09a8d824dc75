"""Certificate requests: approved by who may, signed, and gone in time."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
from collections.abc import AsyncIterator
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.server.api import Api, running
from trimtab.server.auth.certificates import Issuer
from trimtab.server.auth.rbac import Attributes
from trimtab.server.auth.signing import RequestError, read_request, signed
from trimtab.server.lifecycle.certificates import outlived

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client"
NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
KEY = ec.generate_private_key(ec.SECP256R1())


def pkcs10(*groups: str, name: str = "jane", names: tuple[x509.GeneralName, ...] = ()) -> str:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    pem = builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(pem).decode()


def csr(name: str = "jane", **spec: Any) -> dict[str, Any]:
    given = {"request": pkcs10("ops"), "signerName": CLIENT, "usages": ["client auth"], **spec}
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": given,
    }


def issuer() -> Issuer:
    return Issuer.create("ca", NOW - datetime.timedelta(days=1), datetime.timedelta(days=30))


def approval(word: str = "Approved") -> dict[str, Any]:
    return {"status": {"conditions": [{"type": word, "status": "True", "reason": "R"}]}}


@contextlib.asynccontextmanager
async def signing(ca: Issuer) -> AsyncIterator[Api]:
    async with running(authority=lambda: ca) as api:
        yield api


async def test_what_is_approved_is_signed_for_the_name_and_the_time_that_were_asked() -> None:
    ca = issuer()
    async with signing(ca) as api:
        assert (await api.post(CSRS, csr(expirationSeconds=3600))).code == 201
        await api.merge(f"{CSRS}/jane/approval", approval())
        done = await api.until(f"{CSRS}/jane", lambda answer: "certificate" in answer.doc["status"])
    made = x509.load_pem_x509_certificate(base64.b64decode(done.doc["status"]["certificate"]))
    made.verify_directly_issued_by(x509.load_pem_x509_certificate(ca.certificate_pem))
    assert made.subject.rfc4514_string() == "CN=jane,O=ops"
    assert made.public_key() == KEY.public_key()
    assert made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    purposes = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    left = made.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    assert 3500 < left.total_seconds() <= 3600


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"usages": ["client auth", "server auth"]}, "invalid usage for client certificate: server auth"),
        ({"usages": ["digital signature"]}, "missing required usage for client certificate: client auth"),
        ({"signerName": "kubernetes.io/kubelet-serving"}, "this server has no nodes"),
        ({"signerName": "kubernetes.io/kube-apiserver-client-kubelet"}, "this server has no nodes"),
    ],
)
async def test_what_cannot_be_signed_fails_and_says_why(spec: dict[str, Any], why: str) -> None:
    async with signing(issuer()) as api:
        await api.post(CSRS, csr(**spec))
        await api.merge(f"{CSRS}/jane/approval", approval())
        done = await api.until(f"{CSRS}/jane", lambda answer: len(answer.doc["status"]["conditions"]) == 2)
    failed = done.doc["status"]["conditions"][1]
    assert (failed["type"], failed["reason"]) == ("Failed", "SignerValidationFailure")
    assert why in failed["message"]
    assert "certificate" not in done.doc["status"]


async def test_what_is_denied_or_anothers_is_left_alone() -> None:
    async with signing(issuer()) as api:
        await api.post(CSRS, csr("denied"))
        await api.merge(f"{CSRS}/denied/approval", approval("Denied"))
        await api.post(CSRS, csr("other", signerName="example.com/x"))
        await api.merge(f"{CSRS}/other/approval", approval())
        await api.post(CSRS, csr("ours"))
        await api.merge(f"{CSRS}/ours/approval", approval())
        await api.until(f"{CSRS}/ours", lambda answer: "certificate" in answer.doc["status"])  # it came last
        for name in ("denied", "other"):
            assert set((await api.get(f"{CSRS}/{name}")).doc["status"]) == {"conditions"}


async def test_who_asks_is_written_down_and_not_believed() -> None:
    async with running() as api:
        spec = csr(username="root", uid="0", groups=["system:masters"], extra={"a": ["b"]})
        made = await api.post(CSRS, spec)
        assert made.doc["spec"]["username"] == "admin"
        assert made.doc["spec"]["groups"] == ["system:masters", "system:authenticated"]
        assert not {"uid", "extra"} & made.doc["spec"].keys()


async def test_nobody_becomes_a_master() -> None:
    async with running() as api:
        answer = await api.post(CSRS, csr(request=pkcs10("ops", "system:masters")))
        assert answer.code == 403
        assert f"use of {CLIENT} signer with system:masters group is not allowed" in answer.doc["message"]


@pytest.mark.parametrize(
    ("verb", "names", "approves", "signs"),
    [
        ("approve", ["kubernetes.io/kube-apiserver-client"], True, False),
        ("approve", ["kubernetes.io/*"], True, False),
        ("approve", ["example.com/*"], False, False),
        ("sign", ["kubernetes.io/*"], False, True),
        ("get", [], False, False),
    ],
)
async def test_approving_and_signing_need_rights_to_the_signer(
    verb: str, names: list[str], approves: bool, signs: bool
) -> None:
    group = "rbac.authorization.k8s.io"
    doors = {
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests/approval", "certificatesigningrequests/status"],
        "verbs": ["patch"],
    }
    signers = {"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "verbs": [verb], "resourceNames": names}
    async with running() as api:
        await api.post(CSRS, csr())
        await api.post(f"/apis/{group}/v1/clusterroles", {"metadata": {"name": "r"}, "rules": [doors, signers]})
        reference = {"apiGroup": group, "kind": "ClusterRole", "name": "r"}
        subjects = [{"kind": "User", "apiGroup": group, "name": "bob"}]
        binding = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": subjects}
        await api.post(f"/apis/{group}/v1/clusterrolebindings", binding)
        bob = api.as_("bob")
        async with asyncio.timeout(10):
            asked = Attributes(
                bob.user, "patch", "certificates.k8s.io", "v1", "certificatesigningrequests", "approval", name="jane"
            )
            while not api.server.authorizer.authorize(asked).allowed:  # noqa: ASYNC110 - the server sees it by itself
                await asyncio.sleep(0.005)
        answer = await bob.merge(f"{CSRS}/jane/approval", approval())
        assert (answer.code == 200) is approves, answer.raw
        if not approves:
            assert f'user not permitted to approve requests with signerName "{CLIENT}"' in answer.doc["message"]
        failed = {"status": {"conditions": [*(approval()["status"]["conditions"] if approves else []), _failed()]}}
        answer = await bob.merge(f"{CSRS}/jane/status", failed)
        assert (answer.code == 200) is signs, answer.raw


def _failed() -> dict[str, str]:
    return {"type": "Failed", "status": "True"}


def _aged(hours: float, *types: str, certificate: bool = False) -> dict[str, Any]:
    moment = (NOW - datetime.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [{"type": word, "status": "True", "lastUpdateTime": moment} for word in types]
    status: dict[str, Any] = {"conditions": conditions}
    if certificate:
        status["certificate"] = base64.b64encode(issuer().certificate_pem).decode()
    return {"metadata": {"name": "x", "creationTimestamp": moment}, "status": status}


@pytest.mark.parametrize(
    ("request_", "goes"),
    [
        (_aged(23), False),
        (_aged(25), True),
        (_aged(0.9, "Denied"), False),
        (_aged(1.1, "Denied"), True),
        (_aged(1.1, "Approved", "Failed"), True),
        (_aged(48, "Approved"), False),
        (_aged(0.9, "Approved", certificate=True), False),
        (_aged(1.1, "Approved", certificate=True), True),
    ],
)
def test_a_request_goes_when_nobody_needs_it(request_: dict[str, Any], goes: bool) -> None:
    assert outlived(request_, NOW) is goes


def test_a_request_goes_with_its_certificate() -> None:
    assert outlived(_aged(0, "Approved", certificate=True), NOW + datetime.timedelta(days=31))


async def test_old_requests_are_swept() -> None:
    async with running() as api:
        await api.post(CSRS, csr())
        assert await api.server.certificates.sweep() == 0
        served = api.server.registry.of_resource("certificates.k8s.io", "certificatesigningrequests")
        assert served is not None

        def age(document: dict[str, Any]) -> None:
            document["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z"

        await api.server.acts.modify(served, "", "jane", age)
        assert await api.server.certificates.sweep() == 1
        assert (await api.get(f"{CSRS}/jane")).code == 404


def test_a_certificate_lives_no_longer_than_a_year_or_the_authority_and_no_shorter_than_ten_minutes() -> None:
    def hours(ca: Issuer, seconds: int | None) -> float:
        pem = signed(ca, read_request(pkcs10()), ["client auth"], seconds, NOW)
        return (x509.load_pem_x509_certificate(pem).not_valid_after_utc - NOW).total_seconds() / 3600

    young = Issuer.create("ca", NOW, datetime.timedelta(days=3650))
    old = Issuer.create("ca", NOW, datetime.timedelta(days=2))
    assert hours(young, None) == pytest.approx(365 * 24 - 1 / 12)
    assert hours(young, 10**9) == pytest.approx(365 * 24 - 1 / 12)
    assert hours(young, 1) == pytest.approx(1 / 6)
    assert hours(old, None) == pytest.approx(48)
    with pytest.raises(RequestError, match="expired"):
        signed(old, read_request(pkcs10()), ["client auth"], None, NOW + datetime.timedelta(days=3))


def test_alternative_names_are_handed_on_and_nothing_else() -> None:
    names = (x509.DNSName("a.example"), x509.RegisteredID(x509.ObjectIdentifier("1.2.3")))
    pem = signed(issuer(), read_request(pkcs10(names=names)), ["any", "key agreement", "encipher only"], None, NOW)
    made = x509.load_pem_x509_certificate(pem)
    assert list(made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value) == [names[0]]
    usage = made.extensions.get_extension_for_class(x509.KeyUsage).value
    assert usage.key_agreement
    assert usage.encipher_only
    assert not usage.digital_signature


def _forged() -> str:
    pem = base64.b64decode(pkcs10())
    der = bytearray(x509.load_pem_x509_csr(pem).public_bytes(serialization.Encoding.DER))
    at = der.index(b"jane")
    der[at : at + 4] = b"root"
    text = base64.encodebytes(bytes(der)).decode()
    whole = f"-----BEGIN CERTIFICATE REQUEST-----\n{text}-----END CERTIFICATE REQUEST-----\n"
    return base64.b64encode(whole.encode()).decode()


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ("", "PEM block type must be CERTIFICATE REQUEST"),
        ("?", "PEM block type must be CERTIFICATE REQUEST"),
        (base64.b64encode(issuer().certificate_pem).decode(), "PEM block type must be CERTIFICATE REQUEST"),
        (
            base64.b64encode(b"-----BEGIN CERTIFICATE REQUEST-----\neA==\n-----END CERTIFICATE REQUEST-----").decode(),
            "cannot be read",
        ),
        (_forged(), "signature of the request does not fit its key"),
        (base64.b64encode(b"x" * 100_000).decode(), "at most 65536 bytes"),
    ],
)
def test_a_request_that_is_none_is_refused(request_: str, why: str) -> None:
    with pytest.raises(RequestError, match=why):
        read_request(request_)


@pytest.mark.parametrize("name", ["a/b", "..", "50%"])
async def test_a_name_that_no_path_can_have_is_refused(api: Api, name: str) -> None:
    answer = await api.post(CSRS, csr(name))
    assert answer.code == 400
    assert answer.doc["message"].startswith(f'Name parameter invalid: "{name}": may not ')
