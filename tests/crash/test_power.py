# SPDX-License-Identifier: Apache-2.0
"""Power fails at any moment: whatever of the unflushed writes is lost or torn, every claim, lease and hold that was answered is there.

The server runs once, and a diary is kept of all it does to its files. Each cut is a moment of that diary: the files are made as a
failure could have left them then, and a server is started on them. LEASEHOLD_POWER_CUTS and LEASEHOLD_POWER_SEED make longer runs.
"""

import os
import random
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from lib import leases
from lib.leases import Pool
from lib.ops import Ops
from lib.power import Disk, read_diary

CUTS = int(os.environ.get("LEASEHOLD_POWER_CUTS", "12"))
SEED = int(os.environ.get("LEASEHOLD_POWER_SEED", "7"))
CLAIMERS, CLAIMS, LEASES = 4, 60, 8
SETTINGS = {"LEASEHOLD_SIM_ACCOUNTS": "20", "LEASEHOLD_POLL_MS": "50", "LEASEHOLD_SIM_SANDBOXES": str(CLAIMERS * CLAIMS + 20)}


@pytest.fixture(scope="session")
def recorder(tmp_path_factory):
    library = tmp_path_factory.mktemp("powerlog") / "powerlog.so"
    source = Path(__file__).with_name("powerlog.c")
    subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(source)], check=True)
    return library


class Recorded:
    """A server that was used and killed, its files from before, its diary, and what it answered when."""

    def __init__(self, make, recorder):
        self.settings = leases.env(make.folder, **SETTINGS)
        server = make.server(CLAIMERS * CLAIMS + 20, args=["--dev"], **self.settings)
        assert server.stop() == 0
        self.base = make.folder / "base"
        shutil.copytree(server.data, self.base)
        self.diary = make.folder / "diary"
        self.told = []  # (diary's length when the answer was there, what must hold from then on)
        server.env.update({"LD_PRELOAD": str(recorder), "POWERLOG_DIARY": str(self.diary), "POWERLOG_FOLDER": str(server.data.resolve())})
        server.start()
        self.use(server)
        server.kill()
        self.entries = read_diary(self.diary)

    def tell(self, *fact):
        self.told.append((self.diary.stat().st_size, fact))

    def use(self, server):
        def claim(number):
            for n in range(CLAIMS):
                owner = "power-%d-%d" % (number, n)
                track = server.track(owner)
                got = track.claim()
                self.tell("claim", owner, got["sandbox_id"])
                if n % 5 == 0:
                    assert track.mark(got["sandbox_id"]).status == 200
                    self.tell("mark", owner, got["sandbox_id"])
                track.close()

        def lend():
            pool, ops = Pool(server), Ops(server)
            free = [a["awsAccountId"] for a in pool.admin.everything("/accounts", 100)][:4]
            for n in range(LEASES):
                lease = pool.pending(pool.person())
                self.tell("asked", lease["leaseId"])
                pool.manager.data("POST", "/leases/%s/review" % lease["leaseId"], {"action": "Approve" if n % 2 else "Deny"})
                self.tell("approved" if n % 2 else "denied", lease["leaseId"])
            for account in free:
                reply = ops.act("holds", {"account": account, "reason": "an audit", "by": leases.ADMIN})
                if reply.status == 201:  # else it has a lease by now
                    self.tell("hold", account, reply.json["id"])

        failures = []

        def caught(work, *args):
            try:
                work(*args)
            except BaseException as e:  # handed to the test below
                failures.append(e)

        callers = [threading.Thread(target=caught, args=(claim, n)) for n in range(CLAIMERS)] + [threading.Thread(target=caught, args=(lend,))]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert not failures, failures


@pytest.fixture(scope="module")
def recorded(make_for_module, recorder):
    return Recorded(make_for_module, recorder)


def check(server, facts):
    admin, pool, ops = server.admin(), Pool(server), Ops(server)
    records = {s["sandbox_id"]: s for s in admin.everything()}
    holder, marked = {}, {fact[2] for fact in facts if fact[0] == "mark"}
    for kind, *fact in facts:
        if kind == "claim":
            owner, sandbox = fact
            assert holder.setdefault(sandbox, owner) == owner, "two holders"
            assert records[sandbox]["allocated_to_track"] == owner, (kind, fact, records[sandbox])
            assert sandbox not in marked or records[sandbox]["status"] == "pending_deletion", (kind, fact, records[sandbox])
        elif kind in ("asked", "approved", "denied"):
            status = pool.admin.data("GET", "/leases/" + fact[0])["status"]
            right = {"asked": ..., "approved": ("Provisioning", "Active"), "denied": ("ApprovalDenied",)}[kind]
            assert right is ... or status in right, (kind, fact, status)
        elif kind == "hold":
            account, hold = fact
            assert hold in [h["id"] for h in ops.read("holds?account=" + account)["holds"]], (kind, fact)


def test_after_a_power_failure_everything_that_was_answered_is_there(recorded, make):
    rng = random.Random(SEED)
    first, last = recorded.told[0][0], recorded.entries[-1].end
    disk = Disk(recorded.base, recorded.entries, lambda name: name.startswith("leasehold.db"))
    torn = 0
    for number, cut in enumerate(sorted(rng.randrange(first, last) for _ in range(CUTS))):
        disk.play_to(cut)
        torn += disk.unflushed() > 0
        data = make.folder / ("cut-%d" % number)
        data.mkdir(mode=0o700)
        disk.write_remains(data, random.Random(SEED * 1000003 + number))
        server = make.server(data=data, args=["--dev"], **recorded.settings)
        try:
            check(server, [fact for at, fact in recorded.told if at <= cut])
        except AssertionError as e:
            raise AssertionError("cut %d at byte %d of the diary, seed %d: %s" % (number, cut, SEED, e)) from e
        server.kill()
        server.check_store()
        shutil.rmtree(data)
    assert torn, "no cut hit anything that was not flushed"
