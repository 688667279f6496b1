# SPDX-License-Identifier: Apache-2.0
"""A DynamoDB endpoint with troubles to order: passes requests on, except where a fault says otherwise.

    proxy = Proxy(endpoint, secrets={access_key: secret_key})
    fault = proxy.fault("throttle", operations=("UpdateItem",), count=3)     # the next three; None: until cleared
    fault = proxy.fault("lose", share=0.2, seed=1)                           # one in five, by a repeatable dice
    proxy.clear()

    throttle   400 ProvisionedThroughputExceededException, not passed on
    error      500 InternalServerError, not passed on
    drop       the connection is closed, not passed on
    lose       passed on, then the connection is closed: it happened, and nobody is told
    lose-500   passed on, then 500: it happened, and the caller is told otherwise
    conflict   a transaction: TransactionCanceledException with TransactionConflict; a single write or read:
               TransactionConflictException; not passed on
    delay      `seconds` later passed on
    hang       no answer for `seconds`, not passed on
    stale      a query of an index gets the answer that the same query got before: a secondary index that lags behind;
               the first of its kind is passed on
    filling    a query of an index is refused: the index is new, and being filled; all else is passed on

With a meter (lib/ddb_units.py) writes are paid for by partition key, and refused above its limit.

stop() ends the listener and every connection, start() comes back on the same port. With secrets, the signature of every
request is checked as AWS would, and a bad one is answered with 400 and kept in `unsigned`; the emulator does not look.
One thread and one connection to the emulator for each connection of a caller, both kept alive.
"""

import hashlib
import hmac
import json
import random
import re
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Optional
from urllib.parse import urlsplit

from lib.http import Broken, Connection
from lib.ports import free_port

KINDS = ("throttle", "error", "drop", "lose", "lose-500", "conflict", "delay", "hang", "stale", "filling")
LOG_MAX = 200000
REMEMBERED_MAX = 1000  # answers of queries
AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?"
    r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$"
)


@dataclass
class Entry:
    """One request: what it was, what became of it."""

    operation: str
    begin: float
    body: bytes
    fault: Optional[str] = None
    status: Optional[int] = None  # None: no answer was sent
    is_forwarded: bool = False
    actions: tuple = ()  # what the meter wants to hear of when it is done


class Fault:
    """A switch that is on. hits counts how often it struck."""

    def __init__(self, kind, operations, count, share, seconds, seed):
        assert kind in KINDS, kind
        self.kind, self.operations, self.left, self.share, self.seconds = kind, operations, count, share, seconds
        self.dice = random.Random(seed)
        self.hits = 0

    def strikes(self, operation):
        if self.left == 0 or (self.operations and operation not in self.operations):
            return False
        if self.share < 1 and self.dice.random() >= self.share:
            return False
        self.hits += 1
        if self.left is not None:
            self.left -= 1
        return True


class Proxy:
    def __init__(self, endpoint, secrets=None, meter=None):
        at = urlsplit(endpoint)
        self.meter = meter
        self.upstream = (at.hostname, at.port)
        self.secrets = secrets
        self.lock = threading.Lock()
        self.faults, self.log, self.unsigned = [], [], []
        self.remembered = {}  # body of an index query: its last answer that was passed on
        self.open = set()
        self.over = threading.Event()
        self.listener, self.port = None, free_port()
        self.start()

    @property
    def endpoint(self):
        return "http://127.0.0.1:%d" % self.port

    # Switches.

    def fault(self, kind, operations=None, count=None, share=1.0, seconds=0.0, seed=1):
        fault = Fault(kind, operations, count, share, seconds, seed)
        with self.lock:
            self.faults.append(fault)
        return fault

    def clear(self):
        with self.lock:
            self.faults = []

    def start(self):
        assert self.listener is None, "it is running"
        self.over = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=256)
        threading.Thread(target=self._accept, args=(self.listener, self.over), daemon=True).start()

    def stop(self):
        """Nobody is there any more: connections are refused, and those that are open end."""
        if self.listener is None:
            return
        self.over.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.listener = None
        with self.lock:
            ending, self.open = self.open, set()
        for s in ending:
            end(s)

    # What was asked.

    def counts(self):
        with self.lock:
            return Counter(e.operation for e in self.log)

    def total(self):
        return len(self.log)

    def forget(self):
        with self.lock:
            self.log = []

    def entries(self, *operations):
        with self.lock:
            return [e for e in self.log if not operations or e.operation in operations]

    # Serving.

    def _accept(self, listener, over):
        while True:
            try:
                s, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                if over.is_set():
                    s.close()
                    return
                self.open.add(s)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(s, over), daemon=True).start()

    def _serve(self, s, over):
        caller = Caller(s)
        upstream = Upstream(self.upstream)
        try:
            while not over.is_set():
                request = caller.request()
                if request is None or not self._answer(request, caller, upstream, over):
                    break
        except (OSError, Broken):
            pass  # a side hung up; the other is told below
        finally:
            upstream.close()
            with self.lock:
                self.open.discard(s)
            end(s)
            s.close()

    def _answer(self, request, caller, upstream, over):
        """False: close the connection."""
        entry = Entry(request.operation, time.monotonic(), request.body)
        with self.lock:
            assert len(self.log) < LOG_MAX, "the proxy's log is full"
            self.log.append(entry)
            fault = next((f for f in self.faults if (f.kind != "filling" or b'"IndexName"' in request.body) and f.strikes(entry.operation)), None)
        if self.secrets is not None:
            wrong = signature_fault(request, self.secrets)
            if wrong:
                self.unsigned.append("%s: %s" % (entry.operation, wrong))
                return self._refuse(caller, entry, 400, "InvalidSignatureException", {"message": wrong})
        if self.meter:
            refusal, entry.actions = self.meter.admit(request.operation, request.body)
            if refusal:
                return self._refuse(caller, entry, 400, *refusal)
        if fault:
            entry.fault = fault.kind
            if fault.kind in ("delay", "hang"):
                over.wait(fault.seconds)
        old = self.remembered.get(request.body) if fault and fault.kind == "stale" else None
        if fault and fault.kind not in ("delay", "stale"):
            return self._misbehave(fault, entry, request, caller, upstream)
        reply = old or self._forward(entry, request, upstream)
        entry.status = reply.status
        caller.reply(reply.status, reply.body, [h for h in reply.headers if h[0].startswith("x-amz")])
        return True

    def _forward(self, entry, request, upstream):
        entry.is_forwarded = True
        reply = upstream.ask(request.raw)
        if entry.actions and reply.status == 200:
            self.meter.done(entry.actions)
        if request.operation == "Query" and b'"IndexName"' in request.body and reply.status == 200:
            with self.lock:
                if len(self.remembered) >= REMEMBERED_MAX:
                    self.remembered.clear()
                self.remembered[request.body] = reply
        return reply

    def _misbehave(self, fault, entry, request, caller, upstream):
        if fault.kind == "throttle":
            text = "The level of configured provisioned throughput for the table was exceeded"
            return self._refuse(caller, entry, 400, "ProvisionedThroughputExceededException", {"message": text})
        if fault.kind == "filling":
            return self._refuse(caller, entry, 400, "ValidationException", {"message": "Cannot read from backfilling global secondary index: " +
                                                                            json.loads(request.body)["IndexName"]})
        if fault.kind == "conflict":
            return self._refuse(caller, entry, 400, *conflict(request))
        if fault.kind.startswith("lose"):
            self._forward(entry, request, upstream)
        if fault.kind in ("error", "lose-500"):
            return self._refuse(caller, entry, 500, "InternalServerError", {"message": "made to fail"})
        return False  # drop, lose, hang: no answer

    @staticmethod
    def _refuse(caller, entry, status, name, body):
        entry.status = status
        full = {"__type": "com.amazonaws.dynamodb.v20120810#" + name, **body}
        caller.reply(status, json.dumps(full).encode(), [])
        return True


def conflict(request):
    """What AWS says when another transaction has the item."""
    text = "Transaction is ongoing for the item"
    if request.operation not in ("TransactWriteItems", "TransactGetItems"):
        return "TransactionConflictException", {"message": text}
    count = len(json.loads(request.body)["TransactItems"])
    reasons = [{"Code": "TransactionConflict", "Message": text}] + [{"Code": "None"}] * (count - 1)
    codes = ", ".join(r["Code"] for r in reasons)
    message = "Transaction cancelled, please refer cancellation reasons for specific reasons [%s]" % codes
    return "TransactionCanceledException", {"Message": message, "CancellationReasons": reasons}


def end(s):
    try:
        s.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # its other side was first


class Request:
    def __init__(self, raw, method, path, headers, body):
        self.raw, self.method, self.path, self.headers, self.body = raw, method, path, headers, body
        self.operation = headers.get("x-amz-target", "").rpartition(".")[2]


class Caller:
    """The side that asks. Requests have a Content-Length, as every AWS client sends it."""

    def __init__(self, s):
        self.s, self.buf = s, b""

    def request(self):
        """The next one, or None when the caller has hung up."""
        while b"\r\n\r\n" not in self.buf:
            if not self._fill():
                return None
        head, _, rest = self.buf.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, path, _ = lines[0].split(" ", 2)
        headers = {n.strip().lower(): v.strip() for n, _, v in (line.partition(":") for line in lines[1:])}
        if headers.get("expect", "").lower() == "100-continue":
            self.s.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        size = len(head) + 4 + int(headers.get("content-length", "0"))
        while len(self.buf) < size:
            if not self._fill():
                return None
        raw, self.buf = self.buf[:size], self.buf[size:]
        if "expect" in headers:
            raw = re.sub(rb"(?i)\r\nexpect:[^\r]*", b"", raw, count=1)
        return Request(raw, method, path, headers, raw[raw.index(b"\r\n\r\n") + 4 :])

    def _fill(self):
        got = self.s.recv(1 << 16)
        self.buf += got
        return bool(got)

    def reply(self, status, body, headers):
        lines = ["HTTP/1.1 %d %s" % (status, "OK" if status == 200 else "Refused")]
        lines += ["Content-Type: application/x-amz-json-1.0", "Content-Length: %d" % len(body)]
        lines += ["%s: %s" % h for h in headers]
        self.s.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body)


class Upstream:
    """The side that answers, over one kept connection."""

    def __init__(self, address):
        self.address, self.conn = address, None

    def ask(self, raw):
        """A kept connection that the emulator has ended meanwhile is replaced once; nothing was asked on it then."""
        is_kept = self.conn is not None
        try:
            return self._once(raw)
        except (OSError, Broken) as e:
            self.close()
            if not is_kept or "end of stream after b''" not in str(e) and not isinstance(e, ConnectionError):
                raise
        return self._once(raw)

    def _once(self, raw):
        if self.conn is None:
            self.conn = Connection(self.address, 60)
        self.conn.send(raw)
        return self.conn.reply()

    def close(self):
        if self.conn:
            self.conn.close()
            self.conn = None


# Signatures, as AWS checks them.


def signature_fault(request, secrets):
    """None when the request is signed rightly, else what is wrong."""
    found = AUTHORIZATION.match(request.headers.get("authorization", ""))
    if not found:
        return "no Authorization of the right form: %r" % request.headers.get("authorization")
    key, day, region, service, names, signature = found.groups()
    stamp = request.headers.get("x-amz-date", "")
    must = {"host", "x-amz-date"} | {n for n in request.headers if n.startswith("x-amz-")}
    if not must <= set(names.split(";")):
        return "not signed: %s" % sorted(must - set(names.split(";")))
    if key not in secrets or service != "dynamodb" or not stamp.startswith(day):
        return "credential %s/%s/%s/%s with X-Amz-Date %s" % (key, day, region, service, stamp)
    path, _, query = request.path.partition("?")
    values = ["%s:%s\n" % (n, " ".join(request.headers.get(n, "").split())) for n in names.split(";")]
    payload = hashlib.sha256(request.body).hexdigest()
    canonical = "\n".join((request.method, path or "/", query, "".join(values), names, payload))
    scope = "/".join((day, region, service, "aws4_request"))
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode("latin-1")).hexdigest()))
    step = ("AWS4" + secrets[key]).encode()
    for part in scope.split("/"):
        step = hmac.new(step, part.encode(), hashlib.sha256).digest()
    right = hmac.new(step, text.encode(), hashlib.sha256).hexdigest()
    return None if hmac.compare_digest(right, signature) else "the signature does not match"
