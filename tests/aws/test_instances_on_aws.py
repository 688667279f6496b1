# SPDX-License-Identifier: Apache-2.0
"""The whole suite of instances again, with the same assertions, on AWS: the front and a real MariaDB."""

import pytest

from api.test_instances import *  # noqa: F401,F403 pylint: disable=wildcard-import,unused-wildcard-import
from lib.mariadb import MariaDb
from lib.sites import AwsSites

# Hundreds of bodies of which none gets as far as a driver.
del test_nonsense_is_refused_and_the_server_goes_on  # noqa: F821


@pytest.fixture(scope="module")
def sites(own_front, tmp_path_factory):
    database = MariaDb(tmp_path_factory.mktemp("mariadb"))
    yield AwsSites(own_front, database)
    database.close()
