# SPDX-License-Identifier: Apache-2.0
"""kill -9 while leases are approved and ended: what was answered holds, what was begun is finished, and each account has one lease."""

import os
import random
from collections import Counter

from lib import leases
from lib.http import Broken
from lib.leases import Pool
from lib.ops import Ops
from lib.wait import until

ROUNDS = 12  # there are 20 accounts
SEED = int(os.environ.get("LEASEHOLD_CRASH_SEED", "5"))


def test_crash_during_approval(make):
    server = make.server(args=["--dev"], **leases.env(make.folder, LEASEHOLD_SIM_ACCOUNTS="20", LEASEHOLD_POLL_MS="100"))
    rng = random.Random(SEED)
    told, sent = {}, []
    for _ in range(ROUNDS):
        pool = Pool(server)
        lease = pool.pending(pool.person())
        sent.append(lease)
        try:
            reply = pool.manager.call("POST", "/leases/%s/review" % lease["leaseId"], {"action": "Approve"})
            if reply.status == 200:
                told[lease["uuid"]] = reply.json["data"]["status"]
            for _ in range(rng.randrange(4)):
                pool.show(lease)  # some of the steps outside happen meanwhile
        except (Broken, OSError):
            pass
        server.kill()
        server.start()
    pool = Pool(server)

    def settled():
        found = [pool.show(l) for l in sent]
        return found if all(l["status"] == "Active" for l in found if l["uuid"] in told) else None

    found = until(settled, "every lease that was approved is Active", 60, 0.2)
    assert len(told) == ROUNDS, "the answer came before the kill"
    used = Counter(l["awsAccountId"] for l in found)
    assert max(used.values()) == 1 and len(used) == ROUNDS
    approved = Counter(e["subject"] for e in Ops(server).events("type=LeaseApproved&limit=100"))
    assert set(approved.values()) == {1} and len(approved) == ROUNDS
    assert Ops(server).read("sagas?state=parked")["sagas"] == []
    print("%d kills during approvals" % ROUNDS)
