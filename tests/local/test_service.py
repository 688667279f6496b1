# SPDX-License-Identifier: Apache-2.0
"""Instances through the server itself, with the local driver: from the POST to a page, through a crash, to the archives."""

import itertools
import os
import random
import tempfile
import time

import pytest

from lib import signin
from lib.local_driver import Driver, Load, Site, remove
from lib.server import Server
from lib.wait import until

ids = itertools.count(1)


class Instances:
    """The server, and its folder of instances looked at from outside."""

    def __init__(self, data):
        self.folder = tempfile.mkdtemp(prefix="leasehold-", dir="/tmp")
        os.chmod(self.folder, 0o711)
        self.local = Driver(self.folder)
        env = {
            "LEASEHOLD_INSTANCE_DRIVER": "local",
            "LEASEHOLD_INSTANCE_ROUTER": self.local.router,
            "LEASEHOLD_INSTANCE_FOLDER": self.folder,
        }
        self.server = Server(data, env)

    def call(self, method, path, body=None, status=None):
        admin = self.server.admin()
        reply = admin.request(method, "/v1.0/tenants/" + path, body=body)
        admin.close()
        assert status is None or reply.status == status, reply
        return reply.json

    def wait(self, tenant, instance, state, timeout=240):
        def look():
            got = self.call("GET", "%s/instances/%s" % (tenant, instance), status=200)
            assert got["provisioningState"] != "FAILED" or state == "FAILED", got
            return got if got["provisioningState"] == state else None

        return until(look, "instance of %s is %s" % (tenant, state), timeout, 0.05)

    def provision(self, tenant, **more):
        body = {"organizationName": "Org of " + tenant, "contactEmail": "owner@example.org", **more}
        instance = self.call("POST", tenant + "/instances", body, 202)["instanceId"]
        return instance, self.wait(tenant, instance, "ACTIVE")

    def end(self):
        self.server.kill()
        self.local.end_all()
        remove(self.folder)


@pytest.fixture(scope="module")
def instances(tmp_path_factory):
    made = Instances(tmp_path_factory.mktemp("data"))
    try:
        made.server.start()
        yield made
    finally:
        made.end()


@pytest.fixture
def tenant():
    return "tenant-s%d" % next(ids)


def test_the_whole_life_of_a_site(instances, tenant):
    instance, shown = instances.provision(tenant)
    site = Site(instances.local, tenant)
    assert shown["endpoint"] == site.url + "/"
    assert site.get().status == 200
    path = "%s/instances/%s" % (tenant, instance)

    with Load(site.url + "/", threads=2) as load:
        instances.call("PUT", path + "/size", {"desiredCount": 4}, 202)
        instances.wait(tenant, instance, "ACTIVE")
        assert instances.call("GET", path + "/status", status=200)["runningCount"] == 4
        instances.call("PUT", path + "/size", {"desiredCount": 2}, 202)
        instances.wait(tenant, instance, "ACTIVE")
        load.more(4)
    assert load.bad() == []

    instances.call("PUT", path + "/status", {"action": "suspend", "reason": "a bill is not paid"}, 202)
    instances.wait(tenant, instance, "SUSPENDED")
    assert site.get().status == 503 and site.get("/wp-includes/css/dashicons.css").status == 503
    instances.call("PUT", path + "/status", {"action": "resume"}, 202)
    instances.wait(tenant, instance, "ACTIVE")
    assert site.get().status == 200

    instances.call("PUT", path + "/status", {"action": "park", "reason": "nobody uses it now"}, 202)
    instances.wait(tenant, instance, "PARKED")
    assert "parked" in site.get().text
    instances.call("PUT", path + "/status", {"action": "unpark"}, 202)
    instances.wait(tenant, instance, "ACTIVE")
    assert site.get().status == 200

    instances.call("DELETE", path, status=202)
    instances.wait(tenant, instance, "DEPROVISIONED")
    assert site.get().status == 404
    archives = list((instances.local.folder / "archives" / tenant).iterdir())
    assert len(archives) == 1 and (archives[0] / "database.sql.gz").stat().st_size > 1000
    assert not (instances.local.folder / "tenants" / (tenant + ".json")).exists()


def test_a_person_who_was_added_signs_in_and_one_who_was_removed_does_not(instances, tenant):
    """By the API to the provider to WordPress."""
    instance, _ = instances.provision(tenant)
    site = Site(instances.local, tenant)
    people = "%s/instances/%s/people" % (tenant, instance)
    assert [p["email"] for p in instances.call("GET", people, status=200)["items"]] == ["owner@example.org"]
    first = instances.call("POST", people, {"email": "ann@people.example", "name": "Ann"}, 201)["password"]
    browser, _ = signin.sign_in(site, "ann@people.example", first, new=signin.PASSWORD)
    assert signin.who(site, browser) == "ann@people.example"
    stranger, page = signin.sign_in(site, "bob@people.example", signin.PASSWORD)
    assert page.status == 401 and signin.who(site, stranger) is None
    instances.call("DELETE", people + "/ann@people.example", status=200)
    assert signin.who(site, browser) is None, "signed out"
    again, page = signin.sign_in(site, "ann@people.example", signin.PASSWORD)
    assert page.status == 401 and signin.who(site, again) is None
    instances.call("DELETE", people + "/ann@people.example", status=404)
    assert first not in instances.server.output()
    instances.call("DELETE", "%s/instances/%s" % (tenant, instance), status=202)
    instances.wait(tenant, instance, "DEPROVISIONED")


def read_logs(instances, path, size):
    """All lines, page by page."""
    seen, token = [], ""
    while token is not None:
        page = instances.call("GET", "%s?limit=%d%s" % (path, size, token and "&nextToken=" + token), status=200)
        seen = [(line["timestamp"], line["taskId"], line["message"]) for line in page["logs"]] + seen
        token = page["nextToken"]
    return seen


def test_logs_are_the_same_by_pages_as_at_once(instances, tenant):
    """Many lines are of the same second."""
    instance, _ = instances.provision(tenant)
    path = "%s/instances/%s/logs" % (tenant, instance)
    for _ in range(4):
        assert Site(instances.local, tenant).get().status == 200

    def look():
        whole, paged = read_logs(instances, path, 1000), read_logs(instances, path, 3)
        return len(whole) > 6 and read_logs(instances, path, 1000) == whole and (whole, paged)

    whole, paged = until(look, "nothing is logged meanwhile")
    assert paged == whole
    instances.call("DELETE", "%s/instances/%s" % (tenant, instance), status=202)
    instances.wait(tenant, instance, "DEPROVISIONED")


def test_a_killed_server_finds_its_sites_again(instances, tenant):
    instance, _ = instances.provision(tenant)
    site = Site(instances.local, tenant)
    before = instances.local.masters()
    instances.server.kill()
    assert site.get().status == 200
    instances.server.start()
    got = instances.call("GET", "%s/instances/%s/status" % (tenant, instance), status=200)
    until(
        lambda: instances.call("GET", "%s/instances/%s/status" % (tenant, instance), status=200)["runningCount"] == 2,
        "both tasks are known again, not %s" % got,
    )
    assert instances.local.masters() == before
    assert site.get().status == 200


def settled(instances, tenant, instance):
    """Its state once nothing is under way."""
    rest = ("ACTIVE", "FAILED", "DEPROVISIONED")
    look = lambda: instances.call("GET", "%s/instances/%s" % (tenant, instance), status=200)["provisioningState"]
    return until(lambda: look() in rest and look(), "instance of %s rests" % tenant, 300, 0.1)


def test_killed_at_any_moment_nothing_is_doubled_or_left_over(instances):
    """Provisioning and removal, each cut off at a moment of its own. LEASEHOLD_KILLS=20 for more rounds, LEASEHOLD_SEED for the same again."""
    seed = int(os.environ.get("LEASEHOLD_SEED", time.time()))
    chance = random.Random(seed)
    known = {}
    for number in range(int(os.environ.get("LEASEHOLD_KILLS", "4"))):
        active = [t for t, i in known.items() if settled(instances, t, i) == "ACTIVE"] if number % 2 else []
        if active:
            tenant = chance.choice(active)
            instances.call("DELETE", "%s/instances/%s" % (tenant, known[tenant]), status=202)
        else:
            tenant = "tenant-k%d" % number
            body = {"organizationName": "Org", "contactEmail": "owner@example.org"}
            known[tenant] = instances.call("POST", tenant + "/instances", body, 202)["instanceId"]
        time.sleep(chance.uniform(0, 2.5))  # the moment is what differs
        instances.server.kill()
        instances.server.start()
    states = {t: settled(instances, t, i) for t, i in known.items()}
    for tenant, state in states.items():
        where = "seed %d: %s is %s" % (seed, tenant, state)
        is_there = (instances.local.folder / "tenants" / (tenant + ".json")).exists()
        assert is_there == (state == "ACTIVE"), where
        archives = instances.local.folder / "archives" / tenant
        assert archives.exists() == (state == "DEPROVISIONED"), where
        if state == "ACTIVE":
            assert Site(instances.local, tenant).get().status == 200, where
            instances.call("DELETE", "%s/instances/%s" % (tenant, known[tenant]), status=202)
    mine = [c for c in instances.local.masters().values() if "pools/" in c]
    assert len(mine) == len(set(mine)), "seed %d: never two of one task" % seed
    for tenant in known:
        assert settled(instances, tenant, known[tenant]) in ("FAILED", "DEPROVISIONED")
    assert not [p for p in (instances.local.folder / "tenants").iterdir() if p.name.startswith("tenant-k")]


def test_an_orderly_stop_of_the_server_ends_its_sites(instances):
    assert instances.server.stop() == 0
    assert instances.local.processes() == {}
    instances.server.start()


def test_killed_in_the_middle_an_instance_comes_about_once(instances, tenant):
    body = {"organizationName": "Org", "contactEmail": "owner@example.org"}
    instance = instances.call("POST", tenant + "/instances", body, 202)["instanceId"]
    for state in ("PROVISIONING_RDS", "CONFIGURING_WORDPRESS"):
        order = ["PENDING_PROVISIONING", "PROVISIONING_EFS", "PROVISIONING_RDS", "PROVISIONING_ECS", "CONFIGURING_ALB", "PROVISIONING_COGNITO", "CONFIGURING_WORDPRESS", "ACTIVE"]
        look = lambda: order.index(instances.call("GET", "%s/instances/%s" % (tenant, instance), status=200)["provisioningState"])
        until(lambda: look() >= order.index(state), "it is at " + state, 180, 0.005)
        instances.server.kill()
        instances.server.start()
    instances.wait(tenant, instance, "ACTIVE")
    site = Site(instances.local, tenant)
    assert site.get().status == 200
    mine = [c for c in instances.local.masters().values() if "pools/" in c]
    assert len(mine) == len(set(mine)), "never two of one task"
