# SPDX-License-Identifier: Apache-2.0
"""Cognito's user pools: names are not unique, a domain is, and a pool with a domain cannot be deleted. Two pools are made where a client does not look first."""

import re

from aws.front.machine import Machine
from aws.front.names import HUB, REGION

CLIENT = ("ExplicitAuthFlows", "SupportedIdentityProviders", "CallbackURLs", "LogoutURLs", "AllowedOAuthFlows", "AllowedOAuthScopes",
          "AllowedOAuthFlowsUserPoolClient", "RefreshTokenValidity", "AccessTokenValidity", "IdTokenValidity", "PreventUserExistenceErrors")


class Cognito(Machine):
    bad_token = "InvalidParameterException"

    def reset(self):
        self.pools, self.domains, self.count, self.looks, self.taken = {}, {}, 0, 1, set()
        self.pools_limit, self.clients_limit = 1000, 1000

    def show(self):
        return {"pools": [{"id": id, "name": p["asked"]["PoolName"], "mfa": p["mfa"], "tags": p["tags"], "clients": list(p["clients"].values()),
                           "users": {n: {k: u[k] for k in ("email", "status", "enabled", "signed_out")} for n, u in p["users"].items()}, "asked": p["asked"],
                           "domain": next((d for d, v in self.domains.items() if v["pool"] == id), None)} for id, p in self.pools.items()]}

    # For the tests.

    def ctl_limit(self, pools=None, clients=None):
        self.pools_limit = self.pools_limit if pools is None else pools
        self.clients_limit = self.clients_limit if clients is None else clients

    def ctl_take_domain(self, name):
        """By another account."""
        self.taken.add(name)

    def ctl_add(self, name, tags=None):
        return self.make({"PoolName": name, "UserPoolTags": tags or {}})

    def ctl_add_client(self, pool, name):
        """As another try would that nobody heard of."""
        return self.CreateUserPoolClient({"UserPoolId": pool, "ClientName": name}, None)["UserPoolClient"]["ClientId"]

    # What is so.

    def make(self, asked):
        self.count += 1
        id = "%s_%09d" % (REGION, self.count)
        self.pools[id] = {"asked": {k: v for k, v in asked.items() if k != "UserPoolTags"}, "tags": dict(asked.get("UserPoolTags", {})),
                          "mfa": asked.get("MfaConfiguration", "OFF"), "totp": False, "clients": {}, "users": {}, "made": self.now()}
        return id

    def find(self, params):
        id = params["UserPoolId"]
        if id not in self.pools:
            self.fail("ResourceNotFoundException", "User pool %s does not exist." % id)
        return self.pools[id]

    @staticmethod
    def arn(id):
        return "arn:aws:cognito-idp:%s:%s:userpool/%s" % (REGION, HUB, id)

    def all_tags(self):
        return [(self.arn(id), p["tags"]) for id, p in self.pools.items()]

    def told(self, id):
        p = self.pools[id]
        kept = {k: v for k, v in p["asked"].items() if k in ("Policies", "AutoVerifiedAttributes", "UsernameAttributes", "AdminCreateUserConfig",
                                                             "AccountRecoverySetting", "DeletionProtection", "UsernameConfiguration")}
        got = {"Id": id, "Name": p["asked"]["PoolName"], **kept, "MfaConfiguration": p["mfa"], "UserPoolTags": p["tags"], "Arn": self.arn(id),
               "EstimatedNumberOfUsers": len(p["users"]), "CreationDate": self.time(p["made"]), "LastModifiedDate": self.time(p["made"])}
        domain = next((d for d, v in self.domains.items() if v["pool"] == id), None)
        return {**got, **({"Domain": domain} if domain else {})}

    # Pools.

    def CreateUserPool(self, params, _request):
        if params.get("MfaConfiguration", "OFF") != "OFF" and "SmsConfiguration" not in params:
            self.fail("InvalidParameterException", "SMS configuration and Auto verification for phone_number are required when MFA is required/optional")
        if len(self.pools) >= self.pools_limit:
            self.fail("LimitExceededException", "The maximum number of user pools for this account has been reached.")
        return {"UserPool": self.told(self.make(params))}

    def ListUserPools(self, params, _request):
        rows = [{"Id": id, "Name": p["asked"]["PoolName"], "CreationDate": self.time(p["made"]), "LastModifiedDate": self.time(p["made"])}
                for id, p in self.pools.items()]
        return self.page(rows, params, 60, name="UserPools")

    def DescribeUserPool(self, params, _request):
        self.find(params)
        return {"UserPool": self.told(params["UserPoolId"])}

    def DeleteUserPool(self, params, _request):
        self.find(params)
        if any(d["pool"] == params["UserPoolId"] for d in self.domains.values()):
            self.fail("InvalidParameterException", "User pool cannot be deleted. It has a domain configured that should be deleted first.")
        del self.pools[params["UserPoolId"]]
        return {}

    def SetUserPoolMfaConfig(self, params, _request):
        pool = self.find(params)
        totp = params.get("SoftwareTokenMfaConfiguration", {}).get("Enabled", False)
        if params.get("MfaConfiguration", "OFF") != "OFF" and not totp and "SmsMfaConfiguration" not in params:
            self.fail("InvalidParameterException", "Invalid MFA configuration given, can't turn on MFA and configure an MFA together.")
        pool.update(mfa=params.get("MfaConfiguration", pool["mfa"]), totp=totp)
        return {"SoftwareTokenMfaConfiguration": {"Enabled": totp}, "MfaConfiguration": pool["mfa"]}

    def GetUserPoolMfaConfig(self, params, _request):
        pool = self.find(params)
        return {"SoftwareTokenMfaConfiguration": {"Enabled": pool["totp"]}, "MfaConfiguration": pool["mfa"]}

    def TagResource(self, params, _request):
        self.find({"UserPoolId": params["ResourceArn"].rsplit("/", 1)[-1]})["tags"].update(params["Tags"])
        return {}

    def ListTagsForResource(self, params, _request):
        return {"Tags": self.find({"UserPoolId": params["ResourceArn"].rsplit("/", 1)[-1]})["tags"]}

    # Clients and domains.

    def CreateUserPoolClient(self, params, _request):
        pool = self.find(params)
        if len(pool["clients"]) >= self.clients_limit:
            self.fail("LimitExceededException", "The maximum number of clients has been reached.")
        for url in params.get("CallbackURLs", []) + params.get("LogoutURLs", []):
            if not re.match(r"https://|http://localhost[:/]", url):
                self.fail("InvalidParameterException", "cannot use the HTTP protocol: " + url)
        if params.get("AllowedOAuthFlows") and not (params.get("AllowedOAuthFlowsUserPoolClient") and params.get("AllowedOAuthScopes")):
            self.fail("InvalidOAuthFlowException", "AllowedOAuthFlows and AllowedOAuthScopes are required if user pool client is allowed to use OAuth flows.")
        self.count += 1
        id = "client%020d" % self.count
        pool["clients"][id] = {"UserPoolId": params["UserPoolId"], "ClientName": params["ClientName"], "ClientId": id,
                               **{k: params[k] for k in CLIENT if k in params}}
        if params.get("GenerateSecret"):
            pool["clients"][id]["ClientSecret"] = "frontclientsecret%020d" % self.count
        return {"UserPoolClient": pool["clients"][id]}

    def find_client(self, params):
        pool = self.find(params)
        if params["ClientId"] not in pool["clients"]:
            self.fail("ResourceNotFoundException", "User pool client %s does not exist." % params["ClientId"])
        return pool["clients"][params["ClientId"]]

    def DescribeUserPoolClient(self, params, _request):
        return {"UserPoolClient": self.find_client(params)}

    def ListUserPoolClients(self, params, _request):
        rows = [{k: c[k] for k in ("ClientId", "UserPoolId", "ClientName")} for c in self.find(params)["clients"].values()]
        return self.page(rows, params, 60, name="UserPoolClients")

    def UpdateUserPoolClient(self, params, _request):
        client = self.find_client(params)
        for k in CLIENT:  # what is not named goes back to its default
            client.pop(k, None)
        client.update({k: params[k] for k in (*CLIENT, "ClientName") if k in params})
        return {"UserPoolClient": client}

    def DeleteUserPoolClient(self, params, _request):
        self.find_client(params)
        del self.find(params)["clients"][params["ClientId"]]
        return {}

    def CreateUserPoolDomain(self, params, _request):
        self.find(params)
        name = params["Domain"]
        if re.search("aws|amazon|cognito", name):
            self.fail("InvalidParameterException", "Domain cannot contain reserved word")
        if name in self.domains or name in self.taken:
            self.fail("InvalidParameterException", "Domain already associated with another user pool.")
        if any(d["pool"] == params["UserPoolId"] for d in self.domains.values()):
            self.fail("InvalidParameterException", "User pool already has a domain configured.")
        self.domains[name] = {"pool": params["UserPoolId"], "wait": self.wait(self.looks, 60)}
        return {}

    def DescribeUserPoolDomain(self, params, _request):
        domain = self.domains.get(params["Domain"])
        if domain is None:  # no error, an empty answer
            return {"DomainDescription": {}}
        status = "ACTIVE" if domain["wait"].is_over() else "CREATING"
        return {"DomainDescription": {"UserPoolId": domain["pool"], "AWSAccountId": HUB, "Domain": params["Domain"], "Status": status}}

    def DeleteUserPoolDomain(self, params, _request):
        self.find(params)
        if self.domains.get(params["Domain"], {}).get("pool") != params["UserPoolId"]:
            self.fail("InvalidParameterException", "No such domain or user pool exists.")
        del self.domains[params["Domain"]]
        return {}

    # People.

    @staticmethod
    def same(pool, one, other):
        """By default, the API makes pools that tell Ann@ from ann@."""
        is_sensitive = pool["asked"].get("UsernameConfiguration", {}).get("CaseSensitive", True)
        return one == other if is_sensitive else one.lower() == other.lower()

    def user(self, params):
        pool = self.find(params)
        users = pool["users"]
        name = next((n for n, u in users.items() if self.same(pool, params["Username"], n) or self.same(pool, params["Username"], u["email"])), None)
        if name is None:
            self.fail("UserNotFoundException", "User does not exist.")
        return name, users[name]

    def told_user(self, name, user, attributes):
        return {"Username": name, attributes: [{"Name": "sub", "Value": user["sub"]}, *user["attributes"]], "UserCreateDate": self.time(user["made"]),
                "UserLastModifiedDate": self.time(user["made"]), "Enabled": user["enabled"], "UserStatus": user["status"]}

    def check_password(self, params, password):
        policy = self.find(params)["asked"].get("Policies", {}).get("PasswordPolicy", {"MinimumLength": 8})
        for name, rule in (("RequireUppercase", "[A-Z]"), ("RequireLowercase", "[a-z]"), ("RequireNumbers", "[0-9]"), ("RequireSymbols", r"[^A-Za-z0-9]")):
            if policy.get(name, False) and not re.search(rule, password):
                self.fail("InvalidPasswordException", "Password did not conform with password policy: " + name)
        if len(password) < policy.get("MinimumLength", 8):
            self.fail("InvalidPasswordException", "Password did not conform with password policy: Password not long enough")

    def AdminCreateUser(self, params, _request):
        pool, name = self.find(params), params["Username"]
        attributes = {a["Name"]: a.get("Value", "") for a in params.get("UserAttributes", [])}
        by_email = "email" in pool["asked"].get("UsernameAttributes", [])
        if by_email and "@" not in name:
            self.fail("InvalidParameterException", "Username should be an email.")
        email = attributes.setdefault("email", name) if by_email else attributes.get("email", "")
        if any(self.same(pool, name, n) or by_email and self.same(pool, email, u["email"]) for n, u in pool["users"].items()):
            self.fail("UsernameExistsException", "User account already exists")
        if "TemporaryPassword" in params:
            self.check_password(params, params["TemporaryPassword"])
        sub = self.world.uuid()
        name = sub if by_email else name
        pool["users"][name] = {"email": email, "attributes": self.tag_list(attributes, "Name"), "status": "FORCE_CHANGE_PASSWORD", "enabled": True, "sub": sub,
                               "made": self.now(), "password": params.get("TemporaryPassword"), "signed_out": 0}
        return {"User": self.told_user(name, pool["users"][name], "Attributes")}

    def AdminGetUser(self, params, _request):
        return self.told_user(*self.user(params), "UserAttributes")

    def AdminSetUserPassword(self, params, _request):
        _, user = self.user(params)
        self.check_password(params, params["Password"])
        user.update(password=params["Password"], status="CONFIRMED" if params.get("Permanent") else "FORCE_CHANGE_PASSWORD")
        return {}

    def AdminUpdateUserAttributes(self, params, _request):
        _, user = self.user(params)
        user["attributes"] = self.tag_list({**{a["Name"]: a["Value"] for a in user["attributes"]}, **{
            a["Name"]: a.get("Value", "") for a in params["UserAttributes"]}}, "Name")
        return {}

    def AdminDeleteUser(self, params, _request):
        del self.find(params)["users"][self.user(params)[0]]
        return {}

    def AdminDisableUser(self, params, _request):
        self.user(params)[1]["enabled"] = False
        return {}

    def AdminUserGlobalSignOut(self, params, _request):
        self.user(params)[1]["signed_out"] += 1
        return {}

    def ListUsers(self, params, _request):
        users = self.find(params)["users"]
        asked = re.fullmatch(r'(email|username) ?(\^?=) ?"([^"]*)"', params.get("Filter", 'email ^= ""'))
        if not asked:
            self.fail("InvalidParameterException", "Error while parsing filter.")
        kind, how, value = asked.groups()
        rows = [self.told_user(n, u, "Attributes") for n, u in users.items() for known in [(u["email"] if kind == "email" else n).lower()]
                if (known.startswith(value.lower()) if how == "^=" else known == value.lower())]
        return self.page(rows, params, 60, "Limit", "PaginationToken", "Users")
