# SPDX-License-Identifier: Apache-2.0
"""Health checks, and ends that nobody notices: a delay for the balancer, sockets that outlive the process."""

import itertools
import signal
import socket

import pytest

from lib.certificate import Certificate
from lib.crowd import Background
from lib.http import Connection
from lib.server import Server, binary, run
from lib.wait import until


class Activated(Server):
    """Started as systemd does it: with a bound socket as descriptor 3."""

    def __init__(self, data, **env):
        super().__init__(data, env)
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(4096)  # as of now, connections wait in it
        self.socket.set_inheritable(True)

    def command(self):
        port = self.socket.getsockname()[1]
        script = 'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@" 3<&%d' % self.socket.fileno()
        return ["bash", "-c", script, "bash", binary(), "serve", "--listen", "127.0.0.1:%d" % port, "--data", str(self.data), "--init"]

    def popen_options(self):
        return {"pass_fds": [self.socket.fileno()]}


# The command.


def test_d12_health_is_0_while_it_runs_and_6_when_it_does_not(make, tmp_path):
    server = make.server(count=1)
    env = {"LEASEHOLD_LISTEN": "0.0.0.0:%d" % server.address[1]}
    alive, ready = run("health", env=env), run("health", "--ready", env=env)
    assert (alive.returncode, ready.returncode) == (0, 0)
    assert '"healthy"' in alive.stdout and '"ready"' in ready.stdout
    server.stop()
    gone = run("health", env=env)
    assert gone.returncode == 6 and "127.0.0.1:%d/healthz" % server.address[1] in gone.stderr
    assert gone.stderr.count("/healthz") == 1
    assert run("health", "--listen", "nowhere").returncode == 2


def test_health_asks_a_server_with_a_certificate_for_another_name(make, tmp_path):
    certificate = Certificate(tmp_path, "DNS:leasehold.example")
    files = {"LEASEHOLD_TLS_CERT_FILE": certificate.cert, "LEASEHOLD_TLS_KEY_FILE": certificate.key}
    server = make.server(count=None, **files)
    assert run("health", "--listen", "127.0.0.1:%d" % server.address[1], env=files).returncode == 0


# The delay.


def test_while_it_leaves_probes_say_so_and_requests_are_answered(make):
    server = make.server(count=4, LEASEHOLD_DRAIN_DELAY_MS="300000")
    idle = Connection(server.address)
    track = server.track("a")
    assert track.claim()["sandbox_id"]
    server.signal(signal.SIGTERM)
    probe = server.client()
    until(lambda: probe.get("/healthz").status == 503, "it says that it leaves")
    reply = probe.get("/readyz")
    assert reply.status == 503 and reply.json["checks"]["store"] == "this process is about to end"
    assert reply.header("connection") == "close"
    # Connections that were there, and new ones, each for one more request.
    reply = track.allocate()
    assert reply.status == 200 and reply.header("connection") == "close"
    assert server.track("b").allocate().status == 201
    idle.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert idle.reply().status == 503 and idle.is_closed_by_peer()
    server.signal(signal.SIGTERM)  # told again: no more delay
    assert server.wait_end() == 0


def test_after_the_delay_it_ends_by_itself(make):
    server = make.server(count=1, LEASEHOLD_DRAIN_DELAY_MS="50")
    server.signal(signal.SIGTERM)
    assert server.wait_end() == 0


# A socket of its own.


@pytest.fixture
def activated(tmp_path):
    server = Activated(tmp_path, LEASEHOLD_SIM_SANDBOXES=3000, LEASEHOLD_DRAIN_DELAY_MS=2000)
    yield server
    complaints = server.complaints()
    server.kill()
    server.socket.close()
    assert not complaints, complaints


def test_d25_a_restart_behind_a_socket_of_its_own_fails_nobody(activated):
    server = activated
    server.start().wait_available(3000).settle()
    assert server.address == server.socket.getsockname()
    is_over, crowd = [], 64

    def claim_and_claim(number):
        """New ones until 40 are held, then those again and again."""
        held = {}
        track = server.track("", retry=False)  # a broken connection is a failure
        for turn in itertools.count():
            name = "t%d-%d" % (number, turn % 40)
            track.base_headers["X-Track-ID"] = name
            reply = track.allocate(timeout=120)
            assert reply.status == (200 if name in held else 201), reply
            assert held.setdefault(name, reply.json["sandbox_id"]) == reply.json["sandbox_id"]
            if is_over:
                track.close()
                return held

    callers = [Background(claim_and_claim, n) for n in range(crowd)]
    for _ in range(2):
        server.signal(signal.SIGTERM)
        assert server.wait_end(60) == 0
        server.start()
    is_over.append(True)
    held = {}
    for caller in callers:
        held.update(caller.result(120))
    assert len(held) >= crowd and len(set(held.values())) == len(held), "each has one of its own"
    for name in list(held)[:: max(1, len(held) // 20)]:
        assert server.track(name).claim()["sandbox_id"] == held[name]


def test_a_socket_for_another_process_is_not_taken(make, tmp_path):
    server = make.server(count=None, LISTEN_PID="1", LISTEN_FDS="1")
    assert server.client().get("/healthz").status == 200
