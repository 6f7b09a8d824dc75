"""Identification by gNMI: Capabilities → vendor profile → one Get for all of its paths.

flow        connect and judge the device's key (`gnmi_link`, `tls`) → Capabilities, once → the vendor → Get. Where a Get
            fails as a whole, because the device does not know one of the paths, each path is asked on its own.
guarantees  Credentials go as metadata of the calls, so after the key was judged, and only on that connection. Each
            answer is bounded by the profile's timeout and by 8 MiB. The connection is always closed.
caveats     A device of no known vendor is identified by its key alone. One that gives no value at all is not
            identified: it may be booting, and what is known of it should stay.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from google.protobuf.message import DecodeError
from msgspec import UNSET

from trimtab.systems.discovery.findings import Access, Identified, Login, NotIdentified, Outcome
from trimtab.systems.discovery.identify import gnmi_failures as failures
from trimtab.systems.discovery.identify import gnmi_messages as messages
from trimtab.systems.discovery.identify import gnmi_paths as paths
from trimtab.systems.discovery.identify import tls
from trimtab.systems.discovery.identify.gnmi_grpc import grpc
from trimtab.systems.discovery.identify.gnmi_link import Link
from trimtab.systems.discovery.kinds import DiscoveryInfo, Evidence, GnmiVendor, Key
from trimtab.systems.discovery.vendors.choice import Choice, Model, Vendors

ENCODINGS = ("JSON_IETF", "JSON", "PROTO", "ASCII")
"""What we can read, best first."""
CONTEXTS = 64
"""TLS contexts that are kept: one for each Secret and mode."""
MOST_ENCODINGS = 16
MOST_MODELS = 20_000
"""Models that are looked at."""
MOST_UPDATES = 20_000
MOST_JSON = 1024 * 1024
"""Of a Get: what can be read without keeping the event loop from its other work."""


class GnmiIdentifier:
    """An Identifier. Between devices it keeps TLS contexts, and a folder for the sockets of its links."""

    def __init__(self, vendors: Vendors) -> None:
        self._vendors = vendors
        self._contexts: dict[tuple[bytes | None, bytes | None, bytes, bool], Any] = {}
        self._folder: Path | None = None
        self._numbers = itertools.count()

    async def identify(self, access: Access) -> Identified:
        """NotIdentified when it cannot be told."""
        _metadata(access.login)  # before anything is sent
        seconds = access.profile.timeout.seconds
        context = None if access.profile.insecure else self._context(access)
        link = Link(self._socket())
        pin = ""
        try:
            pin = await _connect(link, access, context, seconds)
            if pin and access.admit is not None:
                await access.admit(pin)  # a device in plain text shows no key
            async with _channel(link, access) as channel:
                return await self._ask(_Device(channel, link, access, seconds), pin)
        except NotIdentified as failure:
            failure.pin = failure.pin or pin
            if failure.login == "unknown" and not failures.greeted(link.first):
                failure.login = "unsent"
            raise
        finally:
            await link.close()

    async def close(self) -> None:
        self._contexts.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    async def _ask(self, device: _Device, pin: str) -> Identified:
        capabilities = await device.capabilities()
        choice = self._vendors.gnmi(
            Model(model.name, model.organization, model.version)
            for model in itertools.islice(capabilities.supported_models, MOST_MODELS)
        )
        offered = _names(capabilities.supported_encodings)
        values: dict[Key, str] = {}
        if choice.spec is not None and choice.spec.paths:
            texts = await _get(device, choice.spec, offered)
            values = self._vendors.values(zip(choice.spec.paths, texts, strict=True))
            if not values:
                detail = f"The device answered none of the paths of vendor profile {choice.profile}; look at its paths."
                raise NotIdentified(Outcome.PROTOCOL_ERROR, detail, login="accepted")
        return _identified(choice, values, offered, pin)

    def _context(self, access: Access) -> Any:
        given, verify = access.tls, not access.profile.skip_verify
        secret = sha256(given.key.reveal_bytes()).digest() if given.key else b""
        key = (given.ca, given.certificate, secret, verify)
        made = self._contexts.get(key)
        if made is None:
            if len(self._contexts) >= CONTEXTS:
                self._contexts.clear()
            made = self._contexts[key] = tls.context(given, verify=verify)
        return made

    def _socket(self) -> Path:
        if self._folder is None:
            try:
                self._folder = Path(tempfile.mkdtemp(prefix="trimtab-gnmi-"))  # only we may enter it
            except OSError as error:
                raise failures.no_socket(error) from None
        return self._folder / str(next(self._numbers))


class _Device(msgspec.Struct, frozen=True):
    """A device that is connected, and how it is asked."""

    channel: Any
    link: Link
    access: Access
    seconds: float

    async def capabilities(self) -> Any:
        try:
            return await self.call(messages.CAPABILITIES, messages.CapabilityRequest(), messages.CapabilityResponse)
        except grpc.RpcError as error:
            raise await self.failed(error, "Capabilities") from None

    async def get(self, request: Any) -> Any:
        """RpcError where the device may answer another question."""
        try:
            return await self.call(messages.GET, request, messages.GetResponse)
        except grpc.RpcError as error:
            if failures.about_request(error) and not self.link.lost:
                raise
            raise await self.failed(error, "Get") from None

    async def failed(self, error: grpc.RpcError, call: str) -> NotIdentified:
        return await failures.not_answered(error, call, self.access, self.link, self.seconds)

    async def call(self, method: str, request: Any, answer: Any) -> Any:
        data = await self.channel.unary_unary(method)(
            request.SerializeToString(), timeout=self.seconds, metadata=_metadata(self.access.login)
        )
        try:
            return answer.FromString(data)
        except DecodeError:
            name = method.rpartition("/")[2]
            detail = f"The device's answer to {name} is no message of gNMI."
            raise NotIdentified(Outcome.PROTOCOL_ERROR, detail, login="accepted") from None


async def _connect(link: Link, access: Access, context: Any, seconds: float) -> str:
    """The fingerprint of the device's key; none without TLS."""
    name = tls.name(access)
    if context is not None:
        tls.check_name(context, name)
    try:
        async with asyncio.timeout(seconds):
            await link.connect(access.address, access.profile.used_port, context, name)
    except OSError as error:
        raise await failures.not_connected(error, access, seconds) from None
    pin = tls.judge(access, link.certificate) if context is not None else ""
    try:
        link.offer()
    except OSError as error:
        raise failures.no_socket(error) from None
    return pin


def _channel(link: Link, access: Access) -> Any:
    host = tls.name(access)
    options = [
        ("grpc.default_authority", f"{f'[{host}]' if ':' in host else host}:{access.profile.used_port}"),
        ("grpc.http2_scheme", "http" if access.profile.insecure else "https"),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_receive_message_length", failures.MOST),
        ("grpc.max_metadata_size", 64 * 1024),
        ("grpc.enable_retries", 0),
        ("grpc.enable_http_proxy", 0),
    ]
    return grpc.aio.insecure_channel(link.target, options=options)


async def _get(device: _Device, vendor: GnmiVendor, offered: Sequence[str]) -> list[str]:
    """What the device answers to each of the vendor's paths; an empty text where it has nothing."""
    wanted = [paths.parse(entry.path) for entry in vendor.paths]  # Vendors has none that cannot be read
    request = messages.GetRequest(encoding=messages.Encoding[_encoding(vendor, device.access, offered)].value)
    if device.access.profile.target_name:
        request.prefix.target = device.access.profile.target_name
    asked = [paths.to_message(path, modules=vendor.preserve_namespace) for path in wanted]
    try:
        request.path.extend(asked)
        return _found(await device.get(request), wanted)
    except grpc.RpcError as error:
        if len(asked) == 1:
            raise await device.failed(error, "Get") from None
    refusals: list[grpc.RpcError] = []
    texts = []
    for path, message in zip(wanted, asked, strict=True):
        del request.path[:]
        request.path.append(message)
        try:
            texts += _found(await device.get(request), [path])
        except grpc.RpcError as error:
            refusals.append(error)
            texts.append("")
    if len(refusals) == len(wanted):
        raise await device.failed(refusals[0], "Get")
    return texts


def _found(response: Any, wanted: Sequence[paths.Path]) -> list[str]:
    updates = sum(len(each.update) for each in response.notification)
    if updates <= MOST_UPDATES:
        values = (update.val for each in response.notification for update in each.update)
        if sum(len(value.json_val) + len(value.json_ietf_val) for value in values) <= MOST_JSON:
            return paths.find(response.notification, wanted)
    much = (
        f"more than {MOST_UPDATES} values" if updates > MOST_UPDATES else f"more than {MOST_JSON // 1024} KiB of JSON"
    )
    detail = f"The device answered Get with {much}; ask for narrower paths in the vendor profile."
    raise NotIdentified(Outcome.PROTOCOL_ERROR, detail, login="accepted")


def _encoding(vendor: GnmiVendor, access: Access, offered: Sequence[str]) -> str:
    """The vendor's, else the profile's, else the best one that we read; of these the first that the device offers. A
    device that says nothing of encodings is asked in the first."""
    preferred = [each for each in (vendor.encoding, access.profile.encoding) if each is not UNSET]
    candidates = [str(each) for each in (*preferred, *ENCODINGS)]
    return next((each for each in candidates if each in offered), candidates[0])


def _names(encodings: Sequence[int]) -> tuple[str, ...]:
    known = {encoding.value: encoding.name for encoding in messages.Encoding}
    return tuple(dict.fromkeys(known.get(number, str(number)) for number in encodings[:MOST_ENCODINGS]))


def _metadata(login: Login) -> tuple[tuple[str, str], ...]:
    """gRPC carries printable ASCII only."""
    pairs = []
    for name in ("username", "password"):
        if (value := login.values.get(name)) is None:
            continue
        data = value.reveal_bytes()
        if not all(0x20 <= byte <= 0x7E for byte in data):
            why = "ends with a line break" if data.endswith(b"\n") else "has characters other than printable ASCII"
            detail = f"The {name} of Secret {login.secret} {why}, which gNMI cannot carry; nothing was sent."
            raise NotIdentified(Outcome.PROTOCOL_ERROR, detail, login="unsent")
        pairs.append((name, value.reveal()))
    return tuple(pairs)


def _identified(choice: Choice[GnmiVendor], values: dict[Key, str], offered: tuple[str, ...], pin: str) -> Identified:
    serial, mac, hostname = (values.get(key, UNSET) for key in ("serialNumber", "macAddress", "hostname"))
    return Identified(
        info=DiscoveryInfo(
            protocol="gnmi",
            provider=choice.profile or UNSET,
            platform=values.get("platform", UNSET),
            version=values.get("version", UNSET),
            hostname=hostname,
            serial_number=serial,
            mac_address=mac,
            supported_encodings=offered,
        ),
        evidence=Evidence(serial_number=serial, tls_key=pin or UNSET, mac_address=mac, hostname=hostname),
        pin=pin,
        tied=choice.tied,
    )
