"""`git http-backend` behind a small HTTP or HTTPS server of its own process: Git's "smart" HTTP with a login.

It lets in a username with its password, and anybody with a token in the password's place; by HTTP Basic alone, as the forges'
Git endpoints do. Below `/moved/` everything is a redirect to where `redirect` says. `python -m trimtab.lab.git_http` is
that process.
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import ssl
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trimtab.lab.answering import listens
from trimtab.lab.git import GitServer, environment
from trimtab.lab.served import Served
from trimtab.testing.processes import PeerFailed, Process

BODY = 1 << 30
_LOGIN = "LAB_GIT_LOGIN"


class GitHttp(Served):
    """Runs from construction until `stop`. With a certificate and its key (files) it speaks TLS."""

    def __init__(
        self,
        directory: Path,
        port: int,
        *,
        username: str = "lab",
        password: str = "",
        token: str = "",
        certificate: Path | None = None,
        key: Path | None = None,
        redirect: str = "",
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.repositories = GitServer(directory / "repositories")
        self.port, self._scheme = port, "https" if certificate else "http"
        if listens("127.0.0.1", port):
            raise PeerFailed(f"something listens on 127.0.0.1:{port} already")
        command = [sys.executable, "-m", "trimtab.lab.git_http", str(self.repositories.folder), str(port)]
        if certificate and key:
            command += ["--certificate", str(certificate), "--key", str(key)]
        if redirect:
            command += ["--redirect", redirect]
        process = Process(command, log=directory / "http.log", env={_LOGIN: f"{username}\n{password}\n{token}"})
        self._begin(process, lambda: listens("127.0.0.1", port), within=15)

    def url(self, name: str = "team") -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}/{name}.git"


class _Handler(BaseHTTPRequestHandler):
    """One request as CGI (RFC 3875), which is what http-backend speaks."""

    protocol_version = "HTTP/1.1"
    root: str
    login: tuple[str, str, str]
    """A username, its password, and a token; one that is empty lets nobody in, and all are let in where both are."""
    redirect: str

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            self.close_connection = True
            return
        self._answer(body)

    def _answer(self, body: bytes) -> None:
        if self.path.startswith("/moved/"):
            self._plain(302, Location=self.redirect + self.path.removeprefix("/moved"))
        elif not self._allowed():
            self._plain(401, **{"WWW-Authenticate": 'Basic realm="lab"'})
        else:
            self._cgi(body)

    def _allowed(self) -> bool:
        username, password, token = self.login
        who, word = _basic(self.headers.get("Authorization", ""))
        if not (password or token):
            return True
        return bool(word) and ((who, word) == (username, password) or (bool(who) and word == token))

    def _plain(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": "0"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _cgi(self, body: bytes) -> None:
        where = urlsplit(self.path)
        env = {
            **environment(),
            "GIT_PROJECT_ROOT": self.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GATEWAY_INTERFACE": "CGI/1.1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": where.path,
            "QUERY_STRING": where.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "lab",
            "REMOTE_ADDR": "127.0.0.1",
        }
        answer = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=env, check=False).stdout  # noqa: S607
        head, _, content = answer.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode("latin-1").split("\r\n") if ": " in line]
        status = next((value for name, value in headers if name == "Status"), "200" if head else "500")
        self.send_response(int(status.split()[0]))
        for name, value in headers:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _body(self) -> bytes | None:
        """None when the client went away in the middle of it: that is no request."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(min(size, BODY))
            return body if len(body) == size else None
        pieces = []
        while size := int(self.rfile.readline().strip() or b"0", 16):
            pieces.append(self.rfile.read(size))
            if len(pieces[-1]) != size:
                return None
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
        print(format % args, flush=True)


def _basic(header: str) -> tuple[str, str]:
    """The username and the password of an Authorization header (RFC 7617 §2); both empty for any other scheme."""
    scheme, _, said = header.partition(" ")
    if scheme != "Basic":
        return "", ""
    username, _, password = base64.b64decode(said).decode().partition(":")
    return username, password


def main() -> None:
    parser = argparse.ArgumentParser(description="git http-backend behind a login")
    parser.add_argument("root", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--redirect", default="")
    options = parser.parse_args()
    login = tuple(os.environ.pop(_LOGIN, "\n\n").split("\n"))
    if shutil.which("git") is None:
        raise SystemExit("git is missing")
    settings = {"root": str(options.root.resolve()), "login": login, "redirect": options.redirect}
    server = ThreadingHTTPServer(("127.0.0.1", options.port), type("Handler", (_Handler,), settings))
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    main()
