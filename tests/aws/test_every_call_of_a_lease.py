# SPDX-License-Identifier: Apache-2.0
"""A lease from its request until its account is free again: whatever call of it is lost, and wherever the server is killed, the organisation, the assignments, the
builds and the records agree afterwards, and nothing was done twice."""

import itertools

import pytest

from aws.front import names
from lib.clouds import AwsPool
from lib.every_call import KILLED, LOST, Flow, assert_all_struck, disturb_every_call
from lib.http import Broken
from lib.ops import Ops

numbers = itertools.count(1)


class Lease(Flow):
    # Our own moves, told by the trail, which belong to the hold; and what jobs do by themselves.
    left_out = {("sqs", "ReceiveMessage"), ("sqs", "DeleteMessageBatch"), ("sqs", "GetQueueAttributes"), ("ce", "GetCostAndUsage"),
                ("identitystore", "ListGroupMemberships"), ("identitystore", "DescribeUser")}

    def __init__(self, make, front, shim):
        super().__init__(make, front)
        self.shim, self.pool = shim, None

    def begin(self):
        self.pool = AwsPool.start(self.make, self.front, self.shim, count=1, name="jump-%d" % next(numbers), QUARANTINE_DURATION_HOURS="0")
        self.server = self.pool.server
        self.template = self.pool.template(requiresApproval=False)["uuid"]
        self.end_jobs()

    def accounts(self):
        return itertools.repeat("200000000001")

    def until(self, condition, what):
        """A server that was killed meanwhile does not answer: ask again."""
        def ask():
            try:
                return condition(self.pool.again())
            except (OSError, Broken, TypeError):  # the last: it has no address yet
                return None

        return self.pool.until(ask, what, 150)

    def request(self, pool):
        """Asked for until there is an answer; one that came too late for its answer is found again."""
        found = [l for l in pool.admin.data("GET", "/leases?userEmail=" + self.person)["result"] if l["status"] in ("Active", "PendingApproval", "Provisioning")]
        if not found:
            found = [self.api(pool).data("POST", "/leases", {"leaseTemplateUuid": self.template, "comments": ""}, 201)]
        return found[0]

    def api(self, pool):
        return pool.api(self.server, self.person, "User")

    def run(self, account):
        self.before = {"effects": len(self.front.state("sso-admin")["effects"]), "moves": len(self.front.state("organizations")["moves"]),
                       "builds": len(self.front.state("codebuild")["builds"])}
        self.person = self.pool.person().email
        lease = self.until(self.request, "a lease")
        self.until(lambda p: p.show(lease)["status"] == "Active" and p.owners(account) == [self.person], "it can be used")
        self.until(lambda p: p.manager.call("POST", "/leases/%s/terminate" % lease["leaseId"]).status in (200, 400, 409), "ended")
        self.until(lambda p: p.admin.data("GET", "/accounts/" + account)["phase"] == "Available" and p.place(account) == "Available", "it is free")
        self.lease = lease

    def check(self, account, _since):
        ou, org = names.OUS, self.front.state("organizations")
        moves = org["moves"][self.before["moves"]:]
        assert [(m["account"], m["to"]) for m in moves] == [(account, ou["Active"]), (account, ou["CleanUp"]), (account, ou["Available"])]
        assert {m["by"] for m in moves} == {names.role_name(names.ORG_ROLE)}
        sso, users = self.front.state("sso-admin"), self.front.state("identitystore")["users"]
        effects = [(what, users[who]["email"].lower()) for what, _, set_, _, who in sso["effects"][self.before["effects"]:]
                   if sso["sets"][set_] == "front_IsbUsersPS"]
        assert effects == [("created", self.person), ("deleted", self.person)]
        assert self.pool.owners(account) == [] and sso["pending"] == 0
        builds = self.front.state("codebuild")["builds"][self.before["builds"]:]
        assert [b["environment"]["CLEANUP_ACCOUNT_ID"] for b in builds] == [account]
        pool, ops = self.pool.again(), Ops(self.server)
        assert pool.show(self.lease)["status"] == "ManuallyTerminated"
        events = [e["detail-type"] for e in ops.events("subject=lease/" + self.lease["uuid"])]
        assert events.count("LeaseApproved") == 1 and events.count("LeaseTerminated") == 1, events
        assert ops.read("sagas?state=parked")["sagas"] == []
        assert ops.read("dead-letters")["dead_letters"] == []


@pytest.fixture(scope="module")
def disturbed(make_for_module, jumpclock):
    return disturb_every_call(make_for_module, lambda make, front: Lease(make, front, jumpclock))


def test_the_calls_of_a_lease(disturbed):
    called = {operation for _, operation, _, _ in disturbed[0]}
    assert {"AssumeRole", "MoveAccount", "CreateAccountAssignment", "DescribeAccountAssignmentCreationStatus", "DeleteAccountAssignment",
            "DescribeAccountAssignmentDeletionStatus", "ListAccountAssignments", "StartBuild", "BatchGetBuilds"} <= called


@pytest.mark.parametrize("kinds", [LOST, KILLED], ids=["lost", "killed"])
def test_every_call_of_a_lease(disturbed, kinds):
    assert_all_struck(disturbed, kinds)
