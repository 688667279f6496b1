# SPDX-License-Identifier: Apache-2.0
"""D28: a backup, a thousand claims, a restore: what it makes unknown is listed, and is not lent again."""

import re
import subprocess
from pathlib import Path

from lib.server import binary, clean_env, run

ROOT = Path(__file__).resolve().parents[2]
STOCK, CLAIMS = 1200, 1000


def test_D28_after_a_restore_what_was_lent_since_is_found_in_the_old_store_and_never_lent_again(make, tmp_path):
    csp = make.csp(STOCK)
    server = make.server(csp=csp)
    kept = server.track("before").claim()["sandbox_id"]
    backup, data = tmp_path / "backup.db", server.data
    got = run("store", "backup", "--data", str(data), "--to", str(backup))
    assert got.returncode == 0, got.stderr
    track = [server.track("since-%d" % n) for n in range(CLAIMS)]
    lent = set()
    for each in track:
        lent.add(each.claim()["sandbox_id"])
        each.close()
    assert len(lent) == CLAIMS and server.stop() == 0
    got = run("store", "restore", "--from", str(backup), "--data", str(data))
    assert got.returncode == 0 and "claims are paused" in got.stdout, got.stderr
    assert run("store", "check", "--data", str(data)).returncode == 0

    # The unknown ones: in use in the old store, and free in this one, or not known. As docs/production.md says.
    (old,) = data.glob("leasehold.db.before-*")
    (query,) = re.findall(r'^    \$ sqlite3 -readonly \S+ "(ATTACH .*)" > ', (ROOT / "docs/production.md").read_text(), re.M)
    unknown = tmp_path / "unknown"
    unknown.write_text(subprocess.run(["sqlite3", "-readonly", str(old), query], check=True, capture_output=True, text=True, cwd=data).stdout)
    assert set(unknown.read_text().split()) == lent

    server.start().settle()
    admin, late = server.admin(), server.track("late")
    assert late.allocate().status == 503 and server.track("before").claim()["sandbox_id"] == kept

    def cli(*words):
        env = clean_env({"LEASEHOLD_ADDRESS": server.url, "BROKER_ADMIN_TOKEN": server.env["BROKER_ADMIN_TOKEN"]})
        done = subprocess.run([binary(), *words], env=env, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, (words, done.stdout[-500:], done.stderr[-500:])

    cli("sandbox", "quarantine", "--from", str(unknown), "--reason", "in use at the restore")
    cli("claims", "resume", "--reason", "looked at")
    stats = admin.stats()
    assert stats["available"] == STOCK - CLAIMS - 1, stats
    for number in range(STOCK - CLAIMS - 1):
        assert server.track("after-%d" % number).claim()["sandbox_id"] not in lent
    assert late.allocate().status == 503 or late.allocate().status == 409
