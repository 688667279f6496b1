# SPDX-License-Identifier: Apache-2.0
"""Updates without losing a claim: nodes behind a balancer restarted in turn, two versions on the same tables; and a node that has nothing to do, or no
store. Slow: `make check-deploy` runs it.

LEASEHOLD_OLD_BIN names the program of the version before, for D27; without it `make check-deploy SLOW=1` builds the last commit of another version."""

import os
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from lib.http import Broken, Client
from lib.server import TRACK_TOKEN, Server
from lib.wait import until

HAPROXY = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
CALLERS, TRACKS, RESTARTS, STOCK = 4, 100, 5, 600
pytestmark = pytest.mark.skipif("LEASEHOLD_DEPLOY" not in os.environ, reason="make check-deploy runs it")
CONFIG = """
global
    stats socket {folder}/stats level admin
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    option redispatch
    retries 3
frontend all
    bind unix@{folder}/front
    default_backend nodes
backend nodes
    option httpchk GET /readyz
    default-server check inter 200ms fall 1 rise 1
{nodes}
"""


class Balancer:
    """haproxy before the nodes, on a port of its own that it is handed open."""

    def __init__(self, folder, ports):
        import socket

        self.socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.address = self.socket.getsockname()
        nodes = "\n".join("    server n%d 127.0.0.1:%d" % (i, port) for i, port in enumerate(ports))
        config = folder / "haproxy.cfg"
        config.write_text(CONFIG.format(folder=folder, nodes=nodes).replace("unix@%s/front" % folder, "fd@%d" % self.socket.fileno()))
        self.log = open(folder / "haproxy.log", "w")
        self.process = subprocess.Popen([HAPROXY, "-f", str(config), "-db"], pass_fds=[self.socket.fileno()], stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL)
        client = Client(self.address, timeout=10)

        def answers():
            try:
                return client.get("/readyz").status == 200
            except (Broken, OSError):
                return False

        until(answers, "the balancer finds a node", 60, 0.1)
        client.close()

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        self.socket.close()
        self.log.close()


class Fixed(Server):
    """A node that comes back at the same address, as behind a balancer."""

    port = 0

    def command(self):
        words = super().command()
        return [w.replace("127.0.0.1:0", "127.0.0.1:%d" % self.port) for w in words]

    def start(self, timeout=120.0):
        super().start(timeout)
        self.port = self.address[1]
        return self


class Callers:
    """Each claims for its tracks, again and again, on a connection that it keeps; who holds a sandbox gets the same."""

    def __init__(self, address, repeats):
        self.address, self.repeats = address, repeats
        self.end, self.told, self.failed, self.repeated, self.answers, self.lock = threading.Event(), {}, [], 0, 0, threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(n,)) for n in range(CALLERS)]
        for thread in self.threads:
            thread.start()

    def claim(self, client, owner):
        """An answer, or what went wrong."""
        try:
            reply = client.post("/v1/allocate", headers={"X-Track-ID": owner})
        except (Broken, OSError) as e:
            client.close()
            return repr(e)
        return reply.json["sandbox_id"] if reply.status in (200, 201) else repr(reply), reply.status in (200, 201)

    def run(self, number):
        client = Client(self.address, {"Authorization": "Bearer " + TRACK_TOKEN}, timeout=60, retry=False)
        at = 0
        while not self.end.is_set():
            owner = "roll-%d-%d" % (number, at % TRACKS)
            got = self.claim(client, owner)
            tries = 0
            while self.repeats and not isinstance(got, tuple) and tries < 100:
                tries += 1
                time.sleep(0.05)  # the pace of a client that tries again
                got = self.claim(client, owner)
            with self.lock:
                self.repeated += tries
                if isinstance(got, tuple) and got[1] and self.told.setdefault(owner, got[0]) == got[0]:
                    self.answers += 1
                else:
                    self.failed.append((owner, got))
            at += 1

    def stop(self):
        self.end.set()
        for thread in self.threads:
            thread.join(120)
        return self


@pytest.fixture
def pair(make, store, tmp_path):
    made = []
    env = {**store.env, "LEASEHOLD_SIM_SANDBOXES": str(STOCK), "LEASEHOLD_DRAIN_DELAY_MS": "3000", "LEASEHOLD_STORE_DEADLINE_MS": "20000"}
    for number in range(2):
        data = tmp_path / ("node-%d" % number)
        data.mkdir()
        node = Fixed(data, env)
        make.servers.append(node)
        made.append(node.start())
    made[0].wait_available(STOCK, 300)
    return made


def whole(store, callers):
    """Every answer is in the table, and no sandbox was given twice."""
    held = store.holders()
    assert len(set(callers.told.values())) == len(callers.told), "a sandbox was given twice"
    assert {owner: [sandbox] for owner, sandbox in callers.told.items()} == {o: held.get(o) for o in callers.told}, "an answer is not in the table"


@pytest.mark.skipif(not HAPROXY, reason="no haproxy")
def test_D26_five_rolling_restarts_and_no_request_fails_then_a_kill_and_none_is_lost(pair, store, tmp_path):
    balancer = Balancer(tmp_path, [node.port for node in pair])
    try:
        callers = Callers(balancer.address, repeats=False)
        for number in range(RESTARTS):
            before = callers.answers
            until(lambda: callers.failed or callers.answers > before + 10 * CALLERS, "claims go on", 120, 0.05)
            assert not callers.failed, callers.failed[:3]
            node = pair[number % 2]
            assert node.stop(120) == 0
            node.start()
            until(lambda: node.client().get("/readyz").status == 200, "it is back", 120, 0.1)
        callers.stop()
        assert callers.failed == [] and callers.answers > RESTARTS * 10 * CALLERS
        whole(store, callers)

        again = Callers(balancer.address, repeats=True)
        until(lambda: again.answers > CALLERS, "claims go on", 120, 0.05)
        pair[0].kill()
        before = again.answers
        until(lambda: again.answers > before + 10 * CALLERS, "the other node carries on", 120, 0.05)
        again.stop()
        # Owners are the same as before the kill: what they held they get again.
        assert again.failed == [] and all(callers.told[o] == s for o, s in again.told.items() if o in callers.told)
        pair[0].start()
    finally:
        balancer.close()


ROOT = Path(__file__).resolve().parents[2]
SLOW = "LEASEHOLD_SLOW" in os.environ


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout.strip()


def build(commit, folder):
    """The program of a commit, or None."""
    (folder / "source").mkdir(parents=True)
    archive = subprocess.Popen(["git", "-C", str(ROOT), "archive", commit], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", str(folder / "source")], stdin=archive.stdout, check=True)
    assert archive.wait() == 0
    for words in (["meson", "setup", folder / "build", folder / "source", "-Dtests=disabled"], ["ninja", "-C", folder / "build", "leasehold"]):
        if subprocess.run([str(w) for w in words], capture_output=True, text=True).returncode:
            return None
    return folder / "build/leasehold"


def build_older(folder):
    """The program of the last commit before this version's number, or of one shortly before that can be built."""
    number = re.search(r"version: '[\d.]+'", (ROOT / "meson.build").read_text()).group()
    first = git("log", "--reverse", "--format=%H", "-S" + number, "--", "meson.build").split()[0]
    for commit in git("rev-list", "--max-count=10", first + "^").split():
        if program := build(commit, folder / commit):
            print("the version before is", git("log", "-1", "--format=%h %s", commit))
            return program
    raise AssertionError("none of the commits before %s can be built" % first)


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    return os.environ.get("LEASEHOLD_OLD_BIN") or str(build_older(tmp_path_factory.mktemp("older")))


class Old(Server):
    program = None

    def command(self):
        return [self.program, *(word for word in super().command()[1:] if word != "--init")]  # 0.1.0 does not know it, and tables need it not


@pytest.mark.skipif("LEASEHOLD_OLD_BIN" not in os.environ and not SLOW, reason="LEASEHOLD_OLD_BIN names no older program; make check-deploy SLOW=1 builds one")
def test_D27_two_versions_on_the_same_tables_and_the_old_one_goes_on_alone(make, store, tmp_path, older):
    env = {**store.env, "LEASEHOLD_SIM_SANDBOXES": "60", "LEASEHOLD_STORE_DEADLINE_MS": "20000"}
    nodes = []
    for number, kind in enumerate((Old, Server)):
        data = tmp_path / ("node-%d" % number)
        data.mkdir()
        # A version from before slices of the log reads one.
        nodes.append(kind(data, env if kind is Old else {**env, "LEASEHOLD_DDB_EVENT_SLICES": "1"}))
        nodes[-1].program = older
        make.servers.append(nodes[-1])
        nodes[-1].start()
    old, new = nodes
    old.wait_available(60, 120)
    traced = {"traceparent": "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01"}
    held = {}
    for number in range(20):
        at, other = (old, new) if number % 2 else (new, old)
        owner = "both-%d" % number
        held[owner] = at.track(owner).claim(headers=traced)["sandbox_id"]
        assert other.track(owner).claim()["sandbox_id"] == held[owner], "the other version knows it"
    for number in range(0, 20, 4):  # what one has lent, the other takes back
        owner = "both-%d" % number
        assert (old if number % 8 else new).track(owner).mark(held.pop(owner)).status in (200, 202)
    seen = [{e["id"] for e in node.admin().get("/v1/ops/events?type=SandboxAllocated&limit=100").json["events"]} for node in nodes]
    assert seen[0] == seen[1] and len(seen[0]) == 20
    assert new.stop() == 0
    assert {owner: old.track(owner).claim()["sandbox_id"] for owner in held} == held
    assert old.track("alone").allocate().status == 201
    assert store.run("store", "check").returncode == 0


AWAY = 120  # seconds


@pytest.mark.skipif(not SLOW, reason="make check-deploy SLOW=1 runs it: two minutes of waiting")
def test_D31_two_minutes_without_the_store_it_is_alive_and_not_ready_and_then_serves_again(make, proxy, nodes):
    """A balancer that replaces what /healthz calls ill must not replace all nodes because the store is away."""
    (node,) = nodes(1, make.csp(5), via=proxy)
    held = node.track("a").claim()["sandbox_id"]
    pid, client = node.pid, node.client()
    proxy.stop()
    until(lambda: client.get("/readyz").status == 503, "it says that it cannot serve")
    over, looks = time.monotonic() + AWAY, 0
    while time.monotonic() < over:
        assert (client.get("/healthz").status, client.get("/readyz").status) == (200, 503)
        looks += 1
        time.sleep(1)  # as a balancer does
    assert looks > 3
    proxy.start()
    until(lambda: client.get("/readyz").status == 200, "it is ready again")
    until(lambda: node.track("a").allocate().status == 200, "it serves")
    assert node.track("a").claim()["sandbox_id"] == held and node.pid == pid


def documented():
    """{operation: calls a minute} of docs/dynamodb.md."""
    text = (ROOT / "docs/dynamodb.md").read_text()
    table = text[text.index("## What an idle node costs") :].split("\n## ")[0]
    return {name: float(count) for name, count in re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", table, re.M)}


@pytest.mark.skipif(not SLOW, reason="make check-deploy SLOW=1 runs it: it counts for minutes")
def test_D24_a_node_with_nothing_to_do_makes_as_many_calls_as_the_documents_say(make, proxy, nodes):
    """Most of them are of what looks every second or so; jobs that run every few minutes are a small part, and not all of them run meanwhile."""
    (node,) = nodes(1, make.csp(5), via=proxy, LEASEHOLD_STORE_DEADLINE_MS=20000)  # a call that a busy machine answers late is not made twice
    node.settle()
    minutes = 5
    proxy.forget()
    began = time.monotonic()
    time.sleep(60 * minutes)
    counted, took = proxy.counts(), (time.monotonic() - began) / 60
    print({name: round(n / took, 2) for name, n in sorted(counted.items())}, "in all", round(sum(counted.values()) / took, 1))
    said = documented()
    assert set(counted) == set(said), (counted, said)
    assert abs(sum(counted.values()) / took / sum(said.values()) - 1) < 0.1, (counted, said)
