# SPDX-License-Identifier: Apache-2.0
"""The suite of the guard (tests/api/test_guard.py) once more, on AWS as the front has it: the same tests, another cloud, another table, a queue of SQS. Time has no
scale there: where a hold has to end by itself, the date jumps. A burst of moves is held at ten times our usual pace at Organizations, which is one move a second:
at that the 30 seconds are enough for about 30 accounts, and no more."""

import pytest

from lib.clouds import AwsGuard
from lib.guard import HOURS
from lib.suites import suite

pytest.register_assert_rewrite("api.test_guard")
SETTINGS = "settings of the simulated cloud; test_ground_server.py has those of AWS"
Test_guard = suite("test_guard", {
    "test_h7_a_missing_setting_is_refused_at_the_start_by_name": SETTINGS,
    "test_r8_a_missing_setting_of_the_release_is_refused_at_the_start_by_name": SETTINGS,
    "test_a_setting_that_makes_no_sense_is_refused": SETTINGS,
    "test_a_hold_too_short_for_two_bills_is_refused": SETTINGS,
})

from api.test_guard import guarded, silent  # noqa: E402, F401


@pytest.fixture
def start(make, front, jumpclock):
    return lambda scale=None, **more: AwsGuard.start(make, front, shim=jumpclock, **{
        "QUARANTINE_DURATION_HOURS": HOURS, "LEASEHOLD_ORG_PACE": "10", **more})
