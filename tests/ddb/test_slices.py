# SPDX-License-Identifier: Apache-2.0
"""The log of events is spread over partition keys, each with its share, and read as one log."""

import json
from collections import Counter

from lib.crowd import together
from lib.ops import Ops
from lib.server import run

CLAIMS, CALLERS, SLICES = 160, 8, 4


def events_by_key(proxy):
    """How many events were put under each partition key."""
    keys = Counter()
    for entry in list(proxy.log):
        if entry.operation == "TransactWriteItems" and entry.status == 200:
            for action in json.loads(entry.body)["TransactItems"]:
                key = action.get("Put", {}).get("Item", {}).get("PK", {}).get("S", "")
                keys[key] += key.partition(".")[0] == "event"
    return +keys


def test_each_slice_takes_its_share_of_events_and_the_log_is_one(make, nodes, proxy, new_owner):
    servers = nodes(2, make.csp(CLAIMS), via=proxy, LEASEHOLD_STORE_DEADLINE_MS=20000, LEASEHOLD_DDB_EVENT_SLICES=SLICES)
    proxy.forget()
    owners = [new_owner() for _ in range(CLAIMS)]

    def claim(caller):
        for owner in owners[caller::CALLERS]:
            servers[caller % 2].track(owner, timeout=60).claim()

    together(CALLERS, claim)
    shares = events_by_key(proxy)
    assert set(shares) == {"event", "event.1", "event.2", "event.3"}, shares
    assert sum(shares.values()) >= CLAIMS
    # Of 160, a quarter is 40; 64 or more in one slice would be chance once in 100,000 runs.
    assert max(shares.values()) <= 0.4 * sum(shares.values()), shares
    logs = [Ops(server).events("type=SandboxAllocated&limit=50") for server in servers]
    assert len(logs[0]) == CLAIMS and len({e["id"] for e in logs[0]}) == CLAIMS
    assert [e["id"] for e in logs[0]] == sorted((e["id"] for e in logs[0]), reverse=True)
    assert [e["id"] for e in logs[0]] == [e["id"] for e in logs[1]]


def test_a_number_that_is_no_power_of_two_is_refused(make, store):
    server = make.server(start=False, LEASEHOLD_DDB_EVENT_SLICES=3, **store.env)
    done = run(*server.command()[1:], env=server.env)
    assert done.returncode == 2 and "LEASEHOLD_DDB_EVENT_SLICES: must be a power of two such as 4 or 8, not 3" in done.stderr, done
