# SPDX-License-Identifier: Apache-2.0
"""A local driver with sites that are made once for all tests of a module."""

import itertools

import pytest

from lib.local_driver import Drivers

numbers = itertools.count(1)


@pytest.fixture(scope="session")
def driver():
    """One for all who leave it as it was."""
    drivers = Drivers()
    yield drivers.new()
    drivers.end()


@pytest.fixture
def new_driver():
    drivers = Drivers()
    yield drivers.new
    drivers.end()


@pytest.fixture(scope="session")
def site(driver):
    """A site with two tasks."""
    return driver.provision("tenant-shared")


@pytest.fixture(scope="session")
def neighbour(driver):
    return driver.provision("tenant-neighbour")


@pytest.fixture
def tenant():
    """An id that no other test uses."""
    return "tenant-t%d" % next(numbers)
