# SPDX-License-Identifier: Apache-2.0
"""The AWS providers of leases in a process of their own (tests/unit/aws_lease_tool.c), on the front's organisation."""

from aws.front import names
from lib.aws_tool import Tool

OK, INVALID, DENIED, NOT_FOUND = "ok", "request makes no sense", "caller may not do this", "no such thing"
CONFLICT, LIMITED, CORRUPT = "state does not allow it", "too many requests", "stored data breaks a rule"
UNAVAILABLE, TIMEOUT = "store or far side cannot serve now", "far side did not answer in time"

HOUR, DAY = 3600 * 1000, 24 * 3600 * 1000
USER_SET, MANAGER_SET, ADMIN_SET = "front_IsbUsersPS", "front_IsbManagersPS", "front_IsbAdminsPS"
USERS, MANAGERS, ADMINS = "front_IsbUsers", "front_IsbManagers", "front_IsbAdmins"
TENANT_ROLE = "InnovationSandbox-front-Tenant"


class LeaseTool(Tool):
    program = "aws_lease_tool"

    def __init__(self, front, folder, **settings):
        given = {"store": str(folder / "store.db"), "intermediate": names.INTERMEDIATE_ROLE, "management": names.ORG_ROLE, "idc": names.IDC_ROLE,
                 "sandbox_role": names.SANDBOX_ROLE, "user_group": USERS, "manager_group": MANAGERS, "admin_group": ADMINS, "user_set": USER_SET,
                 "manager_set": MANAGER_SET, "admin_set": ADMIN_SET, "leave_out": "Credit,Refund", "project": "cleaner",
                 "protected": "%s, %s" % (names.MANAGEMENT, names.HUB), "tenant_role": TENANT_ROLE, "tenant_key": names.KEY}
        super().__init__(front.url, front.credentials(), **{**given, **settings})

    def ask(self, what, **arguments):
        answer = super().ask(what, **arguments)
        assert not self.broken(answer), answer
        return answer

    @staticmethod
    def broken(answer):
        """Nothing that is secret is told."""
        return "SecretString" in str(answer) or names.TASK_SECRET in str(answer)

    def do(self, what, **arguments):
        """What must succeed."""
        answer = self.ask(what, **arguments)
        assert answer["rc"] == OK, answer
        return answer

    def pass_time(self, ms):
        return self.do("clock", ms=ms)["now"]

    def now(self):
        return self.pass_time(0)
