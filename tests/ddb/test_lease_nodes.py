# SPDX-License-Identifier: Apache-2.0
"""Leases on DynamoDB: three nodes, one organisation. Whoever asks where, the rules hold as on one machine.

The nodes share a simulated organisation by its file. Cleanups take minutes there; the tests end them by hand.
"""

import sqlite3
import threading
from collections import Counter

import pytest

from lib import leases
from lib.leases import MANAGER, Api, Pool
from lib.ops import Ops
from lib.wait import until

NODES, ACCOUNTS, LIMIT = 3, 4, 3
QUICK = "cleanup: {numberOfSuccessfulAttemptsToFinishCleanup: 1, waitBeforeRerunSuccessfulAttemptSeconds: 0}\n"


class Group:
    """Nodes on one store and one organisation."""

    def __init__(self, servers, file):
        self.servers, self.file = servers, file
        self.pools = [Pool(s) for s in servers]

    def __getitem__(self, number):
        return self.pools[number % len(self.pools)]

    def as_person(self, person, number):
        """The same person at another node."""
        return Api(self.servers[number % len(self.servers)], person.email, "User")

    def finish_cleanups(self):
        """Every cleanup that runs has ended by now, and found nothing left."""
        db = sqlite3.connect(self.file, timeout=10)
        with db:
            db.execute("UPDATE sim_run SET ends_ms = 1")
            db.execute("UPDATE sim_member SET clean_at_ms = 1 WHERE clean_at_ms > 0")
        db.close()

    def until_clean(self, account):
        def look():
            self.finish_cleanups()
            return self[1].admin.data("GET", "/accounts/" + account)["status"] == "Available"

        until(look, "account %s is clean" % account, 60, 0.3)

    def quiet(self):
        """Nothing is left over that a person would have to look at."""
        ops = Ops(self.servers[0])
        assert ops.read("dead-letters")["dead_letters"] == []
        assert ops.read("sagas?state=parked")["sagas"] == []


@pytest.fixture
def group(make, nodes):
    file = make.folder / "world.db"
    env = leases.env(make.folder, LEASEHOLD_SIM_FILE=str(file), LEASEHOLD_SIM_ACCOUNTS=str(ACCOUNTS),
                     LEASEHOLD_SIM_ENTRY_ACCOUNTS="1", LEASEHOLD_POLL_MS="200", QUARANTINE_DURATION_HOURS="0")
    group = Group(nodes(NODES, make.csp(1), **env), file)
    ops = Ops(group.servers[0])
    reply = ops.request("PUT", "/v1/ops/policy", headers={"If-Match": '"0"', "Content-Type": "application/yaml"}, body=QUICK.encode())
    assert reply.status == 200, reply
    for pool in group.pools:
        until(lambda pool=pool: len(pool.admin.everything("/accounts", 100)) == ACCOUNTS, "every node sees the accounts", 60, 0.1)
    return group


def live(group):
    """Leases in use by account, as the table has them."""
    found = group[0].admin.everything("/leases", 100)
    return Counter(l["awsAccountId"] for l in found if l["status"] in ("Provisioning", "Active", "Frozen") and "queuedSince" not in l)


def test_the_first_accounts_and_templates_are_made_once(group):
    names = [t["name"] for t in group[0].admin.everything("/leaseTemplates", 100)]
    assert sorted(names) == ["Playground", "Project"]
    assert len(group[2].admin.everything("/accounts", 100)) == ACCOUNTS


def test_a_lease_goes_its_way_over_three_nodes(group):
    person = group[0].person()
    lease = group[0].pending(person)
    path = "/leases/" + lease["leaseId"]
    assert group[1].manager.data("POST", path + "/review", {"action": "Approve"})["status"] == "Provisioning"
    active = group[2].until_status(lease, "Active")
    account = active["awsAccountId"]
    assert group.as_person(person, 2).data("GET", path)["awsAccountId"] == account
    group[2].manager.data("POST", path + "/freeze")
    assert group[0].until_status(lease, "Frozen")["awsAccountId"] == account
    assert group[1].manager.data("POST", path + "/unfreeze")["status"] == "Active"
    assert group[0].manager.call("POST", path + "/unfreeze").status == 409
    group.as_person(person, 1).data("POST", path + "/terminate")
    ended = group[2].show(lease)
    assert ended["status"] == "ManuallyTerminated" and ended["terminatedBy"] == person.email
    assert group[0].admin.data("GET", "/accounts/" + account)["status"] == "CleanUp"
    group.until_clean(account)
    statement = group.as_person(person, 0).data("GET", path + "/statement")
    assert statement["state"] in ("pending", "provisional"), "not final: the figures are not in yet"
    assert statement["account_id"] == account
    assert Ops(group.servers[1]).get("/v1/ops/reports/costs?month=2026-10").status == 200
    group.quiet()


def test_one_account_is_lent_once_however_many_approve(group):
    waiting = [group[i].pending(group[i].person()) for i in range(ACCOUNTS + 2)]
    meet = threading.Barrier(len(waiting))

    def approve(number):
        meet.wait(120)
        reply = Api(group.servers[number % NODES], MANAGER, "Manager").call(
            "POST", "/leases/%s/review" % waiting[number]["leaseId"], {"action": "Approve"})
        replies.append((reply.status, reply.body))

    replies = []
    threads = [threading.Thread(target=approve, args=(n,)) for n in range(len(waiting))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    assert [r for r in replies if r[0] != 200] == []
    until(lambda: sum(live(group).values()) == ACCOUNTS, "all accounts are lent", 60, 0.2)
    assert max(live(group).values()) == 1
    queued = [l for l in group[1].admin.everything("/leases?status=InLine", 100) if l.get("queuedSince")]
    assert len(queued) == 2
    places = sorted(group[2].show(l)["queuePosition"] for l in queued)
    assert places == [1, 2]


def test_who_waits_first_is_served_first_by_any_node(group):
    lent = [group[i].active(group[i].person()) for i in range(ACCOUNTS)]
    line = []
    for i in range(2):
        lease = group[i].pending(group[i].person())
        group[i + 1].manager.data("POST", "/leases/%s/review" % lease["leaseId"], {"action": "Approve"})
        line.append(lease)
    assert [group[0].show(l)["queuePosition"] for l in line] == [1, 2]
    for number, lease in enumerate(line):
        group[number].manager.data("POST", "/leases/%s/terminate" % lent[number]["leaseId"])
        freed = lent[number]["awsAccountId"]
        until(lambda: group.finish_cleanups() or group[2].show(lease)["status"] == "Active", "the first in line is served", 60, 0.3)
        assert group[1].show(lease)["awsAccountId"] == freed
        assert ["queuedSince" in group[0].show(l) for l in line[number + 1:]] == [True] * (1 - number)
    assert max(live(group).values()) == 1
    group.quiet()


def test_the_limit_of_a_person_holds_when_he_asks_everywhere_at_once(group):
    person = group[0].person()
    template = group[0].template()
    meet = threading.Barrier(4 * NODES)
    statuses = []

    def ask(number):
        caller = group.as_person(person, number)
        meet.wait(120)
        statuses.append(caller.call("POST", "/leases", {"leaseTemplateUuid": template["uuid"], "comments": ""}).status)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4 * NODES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    counts = Counter(statuses)
    assert len(statuses) == 4 * NODES and counts[201] == LIMIT, counts
    assert set(counts) <= {201, 409, 503}, counts
    assert len(group[1].admin.everything("/leases?userEmail=" + person.email, 100)) == LIMIT


def test_a_lease_outlives_the_node_that_made_it(group):
    person = group[0].person()
    lease = group[0].pending(person, requiresApproval=True)
    group[0].manager.data("POST", "/leases/%s/review" % lease["leaseId"], {"action": "Approve"})
    group.servers[0].kill()
    active = group[1].until_status(lease, "Active")
    assert live_by(group[2]) == {active["awsAccountId"]: 1}
    group[2].manager.data("POST", "/leases/%s/terminate" % lease["leaseId"])

    def look():
        group.finish_cleanups()
        return group[1].admin.data("GET", "/accounts/" + active["awsAccountId"])["status"] == "Available"

    until(look, "the account is clean without the node", 90, 0.3)


def live_by(pool):
    found = pool.admin.everything("/leases", 100)
    return Counter(l["awsAccountId"] for l in found if l["status"] in ("Provisioning", "Active", "Frozen") and "queuedSince" not in l)


def test_lists_have_pages_on_this_store(group):
    person = group[0].person()
    template = group[0].template()
    for _ in range(LIMIT):
        person.data("POST", "/leases", {"leaseTemplateUuid": template["uuid"], "comments": ""}, 201)
    group[1].pending(group[1].person())
    mine = group[2].admin.everything("/leases?userEmail=" + person.email, 1)
    assert len(mine) == LIMIT == len({l["uuid"] for l in mine})
    assert len(group[1].admin.everything("/leases?status=PendingApproval", 2)) == LIMIT + 1
    free = group[0].admin.everything("/accounts?status=Available", 3)
    assert len(free) == ACCOUNTS and {a["status"] for a in free} == {"Available"}


def test_an_admin_registers_and_ejects(group):
    entry = group[0].admin.data("GET", "/accounts/unregistered")["result"][0]["Id"]
    assert group[1].admin.data("POST", "/accounts", {"awsAccountId": entry}, 201)["status"] == "CleanUp"
    assert group[2].admin.call("POST", "/accounts", {"awsAccountId": entry}).status == 409
    group.until_clean(entry)
    assert group[0].admin.call("POST", "/accounts/%s/eject" % entry).status == 200
    until(lambda: group[1].admin.call("GET", "/accounts/" + entry).status == 404, "it has left the pool", 60, 0.2)
    group.quiet()
