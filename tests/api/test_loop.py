# SPDX-License-Identifier: Apache-2.0
"""No handler holds the loop: full pages, longest inputs, many requests at once."""

import re
import resource
import shutil
import signal
import socket
import sqlite3
import ssl
import time
from pathlib import Path

import pytest
from lib import jwt, leases
from lib.certificate import Certificate
from lib.rows import put_events
from lib.server import TRACK_TOKEN, binary
from lib.wait import until

ROWS, TRIES = 1000, 4
LONG = "\u00fc\"" * 20000  # two bytes, and one that needs an escape


def held(server):
    """How often which route held the loop."""
    text = server.client().get("/metrics").body.decode()
    return {m[1]: int(m[2]) for m in re.finditer(r'leasehold_loop_held_total\{route="([^"]+)"\} (\d+)', text)}


def text(size):
    return LONG.encode()[: size - size % 3].decode()


def rows(db, table, count, **values):
    """Rows with these values; one that is a function gets the row's number."""
    names = ["version", *values]
    line = 'INSERT INTO "%s" (%s) VALUES (%s)' % (table, ",".join(names), ",".join("?" * len(names)))
    db.executemany(line, [[1] + [v(i) if callable(v) else v for v in values.values()] for i in range(count)])


def uuid(i):
    return "01a1e3f0-1877-7%03x-9102-%012d" % (i % 4096, i)


def fill(path, now):
    """Everything that a list can show, as many and as long as there may be."""
    day = 86400000
    db = sqlite3.connect(path)
    with db:
        detail = '{"a":"%s"}' % text(48000).replace('"', '\\"')
        put_events(db, [dict(id=uuid(i), type="Big", subject="thing/1", actor="admin", time_ms=now, schema=1,
                             detail=detail, resources="[]") for i in range(150)])
        rows(db, "dead", 150, id=uuid, queue="webhooks", subject="thing/1", event_id=uuid, tries=9, error=text(510),
             event='{"version":"0","id":"1","detail-type":"Big","detail":%s}' % detail, since_ms=now, died_ms=now)
        rows(db, "timer", ROWS, name=lambda i: "far/%d" % i, state=0, due_ms=now + 900 * day, type="Far",
             subject="thing/1", detail='{"a":"%s"}' % ("x" * 4000), armed_ms=now)
        rows(db, "saga", ROWS, id=lambda i: "account-follow/078843488365/%d" % (i + 99), kind="account-follow",
             subject="account/078843488365", state=3, step=3, marks="dddd", is_back=0, input="{}",
             data='{"a":"%s"}' % ("x" * 8000), started_ms=now, step_since_ms=now, ended_ms=now, due_ms=now, tries=0,
             fence=1, last_error=text(510), reason=text(510), actor="admin")
        rows(db, "webhook", 32, id=uuid, url=lambda i: "https://example.com/" + "a" * 2000, filter="X" * 60,
             secret="s" * 32, description=text(255), is_paused=1, created_ms=now, created_by="admin")
        rows(db, "template", ROWS, uuid=uuid, name=lambda i: "template %d" % i, description=text(999),
             created_by="manager@example.com", requires_approval=1, visibility=0, created_ms=now, edited_ms=now,
             duration_ms=day, max_spend=1000000)
        rows(db, "lease", ROWS, uuid=uuid, user_email="user@example.com", user_key="user@example.com", status=0,
             template_uuid=uuid, template_name="t", comments=text(999), created_by="user@example.com",
             max_spend=40000000, duration_ms=day, cost=0, queued_ms=0, created_ms=now, edited_ms=now, rate_from_cost=0)
        rows(db, "blueprint", ROWS, id=uuid, name=lambda i: "blueprint-%d" % i, tags="{}", stack_set_id="s", regions="[]",
             timeout_minutes=30, region_order=0, concurrent_percent=100, failures_percent=0, failure_mode=0,
             created_ms=now, edited_ms=now)
        days = ",".join('{"service":"%s","usd":%d.5}' % ("x" * 64, i) for i in range(450))
        rows(db, "statement", 1, uuid=uuid(1), state=1, user_email="user@example.com", account_id="078843488365", start_ms=now,
             end_ms=now, from_ms=now, to_ms=now, total=1, rows="[%s]" % days, days="[%s]" % days, hash="a" * 64, made_ms=now)
        rows(db, "hold", ROWS, id=lambda i: "%012d-%013d" % (i, now), account=lambda i: "%012d" % i, reason=0, mode=0, state=0,
             is_open=1, locks=0, created_ms=now, due_ms=now + 900 * day, created_by="admin", note=text(999), attempts=0)
        rows(db, "service_account", 199, name=lambda i: "name-%d" % i, email=lambda i: "name-%d@service" % i,
             description=text(255), scopes=1, hash="a" * 64, created_ms=now, created_by="admin")
    db.close()


@pytest.fixture(scope="module")
def full(make_for_module, tmp_path_factory):
    env = leases.env(tmp_path_factory.mktemp("people"), LEASEHOLD_SIM_ACCOUNTS=ROWS, LEASEHOLD_INSTANCE_DRIVER="sim")
    server = make_for_module.server(count=ROWS, **env)
    server.stop()
    fill(server.data / "leasehold.db", int(time.time() * 1000))
    server.start()
    return server.settle()


def tenant(server):
    """With an instance, whatever becomes of it."""
    body = {"organizationName": "Loop", "contactEmail": "it@loop.example"}
    reply = server.admin().request("POST", "/v1.0/tenants/tenant-loop/instances", body=body)
    assert reply.status == 202, reply
    server.operation = reply.json["operationId"]  # the instance names it only until it is done
    return "tenant-loop"


def instance(server):
    return server.admin().get("/v1.0/tenants/%s/instances" % filled(server, "{tenantId}")).json["items"][0]


IDS = {
    "tenantId": tenant,
    "instanceId": lambda s: instance(s)["instanceId"],
    "operationId": lambda s: filled(s, "{tenantId}") and s.operation,
    "sandbox_id": lambda s: s.admin().list("?limit=1").json["sandboxes"][0]["sandbox_id"],
    "event_id": lambda s: uuid(1),
    "letter_id": lambda s: uuid(1),
    "webhook_id": lambda s: uuid(1),
    "lease_uuid": lambda s: uuid(1),
    "leaseTemplateId": lambda s: uuid(1),
    "blueprintId": lambda s: uuid(1),
    "leaseId": lambda s: leases.lease_id("user@example.com", uuid(1)),
    "timer": lambda s: "far%2F1",
    "saga_id": lambda s: "account-follow%2F078843488365%2F99",
    "queue": lambda s: "webhooks",
    "kind": lambda s: "lease",
    "id": lambda s: uuid(1),
    "hold_id": lambda s: s.admin().get("/v1/ops/holds?limit=1").json["holds"][0]["id"],
    "name": lambda s: "sync",
    "source": lambda s: "cloudtrail",
    "account_id": lambda s: "000000000001",
    "email": lambda s: "nobody@example.com",
    "service_account": lambda s: "name-1",
    "awsAccountId": lambda s: leases.Pool(s).admin.data("GET", "/accounts?pageSize=1")["result"][0]["awsAccountId"],
}


def filled(server, path):
    known = server.known_ids = getattr(server, "known_ids", {})  # some calls make away with what they name
    return re.sub(r"\{(\w+)\}", lambda m: known.get(m[1]) or known.setdefault(m[1], IDS[m[1]](server)), path)


def caller(server, path):
    return leases.Pool(server).admin if path.startswith("/api") else server.admin()


def operations(server):
    for path, methods in server.client().get("/v1/openapi.json").json["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def readings(server):
    """Every call that only reads, with its largest page."""
    for method, path, operation in operations(server):
        if method != "GET" or path.endswith("/stream") or path.startswith("/api/auth/"):
            continue
        sizes = {"limit", "pageSize"}
        query = ["%s=%d" % (p["name"], p["schema"]["maximum"]) for p in operation["parameters"] if p["name"] in sizes]
        query += ["format=csv"] if path.endswith("/statement") else []
        query += ["order=oldest"] if path.endswith("/ops/events") else []
        yield filled(server, path) + ("?" + "&".join(query) if query else "")


def nobody_holds_the_loop(server, work):
    """Once in a while a processor is slow, or busy with others; every time is no accident. With sanitizers everything is slow. work() may answer what
    else it has against the server."""
    accused = None
    for _ in range(5):
        before = held(server)
        more = work() or set()
        if "san" in Path(binary()).parent.name:
            return
        times = {route: count - before.get(route, 0) for route, count in held(server).items()}
        often = {route for route, count in times.items() if count > 1} | more
        accused = often if accused is None else accused & often
        if not accused:
            return
    raise AssertionError((accused, times, [line for line in server.lines if "held_ms" in line]))


def test_no_call_that_reads_holds_the_loop(full):
    def work():
        answers = {}
        for path in readings(full):
            client = caller(full, path)
            for _ in range(TRIES):
                reply = client.get(path)
                answers[path] = reply.status, len(reply.body)
            client.close()
        assert 900000 < answers["/v1/ops/events?limit=100&order=oldest"][1], answers
        assert 1000000 < answers["/api/leases?pageSize=2000"][1], answers
        assert answers["/v1/ops/leases/%s/statement?format=csv" % uuid(1)][0] == 200, answers
        assert {500, 503} & {status for status, _ in answers.values()} == set(), answers

    nobody_holds_the_loop(full, work)


def test_no_document_holds_the_loop_however_long_it_is(full):
    def work():
        admin = full.admin()
        lines = "".join("# \u00e9 %d\n" % i for i in range(5000))[:60000]
        for path in ("/v1/ops/policy", "/v1/ops/policy/approval", "/v1/ops/reporting"):
            shown = admin.get(path).json
            body = {"document": lines + shown["text"].removeprefix(lines), "version": shown["version"]}
            for _ in range(3):
                assert admin.post(path + "/check", body=body).json["ok"] is True
                reply = admin.request("PUT", path, body=body)
                assert reply.status == 200, reply
                body["version"] = reply.json["version"]
            assert admin.get(path).json["text"] == body["document"]

    nobody_holds_the_loop(full, work)


@pytest.mark.parametrize("is_tls", [False, True])
def test_a_reply_in_pieces_comes_whole(full, make, tmp_path, is_tls):
    tls, server = None, full
    if is_tls:
        certificate = Certificate(tmp_path)
        data = tmp_path / "copy"
        full.stop()
        shutil.copytree(full.data, data)
        full.start()
        files = {"LEASEHOLD_TLS_CERT_FILE": certificate.cert, "LEASEHOLD_TLS_KEY_FILE": certificate.key}
        server = make.server(data=data, **{k: v for k, v in full.env.items() if k.isupper()}, **files)
        tls = ssl.create_default_context(cafile=certificate.cert)
    client = leases.Api(server, leases.ADMIN, "Admin", tls=tls)
    for _ in range(3):  # also: the connection goes on after it
        reply = client.get("/api/leases?pageSize=2000")
        assert reply.status == 200 and len(reply.body) > 1000000
        assert len(reply.json["data"]["result"]) == ROWS
    assert client.get("/healthz").status == 200


@pytest.mark.parametrize("value", ['{"a":1},', "[],", '"",', "1e1,", '{"\\u00e9":"\\n"},'])
def test_no_body_holds_the_loop_however_large_and_odd_it_is(full, value):
    def work():
        answers = {}
        for method, path, _ in operations(full):
            if method == "GET" or path.startswith("/api/auth/"):
                continue
            client = caller(full, path)
            for size in (1000000, 250000, 32000, 16000, 4000):
                body = "[%s0]" % (value * (size // len(value)))
                replies = [client.request(method, filled(full, path), body=body.encode()) for _ in range(2)]
                answers[method, path] = replies[0].status
                if replies[0].status != 413:
                    break
            client.close()
        assert 500 not in answers.values(), answers

    nobody_holds_the_loop(full, work)


def test_no_query_holds_the_loop_however_long_it_is(full):
    def work():
        answers = {}
        for method, path, operation in operations(full):
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "header" or path.endswith("/stream"):
                    continue
                client, text = caller(full, path), "%C3%BC" * 1200
                target = filled(full, path) + "?%s=%s" % (parameter["name"], text)
                if parameter["in"] == "path":
                    target = re.sub(r"\{(\w+)\}", text, path)
                for _ in range(2):
                    answers[method, target[:60]] = client.request(method, target).status
                client.close()
        assert 500 not in answers.values(), answers

    nobody_holds_the_loop(full, work)


def test_no_reload_holds_the_loop(make, tmp_path):
    """Many people are read, and a hash is computed."""
    people = leases.write_people(tmp_path, 9000)
    server = make.server(LEASEHOLD_JWT_SECRET=jwt.SECRET, LEASEHOLD_USERS_FILE=str(people))

    def work():
        for _ in range(TRIES):
            before = server.output().count("are read again")
            server.signal(signal.SIGHUP)
            until(lambda: server.output().count("are read again") > before, "all is read again")

    nobody_holds_the_loop(server, work)


def test_a_packet_full_of_requests_keeps_nobody_waiting(make):
    server = make.server()
    many, one = socket.create_connection(server.address), socket.create_connection(server.address)
    server.signal(signal.SIGSTOP)  # so that both are there when it looks
    request = b"%s %s HTTP/1.1\r\nHost: x\r\n\r\n"
    many.sendall(request % (b"HEAD", b"/v1/openapi.json") * 80)
    one.sendall(request % (b"GET", b"/healthz"))
    server.signal(signal.SIGCONT)
    until(lambda: server.output().count("/v1/openapi.json") == 80, "all are answered")
    asked = [line for line in server.lines if "GET /healthz" in line or "HEAD /v1/openapi.json" in line]
    (place,) = [i for i, line in enumerate(asked) if "/healthz" in line]
    assert place < 20, "the other one was served after %d of 80" % place
    many.close()
    one.close()


def test_requests_that_wait_for_their_turn_are_answered_after_the_client_has_said_all(make):
    server = make.server()
    with socket.create_connection(server.address) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
        client.shutdown(socket.SHUT_WR)
        client.settimeout(90)
        answers = b"".join(iter(lambda: client.recv(65536), b""))
    assert answers.count(b"HTTP/1.1 200 OK") == 50


def turns_longer_than(server, seconds):
    text = server.client().get("/metrics").body.decode()
    found = dict(re.findall(r'leasehold_loop_turn_seconds_bucket\{le="([^"]+)"\} (\d+)', text))
    return int(found["+Inf"]) - int(found[seconds])


def test_a_long_line_of_waiters_does_not_hold_the_loop(make, new_owner):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    waiters = min(3000, hard - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, waiters + 400), hard))
    csp = make.csp(0)
    server = make.server(csp=csp, LEASEHOLD_CONNECTIONS_MAX=waiters + 100, LEASEHOLD_CONNECTIONS_PER_CLIENT_MAX=0)
    admin = server.admin()

    def work():
        clients = [socket.create_connection(server.address) for _ in range(waiters)]
        for client in clients:
            head = "POST /v1/allocate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nX-Track-ID: %s\r\nPrefer: wait=300\r\n\r\n"
            client.sendall((head % (TRACK_TOKEN, new_owner())).encode())
        until(lambda: admin.stats()["waiting"] == waiters, "all stand in line", 60)
        long_before = turns_longer_than(server, "0.1")
        csp.add(1000)
        admin.run("sync")
        until(lambda: admin.stats()["waiting"] == waiters - 1000, "a thousand are served", 60)
        is_long = turns_longer_than(server, "0.1") > long_before
        for client in clients:
            client.close()
        until(lambda: admin.stats()["waiting"] == 0, "all have left", 60)
        return {"a turn of 0.1 s"} if is_long else set()

    nobody_holds_the_loop(server, work)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
