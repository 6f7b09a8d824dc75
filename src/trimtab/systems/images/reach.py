"""From a Registry to a client of it: where it answers, whom to trust, which login; and what of it is asked for.

What is wrong with the Registry or its Secret is a RegistryError too, so that whoever asks has one kind of refusal to tell.
No text holds a value of a Secret.
"""

# ruff: noqa: N818 - they read as what happened

from __future__ import annotations

import ssl

from msgspec import UNSET

from trimtab.model.errors import StatusError
from trimtab.runtime.credentials import Credentials, types
from trimtab.runtime.credentials.types import DockerConfig, RegistryLogin, SecretRef
from trimtab.runtime.outbound import Tls
from trimtab.systems.images.kinds.registry import Filter, Registry
from trimtab.systems.images.registry.client import RegistryClient
from trimtab.systems.images.registry.connections import Connections
from trimtab.systems.images.registry.errors import NoCatalog, RegistryError, Untrusted
from trimtab.systems.images.registry.manifests import Platform
from trimtab.systems.images.registry.references import BadReference, Endpoint, endpoint, is_repository, repository_of


class InvalidRegistry(RegistryError):
    """Its uri, or a repository that it names, is none."""

    reason = "InvalidRegistry"


class SecretNotFound(RegistryError):
    """The Secret of authSecret is not there."""

    reason = "SecretNotFound"


class SecretInvalid(RegistryError):
    """It holds no login, or may not be read."""

    reason = "SecretInvalid"


async def client_of(registry: Registry, connections: Connections, credentials: Credentials) -> RegistryClient:
    """A client with the login as it is now. RegistryError when the Registry or its Secret cannot be used."""
    where = endpoint_of(registry)
    return connections.client(where, tls=_tls(registry, where), login=await _login(registry, credentials))


def endpoint_of(registry: Registry) -> Endpoint:
    try:
        return endpoint(registry.spec.uri, plain_http=registry.spec.plain_http)
    except BadReference as bad:
        raise InvalidRegistry("spec.uri", str(bad)) from None


def filters_of(registry: Registry) -> tuple[Filter, ...]:
    """Its filters, with the full names of repositories: `nginx` is library/nginx in Docker Hub."""
    where = endpoint_of(registry)

    def named(written: Filter) -> Filter:
        if not is_repository(written.repository):
            return written  # a pattern
        return written.replace(repository=repository_of(written.repository, where))

    return tuple(map(named, registry.spec.filters))


def platforms_of(registry: Registry) -> tuple[Platform, ...]:
    """Those that are wanted; none are all."""
    return tuple(
        Platform(each.os or "", each.architecture or "", each.variant or "") for each in registry.spec.platforms
    )


def named_of(registry: Registry, where: Endpoint) -> list[str]:
    """The repositories that it names, in full and each once."""
    try:
        return list(dict.fromkeys(repository_of(name, where) for name in registry.spec.repositories))
    except BadReference as bad:
        raise InvalidRegistry("spec.repositories", str(bad)) from None


async def repositories_of(registry: Registry, client: RegistryClient) -> list[str] | None:
    """What to list; None is the catalogue. By catalogType: Auto is what is named, else the catalogue; OCIDistribution is
    the catalogue, and of that what is named; NoCatalog is what is named."""
    named = named_of(registry, client.registry)
    if registry.spec.catalog_type == "NoCatalog" and not named:
        why = "catalogType is NoCatalog and nothing is named: write the repositories into spec.repositories"
        raise NoCatalog(f"repositories of {client.registry.name}", why)
    if registry.spec.catalog_type != "OCIDistribution" or not named:
        return named or None
    wanted = set(named)
    there = {repository async for repository in client.repositories() if repository in wanted}
    return [repository for repository in named if repository in there]


def _tls(registry: Registry, where: Endpoint) -> Tls:
    ca = (registry.spec.ca_bundle or "").encode("ascii", "replace")  # comments in a bundle may be in any language
    if ca:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=ca.decode("ascii"))
        except ssl.SSLError:
            raise Untrusted(where.name, "caBundle holds no certificate in PEM; correct caBundle") from None
    return Tls(ca=ca, insecure=registry.spec.skip_tls_verify)


async def _login(registry: Registry, credentials: Credentials) -> DockerConfig | RegistryLogin | None:
    if registry.spec.auth_secret is UNSET:
        return None
    ref = SecretRef(str(registry.spec.auth_secret), registry.namespace)
    try:
        values = await credentials.resolve_all(ref)
        if ".dockerconfigjson" in values:
            return types.docker_config(values, ref)
        if "username" not in values:
            there = f"it has {', '.join(sorted(values))}" if values else "it is empty"
            why = f"{ref} has neither username and password nor .dockerconfigjson; {there}"
            raise SecretInvalid("spec.authSecret", why)
        login = types.basic_auth(values, ref)
    except types.SecretNotFound as error:
        raise SecretNotFound("spec.authSecret", str(error)) from None
    except types.CredentialError as error:
        raise SecretInvalid("spec.authSecret", str(error)) from None
    except StatusError as error:
        if error.code != 403:
            raise
        raise SecretInvalid("spec.authSecret", f"{ref} may not be read: give the right to get it") from None
    return RegistryLogin(username=login.username, password=login.password)
