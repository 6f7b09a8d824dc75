"""What image discovery says about a write before it is committed.

Only a spec that is new or changed is judged, so that an annotation can be set on an object that would be refused today.

The annotations running-* of a Registry are the claim of a discovery. Who is not the system may change them all the same,
with a warning: whoever may update a Registry may also stop its discoveries, and a claim that nobody works on ends by
itself. To remove all of them cancels the discovery.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from msgspec import UNSET, UnsetType

from trimtab.model.admission import Admission, AdmissionRequest, Allowed, Denied, Reader, UserInfo
from trimtab.model.duration import Duration
from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.names import dns_subdomain_problems
from trimtab.model.scheme import Untyped
from trimtab.runtime.schedule import Schedule
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.images.kinds import DiscoveryJob, Filter, PlatformFilter, Registry, RegistrySpec, VEXSource
from trimtab.systems.images.registry.references import BadReference, Endpoint, endpoint, repository_of
from trimtab.systems.images.runs.claim import PREFIX, RUNNING_ID
from trimtab.systems.images.runs.states import RESERVED, reserved_name

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:images"
LONGEST_NAME = 253 - len(RESERVED)
SHORTEST_PERIOD = Duration("1m")
SHORTEST_TIMEOUT, LONGEST_TIMEOUT = Duration("1s"), Duration("168h")
MOST_WARNINGS = 5


async def registry(request: AdmissionRequest[Registry], reader: Reader) -> Allowed | Denied:
    """A Registry."""
    new = request.object
    if new is None:
        return Allowed()
    warnings = claim_warnings(request)
    if not _changed(request):
        return Allowed(warnings=warnings)
    errors = _name_problems(new.name) + await asyncio.to_thread(problems, new.spec)
    return _answer(
        errors, (*warnings, *_trust_warnings(new.spec), *_platform_warnings(new.spec), *_cron_warnings(new.spec))
    )


async def job(request: AdmissionRequest[DiscoveryJob], reader: Reader) -> Allowed | Denied:
    """A DiscoveryJob. Its Registry may come later: that it is missing is said, and no more."""
    new = request.object
    if new is None or not _changed(request):
        return Allowed()
    name = new.name or new.metadata.generate_name or ""
    errors = _reserved_problems(name, new.spec.registry)
    guid = new.spec.manual_guid
    if not isinstance(guid, UnsetType) and not guid.isprintable():
        errors.append(_wrong("spec.manualGUID", guid, "must be printable, such as the output of uuidgen"))
    if errors or await reader.find(Registry, new.spec.registry, request.namespace) is not None:
        return _answer(errors)
    return Allowed(warnings=(f'spec.registry: there is no Registry "{new.spec.registry}" in this namespace',))


async def vex(request: AdmissionRequest[VEXSource], reader: Reader) -> Allowed | Denied:
    """A VEXSource. Statements that will not count are named."""
    new = request.object
    if new is None or not _changed(request) or isinstance(new.spec.inline, UnsetType):
        return Allowed()
    from trimtab.systems.images.vulnerabilities.openvex import VexError, parse

    try:
        document = await asyncio.to_thread(parse, new.spec.inline.encode())
    except VexError as error:
        return _answer(
            [_wrong("spec.inline", new.spec.inline[:40], f"{error}; it must be an OpenVEX document in JSON")]
        )
    return Allowed(warnings=tuple(f"spec.inline: {problem}" for problem in document.problems[:MOST_WARNINGS]))


ADMISSIONS = (
    Admission(name="images-registry", kinds=(Registry,), function=registry),
    Admission(name="images-job", kinds=(DiscoveryJob,), function=job),
    Admission(name="images-vex", kinds=(VEXSource,), function=vex),
)


def problems(spec: RegistrySpec) -> list[FieldError]:
    """All that is wrong with a Registry's spec. Compiles its filters and reads its certificates: some milliseconds."""
    place, errors = _place(spec)
    return [
        *errors,
        *_repository_problems(spec, place),
        *_filter_problems(spec),
        *_secret_problems(spec),
        *_ca_problems(spec),
        *_time_problems(spec),
    ]


def claim_warnings(request: AdmissionRequest[Any]) -> tuple[str, ...]:
    """What is to be said to somebody who is not the system and changes the claim of a discovery."""
    if _is_system(request.user) or request.object is None:
        return ()
    before = {} if request.old is None else _running(request.old.metadata.annotations or {})
    after = _running(request.object.metadata.annotations or {})
    if before == after:
        return ()
    if not after:
        return (f"the discovery {before.get(RUNNING_ID, '')} is canceled: its annotations are gone",)
    return (f"{PREFIX}running-* are Trimtab's own: remove all of them to cancel a discovery, and change none",)


def _place(spec: RegistrySpec) -> tuple[Endpoint | None, list[FieldError]]:
    try:
        return endpoint(spec.uri, plain_http=spec.plain_http), []
    except BadReference as error:
        if "@" in spec.uri:  # its value is not shown: it may hold a password
            return None, [FieldError("spec.uri", FieldProblem.FORBIDDEN, None, str(error))]
        return None, [_wrong("spec.uri", spec.uri, str(error))]


def _repository_problems(spec: RegistrySpec, place: Endpoint | None) -> Iterable[FieldError]:
    if spec.catalog_type == "NoCatalog" and not spec.repositories:
        detail = "with catalogType NoCatalog nobody else says which there are"
        yield FieldError("spec.repositories", FieldProblem.REQUIRED, None, detail)
    first: dict[str, str] = {}
    for i, name in enumerate(spec.repositories):
        path = f"spec.repositories[{i}]"
        try:
            full = repository_of(name, place or Endpoint("", ""))
        except BadReference as error:
            yield _wrong(path, name, str(error))
            continue
        if full in first:
            yield FieldError(path, FieldProblem.DUPLICATE, name, f"{first[full]} is the same one")
        first.setdefault(full, name)


def _filter_problems(spec: RegistrySpec) -> Iterable[FieldError]:
    """Part by part, for to compile all of them would end at the first that is wrong."""
    from trimtab.systems.images.filters import Filters, InvalidFilter  # CEL is for those who judge or list

    for i, given in enumerate(spec.filters):
        path = f"spec.filters[{i}]"
        try:
            Filters.compile((given.replace(match_conditions=()),))
        except InvalidFilter as error:
            yield _wrong(f"{path}.repository", given.repository, error.message)
        for j, condition in enumerate(given.match_conditions):
            try:
                Filters.compile((Filter(match_conditions=(condition,)),))
            except InvalidFilter as error:
                yield _wrong(f"{path}.matchConditions[{j}].expression", condition.expression, error.message)


def _secret_problems(spec: RegistrySpec) -> Iterable[FieldError]:
    token = UNSET if isinstance(spec.notifications, UnsetType) else spec.notifications.token_secret
    for path, name in (("spec.authSecret", spec.auth_secret), ("spec.notifications.tokenSecret", token)):
        if not isinstance(name, UnsetType) and dns_subdomain_problems(name):
            detail = "no Secret can have this name: small letters, digits, - and . between them, such as registry-login"
            yield _wrong(path, name, detail)


def _ca_problems(spec: RegistrySpec) -> Iterable[FieldError]:
    text = spec.ca_bundle
    if isinstance(text, UnsetType):
        return
    from trimtab.runtime.outbound.tls import Tls, TlsError, context  # brings aiohttp, which a server does without

    if "PRIVATE KEY-----" in text:
        detail = "holds a private key, which everybody can read here: leave it out, and no longer use it"
        yield FieldError("spec.caBundle", FieldProblem.FORBIDDEN, None, detail)
        return
    try:
        if not text.strip():
            raise TlsError("there is nothing in it")
        context(Tls(ca=text.encode()))
    except (TlsError, ssl.SSLError) as error:
        detail = f"{error}; it must be certificates that begin with -----BEGIN CERTIFICATE-----, or be left out"
        yield _wrong("spec.caBundle", text[:40], detail)


def _time_problems(spec: RegistrySpec) -> Iterable[FieldError]:
    if not isinstance(spec.discovery_schedule, UnsetType):
        path, given = "spec.discoverySchedule", spec.discovery_schedule
        for error in Schedule(cron=given.cron_schedule, zone=given.time_zone).problems(path):
            field = error.path.removeprefix(f"{path}.").replace("cron", "cronSchedule").replace("zone", "timeZone")
            yield FieldError(f"{path}.{field}", error.problem, error.value, error.detail)
        yield from _period_problems(f"{path}.discoveryPeriod", given.discovery_period)
    if not isinstance(spec.scan_schedule, UnsetType):
        yield from _period_problems("spec.scanSchedule.scanPeriod", spec.scan_schedule.scan_period)
    if not SHORTEST_TIMEOUT.seconds <= spec.discovery_timeout.seconds <= LONGEST_TIMEOUT.seconds:
        yield _wrong("spec.discoveryTimeout", spec.discovery_timeout, "must be at least 1s and at most 7d, such as 1h")


def _period_problems(path: str, period: Duration | UnsetType) -> Iterable[FieldError]:
    if not isinstance(period, UnsetType) and period.seconds < SHORTEST_PERIOD.seconds:
        yield _wrong(path, period, "must be at least 1m, such as 15m or 1d; leave it out for never")


def _name_problems(name: str) -> list[FieldError]:
    if len(name) <= LONGEST_NAME:
        return []
    detail = f"at most {LONGEST_NAME} characters, for {RESERVED} is put before it to name its job"
    return [FieldError("metadata.name", FieldProblem.TOO_LONG, None, detail)]


def _reserved_problems(name: str, registry: str) -> list[FieldError]:
    if not name.startswith(RESERVED) or name == reserved_name(registry):
        return []
    meant = name.removeprefix(RESERVED)
    detail = f'ReservedNameConflict: this is the name of the job of the Registry "{meant}"; choose another name'
    return [_wrong("metadata.name", name, detail)]


def _trust_warnings(spec: RegistrySpec) -> tuple[str, ...]:
    with_login = "" if isinstance(spec.auth_secret, UnsetType) else ", and gets the login"
    if spec.skip_tls_verify:
        return (f"spec.skipTLSVerify: whoever answers is trusted{with_login}",)
    if spec.plain_http and with_login:
        return ("spec.plainHTTP: the login is sent without encryption, readable on the network",)
    return ()


def _platform_warnings(spec: RegistrySpec) -> tuple[str, ...]:
    """What selects nothing, or everything, and is hardly meant so."""
    found = []
    for i, given in enumerate(spec.platforms):
        if not (given.os or given.architecture or given.variant):
            found.append(
                f"spec.platforms[{i}]: it names nothing, so every platform is taken; leave it out if you mean all"
            )
        elif (meant := _in_go(given)) != given:
            written = (("os", meant.os), ("architecture", meant.architecture), ("variant", meant.variant))
            named = ", ".join(f"{name}: {value}" for name, value in written if value)
            found.append(f"spec.platforms[{i}]: names are those of Go, in lower case: did you mean {{{named}}}?")
    return tuple(found[:MOST_WARNINGS])


def _in_go(given: PlatformFilter) -> PlatformFilter:
    """As images say it: the names of GOOS and GOARCH."""
    os, architecture, variant = ((each or "").lower() for each in (given.os, given.architecture, given.variant))
    architecture, of_it = _ARCHITECTURES.get(architecture, (architecture, ""))
    return PlatformFilter(
        os=_SYSTEMS.get(os, os) or UNSET, architecture=architecture or UNSET, variant=variant or of_it or UNSET
    )


def _cron_warnings(spec: RegistrySpec) -> tuple[str, ...]:
    if isinstance(spec.discovery_schedule, UnsetType):
        return ()
    path, lines = "spec.discoverySchedule.cronSchedule", spec.discovery_schedule.cron_schedule
    never = [
        f"{path}[{i}]: `{line}` never comes: its months do not have that day"
        for i, line in enumerate(lines)
        if not (schedule := Schedule(cron=(line,))).problems() and schedule.next(_SOME_DAY) is None
    ]
    return tuple(never[:MOST_WARNINGS])


def _running(annotations: Any) -> dict[str, str]:
    return {name: value for name, value in annotations.items() if name.startswith(f"{PREFIX}running-") and value}


def _is_system(user: UserInfo) -> bool:
    """Whether it is the system, or an administrator who may run it in its place."""
    return user.username == ACCOUNT or "system:masters" in user.groups


def _changed(request: AdmissionRequest[Any]) -> bool:
    old, new = request.old, request.object
    return new is not None and (old is None or isinstance(old, Untyped) or bool(old.spec != new.spec))


def _wrong(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.INVALID, value, detail)


def _answer(errors: list[FieldError], warnings: tuple[str, ...] = ()) -> Allowed | Denied:
    return Denied(errors=tuple(errors)) if errors else Allowed(warnings=warnings)


_SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)  # what does not come within decades of one day, comes after none
_SYSTEMS = {"macos": "darwin", "osx": "darwin", "win": "windows"}
_ARCHITECTURES = {
    "x86_64": ("amd64", ""),
    "x86-64": ("amd64", ""),
    "x64": ("amd64", ""),
    "aarch64": ("arm64", ""),
    "i386": ("386", ""),
    "i686": ("386", ""),
    "x86": ("386", ""),
    "armhf": ("arm", "v7"),
    "armv7": ("arm", "v7"),
    "armv7l": ("arm", "v7"),
    "armv6": ("arm", "v6"),
    "armv6l": ("arm", "v6"),
    "ppc64el": ("ppc64le", ""),
}
