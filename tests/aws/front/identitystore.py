# SPDX-License-Identifier: Apache-2.0
"""The directory behind Identity Center: users, groups, memberships. Look-ups are exact, as theirs are."""

from aws.front.machine import Machine
from aws.front.names import GROUPS, STORE_ID


class IdentityStore(Machine):
    bad_token = "ValidationException"

    def reset(self):
        self.users, self.groups, self.memberships, self.count = {}, {}, {}, 0
        for name in GROUPS:
            self.ctl_add_group(name)

    def show(self):
        return {"users": self.users, "groups": self.groups, "memberships": self.memberships}

    def make_id(self):
        self.count += 1
        return "0123456789-%08x-0000-4000-8000-000000000000" % self.count

    # For the tests.

    def ctl_add_group(self, name):
        id = self.make_id()
        self.groups[id] = name
        return id

    def ctl_add_user(self, email, groups=(), status="ENABLED", name=None):
        """email None: has none. groups: by name."""
        id = self.make_id()
        self.users[id] = {"email": email, "name": name or email or id, "status": status}
        for group in groups:
            self.ctl_join(id, group)
        return id

    def ctl_add_users(self, emails, groups=()):
        return [self.ctl_add_user(email, groups) for email in emails]

    def ctl_join(self, user, group):
        id = next(id for id, name in self.groups.items() if name == group)
        self.memberships[self.make_id()] = (id, user)

    def ctl_leave(self, user, group=None):
        self.memberships = {m: (g, u) for m, (g, u) in self.memberships.items() if u != user or group not in (None, self.groups[g])}

    def ctl_set_user(self, id, **facts):
        self.users[id].update(facts)

    def ctl_remove_user(self, id):
        self.ctl_leave(id)
        del self.users[id]

    def ctl_remove_group(self, name):
        id = next(id for id, known in self.groups.items() if known == name)
        self.memberships = {m: (g, u) for m, (g, u) in self.memberships.items() if g != id}
        del self.groups[id]

    # What is so.

    def check(self, params):
        if params["IdentityStoreId"] != STORE_ID:
            self.fail("ResourceNotFoundException", "IdentityStore not found")

    def user(self, id):
        facts = self.users[id]
        got = {"IdentityStoreId": STORE_ID, "UserId": id, "UserName": facts["name"], "DisplayName": facts["name"], "UserStatus": facts["status"]}
        if facts["email"]:
            got["Emails"] = [{"Value": facts["email"], "Type": "work", "Primary": True}]
        return got

    def membership(self, id):
        group, user = self.memberships[id]
        return {"IdentityStoreId": STORE_ID, "MembershipId": id, "GroupId": group, "MemberId": {"UserId": user}}

    def attribute(self, params):
        self.check(params)
        asked = params["AlternateIdentifier"].get("UniqueAttribute")
        if not asked:
            self.fail("ResourceNotFoundException", "no such external id")
        return asked["AttributePath"].lower(), asked["AttributeValue"]

    # Operations.

    def GetUserId(self, params, _request):
        path, value = self.attribute(params)
        word = {"emails.value": "email", "username": "name"}.get(path)
        if not word:
            self.fail("ValidationException", "no such unique attribute")
        for id, facts in self.users.items():
            if facts[word] == value:
                return {"UserId": id, "IdentityStoreId": STORE_ID}
        return self.fail("ResourceNotFoundException", "USER not found.")

    def GetGroupId(self, params, _request):
        path, value = self.attribute(params)
        if path != "displayname":
            self.fail("ValidationException", "no such unique attribute")
        for id, name in self.groups.items():
            if name == value:
                return {"GroupId": id, "IdentityStoreId": STORE_ID}
        return self.fail("ResourceNotFoundException", "GROUP not found.")

    def DescribeUser(self, params, _request):
        self.check(params)
        if params["UserId"] not in self.users:
            self.fail("ResourceNotFoundException", "USER not found.")
        return self.user(params["UserId"])

    def DescribeGroup(self, params, _request):
        self.check(params)
        if params["GroupId"] not in self.groups:
            self.fail("ResourceNotFoundException", "GROUP not found.")
        return {"GroupId": params["GroupId"], "DisplayName": self.groups[params["GroupId"]], "IdentityStoreId": STORE_ID}

    def ListUsers(self, params, _request):
        self.check(params)
        wanted = [f["AttributeValue"] for f in params.get("Filters", [])]
        found = [self.user(id) for id in sorted(self.users) if not wanted or self.users[id]["name"] in wanted]
        return self.page(found, params, 100, name="Users")

    def ListGroups(self, params, _request):
        self.check(params)
        wanted = [f["AttributeValue"] for f in params.get("Filters", [])]
        found = [{"GroupId": id, "DisplayName": name, "IdentityStoreId": STORE_ID} for id, name in sorted(self.groups.items())
                 if not wanted or name in wanted]
        return self.page(found, params, 100, name="Groups")

    def ListGroupMemberships(self, params, _request):
        self.check(params)
        if params["GroupId"] not in self.groups:
            self.fail("ResourceNotFoundException", "GROUP not found.")
        found = [self.membership(m) for m, (group, _) in sorted(self.memberships.items()) if group == params["GroupId"]]
        return self.page(found, params, 100, name="GroupMemberships")

    def ListGroupMembershipsForMember(self, params, _request):
        self.check(params)
        user = params["MemberId"]["UserId"]
        if user not in self.users:
            self.fail("ResourceNotFoundException", "USER not found.")
        found = [self.membership(m) for m, (_, member) in sorted(self.memberships.items()) if member == user]
        return self.page(found, params, 100, name="GroupMemberships")
