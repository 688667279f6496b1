# SPDX-License-Identifier: Apache-2.0
"""People who read lists and ask for leases, at the server's /api: how long each has to wait."""

import json
import os
import threading
import time

from lib.http import Client
from lib.jwt import token

CONNECTIONS = 8


def write_people(folder, count):
    """The file of people: a manager who is an admin too, and as many newcomers."""
    path = os.path.join(folder, "people.jsonl")
    people = [{"email": "admin@example.com", "roles": ["Admin", "Manager"]}]
    people += [{"email": f"newcomer-{i}@example.com", "roles": ["User"]} for i in range(count)]
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
        f.writelines(json.dumps(person) + "\n" for person in people)
    return path


class Disk:
    """Syncs 4 KiB now and then while the block runs: how long it takes at worst is what nobody can be faster than."""

    def __init__(self, folder):
        self.path, self.longest_ms = os.path.join(folder, "disk"), 0
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.sync)

    def sync(self):
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        while not self.ends.wait(0.005):
            begun = time.perf_counter()
            os.write(fd, bytes(4096))
            os.fdatasync(fd)
            self.longest_ms = max(self.longest_ms, (time.perf_counter() - begun) * 1000)
        os.close(fd)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()


def summary(seconds):
    times = sorted(s * 1000 for s in seconds)
    return {"p50": times[len(times) // 2], "p99": times[min(len(times) - 1, len(times) * 99 // 100)], "max": times[-1]}


class LeaseLoad:
    def __init__(self, port, template):
        self.address, self.template = ("127.0.0.1", port), template
        self.asked = 0
        self.refused = []

    def client(self):
        return Client(self.address, {"Authorization": "Bearer " + token("admin@example.com", "Admin", "Manager")})

    def call(self, client, status, *request, **more):
        """The reply, and how long it took; a refusal is noted."""
        begun = time.perf_counter()
        reply = client.request(*request, **more)
        took = time.perf_counter() - begun
        if reply.status != status:
            self.refused.append(reply)
        return reply, took

    def pages(self, path, size):
        """Every page of a list, one after the other."""
        client, times, cursor = self.client(), [], ""
        while cursor is not None:
            query = f"{'&' if '?' in path else '?'}pageSize={size}" + (f"&pageIdentifier={cursor}" if cursor else "")
            reply, took = self.call(client, 200, "GET", "/api" + path + query)
            times.append(took)
            cursor = reply.json["data"]["nextPageIdentifier"] if reply.status == 200 else None
        client.close()
        return summary(times)

    def requests(self, count, beside=None):
        """So many newcomers, each asks once for a lease that is approved at once; a few at a time. beside: called meanwhile."""
        people = range(self.asked, self.asked + count)
        times = []
        self.asked += count

        def ask(share):
            headers = [{"Authorization": "Bearer " + token(f"newcomer-{i}@example.com", "User")} for i in share]
            client = self.client()
            for one in headers:
                _, took = self.call(client, 201, "POST", "/api/leases", headers=one, body={"leaseTemplateUuid": self.template})
                times.append(took)
            client.close()

        threads = [threading.Thread(target=ask, args=[people[i::CONNECTIONS]]) for i in range(CONNECTIONS)]
        if beside:
            threads.append(threading.Thread(target=beside))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return summary(times)
