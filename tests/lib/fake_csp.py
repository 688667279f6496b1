# SPDX-License-Identifier: Apache-2.0
"""A vendor on a loopback port that can be made to misbehave.

    GET    /current_user/accounts      {"results": [account, ...]}
    DELETE /sandbox/accounts/{uuid}    204, or 404 when there is none

Both want `Authorization: Token <token>`. Switches are plain attributes, read at each request:

    list_fault, delete_fault   None, a status code, "drop" (close without an answer), "html" or "html404" (a 200 or 404 that is a web page),
                               "html500" (a 500 whose JSON wraps a web page), "garbage", "no-results", "truncated"
    list_delay, delete_delay   seconds before the answer
    is_empty                   list nothing
    keeps_deleted              go on listing what was deleted
    hidden                     sandbox ids that are left out of the listing
    gate, delete_gate          a threading.Event that every listing or deletion waits for, or None
"""

import json
import socket
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "csp-token"
PAGE = "<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>"


def account(number, name=None, **fields):
    """One account; ids are derived from the number, so the same number is the same account."""
    unique = str(uuid.uuid5(uuid.NAMESPACE_URL, "account-%d" % number))
    return {
        "id": "identity/accounts/" + unique,
        "csp_id": 100000 + number,
        "name": name or "lab-%06d" % number,
        "account_type": "sandbox",
        "state": "active",
        "created_at": "2026-01-02T03:04:05Z",
        **fields,
    }


def sandbox_id(number):
    return str(100000 + number)


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *args):
        self.open = set()
        super().__init__(*args)

    def process_request(self, request, client_address):
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request, client_address):
        """A caller that hung up is its own business."""


class FakeCsp:
    def __init__(self, count=0, prefix=None):
        self.lock = threading.Lock()
        self.accounts = {}  # by uuid
        self.deleted = set()
        self.log = []  # (method, path, authorization)
        self.list_fault = self.delete_fault = None
        self.list_delay = self.delete_delay = 0.0
        self.is_empty = self.keeps_deleted = False
        self.hidden = set()
        self.gate = self.delete_gate = None
        self.next_number = 0
        self._listing = None
        self.add(count, prefix)
        self.server = QuietServer(("127.0.0.1", 0), self._handler())
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.server.server_port

    def env(self):
        return {"CSP_BASE_URL": self.url, "CSP_API_TOKEN": TOKEN}

    def close(self):
        for gate in (self.gate, self.delete_gate):
            if gate:
                gate.set()
        if self.thread.is_alive():
            self.server.shutdown()
            self.server.server_close()
            self.thread.join(5)

    def vanish(self):
        """No more listener, and kept connections end too."""
        self.close()
        for sock in list(self.server.open):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # ended by its other side

    # The stock.

    def add(self, count=1, prefix=None, **fields):
        """New accounts; their sandbox ids."""
        with self.lock:
            numbers = range(self.next_number, self.next_number + count)
            self.next_number += count
            for n in numbers:
                self.put(account(n, "%s-%06d" % (prefix, n) if prefix else None, **fields))
            return [sandbox_id(n) for n in numbers]

    def put(self, item):
        self.accounts[item["id"].rsplit("/", 1)[-1]] = item
        self._listing = None

    def find(self, wanted):
        return next(a for a in self.accounts.values() if str(a.get("csp_id")) == wanted)

    def rename(self, wanted, name):
        with self.lock:
            self.find(wanted)["name"] = name
            self._listing = None

    # What was asked.

    def lists(self):
        return sum(1 for entry in self.log if entry[0] == "GET")

    def deletes(self):
        """uuids in the order their deletion was asked for, repeats included."""
        return [entry[1].rsplit("/", 1)[-1] for entry in self.log if entry[0] == "DELETE"]

    def uuid_of(self, wanted):
        return self.find(wanted)["id"].rsplit("/", 1)[-1]

    # Answers.

    def listing(self):
        with self.lock:
            if self.is_empty:
                return b'{"results": []}'
            if self._listing is not None and not self.hidden:
                return self._listing
            got = [
                a
                for u, a in self.accounts.items()
                if (self.keeps_deleted or u not in self.deleted) and str(a.get("csp_id")) not in self.hidden
            ]
            data = json.dumps({"results": got}).encode()
            if not self.hidden:
                self._listing = data
            return data

    def delete(self, unique):
        with self.lock:
            if unique not in self.accounts or unique in self.deleted:
                return 404
            self.deleted.add(unique)
            if not self.keeps_deleted:
                self._listing = None
            return 204

    def _handler(fake):  # noqa: N805 - the handler's self is another one
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def note(self):
                fake.log.append((self.command, self.path, self.headers.get("Authorization")))

            def answer(self, status, body=b"", kind="application/json"):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def misbehave(self, fault, body):
                if isinstance(fault, int):
                    return self.answer(fault, b'{"error": {"message": "made to fail"}}')
                if fault == "html":
                    return self.answer(200, PAGE.encode(), "text/html")
                if fault == "html404":
                    return self.answer(404, PAGE.encode(), "text/html")
                if fault == "html500":
                    return self.answer(500, json.dumps({"error": [{"message": PAGE}]}).encode())
                if fault == "garbage":
                    return self.answer(200, b'{"results": [{"id": ')
                if fault == "no-results":
                    return self.answer(200, b'{"accounts": []}')
                self.close_connection = True
                if fault == "truncated":
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(body) + 1000))
                    self.end_headers()
                    self.wfile.write(body[: len(body) // 2])
                return None  # "drop": nothing at all

            def allowed(self):
                if self.headers.get("Authorization") == "Token " + TOKEN:
                    return True
                self.answer(401, b"{}")
                return False

            def do_GET(self):
                self.note()
                if fake.gate:
                    fake.gate.wait(60)
                time.sleep(fake.list_delay)
                if not self.allowed():
                    return
                if self.path != "/current_user/accounts":
                    return self.answer(404, b"{}")
                body = fake.listing()
                return self.misbehave(fake.list_fault, body) if fake.list_fault else self.answer(200, body)

            def do_DELETE(self):
                self.note()
                if fake.delete_gate:
                    fake.delete_gate.wait(60)
                time.sleep(fake.delete_delay)
                if not self.allowed():
                    return
                if not self.path.startswith("/sandbox/accounts/"):
                    return self.answer(404, b"{}")
                if fake.delete_fault:
                    return self.misbehave(fake.delete_fault, b"{}")
                return self.answer(fake.delete(self.path.rsplit("/", 1)[-1]))

        return Handler
