# SPDX-License-Identifier: Apache-2.0
"""/metrics: every family is there and moves when its thing happens."""

import json
import re
import subprocess

import pytest

from lib.crowd import Background
from lib.http import Broken, Client
from lib.ports import free_port
from lib.server import QUIET, binary, clean_env
from lib.wait import until

FAMILIES = {
    "broker_allocate_total": "counter",
    "broker_allocate_idempotent_hits_total": "counter",
    "broker_allocate_conflicts_total": "counter",
    "broker_deletion_marked_total": "counter",
    "broker_sync_total": "counter",
    "broker_sync_sandboxes_synced_total": "counter",
    "broker_sync_sandboxes_stale_total": "counter",
    "broker_cleanup_total": "counter",
    "broker_cleanup_deleted_total": "counter",
    "broker_cleanup_failed_total": "counter",
    "broker_cleanup_retries_total": "counter",
    "broker_cleanup_latency_seconds": "histogram",
    "broker_expiry_total": "counter",
    "broker_expiry_orphaned_total": "counter",
    "broker_pool_available": "gauge",
    "broker_pool_allocated": "gauge",
    "broker_pool_pending_deletion": "gauge",
    "broker_pool_stale": "gauge",
    "broker_pool_deletion_failed": "gauge",
    "broker_pool_total": "gauge",
    "broker_waiting_claims": "gauge",
    "broker_request_latency_seconds": "histogram",
    "broker_allocation_latency_seconds": "histogram",
    "broker_sync_duration_seconds": "histogram",
    "broker_cleanup_duration_seconds": "histogram",
    "broker_csp_circuit_open": "gauge",
}
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?[0-9.eE+-]+|\+Inf|NaN)\Z")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\.)*)"(?:,|\Z)')


class Metrics:
    """One reading; get() is 0 for a series that is not there yet."""

    def __init__(self, text):
        self.kinds, self.series = {}, {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                assert name not in self.kinds, "family %s twice" % name
                self.kinds[name] = kind
            elif line and not line.startswith("#"):
                name, labels, value = SAMPLE.match(line).groups()
                labels = labels or ""
                assert LABEL.sub("", labels) == "", labels
                key = (name, frozenset(LABEL.findall(labels)))
                assert key not in self.series, "series twice: %s" % line
                self.series[key] = float(value)

    def get(self, name, **labels):
        """The sum of all series that have these labels."""
        return sum(v for (n, have), v in self.series.items() if n == name and set(labels.items()) <= have)


def read(server):
    reply = server.client().get("/metrics")
    assert reply.status == 200
    assert reply.header("content-type").startswith("text/plain")
    return Metrics(reply.body.decode())


@pytest.fixture
def csp(make):
    return make.csp(10)


@pytest.fixture
def server(make, csp):
    return make.server(csp=csp, LEASEHOLD_DELETION_BACKOFF_SEC=0)


class Moves:
    """with Moves(server) as m: ...; m.by(name, **labels) is how far it went."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        self.before = read(self.server)
        return self

    def __exit__(self, *_):
        self.after = read(self.server)

    def by(self, name, **labels):
        return self.after.get(name, **labels) - self.before.get(name, **labels)


def test_every_family_is_there_with_its_kind(server):
    kinds = read(server).kinds
    assert {n: kinds.get(n) for n in FAMILIES} == FAMILIES


def test_a_scrape_is_well_formed_and_ends_with_a_newline(server):
    server.track('weird"\\label{}').allocate()
    body = server.client().get("/metrics").body
    assert body.endswith(b"\n")
    Metrics(body.decode())


def test_no_series_is_made_per_track_or_sandbox(server, new_owner):
    owners = []

    def visits(count):
        for _ in range(count):
            owners.append(new_owner())
            track = server.track(owners[-1])
            track.allocate()
            track.allocate()
            track.show("unknown-" + track.owner)
            track.get("/nowhere/" + track.owner)
            track.close()
        return set(read(server).series)

    # The first visits see almost every outcome there is, the scrape itself included; a busy machine may add a rare one later, such as a turn of the
    # loop that took long.
    visits(20)
    before = visits(1)
    added = visits(40) - before
    assert len(added) < 10, added
    named = [value for _, labels in before | added for _, value in labels if any(owner in value for owner in owners)]
    assert named == []


def test_claims_move_their_counters(server, new_owner):
    track = server.track(new_owner())
    with Moves(server) as m:
        track.allocate()
        for _ in range(3):
            track.allocate()
        for _ in range(2):
            server.track(new_owner()).allocate(prefix="nobody-")
    assert m.by("broker_allocate_total", outcome="success") == 1
    assert m.by("broker_allocate_total", outcome="idempotent") == 3
    assert m.by("broker_allocate_idempotent_hits_total") == 3
    assert m.by("broker_allocate_total", outcome="no_sandboxes") == 2
    assert m.by("broker_allocate_total") == 6
    assert m.by("broker_allocation_latency_seconds_count", outcome="success") == 1
    assert m.by("broker_allocation_latency_seconds_count") == 6


def test_requests_move_their_histogram(server):
    admin = server.admin()
    with Moves(server) as m:
        for _ in range(4):
            admin.stats()
    assert m.by("broker_request_latency_seconds_count", method="GET", status="200") >= 4
    endpoints = {
        v
        for (n, labels) in m.after.series
        if n == "broker_request_latency_seconds_count"
        for k, v in labels
        if k == "endpoint"
    }
    assert any("admin/stats" in e for e in endpoints)


def test_histograms_add_up(server, new_owner):
    server.track(new_owner()).allocate()
    got = read(server)
    for name, buckets in (
        ("broker_allocation_latency_seconds", 10),
        ("broker_sync_duration_seconds", 7),
        ("broker_cleanup_duration_seconds", 7),
    ):
        labels = {"outcome": "success"} if "allocation" in name else {}
        rows = sorted(
            (float(dict(have)["le"].replace("+Inf", "inf")), v)
            for (n, have), v in got.series.items()
            if n == name + "_bucket" and set(labels.items()) <= have
        )
        assert len(rows) == buckets + 1, name
        values = [v for _, v in rows]
        assert values == sorted(values) and rows[-1][0] == float("inf")
        assert values[-1] == got.get(name + "_count", **labels) >= 1
        assert got.get(name + "_sum", **labels) >= 0


def test_marks_move_their_counters(server, new_owner):
    track, other = server.track(new_owner()), server.track(new_owner())
    sandbox = track.claim()["sandbox_id"]
    free = server.admin().list("?status=available&limit=1").json["sandboxes"][0]["sandbox_id"]
    with Moves(server) as m:
        other.mark(sandbox)
        other.mark("no-such-sandbox")
        other.mark(free)
        track.mark(sandbox)
    assert m.by("broker_deletion_marked_total", outcome="not_found") == 1
    assert (
        m.by("broker_deletion_marked_total", outcome="not_owner")
        + m.by("broker_deletion_marked_total", outcome="not_allocated")
        == 2
    )
    assert m.by("broker_deletion_marked_total", outcome="not_owner") >= 1
    assert m.by("broker_deletion_marked_total", outcome="success") == 1


def test_an_expired_mark_moves_its_counter(server, new_owner):
    owner = new_owner()
    sandbox = server.track(owner).claim()["sandbox_id"]
    server.stop()
    server.age_allocation(sandbox, 4 * 3600 + 60)
    server.start().settle()
    with Moves(server) as m:
        assert server.track(owner).mark(sandbox).status == 403
    assert m.by("broker_deletion_marked_total", outcome="expired") == 1


def test_sync_moves_its_counters(server, csp):
    admin = server.admin()
    csp.hidden = {"100000", "100001"}
    with Moves(server) as m:
        admin.run("sync")
    assert m.by("broker_sync_total", outcome="success") == 1
    assert m.by("broker_sync_sandboxes_synced_total") == 8
    assert m.by("broker_sync_sandboxes_stale_total") == 2
    assert m.by("broker_sync_duration_seconds_count") == 1
    csp.is_empty = True
    with Moves(server) as m:
        assert admin.act("sync").status == 503
    assert m.by("broker_sync_total", outcome="error") == 1
    assert m.by("broker_sync_total", outcome="success") == 0


def test_cleanup_moves_its_counters(server, csp, new_owner):
    for _ in range(2):
        track = server.track(new_owner())
        track.mark(track.claim()["sandbox_id"])
    csp.delete_fault = 500
    with Moves(server) as m:
        server.admin().run("cleanup")
    assert m.by("broker_cleanup_failed_total") == 2
    assert m.by("broker_cleanup_retries_total") == 0
    assert m.by("broker_cleanup_deleted_total") == 0
    csp.delete_fault = None
    with Moves(server) as m:
        server.admin().run("cleanup")
    assert m.by("broker_cleanup_deleted_total") == 2
    assert m.by("broker_cleanup_retries_total") == 2
    assert m.by("broker_cleanup_latency_seconds_count") == 2
    assert m.by("broker_cleanup_failed_total") == 0
    assert m.by("broker_cleanup_total", outcome="success") == 1
    assert m.by("broker_cleanup_duration_seconds_count") == 1


def test_expiry_moves_its_counters(server, new_owner):
    admin = server.admin()
    admin.act("jobs/expiry/pause")
    sandbox = server.track(new_owner()).claim()["sandbox_id"]
    server.stop()
    server.age_allocation(sandbox, 90 * 3600)
    server.start().settle()
    with Moves(server) as m:
        server.admin().run("expire")
    assert m.by("broker_expiry_total", outcome="success") == 1
    assert m.by("broker_expiry_orphaned_total") == 1


def test_pool_gauges_are_the_stats(server, csp, new_owner):
    admin = server.admin()
    server.track(new_owner()).claim()
    track = server.track(new_owner())
    track.mark(track.claim()["sandbox_id"])
    admin.on(admin.list("?status=available&limit=1").json["sandboxes"][0]["sandbox_id"], "quarantine")
    stats, got = admin.stats(), read(server)
    for name in ("available", "allocated", "pending_deletion", "stale", "deletion_failed", "total"):
        assert got.get("broker_pool_" + name) == stats[name], name
    assert stats["total"] == 10 and stats["available"] == 7


def test_pool_gauges_are_right_from_the_start(server):
    server.admin().act("jobs/sync/pause")
    server.track("holder").claim()
    server.restart()
    got = read(server)
    assert (got.get("broker_pool_total"), got.get("broker_pool_allocated")) == (10, 1)


def test_waiting_claims_are_counted(make, new_owner):
    server = make.server(1)
    server.track(new_owner()).claim()
    assert read(server).get("broker_waiting_claims") == 0
    calls = [Background(server.track(new_owner()).allocate, wait=2) for _ in range(3)]
    until(lambda: read(server).get("broker_waiting_claims") == 3, "three wait")
    assert [c.result().status for c in calls] == [409] * 3
    until(lambda: read(server).get("broker_waiting_claims") == 0, "nobody waits")


def test_who_hangs_up_in_the_line_is_counted_as_one_who_left(make, new_owner):
    server = make.server(1)
    server.track(new_owner()).claim()
    track = server.track(new_owner())
    call = Background(track.allocate, wait=300, timeout=330)
    until(lambda: read(server).get("broker_waiting_claims") == 1, "it waits")
    track.conn.sock.shutdown(2)
    with pytest.raises(Broken):
        call.result(20)
    until(lambda: read(server).get("broker_request_latency_seconds_count", status="499") == 1, "it is counted")
    assert read(server).get("broker_request_latency_seconds_count", status="409") == 0


def test_the_circuit_is_shown(make):
    csp = make.csp(2)
    server = make.server(csp=csp, CIRCUIT_BREAKER_THRESHOLD=2, CIRCUIT_BREAKER_TIMEOUT_SEC=1)
    assert read(server).get("broker_csp_circuit_open") == 0
    csp.list_fault = 500
    until(lambda: server.admin().act("sync") and read(server).get("broker_csp_circuit_open") == 1, "it is open, for a second each time")
    csp.list_fault = None
    until(lambda: server.admin().act("sync").status == 200, "closed again", 10, 0.05)
    assert read(server).get("broker_csp_circuit_open") == 0


def test_metrics_alone_on_their_own_port(make):
    port = free_port()
    server = make.server(2, METRICS_PORT=port)
    own = server.client()
    own.address = ("127.0.0.1", port)
    reply = own.get("/metrics")
    assert reply.status == 200
    assert Metrics(reply.body.decode()).get("broker_pool_total") == 2
    for path in ("/v1/admin/stats", "/v1/openapi.json", "/v1/allocate"):
        assert own.get(path).status == 404
    assert read(server).get("broker_pool_total") == 2


def test_log_lines_that_nobody_reads_are_counted(tmp_path):
    process = subprocess.Popen(
        [binary(), "serve", "--init", "--listen", "127.0.0.1:0", "--data", str(tmp_path)], env=clean_env(QUIET), stdout=subprocess.PIPE
    )
    try:
        line = next(line for line in process.stdout if b'"listening"' in line)
        host, port = json.loads(line)["address"].partition("://")[2].split(":")
        client = Client((host, int(port)))

        def lost():
            for _ in range(500):
                client.get("/v1/no-such-path-" + "x" * 1000)
            text = client.get("/metrics").body.decode()
            return float(re.search(r"^leasehold_log_lines_lost_total (\S+)", text, re.M).group(1))

        until(lost, "more was logged than there is room for", 60, 0)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_metrics_can_be_kept_behind_a_token(make):
    token = "prometheus-" + "0" * 16
    server = make.server(LEASEHOLD_METRICS_TOKENS=token)
    read = lambda **headers: server.client().get("/metrics", headers=headers)
    assert read().status == 401 and b"broker_pool_total" not in read().body
    assert read(Authorization="Bearer wrong-" + token).status == 401
    for good in (token, server.env["BROKER_ADMIN_TOKEN"]):
        assert b"broker_pool_total" in read(Authorization="Bearer " + good).body
    assert server.client().get("/healthz").status == 200
    assert server.client().get("/v1/ops/alarms", headers={"Authorization": "Bearer " + token}).status == 401
