# SPDX-License-Identifier: Apache-2.0
"""What people and jobs ask of a server that has much: the processor time of each, at the running server."""

import time

from lease_load import summary
from lib.http import Client
from lib.jwt import token

PAGES, REQUESTS_LEAST, ROUNDS = 20, 40, 5
OVERVIEW_FRESH_SEC = 1.05  # an answer is given to everybody who asks within a second
DAY = 86400

LISTS = {
    "leases": "/api/leases",
    "leases, Active": "/api/leases?status=Active",
    "leases, Expired": "/api/leases?status=Expired",
    "leases, PendingApproval": "/api/leases?status=PendingApproval",
    "leases of one owner": "/api/leases?userEmail=class@example.com",
    "accounts": "/api/accounts",
    "accounts, Frozen": "/api/accounts?status=Frozen",
    "instances": "/v1/ops/instances",
    "instances, SUSPENDED": "/v1/ops/instances?status=SUSPENDED",
    "instances, FAILED": "/v1/ops/instances?status=FAILED",
    "instances of one tenant": "/v1/ops/instances?tenant=tenant-000007",
    "events": "/v1/ops/events",
    "events, oldest first": "/v1/ops/events?order=oldest",
    "events of a rare type": "/v1/ops/events?type=LeaseApproved",
    "events of a frequent type": "/v1/ops/events?type=SandboxAllocated",
    "events of a kind": "/v1/ops/events?type=Lease*",
    "events of an actor": "/v1/ops/events?actor=track/student-7",
    "events of a lease": "/v1/ops/events?subject=lease/{lease}",
    "events of a day": "/v1/ops/events?since={since}&until={until}",
    "timers": "/v1/ops/timers",
    "sagas that are done": "/v1/ops/sagas?state=done",
}
EXPLAINED = {"lease": "{lease}", "account": "{account}", "instance": "tenant-000007"}

# Of each: the records that it has to look at, in the words of bench/run; None: it should not matter how many there are.
JOBS = {"lease-monitor": "leases in use", "lease-orphans": "leases in use and accounts", "lease-purge": None, "lease-line": None,
        "account-drift": "accounts", "reconcile": "accounts", "instance-watch": "instances", "instance-orphans": "instances",
        "event-retention": None}


class GrowthLoad:
    def __init__(self, broker, admin_token, lease, page=50):
        self.broker, self.admin_token, self.page, self.refused = broker, admin_token, page, []
        self.words = {"lease": lease, "since": int(time.time()) - 40 * DAY, "until": int(time.time()) - 39 * DAY}
        self.people = self.client(token("admin@example.com", "Admin", "Manager"))
        self.operator = self.client(admin_token)
        self.words["account"] = self.get("/api/accounts?pageSize=1")["data"]["result"][0]["awsAccountId"]

    def client(self, bearer):
        return Client(("127.0.0.1", self.broker.port), {"Authorization": "Bearer " + bearer}, timeout=120)

    def call(self, method, path):
        reply = (self.people if path.startswith("/api/") else self.operator).request(method, path)
        if reply.status not in (200, 202):
            self.refused.append((path, reply))
        return reply

    def get(self, path):
        return self.call("GET", path).json

    def cpu_ms(self, what, rest_sec=0):
        """For each of those that what() says it did. The least of some rounds: neighbours of a core cost its caches, too."""
        def once():
            time.sleep(rest_sec)
            before = self.broker.cpu_seconds()
            count = what()
            return (self.broker.cpu_seconds() - before) * 1000 / count

        return min(once() for _ in range(ROUNDS))

    def read(self, path):
        """The first pages of a list, again and again until there were enough. Answers how many had something on them; an empty one at the
        end belongs to the page before it."""
        is_ours, requests, pages = path.startswith("/api/"), 0, 0
        path += ("&" if "?" in path else "?") + ("pageSize" if is_ours else "limit") + f"={self.page}"
        while requests < REQUESTS_LEAST:
            cursor = ""
            for _ in range(PAGES):
                reply = self.get(path + cursor)
                requests += 1
                pages += bool(reply.get("data", {}).get("result") if is_ours else reply.get("count"))
                if not (found := reply.get("data", {}).get("nextPageIdentifier") if is_ours else reply.get("cursor")):
                    break
                cursor = f"&{'pageIdentifier' if is_ours else 'cursor'}={found}"
        return pages or requests

    def lists(self):
        """{list: ms of processor time for a page}"""
        return {name: self.cpu_ms(lambda p=path.format(**self.words): self.read(p)) for name, path in LISTS.items()}

    def overview(self):
        return self.cpu_ms(lambda: self.get("/v1/ops/overview") and 1, OVERVIEW_FRESH_SEC)

    def explanations(self):
        def ask(path):
            for _ in range(REQUESTS_LEAST):
                self.get(path)
            return REQUESTS_LEAST

        paths = {kind: f"/v1/ops/explain/{kind}/{name.format(**self.words)}" for kind, name in EXPLAINED.items()}
        return {f"explain {kind}": self.cpu_ms(lambda p=path: ask(p)) for kind, path in paths.items()}

    def run_job(self, name):
        """Until it has ended; the answer comes earlier when it takes long. What it says of itself."""
        self.call("POST", f"/v1/admin/jobs/{name}/run")
        while True:
            job = next(j for j in self.get("/v1/admin/jobs")["jobs"] if j["name"] == name)
            if not job["running"]:
                break
            time.sleep(0.2)
        if job["last_outcome"] != "success":
            self.refused.append((name, job))
        return job

    def passes(self):
        return {f"pass of {name}": self.cpu_ms(lambda n=name: self.run_job(n) and 1) for name in JOBS}

    def writes(self, ended):
        """Small durable changes, one after the other, until ended(): how long each had to wait."""
        client, times = self.client(self.admin_token), []
        while not ended():
            begun = time.perf_counter()
            reply = client.request("POST", "/v1/admin/jobs/sync/pause")
            times.append(time.perf_counter() - begun)
            if reply.status != 200:
                self.refused.append(("pause", reply))
            time.sleep(0.005)
        client.close()
        return summary(times)
