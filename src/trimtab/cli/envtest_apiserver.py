"""The stand-in for kube-apiserver in envtest: this server, told by kube-apiserver's flags.

It is what kube-apiserver is without kube-controller-manager, since that is what tests of operators are written for: owners
that never existed do no harm, a deleted namespace stays `Terminating`, no namespace has a service account. The data are in
memory and end with the process. `TRIMTAB_ENVTEST_CONTROLLERS=1` lets it collect garbage and empty namespaces as well.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import signal
import socket
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trimtab.cli.envtest_flags import Flag, Parsed, WrongFlag, parse, seconds, usage

if TYPE_CHECKING:
    from trimtab.server.auth.identity import User
    from trimtab.server.auth.rbac import Authorizer
    from trimtab.server.auth.tokens import TokenKey

CONTROLLERS = "TRIMTAB_ENVTEST_CONTROLLERS"
ETCD_PATIENCE = 5.0
MODES = ("AlwaysAllow", "AlwaysDeny", "Node", "RBAC")

FLAGS = {
    "etcd-servers": Flag("list", "Where the stand-in for etcd answers, as http://HOST:PORT."),
    "secure-port": Flag("int", "The port to serve on; 0 picks one. Default: 6443."),
    "bind-address": Flag("str", "The address to serve on. Default: 127.0.0.1."),
    "advertise-address": Flag("str", "The address in the Endpoints of the Service kubernetes."),
    "cert-dir": Flag("str", "Where apiserver.crt and apiserver.key are, or are made."),
    "tls-cert-file": Flag("str", "The certificate to serve with; needs --tls-private-key-file."),
    "tls-private-key-file": Flag("str", "Its key."),
    "client-ca-file": Flag("str", "Who signs the certificates of clients: CN is the user, O the groups."),
    "token-auth-file": Flag("str", "Lines of token,user,uid,groups: bearer tokens that are known."),
    "anonymous-auth": Flag("bool", "Whether requests without credentials are of system:anonymous. Default: true."),
    "authorization-mode": Flag("list", "AlwaysAllow, AlwaysDeny, RBAC; Node is accepted. Default: AlwaysAllow."),
    "service-account-issuer": Flag("list", "The issuer of service account tokens; the first one signs."),
    "service-account-signing-key-file": Flag("str", "The key that signs them: RSA, P-256, P-384 or P-521."),
    "service-account-jwks-uri": Flag("str", "Where others find the keys that verify them."),
    "service-account-key-file": Flag("list"),
    "api-audiences": Flag("list", "Whom tokens are for. Default: the issuer."),
    "service-cluster-ip-range": Flag("list", "Its first address is that of the Service kubernetes."),
    "event-ttl": Flag("duration", "How long events stay. Default: 1h0m0s."),
    "help": Flag("bool", "Print this."),
    "version": Flag("bool", "Print the version."),
    **{name: Flag("bool") for name in ("allow-privileged", "profiling", "enable-priority-and-fairness", "watch-cache",
                                       "service-account-lookup", "enable-garbage-collector")},
    **{name: Flag("int") for name in ("v", "max-requests-inflight", "max-mutating-requests-inflight",
                                      "default-watch-cache-size", "min-request-timeout")},
    **{name: Flag("duration") for name in ("shutdown-delay-duration", "request-timeout", "etcd-compaction-interval",
                                           "etcd-count-metric-poll-period", "service-account-max-token-expiration")},
    **{name: Flag("str") for name in ("etcd-prefix", "storage-media-type", "storage-backend", "vmodule",
                                      "endpoint-reconciler-type", "service-node-port-range")},
    **{name: Flag("list") for name in ("disable-admission-plugins", "etcd-servers-overrides", "watch-cache-sizes")},
}  # fmt: skip


def main(words: Sequence[str]) -> int:
    try:
        flags = parse(words, FLAGS)
        if flags.truth("help", False):
            about = (
                "Stands in for kube-apiserver in envtest: the API of Kubernetes, in memory, without its controllers."
            )
            print(usage("kube-apiserver", about, FLAGS))
            return 0
        if flags.truth("version", False):
            from trimtab.server.roots import version

            print(f"Kubernetes {version()['gitVersion']}")
            return 0
        for name in flags.unknown:
            print(f"kube-apiserver: {name} is not known to this stand-in, and ignored", file=sys.stderr)
        return _run(flags)
    except WrongFlag as error:
        print(f"kube-apiserver: {error}", file=sys.stderr)
        return 1


def _run(flags: Parsed) -> int:
    import uvloop

    from trimtab.cli.memory import tune

    _find_etcd(flags)
    tune()
    uvloop.run(_serve(flags))
    return 0


async def _serve(flags: Parsed) -> None:
    from trimtab.model.clock import SystemClock
    from trimtab.server.auth.identity import Authenticator
    from trimtab.server.auth.issuing import KEYS, OpenId, discoverable
    from trimtab.server.auth.limits import Limits
    from trimtab.server.core import EVENT_TTL, Server
    from trimtab.server.door import Door
    from trimtab.server.reader import StoreReader
    from trimtab.server.wire import Listener
    from trimtab.store.memory import MemoryStore

    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    store = MemoryStore(keep=100_000)
    key, issuer = _token_key(flags), _issuer(flags)
    authenticator = Authenticator(
        key,
        StoreReader(store),
        issuer=issuer,
        audiences=flags.listed("api-audiences") or (issuer,),
        static_tokens=_static_tokens(flags),
        anonymous=flags.truth("anonymous-auth", True),
    )
    server = Server(
        store,
        clock=SystemClock(),
        authorizer=_authorizer(flags),
        authenticator=authenticator,
        token_key=key,
        issuer=issuer,
        event_ttl=seconds(flags.text("event-ttl", f"{EVENT_TTL:.0f}s")),
        managed=os.environ.get(CONTROLLERS, "") not in ("", "0"),
    )
    host, port = flags.text("bind-address", "127.0.0.1"), int(flags.text("secure-port", "6443"))
    if not 0 <= port <= 65535:
        raise WrongFlag(f"--secure-port: {port} must be between 0 and 65535, inclusive")
    context = _tls(flags, host)
    await server.start()
    try:
        many = Limits(requests=10_000, requests_per_user=10_000, watches=100_000, watches_per_user=100_000)
        listener = Listener(Door(server, authenticator, limits=many))
        try:
            port = await listener.listen(host, port, context)
        except OSError as error:
            raise WrongFlag(f"--bind-address {host} --secure-port {port}: {error.strerror or error}") from None
        if discoverable(issuer):
            keys = flags.text("service-account-jwks-uri") or f"https://{_joined(host, port)}{KEYS}"
            server.roots.openid = OpenId(key, issuer, keys)
        for document in _own_service(flags, host, port):
            await server.acts.ensure(document)
        print(f"kube-apiserver: serving on https://{_joined(host, port)}", file=sys.stderr, flush=True)
        await stopping.wait()
        await listener.close()
    finally:
        await server.stop()


def _find_etcd(flags: Parsed) -> None:
    """kube-apiserver starts after its etcd, and fails without."""
    servers = flags.listed("etcd-servers")
    if not servers:
        raise WrongFlag("--etcd-servers must be specified")
    parts = urlsplit(servers[0])
    try:
        where = (parts.hostname or "", parts.port or 2379)
    except ValueError as error:
        raise WrongFlag(f'--etcd-servers: "{servers[0]}": {error}') from None
    try:
        socket.create_connection(where, timeout=ETCD_PATIENCE).close()
    except OSError as error:
        raise WrongFlag(f'--etcd-servers: nothing answers at "{servers[0]}": {error.strerror or error}') from None


def _tls(flags: Parsed, host: str) -> ssl.SSLContext:
    """Served with the files that are named, or those in the folder of certificates, or ones that are made there."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["http/1.1"])
    certificate, key = flags.text("tls-cert-file"), flags.text("tls-private-key-file")
    if bool(certificate) != bool(key):
        raise WrongFlag("--tls-cert-file and --tls-private-key-file must be given together")
    if not certificate:
        folder = Path(flags.text("cert-dir", "/var/run/kubernetes"))
        certificate, key = str(folder / "apiserver.crt"), str(folder / "apiserver.key")
        if not Path(certificate).exists():
            _issue(folder, host)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # SSLError is one
        raise WrongFlag(f"{certificate} and {key} cannot be used: {_why(error)}") from None
    if authority := flags.text("client-ca-file"):
        try:
            context.load_verify_locations(cafile=authority)
        except OSError as error:
            raise WrongFlag(f"--client-ca-file: {authority} cannot be used: {_why(error)}") from None
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _issue(folder: Path, host: str) -> None:
    import datetime

    from trimtab.server.auth.certificates import Issuer
    from trimtab.server.auth.files import write_private
    from trimtab.server.auth.pki import ALWAYS_HOSTS, split_pem

    now, week = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=7)
    hosts = tuple(dict.fromkeys((*ALWAYS_HOSTS, host)))
    authority = Issuer.create("trimtab-envtest-ca", now, week)
    certificate, key = split_pem(authority.serving(hosts, now, week))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_private(folder / "apiserver.key", key)
        write_private(folder / "apiserver.crt", certificate + authority.certificate_pem)
    except OSError as error:
        raise WrongFlag(f"--cert-dir: {error.filename or folder}: {error.strerror or error}") from None


def _token_key(flags: Parsed) -> TokenKey:
    from trimtab.server.auth.tokens import TokenKey

    name = "service-account-signing-key-file"
    path = flags.text(name)
    if not path:
        from trimtab.server.auth.certificates import signing_key

        return TokenKey(signing_key())
    key = TokenKey(_read(name, path))
    try:
        key.check()
    except ValueError as error:
        raise WrongFlag(f"--{name}: {path} cannot be used: {error}") from None
    return key


def _issuer(flags: Parsed) -> str:
    from trimtab.server.auth.tokens import ISSUER

    return next(iter(flags.listed("service-account-issuer")), ISSUER)


def _static_tokens(flags: Parsed) -> dict[str, User]:
    """RFC 4180 lines, as kube-apiserver reads them."""
    import csv

    from trimtab.server.auth.identity import User

    path = flags.text("token-auth-file")
    if not path:
        return {}
    found: dict[str, User] = {}
    for number, row in enumerate(csv.reader(_read("token-auth-file", path).decode().splitlines()), 1):
        if not row:
            continue
        if len(row) < 3 or not row[0] or not row[1]:
            raise WrongFlag(f"--token-auth-file: line {number} of {path} is not token,user,uid[,groups]")
        groups = tuple(group.strip() for group in row[3].split(",") if group.strip()) if len(row) > 3 else ()
        found[row[0]] = User(row[1].strip(), row[2].strip(), groups)
    return found


def _authorizer(flags: Parsed) -> Authorizer:
    from trimtab.server.auth.rbac import Authorizer, Fixed

    modes = flags.listed("authorization-mode") or ("AlwaysAllow",)
    for mode in modes:
        if mode not in MODES:
            raise WrongFlag(
                f'--authorization-mode: "{mode}" is not among those that the stand-in has: {", ".join(MODES)}'
            )
    if "AlwaysAllow" in modes:
        return Fixed(allowed=True)
    return Authorizer() if "RBAC" in modes else Fixed(allowed=False)


def _own_service(flags: Parsed, host: str, port: int) -> list[dict[str, object]]:
    """What kube-apiserver tells of itself in the cluster: a Service with the first address of the range, and where it is."""
    ranges = flags.listed("service-cluster-ip-range") or ("10.0.0.0/24",)
    try:
        first = str(ipaddress.ip_network(ranges[0])[1])
    except (ValueError, IndexError) as error:
        raise WrongFlag(f'--service-cluster-ip-range: "{ranges[0]}": {error}') from None
    metadata = {"name": "kubernetes", "namespace": "default"}
    labels = {"component": "apiserver", "provider": "kubernetes"}
    https = {"name": "https", "protocol": "TCP", "port": 443}
    address = flags.text("advertise-address") or host
    service = {"clusterIP": first, "type": "ClusterIP", "ports": [{**https, "targetPort": port}]}
    own: list[dict[str, object]] = [
        {"apiVersion": "v1", "kind": "Service", "metadata": {**metadata, "labels": labels}, "spec": service},
    ]
    if not ipaddress.ip_address(address).is_loopback:  # Endpoints may not have such an address
        mirror = {"endpointslice.kubernetes.io/skip-mirror": "true"}
        subset = {"addresses": [{"ip": address}], "ports": [{**https, "port": port}]}
        own.append(
            {"apiVersion": "v1", "kind": "Endpoints", "metadata": {**metadata, "labels": mirror}, "subsets": [subset]}
        )
    return own


def _read(flag: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise WrongFlag(f"--{flag}: {path}: {error.strerror or error}") from None


def _why(error: OSError) -> str:
    return os.strerror(errno.ENOENT) if error.errno == errno.ENOENT else str(error.strerror or error)


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
