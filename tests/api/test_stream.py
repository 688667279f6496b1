# SPDX-License-Identifier: Apache-2.0
"""Replies that last: the live stream of events and their export."""

import json
import signal
import time

import pytest

from lib import jwt
from lib.http import Broken, exchange
from lib.ops import Ops, Stream, insert, now_ms
from lib.server import TRACK_TOKEN, run
from lib.wait import until

STREAMS_MAX = 64


@pytest.fixture(scope="module")
def server(make_for_module):
    return make_for_module.server(0)


@pytest.fixture
def ops(server):
    client = Ops(server)
    yield client
    client.close()


def id_of(ms):
    """The first id of that time."""
    return "%08x-%04x-7000-8000-000000000000" % (ms >> 16, ms & 0xFFFF)


def names(stream, count):
    return [stream.event()[0] for _ in range(count)]


# The live stream.


def test_events_come_as_they_happen_and_not_before(server, ops):
    subject = ops.happen("Before")
    stream = Stream(server, "?subject=" + subject).begin()
    ops.happen("First", "Second", subject=subject)
    kind, envelope = stream.event()
    assert kind == "cloudtrail:First"
    assert envelope == ops.read("events/" + envelope["id"])
    assert stream.event()[0] == "cloudtrail:Second"
    assert stream.headers["transfer-encoding"] == "chunked" and stream.headers["cache-control"] == "no-store"
    stream.close()


def test_an_envelope_is_on_one_line_whatever_is_in_it(make):
    server = make.server(0)
    server.stop()
    detail = '{\n"a": "x\\ny",\r\n "b": 1}'
    at = now_ms() - 1000
    insert(server, "event", id=id_of(at), type="Lines", time_ms=at, subject="x", schema=1, detail=detail, volume=0)
    ops = Ops(server.start())
    stream = Stream(server, "?type=Lines", id_of(now_ms() - 60000)).begin()
    assert stream.event()[1]["detail"] == {"a": "x\ny", "b": 1}
    assert [e["detail"] for e in export(ops, "?type=Lines")] == [{"a": "x\ny", "b": 1}]
    stream.close()


@pytest.mark.parametrize("by", ["header", "query"])
def test_a_stream_goes_on_after_the_last_event_seen(server, ops, by):
    subject = ops.happen("One", "Two", "Three")
    first = ops.events("order=oldest&subject=" + subject)[0]["id"]
    query = "?subject=%s%s" % (subject, "&last_event_id=" + first if by == "query" else "")
    stream = Stream(server, query, first if by == "header" else None).begin()
    assert names(stream, 2) == ["cloudtrail:Two", "cloudtrail:Three"]
    ops.happen("Four", subject=subject)
    assert names(stream, 1) == ["cloudtrail:Four"]
    stream.close()


def test_who_leaves_before_the_first_event_misses_none(server, ops):
    subject = ops.happen("Before")
    stream = Stream(server, "?subject=" + subject).begin()
    assert stream.last_id, "the stream tells where it begins"
    stream.close()
    ops.happen("While", "away", subject=subject)
    again = Stream(server, "?subject=" + subject, stream.last_id).begin()
    assert names(again, 2) == ["cloudtrail:While", "cloudtrail:away"]
    again.close()


def test_filters_let_through_only_what_was_asked_for(server, ops):
    stream = Stream(server, "?type=cloudtrail:Wanted*").begin()
    ops.happen("Other", "WantedA", "NotWanted", "WantedB")
    assert names(stream, 2) == ["cloudtrail:WantedA", "cloudtrail:WantedB"]
    stream.close()


def test_many_events_come_in_order_and_once(server, ops):
    subject = "thing/many"
    stream = Stream(server, "?subject=" + subject).begin()
    for n in range(5):
        ops.happen(*["E%03d" % (n * 60 + i) for i in range(60)], subject=subject)
    assert names(stream, 300) == ["cloudtrail:E%03d" % n for n in range(300)]
    stream.close()


def test_a_quiet_stream_has_a_heartbeat(server):
    stream = Stream(server, "?subject=thing/nothing").begin()
    stream.conn.sock.settimeout(90)
    began = time.monotonic()
    assert stream.block() == [":"]
    assert time.monotonic() - began > 10
    stream.close()


def test_a_heartbeat_is_never_in_the_middle_of_an_event(make):
    """One that reads too slowly has had nothing for as long as a quiet one when that gets its heartbeat."""
    server = make.server(0)
    server.stop()
    first, count = now_ms() - 600000, 200
    for n in range(count):
        insert(server, "event", id=id_of(first + n), type="Large", time_ms=first + n, subject="x", schema=1, volume=0,
               detail=json.dumps({"number": n, "text": "x" * 50000}))
    server.start()
    slow = Stream(server, "?type=Large", id_of(first - 1), receive_buffer=4096).begin()
    quiet = Stream(server, "?subject=thing/nothing").begin()
    quiet.conn.sock.settimeout(90)
    assert quiet.block() == [":"]
    assert [slow.event()[1]["detail"]["number"] for _ in range(count)] == list(range(count))
    slow.close()
    quiet.close()


def test_the_most_of_streams_is_a_setting(make):
    server = make.server(0, LEASEHOLD_STREAMS_MAX=2)
    open_ones = [Stream(server).begin() for _ in range(2)]
    late = Stream(server)
    assert late.head() == 503
    assert b"LEASEHOLD_STREAMS_MAX" in late.conn._take(int(late.headers["content-length"]))
    for one in [late, *open_ones]:
        one.close()


def test_there_is_a_most_of_streams_and_a_place_is_free_again(server):
    open_ones = [Stream(server, "?subject=x").begin() for _ in range(STREAMS_MAX)]
    late = Stream(server)
    assert late.head() == 503
    assert b"64 streams" in late.conn._take(int(late.headers["content-length"]))
    late.close()
    for one in open_ones:
        one.close()

    def has_room():
        stream = Stream(server)
        status = stream.head()
        stream.close()
        return status == 200

    until(has_room, "a stream that was left makes room")


@pytest.mark.parametrize(
    "query,last_id",
    [
        ("?last_event_id=nonsense", None),
        ("", "not-an-id"),
        ("", "01A1E126-1EA4-7001-B6E2-3A659D812E28"),
        ("?type=a*b", None),
        ("?type=" + "x" * 65, None),
        ("?actor=admin", None),
    ],
)
def test_what_makes_no_sense_is_400(server, query, last_id):
    stream = Stream(server, query, last_id)
    assert stream.head() == 400
    stream.close()


def test_streams_are_for_operators(server):
    for path in ("events/stream", "events/export"):
        raw = "GET /v1/ops/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n" % (path, TRACK_TOKEN)
        reply, conn = exchange(server.address, raw.encode())
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        conn.close()


def test_head_has_no_stream(server, ops):
    for path, kind in (("stream", "text/event-stream"), ("export", "application/x-ndjson")):
        reply = ops.request("HEAD", "/v1/ops/events/" + path)
        assert (reply.status, reply.header("content-type")) == (200, kind)
        assert (reply.header("content-length"), reply.header("transfer-encoding")) == (None, "chunked"), "as GET would say"
    assert ops.read("queues")["queues"], "the connection is still in step"


def test_a_stream_ends_when_the_server_stops(make):
    server = make.server(0)
    stream = Stream(server, "?type=Nothing*").begin()
    assert server.stop() == 0
    assert stream.event() is None and stream.has_ended, "with the mark of the end"
    stream.close()


def test_a_client_that_does_not_read_is_ended_and_can_go_on(make):
    server = make.server(0, LEASEHOLD_WRITE_TIMEOUT_MS=300)
    ops = Ops(server)
    stream = Stream(server, "?type=cloudtrail:Big*", receive_buffer=4096).begin()
    count = 0
    for _ in range(12):
        ops.happen(*["Big%04d" % (count + i) for i in range(15)], detail={"filler": "x" * 60000})
        count += 15
    other = Stream(server, "?type=cloudtrail:Small").begin()
    until(lambda: connections(server) == 2, "the deaf one is cut; the others (this one, a quiet one) are not", 20)
    ops.happen("Small")
    assert other.event()[0] == "cloudtrail:Small"

    seen = []
    with pytest.raises((Broken, ConnectionError)):
        while True:
            seen.append(stream.event()[0])
    assert not stream.has_ended and len(seen) < count
    again = Stream(server, "?type=cloudtrail:Big*", stream.last_id).begin()
    seen += names(again, count - len(seen))
    assert seen == ["cloudtrail:Big%04d" % n for n in range(count)]
    for one in (stream, other, again):
        one.close()


def connections(server):
    """Established connections of the server's port that still belong to a process."""
    port = ":%04X" % server.address[1]
    with open("/proc/%d/net/tcp" % server.pid, encoding="ascii") as sockets:
        rows = [line.split() for line in sockets]
    return len([row for row in rows if row[1].endswith(port) and row[3] == "01" and row[9] != "0"])


# Credentials that are withdrawn.

OLD, NEW = "old-admin-token-0123456789", "new-admin-token-0123456789"
SECRETS = ["a-secret-of-the-tests-0123456789abcdef", "another-secret-of-tests-0123456789abcdef"]


class Settings:
    """A server whose credentials can be changed while it runs."""

    def __init__(self, make, folder):
        self.file = folder / "settings"
        self.write(OLD + "," + NEW, SECRETS[0])
        self.server = make.server(bare=True, LEASEHOLD_CONFIG_FILE=str(self.file))

    def write(self, admin, secret):
        self.file.write_text(
            "BROKER_API_TOKEN=%s\nBROKER_ADMIN_TOKEN=%s\nLEASEHOLD_JWT_SECRET=%s\nLEASEHOLD_SIM_SANDBOXES=0\n" % (TRACK_TOKEN, admin, secret)
        )

    def change(self, admin=OLD + "," + NEW, secret=SECRETS[0]):
        self.write(admin, secret)
        seen = self.server.output().count("are read again")
        self.server.signal(signal.SIGHUP)
        until(lambda: self.server.output().count("are read again") > seen, "the settings are read again")


@pytest.fixture
def settings(make, tmp_path):
    return Settings(make, tmp_path)


def test_a_stream_ends_when_its_token_is_withdrawn_and_the_others_go_on(settings):
    server = settings.server
    stream, other = [Stream(server, "?type=cloudtrail:*", token=t).begin() for t in (OLD, NEW)]
    settings.change(admin=NEW)
    ops = Ops(server, NEW)
    ops.happen("Secret")
    assert stream.event() is None and stream.has_ended, "told nothing more, with the mark of the end"
    assert other.event()[0] == "cloudtrail:Secret"
    for one in (stream, other):
        one.close()


def test_a_stream_ends_when_the_sign_in_behind_it_is_withdrawn(settings):
    server = settings.server
    stream = Stream(server, "?type=cloudtrail:*", token=jwt.token("ann@example.com", "Admin", secret=SECRETS[0])).begin()
    settings.change(secret=SECRETS[1])
    Ops(server, NEW).happen("Secret")
    assert stream.event() is None and stream.has_ended
    stream.close()


def test_an_export_is_cut_when_its_token_is_withdrawn(settings):
    server = settings.server
    ops = Ops(server, NEW)
    for _ in range(40):
        ops.happen(*["Big"] * 15, subject="thing/big", detail={"filler": "x" * 30000})
    export = Stream(server, "?subject=thing/big", token=OLD, receive_buffer=4096, path="export")
    assert export.head() == 200
    settings.change(admin=NEW)
    with pytest.raises((Broken, ConnectionError)):
        while not export.has_ended:
            export.chunk()
    assert export.text.count(b"\n") < 600, "not all of it"
    export.close()


# The export.


def export(ops, query):
    reply = ops.get("/v1/ops/events/export" + query)
    assert (reply.status, reply.header("content-type")) == (200, "application/x-ndjson"), reply
    assert reply.body == b"" or reply.body.endswith(b"\n")
    return [json.loads(line) for line in reply.body.splitlines()]


def test_an_export_has_every_event_of_its_filter_the_oldest_first(server, ops):
    subject = "thing/export"
    for n in range(5):
        ops.happen(*["X%03d" % (n * 50 + i) for i in range(50)], subject=subject)
    lines = export(ops, "?subject=" + subject)
    assert [e["detail-type"] for e in lines] == ["cloudtrail:X%03d" % n for n in range(250)]
    assert lines == ops.events("limit=100&order=oldest&subject=" + subject)
    assert [e["detail-type"] for e in export(ops, "?subject=%s&type=cloudtrail:X24*" % subject)] == [
        "cloudtrail:X%d" % n for n in range(240, 250)
    ]
    assert export(ops, "?subject=nothing") == []


def test_an_export_has_limits_in_time(server, ops):
    subject = ops.happen("Now")
    at = int(time.time())
    assert len(export(ops, "?subject=%s&since=%d" % (subject, at - 60))) == 1
    assert export(ops, "?subject=%s&until=%d" % (subject, at - 60)) == []
    assert export(ops, "?subject=%s&since=%d" % (subject, at + 60)) == []


def test_the_events_of_a_sandbox_are_found_while_it_is_there_and_after(make, new_owner):
    server = make.server(csp=make.csp(2))
    ops, track = Ops(server), server.track(new_owner())
    sandbox = track.claim()["sandbox_id"]
    assert track.mark(sandbox).status == 200
    life = ["SandboxAdded", "SandboxAllocated", "SandboxMarkedForDeletion"]
    at = "subject=sandbox/" + sandbox
    newest_first = ops.events("limit=1&" + at)
    assert [e["detail-type"] for e in newest_first] == life[::-1]
    assert server.admin().record(sandbox)["last_event"] == newest_first[0]["id"]
    assert [e["detail-type"] for e in ops.events("limit=1&order=oldest&" + at)] == life
    assert server.admin().run("cleanup")["deleted"] == 1
    assert [e["detail-type"] for e in export(ops, "?" + at)] == life + ["SandboxDeleted"]
    env = {"LEASEHOLD_TOKEN": server.env["BROKER_ADMIN_TOKEN"]}
    command = ["event", "watch", "--subject", "sandbox/" + sandbox, "--after", newest_first[-1]["id"], "--limit", "3"]
    got = run(*command, "--address", server.url, "--json", env=env)
    assert got.returncode == 0
    assert [json.loads(line)["detail-type"] for line in got.stdout.splitlines()] == life[1:] + ["SandboxDeleted"]


# The commands.


def test_the_export_command_prints_what_the_server_sends(server, ops):
    subject = ops.happen("A", "B")
    env = {"LEASEHOLD_TOKEN": server.env["BROKER_ADMIN_TOKEN"]}
    got = run("event", "export", "--subject", subject, "--address", server.url, env=env)
    assert got.returncode == 0 and got.stderr == ""
    assert [json.loads(line) for line in got.stdout.splitlines()] == export(ops, "?subject=" + subject)


def test_watch_prints_events_and_ends_after_so_many(server, ops):
    subject = ops.happen("A", "B", "C")
    first = ops.events("order=oldest&subject=" + subject)[0]["id"]
    command = ["event", "watch", "--subject", subject, "--after", first, "--limit", "2", "--address", server.url]
    env = {"LEASEHOLD_TOKEN": server.env["BROKER_ADMIN_TOKEN"]}
    got = run(*command, "--json", env=env)
    assert got.returncode == 0, got.stderr
    assert [json.loads(line)["detail-type"] for line in got.stdout.splitlines()] == ["cloudtrail:B", "cloudtrail:C"]
    lines = run(*command, env=env).stdout.splitlines()
    assert len(lines) == 2 and "cloudtrail:B" in lines[0] and subject in lines[0]
