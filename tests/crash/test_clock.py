# SPDX-License-Identifier: Apache-2.0
"""The machine's date jumps under a running server."""

import os
import struct
import subprocess
import time
from pathlib import Path

import pytest

from lib.ops import Stream
from lib.wait import until

SHIM = Path(__file__).with_name("jumpclock.c")
HOUR, DAY = 3600, 86400


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jumpclock")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(folder / "jumpclock.so"), str(SHIM)], check=True)
    return folder / "jumpclock.so"


class World:
    def __init__(self, make, shim, file, jump=0, **env):
        self.file = file
        self.jump(jump)
        checks = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
        self.server = make.server(
            None if "csp" in env else 5, LD_PRELOAD=str(shim), JUMPCLOCK_FILE=str(file), ASAN_OPTIONS=checks, LEASEHOLD_ALARM_INTERVAL_SEC="1", **env
        )

    @property
    def admin(self):
        return self.server.admin()

    def jump(self, seconds):
        with open(self.file, "r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))

    def alarms(self):
        return [a["name"].split("#")[0] for a in self.admin.get("/v1/ops/alarms").json["alarms"] if a["state"] == "raised"]

    def wait_alarm(self, is_there):
        until(lambda: ("clock-differs" in self.alarms()) == is_there, "the alarm is %s" % ("raised" if is_there else "cleared"), 30)

    def clock(self):
        return self.admin.get("/v1/ops/clock").json

    def next_run_in(self, job):
        return self.admin.job(job)["next_run_at"] - self.clock()["server_at"]


@pytest.fixture
def world(make, shim, tmp_path):
    return World(make, shim, tmp_path / "jump")


def test_a_day_forward_for_a_while_puts_off_no_job(world):
    world.jump(DAY)
    world.wait_alarm(True)
    world.admin.run("sync")
    world.jump(0)
    world.wait_alarm(False)
    assert 0 < world.next_run_in("sync") <= HOUR * 1.2
    assert world.clock()["differs_sec"] == 0


def test_the_vendors_clock_settles_it(make, shim, tmp_path):
    world = World(make, shim, tmp_path / "jump", jump=-DAY, csp=make.csp(3), wait=False)  # a start with a wrong date believes it
    until(lambda: world.admin.job("sync")["last_finished_at"], "the sync at the start is over")
    world.jump(0)
    until(lambda: abs(world.clock()["differs_sec"] - DAY) <= 30, "the date is not followed")
    world.admin.run("sync")
    assert world.clock()["differs_sec"] == 0
    world.jump(DAY)
    until(lambda: world.clock()["differs_sec"], "nor is this one")
    world.admin.run("sync")
    assert abs(world.clock()["differs_sec"] - DAY) <= 30, "of which the vendor knows nothing"


def test_a_live_stream_skips_nothing_after_a_step_that_is_taken_back(world):
    stream = Stream(world.server, "?type=SandboxAllocated").begin()
    world.jump(DAY)
    until(lambda: world.clock()["differs_sec"], "it was noticed")
    looked = time.monotonic() + 2.5  # a stream looks once a second, with whatever time it has then
    until(lambda: time.monotonic() > looked, "the stream has looked")
    world.jump(0)
    assert world.server.track("student-1").allocate().status == 201
    assert stream.event()[0] == "SandboxAllocated"
    stream.close()


def test_ten_days_forward_end_nothing_until_a_person_says_that_it_is_so(world):
    claimed = world.server.track("student-1").allocate().json["sandbox_id"]
    world.jump(10 * DAY)
    world.wait_alarm(True)
    assert abs(world.clock()["differs_sec"] - 10 * DAY) <= 30
    assert world.admin.run("expire")["expired"] == 0
    world.server.restart()  # whoever restarts it has not said anything about the date
    assert world.admin.run("expire")["expired"] == 0 and world.admin.record(claimed)["status"] == "allocated"
    world.wait_alarm(True)
    assert world.admin.post("/v1/ops/clock/accept").json["differs_sec"] == 0
    assert world.admin.run("expire")["expired"] == 1
    world.wait_alarm(False)
    told = world.admin.get("/v1/ops/events?type=ClockAccepted").json["events"]
    assert len(told) == 1 and abs(told[0]["detail"]["differsSec"] - 10 * DAY) <= 30, told  # two clocks are read one after the other
