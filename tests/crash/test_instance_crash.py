# SPDX-License-Identifier: Apache-2.0
"""kill -9 while instances are provisioned and removed: afterwards each is ACTIVE, FAILED with nothing left over, or DEPROVISIONED with its archive;
nothing is doubled, and each completion was told once."""

import os
import random
from collections import Counter

from lib.http import Broken
from lib.ops import Ops
from lib.server import ADMIN_TOKEN
from lib.wait import until

ROUNDS = 12
SEED = int(os.environ.get("LEASEHOLD_CRASH_SEED", "7"))
TENANTS = ["tenant-crash-%d" % i for i in range(4)]
BODY = {"organizationName": "Acme", "contactEmail": "it@acme.example"}
AT_REST = {"ACTIVE", "FAILED", "DEPROVISIONED"}


def test_crash_during_provisioning_and_removal(make):
    server = make.server(args=["--dev"], LEASEHOLD_SIM_SANDBOXES="1")
    rng = random.Random(SEED)
    taken, kills = [], 0

    def client():
        return server.client({"Authorization": "Bearer " + ADMIN_TOKEN})

    def show(c, tenant):
        return c.get("/v1.0/tenants/-/instances/" + tenant)

    for number in range(4 * ROUNDS):
        if number >= ROUNDS and 2 * len(taken) >= ROUNDS:
            break  # on a slow machine most are still at the last operation when the next is asked for
        try:
            c = client()
            for tenant in rng.sample(TENANTS, 3):
                got = show(c, tenant)
                if got.status == 200 and got.json["status"] == "ACTIVE":
                    got = c.request("DELETE", "/v1.0/tenants/-/instances/" + tenant)
                else:
                    got = c.post("/v1.0/tenants/%s/instances" % tenant, body=BODY)
                if got.status == 202:
                    taken.append(got.json["operationId"])
            for _ in range(rng.randrange(40)):
                show(c, rng.choice(TENANTS))  # some of the steps happen meanwhile
        except (Broken, OSError):
            pass
        server.kill()
        kills += 1
        server.start()
    c = client()

    def settled():
        found = [show(c, t) for t in TENANTS]
        found = [f.json for f in found if f.status == 200]
        return found if all(f["status"] in AT_REST and f["operation"] is None for f in found) else None

    found = until(settled, "all are at rest", 120, 0.2)
    world = {t["tenant"]: t["resources"] for t in c.get("/v1/sim").json["tenants"]}
    for instance in found:
        have = world.get(instance["tenantId"], [])
        kinds = Counter(r["resource"] for r in have)
        assert {r["instance"] for r in have} <= {instance["instanceId"]}
        assert len(kinds) == (6 if instance["status"] == "ACTIVE" else 0), instance
        if instance["status"] == "DEPROVISIONED" and instance["activatedAt"]:
            assert instance["archiveId"]
    told = Counter(e["detail"].get("operationId") for e in Ops(server).events("type=CLUSTER_*&limit=100"))
    assert len(taken) >= ROUNDS / 2 and set(taken) <= set(told) and set(told.values()) == {1}
    assert Ops(server).read("sagas?state=parked")["sagas"] == []
    print("%d kills during provisioning and removal" % kills)
