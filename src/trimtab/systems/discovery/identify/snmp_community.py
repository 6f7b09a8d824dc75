"""Objects of an agent by a community: SNMP v1 and v2c.

They are spoken here and not by gufo-snmp, for the error-status of an answer decides what to do next, and gufo-snmp does
not tell it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from trimtab.systems.discovery.findings import Access, LoginEnd
from trimtab.systems.discovery.identify.snmp_exchange import Exchange, patience
from trimtab.systems.discovery.identify.snmp_failures import malformed, not_sent, refused, silent
from trimtab.systems.discovery.identify.snmp_messages import (
    BadMessage,
    Response,
    Value,
    Version,
    get_request,
    read_response,
)

NO_ACCESS, AUTHORIZATION_ERROR = 6, 16  # RFC 3416 section 3


class CommunityAgent:
    """One unknown object fails a whole Get of v1: then each is asked for by itself."""

    login: LoginEnd = "unknown"
    """A community is no login that anybody counts."""

    def __init__(self, access: Access, version: Version, community: bytes, request_id: int) -> None:
        self._access = access
        self._version = version
        self._community = community
        self._request_id = request_id
        self._exchange: Exchange | None = None

    async def get(self, oids: Sequence[str]) -> Mapping[str, Value]:
        """The values that the agent has. NotIdentified."""
        response = await self._ask(oids)
        if not response.error:
            return present(response)
        found: dict[str, Value] = {}
        for oid in oids if len(oids) > 1 else ():
            alone = await self._ask((oid,))
            if not alone.error:
                found.update(present(alone))
        return found

    def close(self) -> None:
        if self._exchange is not None:
            self._exchange.close()

    async def _ask(self, oids: Sequence[str]) -> Response:
        self._request_id = self._request_id % 0x7FFFFFFF + 1
        question = get_request(self._version, self._community, self._request_id, oids)
        try:
            if self._exchange is None:
                self._exchange = Exchange(self._access.address, self._access.profile.used_port)
            each, attempts = patience(self._access.profile)
            response = await self._exchange.ask(question, _to(self._request_id), each=each, attempts=attempts)
        except TimeoutError:
            raise silent(self._access) from None
        except OSError as error:
            raise not_sent(self._access, error) from None
        except BadMessage as error:
            raise malformed(self._access, str(error)) from None
        return checked(self._access, response)


def present(response: Response) -> dict[str, Value]:
    return {oid: value for oid, value in response.values if value is not None}


def checked(access: Access, response: Response) -> Response:
    """The response. NotIdentified when it says that we may not ask."""
    if response.error in (NO_ACCESS, AUTHORIZATION_ERROR):
        raise refused(
            f"the device refuses the community of the Secret {access.login.secret}; "
            "allow it to read 1.3.6.1.2.1.1 there"
        )
    return response


def _to(request_id: int) -> Callable[[bytes], Response | None]:
    def read(data: bytes) -> Response | None:
        response = read_response(data)
        return response if response.request_id == request_id else None

    return read
