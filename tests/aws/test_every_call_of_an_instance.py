# SPDX-License-Identifier: Apache-2.0
"""An instance from its request until it is removed: whatever call of it is lost, and wherever the server is killed, there was one of everything, and in the end
nothing is left."""

import pytest

from lib.every_call import KILLED, LOST, assert_all_struck, disturb_every_call
from lib.instance_flow import InstanceFlow
from lib.mariadb import MariaDb


@pytest.fixture(scope="module")
def disturbed(make_for_module, tmp_path_factory):
    database = MariaDb(tmp_path_factory.mktemp("mariadb"))
    yield disturb_every_call(make_for_module, lambda make, front: InstanceFlow(make, front, database))
    database.close()


def test_the_calls_of_an_instance(disturbed):
    called = {operation for _, operation, _, _ in disturbed[0]}
    assert {"CreateAccessPoint", "DeleteAccessPoint", "CreateSecret", "DeleteSecret", "CreateTargetGroup", "CreateRule", "ModifyRule", "DeleteRule",
            "DeleteTargetGroup", "RegisterTaskDefinition", "CreateService", "UpdateService", "DeleteService", "DeregisterTaskDefinition", "CreateUserPool",
            "CreateUserPoolClient", "CreateUserPoolDomain", "DeleteUserPoolDomain", "DeleteUserPool", "RunTask", "CreateLogGroup", "DeleteLogGroup"} <= called


@pytest.mark.parametrize("kinds", [LOST, KILLED], ids=["lost", "killed"])
def test_every_call_of_an_instance(disturbed, kinds):
    assert_all_struck(disturbed, kinds)
