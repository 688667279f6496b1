# SPDX-License-Identifier: Apache-2.0
"""Tenants' instances by HTTP: each route, the forms of its answers, what is refused and how; on the simulated cloud. tests/aws/test_instances_on_aws.py has the
same on AWS."""

import json

import pytest

from lib import jwt
from lib.ops import Ops
from lib.server import ADMIN_TOKEN, TRACK_TOKEN, run
from lib.sites import SimSites, admin
from lib.wait import until

ACME = {"organizationName": "Acme", "contactEmail": "it@acme.example"}


class Tenant:
    """One tenant's routes, as an administrator sees them."""

    def __init__(self, server, tenant, token=ADMIN_TOKEN):
        self.tenant = tenant
        self.client = server.client({"Authorization": "Bearer " + token})
        self.base = "/v1.0/tenants/%s/instances" % tenant

    def call(self, method, path="", body=None, **headers):
        return self.client.request(method, self.base + path, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def create(self, body=None, **headers):
        got = self.call("POST", "", body or ACME, **headers)
        assert got.status == 202, got.body
        return got.json

    def show(self):
        got = self.client.get("/v1.0/tenants/-/instances/" + self.tenant)
        assert got.status == 200, got.body
        return got.json

    def reaches(self, status, timeout=180):
        until(lambda: self.show()["status"] == status, "%s is %s" % (self.tenant, status), timeout)
        return self.show()

    def active(self):
        self.create()
        return self.reaches("ACTIVE")

    def on(self, what, method="PUT", body=None):
        got = self.call(method, "/%s%s" % (self.show()["instanceId"], what), body)
        assert got.status == 202, got.body
        return got.json


@pytest.fixture(scope="module")
def sites():
    return SimSites()


@pytest.fixture(scope="module")
def server(sites, make_for_module):
    return sites.start(make_for_module)


@pytest.fixture
def tenant(server, request):
    return Tenant(server, "tenant-" + request.node.name.replace("_", "-")[:50].strip("-").lower())


def faults(server, *rules):
    server.sites.faults(server, *rules)


def resources(server, tenant):
    return server.sites.resources(server, tenant.tenant)


# --- off, and who may ---


def test_without_a_driver_there_is_nothing(make):
    server = make.server(count=1)
    for method, path in [("GET", ""), ("POST", ""), ("GET", "/inst-1"), ("GET", "/inst-1/status"), ("DELETE", "/inst-1")]:
        got = Tenant(server, "tenant-a").call(method, path, ACME if method == "POST" else None)
        assert got.status == 404 and "LEASEHOLD_INSTANCE_DRIVER" in got.json["error"]["message"]
    assert admin(server).get("/v1/ops/instances").status == 404
    assert admin(server).request("POST", "/v1/inbox/instances", body={}).status == 404


def test_an_unknown_driver_is_refused_at_the_start(make):
    server = make.server(start=False, LEASEHOLD_INSTANCE_DRIVER="minicomputer")
    got = run("config", env=server.env)
    assert got.returncode == 2 and "there is no driver 'minicomputer'" in got.stderr


def test_it_needs_an_administrator(server):
    got = Tenant(server, "tenant-x", TRACK_TOKEN).call("GET")
    assert got.status == 403 and got.json["error"]["code"] == "FORBIDDEN" and got.json["requestId"]
    got = server.client().get("/v1.0/tenants/tenant-x/instances")
    assert got.status == 401 and got.json["error"]["code"] == "UNAUTHORIZED"
    got = Tenant(server, "tenant-x", "nobody-knows-this-token").call("GET")
    assert got.status == 401 and got.json["error"]["code"] == "TOKEN_INVALID"
    got = server.client({"Authorization": "Bearer nobody-knows-this-token"}).get("/v1/ops/instances")
    assert got.status == 401 and got.json["error"]["code"] == "UNAUTHORIZED", "elsewhere as ever"


def test_a_session_that_has_ended_is_told_so(sites, make):
    server = sites.start(make, LEASEHOLD_JWT_SECRET=jwt.SECRET)
    good = Tenant(server, "tenant-x", jwt.token("ann@example.com", "Admin")).call("GET")
    assert good.status == 200, good.body
    got = Tenant(server, "tenant-x", jwt.token("ann@example.com", "Admin", lives=-60)).call("GET")
    assert got.status == 401 and got.json["error"]["code"] == "TOKEN_EXPIRED"


def test_the_callers_request_id_is_echoed(server, tenant):
    got = tenant.call("POST", "", ACME, X_Request_ID="Root=1-67891233-abcdef012345678912345678")
    assert got.status == 202 and got.header("X-Request-ID") == got.json["requestId"] == "Root=1-67891233-abcdef012345678912345678"
    got = tenant.call("GET", "/inst-none", X_Request_ID="mine.1")
    assert got.status == 404 and got.header("X-Request-ID") == got.json["requestId"] == "mine.1"
    told = Ops(server).events("type=InstanceOperationStarted&subject=instance/" + tenant.show()["instanceId"])
    assert told[0]["requestId"] == "Root=1-67891233-abcdef012345678912345678"
    for odd in ("x" * 65, "a b", 'say "x"', ""):
        got = tenant.call("GET", "/inst-none", X_Request_ID=odd)
        assert len(got.header("X-Request-ID")) == 36 and got.json["requestId"] == got.header("X-Request-ID"), odd
    got = server.client({"X-Request-ID": "mine.2"}).get("/v1.0/tenants/tenant-x/instances")
    assert got.status == 401 and got.header("X-Request-ID") == "mine.2"


# --- create, look ---


def test_it_is_provisioned_and_shown(server, tenant):
    answer = tenant.create({**ACME, "tier": "PROFESSIONAL", "configuration": {"desiredCount": 3, "wordpressVersion": "6.4"}})
    assert answer["status"] == "PROVISIONING" and answer["instanceId"].startswith("inst-") and answer["tenantId"] == tenant.tenant
    assert set(answer["_links"]) >= {"self", "collection", "status", "operation"}
    shown = tenant.reaches("ACTIVE")
    assert shown["configuration"] == {"desiredCount": 3, "wordpressVersion": "6.4", "phpVersion": "8.2"} and shown["tier"] == "PROFESSIONAL"
    assert shown["domain"] == server.sites.domain and shown["endpoint"].startswith(server.sites.endpoint)
    assert shown["tags"] == {"bbws:tenant-id": tenant.tenant, "bbws:managed-by": "leasehold"}
    assert set(shown["resources"]) == {"storage", "database", "secret", "route", "workers", "identity"}
    assert all(r["id"] and r["name"] for r in shown["resources"].values())
    assert shown["lastError"] is None and shown["operation"] is None
    for link in ("self", "status", "collection", "logs", "backups", "people"):
        assert tenant.client.get(shown["_links"][link]["href"]).status == 200, link
    status = tenant.call("GET", "/%s/status" % shown["instanceId"]).json
    assert (status["desiredCount"], status["runningCount"], status["healthStatus"], len(status["tasks"])) == (3, 3, "HEALTHY", 3)
    assert {n: status["_links"][n]["href"].split(shown["instanceId"])[1] for n in ("instance", "scale", "stop")} == {"instance": "", "scale": "/size", "stop": "/status"}
    assert status["tasks"][0]["cpu"] == 1024 and status["tasks"][0]["memory"] == 2048
    operation = tenant.client.get(answer["_links"]["operation"]["href"]).json
    assert operation["state"] == "SUCCEEDED" and operation["operation"] == "create" and operation["endedAt"]


def test_the_same_key_gets_the_same_answer(tenant):
    first, again = tenant.create(Idempotency_Key="k1"), tenant.create(Idempotency_Key="k1")
    assert first["operationId"] == again["operationId"]
    other = tenant.call("POST", "", {**ACME, "tier": "ENTERPRISE"}, Idempotency_Key="k1")
    assert other.status == 409 and other.json["error"]["code"] == "CONFLICT"
    assert tenant.call("POST", "", ACME).status == 409
    for key in ("x" * 200, "a\tb"):
        got = tenant.call("POST", "", ACME, Idempotency_Key=key)
        assert got.status == 400 and "at most 128 bytes without control characters" in got.json["error"]["message"]


@pytest.mark.parametrize(
    "body, codes",
    [
        ({}, {"organizationName": "REQUIRED", "contactEmail": "REQUIRED"}),
        ({**ACME, "organizationName": "A"}, {"organizationName": "INVALID_FORMAT"}),
        ({**ACME, "contactEmail": "nobody"}, {"contactEmail": "INVALID_FORMAT"}),
        ({**ACME, "tier": "GOLD"}, {"tier": "INVALID_VALUE"}),
        ({**ACME, "surprise": 1}, {"body": "UNKNOWN_FIELD"}),
        ({**ACME, "configuration": {"wordpressVersion": 6}}, {"configuration.wordpressVersion": "INVALID_FORMAT"}),
    ],
)
def test_a_body_that_does_not_fit_is_told_all_at_once(server, body, codes):
    got = Tenant(server, "tenant-bodies").call("POST", "", body)
    assert got.status == 400 and got.json["error"]["code"] == "VALIDATION_ERROR"
    assert {e["field"]: e["code"] for e in got.json["error"]["details"]["errors"]} == codes
    assert got.json["timestamp"] and got.json["error"]["documentationUrl"]


def test_other_mistakes(server):
    tenant = Tenant(server, "tenant-mistakes")
    got = tenant.client.request("POST", tenant.base, body=b"{nonsense", headers={"Content-Type": "application/json"})
    assert got.status == 400 and got.json["error"]["code"] == "INVALID_JSON"
    got = tenant.call("POST", "", {**ACME, "configuration": {"wordpressVersion": "1.0"}})
    assert got.status == 400 and "6.5" in got.json["error"]["message"]
    for name in ("Tenant-A", "ab", "-abc", "a_b", "x" * 64):
        assert Tenant(server, name).call("GET").status == 400, name
    got = tenant.call("GET", "/inst-nobody")
    assert got.status == 404 and got.json["error"]["code"] == "INSTANCE_NOT_FOUND"
    got = tenant.client.get("/v1.0/tenants/-/instances/nobody-has-one")
    assert got.json["error"]["message"] == "tenant nobody-has-one has no instance"
    assert tenant.call("GET", "/" + "x" * 300).status == 404
    assert tenant.call("GET", "", None).json["items"] == []


def test_another_tenants_instance_is_not_there(server, tenant):
    instance = tenant.active()["instanceId"]
    other = Tenant(server, "tenant-somebody-else")
    for method, path, body in [
        ("GET", "", None),
        ("GET", "/status", None),
        ("GET", "/logs", None),
        ("GET", "/backups", None),
        ("DELETE", "", None),
        ("POST", "/secret", None),
        ("PUT", "/size", {"desiredCount": 3}),
    ]:
        assert other.call(method, "/" + instance + path, body).status == 404, path


# --- lists ---


def test_lists_have_pages_and_filters(server):
    tenants = [Tenant(server, "tenant-list-%d" % i) for i in range(5)]
    for t in tenants:
        t.create()
    for t in tenants:
        t.reaches("ACTIVE")
    tenants[0].on("/status", body={"action": "suspend", "reason": "a test"})
    tenants[0].reaches("SUSPENDED")
    client = admin(server)
    seen, cursor = [], ""
    while cursor is not None:
        page = client.get("/v1/ops/instances?limit=2" + ("&cursor=" + cursor if cursor else "")).json
        assert page["count"] <= 2
        seen += [i["tenantId"] for i in page["instances"]]
        cursor = page["cursor"]
    assert len(seen) == len(set(seen)) and set(seen) >= {t.tenant for t in tenants}
    suspended = [i["tenantId"] for i in client.get("/v1/ops/instances?status=SUSPENDED&limit=100").json["instances"]]
    assert suspended == ["tenant-list-0"]
    assert [i["tenantId"] for i in client.get("/v1/ops/instances?tenant=tenant-list-3").json["instances"]] == ["tenant-list-3"]
    assert client.get("/v1/ops/instances?status=BROKEN").status == 400
    page = tenants[0].call("GET", "?pageSize=1").json
    assert (page["count"], page["moreAvailable"], page["nextToken"]) == (1, False, None)
    assert page["_links"]["self"]["href"].endswith("pageSize=1")
    assert tenants[0].call("GET", "?pageSize=101").status == 400
    assert tenants[0].call("GET", "?startAt=nonsense").status == 400
    assert tenants[0].call("GET", "?status=ACTIVE").json["items"] == []


def test_a_tenants_list_goes_on_where_it_stopped(tenant):
    for _ in range(3):
        tenant.active()
        tenant.on("", "DELETE")
        tenant.reaches("DEPROVISIONED")
    first = tenant.call("GET", "?pageSize=2").json
    assert first["count"] == 2 and first["moreAvailable"] and first["nextToken"] in first["_links"]["next"]["href"]
    second = tenant.client.get(first["_links"]["next"]["href"]).json
    assert second["count"] == 1 and not second["moreAvailable"] and "prev" in second["_links"]
    assert len({i["instanceId"] for i in first["items"] + second["items"]}) == 3


# --- the life of one ---


def test_suspend_resume_park_unpark_scale_update_rotate(server, tenant):
    tenant.active()
    answer = tenant.on("/status", body={"action": "stop", "reason": "unpaid"})
    assert answer["status"] == "SUSPENDING" and answer["action"] == "stop"
    assert tenant.reaches("SUSPENDED")["reason"] == "unpaid"
    assert tenant.on("/status", body={"action": "start"})["desiredCount"] == 2
    tenant.reaches("ACTIVE")
    answer = tenant.on("/size", body={"desiredCount": 5})
    assert (answer["status"], answer["previousCount"], answer["desiredCount"]) == ("SCALING", 2, 5)
    assert tenant.reaches("ACTIVE")["runningCount"] == 5
    tenant.on("/status", body={"action": "park", "reason": "quiet"})
    tenant.reaches("PARKED")
    assert "workers" not in resources(server, tenant)
    tenant.on("/status", body={"action": "unpark"})
    tenant.reaches("ACTIVE")
    tenant.on("", body={"tier": "ENTERPRISE", "configuration": {"wordpressVersion": "6.1"}})
    until(lambda: tenant.show()["deploymentStatus"] == "COMPLETED", "the update")
    assert tenant.show()["configuration"]["wordpressVersion"] == "6.1"
    answer = tenant.on("/rotate", "POST")
    until(lambda: tenant.client.get(answer["_links"]["operation"]["href"]).json["state"] == "SUCCEEDED", "the rotation")


def test_what_the_state_does_not_allow_is_named(server, tenant):
    tenant.active()
    instance = "/" + tenant.show()["instanceId"]
    got = tenant.call("PUT", instance + "/status", {"action": "unpark"})
    assert got.status == 422 and got.json["error"]["code"] == "INVALID_STATUS_TRANSITION"
    assert got.json["error"]["details"]["currentStatus"] == "ACTIVE"
    assert got.json["error"]["details"]["requestedTransition"] == "unpark"
    assert set(got.json["error"]["details"]["allowedTransitions"]) == {"delete", "scale", "suspend", "park"}
    got = tenant.call("PUT", instance + "/size", {"desiredCount": 11})
    assert got.status == 422 and got.json["error"]["code"] == "SCALE_LIMIT_EXCEEDED"
    assert tenant.call("PUT", instance + "/size", {"desiredCount": 2}).status == 409
    assert tenant.call("PUT", instance + "/size", {"desiredCount": "3"}).status == 400
    assert tenant.call("PUT", instance + "/status", {"action": "suspend"}).status == 400
    faults(server, {"fault": "outage", "call": "list-tasks"})
    try:
        tenant.on("/size", body={"desiredCount": 3})
        got = tenant.call("PUT", instance + "/status", {"action": "suspend", "reason": "x"})
        assert got.status == 422 and got.json["error"]["code"] == "OPERATION_IN_PROGRESS"
        progress = tenant.show()["operation"]
        assert progress["operation"] == "scale" and progress["state"] == "RUNNING" and progress["stepCount"] == 2
    finally:
        faults(server)
    tenant.reaches("ACTIVE")


def test_backups_come_back_and_removal_archives(server, tenant):
    tenant.active()
    backup = tenant.on("/backup", "POST")["backupId"]
    until(lambda: tenant.show()["operation"] is None, "the backup")
    restored = tenant.on("/restore", "POST", {"backupId": backup})
    assert restored["backupId"] == backup
    until(lambda: tenant.show()["operation"] is None, "the restore")
    instance = tenant.show()["instanceId"]
    kept = tenant.call("GET", "/%s/backups" % instance).json["items"]
    assert sorted(b["kind"] for b in kept) == ["BACKUP", "BEFORE_RESTORE"] and all(b["state"] == "KEPT" for b in kept)
    assert tenant.call("POST", "/%s/restore" % instance, {"backupId": "bkp-none"}).status == 404
    answer = tenant.on("", "DELETE", {"reason": "the contract has ended"})
    assert answer["status"] == "PENDING_DEPROVISIONING" and answer["dataRetentionDays"] == 90
    shown = tenant.reaches("DEPROVISIONED")
    assert shown["archiveId"] and shown["archivedUntil"] and shown["reason"] == "the contract has ended" and shown["resources"] == {}
    assert resources(server, tenant) == []
    got = tenant.call("DELETE", "/" + instance)
    assert got.status == 422 and got.json["error"]["details"]["allowedTransitions"] == ["create"]
    assert tenant.active()["instanceId"] != instance


def test_logs_of_the_same_moment_are_all_on_some_page(server, tenant):
    tenant.create({**ACME, "configuration": {"desiredCount": 5}})
    instance, seen, token = tenant.reaches("ACTIVE")["instanceId"], [], ""
    while token is not None:
        page = tenant.call("GET", "/%s/logs?limit=2%s" % (instance, token and "&nextToken=" + token)).json
        seen = [line["taskId"] for line in page["logs"]] + seen
        token = page["nextToken"]
    assert seen == server.sites.tasks(server, tenant.tenant, 5), "the newest pages first, each in its order"
    for odd in ("5", "5-0", "-1", "x-1", "9223372036854775807-1", "5-1000000"):
        assert tenant.call("GET", "/%s/logs?nextToken=%s" % (instance, odd)).status == 400, odd


def test_logs_and_their_limits(tenant):
    instance = tenant.active()["instanceId"]
    lines = tenant.call("GET", "/%s/logs?limit=1" % instance).json["logs"]
    assert len(lines) == 1 and set(lines[0]) == {"timestamp", "taskId", "message"}
    assert tenant.call("GET", "/%s/logs?startTime=2100-01-01T00:00:00Z" % instance).json == {"logs": [], "nextToken": None}
    for query in ("limit=0", "limit=1001", "startTime=yesterday", "nextToken=x"):
        assert tenant.call("GET", "/%s/logs?%s" % (instance, query)).status == 400, query


# --- failures ---


def test_a_provisioning_that_fails_is_rolled_back_and_can_be_tried_again(server, tenant):
    faults(server, {"fault": "outage", "call": "create-resource", "resource": "identity"})
    try:
        tenant.create()
        shown = tenant.reaches("FAILED")
    finally:
        faults(server)
    assert shown["lastError"]["code"] == "PROV-005" and shown["lastError"]["step"] == "identity" and shown["lastError"]["leftovers"] == []
    assert resources(server, tenant) == []
    assert shown["allowedTransitions"] == ["create", "delete", "recover"]
    assert tenant.active()["instanceId"] == shown["instanceId"]


def test_a_rollback_that_fails_names_what_is_left_and_delete_clears_it(server, tenant):
    faults(
        server,
        {"fault": "outage", "call": "create-resource", "resource": "route"},
        {"fault": "outage", "call": "delete-resource", "resource": "database"},
    )
    try:
        tenant.create()
        shown = tenant.reaches("FAILED")
    finally:
        faults(server)
    assert shown["lastError"]["code"] == "PROV-006" and shown["lastError"]["leftovers"] == ["storage", "database"]
    assert shown["operation"]["parked"] and resources(server, tenant) == ["storage", "database"]
    told = [e["detail"] for e in Ops(server).events("type=CLUSTER_CREATION_COMPLETE&subject=instance/" + shown["instanceId"])]
    assert len(told) == 1 and told[0]["status"] == "FAILED" and told[0]["error"]["code"] == "PROV-006"
    tenant.on("", "DELETE")
    tenant.reaches("DEPROVISIONED")
    assert resources(server, tenant) == []


# --- what comes in ---


def command(kind, tenant, correlation, **more):
    return {"eventType": kind, "tenantId": tenant.tenant, "timestamp": "2026-01-01T00:00:00Z", "correlationId": correlation, **more}


def test_commands_are_taken_once_bare_or_wrapped(server, tenant):
    client = admin(server)
    create = command("START_CLUSTER_CREATION", tenant, "c-1", **ACME)
    got = client.request("POST", "/v1/inbox/instances", body=create)
    assert got.status == 202 and got.json == {"accepted": 1, "duplicates": 0, "rejected": []}
    wrapped = {"Records": [{"messageId": "m-1", "body": json.dumps(create)}]}
    assert client.request("POST", "/v1/inbox/instances", body=wrapped).json["duplicates"] == 1
    shown = tenant.reaches("ACTIVE")
    assert shown["correlationId"] == "c-1"
    done = Ops(server).events("type=CLUSTER_CREATION_COMPLETE&subject=instance/" + shown["instanceId"])
    assert [e["detail"]["correlationId"] for e in done] == ["c-1"]
    assert set(done[0]["detail"]["resources"]) == {"ecsServiceArn", "efsAccessPointId", "cognitoUserPoolId"}
    got = client.request("POST", "/v1/inbox/instances", body=[command("START_CLUSTER_PARK", tenant, "c-2", reason="quiet"), {"eventType": "X"}])
    assert got.json["accepted"] == 1 and "tenantId" in got.json["rejected"][0]["error"]
    tenant.reaches("PARKED")


def test_events_of_the_container_service_are_noted(server, tenant):
    shown = tenant.active()
    event = {
        "id": "ecs-" + tenant.tenant,
        "detail-type": "ECS Deployment State Change",
        "source": "aws.ecs",
        "time": "2026-11-16T12:00:00Z",
        "resources": ["arn:aws:ecs:eu-west-1:111122223333:service/prod/" + shown["resources"]["workers"]["name"]],
        "detail": {"eventName": "SERVICE_DEPLOYMENT_IN_PROGRESS"},
    }
    assert admin(server).request("POST", "/v1/inbox/ecs", body=event).json["accepted"] == 1
    until(lambda: tenant.show()["deploymentStatus"] == "IN_PROGRESS", "the event")
    assert tenant.show()["lastEcsEvent"]["eventName"] == "SERVICE_DEPLOYMENT_IN_PROGRESS" and tenant.show()["status"] == "ACTIVE"


def send_ecs(server, **event):
    got = admin(server).request("POST", "/v1/inbox/ecs", body={"source": "aws.ecs", "time": "2026-11-16T12:00:00Z", **event})
    assert got.status == 202, got.body
    return got.json


def test_an_event_of_the_longest_names_is_noted(server, tenant):
    service = "arn:aws:ecs:eu-west-1:111122223333:service/prod/" + tenant.active()["resources"]["workers"]["name"]
    odd = "\u0001" * 64
    send_ecs(server, id="ecs-odd-" + tenant.tenant, resources=[service], detail={"eventName": odd}, **{"detail-type": "x" * 60})
    until(lambda: (tenant.show()["lastEcsEvent"] or {}).get("eventName") == odd, "the event")


# --- secrets ---


def test_no_password_is_in_any_answer_event_or_log_but_the_one_that_was_asked_for(server, tenant):
    instance = tenant.active()["instanceId"]
    got = tenant.call("POST", "/%s/secret" % instance)
    assert got.status == 200 and got.json["user"] and got.header("Cache-Control") == "no-store"
    password = got.json["password"]
    tenant.on("/backup", "POST")
    until(lambda: tenant.show()["operation"] is None, "the backup")
    for path in ("", "/status", "/logs", "/backups"):
        assert password not in tenant.call("GET", "/" + instance + path).body.decode()
    events = Ops(server).events("limit=100&subject=instance/" + instance)
    assert "InstanceSecretShown" in [e["detail-type"] for e in events]
    assert password not in json.dumps(events)
    assert password not in server.output() and password not in json.dumps(Ops(server).read("explain/instance/" + instance))
    assert password not in server.sites.everything(server)


# --- people of the identity pool ---


def test_people_are_added_listed_and_removed(server, tenant):
    instance = tenant.active()["instanceId"]
    people = "/%s/people" % instance
    assert tenant.call("GET", people).json["items"] == []
    got = tenant.call("POST", people, {"email": "Ann@Acme.example", "name": "Ann Other"})
    assert got.status == 201 and got.json["isNew"] and got.header("Cache-Control") == "no-store"
    first = got.json["password"]
    tenant.call("POST", people, {"email": "zoe@acme.example"})
    listed = tenant.call("GET", people).json
    assert [(p["email"], p["name"]) for p in listed["items"]] == [("Ann@Acme.example", "Ann Other"), ("zoe@acme.example", None)]
    assert listed["count"] == 2 and all(p["addedAt"] for p in listed["items"])
    again = tenant.call("POST", people, {"email": "ann@acme.example", "name": "Ann Other"})
    assert again.status == 200 and not again.json["isNew"] and again.json["password"] != first
    assert tenant.call("DELETE", people + "/ann%40acme.example").json["email"] == "ann@acme.example"
    assert [p["email"] for p in tenant.call("GET", people).json["items"]] == ["zoe@acme.example"]
    got = tenant.call("DELETE", people + "/ann%40acme.example")
    assert got.status == 404 and got.json["error"]["code"] == "PERSON_NOT_FOUND"
    events = Ops(server).events("limit=100&subject=instance/" + instance)
    told = [(e["detail-type"], e["detail"]["email"]) for e in events if e["detail-type"].startswith("InstancePerson")]
    assert sorted(told) == [
        ("InstancePersonAdded", "Ann@Acme.example"),
        ("InstancePersonAdded", "zoe@acme.example"),
        ("InstancePersonPassword", "ann@acme.example"),
        ("InstancePersonRemoved", "ann@acme.example"),
    ]
    for password in (first, again.json["password"]):
        assert password not in json.dumps(events) and password not in server.output()
        assert password not in tenant.call("GET", people).body.decode()


def test_a_removal_that_failed_behind_the_pool_is_told_once(server, tenant):
    instance = tenant.active()["instanceId"]
    people = "/%s/people" % instance
    assert tenant.call("POST", people, {"email": "ann@acme.example"}).status == 201
    faults(server, {"fault": "timeout-after", "call": "remove-person"})
    try:
        assert tenant.call("DELETE", people + "/ann%40acme.example").status in (503, 504)
    finally:
        faults(server)
    assert tenant.call("GET", people).json["items"] == []
    assert tenant.call("DELETE", people + "/ann%40acme.example").status == 404
    events = Ops(server).events("limit=100&subject=instance/" + instance)
    assert [e["detail"]["email"] for e in events if e["detail-type"] == "InstancePersonRemoved"] == ["ann@acme.example"]


def test_people_need_a_pool_and_their_form(server, tenant):
    instance = tenant.active()["instanceId"]
    people = "/%s/people" % instance
    for body, codes in [
        ({}, {"email": "REQUIRED"}),
        ({"email": "nobody"}, {"email": "INVALID_FORMAT"}),
        ({"email": "a@b.example", "name": "x" * 65}, {"name": "INVALID_FORMAT"}),
        ({"email": "a@b.example", "password": "mine"}, {"body": "UNKNOWN_FIELD"}),
    ]:
        got = tenant.call("POST", people, body)
        assert got.status == 400 and {e["field"]: e["code"] for e in got.json["error"]["details"]["errors"]} == codes
    assert tenant.call("DELETE", people + "/nobody").status == 400
    assert Tenant(server, "tenant-somebody-else").call("GET", people).status == 404
    assert Tenant(server, tenant.tenant, TRACK_TOKEN).call("GET", people).status == 403
    faults(server, {"fault": "outage", "call": "list-tasks"})
    try:
        tenant.on("/size", body={"desiredCount": 3})
        got = tenant.call("POST", people, {"email": "a@b.example"})
        assert got.status == 422 and got.json["error"]["code"] == "OPERATION_IN_PROGRESS"
        assert tenant.call("GET", people).status == 200, "looking is allowed"
    finally:
        faults(server)
    tenant.reaches("ACTIVE")
    faults(server, {"fault": "outage", "call": "add-person"})
    try:
        assert tenant.call("POST", people, {"email": "a@b.example"}).status == 503
    finally:
        faults(server)
    assert tenant.call("POST", people, {"email": "a@b.example"}).status == 201
    tenant.on("", "DELETE")
    tenant.reaches("DEPROVISIONED")
    got = tenant.call("GET", people)
    assert got.status == 404 and got.json["error"]["code"] == "POOL_NOT_FOUND"
    tenant.active()
    assert tenant.call("GET", "/%s/people" % tenant.show()["instanceId"]).json["items"] == [], "people go with their pool"


def test_people_by_the_command_line(server, tenant):
    env = {"LEASEHOLD_ADDRESS": server.url, "BROKER_ADMIN_TOKEN": ADMIN_TOKEN}
    tenant.active()
    added = run("instance", "person", "add", tenant.tenant, "ann@acme.example", "--name", "Ann Other", env=env)
    assert added.returncode == 0 and "password" in added.stdout and "not shown again" in added.stdout + added.stderr, added.stderr
    listed = run("instance", "person", "list", tenant.tenant, env=env).stdout
    assert "ann@acme.example" in listed and "Ann Other" in listed
    assert run("instance", "person", "remove", tenant.tenant, "ann@acme.example", env=env).returncode == 0
    gone = run("instance", "person", "remove", tenant.tenant, "ann@acme.example", env=env)
    assert gone.returncode != 0 and "PERSON_NOT_FOUND" in gone.stderr
    assert "add, list, remove" in run("instance", "person", env=env).stderr
    assert run("instance", "person", "add", tenant.tenant, env=env).returncode == 2
    assert "instance person remove" in run("help", "instance").stdout


# --- operators ---


def test_it_is_explained(server, tenant):
    instance = tenant.active()["instanceId"]
    told = Ops(server).read("explain/instance/" + tenant.tenant)
    assert told["id"] == instance and told["where"] == "ACTIVE" and "2 of 2 tasks" in told["summary"]
    assert any(c["path"] == "/v1.0/tenants/-/instances/" + instance for c in told["can"] if c["method"] == "DELETE")
    assert any("provisioning: SUCCESS" in e["text"] for e in told["events"])


def test_the_states_are_the_table(server):
    got = admin(server).get("/v1/ops/instances/states").json
    assert len(got["states"]) == 19 and {t["number"] for t in got["transitions"]} == set(range(1, 34))
    printed = run("instance", "states").stdout
    assert all("%2d  " % n in printed for n in range(1, 34))


def test_the_overview_counts_them(server, tenant):
    tenant.active()
    until(lambda: Ops(server).read("overview")["instances"]["by_status"]["ACTIVE"] >= 1, "the count")


def test_metrics_tell_of_operations(server, tenant):
    tenant.active()

    def figures():
        return server.client().get("/metrics").body.decode()

    until(lambda: 'leasehold_instance_operations_total{operation="create",outcome="success"}' in figures(), "the figure")


def test_a_refused_command_is_completed_and_is_no_rollback(server, tenant):
    def figure(name):
        lines = server.client().get("/metrics").body.decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    tenant.active()
    failures = 'leasehold_instance_operations_total{operation="create",outcome="failure"}'
    before = figure(failures), figure("leasehold_instance_rollbacks_total")
    admin(server).request("POST", "/v1/inbox/instances", body=command("START_CLUSTER_CREATION", tenant, "c-again", **ACME))
    until(lambda: figure(failures) == before[0] + 1, "the refusal is counted")
    assert figure("leasehold_instance_rollbacks_total") == before[1]
    told = Ops(server).events("type=CLUSTER_CREATION_COMPLETE&subject=tenant/" + tenant.tenant)
    assert [(e["detail"]["status"], e["detail"]["error"]["code"], e["detail"]["correlationId"]) for e in told] == [("FAILED", "CONFLICT", "c-again")]


def test_it_survives_a_kill_in_the_middle(sites, make):
    server = sites.start(make)
    tenant = Tenant(server, "tenant-killed")
    faults(server, {"fault": "latency", "call": "create-resource", "latency_ms": 300})
    tenant.create()
    until(lambda: tenant.show()["provisioningState"] != "PENDING_PROVISIONING", "it has begun")
    server.kill()
    server.start()
    tenant = Tenant(server, "tenant-killed")
    tenant.reaches("ACTIVE")
    assert sorted(resources(server, tenant)) == sorted(["storage", "database", "secret", "route", "workers", "identity"])
    assert len(Ops(server).events("type=CLUSTER_CREATION_COMPLETE")) == 1


def test_an_archive_whose_time_ends_while_there_is_no_driver_waits_for_one(sites, make):
    """That it is removed then: the_time_of_an_archive_ends_without_a_driver in tests/unit/test_instances.c."""
    server = sites.start(make)
    tenant = Tenant(server, "tenant-kept")
    tenant.active()
    backup = tenant.on("/backup", "POST")["backupId"]
    until(lambda: tenant.show()["operation"] is None, "the backup")
    off = Ops(server.restart(LEASEHOLD_INSTANCE_DRIVER="off"))
    assert off.act("timers/instance-archive%2F" + backup + "/fire").status == 200
    (lane,) = until(lambda: [x for x in off.read("queues/instance-archives/lanes")["lanes"] if x["last_error"]], "it waits for a driver")
    assert backup in lane["last_error"] and "LEASEHOLD_INSTANCE_DRIVER" in lane["last_error"] and lane["tries"] == 0


def test_the_command_line(server, tenant):
    env = {"LEASEHOLD_ADDRESS": server.url, "BROKER_ADMIN_TOKEN": ADMIN_TOKEN}
    name = tenant.tenant
    made = run("instance", "create", name, "--organization", "Acme", "--email", "it@acme.example", "--wait", env=env, timeout=180)
    assert made.returncode == 0 and "ACTIVE" in made.stdout, made.stderr
    assert "ACTIVE" in run("instance", "list", "--tenant", name, env=env).stdout
    assert "Instances" in run("status", env=env).stdout
    refused = run("instance", "unpark", name, env=env)
    assert refused.returncode != 0 and "INVALID_STATUS_TRANSITION" in refused.stderr
    assert run("instance", "scale", name, "--count", "4", "--wait", env=env, timeout=180).returncode == 0
    assert "4/4" in run("instance", "show", name, env=env).stdout
    assert json.loads(run("instance", "show", name, "--json", env=env).stdout)["configuration"]["desiredCount"] == 4
    assert run("instance", "suspend", name, env=env).returncode == 2
    assert run("instance", "suspend", name, "--reason", "unpaid", "--wait", env=env, timeout=180).returncode == 0
    assert "SUSPENDED" in run("instance", "explain", name, env=env).stdout and "SUSPENDED" in run("explain", name, env=env).stdout
    assert "password" in run("instance", "secret", name, env=env).stdout
    assert run("instance", "delete", name, "--wait", env=env, timeout=180).returncode == 0
    assert run("instance", "show", "tenant-nobody", env=env).returncode != 0


# --- nonsense ---

ODD = [None, 1, True, [], {}, "", " ", "x" * 5000, "\u0000", "\ud83d\ude00", -1, 1e300, {"a": {"b": []}}]


def test_nonsense_is_refused_and_the_server_goes_on(server, tenant):
    instance = "/" + tenant.active()["instanceId"]
    routes = [
        ("POST", "", ["organizationName", "contactEmail", "tier", "configuration", "opportunityId"]),
        ("PUT", instance, ["tier", "configuration", "contactEmail"]),
        ("PUT", instance + "/status", ["action", "reason"]),
        ("PUT", instance + "/size", ["desiredCount"]),
        ("POST", instance + "/restore", ["backupId"]),
        ("POST", instance + "/people", ["email", "name"]),
        ("DELETE", instance, ["archiveData", "surprise"]),
    ]
    for method, path, names in routes:
        for name in names:
            for value in ODD:
                got = tenant.call(method, path, {name: value} if method != "POST" or path else {**ACME, name: value})
                fine = got.status in (400, 404, 409, 413, 422) or (got.status == 202 and value in (None, "", " ", True))
                assert fine, (method, path, name, value, got.status, got.body)
                if got.status == 202:
                    until(lambda: tenant.show()["operation"] is None, "what was taken for a wish", 180)
                    if tenant.show()["status"] == "DEPROVISIONED":
                        instance = "/" + tenant.active()["instanceId"]
        for body in (b"", b"[", b"[]", b"null", b'"x"', b"{" * 100, b"\xff\xfe"):
            got = tenant.client.request(method, tenant.base + path, body=body, headers={"Content-Type": "application/json"})
            assert got.status < 500, (method, path, body)
    for path in ("/inst-%2e%2e", "/%00", "/inst-'--", "/" + "%41" * 300, "//", "/../x", "/inst-1/operations/" + "x" * 300):
        assert tenant.call("GET", path).status in (400, 404), path
    assert server.is_alive() and tenant.call("GET").status == 200
