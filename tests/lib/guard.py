# SPDX-License-Identifier: Apache-2.0
"""A server that stands guard beside another system, seen from outside."""

from lib.ops import Ops
from lib.server import ADMIN_TOKEN, run
from lib.wait import until

# A day is 2.4 seconds; a shorter hold would not keep two bills apart.
SCALE = 36000
HOURS = 40
ENV = {
    "LEASEHOLD_QUARANTINE": "guard",
    "LEASEHOLD_TIME_SCALE": SCALE,
    "QUARANTINE_DURATION_HOURS": HOURS,
    "LEASEHOLD_SIM_ACCOUNTS": 3,
}
FOUND = 7  # the doctor's exit code


class Guarded:
    def __init__(self, server):
        self.server, self.ops = server, Ops(server)

    def world(self):
        return self.ops.get("/v1/sim").json

    def accounts(self, ou):
        return [a["id"] for o in self.world()["ous"] if o["name"] == ou for a in o["accounts"]]

    def place(self, account):
        return next(o["name"] for o in self.world()["ous"] if account in [a["id"] for a in o["accounts"]])

    def move(self, account, source, destination):
        """As the other system does, or somebody in the console."""
        body = {"from": source, "to": destination}
        assert self.ops.post("/v1/sim/accounts/%s/move" % account, body=body).status in (200, 204)

    def clean(self, account):
        self.move(account, "Available", "CleanUp")
        self.move(account, "CleanUp", "Available")

    def actions(self, account):
        """What the guard says that it did with the account, in order."""
        events = self.ops.events("subject=account/%s&order=oldest" % account)
        return [e["detail"]["action"] for e in events if e["detail-type"].startswith("guard:")]

    def wait_for(self, account, action, timeout=60):
        return until(lambda: action in self.actions(account), "%s: %s" % (account, action), timeout, 0.1)

    def held(self, account):
        return [h for h in self.ops.read("holds?account=" + account)["holds"] if h["state"] == "open"]

    def doctor(self, *args):
        """(exit code, what it says)"""
        env = {"LEASEHOLD_ADDRESS": self.server.url, "BROKER_ADMIN_TOKEN": ADMIN_TOKEN, "NO_COLOR": "1"}
        got = run("doctor", *args, env=env, timeout=120)
        assert got.returncode in (0, FOUND), got
        return got.returncode, got.stdout
