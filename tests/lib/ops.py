# SPDX-License-Identifier: Apache-2.0
"""The operators' API for tests: calls, events from outside, records for a stopped server's store, the live stream."""

import contextlib
import json
import socket
import sqlite3
import time
import uuid
from urllib.parse import quote

from lib.http import Client, Connection
from lib.rows import put_events

INBOX_TOKEN = "inbox-token-0123456789abcdef"
SOURCE = "cloudtrail"


class Ops(Client):
    """An operator's calls below /v1/ops."""

    def __init__(self, server, token=None):
        token = token or server.env["BROKER_ADMIN_TOKEN"]
        super().__init__(server.address, {"Authorization": "Bearer " + token})

    def read(self, path):
        """A GET that must succeed; the body."""
        reply = self.get("/v1/ops/" + path)
        assert reply.status == 200, reply
        return reply.json

    def act(self, path, body=None):
        return self.post("/v1/ops/" + path, body=body)

    def events(self, query):
        """All events of a filter, page by page."""
        found, cursor = [], None
        while True:
            page = self.read("events?%s%s" % (query, "&cursor=" + cursor if cursor else ""))
            found += page["events"]
            cursor = page["cursor"]
            if cursor is None:
                return found

    def send(self, *events, source=SOURCE):
        return self.post("/v1/inbox/" + source, body=list(events))

    def happen(self, *names, subject=None, detail=None):
        """Events of these names from outside, all of one subject; the ids of ours."""
        subject = subject or "thing/" + uuid.uuid4().hex
        sent = [outside(name, subject=subject, detail=detail) for name in names]
        reply = self.send(*sent)
        assert (reply.status, reply.json["accepted"]) == (202, len(sent)), reply
        return subject


def outside(name, subject=None, detail=None, event_id=None):
    """An event as somebody else sends it."""
    event = {"id": event_id or uuid.uuid4().hex, "detail-type": name, "detail": detail or {}}
    return {**event, "subject": subject} if subject else event


def segment(text):
    return quote(text, safe="")


def now_ms():
    return int(time.time() * 1000)


def insert(server, table, **values):
    """A record of the kernel, put into the store while the server is stopped."""
    if table == "event":
        with contextlib.closing(sqlite3.connect(server.data / "leasehold.db")) as db, db:
            put_events(db, [values])
        return
    values = {"version": 1, **values}
    names = ", ".join('"%s"' % n for n in values)
    server.sql("INSERT INTO %s (%s) VALUES (%s)" % (table, names, ", ".join("?" * len(values))), *values.values())


class Stream:
    """A live stream: what came, event by event."""

    def __init__(self, server, query="", last_id=None, receive_buffer=None, token=None, path="stream"):
        self.conn = Connection(server.address)
        if receive_buffer:
            self.conn.sock.close()
            self.conn.sock = socket.socket()
            self.conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self.conn.sock.connect(server.address)
        lines = ["GET /v1/ops/events/%s%s HTTP/1.1" % (path, query), "Host: x"]
        lines.append("Authorization: Bearer " + (token or server.env["BROKER_ADMIN_TOKEN"]))
        if last_id:
            lines.append("Last-Event-ID: " + last_id)
        self.conn.send(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.text = b""
        self.last_id = None
        self.has_ended = False

    def head(self):
        """Status and headers; of a refusal the whole reply."""
        self.status, headers = self.conn._head()
        self.headers = dict(headers)
        return self.status

    def begin(self):
        """It must have begun: the first words are there."""
        assert self.head() == 200, self.conn.buf
        assert self.headers["content-type"] == "text/event-stream"
        self.block()
        return self

    def chunk(self):
        while b"\r\n" not in self.conn.buf:
            self.conn._fill()
        size, self.conn.buf = self.conn.buf.split(b"\r\n", 1)
        self.text += self.conn._take(int(size, 16))
        assert self.conn._take(2) == b"\r\n"
        self.has_ended = int(size, 16) == 0

    def block(self):
        """The lines up to the next empty one, as they came; None at the end of the stream."""
        while b"\n\n" not in self.text:
            self.chunk()
            if self.has_ended:
                return None
        block, self.text = self.text.split(b"\n\n", 1)
        lines = block.decode().split("\n")
        for line in lines:
            if line.startswith("id: "):
                self.last_id = line[4:]
        return lines

    def event(self, timeout=60.0):
        """The next event: (type, envelope). Heartbeats are passed over."""
        self.conn.sock.settimeout(timeout)
        while True:
            lines = self.block()
            if lines is None:
                return None
            fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
            if "data" in fields:
                envelope = json.loads(fields["data"])
                assert fields["id"] == envelope["id"] and fields["event"] == envelope["detail-type"]
                return fields["event"], envelope

    def close(self):
        self.conn.close()
