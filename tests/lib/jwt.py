# SPDX-License-Identifier: Apache-2.0
"""Session tokens as anybody with the shared secret makes them: HS256, {user, iat, exp}."""

import base64
import hashlib
import hmac
import json
import time

SECRET = "a-secret-of-the-tests-0123456789abcdef"


def _part(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def sign(claims, secret=SECRET, header=None):
    head = _part(json.dumps(header or {"alg": "HS256", "typ": "JWT"}).encode())
    body = head + b"." + _part(json.dumps(claims).encode())
    return (body + b"." + _part(hmac.new(secret.encode(), body, hashlib.sha256).digest())).decode()


def token(email, *roles, lives=3600, secret=SECRET, **user):
    """The least that services around the original make for themselves."""
    now = int(time.time())
    return sign({"user": {"email": email, "roles": list(roles), **user}, "iat": now, "exp": now + lives}, secret)
