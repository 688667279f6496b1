# SPDX-License-Identifier: Apache-2.0
"""The same service of instances on two drivers: the simulated cloud inside the server, and AWS as the front and a real MariaDB have it. What a test asks of
either has the same name in both."""

import json
import threading

from aws.front import names
from lib.server import ADMIN_TOKEN

KINDS = ("storage", "database", "secret", "route", "workers", "identity")


def admin(server):
    return server.client({"Authorization": "Bearer " + ADMIN_TOKEN})


class SimSites:
    domain, endpoint = "127.0.0.1", "http://127.0.0.1/"

    def start(self, make, **env):
        server = make.server(count=1, args=["--dev"], **env)
        server.sites = self
        return server

    def faults(self, server, *rules):
        """What goes wrong from now on, as PUT /v1/sim/faults has it."""
        got = admin(server).request("PUT", "/v1/sim/faults", body={"faults": list(rules)})
        assert got.status == 200, got.body

    def resources(self, server, tenant):
        """Kinds of what there is for a tenant, in the order in which they are made."""
        world = admin(server).get("/v1/sim").json
        return [r["resource"] for t in world["tenants"] if t["tenant"] == tenant for r in t["resources"]]

    def tasks(self, _server, _tenant, count):
        return ["task-%d" % i for i in range(1, count + 1)]

    def everything(self, server):
        """What there is to see of the driver, in which no password may be."""
        return json.dumps(admin(server).get("/v1/sim").json)


# What of AWS stands for a call of the port. The delete of a database is SQL: see below.
OPERATIONS = {("create-resource", "identity"): ("cognito-idp", "CreateUserPool"), ("create-resource", "route"): ("elbv2", "CreateTargetGroup"),
              ("list-tasks", None): ("ecs", "DescribeServices"), ("add-person", None): ("cognito-idp", "AdminCreateUser"),
              ("remove-person", None): ("ecs", "RunTask"), ("create-resource", None): (None, None)}


class AwsSites:
    domain, endpoint = names.SITE_DOMAIN, "https://%s/tenant/" % names.SITE_DOMAIN

    def __init__(self, front, mariadb):
        from lib import mariadb as library

        self.front, self.mariadb, self.library = front, mariadb, library
        mariadb.clear()
        front.do("secretsmanager", "put", name=names.DB_ADMIN_SECRET, value=json.dumps({"username": library.ADMIN, "password": library.PASSWORD}))
        front.do("ecs", "task_pace", looks=1, seconds=0)

    def env(self):
        return {**self.front.credentials(), "AWS_ENDPOINT_URL": self.front.url, "AWS_REGION": names.REGION, "AWS_EC2_METADATA_DISABLED": "true",
                "LEASEHOLD_INSTANCE_DRIVER": "aws", "LEASEHOLD_ENV": names.ENV, "LEASEHOLD_ECS_CLUSTER": names.CLUSTER, "LEASEHOLD_EFS_ID": names.FILE_SYSTEM,
                "LEASEHOLD_VPC_ID": names.VPC, "LEASEHOLD_SUBNETS": ",".join(names.SUBNETS), "LEASEHOLD_SECURITY_GROUPS": ",".join(names.SECURITY_GROUPS),
                "LEASEHOLD_LISTENER_ARN": names.LISTENER, "LEASEHOLD_EXECUTION_ROLE_ARN": names.EXECUTION_ROLE, "LEASEHOLD_TASK_ROLE_ARN": names.SITE_ROLE,
                "LEASEHOLD_WORDPRESS_IMAGE": names.IMAGE, "LEASEHOLD_WORDPRESS_VERSIONS": "6.5 6.4 6.1", "LEASEHOLD_SITE_DOMAIN": names.SITE_DOMAIN,
                "LEASEHOLD_ARCHIVE_BUCKET": names.ARCHIVE_BUCKET, "LEASEHOLD_DB_HOST": self.mariadb.host,
                "LEASEHOLD_DB_ADMIN_SECRET": names.DB_ADMIN_SECRET, "LEASEHOLD_DB_CA_FILE": self.mariadb.certificate.cert}

    def start(self, make, **env):
        server = make.server(count=1, **{**self.env(), **env})
        server.sites = self
        return server

    def may_drop(self, word):
        self.mariadb.ask("%s DROP ON *.* %s %s@'%%'" % (*word, self.library.ADMIN))

    def keep_database(self, held):
        """From when it is there and the next thing begins, which waits for that: it cannot be dropped."""

        def wait():
            self.front.wait_held(held, 180)
            self.may_drop(("REVOKE", "FROM"))
            self.front.release(held)

        threading.Thread(target=wait, daemon=True).start()

    def faults(self, _server, *rules):
        self.front.clear()
        self.may_drop(("GRANT", "TO"))
        for rule in rules:
            call, resource = rule["call"], rule.get("resource")
            if (call, resource) == ("delete-resource", "database"):
                self.keep_database(self.front.fault("hold_before", "elbv2", "DescribeTargetGroups"))
                continue
            service, operation = OPERATIONS[call, resource]
            if rule["fault"] == "latency":
                self.front.fault("delay", service, operation, ms=rule["latency_ms"], count=-1)
            else:
                self.front.fault("error", service, operation, count=-1, code="ServiceUnavailable", status=503)

    def databases(self, tenant):
        return self.mariadb.ask("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_COMMENT LIKE '%% %s %%'" % tenant).split()

    def resources(self, _server, tenant):
        state = self.front.state

        def is_its(tags):
            return tags.get("bbws:tenant-id") == tenant

        found = {"storage": [p for p in state("efs")["access_points"] if is_its(p["tags"]) and p["state"] != "deleting"],
                 "database": self.databases(tenant),
                 "secret": [n for n, s in state("secretsmanager").items() if is_its(s["tags"])],
                 "route": [g for g in [*state("elbv2")["groups"], *state("elbv2")["rules"]] if is_its(g["tags"])],
                 "workers": [s for s in state("ecs")["services"] if is_its(s["tags"]) and s["status"] == "ACTIVE"],
                 "identity": [p for p in state("cognito-idp")["pools"] if is_its(p["tags"])]}
        return [kind for kind in KINDS if found[kind]]

    def tasks(self, _server, tenant, count):
        ids = [t["id"] for t in self.front.state("ecs")["tasks"] if t["service"] and t["tags"].get("bbws:tenant-id") == tenant]
        assert len(ids) == count
        return ids

    def everything(self, _server):
        return json.dumps(self.front.log())
