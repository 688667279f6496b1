# SPDX-License-Identifier: Apache-2.0
"""IAM Identity Center: permission sets and assignments. A change takes so many looks, or so many seconds, and may fail or never end."""

from aws.front.machine import Machine
from aws.front.names import INSTANCE_ARN, PERMISSION_SETS, STORE_ID


class SsoAdmin(Machine):
    bad_token = "ValidationException"

    def reset(self):
        self.instances = [{"InstanceArn": INSTANCE_ARN, "IdentityStoreId": STORE_ID}]
        self.sets = {}
        for i, name in enumerate(PERMISSION_SETS):
            self.ctl_add_set(name, i + 1)
        self.assignments, self.requests, self.effects = [], {}, []
        self.looks, self.seconds, self.outcome, self.reason = 1, 2.0, "SUCCEEDED", None

    def show(self):
        return {"assignments": [dict(zip(("account", "set", "kind", "principal"), a)) for a in self.assignments],
                "sets": self.sets, "effects": self.effects, "pending": sum(r["Status"] == "IN_PROGRESS" for r in self.requests.values())}

    # For the tests.

    def ctl_add_set(self, name, number=None):
        arn = "arn:aws:sso:::permissionSet/%s/ps-%016x" % (INSTANCE_ARN.rsplit("/", 1)[1], number or len(self.sets) + 1)
        self.sets[arn] = name
        return arn

    def ctl_remake_set(self, name):
        """Deleted, with its assignments, and made again."""
        old = next(arn for arn, known in self.sets.items() if known == name)
        del self.sets[old]
        self.assignments = [a for a in self.assignments if a[1] != old]
        return self.ctl_add_set(name, 4096 + len(self.sets))

    def ctl_add_instance(self, arn, store):
        self.instances.append({"InstanceArn": arn, "IdentityStoreId": store})

    def ctl_pace(self, looks=1, seconds=2.0):
        """A change is over after so many looks or so many seconds. looks -1: never."""
        self.looks, self.seconds = looks, seconds

    def ctl_outcome(self, status="SUCCEEDED", reason=None):
        self.outcome, self.reason = status, reason

    def ctl_finish(self):
        for asked in self.requests.values():
            if asked["Status"] == "IN_PROGRESS":
                self.finish(asked)

    def ctl_assign(self, account, principal, set_name, kind="USER"):
        arn = next(arn for arn, name in self.sets.items() if name == set_name)
        self.assignments.append((account, arn, kind, principal))

    # What is so.

    def settle(self):
        for asked in self.requests.values():
            if asked["Status"] == "IN_PROGRESS" and asked["looks"] >= 0 and self.now() - asked["at"] >= asked["seconds"]:
                self.finish(asked)

    def finish(self, asked):
        asked["Status"] = asked["outcome"]
        if asked["outcome"] != "SUCCEEDED":
            asked["FailureReason"] = asked["reason"] or "Received a 404 status error: Not supported user or group"
            return
        what = asked["what"]
        if asked["is_creation"] and what not in self.assignments:
            self.assignments.append(what)
            self.effects.append(["created", *what])
        if not asked["is_creation"] and what in self.assignments:
            self.assignments.remove(what)
            self.effects.append(["deleted", *what])

    def check(self, params):
        if params["InstanceArn"] not in [i["InstanceArn"] for i in self.instances]:
            self.fail("ResourceNotFoundException", "InstanceArn not found")
        if "PermissionSetArn" in params and params["PermissionSetArn"] not in self.sets:
            self.fail("ResourceNotFoundException", "PermissionSetArn not found")

    def begin(self, params, is_creation):
        self.check(params)
        self.settle()
        what = (params["TargetId"], params["PermissionSetArn"], params["PrincipalType"], params["PrincipalId"])
        directory = self.world.machines["identitystore"]
        if params["TargetId"] not in self.world.machines["organizations"].accounts:
            self.fail("ResourceNotFoundException", "AccountId not found")
        if is_creation and params["PrincipalId"] not in (directory.users if params["PrincipalType"] == "USER" else directory.groups):
            self.fail("ResourceNotFoundException", "PrincipalId not found")
        if any(r["Status"] == "IN_PROGRESS" and r["what"] == what for r in self.requests.values()):
            self.fail("ConflictException", "a previous change of this assignment is in progress")
        if not is_creation and what not in self.assignments:
            self.fail("ResourceNotFoundException", "AccountAssignment not found")
        asked = {"Status": "IN_PROGRESS", "RequestId": self.world.uuid(), "what": what, "is_creation": is_creation, "looks": self.looks,
                 "seconds": self.seconds, "at": self.now(), "outcome": self.outcome, "reason": self.reason}
        self.requests[asked["RequestId"]] = asked
        return self.status(asked)

    def status(self, asked):
        account, arn, kind, principal = asked["what"]
        got = {"Status": asked["Status"], "RequestId": asked["RequestId"], "TargetId": account, "TargetType": "AWS_ACCOUNT",
               "PermissionSetArn": arn, "PrincipalType": kind, "PrincipalId": principal, "CreatedDate": self.time(asked["at"])}
        if "FailureReason" in asked:
            got["FailureReason"] = asked["FailureReason"]
        return got

    def look(self, id, is_creation):
        self.settle()
        asked = self.requests.get(id)
        if not asked or asked["is_creation"] != is_creation:
            self.fail("ResourceNotFoundException", "no such request")
        if asked["Status"] == "IN_PROGRESS" and asked["looks"] > 0:
            asked["looks"] -= 1
            if asked["looks"] == 0:
                self.finish(asked)
        return self.status(asked)

    # Operations.

    def ListInstances(self, params, _request):
        return self.page(self.instances, params, 10, name="Instances")

    def ListPermissionSets(self, params, _request):
        self.check(params)
        return self.page(sorted(self.sets), params, 100, name="PermissionSets")

    def DescribePermissionSet(self, params, _request):
        self.check(params)
        arn = params["PermissionSetArn"]
        return {"PermissionSet": {"Name": self.sets[arn], "PermissionSetArn": arn, "SessionDuration": "PT1H"}}

    def CreateAccountAssignment(self, params, _request):
        return {"AccountAssignmentCreationStatus": self.begin(params, True)}

    def DeleteAccountAssignment(self, params, _request):
        return {"AccountAssignmentDeletionStatus": self.begin(params, False)}

    def DescribeAccountAssignmentCreationStatus(self, params, _request):
        self.check(params)
        return {"AccountAssignmentCreationStatus": self.look(params["AccountAssignmentCreationRequestId"], True)}

    def DescribeAccountAssignmentDeletionStatus(self, params, _request):
        self.check(params)
        return {"AccountAssignmentDeletionStatus": self.look(params["AccountAssignmentDeletionRequestId"], False)}

    def ListAccountAssignments(self, params, _request):
        self.check(params)
        self.settle()
        found = [{"AccountId": a, "PermissionSetArn": s, "PrincipalType": k, "PrincipalId": p} for a, s, k, p in self.assignments
                 if a == params["AccountId"] and s == params["PermissionSetArn"]]
        return self.page(found, params, 100, name="AccountAssignments")

    def ListPermissionSetsProvisionedToAccount(self, params, _request):
        self.check(params)
        self.settle()
        found = sorted({s for a, s, _, _ in self.assignments if a == params["AccountId"]})
        return self.page(found, params, 100, name="PermissionSets")
