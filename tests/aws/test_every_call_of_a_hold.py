# SPDX-License-Identifier: Apache-2.0
"""A hold from the move that begins it to the move that ends it: whatever call of it is lost, and wherever the guard is killed, the organisation, the table and the
records agree afterwards, and nothing was done twice."""

import pytest

from aws.front import names
from lib.clouds import GUARD, AwsGuard, release
from lib.every_call import KILLED, LOST, Flow, assert_all_struck, disturb_every_call
from lib.wait import until

IDS = ["2000000%05d" % i for i in range(1, 40)]


class Hold(Flow):
    left_out = {("sqs", "ReceiveMessage")}

    def accounts(self):
        return IDS

    def begin(self):
        front = self.front
        front.do("organizations", "add_accounts", ids=IDS)
        front.do("dynamodb", "add_table", name="accounts", items={id: "Available" for id in IDS})
        url = front.do("sqs", "add_queue", name="guard", VisibilityTimeout="3")
        front.do("organizations", "trail", queue="guard", only_to=names.OUS["Available"])
        self.server = self.make.server(**front.env(), **GUARD, ACCOUNT_TABLE_NAME="accounts", LEASEHOLD_GUARD_QUEUE_URL=url)
        self.end_jobs()

    def guarded(self):
        got = AwsGuard(self.server)
        got.front = self.front
        return got

    def until(self, condition, what):
        """A server that was killed meanwhile does not answer: ask again."""
        def ask():
            try:
                return condition(self.guarded())
            except (OSError, AssertionError, AttributeError, TypeError):
                return None
            except Exception as e:  # pylint: disable=broad-except
                if type(e).__name__ == "Broken":
                    return None
                raise

        return until(ask, what, 120, 0.2)

    def run(self, account):
        self.guarded().clean(account)
        self.until(lambda g: "QUARANTINE_COMPLETE" in g.actions(account) and g.place(account) == "Quarantine", "held")
        self.until(lambda g: release(g, account) or True, "let go")
        self.until(lambda g: "UNQUARANTINE_COMPLETE" in g.actions(account), "back")
        self.until(lambda g: self.front.state("sqs")["guard"]["messages"] == [], "the queue is empty")

    def check(self, account, _since):
        guarded = self.guarded()
        moves = [(m["to"], m["by"] == names.role_name(names.ORG_ROLE)) for m in self.front.state("organizations")["moves"] if m["account"] == account]
        ou = names.OUS
        assert moves == [(ou["CleanUp"], False), (ou["Available"], False), (ou["Quarantine"], True), (ou["Available"], True)]
        assert guarded.status(account) == "Available"
        holds = guarded.ops.read("holds?account=" + account)["holds"]
        assert [h["state"] for h in holds] == ["released-early"]
        said = guarded.actions(account)
        for action in ("QUARANTINE_START", "QUARANTINE_COMPLETE", "UNQUARANTINE_START", "UNQUARANTINE_COMPLETE"):
            assert said.count(action) == 1, said
        assert guarded.ops.read("sagas?state=parked")["sagas"] == []
        assert guarded.ops.read("dead-letters")["dead_letters"] == []


@pytest.fixture(scope="module")
def disturbed(make_for_module):
    return disturb_every_call(make_for_module, Hold)


def test_the_calls_of_a_hold(disturbed):
    called = {(service, operation) for service, operation, _, _ in disturbed[0]}
    assert {("organizations", "MoveAccount"), ("dynamodb", "UpdateItem"), ("sqs", "DeleteMessageBatch"), ("sts", "AssumeRole")} <= called


@pytest.mark.parametrize("kinds", [LOST, KILLED], ids=["lost", "killed"])
def test_every_call_of_a_hold(disturbed, kinds):
    assert_all_struck(disturbed, kinds)
