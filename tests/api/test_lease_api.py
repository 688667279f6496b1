# SPDX-License-Identifier: Apache-2.0
"""Leases and templates under /api: the ten facts that break a client, the routes, their hazards, strict bodies."""

import base64
import json
import re
import urllib.parse
import uuid

import pytest

from lib import leases
from lib.leases import MANAGER, USER, Api, Pool, lease_id, nowhere

HEADERS = {
    "content-type": "application/json",
    "origin-agent-cluster": "?1",
    "referrer-policy": "no-referrer",
    "strict-transport-security": "max-age=15552000; includeSubDomains; preload",
    "x-content-type-options": "nosniff",
    "x-dns-prefetch-control": "off",
    "x-download-options": "noopen",
    "x-permitted-cross-domain-policies": "none",
    "cache-control": "no-store, no-cache",
}


@pytest.fixture(scope="module")
def pool(make_for_module):
    return Pool(make_for_module.server(args=["--dev"], **leases.env(make_for_module.folder)))


def url_safe(lease):
    return base64.urlsafe_b64encode(base64.b64decode(lease["leaseId"])).decode().rstrip("=")


# The ten facts.


def test_fact_1_the_base_is_api_and_unknown_paths_are_403(pool):
    assert pool.user.call("GET", "/configurations").status == 200
    for method, path in [("GET", "/nothing"), ("GET", ""), ("GET", "/"), ("DELETE", "/leases"), ("PUT", "/accounts"), ("GET", "/leases/a/b/c/d/e/f/g/h/i")]:
        reply = pool.admin.call(method, path)
        assert reply.status == 403 and reply.json == {"message": "Missing Authentication Token"}, (method, path, reply)
        assert reply.header("cache-control") == "no-store, no-cache"


def test_fact_2_every_answer_is_an_envelope_and_never_empty(pool):
    lease = pool.pending(pool.person())
    template = pool.template()
    for caller, method, path, body in [
        (pool.user, "GET", "/configurations", None),
        (pool.manager, "GET", "/leases", None),
        (pool.manager, "POST", "/leases/%s/review" % lease["leaseId"], {"action": "Deny"}),
        (pool.manager, "DELETE", "/leaseTemplates/" + template["uuid"], None),
    ]:
        reply = caller.call(method, path, body)
        assert reply.status == 200 and reply.json["status"] == "success" and "data" in reply.json, reply
    assert pool.manager.call("GET", "/leases/" + nowhere(USER)).json["status"] == "fail"


@pytest.mark.parametrize("path", ["/leases", "/leaseTemplates", "/accounts"])
def test_fact_3_the_last_page_has_an_explicit_null(pool, path):
    data = pool.admin.data("GET", path)
    assert "nextPageIdentifier" in data
    pool.admin.everything(path, 2000)  # ends


def test_fact_4_page_tokens_are_safe_in_a_url(pool):
    for _ in range(3):
        pool.pending(pool.person())
    data = pool.manager.data("GET", "/leases?pageSize=1")
    assert re.fullmatch(r"[A-Za-z0-9_-]+", data["nextPageIdentifier"])
    listed = [l["uuid"] for l in pool.manager.everything("/leases", 2)]
    assert len(listed) == len(set(listed)) >= 3


def test_fact_5_a_lease_id_is_base64_of_a_compact_json_in_every_dress(pool):
    owner = pool.person()
    lease = pool.pending(owner)
    padded = lease["leaseId"]
    assert json.loads(base64.b64decode(padded, validate=True)) == {"userEmail": lease["userEmail"], "uuid": lease["uuid"]}
    assert base64.b64decode(padded).startswith(b'{"userEmail":"') and b" " not in base64.b64decode(padded)
    assert len(padded) % 4 == 0
    for form in (padded, padded.rstrip("="), url_safe(lease), urllib.parse.quote(padded, safe=""),
                 "".join("%%%02X" % ord(c) for c in padded)):
        assert owner.data("GET", "/leases/" + form)["uuid"] == lease["uuid"], form
        assert pool.manager.data("GET", "/leases/" + form)["leaseId"] == padded


@pytest.mark.parametrize("bad", ["x", "!!!!", "bm90IGpzb24=", "e30=", base64.b64encode(b'{"userEmail":"a","uuid":"b"}').decode(),
                                 base64.b64encode(b'{"userEmail":"a@example.com","uuid":"b"}').decode(), "%41"])
def test_fact_5_what_is_no_lease_id_is_400(pool, bad):
    assert pool.manager.errors("GET", "/leases/" + bad, status=400)


def test_fact_6_the_login_state_is_no_envelope_and_always_200(pool):
    out = pool.server.client().get("/api/auth/login/status")
    assert out.status == 200 and out.json["authenticated"] is False and out.json["message"], out
    inside = pool.user.call("GET", "/auth/login/status").json
    assert inside["authenticated"] is True and inside["session"]["user"]["email"] == USER
    assert inside["session"]["user"]["roles"] == ["User"] and inside["session"]["exp"] > inside["session"]["iat"]


def test_fact_7_login_leads_somewhere_and_its_token_is_a_bearer(pool):
    reply = pool.server.client().get("/api/auth/login")
    assert reply.status == 302 and reply.header("location"), reply
    assert pool.user.call("GET", "/configurations").status == 200
    assert pool.server.client().get("/api/configurations").status == 401


def test_fact_8_roles_come_from_the_token_in_exact_case(pool):
    assert Api(pool.server, USER, "Admin").call("GET", "/accounts").status == 200
    assert Api(pool.server, USER, "User").call("GET", "/accounts").status == 403
    assert Api(pool.server, USER, "ADMIN").call("GET", "/accounts").status in (400, 403)


def times_of(value):
    if isinstance(value, dict):
        return [t for k, v in value.items() for t in ([v] if re.search("(Date|Time|AsOf|Since)$", k) and isinstance(v, str) else times_of(v))]
    return [t for v in value for t in times_of(v)] if isinstance(value, list) else []


def test_fact_9_times_are_utc_with_a_z(pool):
    lease = pool.active(pool.person())
    found = times_of(lease) + times_of(pool.template()) + times_of(pool.admin.data("GET", "/accounts"))
    assert len(found) > 6
    for text in found:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", text), text


def test_fact_9_other_forms_of_time_are_refused(pool):
    lease = pool.active(pool.person())
    for bad in ("2026-12-01T00:00:00+00:00", "2026-12-01", "2026-12-01T00:00:00", "2026-13-01T00:00:00Z", 5, ""):
        assert pool.manager.fields("PATCH", "/leases/" + lease["leaseId"], {"expirationDate": bad}) == ["expirationDate"]


def test_fact_10_errors_have_a_field_and_a_message(pool):
    errors = pool.user.errors("POST", "/leases", {"leaseTemplateUuid": "x"})
    assert list(errors[0]) == ["field", "message"] and errors[0]["field"] == "leaseTemplateUuid"
    errors = pool.user.errors("POST", "/leases", {"leaseTemplateUuid": str(uuid.uuid4())}, 404)
    assert list(errors[0]) == ["message"]


# Conventions.


@pytest.mark.parametrize("path,status", [("/configurations", 200), ("/leases", 403), ("/leases/x", 400), ("/nothing", 403)])
def test_the_headers_are_on_every_answer(pool, path, status):
    reply = pool.user.call("GET", path)
    assert reply.status == status, reply
    for name, value in HEADERS.items():
        assert reply.all(name) == [value], name


def test_an_answer_without_a_token_has_them_too(pool):
    reply = pool.server.client().get("/api/leases")
    assert reply.status == 401
    for name, value in HEADERS.items():
        assert reply.all(name) == [value], name


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "application/vnd.x+json", "APPLICATION/JSON", None])
def test_media_types_that_are_json(pool, kind):
    headers = {"Content-Type": kind} if kind else None
    reply = pool.user.call("POST", "/leases", json.dumps({}).encode(), headers=headers)
    assert reply.status == 400, reply


@pytest.mark.parametrize("body,kind", [(b"{}", "text/plain"), (b"{}", "application/xml"), (b"{}", "application/jsonx"), (None, "application/json"),
                                       (b"{", "application/json"), (b"", "application/json"), (b'{"a":1,"a":2}', "application/json")])
def test_what_is_no_json_is_415_with_one_error(pool, body, kind):
    assert len(pool.user.errors("POST", "/leases", body, 415, headers={"Content-Type": kind})) == 1


@pytest.mark.parametrize("body", [b"[]", b"3", b'"x"', b"null"])
def test_a_body_that_is_no_object_is_at_fault_as_a_whole(pool, body):
    assert pool.user.fields("POST", "/leases", body) == ["input"]


def test_a_type_on_calls_without_a_body_is_no_matter(pool):
    lease = pool.active(pool.person())
    reply = pool.manager.call("POST", "/leases/%s/freeze" % lease["leaseId"], headers={"Content-Type": "application/json"})
    assert reply.status == 200 and reply.json == {"status": "success", "data": pool.freeze_answer}, reply


def test_the_rate_limit_is_per_person_and_an_envelope(make):
    pool = Pool(make.server(args=["--dev"], LEASEHOLD_RATE_LIMIT_PER_SEC="1", LEASEHOLD_RATE_LIMIT_BURST="3", **leases.env(make.folder)))
    replies = [pool.user.call("GET", "/configurations") for _ in range(8)]
    limited = [r for r in replies if r.status == 429]
    assert limited and limited[0].json["data"]["errors"][0]["message"] and int(limited[0].header("retry-after")) >= 1
    assert pool.admin.call("GET", "/configurations").status == 200


# Asking.


@pytest.mark.parametrize(
    "body,fields",
    [
        ({}, ["leaseTemplateUuid"]),
        ({"leaseTemplateUuid": "x", "comments": None, "userEmail": "a@localhost", "y": 1, "z": 2}, ["comments", "input", "input", "leaseTemplateUuid", "userEmail"]),
        ({"leaseTemplateUuid": None, "comments": "x" * 1001}, ["comments", "leaseTemplateUuid"]),
        ({"leaseTemplateUuid": 5, "userEmail": "a..b@example.com"}, ["leaseTemplateUuid", "userEmail"]),
    ],
)
def test_every_problem_of_a_request_at_once(pool, body, fields):
    assert pool.user.fields("POST", "/leases", body) == fields


def test_a_pending_request(pool):
    person = pool.person()
    template = pool.template(budgetThresholds=[{"dollarsSpent": 20.5, "action": "ALERT"}], durationThresholds=[])
    lease = person.data("POST", "/leases", {"leaseTemplateUuid": template["uuid"], "comments": "Ü?"}, 201)
    assert lease["status"] == "PendingApproval" and lease["comments"] == "Ü?"
    assert lease["approvedBy"] is None and lease["awsAccountId"] is None and lease["totalCostAccrued"] == 0
    assert lease["leaseId"] == lease_id(lease["userEmail"], lease["uuid"])
    assert lease["userEmail"].startswith("Person-") and lease["createdBy"].lower() == person.email
    assert (lease["maxSpend"], lease["leaseDurationInHours"]) == (40, 24)
    assert lease["budgetThresholds"] == [{"dollarsSpent": 20.5, "action": "ALERT"}]
    shown = person.data("GET", "/leases/" + lease["leaseId"])
    assert not [k for k, v in shown.items() if v is None] and "awsAccountId" not in shown


def test_an_unknown_target_is_404(pool):
    body = {"leaseTemplateUuid": pool.template()["uuid"], "userEmail": "stranger@example.com"}
    assert pool.manager.errors("POST", "/leases", body, 404)
    stranger = Api(pool.server, "stranger@example.com", "User")
    assert stranger.errors("POST", "/leases", {"leaseTemplateUuid": body["leaseTemplateUuid"]}, 404)


def test_an_assignment_is_approved_at_once(pool):
    person = pool.person()
    body = {"leaseTemplateUuid": pool.template()["uuid"], "userEmail": person.email}
    lease = pool.manager.data("POST", "/leases", body, 201)
    assert lease["status"] in ("Provisioning", "Active") and re.fullmatch(r"\d{12}", lease["awsAccountId"])
    assert lease["startDate"] and lease["lastCheckedDate"] and lease["createdBy"] == MANAGER
    active = pool.until_status(lease, "Active")
    assert active["expirationDate"] > active["startDate"]


def test_a_template_without_approval_is_approved_by_rule(pool):
    person = pool.person()
    lease = person.data("POST", "/leases", {"leaseTemplateUuid": pool.template(requiresApproval=False)["uuid"]}, 201)
    assert lease["approvedBy"] == "AUTO_APPROVED"


def test_nobody_has_more_than_he_may(pool):
    person = pool.person()
    most = pool.user.data("GET", "/configurations")["leases"]["maxLeasesPerUser"]
    held = [pool.pending(person) for _ in range(most)]
    body = {"leaseTemplateUuid": pool.template()["uuid"]}
    assert person.errors("POST", "/leases", body, 409)
    pool.manager.data("POST", "/leases/%s/review" % held[0]["leaseId"], {"action": "Deny"})
    assert person.data("POST", "/leases", body, 201)["status"] == "PendingApproval"


def test_leases_that_end_before_a_time(pool):
    person = pool.person()
    soon, late = pool.active(person, leaseDurationInHours=2), pool.active(person, leaseDurationInHours=24)
    over, asked = pool.active(person, leaseDurationInHours=1), None
    pool.manager.data("POST", "/leases/%s/terminate" % over["leaseId"])
    asked = pool.pending(person)

    def before(time, more=""):
        got = person.data("GET", "/leases?userEmail=%s&expiresBefore=%s%s" % (person.email, time, more))["result"]
        return sorted(lease["uuid"] for lease in got)

    assert before(late["expirationDate"]) == [soon["uuid"]], "not the ended one, nor the one without an end yet"
    assert before("2099-01-01T00:00:00Z") == sorted([soon["uuid"], late["uuid"]]) and asked
    assert before("2099-01-01T00:00:00Z", "&status=Frozen") == []
    assert pool.manager.fields("GET", "/leases?expiresBefore=tomorrow-at-eight-oclock") == ["expiresBefore"]
    pool.manager.data("POST", "/leases/%s/terminate" % soon["leaseId"])
    pool.manager.data("POST", "/leases/%s/terminate" % late["leaseId"])


def test_lists_by_owner_and_status(pool):
    person, other = pool.person(), pool.person()
    mine = [pool.pending(person)["uuid"] for _ in range(2)]
    pool.pending(other)
    got = person.everything("/leases?userEmail=" + urllib.parse.quote(person.email.upper()), 1)
    assert sorted(l["uuid"] for l in got) == sorted(mine) and all(l["leaseId"] for l in got)
    twice = urllib.parse.quote(urllib.parse.quote(person.email))
    assert len(person.data("GET", "/leases?userEmail=" + twice)["result"]) == 2
    assert pool.manager.fields("GET", "/leases?userEmail=x&pageSize=0&status=y") == ["pageSize", "status", "userEmail"]
    assert {l["status"] for l in pool.manager.everything("/leases?status=PendingApproval", 50)} == {"PendingApproval"}


# Review.


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize(
    "body,status",
    [
        ({"action": "Approve"}, "Provisioning"),
        ({"action": "Approve", "approverEmail": "whoever@example.com"}, "Provisioning"),
        ({"decision": "approve"}, "Provisioning"),
        ({"action": "Deny"}, "ApprovalDenied"),
        ({"decision": "deny", "reason": "too dear"}, "ApprovalDenied"),
        ({"decision": "deny", "action": "Deny"}, "ApprovalDenied"),
    ],
)
def test_a_review_answers_with_id_and_status(pool, method, body, status):
    lease = pool.pending(pool.person())
    path = "/leases/%s/review" % lease["leaseId"]
    assert pool.manager.data(method, path, body) == {"leaseId": lease["leaseId"], "status": status}
    shown = pool.show(lease)
    if status == "ApprovalDenied":
        assert shown["deniedBy"] == MANAGER and shown["denyReason"] == body.get("reason", "Request denied by manager") and shown["ttl"] > 0
    else:
        assert shown["approvedBy"] == MANAGER
        pool.manager.call("POST", "/leases/%s/terminate" % lease["leaseId"])
    assert pool.manager.errors(method, path, body, 409)


@pytest.mark.parametrize(
    "body,fields",
    [
        ({}, ["action"]),
        ({"action": "approve"}, ["action"]),
        ({"decision": "Approve"}, ["decision"]),
        ({"action": "Approve", "decision": "deny"}, ["decision"]),
        ({"action": "Deny", "reason": 5, "x": 1}, ["input", "reason"]),
    ],
)
def test_bad_reviews(pool, body, fields):
    assert pool.manager.fields("POST", "/leases/%s/review" % nowhere(USER), body) == fields


def test_who_is_approved_without_a_free_account_waits_in_line(make):
    pool = Pool(make.server(args=["--dev"], **leases.env(make.folder)))
    for account in pool.admin.everything("/accounts", 100):
        pool.admin.call("POST", "/accounts/%s/eject" % account["awsAccountId"])
    waiting = [pool.pending(pool.person()) for _ in range(2)]
    for place, lease in enumerate(waiting, 1):
        path = "/leases/%s/review" % lease["leaseId"]
        assert pool.manager.data("POST", path, {"action": "Approve"})["status"] == "Provisioning"
        shown = pool.show(lease)
        assert shown["status"] == "Provisioning" and shown["queuePosition"] == place and shown["queuedSince"]
        assert shown["approvedBy"] == MANAGER and "awsAccountId" not in shown and shown["startDate"]
        assert pool.manager.errors("POST", path, {"action": "Approve"}, 409)
        assert pool.manager.errors("POST", path, {"action": "Deny", "reason": "no"}, 409)
    by_rule = pool.pending(pool.person(), requiresApproval=False)
    assert by_rule["status"] == "Provisioning" and by_rule["approvedBy"] == "AUTO_APPROVED" and "awsAccountId" not in by_rule
    pool.manager.call("POST", "/leases/%s/terminate" % by_rule["leaseId"])
    undecided = pool.pending(pool.person())
    ids = [lease["uuid"] for lease in waiting]
    for size in (1, 100):
        assert [l["uuid"] for l in pool.admin.everything("/leases?status=PendingApproval", size)] == [undecided["uuid"]]
        for status in ("Provisioning", "InLine"):
            assert sorted(l["uuid"] for l in pool.admin.everything("/leases?status=" + status, size)) == sorted(ids)
    of_owner = "/leases?userEmail=%s&status=" % waiting[0]["userEmail"]
    assert [len(pool.admin.everything(of_owner + s, 100)) for s in ("PendingApproval", "Provisioning", "InLine")] == [0, 1, 1]
    counted = pool.server.admin().get("/v1/ops/overview").json["leases"]
    assert counted["by_status"]["PendingApproval"] == 1 and counted["in_line"] == 2
    owner = Api(pool.server, waiting[0]["userEmail"], "User")
    assert owner.data("POST", "/leases/%s/withdraw" % waiting[0]["leaseId"])["leaseId"] == waiting[0]["leaseId"]
    assert pool.show(waiting[1])["queuePosition"] == 1
    assert pool.manager.call("POST", "/leases/%s/terminate" % waiting[1]["leaseId"]).status == 200
    assert pool.show(waiting[1])["status"] == "ApprovalDenied" and not pool.admin.everything("/leases?status=InLine", 100)
    assert pool.server.stop() == 0


# A running lease.


def test_freeze_unfreeze_terminate(pool):
    lease = pool.active(pool.person())
    path = "/leases/" + lease["leaseId"]
    assert pool.manager.errors("POST", path + "/unfreeze", status=409)
    assert pool.manager.call("POST", path + "/freeze").json == {"status": "success", "data": pool.freeze_answer}
    assert pool.manager.errors("POST", path + "/freeze", status=409)
    assert pool.show(lease)["status"] == "Frozen"
    back = pool.manager.data("POST", path + "/unfreeze")
    assert back["status"] == "Active" and back["leaseId"] == lease["leaseId"]
    assert pool.manager.call("POST", path + "/terminate").json == {"status": "success", "data": None}
    ended = pool.show(lease)
    assert ended["status"] == "ManuallyTerminated" and ended["terminatedBy"] == MANAGER
    assert ended["endDate"] and ended["ttl"] > 0 and ended["totalCostAccrued"] >= 0
    for action in ("terminate", "freeze", "unfreeze"):
        assert pool.manager.errors("POST", "%s/%s" % (path, action), status=409)


def test_a_pending_lease_is_not_frozen_or_ended(pool):
    lease = pool.pending(pool.person())
    for action in ("terminate", "freeze", "unfreeze"):
        assert pool.manager.errors("POST", "/leases/%s/%s" % (lease["leaseId"], action), status=409)


def test_a_change_of_an_ended_or_pending_lease_is_400_not_409(pool):
    pending = pool.pending(pool.person())
    assert pool.manager.errors("PATCH", "/leases/" + pending["leaseId"], {"maxSpend": 5}, 400)
    ended = pool.active(pool.person())
    pool.manager.data("POST", "/leases/%s/terminate" % ended["leaseId"])
    assert pool.manager.errors("PATCH", "/leases/" + ended["leaseId"], {}, 400)
    assert pool.manager.errors("PATCH", "/leases/" + nowhere(USER), {}, 404)


def test_changes(pool):
    lease = pool.active(pool.person())
    path = "/leases/" + lease["leaseId"]
    assert pool.manager.data("PATCH", path, {})["maxSpend"] == 40
    pair = {"maxSpend": 50, "budgetThresholds": [{"dollarsSpent": 30.25, "action": "FREEZE_ACCOUNT"}]}
    got = pool.manager.data("PATCH", path, pair)
    assert (got["maxSpend"], got["budgetThresholds"]) == (50, pair["budgetThresholds"])
    end = lease["startDate"][:10] + "T23:59:59Z"
    pair = {"expirationDate": end, "durationThresholds": [{"hoursRemaining": 1.5, "action": "ALERT"}]}
    got = pool.manager.data("PATCH", path, pair)
    assert (got["expirationDate"], got["durationThresholds"]) == (end, pair["durationThresholds"])
    assert got["leaseDurationInHours"] == 24 and got["maxSpend"] == 50
    assert pool.manager.data("PATCH", path, {"budgetThresholds": []}).get("budgetThresholds", []) == []


def test_changes_over_the_limits_are_400(pool):
    lease = pool.active(pool.person())
    path = "/leases/" + lease["leaseId"]
    assert pool.manager.errors("PATCH", path, {"maxSpend": 51})
    assert pool.manager.errors("PATCH", path, {"maxSpend": None})
    assert pool.manager.errors("PATCH", path, {"expirationDate": "2099-01-01T00:00:00Z"})
    assert pool.manager.errors("PATCH", path, {"costReportGroup": "nobody's"})
    assert pool.show(lease)["maxSpend"] == 40


@pytest.mark.parametrize(
    "body,fields",
    [
        ({"maxSpend": 0}, ["maxSpend"]),
        ({"maxSpend": "5"}, ["maxSpend"]),
        ({"maxSpend": -1, "costReportGroup": "", "leaseId": 1}, ["costReportGroup", "input", "maxSpend"]),
        ({"budgetThresholds": None, "durationThresholds": {}}, ["budgetThresholds", "durationThresholds"]),
        ({"budgetThresholds": [{"dollarsSpent": 5, "action": "EXPLODE"}]}, ["budgetThresholds.0.action"]),
        ({"budgetThresholds": [{"dollarsSpent": 5}, {"action": "ALERT"}]}, ["budgetThresholds.0.action", "budgetThresholds.1.dollarsSpent"]),
        ({"budgetThresholds": [3, {"dollarsSpent": 5, "action": "ALERT", "x": 1}]}, ["budgetThresholds.0", "budgetThresholds.1"]),
        ({"durationThresholds": [{"hoursRemaining": 0, "action": "ALERT"}]}, ["durationThresholds.0.hoursRemaining"]),
        ({"durationThresholds": [{"hoursRemaining": 1, "action": "ALERT"}] * 21}, ["durationThresholds"]),
        ({"budgetThresholds": [{"percentage": 101}, {"percentage": 5, "dollarsSpent": 1}]}, ["budgetThresholds.0.percentage", "budgetThresholds.1.percentage"]),
    ],
)
def test_every_problem_of_a_change_at_once(pool, body, fields):
    assert pool.manager.fields("PATCH", "/leases/" + nowhere(USER), body) == fields


def test_thresholds_in_the_other_form_are_converted(pool):
    lease = pool.active(pool.person())
    body = {"budgetThresholds": [{"percentage": 75}, {"percentage": 90, "action": "FREEZE_ACCOUNT"}], "durationThresholds": [{"remainingHours": 4}]}
    got = pool.manager.data("PATCH", "/leases/" + lease["leaseId"], body)
    assert got["budgetThresholds"] == [{"dollarsSpent": 30, "action": "ALERT"}, {"dollarsSpent": 36, "action": "FREEZE_ACCOUNT"}]
    assert got["durationThresholds"] == [{"hoursRemaining": 4, "action": "ALERT"}]
    got = pool.manager.data("PATCH", "/leases/" + lease["leaseId"], {"maxSpend": 20, "budgetThresholds": [{"percentage": 12.5}]})
    assert got["budgetThresholds"] == [{"dollarsSpent": 2.5, "action": "ALERT"}]


def test_numbers_have_no_noise(pool):
    template = pool.template(maxSpend=0.1, leaseDurationInHours=0.7, budgetThresholds=[{"dollarsSpent": 0.3, "action": "ALERT"}])
    raw = pool.manager.call("GET", "/leaseTemplates/" + template["uuid"]).body.decode()
    assert '"maxSpend":0.1,' in raw and '"leaseDurationInHours":0.7,' in raw and '"dollarsSpent":0.3,' in raw


# Templates.


def test_a_template_as_the_web_pages_send_it(pool):
    body = {"name": "web", "description": "", "requiresApproval": True, "visibility": "PRIVATE", "maxSpend": 10, "budgetThresholds": [],
            "leaseDurationInHours": 8, "durationThresholds": []}
    made = pool.manager.data("POST", "/leaseTemplates", body, 201)
    assert made["createdBy"] == MANAGER and made["visibility"] == "PRIVATE" and made["blueprintName"] is None
    back = {k: v for k, v in made.items() if k not in ("uuid", "blueprintName")}
    got = pool.admin.data("PUT", "/leaseTemplates/" + made["uuid"], {**back, "name": "web 2"})
    assert got["name"] == "web 2" and got["uuid"] == made["uuid"]
    assert got["meta"]["createdTime"] == made["meta"]["createdTime"] and got["createdBy"] == MANAGER
    assert pool.admin.fields("PUT", "/leaseTemplates/" + made["uuid"], {k: v for k, v in back.items() if k != "createdBy"}) == ["createdBy"]
    forged = pool.admin.data("PUT", "/leaseTemplates/" + made["uuid"], {**back, "createdBy": "somebody.else@example.com"})
    assert forged["createdBy"] == MANAGER, "who made a template is not for a body to say"


def test_a_template_is_found_by_name_too(pool):
    template = pool.template(name="By Name %s" % uuid.uuid4().hex[:6])
    assert pool.user.data("GET", "/leaseTemplates/" + urllib.parse.quote(template["name"]))["uuid"] == template["uuid"]


def test_lengths_are_in_characters(pool):
    template = pool.template(name="ü" * 50, description="日" * 1000)
    person = pool.person()
    lease = person.data("POST", "/leases", {"leaseTemplateUuid": template["uuid"], "comments": "ß" * 1000}, 201)
    assert (lease["originalLeaseTemplateName"], lease["comments"]) == ("ü" * 50, "ß" * 1000)
    denial = {"action": "Deny", "reason": "é" * 1000}
    pool.manager.data("POST", "/leases/%s/review" % lease["leaseId"], denial)
    assert pool.show(lease)["denyReason"] == denial["reason"]
    assert person.fields("POST", "/leases", {"leaseTemplateUuid": template["uuid"], "comments": "ß" * 1001}) == ["comments"]


def test_visibility_is_public_by_default(pool):
    assert pool.template(visibility=None)["visibility"] == "PUBLIC"


@pytest.mark.parametrize(
    "change,fields",
    [
        ({"name": ""}, ["name"]),
        ({"name": "x" * 51, "description": "x" * 1001, "requiresApproval": "yes", "visibility": "SECRET"}, ["description", "name", "requiresApproval", "visibility"]),
        ({"uuid": "x", "blueprintName": "y", "createdBy": "a@example.com"}, ["input", "input", "input"]),
        ({"maxSpend": 0, "leaseDurationInHours": -1, "costReportGroup": None, "meta": []}, ["costReportGroup", "leaseDurationInHours", "maxSpend", "meta"]),
        ({"blueprintId": "x", "budgetThresholds": [{}]}, ["blueprintId", "budgetThresholds.0.action", "budgetThresholds.0.dollarsSpent"]),
    ],
)
def test_every_problem_of_a_template_at_once(pool, change, fields):
    body = {"name": "t", "requiresApproval": True, "maxSpend": 10, "leaseDurationInHours": 8, **change}
    assert pool.manager.fields("POST", "/leaseTemplates", body) == fields


def test_templates_keep_to_the_limits(pool):
    good = {"name": "t", "requiresApproval": True, "maxSpend": 10, "leaseDurationInHours": 8}
    for change in ({"maxSpend": 50.01}, {"leaseDurationInHours": 168.5}, {"costReportGroup": "nobody's"}):
        assert pool.manager.errors("POST", "/leaseTemplates", {**good, **change})
    without = {k: v for k, v in good.items() if k not in ("maxSpend", "leaseDurationInHours")}
    assert len(pool.manager.errors("POST", "/leaseTemplates", without)) == 2


def test_a_removed_template_is_gone_and_removing_it_again_is_fine(pool):
    person = pool.person()
    template = pool.template()
    lease = person.data("POST", "/leases", {"leaseTemplateUuid": template["uuid"]}, 201)
    for _ in range(2):
        assert pool.manager.call("DELETE", "/leaseTemplates/" + template["uuid"]).json == {"status": "success", "data": None}
    assert pool.manager.errors("GET", "/leaseTemplates/" + template["uuid"], status=404)
    assert pool.show(lease)["originalLeaseTemplateUuid"] == template["uuid"]
