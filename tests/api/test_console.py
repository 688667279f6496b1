# SPDX-License-Identifier: Apache-2.0
"""The web console's files as browsers get them, and what an admin's session may do under /v1."""

import gzip
import re
import socket

import pytest

from lib import jwt
from lib.server import ROOT
from lib.wait import until

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
SOURCES = sorted(p for p in (ROOT / "src/console").rglob("*") if p.is_file())
PACKED_MAX = 300 * 1024
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@pytest.fixture(scope="module")
def server(make_for_module):
    return make_for_module.server(count=3, LEASEHOLD_JWT_SECRET=jwt.SECRET)


@pytest.fixture
def client(server):
    client = server.client()
    yield client
    client.close()


@pytest.fixture(scope="module")
def assets(server):
    """The folder that the page of this build refers to."""
    page = server.client().get("/", headers=HTML).body.decode()
    found = set(re.findall(r'"(/assets/[0-9a-f]{16}/)', page))
    assert len(found) == 1, page
    return found.pop()


# Serving.


def test_browsers_get_the_page_and_programs_json(client):
    page = client.get("/", headers=HTML)
    assert (page.status, page.header("content-type")) == (200, "text/html; charset=utf-8")
    assert page.header("content-security-policy") == POLICY
    assert page.header("x-content-type-options") == "nosniff"
    assert page.header("referrer-policy") == "no-referrer"
    assert page.header("cache-control") == "no-cache"
    assert "Accept" in page.header("vary")
    assert client.get("/", headers={"Accept": "*/*"}).json["service"] == "leasehold"
    assert client.get("/", headers={"Accept": "text/html;q=0, */*"}).json["service"] == "leasehold"


@pytest.mark.parametrize("path", ["/sandboxes", "/sandboxes/a%2Eb%2Fc", "/leases/abc", "/nothing/that/anybody/knows"])
def test_a_path_without_extension_is_a_page_for_browsers_only(client, path):
    page = client.get(path, headers=HTML)
    assert (page.status, page.header("content-type")) == (200, "text/html; charset=utf-8")
    other = client.get(path)
    assert (other.status, other.header("content-type")) == (404, "application/json")


@pytest.mark.parametrize("path", ["/v1/sandbox", "/v1", "/favicon.ico", "/assets", "/assets/0123456789abcdef/app.css"])
def test_what_is_no_page_keeps_its_404(client, path):
    reply = client.get(path, headers=HTML)
    assert (reply.status, reply.error["code"]) == (404, "NOT_FOUND")


def test_paths_of_api_keep_their_answer(client):
    assert client.get("/api/nothing", headers=HTML).status == 403


def test_only_get_and_head_are_for_pages(client):
    assert client.post("/sandboxes", headers=HTML).status == 404
    reply = client.request("HEAD", "/sandboxes", headers=HTML)
    assert (reply.status, reply.body) == (200, b"")
    assert int(reply.header("content-length")) == len(client.get("/sandboxes", headers=HTML).body)


def test_files_are_kept_for_good_and_the_page_is_asked_for(client, assets):
    reply = client.get(assets + "js/app.js")
    assert reply.status == 200
    assert reply.header("content-type") == "text/javascript; charset=utf-8"
    assert reply.header("cache-control") == "public, max-age=31536000, immutable"
    assert reply.header("content-security-policy") == POLICY
    assert client.get(assets + "index.html").status == 404


def test_a_known_tag_is_answered_304(client):
    first = client.get("/", headers=HTML)
    tag = first.header("etag")
    assert re.fullmatch(r'"[0-9a-f]{32}"', tag)
    for given in (tag, '"x", ' + tag, "W/" + tag, "*"):
        again = client.get("/", headers={**HTML, "If-None-Match": given})
        assert (again.status, again.body) == (304, b""), given
        assert again.header("etag") == tag
    assert client.get("/", headers={**HTML, "If-None-Match": '"other"'}).status == 200


def test_compressed_only_for_those_who_take_it(client, assets):
    plain = client.get(assets + "app.css")
    packed = client.get(assets + "app.css", headers={"Accept-Encoding": "br, gzip;q=0.9"})
    refused = client.get(assets + "app.css", headers={"Accept-Encoding": "gzip;q=0, identity"})
    assert packed.header("content-encoding") == "gzip"
    assert plain.header("content-encoding") is None and refused.header("content-encoding") is None
    assert gzip.decompress(packed.body) == plain.body == refused.body
    assert plain.body == (ROOT / "src/console/app.css").read_bytes()
    assert packed.header("etag") != plain.header("etag")
    assert packed.header("vary") == plain.header("vary") == "Accept-Encoding"


def test_every_file_is_served(client, assets):
    for path in SOURCES:
        name = path.relative_to(ROOT / "src/console").as_posix()
        if name != "index.html":
            assert client.get(assets + name).body == path.read_bytes(), name


def test_programs_find_the_runbook_without_a_version(client):
    first = client.get("/assets/runbook.md")
    assert (first.status, first.header("cache-control")) == (200, "no-cache")
    assert first.body == (ROOT / "docs/runbook.md").read_bytes()
    assert client.get("/assets/runbook.md", headers={"If-None-Match": first.header("etag")}).status == 304
    assert client.get("/assets/app.css").status == 404


def test_the_whole_console_is_small(client, assets):
    accept = {"Accept-Encoding": "gzip"}
    sizes = {"/": len(client.get("/", headers={**HTML, **accept}).body)}
    for path in SOURCES:
        name = path.relative_to(ROOT / "src/console").as_posix()
        if name != "index.html":
            sizes[name] = len(client.get(assets + name, headers=accept).body)
    assert len(sizes) == len(SOURCES)
    assert sum(sizes.values()) < PACKED_MAX, sizes


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_no_file_refers_to_another_host(path):
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert not re.search(r"\b(https?|wss?):|[\"'(]//", text), path
    assert "innerHTML" not in text and "document.write" not in text and "eval(" not in text


def test_imports_name_files_that_exist():
    for path in SOURCES:
        if path.suffix == ".js":
            for name in re.findall(r'(?:from|import\()\s*"([^"]+)"', path.read_text()):
                assert (path.parent / name).resolve() in SOURCES, "%s imports %s" % (path, name)


# Rights under /v1.


def person(server, email, *roles, **kw):
    return server.client({"Authorization": "Bearer " + jwt.token(email, *roles, **kw)})


def sandbox(server, status):
    return server.admin().everything(status)[0]["sandbox_id"]


def last_event(server, subject, type_):
    events = server.client({"Authorization": "Bearer " + server.env["BROKER_ADMIN_TOKEN"]}).get(
        "/v1/ops/events?subject=%s&type=%s" % (subject, type_)
    )
    return events.json["events"][0]


def test_an_admins_session_may_do_what_an_admin_token_may(server):
    admin = person(server, "Ann.Admin@example.com", "Admin")
    assert admin.get("/v1/admin/stats").json["total"] == 3
    assert admin.get("/v1/ops/alarms").status == 200
    name = sandbox(server, "available")
    assert admin.post("/v1/admin/sandboxes/%s/quarantine" % name, body={"reason": "odd"}).status == 200
    assert last_event(server, "sandbox/" + name, "SandboxQuarantined")["actor"] == "Ann.Admin@example.com"
    assert admin.post("/v1/admin/sandboxes/%s/release" % name).status == 200
    assert admin.post("/v1/admin/jobs/cleanup/pause").status == 200
    assert last_event(server, "job/cleanup", "JobPaused")["actor"] == "Ann.Admin@example.com"
    assert admin.post("/v1/admin/jobs/cleanup/resume").status == 200
    assert admin.post("/v1/admin/expire").status == 200
    assert last_event(server, "job/expiry", "JobRequested")["actor"] == "Ann.Admin@example.com"


def test_what_a_token_does_is_still_the_admins(server):
    name = sandbox(server, "available")
    assert server.admin().on(name, "quarantine").status == 200
    assert last_event(server, "sandbox/" + name, "SandboxQuarantined")["actor"] == "admin"
    assert server.admin().on(name, "release").status == 200


@pytest.mark.parametrize("roles", [["User"], ["Manager"], ["Manager", "User"]])
@pytest.mark.parametrize("method, path", [("GET", "/v1/admin/stats"), ("POST", "/v1/admin/sync"), ("GET", "/v1/ops/events"),
                                          ("GET", "/v1/ops/events/stream"), ("POST", "/v1/ops/webhooks")])
def test_others_are_refused(server, roles, method, path):
    reply = person(server, "mia@example.com", *roles).request(method, path)
    assert (reply.status, reply.error["code"]) == (403, "FORBIDDEN")
    assert "Admin" in reply.error["message"]


def test_a_session_that_is_over_or_forged_is_nobodys(server):
    over = person(server, "ann@example.com", "Admin", lives=-3600)
    forged = person(server, "ann@example.com", "Admin", secret="another-secret-0123456789abcdef0123")
    for client in (over, forged):
        reply = client.get("/v1/admin/stats")
        assert (reply.status, reply.error["code"]) == (401, "UNAUTHORIZED")


def test_a_session_is_no_tracks_and_no_inboxs_token(server):
    admin = person(server, "ann@example.com", "Admin")
    assert admin.post("/v1/allocate", headers={"X-Track-ID": "ann"}).status == 401
    assert admin.post("/v1/inbox/cloudtrail", body={}).status == 401


def test_an_admins_session_may_send_large_documents(server):
    text = "# " + "x" * 60000 + "\n"
    reply = person(server, "ann@example.com", "Admin").post("/v1/ops/policy/check", body={"document": text})
    assert reply.status == 200, reply
    refused = person(server, "mia@example.com", "Manager").post("/v1/ops/policy/check", body={"document": text})
    assert refused.status in (403, 413)


def test_without_sign_in_no_session_is_good(make):
    server = make.server(count=1)
    reply = person(server, "ann@example.com", "Admin").get("/v1/admin/stats")
    assert (reply.status, reply.error["code"]) == (401, "UNAUTHORIZED")


# The overview's figures, and the search.


def test_the_overview_counts_what_there_is(make, owner):
    server = make.server(count=5, LEASEHOLD_JWT_SECRET=jwt.SECRET, LEASEHOLD_LOW_WATER="3")
    admin = server.client({"Authorization": "Bearer " + server.env["BROKER_ADMIN_TOKEN"]})
    server.track(owner).claim()
    got = admin.get("/v1/ops/overview").json
    pool = {"total": 5, "available": 4, "allocated": 1, "pending_deletion": 0, "stale": 0, "deletion_failed": 0}
    assert got["pool"] == {**pool, "low_water": 3}
    assert got["line"] == {"waiting": 0, "estimate_sec": 0}
    assert got["claims"]["per_minute"] == 1 and got["claims"]["p99_ms"] > 0
    assert got["step_sec"] == 10 and sum(s["granted"] for s in got["series"]) <= 1
    assert got["leases"]["by_status"]["Active"] == 0 and got["leases"]["budget_usd"] == 0
    assert got["kernel"] == {"sagas_running": 0, "sagas_parked": 0, "dead_letters": 0}
    assert got["alarms"] == []


def test_the_overview_is_fresh_again_after_a_second(make, owner):
    server = make.server(count=3)
    admin = server.client({"Authorization": "Bearer " + server.env["BROKER_ADMIN_TOKEN"]})
    admin.get("/v1/ops/overview")
    server.track(owner).claim()
    until(lambda: admin.get("/v1/ops/overview").json["pool"]["allocated"] == 1, "the claim is counted", 30)


def test_search_looks_into_names_ids_and_holders(make, owner):
    server = make.server(count=60)
    admin = server.admin()
    held = server.track(owner + "-Of-The-Search").claim()
    for text in ("of-the-SEARCH", held["sandbox_id"][:20], held["sandbox_id"]):
        got = admin.list("?q=" + text).json
        assert [s["sandbox_id"] for s in got["sandboxes"]] == [held["sandbox_id"]], text
    assert admin.list("?q=of-the-search&status=available").json["sandboxes"] == []
    assert admin.list("?q=nothing-like-this").json == {"sandboxes": [], "count": 0, "cursor": None}
    assert admin.list("?q=" + "x" * 129).status == 400


@pytest.mark.parametrize("limit", [1, 2, 7, 100])
def test_search_goes_on_where_it_stopped(make, limit):
    server = make.server(count=60)
    admin = server.admin()
    found, cursor = [], ""
    for _ in range(200):
        page = admin.list("?q=sandbox-00000&limit=%d%s" % (limit, cursor)).json
        assert len(page["sandboxes"]) <= limit
        found += [s["name"] for s in page["sandboxes"]]
        if page["cursor"] is None:
            break
        cursor = "&cursor=" + page["cursor"]
    assert sorted(found) == ["sandbox-%06d" % i for i in range(1, 10)]


def test_a_cursor_of_another_search_is_refused(make):
    admin = make.server(count=10).admin()
    cursor = admin.list("?q=sandbox&limit=2").json["cursor"]
    assert admin.list("?q=sandbox&limit=2&cursor=" + cursor).status == 200
    assert admin.list("?q=other&limit=2&cursor=" + cursor).status == 400
    assert admin.list("?limit=2&cursor=" + cursor).status == 400


def test_a_live_stream_ends_with_the_session(server):
    sock = socket.create_connection(server.address, timeout=90)
    token = jwt.token("ann@example.com", "Admin", lives=2)
    sock.sendall(
        b"GET /v1/ops/events/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n" % token.encode()
    )
    got = b""
    while not got.endswith(b"0\r\n\r\n"):
        more = sock.recv(65536)
        assert more, "cut off without an end: %r" % got
        got += more
    sock.close()
    assert got.startswith(b"HTTP/1.1 200 ")
