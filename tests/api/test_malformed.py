# SPDX-License-Identifier: Apache-2.0
"""Requests that are wrong in every way we could think of.

Each has its status and error code; the pool and its list are the same afterwards, and the server still answers. Where
the API's documentation leaves open which of two refusals it is, both are allowed and written down.
"""

import pytest

from lib.http import Broken, exchange
from lib.server import ADMIN_TOKEN, TRACK_TOKEN

BAD = {(400, "VALIDATION_ERROR")}
OWNER = {(400, "INVALID_TRACK_ID")}
BAD_OWNER = BAD | OWNER  # bytes that the parser itself may refuse
LARGE = {(413, "TOO_LARGE"), (414, "TOO_LARGE"), (431, "TOO_LARGE"), (400, "VALIDATION_ERROR")}
BODY_LARGE = {(413, "TOO_LARGE")}
UNKNOWN = {(401, "UNAUTHORIZED")}
FORBIDDEN = {(403, "FORBIDDEN")}
NOWHERE = {(404, "NOT_FOUND")}
NO_SANDBOX = {(404, "SANDBOX_NOT_FOUND")}
NO_JOB = {(404, "JOB_NOT_FOUND")}
METHOD = {(405, "METHOD_NOT_ALLOWED")}
ODD_ID = NO_SANDBOX | NOWHERE | BAD

T = b"Authorization: Bearer " + TRACK_TOKEN.encode() + b"\r\n"
A = b"Authorization: Bearer " + ADMIN_TOKEN.encode() + b"\r\n"
OWN = b"X-Track-ID: malformed\r\n"
HOST = b"Host: x\r\n"
NO_BODY = b"Content-Length: 0\r\n"

CASES = []


def case(name, raw, allowed, closes=False):
    """closes: where the next request would begin cannot be known any more, so the connection must end."""
    CASES.append(pytest.param(raw, allowed, closes, id=name))


def claim(headers=b"", line=b"POST /v1/allocate HTTP/1.1", tail=b""):
    """A good claim but for what is added."""
    return line + b"\r\n" + HOST + T + OWN + headers + b"\r\n" + tail


def admin(method, path, headers=b"", body=None):
    length = b"Content-Length: %d\r\n" % len(body or b"") if method == b"POST" or body is not None else b""
    return method + b" /v1/admin/" + path + b" HTTP/1.1\r\n" + HOST + A + length + headers + b"\r\n" + (body or b"")


# The request line.
for name, line in {
    "no version": b"POST /v1/allocate",
    "lower-case protocol": b"POST /v1/allocate http/1.1",
    "version with text": b"POST /v1/allocate HTTP/1.1x",
    "version without minor": b"POST /v1/allocate HTTP/1",
    "version too long": b"POST /v1/allocate HTTP/1.10",
    "another protocol": b"POST /v1/allocate ICY/1.1",
    "two spaces": b"POST  /v1/allocate HTTP/1.1",
    "tabs": b"POST\t/v1/allocate\tHTTP/1.1",
    "leading space": b" POST /v1/allocate HTTP/1.1",
    "trailing space": b"POST /v1/allocate HTTP/1.1 ",
    "space in the target": b"POST /v1/allo cate HTTP/1.1",
    "no target": b"POST HTTP/1.1",
    "empty target": b"POST  HTTP/1.1",
    "target without a slash": b"POST v1/allocate HTTP/1.1",
    "control character in the target": b"POST /v1/allo\x01cate HTTP/1.1",
    "DEL in the target": b"POST /v1/allo\x7fcate HTTP/1.1",
    "NUL in the target": b"POST /v1/allo\x00cate HTTP/1.1",
    "raw bytes in the target": b"POST /v1/allo\xc3\xa9cate HTTP/1.1",
    "bad character in the method": b"PO(ST /v1/allocate HTTP/1.1",
    "no method": b"/v1/allocate HTTP/1.1",
    "NUL in the method": b"PO\x00ST /v1/allocate HTTP/1.1",
    "bare CR in the line": b"POST /v1/allocate\r HTTP/1.1",
}.items():
    case("line: " + name, claim(NO_BODY, line), BAD, True)
for version in (b"0.9", b"1.2", b"2.0", b"3.0"):
    case(
        "line: version " + version.decode(),
        claim(NO_BODY, b"POST /v1/allocate HTTP/" + version),
        BAD | {(505, "VALIDATION_ERROR")},
        True,
    )
case("line: HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", BAD | {(505, "VALIDATION_ERROR")}, True)
case("line: rubbish", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", BAD, True)
case("line: long method", claim(NO_BODY, b"P" * 300 + b" /v1/allocate HTTP/1.1"), BAD | METHOD | LARGE)
case("line: long target", claim(NO_BODY, b"POST /v1/allocate?" + b"a" * 9000 + b" HTTP/1.1"), LARGE, True)
case("line: very long target", claim(NO_BODY, b"POST /" + b"a" * 60000 + b" HTTP/1.1"), LARGE, True)
case("line: without end", b"POST /" + b"a" * 40000, LARGE, True)

# Methods.
for method in (b"PUT", b"DELETE", b"PATCH", b"GET", b"TRACE", b"BREW", b"PROPFIND"):
    case("method: " + method.decode(), claim(NO_BODY, method + b" /v1/allocate HTTP/1.1"), METHOD)
case("method: lower-case", claim(NO_BODY, b"post /v1/allocate HTTP/1.1"), METHOD | BAD)
case("method: CONNECT", b"CONNECT x:80 HTTP/1.1\r\n" + HOST + b"\r\n", BAD | METHOD | NOWHERE)
case("method: POST to the list", admin(b"POST", b"sandboxes"), METHOD)
case("method: DELETE one sandbox", admin(b"DELETE", b"sandboxes/x"), METHOD)

# Headers.
for name, header in {
    "space before the colon": b"X-A : b\r\n",
    "tab before the colon": b"X-A\t: b\r\n",
    "no colon": b"X-A b\r\n",
    "no name": b": b\r\n",
    "bad character in the name": b"X(A): b\r\n",
    "raw bytes in the name": b"X-\xc3\xa9: b\r\n",
    "control character in the name": b"X-\x02: b\r\n",
    "folded line": b"X-A: b\r\n c\r\n",
    "folded line with a tab": b"X-A: b\r\n\tc\r\n",
    "NUL in the value": b"X-A: b\x00c\r\n",
    "control character in the value": b"X-A: b\x01c\r\n",
    "DEL in the value": b"X-A: b\x7fc\r\n",
    "bare CR in the value": b"X-A: b\rc\r\n",
    "bare CR before the end": b"X-A: b\r\r\n",
    "bare LF in the middle": b"X-A: b\nX-B: c\r\n",
    "second Host": b"Host: y\r\n",
    "second Host, the same": b"Host: x\r\n",
    "CR and no LF ends the head": b"X-A: b\r\n\rX",
}.items():
    case("header: " + name, claim(header + NO_BODY), BAD, True)
case("header: no Host", b"POST /v1/allocate HTTP/1.1\r\n" + T + OWN + NO_BODY + b"\r\n", BAD, True)
case(
    "header: space on the first line",
    b"POST /v1/allocate HTTP/1.1\r\n " + HOST + T + OWN + NO_BODY + b"\r\n",
    BAD,
    True,
)
case("header: only LF line ends", claim(NO_BODY).replace(b"\r\n", b"\n"), BAD, True)
case("header: 101 of them", claim(NO_BODY + b"X-A: b\r\n" * 101), LARGE, True)
case("header: 1000 of them", claim(NO_BODY + b"X-A: b\r\n" * 1000), LARGE, True)
case("header: 17 KiB", claim(NO_BODY + b"X-A: " + b"b" * 17000 + b"\r\n"), LARGE, True)
case("header: 64 KiB", claim(NO_BODY + b"X-A: " + b"b" * 65536 + b"\r\n"), LARGE, True)
case("header: name of 17 KiB", claim(NO_BODY + b"X" * 17000 + b": b\r\n"), LARGE, True)
case("header: head without end", claim(NO_BODY)[:-2] + b"X-A: " + b"b" * 40000, LARGE, True)

# The length of the body.
for name, header in {
    "two different lengths": b"Content-Length: 0\r\nContent-Length: 5\r\n",
    "two equal lengths": b"Content-Length: 5\r\nContent-Length: 5\r\n",
    "length list": b"Content-Length: 5, 5\r\n",
    "length with a sign": b"Content-Length: +5\r\n",
    "negative length": b"Content-Length: -5\r\n",
    "hexadecimal length": b"Content-Length: 0x5\r\n",
    "length with text": b"Content-Length: 5 bytes\r\n",
    "fractional length": b"Content-Length: 5.0\r\n",
    "empty length": b"Content-Length:\r\n",
    "length and chunked": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "chunked and length": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "two codings, one unknown": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    "chunked twice": b"Transfer-Encoding: chunked, chunked\r\n",
    "almost chunked": b"Transfer-Encoding: xchunked\r\n",
    "chunked with a control character": b"Transfer-Encoding: \x0bchunked\r\n",
    "coding is empty": b"Transfer-Encoding:\r\n",
}.items():
    case("length: " + name, claim(header, tail=b"0\r\n\r\n"), BAD, True)
for coding in (b"gzip", b"identity", b"gzip, chunked", b"chunked, identity"):
    case(
        "length: coding " + coding.decode(),
        claim(b"Transfer-Encoding: " + coding + b"\r\n", tail=b"0\r\n\r\n"),
        BAD | {(501, "VALIDATION_ERROR")},
        True,
    )
case("length: more than 64 bits", claim(b"Content-Length: 99999999999999999999\r\n"), BAD | BODY_LARGE, True)
case("length: 2 to the 64th", claim(b"Content-Length: 18446744073709551616\r\n"), BAD | BODY_LARGE, True)
case("length: 10 MB announced", claim(b"Content-Length: 10000000\r\n"), BODY_LARGE, True)
case(
    "length: 10 MB to quarantine",
    admin(b"POST", b"sandboxes/{free}/quarantine", b"").replace(b"Content-Length: 0", b"Content-Length: 10000000"),
    BODY_LARGE,
    True,
)
case("length: 2 MB sent", claim(b"Content-Length: 2000000\r\n", tail=b"x" * 2000000), BODY_LARGE, True)
case("length: body where none is read", claim(b"Content-Length: 200000\r\nExpect: 100-continue\r\n"), BODY_LARGE, True)

# Chunks.
for name, chunks in {
    "size is no number": b"zz\r\n",
    "size with a sign": b"+5\r\nhello\r\n0\r\n\r\n",
    "negative size": b"-5\r\nhello\r\n0\r\n\r\n",
    "size with 0x": b"0x5\r\nhello\r\n0\r\n\r\n",
    "size is empty": b"\r\nhello\r\n0\r\n\r\n",
    "size after a space": b" 5\r\nhello\r\n0\r\n\r\n",
    "no line end after the data": b"5\r\nhello0\r\n\r\n",
    "wrong line end after the data": b"5\r\nhello\n0\r\n\r\n",
    "bare LF after the size": b"5\nhello\r\n0\r\n\r\n",
}.items():
    case(
        "chunk: " + name,
        admin(b"POST", b"sandboxes/{free}/quarantine").replace(NO_BODY, b"Transfer-Encoding: chunked\r\n") + chunks,
        BAD,
        True,
    )
for name, size in {
    "size overflows": b"fffffffffffffffff",
    "size of 2 GiB": b"80000000",
    "size of 16 digits": b"ffffffffffffffff",
}.items():
    case(
        "chunk: " + name,
        admin(b"POST", b"sandboxes/{free}/quarantine").replace(NO_BODY, b"Transfer-Encoding: chunked\r\n")
        + size
        + b"\r\nx",
        BAD | BODY_LARGE,
        True,
    )

# Paths.
for path in (
    b"/v1/allocate/",
    b"/v1//allocate",
    b"//v1/allocate",
    b"/v1/./allocate",
    b"/v1/x/../allocate",
    b"/V1/ALLOCATE",
    b"/v1/allocate;x=1",
    b"/v1/allocate%00",
    b"/v1/allocat",
    b"/v1/allocatee",
    b"/v1%2Fallocate",
    b"/v1\\allocate",
):
    case("path: " + path.decode(), claim(NO_BODY, b"POST " + path + b" HTTP/1.1"), NOWHERE | BAD)
for odd in (
    b"%",
    b"%4",
    b"%zz",
    b"%00",
    b"%2e%2e%2f",
    b"%ff%fe",
    b"%C3%28",
    b"..",
    b"'%20OR%201=1--",
    b"%0d%0aX-A:b",
    b"x" * 300,
    b"x" * 5000,
    b"%252e",
):
    case(
        "path: sandbox " + odd[:20].decode() + (" x%d" % len(odd) if len(odd) > 20 else ""),
        b"GET /v1/sandboxes/" + odd + b" HTTP/1.1\r\n" + HOST + T + OWN + b"\r\n",
        ODD_ID,
    )
case("path: mark a strange sandbox", claim(NO_BODY, b"POST /v1/sandboxes/%ff/mark-for-deletion HTTP/1.1"), ODD_ID)
case("path: record of a strange sandbox", admin(b"GET", b"sandboxes/%00"), ODD_ID)
case("path: quarantine without an id", admin(b"POST", b"sandboxes//quarantine"), NOWHERE | ODD_ID)
case("path: unknown action", admin(b"POST", b"sandboxes/{free}/explode"), NOWHERE)
for job in (b"SYNC", b"sync%20", b"nothing", b"%ff", b"..", b"stale_removal"):
    case(
        "path: job " + job.decode(),
        admin(b"POST", b"jobs/" + job + b"/run"),
        NO_JOB | ((BAD | NOWHERE) if job in (b"%ff", b"..") else set()),
    )

# The token.
for name, value in {
    "empty": b"",
    "scheme only": b"Bearer",
    "scheme and a space": b"Bearer ",
    "another scheme": b"Basic " + TRACK_TOKEN.encode(),
    "no scheme": TRACK_TOKEN.encode(),
    "no space": b"Bearer" + TRACK_TOKEN.encode(),
    "cut": b"Bearer " + TRACK_TOKEN.encode()[:-1],
    "longer": b"Bearer " + TRACK_TOKEN.encode() + b"x",
    "other case": b"Bearer " + TRACK_TOKEN.encode().upper(),
    "quoted": b'Bearer "' + TRACK_TOKEN.encode() + b'"',
    "a list": b"Bearer " + TRACK_TOKEN.encode() + b"," + ADMIN_TOKEN.encode(),
    "very long": b"Bearer " + b"x" * 8000,
    "the vendor's scheme": b"Token " + TRACK_TOKEN.encode(),
}.items():
    case(
        "token: " + name,
        b"POST /v1/allocate HTTP/1.1\r\n" + HOST + b"Authorization: " + value + b"\r\n" + OWN + NO_BODY + b"\r\n",
        UNKNOWN,
    )
case(
    "token: raw bytes",
    b"POST /v1/allocate HTTP/1.1\r\n" + HOST + b"Authorization: Bearer \xff\xfe\r\n" + OWN + NO_BODY + b"\r\n",
    UNKNOWN | BAD,
)
case("token: a track's for operators", b"GET /v1/admin/stats HTTP/1.1\r\n" + HOST + T + OWN + b"\r\n", FORBIDDEN)
case(
    "token: an operator's for tracks", b"POST /v1/allocate HTTP/1.1\r\n" + HOST + A + OWN + NO_BODY + b"\r\n", FORBIDDEN
)

# The owner.
for name, header, allowed in (
    ("none", b"", OWNER),
    ("empty", b"X-Track-ID:\r\n", OWNER),
    ("blanks", b"X-Track-ID:  \t \r\n", OWNER),
    ("129 characters", b"X-Track-ID: " + b"x" * 129 + b"\r\n", OWNER),
    ("8000 characters", b"X-Track-ID: " + b"x" * 8000 + b"\r\n", OWNER),
    ("space inside", b"X-Track-ID: a b\r\n", OWNER),
    ("tab inside", b"X-Track-ID: a\tb\r\n", OWNER),
    ("UTF-8", b"X-Track-ID: \xc3\xa9t\xc3\xa9\r\n", BAD_OWNER),
    ("raw byte", b"X-Track-ID: a\xffb\r\n", BAD_OWNER),
    ("control character", b"X-Track-ID: a\x01b\r\n", BAD_OWNER),
    ("long instruqt id", b"X-Instruqt-Sandbox-ID: " + b"x" * 129 + b"\r\n" + OWN, OWNER),
    ("space in the instruqt id", b"X-Instruqt-Sandbox-ID: a b\r\n" + OWN, OWNER),
):
    case("owner: " + name, b"POST /v1/allocate HTTP/1.1\r\n" + HOST + T + header + NO_BODY + b"\r\n", allowed)
case(
    "owner: none when marking",
    b"POST /v1/sandboxes/{free}/mark-for-deletion HTTP/1.1\r\n" + HOST + T + NO_BODY + b"\r\n",
    OWNER,
)
case("owner: none when looking", b"GET /v1/sandboxes/{free} HTTP/1.1\r\n" + HOST + T + b"\r\n", OWNER)

# Other headers of a claim.
for header in (b"Idempotency-Key", b"X-Sandbox-Name-Prefix", b"X-Instruqt-Track-ID"):
    for name, value in {
        "129 characters": b"x" * 129,
        "space inside": b"a b",
        "tab inside": b"a\tb",
        "UTF-8": b"\xc3\xa9",
        "empty": b"",
        "raw byte": b"\x80",
    }.items():
        case("%s: %s" % (header.decode(), name), claim(header + b": " + value + b"\r\n" + NO_BODY), BAD)

# Queries.
for value in (
    b"0",
    b"101",
    b"-1",
    b"abc",
    b"",
    b"1.5",
    b"1e1",
    b"0x10",
    b"+5",
    b"%205",
    b"5%20",
    b"99999999999999999999",
    b"%zz",
    b"%00",
    b"5;",
    b"NaN",
    b"%D9%A3",
):
    case("limit=" + value.decode(), admin(b"GET", b"sandboxes?limit=" + value), BAD)
for value in (b"unknown", b"", b"deleted", b"AVAILABLE", b"available%00", b"available,stale", b"%ff", b"all", b"*"):
    case("status=" + value.decode(), admin(b"GET", b"sandboxes?status=" + value), BAD)
    case("bulk-delete status=" + value.decode(), admin(b"POST", b"bulk-delete?status=" + value), BAD)
case("bulk-delete without a status", admin(b"POST", b"bulk-delete"), BAD)
for value in (
    b"",
    b"x",
    b"AAAA",
    b"%00",
    b"....",
    b"e30",
    b"eyJQSyI6IlNCWCMxIiwiU0siOiJNRVRBIn0",
    b"x" * 3000,
    b"%ff%ff",
    b"0",
    b"null",
):
    case("cursor=" + value[:40].decode(), admin(b"GET", b"sandboxes?cursor=" + value), BAD)
for value in (b"0", b"-1", b"8761", b"abc", b"", b"1.5", b"99999999999999999999", b"24h", b"%zz"):
    case("grace_period_hours=" + value.decode(), admin(b"POST", b"auto-delete-stale?grace_period_hours=" + value), BAD)

# Bodies.
for name, body in {
    "no JSON": b"reason",
    "half": b'{"reason": "a',
    "a list": b"[]",
    "a string": b'"reason"',
    "a number": b"5",
    "null": b"null",
    "reason is a number": b'{"reason": 5}',
    "reason is a list": b'{"reason": ["a"]}',
    "reason is an object": b'{"reason": {}}',
    "something behind": b'{"reason": "a"} x',
    "two objects": b'{"reason": "a"}{"reason": "b"}',
    "twice the same": b'{"reason": "a", "reason": "b"}',
    "bad UTF-8": b'{"reason": "\xff\xfe"}',
    "half a surrogate": b'{"reason": "\\ud800"}',
    "raw control character": b'{"reason": "a\x01b"}',
    "single quotes": b"{'reason': 'a'}",
    "comma at the end": b'{"reason": "a",}',
    "comment": b'{"reason": "a" /* b */}',
    "NaN": b'{"reason": NaN}',
    "UTF-16": '{"reason": "a"}'.encode("utf-16"),
    "deep": b"[" * 5000 + b"]" * 5000,
    "deep in reason": b'{"reason": ' + b"[" * 3000 + b"]" * 3000 + b"}",
}.items():
    for call in (b"quarantine", b"replace"):
        case(
            "body of %s: %s" % (call.decode(), name),
            admin(b"POST", b"sandboxes/{free}/" + call, b"Content-Type: application/json\r\n", body),
            BAD | BODY_LARGE if "deep" in name else BAD,
        )

for name, headers in {"none": b"", "empty": b"X-Track-ID: \r\n", "with blanks": b"X-Track-ID: a b\r\n", "twice": b"X-Track-ID: a\r\nX-Track-ID: b\r\n"}.items():
    case("claim for a track: " + name, admin(b"POST", b"allocate", headers), BAD_OWNER)
for query in (b"need=x", b"need=-1", b"need=", b"at=noon", b"at=%00", b"need=1&need=2", b"when=1"):
    case("forecast: " + query.decode(), admin(b"GET", b"forecast?" + query), BAD)


@pytest.fixture(scope="module")
def server(make_for_module):
    return make_for_module.server(12)


@pytest.fixture(scope="module")
def watcher(server):
    """One client for all, what it saw before, and a free sandbox to aim at."""
    admin_client = server.admin()
    return (
        admin_client,
        look(admin_client),
        admin_client.list("?status=available&limit=1").json["sandboxes"][0]["sandbox_id"],
    )


def look(client):
    return client.stats(), client.list("?limit=100").body


def test_there_are_at_least_100_cases():
    assert len(CASES) >= 100
    names = [c.id for c in CASES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("raw,allowed,closes", CASES)
def test_malformed(server, watcher, raw, allowed, closes):
    client, before, free = watcher
    reply, conn = exchange(server.address, raw.replace(b"{free}", free.encode()))
    try:
        assert reply is not None, "closed without an answer"
        got = (reply.status, reply.code)
        assert got in allowed, reply
        assert reply.error["request_id"] == reply.header("x-request-id")
        assert reply.header("x-content-type-options") == "nosniff"
        assert TRACK_TOKEN not in reply.body.decode() and ADMIN_TOKEN not in reply.body.decode()
        if closes:
            assert reply.header("connection", "").lower() == "close"
            assert conn.is_closed_by_peer()
    finally:
        conn.close()
    assert look(client) == before, "the pool changed"
    assert server.is_alive()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\r\n",
        b"\r\n\r\n",
        b"P",
        b"POST /v1/allocate HTTP/1.1\r\nHost: x\r\n",
        claim(b"Content-Length: 50\r\n", tail=b"half"),
        claim(b"Transfer-Encoding: chunked\r\n", tail=b"5\r\nhe"),
        claim(b"Content-Length: 0\r\n")[:-1],
        b"\x00" * 100,
    ],
    ids=range(9),
)
def test_a_client_that_stops_halfway_does_no_harm(server, watcher, raw):
    client, before, _ = watcher
    reply, conn = exchange(server.address, raw, half_close=True)
    conn.close()
    assert reply is None or reply.status in (400, 408)
    assert look(client) == before
    assert server.is_alive()


def test_what_follows_a_refused_request_is_not_served(server, watcher):
    """The classic smuggling: a second request hidden behind an ambiguous length."""
    client, before, _ = watcher
    hidden = claim(NO_BODY)
    for header in (
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 0\r\nContent-Length: %d\r\n" % len(hidden),
        b"Transfer-Encoding: xchunked\r\n",
        b"Content-Length : 0\r\n",
    ):
        reply, conn = exchange(
            server.address, b"POST /nowhere HTTP/1.1\r\n" + HOST + header + b"\r\n" + b"0\r\n\r\n" + hidden
        )
        assert reply.status == 400
        assert conn.is_closed_by_peer()
        conn.close()
    assert look(client) == before


def test_a_body_is_not_read_as_the_next_request(server, watcher):
    client, before, _ = watcher
    hidden = claim(NO_BODY)
    reply, conn = exchange(
        server.address, b"GET /nowhere HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(hidden) + hidden
    )
    assert reply.status in (400, 404, 413)
    conn.sock.settimeout(0.3)
    try:
        second = conn.reply()
    except (Broken, OSError):
        second = None
    conn.close()
    assert second is None
    assert look(client) == before
