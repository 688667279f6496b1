# SPDX-License-Identifier: Apache-2.0
"""Connections and file descriptors that are used up: it is told, and probes are still answered."""

import os
import resource

import pytest
from lib.http import Broken, Connection
from lib.server import binary
from lib.wait import until


def ask(connection, path):
    connection.send(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode())
    return connection.reply()


def told(server, *words):
    return any('"WARNING"' in line and all(w in line for w in words) for line in server.lines)


def status(server, path):
    """Of one request on a new connection; None when that is closed."""
    connection = Connection(server.address)
    try:
        return ask(connection, path).status
    except (Broken, ConnectionError):
        return None
    finally:
        connection.close()


def is_served(connection):
    try:
        return ask(connection, "/").status == 200
    except (Broken, ConnectionError):
        return False


@pytest.fixture
def few(make, tmp_path, monkeypatch):
    """A server that may have 100 open files."""
    wrapper = tmp_path / "few"
    wrapper.write_text('#!/bin/sh\nulimit -n 100\nexec "%s" "$@"\n' % binary())
    wrapper.chmod(0o755)
    monkeypatch.setenv("LEASEHOLD_BIN", str(wrapper))
    return make.server(1)


def test_fewer_descriptors_than_connections_are_told_at_the_start(few):
    until(lambda: told(few, "LEASEHOLD_CONNECTIONS_MAX", "4096", "100"), "the limit is told", 10)


def test_the_table_of_descriptors_is_as_large_as_it_gets_before_the_first_connection(make):
    """If it grows later, Linux holds up accept() for up to 20 ms, and all other requests with it."""
    server = make.server(1, LEASEHOLD_CONNECTIONS_MAX=700)
    with open(f"/proc/{server.pid}/status", encoding="utf-8") as f:
        size = next(int(line.split()[1]) for line in f if line.startswith("FDSize:"))
    assert 700 + 256 <= size < 4096, "as many as this server needs, beside the connections"


def test_connections_cannot_use_up_the_descriptors(few):
    """The rest of the program needs some, too: a claim still works behind more clients than there are descriptors."""
    track = few.track("before")
    assert track.allocate().status == 201
    crowd = []
    for _ in range(150):
        crowd.append(Connection(few.address))
    assert len(os.listdir("/proc/%d/fd" % few.pid)) < 90
    assert track.allocate().status == 200
    for c in crowd:
        c.close()


@pytest.fixture
def full(make):
    """All but the one for probes is taken."""
    server = make.server(1, LEASEHOLD_CONNECTIONS_MAX=3)
    taken = []

    def is_full():
        """The connections of the fixture itself may not be gone yet."""
        taken.append(Connection(server.address))
        if not is_served(taken[-1]):
            taken.pop().close()
        return len(taken) == 3

    until(is_full, "all connections are taken", 10)
    yield server
    for c in taken:
        c.close()


def test_probes_are_answered_when_all_connections_are_taken(full):
    for path in ("/healthz", "/readyz", "/metrics"):
        probe = Connection(full.address)
        assert ask(probe, path).status == 200
        assert probe.is_closed_by_peer()
    assert "leasehold_http_connections 4" in ask(Connection(full.address), "/metrics").body.decode()


def test_others_are_told_that_all_connections_are_taken(full):
    reply = ask(Connection(full.address), "/v1/openapi.json")
    assert reply.status == 503 and reply.header("retry-after"), reply
    assert "connections" in reply.error["message"]
    until(lambda: told(full, "connections", "LEASEHOLD_CONNECTIONS_MAX"), "it is told in the log", 10)
    assert "\nleasehold_http_connections_over_limit_total 0" not in ask(Connection(full.address), "/metrics").body.decode()


def test_who_says_nothing_cannot_keep_the_place_of_probes(full):
    silent = Connection(full.address)
    assert ask(Connection(full.address), "/readyz").status == 200
    assert silent.is_closed_by_peer()


def test_no_descriptor_left_is_told_and_probes_are_answered(make):
    server = make.server(1)
    _, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    highest = max(int(fd) for fd in os.listdir("/proc/%d/fd" % server.pid))
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (highest + 1, hard))
    crowd = []

    def is_told():
        crowd.append(Connection(server.address))  # for a number that was left between the others
        return told(server, "descriptor")

    until(is_told, "it is told", 10, 0.1)
    until(lambda: status(server, "/readyz") == 200, "probes are answered", 10)
    until(lambda: status(server, "/") == 503, "others are refused", 10)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (hard, hard))
    until(lambda: status(server, "/") == 200, "all are served again", 10)
    for c in crowd:
        c.close()
