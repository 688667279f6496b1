# SPDX-License-Identifier: Apache-2.0
"""Callers of /api: people of every role, and what they do often."""

import base64
import contextlib
import itertools
import json
import os
import uuid

from lib import jwt
from lib.http import Client
from lib.server import ADMIN_TOKEN
from lib.wait import until

ADMIN, MANAGER, USER = "admin@example.com", "manager@example.com", "user@example.com"
ROLES = {ADMIN: ["Admin"], MANAGER: ["Manager"], USER: ["User"]}
names, persons = itertools.count(1), itertools.count(1)


def write_people(folder, count=300):
    """A file of people: one of each role, and users whom each test takes fresh."""
    path = folder / "people.jsonl"
    people = [(email, roles) for email, roles in ROLES.items()]
    people += [("Person-%d@Example.com" % i, ["User"]) for i in range(1, count + 1)]
    path.write_text("".join(json.dumps({"email": e, "roles": r}) + "\n" for e, r in people))
    os.chmod(path, 0o600)
    return path


def env(folder, **more):
    return {"LEASEHOLD_JWT_SECRET": jwt.SECRET, "LEASEHOLD_USERS_FILE": str(write_people(folder)), **more}


def lease_id(email, lease_uuid):
    key = json.dumps({"userEmail": email, "uuid": lease_uuid}, separators=(",", ":"))
    return base64.b64encode(key.encode()).decode()


class Api(Client):
    """One caller."""

    lives = 3600  # seconds, of the token

    def __init__(self, server, email, *roles, **kw):
        super().__init__(server.address, {"Authorization": "Bearer " + jwt.token(email, *roles, lives=self.lives)}, **kw)
        self.email = email

    def call(self, method, path, body=None, **kw):
        return self.request(method, "/api" + path, body=body, **kw)

    def data(self, method, path, body=None, status=200):
        """A call that must succeed; what it answers."""
        reply = self.call(method, path, body)
        assert reply.status == status, reply
        assert reply.json["status"] == "success", reply
        return reply.json["data"]

    def errors(self, method, path, body=None, status=400, **kw):
        """A call that must be refused; the errors."""
        reply = self.call(method, path, body, **kw)
        assert reply.status == status, reply
        assert reply.json["status"] == "fail" and list(reply.json) == ["status", "data"], reply
        assert all(e["message"] for e in reply.json["data"]["errors"]), reply
        return reply.json["data"]["errors"]

    def fields(self, method, path, body=None, status=400, **kw):
        return sorted(e.get("field", "") for e in self.errors(method, path, body, status, **kw))

    def everything(self, path, size):
        """All items of a list, page by page; ends only at an explicit null, as the web pages do."""
        items, token = [], ""
        for _ in range(1000):
            data = self.data("GET", "%s%spageSize=%d%s" % (path, "&" if "?" in path else "?", size, token))
            items += data["result"]
            assert len(data["result"]) <= size
            if data["nextPageIdentifier"] is None:
                return items
            token = "&pageIdentifier=" + data["nextPageIdentifier"]
        raise AssertionError("a list without end")


class Pool:
    """A server with callers of every role."""

    api = Api
    administration = ["999988887777", "999988886666"]  # accounts that the organisation is run from
    freeze_answer = None

    def __init__(self, server):
        self.server = server
        self.admin = self.api(server, ADMIN, "Admin")
        self.manager = self.api(server, MANAGER, "Manager")
        self.user = self.api(server, USER, "User")
        self.by_role = {"Admin": self.admin, "Manager": self.manager, "User": self.user}

    def person(self):
        """A user whom nobody else has; the token writes his email in lower case, the directory does not."""
        return self.api(self.server, "person-%d@example.com" % next(persons), "User")

    def template(self, **fields):
        body = {"name": "t-%d" % next(names), "requiresApproval": True, "visibility": "PUBLIC", "maxSpend": 40,
                "leaseDurationInHours": 24, **fields}
        return self.manager.data("POST", "/leaseTemplates", {k: v for k, v in body.items() if v is not None}, 201)

    def pending(self, person, **fields):
        template = self.template(**fields)
        return person.data("POST", "/leases", {"leaseTemplateUuid": template["uuid"], "comments": ""}, 201)

    def active(self, person, **fields):
        """An approved lease whose access works."""
        lease = self.pending(person, **fields)
        self.manager.data("POST", "/leases/%s/review" % lease["leaseId"], {"action": "Approve"})
        return self.until_status(lease, "Active")

    def show(self, lease):
        return self.admin.data("GET", "/leases/" + lease["leaseId"])

    @contextlib.contextmanager
    def unmoved(self):
        """No account gets anywhere meanwhile, so no cleanup begins: it waits until the account is in CleanUp. The moves are tried for half an hour."""
        self.set_faults({"fault": "outage", "call": "move"})
        try:
            yield
        finally:
            self.set_faults()

    def set_faults(self, *rules):
        """Of the simulated cloud."""
        operator = self.server.client({"Authorization": "Bearer " + ADMIN_TOKEN})
        reply = operator.request("PUT", "/v1/sim/faults", body={"faults": list(rules)})
        assert reply.status == 200, reply

    def until_status(self, lease, status):
        return until(lambda: (lambda l: l if l["status"] == status else None)(self.show(lease)),
                     "the lease is " + status, 30, 0.05)


def nowhere(email):
    """A lease id that is well-formed and nobody's."""
    return lease_id(email, str(uuid.uuid4()))
