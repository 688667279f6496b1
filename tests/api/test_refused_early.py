# SPDX-License-Identifier: Apache-2.0
"""Requests that are refused before anything is asked of the store: nothing of a request may be touched once it is answered. A server with sanitizers sees it
(make check-tsan-server, make fuzz-api); from outside, the next request is answered as well as the first."""

import pytest

from lib import leases
from lib.leases import Pool

LONG = "%C3%BC" * 1200  # more than one block of memory


@pytest.fixture(scope="module")
def pool(make_for_module):
    return Pool(make_for_module.server(1, args=["--dev"], **leases.env(make_for_module.folder)))


def test_a_replacement_with_a_bad_header(pool):
    admin = pool.server.admin()
    for header in ("Idempotency-Key", "X-Instruqt-Track-ID", "X-Sandbox-Name-Prefix"):
        for _ in range(3):
            reply = admin.on(LONG, "replace", headers={header: "x" * 300})
            assert reply.status == 400 and header in reply.body.decode(), reply
    assert admin.on("sb-1", "replace").status == 404


def test_a_cleanup_of_an_account_with_a_bad_id(pool):
    for _ in range(3):
        assert pool.admin.fields("POST", "/accounts/%s/retryCleanup" % LONG) == ["awsAccountId"]
    assert pool.admin.errors("POST", "/accounts/111122223333/retryCleanup", status=404)


def test_a_page_of_a_list_that_did_not_give_the_token(pool):
    for path in ("/leases", "/accounts", "/leaseTemplates"):
        assert pool.admin.fields("GET", path + "?pageSize=1&pageIdentifier=" + LONG) == ["pageIdentifier"]
        assert pool.admin.data("GET", path + "?pageSize=1")["result"] is not None


def test_a_body_of_another_type_is_answered_as_the_description_says(pool):
    lease = leases.lease_id("user@example.com", "01a1edc7-b3e0-7000-a443-525929a44edb")
    for path, methods in pool.server.admin().get("/v1/openapi.json").json["paths"].items():
        for method in {"post", "put", "patch"} & set(methods) if path.startswith("/api/leases/{leaseId}/") else ():
            reply = pool.admin.request(method.upper(), path.replace("{leaseId}", lease), body=b"because", headers={"Content-Type": "text/plain"})
            assert str(reply.status) in methods[method]["responses"], (method, path, reply)
