# SPDX-License-Identifier: Apache-2.0
"""A few of the calls of an instance, disturbed: test_every_call_of_an_instance.py has all of them, in make check."""

import pytest

from lib.every_call import one
from lib.instance_flow import InstanceFlow
from lib.mariadb import MariaDb

FEW = [("efs", "CreateAccessPoint", "cut_after"), ("elbv2", "CreateRule", "cut_after"), ("secretsmanager", "CreateSecret", "cut_after"),
       ("ecs", "CreateService", "hold_after"), ("ecs", "RunTask", "cut_after"), ("cognito-idp", "DeleteUserPool", "hold_before"),
       ("sql", "statement", "cut_before")]


@pytest.fixture(scope="module")
def flow(make_for_module, own_front, tmp_path_factory):
    database = MariaDb(tmp_path_factory.mktemp("mariadb"))
    made = InstanceFlow(make_for_module, own_front, database)
    made.begin()
    made.tenants = made.accounts()
    yield made
    database.close()


@pytest.mark.parametrize("service, operation, kind", FEW)
def test_a_call_is_lost_or_the_server_is_killed_at_it(flow, service, operation, kind):
    assert one(flow, next(flow.tenants), (service, operation, 0, False), kind) == 1, flow.explain()
