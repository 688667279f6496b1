# SPDX-License-Identifier: Apache-2.0
"""AWS Organizations: a root, OUs, accounts, tags. Parents are strict, reads may be stale for a while, and moves may be told to a queue as CloudTrail does."""

import json

from aws.front.machine import Machine
from aws.front.names import MANAGEMENT, ORG, OUS, ROOT, SANDBOX_OU


class Organizations(Machine):
    regions = ("us-east-1",)

    def reset(self):
        self.ous = {SANDBOX_OU: ("Sandbox", ROOT), **{id: (name, SANDBOX_OU) for name, id in OUS.items()}}
        self.accounts, self.tags = {}, {}
        self.stale_seconds, self.moves, self.trail = 0, [], None
        self.ctl_add_account(MANAGEMENT, "Management", ROOT)

    def show(self):
        return {"accounts": self.accounts, "tags": self.tags, "moves": self.moves,
                "ous": {id: {"name": name, "parent": parent} for id, (name, parent) in self.ous.items()}}

    # For the tests.

    def ctl_add_account(self, id, name=None, parent=None, state="ACTIVE", email=None, tags=None):
        self.accounts[id] = {"name": name or "account-" + id, "parent": parent or OUS["Available"], "state": state,
                             "email": email or "aws+%s@example.com" % id, "joined": self.now(), "was": None, "moved": 0}
        if tags:
            self.tags[id] = dict(tags)

    def ctl_add_accounts(self, ids, parent=None):
        for id in ids:
            self.ctl_add_account(id, parent=parent)

    def ctl_remove_account(self, id):
        del self.accounts[id]

    def ctl_set_account(self, id, **facts):
        self.accounts[id].update(facts)

    def ctl_add_ou(self, id, name, parent):
        self.ous[id] = (name, parent)

    def ctl_remove_ou(self, id):
        del self.ous[id]

    def ctl_stale(self, seconds):
        """Reads say for so long after a move where an account was before it."""
        self.stale_seconds = seconds

    def ctl_move(self, id, to, told=True):
        """By somebody else, such as the other system. told: the trail tells of it."""
        self.move(id, self.accounts[id]["parent"], to, "somebody-else", told)

    def ctl_trail(self, queue, only_to=None):
        """Every move is sent to the queue as EventBridge would."""
        self.trail = (queue, only_to)

    def ctl_untag(self, id):
        self.tags.pop(id, None)

    # What is so.

    def parent_of(self, id, fresh=False):
        facts = self.accounts[id]
        if not fresh and facts["was"] and self.now() - facts["moved"] < self.stale_seconds:
            return facts["was"]
        return facts["parent"]

    def is_parent(self, id):
        return id == ROOT or id in self.ous

    def move(self, id, source, to, by, told=True):
        self.accounts[id].update(parent=to, was=source, moved=self.now())
        self.moves.append({"account": id, "from": source, "to": to, "by": by, "at": self.now()})
        if told and self.trail and self.trail[1] in (None, to):
            self.world.machines["sqs"].put(self.trail[0], json.dumps(self.trail_event(id, source, to, by)))

    def trail_event(self, id, source, to, by):
        at = self.time().strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "version": "0", "id": self.world.uuid(), "detail-type": "AWS API Call via CloudTrail", "source": "aws.organizations",
            "account": MANAGEMENT, "time": at, "region": "us-east-1", "resources": [],
            "detail": {"eventVersion": "1.09", "eventTime": at, "eventSource": "organizations.amazonaws.com", "eventName": "MoveAccount",
                       "awsRegion": "us-east-1", "eventID": self.world.uuid(), "eventType": "AwsApiCall", "errorCode": None,
                       "userIdentity": {"type": "AssumedRole", "sessionContext": {"sessionIssuer": {"userName": by}}},
                       "requestParameters": {"accountId": id, "sourceParentId": source, "destinationParentId": to},
                       "responseElements": None, "recipientAccountId": MANAGEMENT}}

    def account(self, id):
        facts = self.accounts[id]
        got = {"Id": id, "Arn": "arn:aws:organizations::%s:account/%s/%s" % (MANAGEMENT, ORG, id), "Email": facts["email"],
               "Name": facts["name"], "Status": "SUSPENDED" if facts["state"] in ("SUSPENDED", "CLOSED") else "ACTIVE",
               "State": facts["state"], "JoinedMethod": "CREATED", "JoinedTimestamp": self.time(facts["joined"])}
        if facts.get("no_state"):
            del got["State"]
        return got

    def ou(self, id):
        return {"Id": id, "Arn": "arn:aws:organizations::%s:ou/%s/%s" % (MANAGEMENT, ORG, id), "Name": self.ous[id][0]}

    # Operations.

    def DescribeOrganization(self, _params, _request):
        return {"Organization": {"Id": ORG, "Arn": "arn:aws:organizations::%s:organization/%s" % (MANAGEMENT, ORG),
                                 "FeatureSet": "ALL", "MasterAccountId": MANAGEMENT}}

    def ListRoots(self, params, _request):
        arn = "arn:aws:organizations::%s:root/%s/%s" % (MANAGEMENT, ORG, ROOT)
        return self.page([{"Id": ROOT, "Arn": arn, "Name": "Root", "PolicyTypes": []}], params, name="Roots")

    def ListParents(self, params, _request):
        child = params["ChildId"]
        if child in self.accounts:
            parent = self.parent_of(child)
        elif child in self.ous:
            parent = self.ous[child][1]
        else:
            self.fail("ChildNotFoundException", "We can't find an organizational unit (OU) or AWS account with the ChildId that you specified.")
        return {"Parents": [{"Id": parent, "Type": "ROOT" if parent == ROOT else "ORGANIZATIONAL_UNIT"}]}

    def ListOrganizationalUnitsForParent(self, params, _request):
        if not self.is_parent(params["ParentId"]):
            self.fail("ParentNotFoundException")
        below = [self.ou(id) for id, (_, parent) in sorted(self.ous.items()) if parent == params["ParentId"]]
        return self.page(below, params, name="OrganizationalUnits")

    def DescribeOrganizationalUnit(self, params, _request):
        if params["OrganizationalUnitId"] not in self.ous:
            self.fail("OrganizationalUnitNotFoundException")
        return {"OrganizationalUnit": self.ou(params["OrganizationalUnitId"])}

    def ListAccountsForParent(self, params, _request):
        if not self.is_parent(params["ParentId"]):
            self.fail("ParentNotFoundException")
        inside = [self.account(id) for id in sorted(self.accounts) if self.parent_of(id) == params["ParentId"]]
        return self.page(inside, params, name="Accounts")

    def ListAccounts(self, params, _request):
        return self.page([self.account(id) for id in sorted(self.accounts)], params, name="Accounts")

    def DescribeAccount(self, params, _request):
        if params["AccountId"] not in self.accounts:
            self.fail("AccountNotFoundException", "You specified an account that doesn't exist.")
        return {"Account": self.account(params["AccountId"])}

    def MoveAccount(self, params, request):
        id, source, to = params["AccountId"], params["SourceParentId"], params["DestinationParentId"]
        if id not in self.accounts:
            self.fail("AccountNotFoundException", "You specified an account that doesn't exist.")
        if not self.is_parent(source):
            self.fail("SourceParentNotFoundException", "We can't find a source root or OU with the ParentId that you specified.")
        if not self.is_parent(to):
            self.fail("DestinationParentNotFoundException",
                      "We can't find the destination container (a root or OU) with the ParentId that you specified.")
        if self.parent_of(id, True) == to:
            self.fail("DuplicateAccountException", "That account is already present in the specified destination.")
        if self.parent_of(id, True) != source:
            self.fail("SourceParentNotFoundException", "We can't find a source root or OU with the ParentId that you specified.")
        self.move(id, source, to, request.principal["role"])
        return {}

    def tagged(self, id):
        if id not in self.accounts and not self.is_parent(id):
            self.fail("TargetNotFoundException", "You specified a target entity that doesn't exist.")
        return self.tags.setdefault(id, {})

    def ListTagsForResource(self, params, _request):
        tags = [{"Key": k, "Value": v} for k, v in sorted(self.tagged(params["ResourceId"]).items())]
        return self.page(tags, params, name="Tags")

    def TagResource(self, params, _request):
        tags = self.tagged(params["ResourceId"])
        wanted = {t["Key"]: t["Value"] for t in params["Tags"]}
        if len(wanted) != len(params["Tags"]) or any(k.lower().startswith("aws:") for k in wanted):
            self.fail("InvalidInputException", "a key came twice, or is one of AWS's own")
        if len({**tags, **wanted}) > 50:
            self.fail("ConstraintViolationException", "You have exceeded the number of tags allowed on this resource.")
        tags.update(wanted)
        return {}

    def UntagResource(self, params, _request):
        tags = self.tagged(params["ResourceId"])
        for key in params["TagKeys"]:
            tags.pop(key, None)
        return {}
