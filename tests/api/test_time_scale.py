# SPDX-License-Identifier: Apache-2.0
"""Scaled time: the simulated world goes faster, people's sessions and the machine's own waits do not."""

import time

import pytest

from lib import leases, server as process
from lib.leases import Pool
from lib.wait import until

HOUR_PER_SECOND = 3600


@pytest.fixture
def fast(make):
    return make.server(args=["--dev"], LEASEHOLD_TIME_SCALE=HOUR_PER_SECOND, **leases.env(make.folder))


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
    back = seen(lambda: pool.admin.data("GET", "/accounts/" + account), "Available", "the account is clean", 60)
    assert back["awsAccountId"] == account
    assert pool.manager.call("GET", "/leases").status == 200, "an hour's session outlives many hours of the world"


def test_nothing_is_given_up_or_taken_from_a_healthy_owner(fast):
    pool = Pool(fast)
    lease = pool.active(pool.person(), leaseDurationInHours=168)
    account = lease["awsAccountId"]
    pool.manager.data("POST", "/leases/%s/terminate" % lease["leaseId"])
    seen(lambda: pool.admin.data("GET", "/accounts/" + account), "Available", "the account is clean", 60)
    operator = fast.admin()
    assert operator.request("GET", "/v1/ops/dead-letters").json["dead_letters"] == []
    assert operator.request("GET", "/v1/ops/sagas?state=parked").json["sagas"] == []


def test_a_restart_does_not_set_the_world_back(fast):
    pool = Pool(fast)
    person = pool.person()
    first = pool.pending(person)["meta"]["createdTime"]
    later = until(lambda: (lambda l: l["meta"]["createdTime"] if l["meta"]["createdTime"][:10] > first[:10] else None)(pool.pending(pool.person())),
                  "a day has passed", 60, 0.5)
    assert fast.stop() == 0
    fast.start()
    pool = Pool(fast)
    assert pool.pending(pool.person())["meta"]["createdTime"] > later


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
