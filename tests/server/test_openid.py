"""A stranger verifies a token of a service account by the two public documents alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from tests.server.api import Api, running
from trimtab.server.auth.identity import Authenticator
from trimtab.server.auth.issuing import Issuer, OpenId, discoverable, issuer_problem, jwks_problem
from trimtab.server.auth.pki import ensure_pki
from trimtab.server.auth.tokens import InvalidTokenError, TokenKey
from trimtab.server.reader import StoreReader
from trimtab.store.memory import MemoryStore

ISSUER = "https://issuer.example"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    key = TokenKey(ensure_pki(tmp_path).service_account_key.read_bytes())
    async with running(token_key=key, issuer=ISSUER, audiences=(ISSUER, "other")) as api:
        api.server.roots.openid = OpenId(key, ISSUER, "https://keys.example/openid/v1/jwks")
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
        await api.post("/api/v1/namespaces/default/serviceaccounts", account)
        yield api


async def token(api: Api, **spec: Any) -> str:
    answer = await api.post("/api/v1/namespaces/default/serviceaccounts/robot/token", {"spec": spec})
    return str(answer.doc["status"]["token"])


async def test_a_stranger_verifies_a_token(api: Api) -> None:
    robot = api.as_("system:serviceaccount:default:robot", "system:serviceaccounts")
    found = (await robot.get("/.well-known/openid-configuration")).doc
    assert found == {
        "issuer": ISSUER,
        "jwks_uri": "https://keys.example/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    keys = jwt.PyJWKSet.from_dict((await robot.get("/openid/v1/jwks")).doc)
    good = await token(api, audiences=["vault"])
    key = keys[jwt.get_unverified_header(good)["kid"]]
    allowed = found["id_token_signing_alg_values_supported"]
    claims = jwt.decode(good, key, algorithms=allowed, audience="vault", issuer=found["issuer"])
    assert claims["sub"] == "system:serviceaccount:default:robot"
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(good[:-8] + "AAAAAAAA", key, algorithms=allowed, audience="vault", issuer=ISSUER)


async def test_the_keys_hold_nothing_private(api: Api) -> None:
    (key,) = (await api.get("/openid/v1/jwks")).doc["keys"]
    assert key.keys() == {"use", "kty", "kid", "crv", "alg", "x", "y"}


async def test_only_service_accounts_and_who_was_allowed_may_look(api: Api) -> None:
    for path in ("/.well-known/openid-configuration", "/openid/v1/jwks"):
        assert (await api.as_("bob").get(path)).code == 403
        assert path in (await api.get("/")).doc["paths"]


async def test_without_an_issuer_that_can_be_found_there_is_nothing(api: Api) -> None:
    api.server.roots.openid = None
    assert (await api.get("/openid/v1/jwks")).code == 404
    assert "/openid/v1/jwks" not in (await api.get("/")).doc["paths"]


async def test_a_token_is_for_all_names_of_the_server_unless_it_says_otherwise(api: Api) -> None:
    claims = jwt.decode(await token(api), options={"verify_signature": False})
    assert (claims["iss"], claims["aud"]) == (ISSUER, [ISSUER, "other"])


async def test_tokens_of_former_issuers_are_accepted(api: Api, tmp_path: Path) -> None:
    key = TokenKey(ensure_pki(tmp_path).service_account_key.read_bytes())
    assert isinstance(api.server.store, MemoryStore)
    reader = StoreReader(api.server.store)
    old = await token(api)
    names = ("https://new.example", ISSUER)
    knows = Authenticator(key, reader, issuer=names[0], audiences=names, former_issuers=names[1:])
    user, _ = await knows.review_token(old)
    assert user.name == "system:serviceaccount:default:robot"
    with pytest.raises(InvalidTokenError):
        await Authenticator(key, reader, issuer=names[0], audiences=names).review_token(old)


def test_what_an_issuer_may_be() -> None:
    assert Issuer().names == ("https://kubernetes.default.svc.cluster.local",)
    assert discoverable(ISSUER)
    for name in ("http://a", "https://a?b", "https://a#b", "me", "https://[a"):
        assert not discoverable(name)
    assert not issuer_problem("me")
    assert not jwks_problem("https://a/keys")
    for name in ("", "https://[a", "a b"):
        assert issuer_problem(name)
    for uri in ("", "http://a", "https://[a", "https:///x"):
        assert jwks_problem(uri)
