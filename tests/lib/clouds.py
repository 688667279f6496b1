# SPDX-License-Identifier: Apache-2.0
"""The same flows on two clouds: the simulated one inside the server, and AWS as the front has it. What a test asks of either has the same name in both."""

import contextlib
import itertools
import os
import sqlite3
import struct
import time

from aws.front import names
from lib import jwt, leases
from lib.guard import Guarded
from lib.leases import Api, Pool
from lib.ops import Ops
from lib.wait import until

ACCOUNTS = ["2000000000%02d" % i for i in range(1, 4)]
GUARD = {"LEASEHOLD_QUARANTINE": "guard", "QUARANTINE_DURATION_HOURS": "72", "LEASEHOLD_ALARM_INTERVAL_SEC": "1"}


class Jump:
    """A date that goes ahead: the server's and the front's, together."""

    def __init__(self, front, file, shim):
        self.front, self.file, self.shim = front, file, shim
        file.write_bytes(struct.pack("=q", 0))

    def env(self):
        checks = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
        return {"LD_PRELOAD": str(self.shim), "JUMPCLOCK_FILE": str(self.file), "ASAN_OPTIONS": checks}

    def step(self, seconds):
        ahead = struct.unpack("=q", self.file.read_bytes())[0]
        with open(self.file, "r+b") as file:
            file.write(struct.pack("=q", ahead + seconds))
        self.front.advance(seconds)

    def leap(self, server, hours=0, minutes=0):
        """So far that the server has to be told to follow; each step is so small that signatures are still believed."""
        for _ in range(hours * 15 + minutes // 4):
            self.step(240)
        assert Ops(server).act("clock/accept").status == 200


class SimGuard(Guarded):
    """A guard on the simulated organisation, at real speed unless a scale is set."""

    kind = "sim"

    @classmethod
    def start(cls, make, _front, silent=False, accounts=3, **env):
        env = {**GUARD, "ACCOUNT_TABLE_NAME": "sim", **env, "LEASEHOLD_SIM_ACCOUNTS": str(accounts)}
        guarded = cls(make.server(args=["--dev"], **env))
        if silent:
            lost = guarded.ops.request("PUT", "/v1/sim/faults", body={"faults": [{"fault": "lose-events"}]})
            assert lost.status == 200, lost
        return guarded

    def again(self):
        return type(self)(self.server)

    def pass_hours(self, hours):
        """They pass by themselves."""


class AwsGuard(Guarded):
    """The other system is played by the test: it moves accounts in the front's organisation, and its rule sends the moves to Available to the guard's queue."""

    kind = "aws"
    front = jump = None

    @classmethod
    def start(cls, make, front, silent=False, accounts=3, shim=None, **env):
        """shim: the date can be moved."""
        ids = ["2000000000%02d" % i for i in range(1, accounts + 1)]
        front.do("organizations", "add_accounts", ids=ids)
        front.do("dynamodb", "add_table", name="accounts", items={id: "Available" for id in ids})
        jump = Jump(front, make.folder / "jump", shim) if shim else None
        env = {**front.env(), **GUARD, **(jump.env() if jump else {}), **env, "ACCOUNT_TABLE_NAME": "accounts",
               "LEASEHOLD_GUARD_QUEUE_URL": front.do("sqs", "add_queue", name="guard", VisibilityTimeout="60")}
        if not silent:
            front.do("organizations", "trail", queue="guard", only_to=names.OUS["Available"])
        guarded = cls(make.server(bare=False, **env))
        guarded.front, guarded.jump = front, jump
        return guarded

    def again(self):
        got = type(self)(self.server)
        got.front, got.jump = self.front, self.jump
        return got

    def pass_hours(self, hours):
        self.jump.leap(self.server, hours)

    def accounts(self, ou):
        return [id for id, a in sorted(self.front.state("organizations")["accounts"].items()) if a["parent"] == names.OUS[ou]]

    def place(self, account):
        parent = self.front.state("organizations")["accounts"][account]["parent"]
        return next(name for name, id in names.OUS.items() if id == parent)

    def move(self, account, source, destination):
        assert self.place(account) == source
        self.front.do("organizations", "move", id=account, to=names.OUS[destination])

    def status(self, account):
        """In the other system's table."""
        return self.front.state("dynamodb")["accounts"][account]["status"]["S"]


GUARDS = {"sim": SimGuard, "aws": AwsGuard}


def release(guarded, account):
    """An operator ends the hold before its time."""
    hold = until(lambda: next((h for h in guarded.ops.read("holds?account=" + account)["holds"] if h["state"] == "open"), None), "a hold", 120)
    reply = guarded.ops.act("holds/%s/release" % hold["id"], {"reason": "the test is over"})
    assert reply.status == 200, reply
    return hold


# Leases. Time goes by quickly in both: the simulated cloud's server has a scale; on AWS its date jumps, and the front's with it, whenever there is nothing to do but wait.

STEP = 31  # seconds; the cleaner is asked every 30, and a step of the date up to 60 is followed
CODEBUILD = {"LEASEHOLD_CLEANER": "codebuild", "LEASEHOLD_CODEBUILD_PROJECT": "cleaner", "APPCONFIG_APPLICATION_ID": "app1",
             "APPCONFIG_ENVIRONMENT_ID": "env1", "APPCONFIG_NUKE_CONFIG_CONFIGURATION_PROFILE_ID": "nuke1"}
ONE_RUN = "cleanup:\n  numberOfSuccessfulAttemptsToFinishCleanup: 1\n"


def set_policy(server, text=ONE_RUN):
    reply = Ops(server).request("PUT", "/v1/ops/policy", body={"document": text, "version": 0})
    assert reply.status == 200, reply


class SimPool(Pool):
    """Leases on the simulated cloud."""

    kind = "sim"

    @classmethod
    def start(cls, make, _front, _shim, count=2, **env):
        env = {"LEASEHOLD_TIME_SCALE": "600", "LEASEHOLD_SIM_ACCOUNTS": str(count), "LEASEHOLD_POLL_MS": "100", **env}
        made = cls(make.server(args=["--dev"], **leases.env(make.folder, **env)))
        set_policy(made.server)
        return made

    def again(self):
        return type(self)(self.server)

    def pass_time(self):
        pass

    def pass_hours(self, hours):
        """They pass by themselves."""

    def is_cleaning(self):
        return False

    def place(self, account):
        world = Ops(self.server).get("/v1/sim").json
        return next(o["name"] for o in world["ous"] if account in [a["id"] for a in o["accounts"]])

    def owners(self, account):
        """Emails of those who have the permissions of an owner."""
        with contextlib.closing(sqlite3.connect(self.server.data / "sim.db", timeout=30)) as db:
            rows = db.execute("SELECT principal FROM sim_assignment WHERE account_id = ? AND permission_set = 'user'", (account,)).fetchall()
        return sorted(principal.lower() for principal, in rows)

    def move(self, account, to):
        """By somebody else."""
        reply = Ops(self.server).post("/v1/sim/accounts/%s/move" % account, body={"from": self.place(account), "to": to})
        assert reply.status == 200, reply

    def move_unseen(self, account, to):
        """By somebody else, and no event tells of it: else the account would be locked away within seconds. Answers the pool to go on with."""
        assert self.server.stop() == 0
        with contextlib.closing(sqlite3.connect(self.server.data / "sim.db")) as db, db:
            changed = db.execute("UPDATE sim_member SET ou_id = (SELECT id FROM sim_ou WHERE name = ?) WHERE id = ?", (to, account))
            assert changed.rowcount == 1
        self.server.start()
        return self.again()


class LongApi(Api):
    """One caller whose token outlives the jumps of the date."""

    lives = 7 * 86400


class AwsPool(Pool):
    """Leases on the front's organisation. The people are in Identity Center, and CodeBuild empties accounts."""

    kind = "aws"
    api = LongApi
    administration = [names.MANAGEMENT, names.HUB, names.IDC]
    freeze_answer = {"note": "sessions that are open in the account live on until they end by themselves, up to 12 hours: a freeze keeps new ones away only"}

    @classmethod
    def start(cls, make, front, shim, count=2, spare=0, people=20, name="jump", **env):
        """count: accounts to lend; spare: more of them that wait in Entry."""
        ids = ["2000000000%02d" % i for i in range(1, count + spare + 1)]
        front.do("organizations", "add_accounts", ids=ids, parent=names.OUS["Entry"])
        for who, group in ((leases.ADMIN, "Admins"), (leases.MANAGER, "Managers"), (leases.USER, "Users")):
            front.do("identitystore", "add_user", email=who, groups=["front_Isb" + group])
        front.do("identitystore", "add_users", emails=["Person-%d@Example.com" % i for i in range(1, people + 1)], groups=["front_IsbUsers"])
        queue = front.do("sqs", "add_queue", name="trail", VisibilityTimeout="5")
        front.do("organizations", "trail", queue="trail")
        jump = Jump(front, make.folder / name, shim)
        env = {**front.env(), **CODEBUILD, **jump.env(), "LEASEHOLD_JWT_SECRET": jwt.SECRET, "LEASEHOLD_POLL_MS": "100", "LEASEHOLD_ORG_PACE": "20",
               "LEASEHOLD_GUARD_QUEUE_URL": queue, **env}
        made = cls(make.server(**env))
        made.front, made.jump, made.persons = front, jump, itertools.cycle(range(1, people + 1))
        set_policy(made.server)
        until(made.knows_its_people, "the directory is read", 180)
        for id in ids[:count]:
            made.admin.data("POST", "/accounts", {"awsAccountId": id}, 201)
        made.until(lambda: all(a["phase"] == "Available" for a in made.admin.everything("/accounts", 100)), "all accounts are clean", 300)
        return made

    def again(self):
        made = type(self)(self.server)
        made.front, made.jump, made.persons = self.front, self.jump, self.persons
        return made

    @contextlib.contextmanager
    def unmoved(self):
        self.front.fault("error", "organizations", "MoveAccount", code="ServiceException", count=-1)
        try:
            yield
        finally:
            self.front.clear()

    def knows_its_people(self):
        job = next(j for j in Ops(self.server).read("jobs")["jobs"] if j["name"] == "directory-refresh")
        return job["last_outcome"] == "success" and not job["running"]

    def person(self):
        """Each has at most one lease at a time."""
        return LongApi(self.server, "person-%d@example.com" % next(self.persons), "User")

    def pass_time(self):
        self.jump.step(STEP)

    def pass_hours(self, hours):
        self.jump.leap(self.server, hours)

    def is_cleaning(self):
        return any(b["status"] == "IN_PROGRESS" for b in self.front.state("codebuild")["builds"])

    def place(self, account):
        parent = self.front.state("organizations")["accounts"][account]["parent"]
        return next(name for name, id in names.OUS.items() if id == parent)

    def owners(self, account):
        state, users = self.front.state("sso-admin"), self.front.state("identitystore")["users"]
        owner = next(arn for arn, name in state["sets"].items() if name == "front_IsbUsersPS")
        return sorted(users[a["principal"]]["email"].lower() for a in state["assignments"] if a["account"] == account and a["set"] == owner)

    def move(self, account, to):
        self.front.do("organizations", "move", id=account, to=names.OUS[to])

    def move_unseen(self, account, to):
        self.front.do("organizations", "move", id=account, to=names.OUS[to], told=False)
        return self


def wait(self, condition, what, timeout=180):
    """Until it is so. Time passes when a build goes on, and when nothing has happened for a while."""
    since = [time.monotonic()]

    def look():
        got = condition()
        if not got and time.monotonic() - since[0] > (1 if self.is_cleaning() else 5):
            self.pass_time()
            since[0] = time.monotonic()
        return got

    return until(look, what, timeout, 0.2)


def until_status(self, lease, status):
    return self.until(lambda: (lambda l: l if l["status"] == status else None)(self.show(lease)), "the lease is " + status)


for pool_of in (SimPool, AwsPool):
    pool_of.until, pool_of.until_status = wait, until_status
POOLS = {"sim": SimPool, "aws": AwsPool}
