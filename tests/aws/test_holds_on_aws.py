# SPDX-License-Identifier: Apache-2.0
"""The suite of holds (tests/api/test_holds.py) once more, on AWS as the front has it: the same tests, another cloud. Time has no scale there: the date jumps."""

import pytest

from lib.clouds import AwsPool
from lib.suites import suite

pytest.register_assert_rewrite("api.test_holds")
Test_holds = suite("test_holds", {})

from api.test_holds import SETTINGS, Operator  # noqa: E402

PEOPLE = 60


@pytest.fixture(scope="module")
def operator(make_for_module, own_front, jumpclock):
    return Operator(AwsPool.start(make_for_module, own_front, jumpclock, count=12, people=PEOPLE, **SETTINGS))


@pytest.fixture
def start(make, front, jumpclock):
    return lambda count=4, **env: Operator(AwsPool.start(make, front, jumpclock, count=count, **SETTINGS, **env))
