# SPDX-License-Identifier: Apache-2.0
"""A small HTTP/1.1 client on a socket: one keep-alive connection each, so every thread has its own.

It never repairs what the server sends: a reply that breaks the rules of HTTP is a Broken exception. `exchange` sends
raw bytes and is for requests that no decent client would make.
"""

import json
import socket
import ssl

from lib.wait import LEAST

CRLF = b"\r\n"


class Broken(Exception):
    """The connection ended, or what came is not HTTP."""


class Reply:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # list of (lower-case name, value)
        self.body = body

    def header(self, name, default=None):
        name = name.lower()
        return next((v for n, v in self.headers if n == name), default)

    def all(self, name):
        return [v for n, v in self.headers if n == name.lower()]

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """The error object of a refusal; fails when the body has not the documented shape."""
        got = self.json
        assert list(got) == ["error"] and isinstance(got["error"], dict), "not an error envelope: %r" % got
        return got["error"]

    @property
    def code(self):
        return self.error["code"]

    def __repr__(self):
        return "<%d %r>" % (self.status, self.body[:300])


class Connection:
    """One socket with its read buffer."""

    def __init__(self, address, timeout=LEAST, tls=None, source=None):
        host, port = address
        self.sock = socket.create_connection((host, port), timeout=timeout, source_address=source and (source, 0))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.sock = tls.wrap_socket(self.sock, server_hostname=host)
        self.buf = b""

    def send(self, data):
        self.sock.sendall(data)

    def close(self):
        try:
            self.sock.close()
        except OSError:
            pass

    def _fill(self):
        try:
            got = self.sock.recv(65536)
        except (ConnectionError, ssl.SSLError) as e:
            raise Broken(str(e)) from e
        if not got:
            raise Broken("end of stream after %r" % self.buf[:100])
        self.buf += got

    def is_closed_by_peer(self, timeout=30.0):
        """True when the server ends the connection within the time, without sending anything more."""
        self.sock.settimeout(timeout)
        try:
            return not self.buf and self.sock.recv(1) == b""
        except ConnectionError:
            return True
        except socket.timeout:
            return False

    def reply(self, is_head=False, skip_interim=True):
        while True:
            status, headers = self._head()
            if status >= 200 or not skip_interim:
                break
        return Reply(status, headers, b"" if is_head or status < 200 else self._body(status, headers))

    def _head(self):
        while b"\r\n\r\n" not in self.buf:
            if len(self.buf) > 1 << 16:
                raise Broken("head without end")
            self._fill()
        head, self.buf = self.buf.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        version, _, rest = lines[0].partition(" ")
        if version not in ("HTTP/1.1", "HTTP/1.0") or not rest[:3].isdigit():
            raise Broken("status line %r" % lines[0])
        headers = []
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise Broken("header line %r" % line)
            headers.append((name.lower(), value.strip()))
        return int(rest[:3]), headers

    def _body(self, status, headers):
        lengths = [v for n, v in headers if n == "content-length"]
        coding = [v for n, v in headers if n == "transfer-encoding"]
        if status in (204, 304):
            return b""
        if coding:
            return self._chunked()
        if len(lengths) != 1 or not lengths[0].isdigit():
            raise Broken("Content-Length %r" % lengths)
        return self._take(int(lengths[0]))

    def _take(self, size):
        while len(self.buf) < size:
            self._fill()
        got, self.buf = self.buf[:size], self.buf[size:]
        return got

    def _chunked(self):
        body = b""
        while True:
            while CRLF not in self.buf:
                self._fill()
            line, self.buf = self.buf.split(CRLF, 1)
            size = int(line.split(b";")[0], 16)
            body += self._take(size)
            if self._take(2) != CRLF:
                raise Broken("chunk without end")
            if size == 0:
                return body


class Client:
    """Requests over one connection that is opened when needed. Not for two threads at once.

    source: the address that it comes from. retry: when a kept connection turns out to be closed before a byte of the reply came, ask once more on a new one.
    """

    def __init__(self, address, headers=None, timeout=LEAST, tls=None, retry=True, source=None):
        self.address = address
        self.base_headers = dict(headers or {})
        self.timeout = timeout
        self.tls = tls
        self.source = source
        self.retry = retry
        self.conn = None

    def request(self, method, path, headers=None, body=None, timeout=None):
        data = self._bytes(method, path, headers, body)
        fresh = self.conn is None
        try:
            return self._once(data, method == "HEAD", timeout)
        except (Broken, ConnectionError) as e:
            if fresh or not self.retry or "end of stream after b''" not in str(e) and not isinstance(e, OSError):
                raise Broken(str(e)) from e
        return self._once(data, method == "HEAD", timeout)

    def _bytes(self, method, path, headers, body):
        merged = {"Host": "%s:%d" % self.address, **self.base_headers, **(headers or {})}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            merged.setdefault("Content-Type", "application/json")
        if body is not None or method in ("POST", "PUT", "PATCH"):
            merged.setdefault("Content-Length", str(len(body or b"")))
        lines = ["%s %s HTTP/1.1" % (method, path)] + ["%s: %s" % h for h in merged.items() if h[1] is not None]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")

    def _once(self, data, is_head, timeout):
        try:
            if self.conn is None:
                self.conn = Connection(self.address, self.timeout, self.tls, self.source)
            self.conn.sock.settimeout(timeout or self.timeout)
            self.conn.send(data)
            reply = self.conn.reply(is_head)
        except (OSError, Broken):
            self.close()
            raise
        if (reply.header("connection") or "").lower() == "close":
            self.close()
        return reply

    def get(self, path, **kw):
        return self.request("GET", path, **kw)

    def post(self, path, **kw):
        return self.request("POST", path, **kw)

    def close(self):
        if self.conn:
            self.conn.close()
            self.conn = None


def exchange(address, raw, timeout=LEAST, half_close=False):
    """Send raw bytes on a new connection. Returns (reply or None when it was just closed, the connection)."""
    conn = Connection(address, timeout)
    try:
        conn.send(raw)
        if half_close:
            conn.sock.shutdown(socket.SHUT_WR)
    except ConnectionError:
        pass  # refused before all was sent; the reply, if any, is still to be read
    try:
        return conn.reply(raw.startswith(b"HEAD ")), conn
    except Broken:
        return None, conn
