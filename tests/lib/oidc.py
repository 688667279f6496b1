# SPDX-License-Identifier: Apache-2.0
"""A small OpenID Connect provider: discovery, keys, codes, tokens. What it says can be made wrong, one thing at a time.

It checks what a client must do right: the redirect address, the client's secret, PKCE. There is no page: a test calls
`authorize` with the address it was sent to, as if the person had signed in there.
"""

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(n, size=None):
    return b64(n.to_bytes(size or (n.bit_length() + 7) // 8, "big"))


class RsaKey:
    alg = "RS256"

    def __init__(self, kid):
        self.kid = kid
        self.key = rsa.generate_private_key(65537, 2048)

    def public(self):
        p = self.key.public_key().public_numbers()
        return {"kty": "RSA", "kid": self.kid, "use": "sig", "alg": "RS256", "n": number(p.n), "e": number(p.e)}

    def sign(self, text):
        return self.key.sign(text, padding.PKCS1v15(), hashes.SHA256())


class EcKey:
    alg = "ES256"

    def __init__(self, kid):
        self.kid = kid
        self.key = ec.generate_private_key(ec.SECP256R1())

    def public(self):
        p = self.key.public_key().public_numbers()
        return {"kty": "EC", "crv": "P-256", "kid": self.kid, "x": number(p.x, 32), "y": number(p.y, 32)}

    def sign(self, text):
        r, s = utils.decode_dss_signature(self.key.sign(text, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


class Provider:
    client_id = "leasehold"
    client_secret = "s:ecret/+"

    def __init__(self):
        self.keys = [RsaKey("first")]
        self.signer = self.keys[0]
        self.person = {"email": "Ann@Example.com", "name": "Ann", "groups": ["staff", "lab-managers"]}
        self.claims = {}  # put over those of a token; None: left out
        self.header = {}
        self.description = {}
        self.codes = {}
        self.calls = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.issuer = "http://127.0.0.1:%d" % self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)

    def settings(self, web_app):
        return {
            "LEASEHOLD_OIDC_ISSUER": self.issuer,
            "LEASEHOLD_OIDC_CLIENT_ID": self.client_id,
            "LEASEHOLD_OIDC_CLIENT_SECRET": self.client_secret,
            "LEASEHOLD_OIDC_ADMIN_GROUPS": "lab-admins",
            "LEASEHOLD_OIDC_MANAGER_GROUPS": "lab-managers, others",
            "LEASEHOLD_OIDC_USER_GROUPS": "staff",
            "LEASEHOLD_WEB_APP_URL": web_app,
        }

    # The person's part.

    def authorize(self, url):
        """The person signed in; the query of the address that he is sent back to."""
        assert url.startswith(self.issuer + "/authorize?"), url
        asked = {k: v[0] for k, v in parse_qs(urlsplit(url).query, strict_parsing=True).items()}
        assert asked["response_type"] == "code" and asked["client_id"] == self.client_id
        assert "openid" in asked["scope"].split(" ") and asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return asked["redirect_uri"], urlencode({"code": code, "state": asked["state"], "session_state": "x.y"})

    # The client's part.

    def token(self, asked):
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": self.client_id,
            "sub": "1",
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            **self.person,
            **self.claims,
        }
        claims = {k: v for k, v in claims.items() if v is not None}
        header = {"alg": self.signer.alg, "kid": self.signer.kid, **self.header}
        text = b64(json.dumps(header).encode()) + "." + b64(json.dumps(claims).encode())
        return text + "." + b64(self.signer.sign(text.encode()))

    def exchange(self, authorization, form):
        """What the token endpoint answers."""
        scheme, _, sent = (authorization or "").partition(" ")
        user, _, password = base64.b64decode(sent).decode().partition(":") if scheme == "Basic" else ("", "", "")
        if (unquote(user), unquote(password)) != (self.client_id, self.client_secret):
            return 401, {"error": "invalid_client"}
        asked = self.codes.pop(form.get("code"), None)  # good once
        proof = b64(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if (
            not asked
            or form.get("grant_type") != "authorization_code"
            or form.get("redirect_uri") != asked["redirect_uri"]
            or proof != asked["code_challenge"]
        ):
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": self.token(asked)}

    def describe(self):
        return {
            "issuer": self.issuer,
            "authorization_endpoint": self.issuer + "/authorize",
            "token_endpoint": self.issuer + "/token",
            "jwks_uri": self.issuer + "/keys",
            "end_session_endpoint": self.issuer + "/bye",
            **self.description,
        }

    def _handler(provider):
        class Handler(BaseHTTPRequestHandler):
            def _send(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                provider.calls.append(self.path)
                if self.path == "/.well-known/openid-configuration":
                    self._send(200, provider.describe())
                elif self.path == "/keys":
                    self._send(200, {"keys": [key.public() for key in provider.keys]})
                else:
                    self._send(404, {})

            def do_POST(self):
                provider.calls.append(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                form = {k: v[0] for k, v in parse_qs(body).items()}
                self._send(*provider.exchange(self.headers.get("Authorization"), form))

            def log_message(self, *args):
                pass

        return Handler
