"""Who is asking, and who may become somebody: token reviews, impersonation, certificate requests, OpenID discovery."""

from typing import Any

from ..exchange import Request
from ..verbs import TABLE, delete, get, json_patch, merge, post, put

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
ONE = f"{CSRS}/$id"
ACCOUNTS = "/api/v1/namespaces/$ns/serviceaccounts"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

# openssl req -new -key KEY -subj /O=ops/CN=jane, and the same with /O=system:masters
JANE = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIV01IOENBUUF3SFRFTU1Bb0dBMVVFQ2d3RGIzQnpNUTB3Q3dZRFZRUURE"
    "QVJxWVc1bE1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUV5KytSNVgvVDQ5MDI4RzFGenJaNWx3enE4TUJFYVMxTWpZZ2FO"
    "dUdVCnZlM3dLSFJ2cjlBaG5NTnF3QVQ1T1BmdndUSzZleXhONUg5RWRKSXl5ajhMcXFBQU1Bb0dDQ3FHU000OUJBTUMKQTBjQU1FUUNJQnJz"
    "c0VyNHhIT2VLQ1VCbUpnT244M3hyY09zalM4VlI0T1hQb0RBdFEyU0FpQUpyQU5CV3JiRwpSempOc1EzK3JSN3Nkd08zRGJBTmxDK3lxd0Jj"
    "aGR2QWFnPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="
)
MASTER = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIaU1JR0tBZ0VBTUNneEZ6QVZCZ05WQkFvTURuTjVjM1JsYlRwdFlYTjBa"
    "WEp6TVEwd0N3WURWUVFEREFScQpZVzVsTUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFeSsrUjVYL1Q0OTAyOEcxRnpyWjVs"
    "d3pxCjhNQkVhUzFNallnYU51R1V2ZTN3S0hSdnI5QWhuTU5xd0FUNU9QZnZ3VEs2ZXl4TjVIOUVkSkl5eWo4THFxQUEKTUFvR0NDcUdTTTQ5"
    "QkFNQ0EwY0FNRVFDSURZS0xlRFd3a1dHSUhDQTkzelMxcFZKTzFIeWNaTnEwZE9rUGx2LwpqNkYwQWlCaUNuRFEzTHA4TVhlTWU5Y3IzVmdY"
    "bDdpQ3Z2ZEdkVkNveGFqS3BOcXJwZz09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo="
)


def csr(name: str = "$id", **spec: Any) -> dict[str, Any]:
    given = {"request": JANE, "signerName": "example.com/signer", "usages": ["client auth"], **spec}
    given = {field: value for field, value in given.items() if value is not None}
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": given,
    }


def as_(request: Request, **headers: str) -> Request:
    """The same as somebody else. Two underlines are a percent sign."""
    named = tuple(
        (f"Impersonate-{name.replace('__', '%').replace('_', '-')}", value) for name, value in headers.items()
    )
    return Request(method=request.method, path=request.path, body=request.body, headers=(*request.headers, *named))


def conditions(*types: str, status: str = "True", **more: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": word, "status": status, "reason": "R", **more} for word in types]}}


def made(**spec: Any) -> Request:
    return as_(post(CSRS, csr(**spec)), User="jane", Group="system:masters", Uid="u-1", Extra_color="red")


def refused(**spec: Any) -> list[Request]:
    return [post(f"{CSRS}?dryRun=All", csr(**spec))]


def review(token: Any = None, **spec: Any) -> Request:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, **spec}}
    return post(REVIEWS, body)


def who(**headers: str) -> list[Request]:
    return [as_(post(WHO, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}), **headers)]


def account() -> Request:
    return post(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})


def token(**spec: Any) -> Request:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return post(f"{ACCOUNTS}/robot/token", body)


def granted(*rules: dict[str, Any]) -> list[Request]:
    """A role of the scenario's own for the user `approver-$id`."""
    rbac = "rbac.authorization.k8s.io"
    return [
        post(
            f"/apis/{rbac}/v1/clusterroles",
            {"metadata": {"name": "$id"}, "rules": list(rules)},
        ),
        post(
            f"/apis/{rbac}/v1/clusterrolebindings",
            {
                "metadata": {"name": "$id"},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "$id"},
                "subjects": [{"kind": "User", "apiGroup": rbac, "name": "approver"}],
            },
        ),
    ]


def dropped() -> list[Request]:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    return [delete(f"{rbac}/clusterroles/$id"), delete(f"{rbac}/clusterrolebindings/$id"), delete(ONE)]


DOORS = {
    "apiGroups": ["certificates.k8s.io"],
    "resources": ["certificatesigningrequests/approval", "certificatesigningrequests/status"],
    "verbs": ["update", "patch"],
}


def signers(verb: str, *names: str) -> dict[str, Any]:
    rule = {"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "verbs": [verb]}
    return {**rule, "resourceNames": list(names)} if names else rule


APPROVE = as_(merge(f"{ONE}/approval", conditions("Approved")), User="approver")
SIGN = as_(merge(f"{ONE}/status", conditions("Failed")), User="approver")

SCENARIOS: dict[str, list[Request]] = {
    "a certificate request says who asked": [made(), get(ONE), get(CSRS, accept=TABLE), delete(ONE)],
    "one that says so itself is not believed": [made(username="root", groups=["system:masters"]), delete(ONE)],
    "any name will do": [as_(post(f"{CSRS}?dryRun=All", csr("A_b:c")), User="jane", Group="system:masters")],
    "its spec does not change": [made(), merge(ONE, {"spec": {"usages": ["server auth"]}}), delete(ONE)],
    "nor its status by its own door": [made(), merge(ONE, conditions("Approved")), delete(ONE)],
    "it is found by its signer": [
        made(),
        get(f"{CSRS}?fieldSelector=spec.signerName%3Dexample.com%2Fother"),
        get(f"{CSRS}?fieldSelector=spec.username%3Dx"),
        delete(ONE),
    ],
    "approved": [made(), merge(f"{ONE}/approval", conditions("Approved")), get(f"{ONE}/approval"), delete(ONE)],
    "approved and denied": [made(), merge(f"{ONE}/approval", conditions("Approved", "Denied")), delete(ONE)],
    "approved twice": [made(), merge(f"{ONE}/approval", conditions("Approved", "Approved")), delete(ONE)],
    "half approved": [made(), merge(f"{ONE}/approval", conditions("Approved", status="False")), delete(ONE)],
    "an approval without status": [made(), merge(f"{ONE}/approval", conditions("Approved", status="")), delete(ONE)],
    "a condition without type": [made(), merge(f"{ONE}/approval", conditions("")), delete(ONE)],
    "a condition of another type": [made(), merge(f"{ONE}/approval", conditions("Odd", status="False")), delete(ONE)],
    "an approval stays": [
        made(),
        merge(f"{ONE}/approval", conditions("Approved")),
        merge(f"{ONE}/approval", {"status": {"conditions": []}}),
        merge(f"{ONE}/approval", conditions("Denied")),
        merge(f"{ONE}/status", {"status": {"conditions": []}}),
        delete(ONE),
    ],
    "approved by the door of status": [made(), merge(f"{ONE}/status", conditions("Approved")), delete(ONE)],
    "a certificate by the door of approval": [
        made(),
        merge(f"{ONE}/approval", {"status": {"certificate": "eA=="}}),
        delete(ONE),
    ],
    "a certificate that is none": [made(), merge(f"{ONE}/status", {"status": {"certificate": "eA=="}}), delete(ONE)],
    "a request as certificate": [made(), merge(f"{ONE}/status", {"status": {"certificate": JANE}}), delete(ONE)],
    "failed": [made(), merge(f"{ONE}/status", conditions("Failed", message="m")), get(ONE), delete(ONE)],
    "put by the door of approval": [
        made(),
        put(f"{ONE}/approval", {**csr(), **conditions("Denied")}),
        json_patch(f"{ONE}/approval", {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}),
        delete(ONE),
    ],
    "doors of what is not there": [get(f"{ONE}/approval"), merge(f"{ONE}/approval", {}), get(f"{ONE}/nothing")],
    "created by the door of approval": [post(f"{ONE}/approval", csr())],
    "without a request": refused(request=None),
    "with a request that is no PEM": refused(request="eA=="),
    "with a request that is no base64": refused(request="?"),
    "without usages": refused(usages=None),
    "with odd usages": refused(usages=["odd", "client auth", "client auth"]),
    "without a signer": refused(signerName=None),
    "with a signer without domain": refused(signerName="signer"),
    "with a signer of one word": refused(signerName="example/signer"),
    "with a signer of bad words": refused(signerName="Example.com/sig_ner"),
    "with a signer of three parts": refused(signerName="example.com/a/b"),
    "with the legacy signer": refused(signerName="kubernetes.io/legacy-unknown"),
    "for too short a time": refused(expirationSeconds=599),
    "for masters": refused(request=MASTER, signerName="kubernetes.io/kube-apiserver-client"),
    "for masters by another signer": [made(request=MASTER), delete(ONE)],
    "who may not approve": [*granted(DOORS), made(), APPROVE, SIGN, *dropped()],
    "who may approve one signer": [
        *granted(DOORS, signers("approve", "example.com/signer")),
        made(),
        APPROVE,
        SIGN,
        *dropped(),
    ],
    "who may sign a domain": [*granted(DOORS, signers("sign", "example.com/*")), made(), APPROVE, SIGN, *dropped()],
    "who may approve another": [*granted(DOORS, signers("approve", "example.com/other")), made(), APPROVE, *dropped()],
    "who may approve all": [*granted(DOORS, signers("approve")), made(), APPROVE, *dropped()],
    "the parts of the group": [get("/apis/certificates.k8s.io"), get("/apis/certificates.k8s.io/v1")],
    "a good token": [account(), token(), review("$token:1")],
    "a good token for others": [account(), token(audiences=["a", "b"]), review("$token:1", audiences=["b", "c"])],
    "a token for others asked of us": [account(), token(audiences=["a"]), review("$token:1")],
    "a token asked for another": [account(), token(), review("$token:1", audiences=["x"])],
    "a token whose account is gone": [account(), token(), delete(f"{ACCOUNTS}/robot"), review("$token:1")],
    "a token for ten seconds": [account(), token(expirationSeconds=10)],
    "no token": [review(), review("")],
    "a token that is none": [review("x"), review("a.b.c")],
    "a review without spec": [post(REVIEWS, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"})],
    "a review with a name": [
        post(REVIEWS, {"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"token": "x", "audiences": ["a"]}})
    ],
    "a review of another kind": [post(REVIEWS, {"apiVersion": "v1", "kind": "Pod", "spec": {"token": "x"}})],
    "a review with an odd field": [post(f"{REVIEWS}?fieldValidation=Strict", {"spec": {"token": "x", "odd": 1}})],
    "reviews are not listed": [get(REVIEWS), delete(f"{REVIEWS}/x")],
    "as somebody": who(User="jane"),
    "as somebody of a group": who(User="jane", Group="ops"),
    "as an administrator": who(User="jane", Group="system:masters"),
    "as nobody": who(User="system:anonymous"),
    "as nobody of a group": who(User="system:anonymous", Group="system:authenticated"),
    "as one who is not authenticated": who(User="jane", Group="system:unauthenticated"),
    "as a service account": who(User="system:serviceaccount:a:b"),
    "as a service account of a group": who(User="system:serviceaccount:a:b", Group="ops"),
    "as a service account that cannot be": who(User="system:serviceaccount:A:b"),
    "with a uid": who(User="jane", Uid="u"),
    "with extras": who(User="jane", Extra_Color="red", Extra_a__2fb="1"),
    "with an extra that is badly written": who(User="jane", Extra_a__zz="1"),
    "with a uid alone": who(Uid="u"),
    "with a group alone": who(Group="ops"),
    "with an extra alone": who(Extra_color="red"),
    "with a word that nobody knows": who(User="jane", Odd="1"),
    "who may not become another": [as_(get("/api/v1/namespaces"), User="jane"), as_(get("/version"), User="jane")],
    "one who is reviewed": [  # of a path that only one binding allows: the real server names any of several
        post(
            ACCESS,
            {
                "spec": {
                    "user": "jane",
                    "uid": "u",
                    "groups": ["ops", "system:authenticated"],
                    "extra": {"a/b": ["1"]},
                    "nonResourceAttributes": {"path": "/api", "verb": "get"},
                }
            },
        )
    ],
    "openid for those who may not": [
        as_(get("/.well-known/openid-configuration"), User="jane"),
        as_(get("/openid/v1/jwks"), User="jane"),
    ],
    "openid by other methods": [post("/openid/v1/jwks", {}), delete("/.well-known/openid-configuration")],
}
