# SPDX-License-Identifier: Apache-2.0
"""A real HTTP receiver of webhooks on a free loopback port, which checks signatures by itself.

    with Receiver() as receiver:
        ...                     # send to receiver.url
        receiver.got            # Hit objects in the order they came; hit.event is the body

Attributes that may be changed at any time:

    status, body, headers   of the answer
    gate                    a threading.Event that every request waits for, or None
"""

import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OLDEST = 300  # seconds


class Hit:
    def __init__(self, handler, body):
        self.method, self.path = handler.command, handler.path
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        self.body = body
        self.at = time.time()

    @property
    def event(self):
        return json.loads(self.body)

    def is_signed_with(self, secret):
        """As a receiver would check it: the time is near, and the signature is over time and body."""
        parts = dict(part.split("=", 1) for part in self.headers["leasehold-signature"].split(","))
        wanted = hmac.new(secret.encode(), parts["t"].encode() + b"." + self.body, hashlib.sha256).hexdigest()
        return abs(self.at - int(parts["t"])) <= OLDEST and hmac.compare_digest(wanted, parts["v1"])


class Receiver:
    def __init__(self, certificate=None):
        self.got = []
        self.status, self.body, self.headers = 204, b"", {}
        self.gate = None
        self.is_https = certificate is not None
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.server.handle_error = lambda *caller: None  # a caller that hung up is its own business
        if certificate:
            self.server.socket = certificate.context().wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return "%s://127.0.0.1:%d/hook" % ("https" if self.is_https else "http", self.server.server_port)

    def events(self):
        return [hit.event for hit in list(self.got)]

    def close(self):
        if self.gate:
            self.gate.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def _handler(self):
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                receiver.got.append(Hit(self, body))
                if receiver.gate:
                    receiver.gate.wait(30)
                self.send_response(receiver.status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                if receiver.status != 204:
                    self.send_header("Content-Length", str(len(receiver.body)))
                self.end_headers()
                if receiver.status != 204:
                    self.wfile.write(receiver.body)

            do_GET = do_POST

            def log_message(self, *args):
                pass

        return Handler
