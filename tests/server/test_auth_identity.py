"""Who is asking: certificates, tokens and nobody."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from trimtab.model.errors import StatusError
from trimtab.server.auth.certificates import signing_key
from trimtab.server.auth.identity import ANONYMOUS, CREDENTIAL_ID, Authenticator, User
from trimtab.server.auth.pki import ensure_pki, split_pem
from trimtab.server.auth.tokens import ISSUER, Ref, TokenKey, encode_claims

NOW = 1_800_000_000.0


class Objects(dict[tuple[str, str, str], dict[str, Any]]):
    """Objects in memory, as the server's reader gives them."""

    reads = 0

    async def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:  # type: ignore[override]
        self.reads += 1
        return dict.get(self, (resource, namespace, name))


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def key() -> TokenKey:
    return TokenKey(signing_key())


@pytest.fixture
def objects() -> Objects:
    return Objects({("serviceaccounts", "default", "robot"): {"metadata": {"name": "robot", "uid": "u-1"}}})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def authenticator(key: TokenKey, objects: Objects, clock: Clock) -> Authenticator:
    admin = User("admin", groups=("system:masters",))
    return Authenticator(key, objects, issuer=ISSUER, audiences=(ISSUER,), static_tokens={"s3cret": admin}, now=clock)


def token(key: TokenKey, **changes: Any) -> str:
    given: dict[str, Any] = {
        "issuer": ISSUER,
        "audiences": (ISSUER,),
        "namespace": "default",
        "service_account": Ref("robot", "u-1"),
        "bound": {},
        "now": NOW,
        "seconds": 600,
    }
    return key.sign(encode_claims(**(given | changes)))


async def refused(authenticator: Authenticator, credential: str) -> bool:
    try:
        await authenticator.authenticate(f"Bearer {credential}")
    except StatusError as error:
        return error.code == 401 and error.message == "Unauthorized"
    return False


@pytest.mark.parametrize("header", [None, "", "Basic eDp5", "Bearer", "Bearer ", b"Bearer  s3cret"])
async def test_no_bearer_token_is_anonymous(authenticator: Authenticator, header: str | bytes | None) -> None:
    assert await authenticator.authenticate(header) == ANONYMOUS


@pytest.mark.parametrize("header", ["Bearer s3cret", b"bearer s3cret", " BEARER s3cret "])
async def test_a_static_token_is_its_user(authenticator: Authenticator, header: str | bytes) -> None:
    assert await authenticator.authenticate(header) == User("admin", groups=("system:masters", "system:authenticated"))


async def test_a_service_account_token_is_its_account(authenticator: Authenticator, key: TokenKey) -> None:
    user = await authenticator.authenticate(f"Bearer {token(key)}")
    assert (user.name, user.uid) == ("system:serviceaccount:default:robot", "u-1")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")
    assert user.extra[CREDENTIAL_ID][0].startswith("JTI=")


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://elsewhere"},
        {"audiences": ("vault",)},
        {"audiences": ()},
        {"now": NOW - 700},
        {"now": NOW + 90},
        {"service_account": Ref("robot", "u-2")},
        {"service_account": Ref("nobody", "u-1")},
        {"namespace": "other"},
        {"bound": {"secret": Ref("gone", "x")}},
        {"bound": {"pod": Ref("gone", "x")}},
    ],
    ids=str,
)
async def test_a_token_that_is_not_for_us_now_is_refused(
    authenticator: Authenticator, key: TokenKey, changes: dict[str, Any]
) -> None:
    assert await refused(authenticator, token(key, **changes))


async def test_a_token_of_another_key_is_refused(authenticator: Authenticator) -> None:
    assert await refused(authenticator, token(TokenKey(signing_key())))


@pytest.mark.parametrize("part", [0, 1, 2])
async def test_a_token_with_a_changed_part_is_refused(authenticator: Authenticator, key: TokenKey, part: int) -> None:
    parts = token(key).split(".")
    middle = len(parts[part]) // 2
    changed = "A" if parts[part][middle] != "A" else "B"
    parts[part] = parts[part][:middle] + changed + parts[part][middle + 1 :]
    assert await refused(authenticator, ".".join(parts))


@pytest.mark.parametrize(
    "header", ['{"alg":"none"}', '{"alg":"HS256"}', "[]", "\\xff", '{"alg":"ES256","crit":["b64"]}']
)
async def test_a_token_with_another_algorithm_is_refused(
    authenticator: Authenticator, key: TokenKey, header: str
) -> None:
    import base64

    encoded = base64.urlsafe_b64encode(header.encode("latin-1")).rstrip(b"=").decode()
    _, payload, signature = token(key).split(".")
    assert await refused(authenticator, f"{encoded}.{payload}.{signature}")
    assert await refused(authenticator, f"{encoded}.{payload}.")


@pytest.mark.parametrize("text", ["x", "a.b", "a.b.c", "....", "é.é.é", "a" * 20_000])
async def test_what_is_not_a_token_is_refused(authenticator: Authenticator, text: str) -> None:
    assert await refused(authenticator, text)


async def test_a_verified_token_is_not_read_for_again(
    authenticator: Authenticator, key: TokenKey, objects: Objects
) -> None:
    header = f"Bearer {token(key)}"
    await authenticator.authenticate(header)
    reads = objects.reads
    assert authenticator.known(header) is not None
    assert objects.reads == reads


async def test_a_known_token_expires(authenticator: Authenticator, key: TokenKey, clock: Clock) -> None:
    credential = token(key)
    await authenticator.authenticate(f"Bearer {credential}")
    clock.now += 661
    assert await refused(authenticator, credential)


async def test_a_deleted_account_ends_its_known_tokens(
    authenticator: Authenticator, key: TokenKey, objects: Objects
) -> None:
    credential = token(key)
    await authenticator.authenticate(f"Bearer {credential}")
    del objects["serviceaccounts", "default", "robot"]
    authenticator.changed("serviceaccounts", "default", "robot")
    assert await refused(authenticator, credential)


async def test_missed_changes_end_all_known_tokens(authenticator: Authenticator, key: TokenKey) -> None:
    header = f"Bearer {token(key)}"
    await authenticator.authenticate(header)
    authenticator.changed_unknown()
    assert authenticator.known(header) is None


async def test_a_deleted_secret_ends_the_tokens_bound_to_it(
    authenticator: Authenticator, key: TokenKey, objects: Objects
) -> None:
    objects["secrets", "default", "s"] = {"metadata": {"name": "s", "uid": "u-s"}}
    credential = token(key, bound={"secret": Ref("s", "u-s")})
    await authenticator.authenticate(f"Bearer {credential}")
    del objects["secrets", "default", "s"]
    authenticator.changed("secrets", "default", "s")
    assert await refused(authenticator, credential)


async def test_an_account_in_deletion_for_over_a_minute_is_refused(
    authenticator: Authenticator, key: TokenKey, objects: Objects
) -> None:
    objects["serviceaccounts", "default", "robot"]["metadata"]["deletionTimestamp"] = (
        "2027-01-15T07:58:00Z"  # NOW - 120 s
    )
    assert await refused(authenticator, token(key))


async def test_a_deletion_during_verification_leaves_nothing_known(key: TokenKey, objects: Objects) -> None:
    class Racing(Objects):
        async def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:  # type: ignore[override]
            found = await super().get(resource, namespace, name)
            authenticator.changed(resource, namespace, name)
            return found

    authenticator = Authenticator(key, Racing(objects), issuer=ISSUER, audiences=(ISSUER,), now=Clock())
    header = f"Bearer {token(key)}"
    await authenticator.authenticate(header)
    assert authenticator.known(header) is None


async def test_a_client_certificate_is_its_common_name_and_organizations(
    authenticator: Authenticator, tmp_path: Path, clock: Clock
) -> None:
    pki = ensure_pki(tmp_path / "pki", now=NOW)
    der = ssl.PEM_cert_to_DER_cert(split_pem(pki.admin.read_bytes())[0].decode())
    user = await authenticator.authenticate("Bearer wrong", der)
    assert (user.name, user.groups) == ("trimtab-admin", ("system:masters", "system:authenticated"))
    assert user.extra[CREDENTIAL_ID][0].startswith("X509SHA256=")
    clock.now += 366 * 86_400
    with pytest.raises(StatusError, match="Unauthorized"):
        authenticator.known(None, der)


def test_representations_hold_no_secret(authenticator: Authenticator, key: TokenKey) -> None:
    credential = token(key)
    shown = f"{authenticator!r} {key!r} {key.verify(credential)!r} {vars(authenticator)}"
    assert "s3cret" not in shown
    assert "PRIVATE" not in shown
    assert credential not in shown
