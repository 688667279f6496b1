# SPDX-License-Identifier: Apache-2.0
"""The document's table {env}-tenant-resources: what another program finds there of an instance, at every moment of its life."""

import re

import pytest

from lib.server import ADMIN_TOKEN
from lib.wait import until

# Section 8.3 of the document: attribute and type. All but the last errors and ends are there from the beginning or from when the thing was made.
SCHEMA = {"PK": "S", "SK": "S", "tenantId": "S", "provisioningState": "S", "ecsServiceArn": "S", "efsAccessPointId": "S", "databaseName": "S",
          "databaseSecretArn": "S", "albListenerRuleArn": "S", "cognitoUserPoolId": "S", "desiredCount": "N", "provisioningStartedAt": "S",
          "provisioningCompletedAt": "S", "createdAt": "S", "updatedAt": "S", "version": "N"}
# Those that it lacks, and the keys of the index that works.
MORE = {"instanceId": "S", "organizationName": "S", "contactEmail": "S", "tier": "S", "wordpressVersion": "S", "GSI1PK": "S", "GSI1SK": "S"}
TYPES = {"ALB", "COGNITO", "ECS", "EFS", "RDS", "SECRET"}
STATES = ("PENDING_PROVISIONING", "PROVISIONING_EFS", "PROVISIONING_RDS", "PROVISIONING_ECS", "CONFIGURING_ALB", "PROVISIONING_COGNITO",
          "CONFIGURING_WORDPRESS", "ACTIVE", "SUSPENDING", "SUSPENDED", "RESUMING", "PARKING", "PARKED", "UNPARKING", "PENDING_DEPROVISIONING",
          "DEPROVISIONING", "DEPROVISIONED", "FAILED", "SCALING")
TENANT = "tenant-abc123"


class World:
    def __init__(self, make, store):
        self.db, self.table = store.db, store.kernel + "-tenant-resources"
        self.env = {**store.env, "LEASEHOLD_ENV": store.kernel, "LEASEHOLD_INSTANCE_DRIVER": "sim", "LEASEHOLD_STORE_DEADLINE_MS": "8000"}
        self.make, self.store = make, store
        self.create_tables()

    def create_tables(self):
        got = self.store.run("store", "create-tables", LEASEHOLD_ENV=self.env["LEASEHOLD_ENV"], LEASEHOLD_INSTANCE_DRIVER="sim")
        assert got.returncode == 0, got.stderr

    def start(self):
        self.server = self.make.server(count=1, args=["--dev"], **self.env)
        self.client = self.server.client({"Authorization": "Bearer " + ADMIN_TOKEN})
        return self

    def call(self, method, path="", body=None, tenant=TENANT):
        got = self.client.request(method, "/v1.0/tenants/%s/instances%s" % (tenant, path), body=body)
        assert got.status in (200, 202), got.body
        return got.json

    def create(self, tenant=TENANT):
        return self.call("POST", body={"organizationName": "Acme", "contactEmail": "it@acme.example"}, tenant=tenant)["instanceId"]

    def item(self, tenant=TENANT):
        got = self.db("GetItem", TableName=self.table, ConsistentRead=True, Key={"PK": {"S": "TENANT#" + tenant}, "SK": {"S": "INSTANCE"}})
        return got.get("Item")

    def resources(self, tenant=TENANT):
        got = self.db("Query", TableName=self.table, ConsistentRead=True, KeyConditionExpression="PK = :p AND begins_with(SK, :s)",
                      ExpressionAttributeValues={":p": {"S": "TENANT#%s#INSTANCE" % tenant}, ":s": {"S": "RESOURCE#"}})
        return {i["SK"]["S"].split("#")[1]: i for i in got["Items"]}

    def of_state(self, state):
        """By the index, across all tenants, oldest first."""
        got = self.db("Query", TableName=self.table, IndexName="GSI1", KeyConditionExpression="GSI1PK = :p",
                      ExpressionAttributeValues={":p": {"S": "STATE#" + state}})
        return [i["tenantId"]["S"] for i in got["Items"]]

    def until_state(self, state, tenant=TENANT):
        return until(lambda: (lambda i: i if i and i["provisioningState"]["S"] == state else None)(self.item(tenant)), "%s is %s" % (tenant, state), 120)

    def drop(self):
        if self.table in self.db.tables():
            self.db("DeleteTable", TableName=self.table)


@pytest.fixture
def world(make, store):
    made = World(make, store)
    yield made
    made.drop()


def test_the_table_has_the_documents_keys_and_the_one_index_that_lists_by_state(world):
    described = world.db("DescribeTable", TableName=world.table)["Table"]
    assert {(k["AttributeName"], k["KeyType"]) for k in described["KeySchema"]} == {("PK", "HASH"), ("SK", "RANGE")}
    assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    index, = described["GlobalSecondaryIndexes"]
    assert index["IndexName"] == "GSI1" and {k["AttributeName"] for k in index["KeySchema"]} == {"GSI1PK", "GSI1SK"}
    checked = {"LEASEHOLD_ENV": world.env["LEASEHOLD_ENV"], "LEASEHOLD_INSTANCE_DRIVER": "sim"}
    assert world.store.run("store", "check", **checked).returncode == 0
    world.drop()
    got = world.store.run("store", "check", **checked)
    assert got.returncode != 0 and "table %s: is missing" % world.table in got.stdout + got.stderr
    assert world.store.run("store", "check").returncode == 0, "without a driver there is no need of it"


def test_the_life_of_an_instance_is_in_the_table(world):
    world.start()
    instance = world.create()
    first = world.item()
    assert first["provisioningState"]["S"] in STATES and first["instanceId"] == {"S": instance}, "as soon as it is answered"
    item = world.until_state("ACTIVE")
    assert {k: list(v)[0] for k, v in item.items() if k in SCHEMA} == SCHEMA
    assert {k: list(v)[0] for k, v in item.items() if k in MORE} == MORE
    assert int(item["version"]["N"]) > int(first["version"]["N"]) and item["desiredCount"] == {"N": "2"}
    for name in ("createdAt", "updatedAt", "provisioningStartedAt", "provisioningCompletedAt"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", item[name]["S"]), item[name]
    assert item["GSI1SK"]["S"] == "%s#%s" % (item["updatedAt"]["S"], TENANT)
    resources = world.resources()
    assert set(resources) == TYPES and all(r["tenantId"]["S"] == TENANT and r["resourceType"]["S"] == t and r["id"]["S"] for t, r in resources.items())
    world.call("PUT", "/%s/status" % instance, {"action": "park", "reason": "quiet"})
    assert world.until_state("PARKED")["statusReason"] == {"S": "quiet"}
    assert "ECS" not in world.resources() and "RDS" in world.resources()
    world.call("DELETE", "/" + instance)
    assert "ecsServiceArn" not in world.until_state("DEPROVISIONED")
    assert world.resources() == {}


def test_a_new_instance_of_the_tenant_takes_the_item_over(world):
    world.start()
    old = world.create()
    world.until_state("ACTIVE")
    world.call("DELETE", "/" + old)
    world.until_state("DEPROVISIONED")
    new = world.create()
    assert new != old and world.until_state("ACTIVE")["instanceId"] == {"S": new}


def test_the_index_lists_by_state_across_tenants(world):
    world.start()
    for tenant in ("tenant-one", "tenant-two"):
        world.create(tenant)
    for tenant in ("tenant-one", "tenant-two"):
        world.until_state("ACTIVE", tenant)
    until(lambda: sorted(world.of_state("ACTIVE")) == ["tenant-one", "tenant-two"], "both are listed", 60)
    assert world.of_state("FAILED") == []


def test_what_ecs_says_is_in_the_item_as_a_map(world):
    world.start()
    instance = world.create()
    world.until_state("ACTIVE")
    name = world.call("GET", "/" + instance)["resources"]["workers"]["name"]
    event = {"version": "0", "id": "e-1", "detail-type": "ECS Service Action", "source": "aws.ecs", "time": "2030-01-02T03:04:05Z",
             "resources": ["arn:aws:ecs:us-east-1:100000000002:service/tenants/" + name], "detail": {"eventName": "SERVICE_STEADY_STATE"}}
    got = world.client.request("POST", "/v1/inbox/ecs", body=event)
    assert got.status in (200, 202), got.body
    item = until(lambda: (lambda i: i if "lastEcsEvent" in i else None)(world.item()), "it is noted", 60)
    assert item["lastEcsEvent"]["M"]["eventName"] == {"S": "SERVICE_STEADY_STATE"} and item["lastEcsEvent"]["M"]["detailType"] == {"S": "ECS Service Action"}


def test_without_the_table_nothing_of_an_instance_is_written(world):
    world.start()
    world.drop()
    got = world.client.request("POST", "/v1.0/tenants/%s/instances" % TENANT, body={"organizationName": "Acme", "contactEmail": "it@acme.example"})
    assert got.status == 503, got.body
    assert world.call("GET")["items"] == []
    world.create_tables()
    world.create()
    world.until_state("ACTIVE")


def test_where_no_driver_is_named_there_is_no_such_table(make, store):
    server = make.server(count=1, args=["--dev"], **store.env, LEASEHOLD_STORE_DEADLINE_MS="8000")
    client = server.client({"Authorization": "Bearer " + ADMIN_TOKEN})
    assert client.request("POST", "/v1.0/tenants/%s/instances" % TENANT, body={"organizationName": "Acme", "contactEmail": "it@acme.example"}).status == 202
    assert not [name for name in store.db.tables() if name.endswith("-tenant-resources")]
