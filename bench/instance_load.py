# SPDX-License-Identifier: Apache-2.0
"""Tenants who get instances and operators who list them, at the running server; and as many durable writes of bare SQLite."""

import os
import re
import sqlite3
import threading
import time

from lease_load import summary
from lib.http import Client

CONNECTIONS, WAIT_SEC = 8, 600
ROW = "x" * 700  # about a saga's record


class InstanceLoad:
    def __init__(self, port, token):
        self.address, self.token = ("127.0.0.1", port), token
        self.refused = []

    def client(self):
        return Client(self.address, {"Authorization": "Bearer " + self.token})

    def call(self, client, status, *request, **more):
        """The reply, and how long it took; a refusal is noted."""
        begun = time.perf_counter()
        reply = client.request(*request, **more)
        took = time.perf_counter() - begun
        if reply.status != status:
            self.refused.append(reply)
        return reply, took

    def provision(self, first, count):
        """So many tenants ask at once; until the last instance is ACTIVE. Answers the seconds, and how long a POST took."""
        times, begun = [], time.perf_counter()

        def ask(share):
            client = self.client()
            for n in share:
                times.append(self.call(client, 202, "POST", f"/v1.0/tenants/tenant-{n}/instances",
                                       body={"organizationName": f"Tenant {n}", "contactEmail": "it@example.com"})[1])
            client.close()

        people = range(first, first + count)
        threads = [threading.Thread(target=ask, args=[people[i::CONNECTIONS]]) for i in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.wait_active(first + count)
        return time.perf_counter() - begun, summary(times)

    def wait_active(self, count):
        client, end = self.client(), time.monotonic() + WAIT_SEC
        while time.monotonic() < end and not self.refused:
            by_status = self.call(client, 200, "GET", "/v1/ops/overview")[0].json["instances"]["by_status"]
            if by_status["ACTIVE"] >= count:
                client.close()
                return
            time.sleep(0.1)
        raise TimeoutError(f"not all {count:,} instances are ACTIVE: {self.refused[:1] or by_status}")

    def store(self):
        """Commits of the server's store so far, and the transactions in them."""
        client = self.client()
        text = self.call(client, 200, "GET", "/metrics")[0].body.decode()
        client.close()
        return [int(re.search(rf"^leasehold_store_{name}_total (\d+)", text, re.M).group(1)) for name in ("commits", "transactions")]

    def pages(self, query, size):
        """Every page, one after the other, each beside a reply that takes nothing: how many instances were on them, and both times."""
        client, times, bare, cursor, seen = self.client(), [], [], "", 0
        while cursor is not None:
            reply, took = self.call(client, 200, "GET", f"/v1/ops/instances?limit={size}{query}" + (f"&cursor={cursor}" if cursor else ""))
            times.append(took)
            bare.append(self.call(client, 200, "GET", "/healthz")[1])
            seen += reply.json["count"] if reply.status == 200 else 0
            cursor = reply.json["cursor"] if reply.status == 200 else None
        client.close()
        return seen, {"pages": len(times), **summary(times)}, summary(bare)


def bare_writes(folder, count, group):
    """Seconds for so many rows, `group` of them in a commit, each commit synced: SQLite alone."""
    path = os.path.join(folder, "bare.db")
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE step (id INTEGER PRIMARY KEY, row TEXT)")
    begun = time.perf_counter()
    for first in range(0, count, group):
        db.execute("BEGIN")
        db.executemany("INSERT INTO step VALUES (?, ?)", ((n, ROW) for n in range(first, min(first + group, count))))
        db.execute("COMMIT")
    seconds = time.perf_counter() - begun
    db.close()
    os.unlink(path)
    return seconds
