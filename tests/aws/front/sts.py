# SPDX-License-Identifier: Apache-2.0
"""STS and as much of IAM as it stands on: who has which keys, which role trusts whom, what each role may. A session that a session asked for lasts an hour at most."""

from aws.front import policy
from aws.front.machine import Machine
from aws.front.names import (HUB, IDC_ROLE, INTERMEDIATE_ROLE, MANAGEMENT, ORG_ROLE, SANDBOX_ROLE, TASK_KEY, TASK_ROLE,
                             TASK_SECRET, TASK_TOKEN, USER_KEY, USER_SECRET, role_name)

CHAINED_MAX = 3600


class Sts(Machine):
    def reset(self):
        self.roles = {
            INTERMEDIATE_ROLE: {"trusts": [TASK_ROLE]},
            ORG_ROLE: {"trusts": [INTERMEDIATE_ROLE]},
            IDC_ROLE: {"trusts": [INTERMEDIATE_ROLE]},
            SANDBOX_ROLE: {"trusts": [INTERMEDIATE_ROLE]},  # in every account but those of the administration
        }
        self.allowed, self.denied = {}, set()  # by role name: statements; (role name or *, action)
        self.sessions, self.count, self.assumed = {}, 0, []
        self.outside = []  # calls that a policy does not allow
        self.sessions[TASK_KEY] = self.session(TASK_ROLE, "task", TASK_SECRET, TASK_TOKEN, None)
        self.sessions[USER_KEY] = {"secret": USER_SECRET, "token": None, "account": MANAGEMENT, "role": "operator", "role_arn": None,
                                   "arn": "arn:aws:iam::%s:user/operator" % MANAGEMENT, "expires": None, "is_session": False}

    def show(self):
        return {"assumed": self.assumed, "denied": sorted(self.denied), "outside": self.outside}

    def session(self, role_arn, name, secret, token, expires):
        account, role = role_arn.split(":")[4], role_name(role_arn)
        return {"secret": secret, "token": token, "account": account, "role": role, "role_arn": role_arn, "expires": expires,
                "arn": "arn:aws:sts::%s:assumed-role/%s/%s" % (account, role, name), "is_session": True}

    # For the tests.

    def ctl_set_role(self, arn, **facts):
        """trusts, external_id, max_seconds, source_identity (whether one may be set). {}: unknown before: a new role."""
        self.roles.setdefault(arn, {"trusts": []}).update(facts)

    def ctl_remove_role(self, arn):
        del self.roles[arn]

    def ctl_deny(self, action, role="*"):
        self.denied.add((role, action))

    def ctl_allow_all(self):
        self.denied.clear()
        self.allowed.clear()

    def ctl_policy(self, role, statements):
        """Only what these allow, from now on."""
        self.allowed[role] = list(statements)

    def ctl_expire(self, role=None):
        """End the sessions that were handed out, of one role or all."""
        for session in self.sessions.values():
            if session["expires"] and role in (None, session["role"]):
                session["expires"] = self.now() - 1

    # For the front.

    def secret_of(self, key):
        session = self.sessions.get(key)
        return session and (session["secret"], session["token"])

    def principal(self, key):
        return self.sessions[key]

    def is_expired(self, principal):
        return principal["expires"] is not None and principal["expires"] <= self.now()

    def may(self, principal, action, params):
        role = principal["role"]
        if (role, action) in self.denied or ("*", action) in self.denied:
            return False
        for needed, about in policy.needed(action, params) if role in self.allowed else []:
            tags = self.tags_of(needed, about)
            outside = policy.allows(self.allowed[role], needed, about, tags)
            if outside and tags is not None:
                self.outside.append("%s: %s" % (role, outside))
            if outside:
                return False
        return True

    def tags_of(self, action, params):
        """Of the thing that a call names, where a policy of deploy/aws asks for them. None: it is not there, so it has none, and who may touch it only by its
        tags is refused; a second attempt to delete it is no mistake."""
        machines = self.world.machines
        if action == "elasticfilesystem:DeleteAccessPoint":
            return machines["efs"].points.get(params["AccessPointId"], {"tags": None})["tags"]
        if action.startswith("cognito-idp:") and "UserPoolId" in params:
            return machines["cognito-idp"].pools.get(params["UserPoolId"], {"tags": None})["tags"]
        return {}

    # Operations.

    def GetCallerIdentity(self, _params, request):
        who = request.principal
        return {"Arn": who["arn"], "Account": who["account"], "UserId": "AROAFRONT%s" % who["account"] + ":" + who["arn"].rsplit("/", 1)[1]}

    def find_role(self, arn):
        if arn in self.roles:
            return self.roles[arn]
        account, name = arn.split(":")[4], role_name(arn)
        admins = (MANAGEMENT, HUB, IDC_ROLE.split(":")[4])
        if account in self.world.machines["organizations"].accounts and account not in admins:
            return self.roles.get(name)
        return None

    def AssumeRole(self, params, request):
        arn, who = params["RoleArn"], request.principal
        refusal = "User: %s is not authorized to perform: sts:AssumeRole on resource: %s" % (who["arn"], arn)
        role = self.find_role(arn) if arn.count(":") == 5 and ":role/" in arn else None
        if not role or who["role_arn"] and who["role_arn"] not in role["trusts"] or not who["role_arn"] and who["arn"] not in role["trusts"]:
            self.fail("AccessDenied", refusal, 403)
        if role.get("external_id") != params.get("ExternalId") or "SourceIdentity" in params and not role.get("source_identity"):
            self.fail("AccessDenied", refusal, 403)
        seconds = params.get("DurationSeconds", 3600)
        if who["is_session"] and seconds > CHAINED_MAX:
            self.fail("ValidationError", "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining")
        if seconds > role.get("max_seconds", 3600):
            self.fail("ValidationError", "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")
        return self.hand_out(arn, params["RoleSessionName"], seconds, who)

    def hand_out(self, arn, name, seconds, who):
        self.count += 1
        key, secret, token = "ASIAFRONT%011d" % self.count, "front-session-secret-%06d-%s" % (self.count, self.world.uuid()), "front-token-" + self.world.uuid()
        made = self.sessions[key] = self.session(arn, name, secret, token, self.now() + seconds)
        self.assumed.append({"role": arn, "name": name, "seconds": seconds, "by": who["arn"]})
        return {"Credentials": {"AccessKeyId": key, "SecretAccessKey": secret, "SessionToken": token, "Expiration": self.time(made["expires"])},
                "AssumedRoleUser": {"AssumedRoleId": "AROAFRONT%s:%s" % (made["account"], name), "Arn": made["arn"]}, "PackedPolicySize": 1}
