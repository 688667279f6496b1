# SPDX-License-Identifier: Apache-2.0
"""What happens to the store's files from outside: replaced, deleted, missing, emptied, damaged, restored. Nothing is lent twice."""

import os
import shutil
import sqlite3
import struct

import pytest

from lib.server import run
from lib.wait import until

from test_disk import FullDisk, claim_again, claims, refused

DB = "leasehold.db"


def files_of(server):
    return sorted(p.name for p in server.data.iterdir())


def command(server, *args):
    """A command that talks to the server."""
    env = {"LEASEHOLD_ADDRESS": server.url, "BROKER_ADMIN_TOKEN": server.env["BROKER_ADMIN_TOKEN"]}
    return run(*args, env=env)


def free_ones(server):
    return [s["sandbox_id"] for s in server.admin().everything("available")]


# Replaced or deleted under a running server.


def replace_with_copy(data):
    shutil.copy(data / DB, data / "copy.db")
    os.replace(data / "copy.db", data / DB)


ACCIDENTS = {
    "replaced": replace_with_copy,
    "deleted": lambda data: (data / DB).unlink(),
    "all deleted": lambda data: [(data / (DB + end)).unlink() for end in ("", "-wal", "-shm")],
    "log deleted": lambda data: (data / (DB + "-wal")).unlink(),
    "index deleted": lambda data: (data / (DB + "-shm")).unlink(),
    "folder moved": lambda data: data.rename(data.with_name("elsewhere")),
}


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_claims_are_not_acknowledged_when_the_store_was_taken_away(make, new_owner, accident):
    server = make.server(20)
    claims(server, new_owner, 3)
    ACCIDENTS[accident](server.data)
    for _ in range(5):
        refused(server.track(new_owner()).allocate())
    reply = server.client().get("/readyz")
    assert (reply.status, reply.json["status"]) == (503, "not_ready")
    assert DB in reply.json["checks"]["store"] and "under the running server" in reply.json["checks"]["store"]
    assert server.client().get("/healthz").status == 200


def test_an_idle_server_notices_by_itself_that_its_store_is_gone(make):
    server = make.server(3)
    (server.data / DB).unlink()
    until(lambda: server.client().get("/readyz").status == 503, "not ready", 20, 0.2)
    until(lambda: "commits fail" in server.output(), "the log says so", 5)


def test_a_store_that_is_put_back_is_used_again(make, new_owner):
    server = make.server(10)
    told = claims(server, new_owner, 2)
    os.replace(server.data / DB, server.data / "aside")
    refused(server.track(new_owner()).allocate())
    os.replace(server.data / "aside", server.data / DB)
    owner = new_owner()
    told[owner] = claim_again(server, owner)
    until(lambda: server.client().get("/readyz").status == 200, "ready again")
    server.kill()
    server.start()
    for owner, got in told.items():
        assert server.track(owner).claim() == got


def test_without_the_lock_file_there_is_still_one_server_to_a_store(make):
    server = make.server(3)
    (server.data / "lock").unlink()
    other = make.server(start=False, data=server.data)
    assert "another leasehold uses" in other.refusal()
    assert server.client().get("/readyz").status == 200
    for what in (["compact"], ["restore", "--from", str(server.data / DB)]):
        got = run("store", *what, "--data", str(server.data))
        assert got.returncode != 0 and "another leasehold uses" in got.stderr


# A store that is not there.


def test_a_missing_store_is_refused_and_nothing_is_made(make, tmp_path):
    server = make.server(start=False, data=tmp_path / "volume")
    server.init = False
    said = server.refusal()
    assert "there is no store at %s/%s" % (server.data, DB) in said and "leasehold init" in said
    assert files_of(server) == []
    got = run("store", "check", "--data", str(server.data))
    assert got.returncode != 0 and "there is no store" in got.stderr
    got = run("init", "--data", str(server.data))
    assert (got.returncode, got.stdout) == (0, "ok\n"), got.stderr
    assert (server.data / DB).stat().st_mode & 0o777 == 0o600
    server.check_store()
    server.start()
    assert server.client().get("/readyz").status == 200
    assert server.stop() == 0
    assert "exists already" in run("init", "--data", str(server.data)).stderr


@pytest.mark.parametrize("init", [False, True])
def test_a_store_that_was_lost_is_not_taken_for_a_new_one(make, owner, init):
    server = make.server(10)
    server.track(owner).claim()
    server.kill()
    server.init = init

    def is_refused(what):
        assert what in server.refusal()
        got = run("store", "check", "--data", str(server.data))
        assert got.returncode != 0 and what in got.stderr
        if what == "is missing":
            assert "missing" in run("init", "--data", str(server.data)).stderr

    os.replace(server.data / DB, server.data / "aside")
    is_refused("is missing")  # its log is there
    (server.data / (DB + "-wal")).unlink()
    is_refused("is missing")
    (server.data / (DB + "-shm")).unlink()
    is_refused("is missing")  # a server has used the folder
    (server.data / DB).touch()
    is_refused("is empty")
    (server.data / DB).unlink()
    sqlite3.connect(server.data / DB).execute("PRAGMA user_version = 1").connection.commit()
    is_refused("is not a Leasehold store")


def test_a_folder_that_everybody_may_write_is_refused(make):
    server = make.server(start=False)
    server.data.chmod(0o777)
    said = server.refusal()
    assert "everybody may write" in said and "chmod 700" in said
    server.data.chmod(0o755)
    server.start()


# A damaged log.


def frames_of(wal):
    """[(offset, ends a commit)] of the frames of the present generation."""
    data = wal.read_bytes()
    size = struct.unpack(">I", data[8:12])[0]
    frames = []
    for at in range(32, len(data) - 24 - size + 1, 24 + size):
        if data[at + 8 : at + 16] != data[16:24]:
            break
        frames.append((at, data[at + 4 : at + 8] != bytes(4)))
    return frames


def flip_bit(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 4]))


def killed_after_claims(make, new_owner, count=40):
    """A server that was killed, what it had told, and its log."""
    server = make.server(count + 10)
    assert server.stop() == 0  # a fresh log
    server.start()
    told = claims(server, new_owner, count)
    server.kill()
    return server, told, server.data / (DB + "-wal")


@pytest.mark.parametrize("place", ["page", "checksum", "salt", "log head"])
@pytest.mark.parametrize("index", ["index", "no index"])
def test_a_flipped_bit_in_the_log_does_not_lose_claims_without_a_word(make, new_owner, place, index):
    server, told, wal = killed_after_claims(make, new_owner)
    frames = frames_of(wal)
    middle = frames[len(frames) // 2][0]
    flip_bit(wal, {"page": middle + 24 + 100, "checksum": middle + 17, "salt": middle + 9, "log head": 26}[place])
    if index == "no index":
        (server.data / (DB + "-shm")).unlink()
    said = server.refusal()
    assert "leasehold.db-wal is damaged at frame" in said and "--accept-loss" in said, said
    got = run("store", "check", "--data", str(server.data))
    assert got.returncode != 0 and "is damaged at frame" in got.stderr
    got = run("store", "backup", "--data", str(server.data), "--to", str(server.data / "backup.db"))
    assert got.returncode != 0 and "is damaged at frame" in got.stderr
    server.args.append("--accept-loss")
    try:
        server.start()
    except AssertionError:
        assert "is not a Leasehold store or is damaged" in "".join(server.errors)  # pages of two times: a backup is needed
        return
    server.says("is lost; claims are paused")
    assert [p for p in server.data.iterdir() if p.name.startswith(DB + "-wal.lost-")]
    reply = server.track(new_owner()).allocate()
    assert (reply.status, reply.code) == (503, "CLAIMS_PAUSED")


def test_a_flipped_bit_in_the_last_commit_is_noticed_too(make, new_owner):
    server, told, wal = killed_after_claims(make, new_owner)
    flip_bit(wal, frames_of(wal)[-1][0] + 24 + 100)
    assert "is damaged at frame" in server.refusal()


def test_what_was_being_written_at_the_end_is_no_damage(make, new_owner):
    server, told, wal = killed_after_claims(make, new_owner)
    frames = frames_of(wal)
    data = wal.read_bytes()
    size = frames[1][0] - frames[0][0]
    wal.write_bytes(data[: frames[-1][0] + size] + data[frames[0][0] : frames[0][0] + size + 700])
    server.start()
    for owner, got in told.items():
        assert server.track(owner).claim() == got


# A backup that is restored.


def test_a_restored_backup_brings_no_silent_nodes(make, tmp_path):
    """The backup has the process that ran then; nobody is to be told that it is silent."""
    server = make.server(count=1)
    backup = tmp_path / "backup.db"

    def nodes(path):
        db = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
        try:
            return {row[0] for row in db.execute("SELECT id FROM node")}
        finally:
            db.close()

    before = until(lambda: nodes(server.data / DB), "its first beat")
    assert run("store", "backup", "--data", str(server.data), "--to", str(backup)).returncode == 0
    assert nodes(backup) == before
    server.kill()
    assert run("store", "restore", "--from", str(backup), "--data", str(server.data)).returncode == 0
    server.start()
    now = until(lambda: nodes(server.data / DB) - before, "the beat of the new one")
    assert len(now) == 1
    until(lambda: nodes(server.data / DB) == now, "the old one is forgotten")


def test_after_a_restore_nothing_is_lent_until_a_person_has_looked(make, new_owner, tmp_path):
    vendor = make.csp(30)
    server = make.server(csp=vendor)
    before = claims(server, new_owner, 3)
    backup = tmp_path / "backup.db"
    assert run("store", "backup", "--data", str(server.data), "--to", str(backup)).returncode == 0
    since = claims(server, new_owner, 10)
    got = run("store", "restore", "--from", str(backup), "--data", str(server.data))
    assert got.returncode != 0 and "another leasehold uses" in got.stderr
    assert server.stop() == 0
    got = run("store", "restore", "--from", str(backup), "--data", str(server.data))
    assert got.returncode == 0 and "claims are paused" in got.stdout, got.stderr
    assert [n for n in files_of(server) if n.startswith(DB + ".before-")]
    server.check_store()
    server.start().settle()

    owner = new_owner()
    reply = server.track(owner).allocate()
    assert (reply.status, reply.code) == (503, "CLAIMS_PAUSED") and int(reply.header("retry-after")) >= 1
    assert server.track(owner).allocate(wait=1).code == "CLAIMS_PAUSED"
    for owner, got in before.items():
        assert server.track(owner).claim() == got  # who holds one gets it
    reply = server.client().get("/readyz")
    assert (reply.status, reply.json["checks"]) == (200, {"store": "ok", "claims": "paused"})
    assert "paused;" in command(server, "status").stdout
    assert "claims are paused" in command(server, "doctor").stdout
    alarm = until(
        lambda: [a for a in server.admin().get("/v1/ops/alarms").json["alarms"] if a["rule"] == "claims-paused"], "the alarm", 60, 0.2
    )[0]
    assert alarm["severity"] == "page" and "a backup was restored" in alarm["evidence"]
    server.restart()
    assert server.track(new_owner()).allocate().code == "CLAIMS_PAUSED"

    in_use = tmp_path / "in-use.txt"
    in_use.write_text("".join(got["sandbox_id"] + "\n" for got in since.values()) + "\nunknown-one\n")
    got = command(server, "sandbox", "quarantine", "--from", str(in_use), "--reason", "in use")
    assert (got.returncode, got.stdout) == (7, "10 quarantined, 1 not\n") and "unknown-one" in got.stderr
    got = command(server, "claims", "resume")
    assert got.returncode == 0, got.stderr
    lent = claims(server, new_owner, 17)
    lent = {g["sandbox_id"] for g in lent.values()}
    assert lent.isdisjoint(g["sandbox_id"] for g in [*before.values(), *since.values()])
    assert server.track(new_owner()).allocate().status == 409
    types = [e["detail-type"] for e in server.admin().get("/v1/ops/events?subject=pool/sandboxes").json["events"]]
    assert types == ["ClaimsResumed"]


def test_all_that_are_free_can_be_set_aside_at_once(make):
    server = make.server(130)
    got = command(server, "sandbox", "quarantine", "--all")
    assert (got.returncode, got.stdout) == (0, "130 quarantined, 0 not\n")
    assert server.admin().stats()["available"] == 0


def test_claims_are_paused_and_resumed_by_hand(make, new_owner):
    server = make.server(3)
    got = command(server, "claims", "pause", "--reason", "an audit")
    assert got.returncode == 0 and "an audit" in got.stdout
    assert server.track(new_owner()).allocate().code == "CLAIMS_PAUSED"
    assert "an audit" in command(server, "claims", "show").stdout
    assert command(server, "claims", "resume").returncode == 0
    assert server.track(new_owner()).allocate().status == 201


@pytest.mark.parametrize("backup", ["missing", "garbage", "damaged"])
def test_a_bad_backup_is_refused_and_the_store_stays(make, owner, tmp_path, backup):
    server = make.server(10)
    got = server.track(owner).claim()
    path = tmp_path / "backup.db"
    if backup == "garbage":
        path.write_bytes(os.urandom(8192))
    elif backup == "damaged":
        assert run("store", "backup", "--data", str(server.data), "--to", str(path)).returncode == 0
        data = bytearray(path.read_bytes())
        data[8192:12288] = bytes(4096)
        path.write_bytes(data)
    assert server.stop() == 0
    assert run("store", "restore", "--from", str(path), "--data", str(server.data)).returncode != 0
    server.start()
    assert server.track(owner).claim() == got


# Space.


def test_a_compacted_store_is_smaller_and_has_everything(make, new_owner):
    server = make.server(3000)
    told = claims(server, new_owner, 5)
    server.admin().run("bulk-delete", "?status=available")
    assert server.stop() == 0
    before = (server.data / DB).stat().st_size
    got = run("store", "compact", "--data", str(server.data))
    assert got.returncode == 0, got.stderr
    assert (server.data / DB).stat().st_size < before and str(before) in got.stdout
    server.check_store()
    server.start()
    for owner, got in told.items():
        assert server.track(owner).claim() == got


def test_a_full_disk_leaves_a_trace(make, new_owner):
    server = make.server(10)
    with FullDisk(server):
        refused(server.track(new_owner()).allocate())
    claim_again(server, new_owner())

    def recovered():
        return server.admin().get("/v1/ops/events?type=StoreRecovered").json["events"]

    event = until(recovered, "the event", 10, 0.1)[0]
    assert event["detail"]["failedCommits"] >= 1 and "cannot" in event["detail"]["error"]
    until(lambda: "commits succeed again" in server.output(), "the log says so", 5)
    server.says("commits fail: ")
    assert len(recovered()) == 1
