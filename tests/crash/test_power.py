# SPDX-License-Identifier: Apache-2.0
"""Power fails at any moment: whatever of the unflushed writes is lost or torn, every claim, lease and hold that was answered is there.

The server runs once, and a diary is kept of all it does to its files. Each cut is a moment of that diary: the files are made as a
failure could have left them then, and what is in them is compared with what callers had been told by then. Most stores are read by one
process for all of them (readstore.c), which opens each as a server does; every SERVER_EVERY-th is given to a server, and asked over HTTP.
LEASEHOLD_POWER_CUTS and LEASEHOLD_POWER_SEED make longer runs.
"""

import os
import random
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from lib import leases
from lib.leases import Pool
from lib.ops import Ops
from lib.power import Disk, read_diary
from lib.server import binary

CUTS = int(os.environ.get("LEASEHOLD_POWER_CUTS", "240"))
SEED = int(os.environ.get("LEASEHOLD_POWER_SEED", "7"))
SERVER_EVERY = 20
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
                self.tell("asked", lease["leaseId"], lease["uuid"])
                pool.manager.data("POST", "/leases/%s/review" % lease["leaseId"], {"action": "Approve" if n % 2 else "Deny"})
                self.tell("approved" if n % 2 else "denied", lease["leaseId"], lease["uuid"])
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


class ByServer:
    """What a server says that was started on the remains."""

    def __init__(self, server):
        self.pool, self.ops = Pool(server), Ops(server)
        self.sandboxes = {s["sandbox_id"]: (s["status"], s["allocated_to_track"]) for s in server.admin().everything()}

    def lease(self, lease_id, uuid):
        return self.pool.admin.data("GET", "/leases/" + lease_id)["status"]

    def has_hold(self, account, hold):
        return hold in [h["id"] for h in self.ops.read("holds?account=" + account)["holds"]]


class ByReader:
    """What is in the store, from the lines of readstore.c."""

    def __init__(self, lines):
        kinds = {"sandbox": {}, "lease": {}, "hold": {}}
        for kind, key, status, whose in lines:
            kinds[kind][key] = (status, whose)
        self.sandboxes, self.leases, self.holds = kinds["sandbox"], kinds["lease"], kinds["hold"]

    def lease(self, lease_id, uuid):
        return self.leases[uuid][0] if uuid in self.leases else None

    def has_hold(self, account, hold):
        return self.holds.get(hold, (None, None))[1] == account


class Reader:
    """One process that reads many stores."""

    def __init__(self):
        program = Path(binary()).parent / "tests/crash/readstore"
        assert program.exists(), "%s is not there: the build was made without the tests" % program
        self.process = subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self, data):
        self.process.stdin.write("%s\n" % data)
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            parts = line.rstrip("\n").split("\t")
            if parts[0] == "ok":
                return ByReader(lines)
            assert parts[0] != "failed", "the store cannot be read: %s" % parts[1]
            lines.append(parts)
        raise AssertionError("the reader has ended with %s" % self.process.wait())

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0
        self.process.stdout.close()


@pytest.fixture
def reader():
    reader = Reader()
    yield reader
    reader.close()


@pytest.fixture
def memory():
    """A folder for the remains; in memory where there is one, because nothing of it has to last."""
    with tempfile.TemporaryDirectory(prefix="leasehold-power-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        yield Path(folder)


def check(seen, facts):
    """Everything that was answered is there."""
    holder, marked = {}, {fact[2] for fact in facts if fact[0] == "mark"}
    for kind, *fact in facts:
        if kind == "claim":
            owner, sandbox = fact
            assert holder.setdefault(sandbox, owner) == owner, "two holders"
            status, track = seen.sandboxes[sandbox]
            assert track == owner, (kind, fact, status, track)
            assert sandbox not in marked or status == "pending_deletion", (kind, fact, status)
        elif kind in ("asked", "approved", "denied"):
            status = seen.lease(*fact)
            right = {"approved": ("Provisioning", "Active"), "denied": ("ApprovalDenied",)}.get(kind)
            assert status in right if right else status, (kind, fact, status)
        elif kind == "hold":
            assert seen.has_hold(*fact), (kind, fact)


def cuts(recorded, entries, count):
    """(number, moment, the disk at that moment), in the order of time."""
    rng = random.Random(SEED)
    first, last = recorded.told[0][0], recorded.entries[-1].end
    disk = Disk(recorded.base, entries, lambda name: name.startswith("leasehold.db"))
    for number, cut in enumerate(sorted(rng.randrange(first, last) for _ in range(count))):
        disk.play_to(cut)
        yield number, cut, disk


def write_remains(disk, folder, number):
    data = folder / ("cut-%d" % number)
    data.mkdir(mode=0o700)
    disk.write_remains(data, random.Random(SEED * 1000003 + number))
    return data


def check_by_server(make, data, recorded, facts):
    server = make.server(data=data, args=["--dev"], **recorded.settings)
    check(ByServer(server), facts)
    server.kill()
    server.check_store()


def test_after_a_power_failure_everything_that_was_answered_is_there(recorded, make, reader, memory):
    torn = 0
    for number, cut, disk in cuts(recorded, recorded.entries, CUTS):
        torn += disk.unflushed() > 0
        data = write_remains(disk, memory, number)
        facts = [fact for at, fact in recorded.told if at <= cut]
        try:
            if number % SERVER_EVERY == SERVER_EVERY // 2:
                check_by_server(make, data, recorded, facts)
            else:
                check(reader.read(data), facts)
        except (AssertionError, KeyError) as e:
            kept = make.folder / data.name
            shutil.copytree(data, kept)
            raise AssertionError("cut %d at byte %d of the diary, seed %d, what is left is in %s: %r" % (number, cut, SEED, kept, e)) from e
        shutil.rmtree(data)
    assert torn, "no cut hit anything that was not flushed"
    print("%d cuts, %d of them in the middle of something, %d judged by a server" % (CUTS, torn, len(range(SERVER_EVERY // 2, CUTS, SERVER_EVERY))))


def test_a_disk_that_loses_what_it_has_flushed_is_found_out(recorded, reader, memory):
    found = 0
    for number, cut, disk in cuts(recorded, [e for e in recorded.entries if e.kind != "f"], 20):
        data = write_remains(disk, memory, number)
        try:
            check(reader.read(data), [fact for at, fact in recorded.told if at <= cut])
        except (AssertionError, KeyError):
            found += 1
    assert found > 10, found
