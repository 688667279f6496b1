# SPDX-License-Identifier: Apache-2.0
"""What bench/run needs for DynamoDB: the bare writers, several nodes behind a meter, and the table of calls and write units."""
import contextlib
import copy
import datetime
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))

from lib import leases  # noqa: E402
from lib.clouds import release  # noqa: E402
from lib.crowd import together  # noqa: E402
from lib.guard import Guarded  # noqa: E402
from lib.http import Client  # noqa: E402
from lib.ops import Ops  # noqa: E402
from lib.wait import until  # noqa: E402

DOCUMENT = os.path.join(ROOT, "docs", "dynamodb.md")
BEGIN, END = "<!-- Written by bench/run --only nodes --track. -->\n", "<!-- End of what was written. -->\n"


# Bare writers

def claim_template(body, store):
    """The write of a claim as bench/ddb_direct wants it: on the tables of this store, with placeholders."""
    write = json.loads(body)
    try:
        update = next(a["Update"] for a in write["TransactItems"] if "Update" in a)
        event, marker = sorted((a["Put"] for a in write["TransactItems"] if "Put" in a), key=lambda p: p["Item"]["PK"]["S"])
        old = {field: update["ExpressionAttributeValues"][name.replace("#n", ":o")]
               for name, field in update["ExpressionAttributeNames"].items() if field in ("updated_at", "last_event")}
        known = {write["ClientRequestToken"]: "@TOKEN@", update["Key"]["PK"]["S"].partition("#")[2]: "@SANDBOX@",
                 marker["Item"]["PK"]["S"].rpartition("#")[2]: "@TRACK@", event["Item"]["SK"]["S"]: "@EVENT@",
                 old["last_event"]["S"]: "@LAST@"}
        old["updated_at"]["N"], event["Item"]["PK"]["S"] = "@UPDATED@", "@SLICE@"
    except (KeyError, ValueError, StopIteration) as e:
        raise AssertionError(f"a claim's write is not an Update and two Puts as expected ({e!r}): {body!r}") from e
    update["TableName"], event["TableName"], marker["TableName"] = store.pool, store.kernel, store.kernel
    text = json.dumps(write, separators=(",", ":"))
    for value, placeholder in known.items():
        text = text.replace(value, placeholder)
    return text


class Direct:
    """The direct client and the sandboxes that it may still take."""

    def __init__(self, endpoint, write, store, slices=4):
        self.port, self.template, self.slices = endpoint.rpartition(":")[2], claim_template(write, store), slices
        self.free = [f"{i['sandbox_id']} {i['updated_at']} {i['last_event']}" for i in store.sandboxes().values()]

    def claim(self, bench, connections, count):
        lines, self.free = [self.template] + self.free[:count], self.free[count:]
        command = [os.path.join(bench.build, "bench", "ddb_direct"), self.port, str(connections), str(self.slices)]
        result = bench.run_load(command, 300, input="\n".join(lines) + "\n", text=True)
        if result["claims"] != count:
            raise AssertionError(f"of {count} direct writes {result['errors']} failed; there is nothing to compare with")
        return result

    def claim_by(self, bench, writers, connections, count):
        """So many of them at once, each with its part."""
        parts = []
        for n in range(writers):
            parts.append(copy.copy(self))
            parts[n].free = self.free[n * count // writers : (n + 1) * count // writers]
        self.free = self.free[count:]
        return together(writers, lambda n: parts[n].claim(bench, connections, len(parts[n].free)))


# Several at once

def rate_of(results):
    """Claims a second of some that began together."""
    return sum(r["claims"] for r in results) / max(r["claim_seconds"] for r in results)


class Nodes:
    """Brokers on the same tables, each with a load generator of its own; and what they told their callers."""

    def __init__(self, bench, brokers, folder, told):
        self.bench, self.brokers, self.folder, self.told = bench, brokers, folder, told

    def claim(self, connections, count):
        """Claims at all of them at once."""
        files = [os.path.join(self.folder, f"claims-{n}") for n in range(len(self.brokers))]

        def load(n):
            return self.bench.claim(self.brokers[n].port, connections, "--requests", str(count // len(self.brokers)), "--list", files[n])

        results = together(len(self.brokers), load)
        for file in files:
            with open(file, encoding="ascii") as f:
                self.told += [tuple(line.split()) for line in f]
        return results

    def wrong(self, store):
        """What was told and is not in the store, what is there and was not told, and sandboxes told twice."""
        held = {(track, sandbox) for track, sandboxes in store.holders().items() for sandbox in sandboxes}
        twice = len(self.told) - len({sandbox for _, sandbox in self.told})
        return len(set(self.told) - held), len(held - set(self.told)), twice


# Calls and write units

class Seat:
    """A broker as the tests' library knows a server."""

    def __init__(self, broker):
        self.address, self.env = ("127.0.0.1", broker.port), broker.env


def counted(meter, idle, count, work):
    """Calls, units by table or index, and the busiest key with its units, of one of `count` things that work() does; what an idle node asks is
    left out."""
    meter.forget()
    work()
    seconds, calls, places, ((place, key), most) = meter.seconds(), Counter(meter.calls), meter.by_place(), meter.paid.most_common(1)[0]
    share = lambda found, at_rest: {k: max(0.0, (v - at_rest.get(k, 0) * seconds) / count) for k, v in found.items()}
    return share(calls, idle[0]), share(places, idle[1]), (f"`{key}`" + (f" of {place.partition('/')[2]}" if "/" in place else ""), most / count)


def rest(meter, seconds):
    """Calls and units a second of a node that nobody asks for anything."""
    meter.forget()
    until(lambda: meter.seconds() >= seconds, "a while", seconds + 60, 0.1)
    return tuple({k: v / meter.seconds() for k, v in found.items()} for found in (Counter(meter.calls), meter.by_place()))


def claims(bench, broker, store, meter, count):
    api = Client(("127.0.0.1", broker.port), {"Authorization": "Bearer " + bench.api_token}, timeout=60)
    at_rest, held = rest(meter, bench.size["ddb_rest"]), {}

    def claim():
        for n in range(count):
            reply = api.post("/v1/allocate", headers={"X-Track-ID": f"counted-{n}"})
            assert reply.status == 201, reply
            held[f"counted-{n}"] = reply.json["sandbox_id"]

    def end():
        for track, sandbox in held.items():
            reply = api.post(f"/v1/sandboxes/{sandbox}/mark-for-deletion", headers={"X-Track-ID": track})
            assert reply.status == 200, reply
        assert broker.admin("POST", "/jobs/cleanup/run")
        until(lambda: not set(store.sandboxes()) & set(held.values()), "all are deleted", 120, 0.5)

    return counted(meter, at_rest, count, claim), counted(meter, at_rest, count, end)


def finish_cleanups(file):
    with contextlib.closing(sqlite3.connect(file, timeout=10)) as db, db:
        db.execute("UPDATE sim_run SET ends_ms = 1")
        db.execute("UPDATE sim_member SET clean_at_ms = 1 WHERE clean_at_ms > 0")


def lease_env(folder):
    return leases.env(Path(folder), LEASEHOLD_SIM_FILE=os.path.join(folder, "world.db"), LEASEHOLD_SIM_ACCOUNTS="3",
                      LEASEHOLD_SIM_ENTRY_ACCOUNTS="0", QUARANTINE_DURATION_HOURS="0")


def records(store, name):
    """All of a type, read past the meter: what we look at is not what a lease or a hold costs."""
    return [item for item in store.db.items(store.kernel) if item["PK"].partition(".")[0] == name]


def until_record(store, name, matches, what):
    return until(lambda: next((r for r in records(store, name) if matches(r)), None), what, 120, 0.3)


def one_lease(bench, broker, store, meter, count):
    """From the request to the account that is clean again, one after the other."""
    seat, file = Seat(broker), broker.env["LEASEHOLD_SIM_FILE"]
    pool, quick = leases.Pool(seat), "cleanup: {numberOfSuccessfulAttemptsToFinishCleanup: 1, waitBeforeRerunSuccessfulAttemptSeconds: 0}\n"
    reply = Ops(seat).request("PUT", "/v1/ops/policy", headers={"If-Match": '"0"', "Content-Type": "application/yaml"}, body=quick.encode())
    assert reply.status == 200, reply
    until(lambda: len(pool.admin.everything("/accounts?status=Available", 100)) == 3, "the accounts are there")
    template, clean = pool.template(requiresApproval=True), records(store, "account")[0]["status"]

    def whole():
        for _ in range(count):
            person = pool.person()
            lease = person.data("POST", "/leases", {"leaseTemplateUuid": template["uuid"], "comments": ""}, 201)
            pool.manager.data("POST", f"/leases/{lease['leaseId']}/review", {"action": "Approve"})
            active = until_record(store, "lease", lambda r: r["uuid"] == lease["uuid"] and r["status"] == "Active", "the lease is active")
            person.data("POST", f"/leases/{lease['leaseId']}/terminate")
            until(lambda: finish_cleanups(file) or any(r["SK"] == active["account_id"] and r["status"] == clean for r in records(store, "account")),
                  "the account is clean", 120, 0.5)

    whole()  # the first has things of its own to do
    return counted(meter, rest(meter, bench.size["ddb_rest"]), count, whole)


def one_hold(bench, broker, store, meter, count):
    """From the event to the account that is back, ended by an operator, one after the other."""
    g = Guarded(Seat(broker))
    accounts = g.accounts("Available")
    assert len(accounts) > count, accounts

    def until_told(account, action):
        until_record(store, "event", lambda r: r.get("subject") == "account/" + account and f'"{action}"' in r.get("detail", ""), action)

    def whole(some):
        for account in some:
            g.clean(account)
            until_told(account, "QUARANTINE_COMPLETE")
            release(g, account)
            until_told(account, "UNQUARANTINE_COMPLETE")

    whole(accounts[:1])
    return counted(meter, rest(meter, bench.size["ddb_rest"]), count, lambda: whole(accounts[1 : count + 1]))


def measure_costs(bench, start):
    """start(env, arguments): a broker behind a meter, on new tables. The rows of the table."""
    rows = []
    with start({}) as (broker, store, meter):
        claim, end = claims(bench, broker, store, meter, bench.size["ddb_counted"])
        rows += [("a claim", claim, store), ("its end: marked and deleted", end, store)]
    folder = os.path.join(bench.folder, "counted-leases")
    os.mkdir(folder)
    with start(lease_env(folder)) as (broker, store, meter):
        rows.append(("a lease, from the request until its account is clean", one_lease(bench, broker, store, meter, 3), store))
    guard = {"LEASEHOLD_QUARANTINE": "guard", "ACCOUNT_TABLE_NAME": "sim", "LEASEHOLD_SIM_ACCOUNTS": "5", "QUARANTINE_DURATION_HOURS": "72"}
    with start(guard, "--dev") as (broker, store, meter):
        rows.append(("a hold, from the event until its account is back", one_hold(bench, broker, store, meter, 3), store))
    return rows


def cost_table(rows):
    """As Markdown."""
    lines = ["| | writes (`TransactWriteItems`) | reads (`GetItem`, `Query`) | units: pool | its indexes | kernel | its indexes | units in all | of them the busiest key |",
             "|---|---|---|---|---|---|---|---|---|"]
    for name, (calls, places, (key, most)), store in rows:
        writes = calls.get("TransactWriteItems", 0)
        reads = calls.get("GetItem", 0) + calls.get("Query", 0)
        parts = [places.get(store.pool, 0), sum(v for k, v in places.items() if k.startswith(store.pool + "/")),
                 places.get(store.kernel, 0), sum(v for k, v in places.items() if k.startswith(store.kernel + "/"))]
        figures = [f"{x:.1f}" for x in (writes, reads, *parts, sum(places.values()))]
        lines.append("| %s |" % " | ".join([name, *figures, f"{key}: {most:.1f}"]))
    return lines


def commit():
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip() or "unknown"


def write_costs(lines):
    """Into the document, with date and commit, between its marks."""
    with open(DOCUMENT, encoding="utf-8") as f:
        text = f.read()
    made = f"Measured on {datetime.date.today().isoformat()}, commit {commit()}:\n\n" + "\n".join(lines) + "\n"
    text = re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: BEGIN + "\n" + made + "\n" + END, text, flags=re.S)
    assert made in text, f"{DOCUMENT} has no place for the table"
    with open(DOCUMENT, "w", encoding="utf-8") as f:
        f.write(text)
