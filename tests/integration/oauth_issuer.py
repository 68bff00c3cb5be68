"""A real authorisation server on the loopback: keys that rotate, metadata, tokens for clients, and faults on demand."""

import base64
import hmac
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

KINDS = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC", "ES384": "EC", "EdDSA": "OKP"}
SCOPES = (
    "claims:read=get_claim,list_member_claims,get_member_ytd_summary rules:read=get_coverage_rule "
    "claims:notes=get_claim_notes claims:all=all"
)
CLIENTS = {"robot": "robot-secret"}


def encoded(content: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def private_key(algorithm: str, bits: int = 2048) -> Any:
    """A fresh key that signs with the algorithm."""
    match algorithm:
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "ES384":
            return ec.generate_private_key(ec.SECP384R1())
        case "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            return rsa.generate_private_key(65537, bits)


class Issuer:
    """The server's state: what it publishes, what it signs with, and what is wrong with it (`fault`)."""

    def __init__(self, address: str, key: Any = None) -> None:
        self.address, self.resource = address, "https://claims.example/mcp"
        self.keys: dict[str, tuple[str, Any]] = {}
        self.published: dict[str, dict[str, Any]] = {}
        self.fetches = 0
        self.fault: str | None = None
        self.asked: list[dict[str, list[str]]] = []
        self.add("first", key=key)

    def add(self, kid: str, algorithm: str = "RS256", key: Any = None, **jwk: Any) -> None:
        """A key, published at once; `jwk` changes what is published of it, a value of None leaves a member out."""
        key = key or private_key(algorithm)
        self.keys[kid] = (algorithm, key)
        public = get_default_algorithms()[algorithm].to_jwk(key.public_key(), as_dict=True)
        found = {**public, "kid": kid, "use": "sig", "alg": algorithm} | jwk
        self.published[kid] = {name: value for name, value in found.items() if value is not None}

    def claims(self, **changed: Any) -> dict[str, Any]:
        """The claims of a good token, changed; a value of None leaves one out."""
        now = int(time.time())
        good = {
            "iss": self.address,
            "aud": self.resource,
            "sub": "jane@example.org",
            "iat": now,
            "nbf": now,
            "exp": now + 300,
            "scope": "claims:all",
        }
        return {name: value for name, value in (good | changed).items() if value is not None}

    def token(self, kid: str = "first", header: Mapping[str, Any] | None = None, **changed: Any) -> str:
        """A token that this issuer signed."""
        return self.signed(json.dumps(self.claims(**changed)), kid, header)

    def signed(self, claims: str, kid: str = "first", header: Mapping[str, Any] | str | None = None) -> str:
        """A token of any text, signed whatever it says."""
        algorithm, key = self.keys[kid]
        if not isinstance(header, str):
            header = json.dumps({"alg": algorithm, "kid": kid, "typ": "at+jwt", **(header or {})})
        content = f"{encoded(header.encode())}.{encoded(claims.encode())}"
        signature = get_default_algorithms()[algorithm].sign(content.encode("ascii"), key)
        return f"{content}.{encoded(signature)}"

    def with_hmac(self, secret: bytes, **header: Any) -> str:
        """A token under HS256, with any bytes for its secret."""
        written = json.dumps({"alg": "HS256", "kid": "first", "typ": "at+jwt", **header})
        content = f"{encoded(written.encode())}.{encoded(json.dumps(self.claims()).encode())}"
        return f"{content}.{encoded(hmac.digest(secret, content.encode('ascii'), 'sha256'))}"

    @property
    def variables(self) -> dict[str, str]:
        """The settings of a resource server that takes this issuer's tokens."""
        return {
            "CDA_OAUTH_ISSUER": self.address,
            "CDA_OAUTH_RESOURCE": self.resource,
            "CDA_OAUTH_JWKS": f"{self.address}/jwks",
            "CDA_OAUTH_SCOPES": SCOPES,
        }

    def grant(self, form: dict[str, list[str]], authorization: str) -> tuple[int, dict[str, Any]]:
        """The answer to a client that asks for a token with its own secret."""
        self.asked.append(form)
        name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if CLIENTS.get(name) != secret or form.get("resource") != [self.resource]:
            return 400, {"error": "invalid_client"}
        scope = form.get("scope", [""])[0]
        token = self.token(sub=name, scope=scope)
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 300, "scope": scope}

    @property
    def metadata(self) -> dict[str, Any]:
        """RFC 8414."""
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "jwks_uri": f"{self.address}/jwks",
            "response_types_supported": ["code"],
            "grant_types_supported": ["client_credentials"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        }


@contextmanager
def authorisation_server(key: Any = None, tls: SSLContext | None = None) -> Iterator[Issuer]:
    """A server on a free port of the loopback; `key` is its first, an RSA key, made when none is given."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/jwks":
                issuer.fetches += 1
                self.keys()
            elif self.path == "/.well-known/oauth-authorization-server":
                self.tell(200, json.dumps(issuer.metadata).encode())
            else:
                self.tell(404, b"{}")

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            status, body = issuer.grant(form, self.headers.get("Authorization", ""))
            self.tell(status, json.dumps(body).encode())

        def keys(self) -> None:
            good = json.dumps({"keys": list(issuer.published.values())}).encode()
            match issuer.fault:
                case "hangs up":
                    self.connection.close()
                case "status 500":
                    self.tell(500, good)
                case "redirects":
                    self.tell(302, b"", Location=f"{issuer.address}/elsewhere")
                case "too large":
                    self.tell(200, good[:-1] + b" " * 70_000 + b"}")
                case "no JSON":
                    self.tell(200, b"<html>")
                case "names twice":
                    self.tell(200, b'{"keys": [], ' + good[1:])
                case "says nothing":
                    time.sleep(8)
                case "drips":
                    self.drip(good)
                case _:
                    self.tell(200, good)

        def drip(self, content: bytes) -> None:
            self.send_response(200)
            self.end_headers()
            for place in range(len(content)):
                time.sleep(0.5)
                try:
                    self.wfile.write(content[place : place + 1])
                except OSError:
                    return

        def tell(self, status: int, content: bytes, **headers: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_said: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    place = f"https://localhost:{server.server_address[1]}" if tls else f"http://127.0.0.1:{server.server_address[1]}"
    issuer = Issuer(place, key)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
