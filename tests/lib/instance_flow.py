# SPDX-License-Identifier: Apache-2.0
"""A tenant's instance on AWS from its request until nothing is left of it, as a flow whose calls can be disturbed."""

import itertools

from lib.aws_front import statements
from lib.every_call import Flow
from lib.http import Broken
from lib.ops import Ops
from lib.server import ADMIN_TOKEN
from lib.sites import AwsSites
from lib.sql_gate import SqlGate
from lib.wait import until

ACME = {"organizationName": "Acme", "contactEmail": "it@acme.example"}
SQL = "sql"
numbers = itertools.count(1)


class InstanceFlow(Flow):
    looks = 1

    def __init__(self, make, front, mariadb):
        super().__init__(make, front)
        self.mariadb, self.sites, self.sql, self.sql_calls = mariadb, None, SqlGate(mariadb), 0

    def begin(self):
        for role, allowed in statements().items():
            self.front.do("sts", "policy", role=role, statements=allowed)
        self.sites = AwsSites(self.front, self.mariadb)
        self.server = self.sites.start(self.make, LEASEHOLD_DB_HOST=self.sql.host)
        self.end_jobs()

    # Statements are calls, too.

    def calls(self, since):
        return super().calls(since) + [("sql", "statement", i) for i in range(self.sql.calls - self.sql_calls)]

    def disturb(self, kind, call):
        if call[0] != "sql":
            return super().disturb(kind, call)
        self.sql.fault(kind, call[2])
        return SQL

    def is_holding(self, number):
        return self.sql.rule.holding if number == SQL else super().is_holding(number)

    def release(self, number):
        if number == SQL:
            self.sql.rule.released.set()
        else:
            super().release(number)

    def end_disturbance(self, number):
        if number != SQL:
            return super().end_disturbance(number)
        hits = self.sql.rule.hits
        self.sql.clear()
        return hits

    def accounts(self):
        return ("tenant-t%d" % next(numbers) for _ in itertools.count())

    def call(self, method, path, body=None, **headers):
        """What it answered, or None: a server that was killed meanwhile does not answer."""
        try:
            got = self.server.client({"Authorization": "Bearer " + ADMIN_TOKEN, **headers}).request(method, path, body=body)
            return got if got.status < 500 else None
        except (OSError, Broken, TypeError):  # the last: it has no address yet
            return None

    def until(self, condition, what):
        return until(condition, "%s %s" % (self.tenant, what), 300, 0.1)

    def show(self):
        got = self.call("GET", "/v1.0/tenants/-/instances/" + self.tenant)
        return got.json if got and got.status == 200 else None

    def is_at(self, status):
        shown = self.show()
        assert not shown or shown["status"] != "FAILED", shown
        return shown and shown["status"] == status and shown

    def run(self, tenant):
        self.tenant, base = tenant, "/v1.0/tenants/%s/instances" % tenant
        self.sql_calls = self.sql.calls
        self.until(lambda: (self.call("POST", base, ACME, **{"Idempotency-Key": tenant}) or 0) and True, "is asked for")
        self.instance = self.until(lambda: self.is_at("ACTIVE"), "is active")["instanceId"]
        self.check_one()
        self.until(lambda: (lambda got: got and got.status in (202, 422))(self.call("DELETE", base + "/" + self.instance)), "is given back")
        self.until(lambda: self.is_at("DEPROVISIONED"), "is gone")

    def things(self):
        """How many there are of each thing that the tenant has."""
        state = self.front.state

        def mine(things, tags=lambda t: t["tags"]):
            return sum(tags(t).get("bbws:tenant-id") == self.tenant for t in things)

        ecs, elb = state("ecs"), state("elbv2")
        return {"points": mine(p for p in state("efs")["access_points"] if p["state"] != "deleting"), "secrets": mine(state("secretsmanager").values()),
                "groups": mine(elb["groups"]), "rules": mine(elb["rules"]), "services": mine(s for s in ecs["services"] if s["status"] == "ACTIVE"),
                "pools": mine(state("cognito-idp")["pools"]), "logs": mine(state("logs")["groups"].values()), "databases": len(self.sites.databases(self.tenant)),
                "running": mine(t for t in ecs["tasks"] if t["status"] != "STOPPED" and not t["service"])}

    def definitions(self):
        return sum(d["tags"].get("bbws:tenant-id") == self.tenant for d in self.front.state("ecs")["definitions"] if d["status"] == "ACTIVE")

    def check_one(self):
        assert self.things() == {"points": 1, "secrets": 3, "groups": 1, "rules": 1, "services": 1, "pools": 1, "logs": 1, "databases": 1, "running": 0}
        pool = next(p for p in self.front.state("cognito-idp")["pools"] if p["tags"].get("bbws:tenant-id") == self.tenant)
        assert len(pool["clients"]) == 1 and pool["domain"]
        assert self.front.do("elbv2", "visit", path="/tenant/%s/" % self.tenant[len("tenant-"):])[0] == 200

    def check(self, tenant, _since):
        assert set(self.things().values()) == {0} and self.definitions() == 0, self.things()
        ops = Ops(self.server)
        for event in ("CLUSTER_CREATION_COMPLETE", "CLUSTER_DELETION_COMPLETE"):
            told = [e["detail"]["status"] for e in ops.events("type=%s&subject=instance/%s" % (event, self.instance))]
            assert told == ["SUCCESS"], (event, told)
        assert ops.read("sagas?state=parked")["sagas"] == [] and ops.read("dead-letters")["dead_letters"] == []
