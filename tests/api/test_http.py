# SPDX-License-Identifier: Apache-2.0
"""What every reply has in common: headers, errors, who may call what, CORS, and the routes without a token."""

import json
import re
import socket
import time

import pytest

from lib.http import Broken, Connection, exchange
from lib.server import ADMIN_TOKEN, TRACK_TOKEN
from lib.wait import until

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")

SECURITY = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "X-XSS-Protection": "1; mode=block",
    "Strict-Transport-Security": "max-age=31536000; includeSubDomains",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "geolocation=(), microphone=(), camera=()",
}

TRACK = [("POST", "/allocate"), ("POST", "/sandboxes/{id}/mark-for-deletion"), ("GET", "/sandboxes/{id}")]
ADMIN = [
    ("GET", "/admin/sandboxes"),
    ("GET", "/admin/sandboxes/{id}"),
    ("GET", "/admin/stats"),
    ("POST", "/admin/sync"),
    ("POST", "/admin/cleanup"),
    ("POST", "/admin/expire"),
    ("POST", "/admin/auto-delete-stale"),
    ("POST", "/admin/bulk-delete"),
    ("POST", "/admin/sandboxes/{id}/quarantine"),
    ("POST", "/admin/sandboxes/{id}/release"),
    ("POST", "/admin/sandboxes/{id}/retry-deletion"),
    ("POST", "/admin/retry-failed-deletions"),
    ("GET", "/admin/jobs"),
    ("POST", "/admin/jobs/{name}/run"),
    ("POST", "/admin/jobs/{name}/pause"),
    ("POST", "/admin/jobs/{name}/resume"),
]
OPEN = [("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics"), ("GET", "/"), ("GET", "/v1/openapi.json")]
GUARDED = [(m, "/v1" + p) for m, p in TRACK + ADMIN]


def path_of(template):
    return template.replace("{id}", "no-such-sandbox").replace("{name}", "no-such-job")


@pytest.fixture(scope="module")
def server(make_for_module):
    return make_for_module.server(30)


@pytest.fixture(scope="module")
def client(server):
    return server.client()


def bearer(token, **more):
    return {"Authorization": "Bearer " + token, **more}


# Routes without a token.


def test_healthz(client):
    reply = client.get("/healthz")
    assert reply.status == 200
    assert set(reply.json) == {"status", "timestamp"}
    assert reply.json["status"] == "healthy"


def test_readyz(client):
    reply = client.get("/readyz")
    assert reply.status == 200
    assert set(reply.json) == {"status", "timestamp", "checks"}
    assert (reply.json["status"], reply.json["checks"]["store"]) == ("ready", "ok")


def test_root(client):
    reply = client.get("/")
    assert reply.status == 200
    assert set(reply.json) == {"service", "version", "docs", "simulated", "instances", "notice"}


def test_openapi_lists_every_route(client):
    reply = client.get("/v1/openapi.json")
    assert reply.status == 200
    assert reply.header("content-type").startswith("application/json")
    spec = reply.json
    assert spec["openapi"].startswith("3.")
    assert spec["info"]["title"] and spec["info"]["version"]
    have = {
        (method.upper(), re.sub(r"\{\w+\}", "{}", re.sub(r"^/v1(?=/)", "", path)))
        for path, methods in spec["paths"].items()
        for method in methods
    }
    want = {(m, re.sub(r"\{\w+\}", "{}", p)) for m, p in TRACK + ADMIN}
    want |= {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics")}
    assert want <= have, "missing: %s" % sorted(want - have)


def test_openapi_says_what_each_call_answers(client):
    for path, methods in client.get("/v1/openapi.json").json["paths"].items():
        for method, call in methods.items():
            no_method = "403" if path.startswith("/api/") else "405"
            assert {"400", no_method, "413", "500"} <= set(call["responses"]), (method, path)


def test_openapi_names_operations_as_a_client_would(client):
    paths = client.get("/v1/openapi.json").json["paths"]
    names = [call["operationId"] for methods in paths.values() for call in methods.values()]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]+)+", name) for name in names), names
    assert {"allocateSandbox", "listSandboxes", "showSandbox", "runJob"} <= set(names)


def fits(spec, schema, value):
    """Does the value match, as far as required members and constants go?"""
    if "$ref" in schema:
        schema = spec["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "oneOf" in schema:
        return sum(fits(spec, s, value) for s in schema["oneOf"]) == 1
    if "enum" in schema:
        return value in schema["enum"]
    if schema.get("type") != "object":
        return "const" not in schema or value == schema["const"]
    known = schema.get("properties", {})
    return set(schema.get("required", ())) <= set(value) and all(
        fits(spec, known[name], value[name]) for name in known if value.get(name) is not None
    )


@pytest.mark.parametrize("job", ["sync", "cleanup", "expiry", "stale-removal", "event-retention"])
def test_the_result_of_each_job_is_exactly_one_of_those_described(server, client, job):
    spec = client.get("/v1/openapi.json").json
    result = server.admin().run("jobs/%s/run" % job)
    assert fits(spec, {"$ref": "#/components/schemas/JobResult"}, result), result
    assert not fits(spec, {"$ref": "#/components/schemas/JobResult"}, {"status": "completed", "duration_ms": 1})
    counts = server.admin().job(job)["last_result"]
    assert counts and all(isinstance(value, int) for value in counts.values())


def test_errors_and_sandboxes_use_the_words_that_are_described(server, client):
    spec = client.get("/v1/openapi.json").json
    assert fits(spec, {"$ref": "#/components/schemas/Error"}, client.get("/nowhere").json)
    assert fits(spec, {"$ref": "#/components/schemas/SandboxPage"}, server.admin().list().json)
    assert fits(spec, {"$ref": "#/components/schemas/Stats"}, server.admin().stats())
    assert not fits(spec, {"$ref": "#/components/schemas/SandboxState"}, "lost")


# Headers on every reply.


REPLIES = {
    "200 open": ("GET", "/healthz", {}),
    "200 metrics": ("GET", "/metrics", {}),
    "200 admin": ("GET", "/v1/admin/stats", bearer(ADMIN_TOKEN)),
    "201": ("POST", "/v1/allocate", bearer(TRACK_TOKEN, **{"X-Track-ID": "headers-201"})),
    "200 repeat": ("POST", "/v1/allocate", bearer(TRACK_TOKEN, **{"X-Track-ID": "headers-201"})),
    "400": ("POST", "/v1/allocate", bearer(TRACK_TOKEN)),
    "400 query": ("GET", "/v1/admin/sandboxes?limit=0", bearer(ADMIN_TOKEN)),
    "401": ("POST", "/v1/allocate", {}),
    "403": ("GET", "/v1/admin/stats", bearer(TRACK_TOKEN)),
    "404 path": ("GET", "/nowhere", {}),
    "404 sandbox": ("GET", "/v1/admin/sandboxes/none", bearer(ADMIN_TOKEN)),
    "405": ("DELETE", "/v1/allocate", {}),
    "409": (
        "POST",
        "/v1/allocate",
        bearer(TRACK_TOKEN, **{"X-Track-ID": "headers-409", "X-Sandbox-Name-Prefix": "nobody-"}),
    ),
    "413": ("POST", "/v1/allocate", {"Content-Length": "99999999", "X-Track-ID": "x", **bearer(TRACK_TOKEN)}),
}


@pytest.mark.parametrize("name", REPLIES)
def test_every_reply_has_the_common_headers(server, name):
    method, path, headers = REPLIES[name]
    reply = server.client().request(method, path, {"Origin": "https://console.example", **headers})
    assert reply.status == int(name[:3])
    for header, value in SECURITY.items():
        assert reply.all(header) == [value], header
    assert reply.header("access-control-allow-origin") == "*"
    assert reply.header("access-control-allow-credentials") is None
    assert len(reply.all("x-request-id")) == 1
    assert UUID4.match(reply.header("x-request-id"))
    assert len(reply.all("content-length")) == 1
    assert reply.header("date")
    if reply.status >= 400:
        assert reply.header("content-type").startswith("application/json")
        error = reply.error
        assert set(error) - {"retry_after"} == {"code", "message", "request_id"}
        assert error["request_id"] == reply.header("x-request-id")
        assert error["message"]
        assert ("retry_after" in error) == (reply.status in (409, 429, 503))
        if "retry_after" in error:
            assert reply.header("retry-after") == str(error["retry_after"])


def test_a_broken_request_is_refused_with_the_common_headers_too(server):
    reply, conn = exchange(server.address, b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n")
    conn.close()
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")
    for header, value in SECURITY.items():
        assert reply.all(header) == [value], header
    assert reply.error["request_id"] == reply.header("x-request-id")


def test_exposed_headers(client):
    reply = client.get("/healthz", headers={"Origin": "https://console.example"})
    exposed = {h.strip().lower() for h in (reply.header("access-control-expose-headers") or "").split(",")}
    assert {"x-request-id", "x-ratelimit-limit", "x-ratelimit-remaining", "retry-after"} <= exposed


def test_request_ids_are_fresh_and_not_the_callers(client):
    ids = [client.get("/healthz", headers={"X-Request-ID": "mine"}).header("x-request-id") for _ in range(20)]
    assert len(set(ids)) == 20 and "mine" not in ids


def test_request_ids_can_be_switched_off(make):
    server = make.server(1, ENABLE_REQUEST_ID="false")
    for path in ("/healthz", "/nowhere", "/v1/admin/stats"):
        reply = server.client().get(path)
        assert reply.header("x-request-id") is None
        if reply.status >= 400:
            assert reply.code in ("NOT_FOUND", "UNAUTHORIZED")
            assert reply.header("x-frame-options") == "DENY"


# CORS.


def preflight(server, origin, method="POST", path="/v1/allocate"):
    return server.client().request(
        "OPTIONS",
        path,
        {
            "Origin": origin,
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": "authorization,x-track-id",
        },
    )


def test_a_preflight_needs_no_token(server):
    reply = preflight(server, "https://console.example")
    assert reply.status in (200, 204)
    assert reply.header("access-control-allow-origin") == "*"
    allowed = {h.strip().lower() for h in reply.header("access-control-allow-headers").split(",")}
    assert {
        "authorization",
        "content-type",
        "x-track-id",
        "x-instruqt-sandbox-id",
        "x-instruqt-track-id",
        "x-sandbox-name-prefix",
        "idempotency-key",
    } <= allowed
    methods = {m.strip() for m in reply.header("access-control-allow-methods").split(",")}
    assert {"GET", "POST"} <= methods
    assert reply.header("access-control-max-age") == "3600"
    assert reply.header("access-control-allow-credentials") is None


def test_only_listed_origins_are_allowed(make):
    server = make.server(1, CORS_ALLOWED_ORIGINS="https://one.example, https://two.example")
    for origin in ("https://one.example", "https://two.example"):
        assert preflight(server, origin).header("access-control-allow-origin") == origin
        reply = server.client().get("/healthz", headers={"Origin": origin})
        assert reply.header("access-control-allow-origin") == origin
        assert "origin" in (reply.header("vary") or "").lower()
    for origin in (
        "https://evil.example",
        "https://one.example.evil.example",
        "http://one.example",
        "null",
        "https://one.example, https://two.example",
    ):
        assert preflight(server, origin).header("access-control-allow-origin") is None
        reply = server.client().get("/healthz", headers={"Origin": origin})
        assert reply.status == 200
        assert reply.header("access-control-allow-origin") is None


# Order of refusals.


@pytest.mark.parametrize("method,path", GUARDED)
def test_no_token_is_401(client, method, path):
    reply = client.request(method, path_of(path))
    assert (reply.status, reply.code) == (401, "UNAUTHORIZED")


@pytest.mark.parametrize("method,path", GUARDED)
def test_a_wrong_token_is_401_before_anything_else(client, method, path):
    reply = client.request(method, path_of(path) + "?limit=0", bearer("wrong", **{"X-Track-ID": ""}))
    assert (reply.status, reply.code) == (401, "UNAUTHORIZED")


@pytest.mark.parametrize("method,path", [r for r in GUARDED if "/admin/" in r[1]])
def test_a_tracks_token_on_an_operators_route_is_403(client, method, path):
    reply = client.request(method, path_of(path) + "?limit=0", bearer(TRACK_TOKEN, **{"X-Track-ID": "x"}))
    assert (reply.status, reply.code) == (403, "FORBIDDEN")


@pytest.mark.parametrize("method,path", [r for r in GUARDED if "/admin/" not in r[1]])
def test_an_operators_token_on_a_tracks_route_is_403(client, method, path):
    reply = client.request(method, path_of(path), bearer(ADMIN_TOKEN, **{"X-Track-ID": "x"}))
    assert (reply.status, reply.code) == (403, "FORBIDDEN")


@pytest.mark.parametrize("method,path", OPEN + GUARDED)
@pytest.mark.parametrize("token", ["", TRACK_TOKEN, ADMIN_TOKEN])
def test_a_wrong_method_is_405_whatever_the_token(client, method, path, token):
    wrong = "POST" if method == "GET" else "GET"
    if path == "/v1/sandboxes/{id}" or path == "/v1/admin/sandboxes/{id}":
        wrong = "DELETE"
    reply = client.request(wrong, path_of(path), bearer(token) if token else {})
    assert (reply.status, reply.code) == (405, "METHOD_NOT_ALLOWED")
    assert method in {m.strip() for m in reply.header("allow").split(",")}
    assert reply.error["message"] == "%s takes %s, not %s" % (path_of(path), method, wrong)


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/v1",
        "/v1/",
        "/v2/allocate",
        "/v1/allocate/",
        "/V1/allocate",
        "/v1/admin",
        "/v1/sandboxes",
        "/v1/sandboxes/",
        "/v1/sandboxes/a/b",
        "/v1/sandboxes/a/mark-for-deletion/",
        "/healthz/",
        "//healthz",
        "/v1/admin/stats/x",
        "/v1/admin/jobs/sync",
        "/allocate",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_path_is_404_whatever_the_method_and_token(client, path, method):
    for headers in ({}, bearer("wrong"), bearer(ADMIN_TOKEN)):
        reply = client.request(method, path, headers)
        assert (reply.status, reply.code) == (404, "NOT_FOUND")
        assert reply.error["message"].startswith("there is nothing at '%s'" % path)
        assert reply.error["message"].endswith("; all paths: /v1/openapi.json")


@pytest.mark.parametrize(
    "path,meant",
    [
        ("/v1/allocate/", "/v1/allocate"),
        ("/v1/allocate//", "/v1/allocate"),
        ("/allocate", "/v1/allocate"),
        ("/allocate/", "/v1/allocate"),
        ("/healthz/", "/healthz"),
        ("/sandboxes/a", "/v1/sandboxes/a"),
        ("/v1/sandboxes/a/mark-for-deletion/", "/v1/sandboxes/a/mark-for-deletion"),
        ("/nowhere", None),
        ("/v1/", None),
        ("/v1/sandboxes/", None),
        ("//", "/"),
    ],
)
def test_an_unknown_path_is_told_what_may_have_been_meant(client, path, meant):
    hint = "; did you mean %s?" % meant if meant else ""
    message = client.get(path).error["message"]
    assert message == "there is nothing at '%s'%s; all paths: /v1/openapi.json" % (path, hint)


def test_a_long_unknown_path_is_cut_and_its_end_is_not_lost(client):
    message = client.get("/" + "x" * 500 + "/").error["message"]
    assert message == "there is nothing at '/%s'; all paths: /v1/openapi.json" % ("x" * 79)


def test_a_hint_that_would_not_fit_is_left_out(make):
    base = "/a-rather-long-base-path/of-two-parts"
    server = make.server(API_BASE_PATH=base)
    path = "/sandboxes/" + "x" * 69
    message = server.client().get(path).error["message"]
    assert message == "there is nothing at '%s'; all paths: %s/openapi.json" % (path, base)
    assert "; did you mean %s/allocate?; all" % base in server.client().get("/allocate").error["message"]


# Bodies where none is read.


@pytest.mark.parametrize("body", [b"", b"{}", b" {} \r\n", b"{ }", b" \t\r\n"])
@pytest.mark.parametrize("method,path", [("GET", "/v1/admin/stats"), ("POST", "/v1/admin/expire"), ("GET", "/healthz")])
def test_an_empty_body_passes_everywhere(client, method, path, body):
    assert client.request(method, path, bearer(ADMIN_TOKEN), body=body).status == 200


@pytest.mark.parametrize("body", [b'{"prefix": "eu-"}', b"[]", b"{", b"{}}", b"null", b"\0", b"{}\0", b"a=b"])
@pytest.mark.parametrize("method,path", [(m, "/v1" + p) for m, p in ADMIN if "quarantine" not in p] + OPEN)
def test_a_body_that_nobody_would_read_is_400(client, method, path, body):
    reply = client.request(method, path_of(path), bearer(ADMIN_TOKEN), body=body)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")
    assert reply.error["message"].startswith("this call takes no body; ")


def test_a_claim_with_a_body_claims_nothing(server, owner):
    track = server.track(owner)
    reply = track.post("/v1/allocate", body={"prefix": "eu-"})
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")
    assert track.post("/v1/allocate", body={}).status == 201


def test_a_header_sent_twice_is_told_so(server):
    head = "POST /v1/allocate HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nAuthorization: Bearer %s\r\n" % TRACK_TOKEN
    reply, conn = exchange(server.address, (head + "X-Track-ID: a\r\nX-Track-ID: b\r\n\r\n").encode())
    conn.close()
    assert (reply.status, reply.code) == (400, "INVALID_TRACK_ID")
    assert reply.error["message"].endswith("visible ASCII characters (and sent once)")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
def test_the_scheme_is_case_insensitive(client, scheme):
    assert client.get("/v1/admin/stats", headers={"Authorization": scheme + " " + ADMIN_TOKEN}).status == 200


def test_every_token_of_a_list_works(make):
    server = make.server(
        5,
        BROKER_API_TOKEN="one-track-token-0123456789,two-track-token-0123456789",
        BROKER_ADMIN_TOKEN="one-admin-token-0123456789,two-admin-token-0123456789",
    )
    for n, token in enumerate(("one-track-token-0123456789", "two-track-token-0123456789")):
        assert server.track("list-%d" % n, token=token).allocate().status == 201
    for token in ("one-admin-token-0123456789", "two-admin-token-0123456789"):
        assert server.admin(token=token).stats()["allocated"] == 2
    for token in (
        "one-track-token-0123456789,two-track-token-0123456789",
        "",
        ",",
        "one-track-token-012345678",
        "one-track-token-01234567890",
    ):
        assert server.track("x", token=token or " ").allocate().status == 401


def test_a_token_is_never_in_a_reply_or_log(server, client):
    for headers in (bearer("secret-wrong-token"), bearer(TRACK_TOKEN), bearer(ADMIN_TOKEN)):
        assert b"token-0123" not in client.get("/v1/admin/sandboxes/none", headers=headers).body
    assert TRACK_TOKEN not in server.output()
    assert ADMIN_TOKEN not in server.output()
    assert "secret-wrong-token" not in server.output()


def test_another_base_path(make, owner):
    server = make.server(2, API_BASE_PATH="/api/lab")
    assert server.track(owner).allocate().status == 201
    assert server.admin().stats()["allocated"] == 1
    assert server.client().get("/api/lab/openapi.json").status == 200
    assert server.client().get("/healthz").status == 200
    assert server.client().get("/v1/openapi.json").code == "NOT_FOUND"
    assert server.client().post("/v1/allocate").code == "NOT_FOUND"


# The protocol, used well.


def test_a_connection_is_kept(server):
    conn = Connection(server.address)
    for _ in range(50):
        conn.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert conn.reply().status == 200
    conn.close()


def test_pipelined_requests_are_answered_in_order(server):
    conn = Connection(server.address)
    conn.send(b"".join(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % p for p in (b"/healthz", b"/nowhere", b"/readyz", b"/")))
    replies = [conn.reply() for _ in range(4)]
    assert [r.status for r in replies] == [200, 404, 200, 200]
    assert [r.json.get("status") for r in replies] == ["healthy", None, "ready", None]
    conn.close()


def test_connection_close_is_obeyed(server):
    reply, conn = exchange(server.address, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert reply.status == 200
    assert reply.header("connection").lower() == "close"
    assert conn.is_closed_by_peer()
    conn.close()


def test_http_1_0_is_answered_and_closed(server):
    reply, conn = exchange(server.address, b"GET /healthz HTTP/1.0\r\nHost: x\r\n\r\n")
    assert reply.status == 200
    assert conn.is_closed_by_peer()
    conn.close()


def test_a_request_byte_by_byte(server):
    conn = Connection(server.address)
    for byte in b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: b\r\n\r\n":
        conn.send(bytes([byte]))
    assert conn.reply().status == 200
    conn.close()


def quarantine_head(server, extra):
    free = server.admin().list("?status=available&limit=1").json["sandboxes"][0]["sandbox_id"]
    return (
        free,
        (
            "POST /v1/admin/sandboxes/%s/quarantine HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
            "Content-Type: application/json\r\n%s\r\n" % (free, ADMIN_TOKEN, extra)
        ).encode(),
    )


def test_a_chunked_body_is_read(server):
    free, head = quarantine_head(server, "Transfer-Encoding: chunked\r\n")
    reply, conn = exchange(server.address, head + b'5\r\n{"rea\r\nC\r\nson":"chunk"\r\n1\r\n}\r\n0\r\n\r\n')
    conn.close()
    assert (reply.status, reply.json["quarantine_reason"]) == (200, "chunk")
    server.admin().on(free, "release")


def test_a_client_that_waits_for_100_continue_gets_it(server):
    free, head = quarantine_head(server, "Content-Length: 15\r\nExpect: 100-continue\r\n")
    conn = Connection(server.address)
    conn.send(head)
    assert conn.reply(skip_interim=False).status == 100
    conn.send(b'{"reason":"ok"}')
    reply = conn.reply()
    conn.close()
    assert (reply.status, reply.json["quarantine_reason"]) == (200, "ok")
    server.admin().on(free, "release")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_head_has_no_body(server, path):
    conn = Connection(server.address)
    conn.send(b"HEAD %s HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode())
    assert conn.reply(is_head=True).status in (200, 405)
    assert conn.reply().json["status"] == "healthy"
    conn.close()


def test_escapes_in_a_path_are_read(server, owner):
    got = server.track(owner).claim()["sandbox_id"]
    escaped = "".join("%%%02X" % ord(c) for c in got)
    assert server.track(owner).get("/v1/sandboxes/" + escaped).json["sandbox_id"] == got


# Limits on connections and time.


def test_too_many_connections_are_turned_away_and_the_others_served(make):
    server = make.server(1, LEASEHOLD_CONNECTIONS_MAX=8)
    crowd_turned_away(server, 8)


def test_too_many_connections_of_one_client_are_turned_away(make):
    server = make.server(1, LEASEHOLD_CONNECTIONS_PER_CLIENT_MAX=8)
    crowd_turned_away(server, 8)


def crowd_turned_away(server, most):
    until(lambda: answers(server.address), "the fixture's connections are gone")
    conns, served = [], 0
    for _ in range(most + 12):
        conn = Connection(server.address, timeout=5)
        conns.append(conn)
        if ask(conn) == 200:
            served += 1
    assert most - 2 <= served <= most
    assert ask(conns[0]) == 200, "those who are in stay in"
    for conn in conns:
        conn.close()
    until(lambda: answers(server.address), "room again")


def ask(conn):
    """The status of one request, or None when the server does not serve this connection."""
    try:
        conn.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")  # a probe is answered on any connection
        return conn.reply().status
    except (Broken, ConnectionError, socket.timeout):
        return None


def answers(address):
    conn = Connection(address, timeout=5)
    try:
        return ask(conn) == 200
    finally:
        conn.close()


@pytest.fixture(scope="module")
def hasty(make_for_module):
    return make_for_module.server(
        3, LEASEHOLD_HEADER_TIMEOUT_MS=2000, LEASEHOLD_BODY_TIMEOUT_MS=2000, LEASEHOLD_IDLE_TIMEOUT_MS=2000
    )


def drip(conn, data, deadline=60.0):
    """Send a byte at a time until the server ends it; seconds that took, or None when it did not."""
    begin = time.monotonic()
    conn.sock.settimeout(0.05)
    for byte in data:
        try:
            conn.sock.send(bytes([byte]))
            got = conn.sock.recv(4096)
            if got == b"" or b" 408 " in got:
                return time.monotonic() - begin
        except socket.timeout:
            pass
        except OSError:
            return time.monotonic() - begin
        if time.monotonic() - begin > deadline:
            return None
    return None


def test_a_dripping_head_is_cut(hasty):
    conn = Connection(hasty.address)
    took = drip(conn, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 500)
    conn.close()
    assert took is not None


def test_a_dripping_body_is_cut(hasty):
    free, head = quarantine_head(hasty, "Content-Length: 500\r\n")
    conn = Connection(hasty.address)
    conn.send(head)
    took = drip(conn, b'{"reason": "' + b"a" * 400)
    conn.close()
    assert took is not None
    assert hasty.admin().record(free)["status"] == "available"


def test_an_idle_connection_is_closed(hasty):
    conn = Connection(hasty.address)
    assert conn.is_closed_by_peer()
    conn.close()


def test_a_kept_connection_is_closed_when_idle(hasty):
    conn = Connection(hasty.address)
    conn.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert conn.reply().status == 200
    assert conn.is_closed_by_peer()
    conn.close()


def test_a_waiting_claim_is_not_cut_by_those_times(hasty):
    for n in range(3):
        hasty.track("hasty-%d" % n).claim()
    reply = hasty.track("hasty-waiter").allocate(wait=5)
    assert reply.status == 409


def test_json_is_compact_enough_to_parse_and_ends(client):
    """No reply holds anything behind its JSON."""
    for path in ("/healthz", "/readyz", "/", "/v1/openapi.json", "/nowhere"):
        body = client.get(path).body.decode("utf-8")
        _, end = json.JSONDecoder().raw_decode(body)
        assert body[end:].strip() == ""
