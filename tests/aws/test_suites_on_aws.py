# SPDX-License-Identifier: Apache-2.0
"""The suites of leases and accounts (tests/api) once more, on AWS as the front has it: the same tests, another cloud. One server and one organisation serve all of
them. What a suite has that is left out here is named with its reason."""

import pytest

from lib.suites import suite

SUITES = {
    "test_lease_api": {
        "test_the_rate_limit_is_per_person_and_an_envelope": "starts a simulated cloud with settings of its own",
        "test_who_is_approved_without_a_free_account_waits_in_line": "starts a simulated cloud, and uses all of its accounts",
    },
    "test_approval": {},
    "test_lease_roles": {
        "test_in_maintenance_only_admins_come_in_and_the_configuration_stays_readable": "starts a simulated cloud with settings of its own",
    },
    "test_accounts_api": {
        "test_which_accounts_it_is_run_from_can_be_set": "starts a simulated cloud with settings of its own",
        "test_an_operator_is_told_of_a_quarantine_and_of_a_low_pool": "starts a simulated cloud with settings of its own",
        "test_an_organisation_that_throttles_is_told_as_such": "turns a switch of the simulated cloud; test_contract_ground.py has it on AWS",
    },
    "test_account_moved": {},
}
ACCOUNTS, SPARE, PEOPLE = 30, 6, 200
pytest.register_assert_rewrite(*("api." + name for name in SUITES))

from api.test_approval import ops, rules  # noqa: E402, F401
from lib.clouds import AwsPool  # noqa: E402


@pytest.fixture(scope="module")
def pool(make_for_module, own_front, jumpclock):
    return AwsPool.start(make_for_module, own_front, jumpclock, count=ACCOUNTS, spare=SPARE, people=PEOPLE)


for _name, _left_out in SUITES.items():
    globals()["Test_" + _name[len("test_"):]] = suite(_name, _left_out)
