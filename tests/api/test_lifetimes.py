# SPDX-License-Identifier: Apache-2.0
"""What outlives its client: each call that goes to a thread of its own, with a client that leaves at every step, also while the server ends.

What goes wrong here is memory that is used after it was freed. With the sanitizers (LEASEHOLD_BIN=build-asan/leasehold) it is told in any
case; without them mostly by the end of the server."""

import signal
import socket
from urllib.parse import urlencode

import pytest

from lib import leases
from lib.crowd import Background
from lib.http import Connection
from lib.leases import Pool
from lib.ops import Ops
from lib.wait import until

SLOW_MS = 300
DOCTOR_THREADS = 2


def start(make, **env):
    settings = {"LEASEHOLD_SIM_ACCOUNTS": "4", "LEASEHOLD_SIM_ENTRY_ACCOUNTS": "4", **env}
    server = make.server(args=["--dev"], **leases.env(make.folder, **settings))
    Ops(server).act("jobs/reconcile/pause")
    return server


def slow_down(server, latency_ms, call=None):
    """Each call of the organisation takes so long; 0: none does."""
    rule = {"fault": "latency", "latency_ms": latency_ms, **({"call": call} if call else {})}
    reply = Ops(server).request("PUT", "/v1/sim/faults", body={"faults": [rule] if latency_ms else []})
    assert reply.status == 200, reply


def form(server):
    """A sign-in as a browser sends it: it is refused, but only after the password was hashed."""
    client = server.client()
    page = client.get("/api/auth/signin")
    cookie = page.header("set-cookie").split(";")[0]
    token = page.body.split(b'name="form" value="')[1].split(b'"')[0].decode()
    body = urlencode({"form": token, "email": leases.USER, "password": "not this one"}).encode()
    return "POST", "/api/auth/signin", {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}, body


def entry_account(server):
    world = Ops(server).get("/v1/sim").json
    return next(o for o in world["ous"] if o["name"] == "Entry")["accounts"][0]["id"]


def calls(server):
    """One of each kind that is done by a thread of the pool: method, path, headers, body."""
    admin = Ops(server).base_headers
    person = Pool(server).admin.base_headers
    return [
        ("GET", "/v1/ops/doctor", admin, None),
        ("POST", "/v1/ops/doctor", admin, None),
        ("GET", "/v1/ops/reports/costs?month=2026-10", admin, None),
        ("GET", "/api/reports/costs?month=2026-10", person, None),
        ("GET", "/v1/sim", admin, None),
        ("GET", "/api/accounts/unregistered", person, None),
        ("POST", "/api/accounts", person, {"awsAccountId": entry_account(server)}),
        form(server),
    ]


def packet(server, call):
    method, path, headers, body = call
    return server.client(headers)._bytes(method, path, None, body)


def send(server, data):
    conn = Connection(server.address)
    conn.send(data)
    return conn


def leave(conn):
    """At once, as a process that was killed."""
    conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    conn.close()


def all_done(server):
    """Nothing is with a thread any more: one more call of the slowest kind has gone through."""
    assert Ops(server).get("/v1/ops/doctor").status == 200


def test_two_doctors_in_one_packet_free_their_findings_once_each(make):
    server = start(make)
    data = packet(server, calls(server)[0])
    conn = send(server, data + data + data)
    assert [conn.reply().status for _ in range(3)] == [200, 200, 200]
    assert server.stop() == 0, server.output()[-3000:]


def test_a_client_that_leaves_while_a_thread_works_for_it_takes_nothing_away_from_it(make):
    server = start(make)
    slow_down(server, SLOW_MS)
    for call in calls(server):
        data = packet(server, call)
        leave(send(server, data))  # perhaps not even read
        conn = send(server, data)
        assert server.client().get("/healthz").status == 200  # by now it has been read
        leave(conn)
        conn = send(server, data + data)
        assert server.client().get("/healthz").status == 200
        leave(conn)
    slow_down(server, 0)
    all_done(server)
    assert server.stop() == 0, server.output()[-3000:]


def test_a_client_that_leaves_before_its_turn_has_come_is_not_worked_for(make):
    server = start(make)
    slow_down(server, 1000, "list-accounts")
    data = packet(server, calls(server)[0])
    working = [send(server, data) for _ in range(DOCTOR_THREADS)]
    assert server.client().get("/healthz").status == 200
    waiting = [send(server, data) for _ in range(6)]
    assert server.client().get("/healthz").status == 200
    for conn in waiting:
        leave(conn)
    assert [conn.reply().status for conn in working] == [200] * DOCTOR_THREADS
    slow_down(server, 0)
    all_done(server)
    assert server.stop() == 0, server.output()[-3000:]


@pytest.mark.parametrize("which", range(8))
def test_the_server_ends_in_order_while_a_thread_works_for_one_who_left(make, which):
    server = start(make)
    data = packet(server, calls(server)[which])
    slow_down(server, SLOW_MS)
    conn = send(server, data)
    assert server.client().get("/healthz").status == 200
    leave(conn)
    assert server.stop() == 0, server.output()[-3000:]


@pytest.mark.parametrize("path", ["admin/sync", "ops/jobs/cleanup/pause"])
def test_the_server_ends_in_order_while_a_job_of_one_who_left_is_at_the_store(make, shimmed, flags, path):
    server = make.server(3, **shimmed)
    base = (flags / "count").stat().st_size if (flags / "count").exists() else 0
    (flags / "hang").touch()
    conn = send(server, packet(server, ("POST", "/v1/" + path, Ops(server).base_headers, None)))
    until(lambda: (flags / "count").exists() and (flags / "count").stat().st_size > base, "its transaction is at the disk")
    leave(conn)
    server.signal(signal.SIGTERM)
    until(lambda: "stopping" in server.output(), "the server begins to end")
    (flags / "hang").unlink()
    assert server.wait_end() == 0, server.output()[-3000:]


def test_a_second_signal_while_the_store_is_being_closed_kills_nobody(make, shimmed, flags, owner):
    server = make.server(3, **shimmed)
    (flags / "hang").touch()
    conn = send(server, packet(server, ("POST", "/v1/allocate", server.track(owner).base_headers, None)))
    until(lambda: (flags / "count").exists(), "a claim is at the disk")
    leave(conn)
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        server.signal(number)
    until(lambda: "stopping" in server.output(), "the server ends")
    (flags / "hang").unlink()
    (flags / "slow").touch()
    while server.process.poll() is None:  # to its last moment
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGHUP)
    assert server.wait_end() == 0, server.output()[-3000:]
    assert "stopped" in server.output()


def test_slow_doctors_do_not_keep_anybody_from_signing_in(make):
    server = start(make)
    sign_in = form(server)
    slow_down(server, 20000, "list-accounts")
    doctors = [send(server, packet(server, calls_doctor(server))) for _ in range(8)]
    assert server.client().get("/healthz").status == 200
    reply = Background(lambda: send(server, packet(server, sign_in)).reply()).result(10)
    assert reply.status == 401, reply
    for conn in doctors:
        leave(conn)


def calls_doctor(server):
    return "GET", "/v1/ops/doctor", Ops(server).base_headers, None
