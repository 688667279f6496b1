# SPDX-License-Identifier: Apache-2.0
"""Scaled time: the simulated world goes faster, people's sessions and the machine's own waits do not."""

import re
import time

import pytest

from lib import jwt, leases
from lib import server as process
from lib.leases import Pool
from lib.wait import until

HOUR_PER_SECOND = 3600


@pytest.fixture
def fast(make):
    """Accounts rest as short as they may when bills are to be apart: 40 hours."""
    return make.server(args=["--dev"], LEASEHOLD_TIME_SCALE=HOUR_PER_SECOND, QUARANTINE_DURATION_HOURS=40, **leases.env(make.folder))


def seen(call, wanted, what, timeout):
    """What call() answers once its status is the wanted one."""
    return until(lambda: (lambda got: got if got["status"] == wanted else None)(call()), what, timeout, 0.05)


def test_a_day_passes_in_half_a_minute_and_the_account_comes_back_clean(fast):
    pool = Pool(fast)
    person = pool.person()
    lease = pool.active(person, leaseDurationInHours=24)
    account = lease["awsAccountId"]
    began = time.monotonic()
    ended = seen(lambda: pool.show(lease), "Expired", "the lease expires by itself", 60)
    assert time.monotonic() - began > 15, "24 hours are 24 seconds, and not less"
    assert ended["endDate"] >= lease["expirationDate"], ended
    resting = seen(lambda: pool.admin.data("GET", "/accounts/" + account), "Quarantine", "the account is clean, and rests", 60)
    assert resting["phase"] == "Cooldown" and resting["openHolds"] == 1, resting
    back = seen(lambda: pool.admin.data("GET", "/accounts/" + account), "Available", "the account has rested", 90)
    assert back["lastRestedTime"] >= resting["restingUntil"], (resting, back)
    assert pool.manager.call("GET", "/leases").status == 200, "an hour's session outlives many hours of the world"


def test_nothing_is_given_up_or_taken_from_a_healthy_owner(fast):
    pool = Pool(fast)
    lease = pool.active(pool.person(), leaseDurationInHours=168)
    account = lease["awsAccountId"]
    pool.manager.data("POST", "/leases/%s/terminate" % lease["leaseId"])
    until(lambda: pool.admin.data("GET", "/accounts/" + account)["phase"] == "Cooldown", "the account is clean", 60, 0.05)
    operator = fast.admin()
    assert operator.request("GET", "/v1/ops/dead-letters").json["dead_letters"] == []
    assert operator.request("GET", "/v1/ops/sagas?state=parked").json["sagas"] == []


def test_a_restart_does_not_set_the_world_back(fast):
    pool = Pool(fast)
    person = pool.person()
    first = pool.pending(person)["meta"]["createdTime"]
    later = until(lambda: (lambda at: at if at[:10] > first[:10] else None)(pool.pending(pool.person())["meta"]["createdTime"]),
                  "the next day has come", 60, 0.5)
    assert fast.stop() == 0
    fast.start()
    pool = Pool(fast)
    assert pool.pending(pool.person())["meta"]["createdTime"] > later


def test_the_command_line_counts_by_the_time_of_the_world(fast):
    pool = Pool(fast)
    until(lambda: pool.admin.call("GET", "/leases").header("Leasehold-Time")[:10] > time.strftime("%Y-%m-%d", time.gmtime(time.time() + 86400)),
          "the world is more than a day ahead", 90, 0.2)
    lease = pool.active(pool.person(), leaseDurationInHours=168)
    shown = process.run("lease", "show", lease["uuid"], env={"LEASEHOLD_ADDRESS": fast.url, "LEASEHOLD_TOKEN": jwt.token(leases.ADMIN, "Admin")})
    assert re.search(r"(?m)^Ends .*\(in 6 d", shown.stdout), shown
    assert re.search(r"(?m)^Started .* ago\)$", shown.stdout), shown


def test_where_time_is_real_no_other_time_is_told(make):
    server = make.server(args=["--dev"], **leases.env(make.folder))
    assert Pool(server).admin.call("GET", "/leases").header("Leasehold-Time") is None


@pytest.mark.parametrize("scale,args,says", [
    ("3600", [], "LEASEHOLD_TIME_SCALE: scales the time of a simulated world, so it needs --dev"),
    ("0", ["--dev"], "LEASEHOLD_TIME_SCALE"),
    ("100001", ["--dev"], "LEASEHOLD_TIME_SCALE"),
])
def test_it_is_refused_where_time_is_real_or_the_scale_is_none(tmp_path, scale, args, says):
    got = process.run("serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"), *args,
                      env={**process.QUIET, "LEASEHOLD_TIME_SCALE": scale})
    assert got.returncode == 2 and says in got.stderr, got
    assert not (tmp_path / "data").exists()
