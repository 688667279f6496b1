# SPDX-License-Identifier: Apache-2.0
"""Tenants' instances on AWS: a whole server against the strict front and a real MariaDB, one resource after the other."""

import datetime
import json
import time

import pytest

from aws.front import names
from lib.mariadb import ADMIN, PASSWORD, MariaDb
from lib.ops import Ops
from lib.server import ADMIN_TOKEN
from lib.wait import until

ACME = {"organizationName": "Acme", "contactEmail": "it@acme.example"}
T = "tenant-acme"
SECRETS = ["bbws/test/tenant-acme/" + name for name in ("db", "signin", "wp-admin")]


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory):
    database = MariaDb(tmp_path_factory.mktemp("mariadb"))
    yield database
    database.close()


def settings(front, mariadb):
    return {**front.credentials(), "AWS_ENDPOINT_URL": front.url, "AWS_REGION": names.REGION, "AWS_EC2_METADATA_DISABLED": "true",
            "LEASEHOLD_INSTANCE_DRIVER": "aws", "LEASEHOLD_ENV": names.ENV, "LEASEHOLD_ECS_CLUSTER": names.CLUSTER, "LEASEHOLD_EFS_ID": names.FILE_SYSTEM,
            "LEASEHOLD_VPC_ID": names.VPC, "LEASEHOLD_SUBNETS": ",".join(names.SUBNETS), "LEASEHOLD_SECURITY_GROUPS": ",".join(names.SECURITY_GROUPS),
            "LEASEHOLD_LISTENER_ARN": names.LISTENER, "LEASEHOLD_EXECUTION_ROLE_ARN": names.EXECUTION_ROLE, "LEASEHOLD_TASK_ROLE_ARN": names.SITE_ROLE,
            "LEASEHOLD_WORDPRESS_IMAGE": names.IMAGE.rsplit(":", 1)[0] + ":{version}", "LEASEHOLD_WORDPRESS_VERSIONS": "6.5 6.4",
            "LEASEHOLD_SITE_DOMAIN": names.SITE_DOMAIN, "LEASEHOLD_ARCHIVE_BUCKET": names.ARCHIVE_BUCKET, "LEASEHOLD_DB_HOST": mariadb.host,
            "LEASEHOLD_DB_ADMIN_SECRET": names.DB_ADMIN_SECRET, "LEASEHOLD_DB_CA_FILE": mariadb.certificate.cert}


class Site:
    """One tenant's routes, and what there is of it on the front."""

    def __init__(self, server, front, mariadb, tenant=T):
        self.server, self.front, self.mariadb, self.tenant = server, front, mariadb, tenant
        self.client = server.client({"Authorization": "Bearer " + ADMIN_TOKEN})
        self.base = "/v1.0/tenants/%s/instances" % tenant

    def call(self, method, path="", body=None):
        return self.client.request(method, self.base + path, body=body)

    def show(self):
        got = self.client.get("/v1.0/tenants/-/instances/" + self.tenant)
        assert got.status == 200, got.body
        return got.json

    def reaches(self, status, timeout=180):
        until(lambda: self.show()["status"] in (status, "FAILED") and not self.show().get("operation"), "%s is %s" % (self.tenant, status), timeout, 0.1)
        assert self.show()["status"] == status, self.show()["lastError"]
        return self.show()

    def active(self, **more):
        got = self.call("POST", "", {**ACME, **more})
        assert got.status == 202, got.body
        return self.reaches("ACTIVE")

    def on(self, what, method="PUT", body=None):
        got = self.call(method, "/%s%s" % (self.show()["instanceId"], what), body)
        assert got.status == 202, got.body
        return got.json

    def ends(self, operation, timeout=180):
        """How an operation ended."""
        path = "/%s/operations/%s" % (self.show()["instanceId"], operation["operationId"])
        until(lambda: self.call("GET", path).json["state"] not in ("RUNNING", "UNDOING"), "the operation ends", timeout, 0.1)
        return self.call("GET", path).json["state"]

    def left(self):
        """Everything that there is of tenants."""
        state = self.front.state
        found = {"points": state("efs")["access_points"], "secrets": [n for n in state("secretsmanager") if "/tenant-" in n],
                 "groups": state("elbv2")["groups"], "rules": [r for r in state("elbv2")["rules"] if r["priority"] != "default"],
                 "services": [s for s in state("ecs")["services"] if s["status"] != "INACTIVE"],
                 "definitions": [d for d in state("ecs")["definitions"] if d["status"] == "ACTIVE"],
                 "pools": state("cognito-idp")["pools"], "logs": state("logs")["groups"], "databases": self.mariadb.names()}
        return {k: v for k, v in found.items() if v}

    def rule(self):
        return next(r for r in self.front.state("elbv2")["rules"] if r["priority"] != "default")

    def visit(self):
        return self.front.do("elbv2", "visit", path="/tenant/acme/")

    def service(self):
        return next(s for s in self.front.state("ecs")["services"] if s["name"] == "tenant-acme-wordpress")


def start(front, mariadb, make, **env):
    mariadb.clear()
    front.do("secretsmanager", "put", name=names.DB_ADMIN_SECRET, value=json.dumps({"username": ADMIN, "password": PASSWORD}))
    front.do("ecs", "task_pace", looks=1, seconds=0)
    return Site(make.server(**settings(front, mariadb), LOG_LEVEL="DEBUG", **env), front, mariadb)


@pytest.fixture
def site(front, mariadb, make):
    return start(front, mariadb, make)


def test_an_instance_is_made_of_all_its_parts_and_leaves_nothing(front, site, mariadb):
    shown = site.active(tier="PROFESSIONAL", configuration={"desiredCount": 3})
    key = shown["instanceId"]
    tags = {"bbws:tenant-id": T, "bbws:managed-by": "instance-management", "bbws:environment": "test", "leasehold:key": key}

    point = front.state("efs")["access_points"][0]
    assert (point["path"], point["posix"], point["tags"]) == ("/tenant-acme", {"Uid": 33, "Gid": 33}, tags)
    assert mariadb.names() == ["tenant_acme_db", "tenant_acme_user"]
    secrets = front.state("secretsmanager")
    assert sorted(n for n in secrets if "/tenant-" in n) == SECRETS and all(secrets[n]["tags"] == tags for n in SECRETS)

    login = json.loads(secrets[SECRETS[0]]["value"])
    assert mariadb.ask_as(login["username"], login["password"], "CREATE TABLE tenant_acme_db.t (a INT); DROP TABLE tenant_acme_db.t")[0] == 0
    assert mariadb.ask_as(login["username"], login["password"], "SELECT 1", ssl=False)[0] != 0
    assert mariadb.ask_as(login["username"], login["password"], "SELECT COUNT(*) FROM mysql.user")[0] != 0

    service = site.service()
    assert service["tags"] == tags and service["desired"] == 3
    assert service["asked"]["deploymentConfiguration"]["deploymentCircuitBreaker"] == {"enable": True, "rollback": True}
    definition = next(d for d in front.state("ecs")["definitions"] if d["family"] == "tenant-acme-wordpress")
    assert (definition["asked"]["cpu"], definition["asked"]["memory"]) == ("1024", "2048")
    container = definition["asked"]["containerDefinitions"][0]
    assert container["image"].endswith("/wordpress:6.5")
    assert [s["valueFrom"].split("-AbCdEf")[-1] for s in container["secrets"]] == [":username::", ":password::"]

    assert [c["Field"] for c in site.rule()["conditions"]] == ["path-pattern"] and site.visit() == [200, "WordPress of tenant-acme-wordpress"]
    pool = front.state("cognito-idp")["pools"][0]
    assert (pool["name"], pool["mfa"], pool["tags"]) == ("bbws-tenant-acme-user-pool", "OPTIONAL", tags) and pool["domain"].startswith("bbws-test-")
    assert pool["clients"][0]["CallbackURLs"] == ["https://sites.example.com/tenant/acme/callback"]
    assert shown["endpoint"] == "https://sites.example.com/tenant/acme/"
    installed = [t for t in front.state("ecs")["tasks"] if t["command"] == ["leasehold-task", "install"]]
    assert len(installed) == 1 and installed[0]["environment"]["LEASEHOLD_SITE_TITLE"] == "Acme"

    said = site.server.output()
    assert login["password"] not in said and pool["clients"][0]["ClientSecret"] not in said

    site.on("", "DELETE")
    site.reaches("DEPROVISIONED")
    assert site.left() == {}


def test_while_it_is_made_nobody_reaches_it(front, site):
    front.do("ecs", "pace", looks=-1, seconds=600)
    assert site.call("POST", "", ACME).status == 202
    until(lambda: front.state("ecs")["services"], "the service is made", 120, 0.1)
    assert site.visit()[0] == 404  # what the listener says of what it does not know
    front.do("ecs", "pace", looks=1, seconds=0)
    front.advance(601)
    site.reaches("ACTIVE")
    assert site.visit()[0] == 200


@pytest.mark.parametrize("service,limit,code,word", [
    ("efs", {"count": 0}, "PROV-001", "AccessPointLimitExceeded"), ("elbv2", {"rules": 0}, "PROV-004", "TooManyRules"),
    ("elbv2", {"groups": 0}, "PROV-004", "TooManyTargetGroups"), ("cognito-idp", {"pools": 0}, "PROV-005", "LimitExceededException")])
def test_a_quota_is_named_and_all_is_undone(front, site, service, limit, code, word):
    front.do(service, "limit", **limit)
    assert site.call("POST", "", ACME).status == 202
    until(lambda: site.show()["status"] == "FAILED", "it fails", 180, 0.1)
    error = site.show()["lastError"]
    assert error["code"] == code and word in error["message"] and not error.get("leftovers"), error
    assert site.left() == {}


MADE = {"efs": ["CreateAccessPoint"], "secretsmanager": ["CreateSecret"], "elbv2": ["CreateTargetGroup", "CreateRule", "ModifyRule"],
        "ecs": ["RegisterTaskDefinition", "CreateService", "RunTask"], "logs": ["CreateLogGroup"],
        "cognito-idp": ["CreateUserPool", "CreateUserPoolClient", "CreateUserPoolDomain", "SetUserPoolMfaConfig"]}
REMOVED = {"efs": ["DeleteAccessPoint"], "secretsmanager": ["DeleteSecret"], "elbv2": ["DeleteRule", "DeleteTargetGroup"],
           "ecs": ["UpdateService", "DeleteService", "DeregisterTaskDefinition", "DeleteTaskDefinitions"], "logs": ["DeleteLogGroup"],
           "cognito-idp": ["DeleteUserPoolDomain", "DeleteUserPool"]}


def test_C41_replies_that_are_lost_double_nothing_and_leave_nothing(front, site):
    """The first of each kind of call is done, and its answer never comes."""
    lost = [front.fault("cut_after", service, operation) for service, operations in MADE.items() for operation in operations]
    site.active()
    assert [front.hits(number) for number in lost] == [1] * len(lost)
    left = site.left()
    assert [len(left[k]) for k in ("points", "secrets", "groups", "rules", "services", "pools", "logs")] == [1, 3, 1, 1, 1, 1, 1]
    assert len(left["pools"][0]["clients"]) == 1 and len(front.state("ecs")["services"]) == 1
    assert len([t for t in front.state("ecs")["tasks"] if t["command"][1:] == ["install"]]) == 1
    front.clear()
    lost = [front.fault("cut_after", service, operation) for service, operations in REMOVED.items() for operation in operations]
    site.on("", "DELETE")
    site.reaches("DEPROVISIONED", 400)
    assert [front.hits(number) for number in lost] == [1] * len(lost)
    assert site.left() == {}


def test_a_pool_ends_up_with_one_client(front, site):
    """A request that went out twice, or a try that nobody heard of, has made more: those of its name go, another's stays."""
    held = front.fault("hold_before", "cognito-idp", "CreateUserPoolClient")
    assert site.call("POST", "", ACME).status == 202
    front.wait_held(held, 180)
    pool = front.state("cognito-idp")["pools"][0]["id"]
    for name in ("bbws-tenant-acme-client", "bbws-tenant-acme-client", "somebody-else"):
        front.do("cognito-idp", "add_client", pool=pool, name=name)
    front.release(held)
    shown = site.reaches("ACTIVE")
    clients = {c["ClientName"]: c["ClientId"] for c in front.state("cognito-idp")["pools"][0]["clients"]}
    assert len(front.state("cognito-idp")["pools"][0]["clients"]) == 2 and set(clients) == {"bbws-tenant-acme-client", "somebody-else"}
    assert json.loads(front.state("secretsmanager")[SECRETS[1]]["value"])["client_id"] == clients["bbws-tenant-acme-client"]
    assert shown["resources"]["identity"]["client"] == clients["bbws-tenant-acme-client"]


def test_C43_tasks_that_never_start_end_it(front, site):
    front.do("ecs", "pace", looks=1, seconds=0, outcome="failed")
    assert site.call("POST", "", ACME).status == 202
    until(lambda: site.show()["status"] == "FAILED", "it fails", 180, 0.1)
    assert site.show()["lastError"]["code"] == "PROV-003" and "circuit breaker" in site.show()["lastError"]["message"]
    assert site.left() == {}


def test_what_others_have_is_not_taken_over(front, site, mariadb):
    mariadb.ask("CREATE DATABASE tenant_acme_db")
    assert site.call("POST", "", ACME).status == 202
    until(lambda: site.show()["status"] == "FAILED", "it fails", 180, 0.1)
    assert site.show()["lastError"]["code"] == "PROV-002" and "somebody else" in site.show()["lastError"]["message"]
    assert mariadb.names() == ["tenant_acme_db"]


def test_suspended_resumed_scaled_parked_and_back(front, site):
    site.active()
    site.on("/status", body={"action": "suspend", "reason": "has not paid"})
    site.reaches("SUSPENDED")
    assert site.service()["desired"] == 0 and site.visit() == [503, "This site is suspended."]
    site.on("/status", body={"action": "resume"})
    site.reaches("ACTIVE")
    assert site.service()["desired"] == 2 and site.visit()[0] == 200
    site.on("/size", body={"desiredCount": 4})
    until(lambda: site.reaches("ACTIVE")["configuration"]["desiredCount"] == 4, "it has four", 120, 0.1)
    assert site.service()["desired"] == 4
    site.on("/status", body={"action": "park", "reason": "not used for now"})
    site.reaches("PARKED")
    assert "services" not in site.left() and site.visit() == [503, "This site is parked."]
    site.on("/status", body={"action": "unpark"})
    site.reaches("ACTIVE")
    assert site.visit()[0] == 200


def test_another_version_and_a_new_password(front, site, mariadb):
    site.active()
    before = json.loads(front.state("secretsmanager")[SECRETS[0]]["value"])
    assert site.ends(site.on("", body={"configuration": {"wordpressVersion": "6.4"}})) == "SUCCEEDED"
    newest = site.service()["deployments"][0]["definition"]
    definition = next(d for d in front.state("ecs")["definitions"] if "%s:%d" % (d["family"], d["revision"]) == newest)
    assert definition["asked"]["containerDefinitions"][0]["image"].endswith("/wordpress:6.4")
    assert site.ends(site.on("/rotate", "POST")) == "SUCCEEDED"
    after = json.loads(front.state("secretsmanager")[SECRETS[0]]["value"])
    assert after["password"] != before["password"]
    assert mariadb.ask_as(after["username"], after["password"], "SELECT 1") == (0, "1")
    assert mariadb.ask_as(before["username"], before["password"], "SELECT 1")[0] != 0


def test_a_rotation_that_is_tried_again_locks_no_task_out(front, site, mariadb):
    """Killed when the secret has the new password and the tasks have the old one: the next try goes on with the same."""
    site.active()
    before = json.loads(front.state("secretsmanager")[SECRETS[0]]["value"])
    held, again = (front.fault("hold_before", "ecs", "UpdateService", skip=skip) for skip in (0, 1))  # one is the probe's, at the start
    operation = site.on("/rotate", "POST")
    front.wait_held(held, 180)
    site.server.kill()
    front.release(held)
    site.server.start()
    front.wait_held(again, 180)
    after = json.loads(front.state("secretsmanager")[SECRETS[0]]["value"])
    for login in (before, after):
        assert mariadb.ask_as(login["username"], login["password"], "SELECT 1") == (0, "1")
    front.release(again)
    assert Site(site.server, front, mariadb).ends(operation) == "SUCCEEDED"
    assert json.loads(front.state("secretsmanager")[SECRETS[0]]["value"]) == after
    assert mariadb.ask_as(before["username"], before["password"], "SELECT 1")[0] != 0


def test_archived_and_restored(front, site):
    site.active()
    made = site.on("/backup", "POST")
    assert site.ends(made) == "SUCCEEDED"
    backup = site.call("GET", "/%s/backups" % site.show()["instanceId"]).json["items"][0]
    assert site.ends(site.on("/restore", "POST", {"backupId": backup["backupId"]})) == "SUCCEEDED"
    done = [(t["command"][1], t["environment"].get("LEASEHOLD_ARCHIVE_NAME")) for t in front.state("ecs")["tasks"] if t["command"]]
    assert done[1] == ("archive", backup["backupId"]) and done[2][0] == "archive" and done[3] == ("restore", backup["backupId"])


def signed_out(front):
    return [t["environment"]["LEASEHOLD_PERSON"] for t in front.state("ecs")["tasks"] if t["command"][1:] == ["signout"]]


def test_people_come_and_go(front, site):
    site.active()
    path = "/%s/people" % site.show()["instanceId"]
    got = site.call("POST", path, {"email": "Ada@acme.example", "name": "Ada"})
    assert got.status == 201 and got.json["isNew"] and len(got.json["password"]) >= 16, got.body
    again = site.call("POST", path, {"email": "ada@acme.example", "name": "Ada"})
    assert not again.json["isNew"] and again.json["password"] != got.json["password"]
    assert ["Ada@acme.example"] == [p["email"] for p in site.call("GET", path).json["items"]]
    assert site.call("DELETE", path + "/ada@acme.example").status == 200
    assert site.call("GET", path).json["items"] == [] and signed_out(front) == ["ada@acme.example"]


def test_a_person_whose_answer_was_lost_is_there_and_new(front, site):
    site.active()
    path = "/%s/people" % site.show()["instanceId"]
    front.fault("done_error", "cognito-idp", "AdminCreateUser", code="ServiceUnavailable", status=503, count=-1)
    got = site.call("POST", path, {"email": "ada@acme.example"})
    assert got.status == 201 and got.json["isNew"], got.body
    assert [(p["email"], p["name"]) for p in site.call("GET", path).json["items"]] == [("ada@acme.example", None)]
    front.clear()
    front.fault("error", "cognito-idp", "AdminCreateUser", code="ServiceUnavailable", status=503, count=-1)
    assert site.call("POST", path, {"email": "bob@acme.example"}).status == 503
    assert len(site.call("GET", path).json["items"]) == 1


def told_removed(site):
    """Whom the stored events say were removed."""
    events = Ops(site.server).events("limit=100&subject=instance/" + site.show()["instanceId"])
    return [e["detail"]["email"] for e in events if e["detail-type"] == "InstancePersonRemoved"]


def with_ada(site):
    site.active()
    path = "/%s/people" % site.show()["instanceId"]
    assert site.call("POST", path, {"email": "ada@acme.example"}).status == 201
    return path


def test_a_removal_whose_answer_was_lost_is_told_once(front, site):
    path = with_ada(site)
    front.fault("cut_after", "cognito-idp", "AdminDeleteUser")
    got = site.call("DELETE", path + "/ada@acme.example")
    assert got.status == 200, got.body
    assert site.call("GET", path).json["items"] == [] and told_removed(site) == ["ada@acme.example"]


def test_who_could_not_be_removed_is_not_told_to_be(front, site):
    path = with_ada(site)
    for operation in ("AdminUserGlobalSignOut", "AdminDeleteUser"):
        front.fault("error", "cognito-idp", operation, code="ServiceUnavailable", status=503, count=-1)
        assert site.call("DELETE", path + "/ada@acme.example").status in (503, 504)
        front.clear()
        assert len(site.call("GET", path).json["items"]) == 1 and told_removed(site) == []
    assert site.call("DELETE", path + "/ada@acme.example").status == 200 and told_removed(site) == ["ada@acme.example"]


def test_who_was_removed_halfway_is_signed_out_by_the_next_try(front, site):
    """The pool has forgotten him, and then no task could be started."""
    path = with_ada(site)
    front.fault("error", "ecs", "RunTask", code="ServerException", status=500, count=-1)
    assert site.call("DELETE", path + "/ada@acme.example").status in (503, 504)
    assert site.call("GET", path).json["items"] == [] and signed_out(front) == []
    assert told_removed(site) == ["ada@acme.example"]
    front.clear()
    assert site.call("DELETE", path + "/ada@acme.example").json["error"]["code"] == "PERSON_NOT_FOUND"
    assert signed_out(front) == ["ada@acme.example"] == told_removed(site)


@pytest.mark.parametrize("times", [3, 5])
def test_C42_a_priority_that_was_taken_meanwhile_is_passed_over(front, site, times):
    """Five times in a row, and the step comes again."""
    front.do("elbv2", "race", count=times)
    site.active()
    made = front.log("elbv2", "CreateRule")
    assert [e["code"] for e in made] == ["PriorityInUse"] * times + [None]
    assert len({e["params"]["Priority"] for e in made[:times][:4]}) == min(times, 4) and len(site.left()["rules"]) == 1 + times, site.left()["rules"]


def test_C44_a_secret_in_its_recovery_window_is_taken_up_again(front, site, mariadb):
    front.do("secretsmanager", "put", name=SECRETS[0], value="of one who has left")
    front.do("secretsmanager", "delete", name=SECRETS[0])
    key = site.active()["instanceId"]
    secret = front.state("secretsmanager")[SECRETS[0]]
    login = json.loads(secret["value"])
    assert secret["deleted"] is None and secret["tags"]["leasehold:key"] == key
    assert mariadb.ask_as(login["username"], login["password"], "SELECT 1") == (0, "1")


def test_C44_a_pool_loses_its_domain_first(front, site):
    site.active()
    site.on("", "DELETE")
    site.reaches("DEPROVISIONED")
    gone = [e["operation"] for e in front.log("cognito-idp") if e["operation"].startswith("DeleteUserPool") and not e["code"]]
    assert gone.index("DeleteUserPoolDomain") < gone.index("DeleteUserPool") and site.left() == {}


def test_C44_a_long_name_becomes_a_short_user(front, site, mariadb):
    long = Site(site.server, front, mariadb, "tenant-" + "long" * 8)
    long.active()
    users = [name for name in mariadb.names() if name.endswith("_user")]
    assert len(users) == 1 and len(users[0]) <= 32, users


def test_C45_a_task_that_cannot_be_placed_is_asked_for_again(front, site):
    front.do("ecs", "failures", reasons=["RESOURCE:CPU", "RESOURCE:MEMORY"])
    site.active()
    assert len([t for t in front.state("ecs")["tasks"] if t["command"][1:] == ["install"]]) == 1


def test_C45_a_task_that_fails_ends_it_and_tells_no_secret(front, site):
    front.do("ecs", "exit", code=1, reason="install: no", command="*install")
    assert site.call("POST", "", ACME).status == 202
    until(lambda: site.show()["status"] == "FAILED", "it fails", 180, 0.1)
    error = site.show()["lastError"]
    assert "'install' ended with exit code 1" in error["message"] and not error.get("leftovers") and site.left() == {}, error
    values = [e["params"] for e in front.log("secretsmanager", "CreateSecret")]
    assert values and all(v["SecretString"] == "(kept back)" for v in values)
    said = site.server.output()
    assert '"password"' not in said and "SecretString" not in said and "IDENTIFIED BY" not in said


def test_logs_are_those_of_the_tasks(front, site):
    site.active()
    got = site.call("GET", "/%s/logs" % site.show()["instanceId"])
    assert got.status == 200 and [line["message"] for line in got.json["logs"]][:2] == ["started", "started"], got.body


HOUR, DAY = 3600 * 1000, 24 * 3600 * 1000
GROUP, STREAM = "/aws/ecs/tenant-acme-wordpress", "wordpress/wordpress/0123"


def iso(ms):
    return datetime.datetime.fromtimestamp(ms // 1000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Log:
    """A tenant's log on the front, with small pages. What its tasks have said themselves is gone."""

    def __init__(self, front, site, page):
        self.front, self.site = front, site
        self.path = "/%s/logs" % site.active()["instanceId"]
        self.now = int(time.time()) * 1000
        front.do("logs", "add", name=GROUP)
        front.do("logs", "page", lines=page)

    def fill(self, word, start, step, count):
        self.front.do("logs", "fill", group=GROUP, stream=STREAM, word=word, start=start, step=step, count=count)

    def read(self, query=""):
        """The lines, the token of the next page, and what FilterLogEvents was asked."""
        since = self.front.count()
        got = self.site.call("GET", self.path + query)
        assert got.status == 200, got.body
        asked = [e["params"] for e in self.front.log("logs", "FilterLogEvents", since)]
        return [line["message"] for line in got.json["logs"]], got.json["nextToken"], asked


def words(word, first, last):
    return ["%s %d" % (word, i) for i in range(first, last)]


def test_the_newest_lines_are_found_without_reading_all_that_was_ever_logged(front, site):
    """Read from the oldest on, they come after more than a thousand pages."""
    log = Log(front, site, 20)
    log.fill("old", log.now - 20 * DAY, 60000, 21000)
    log.fill("new", log.now - 600000, 1000, 200)
    lines, _, asked = log.read()
    assert lines == words("new", 100, 200) and len(asked) <= 10, len(asked)
    lines, token, _ = log.read("?limit=150")
    assert lines == words("new", 50, 200)
    lines, _, asked = log.read("?limit=60&nextToken=" + token)
    assert lines == words("old", 20990, 21000) + words("new", 0, 50) and len(asked) < 80, len(asked)


def test_a_quiet_log_is_read_to_its_beginning_in_a_few_calls(front, site):
    log = Log(front, site, 20)
    log.fill("old", log.now - 900 * DAY, 1000, 7)
    log.fill("new", log.now - DAY, 1000, 5)
    lines, token, asked = log.read()
    assert (lines, token) == (words("old", 0, 7) + words("new", 0, 5), None) and len(asked) < 12, len(asked)


def test_a_busy_hour_is_read_in_parts(front, site):
    """It has more than a thousand pages; and a millisecond of it, more than an hour may have."""
    log = Log(front, site, 2)
    log.fill("line", log.now - 2400000, 1000, 2400)
    lines, _, asked = log.read()
    assert lines == words("line", 2300, 2400) and len(asked) < 200, len(asked)
    log.fill("same", log.now - 500, 0, 30)
    assert log.read("?limit=35")[0] == words("line", 2395, 2400) + words("same", 0, 30)


def test_the_times_that_were_asked_for_are_kept_to(front, site):
    log = Log(front, site, 50)
    log.fill("line", log.now - 3 * HOUR, 60000, 180)
    first = log.now - 90 * 60000
    lines, _, asked = log.read("?limit=1000&startTime=" + iso(first))
    assert lines == words("line", 90, 180) and min(a["startTime"] for a in asked) == first
    last = log.now - 2 * HOUR
    lines, _, asked = log.read("?limit=10&endTime=" + iso(last))
    assert lines == words("line", 50, 60) and max(a["endTime"] for a in asked) == last
    assert log.read("?startTime=%s&endTime=%s" % (iso(log.now - 150 * 60000), iso(last)))[0] == words("line", 30, 60)
    assert log.read("?startTime=%s&endTime=%s" % (iso(last), iso(first - HOUR)))[0] == []
    assert log.read("?startTime=" + iso(log.now + DAY))[0] == []
