# SPDX-License-Identifier: Apache-2.0
"""Fixtures: one emulator for the whole run, tables of its own for each test, nodes on them.

Without the emulator these tests fail. LEASEHOLD_SKIP_DDB=1 leaves them out, and says so at the end of the run.
"""

import os
import time

import pytest

from lib.ddb_proxy import Proxy
from lib.dynamodb import ACCESS_KEY, SECRET_KEY, Emulator, Store
from lib.wait import until

IS_SKIPPED = os.environ.get("LEASEHOLD_SKIP_DDB") == "1"


def pytest_terminal_summary(terminalreporter):
    if IS_SKIPPED:
        terminalreporter.section("DynamoDB was NOT tested: LEASEHOLD_SKIP_DDB=1", "!", red=True)


@pytest.fixture(scope="session")
def emulator():
    if IS_SKIPPED:
        pytest.skip("LEASEHOLD_SKIP_DDB=1")
    emulator = Emulator()
    yield emulator
    emulator.close()


@pytest.fixture
def proxy(emulator):
    """The way to the emulator that can be made to fail; it checks signatures."""
    proxy = Proxy(emulator.endpoint, {ACCESS_KEY: SECRET_KEY})
    yield proxy
    proxy.clear()
    proxy.stop()
    assert proxy.unsigned == []


@pytest.fixture
def bare_store(emulator):
    """Names and settings, no tables yet."""
    store = Store(emulator.endpoint)
    yield store
    store.drop()


@pytest.fixture
def store(bare_store):
    return bare_store.create()


@pytest.fixture
def nodes(make, store):
    """nodes(3, csp): so many started servers on the store, the stock of the vendor in the pool. via: a proxy."""

    def start(count, csp, via=None, **env):
        # The emulator is slow under load; tests of an outage, which have a proxy, need a deadline that is soon over.
        way = {"DDB_ENDPOINT_URL": via.endpoint, "LEASEHOLD_STORE_DEADLINE_MS": 2000} if via else {"LEASEHOLD_STORE_DEADLINE_MS": 8000}
        settings = {**store.env, **way, **env}
        started = [make.server(csp=csp, wait=False, **settings) for _ in range(count)]
        asks_again = time.monotonic() + 15

        def is_filled():
            if store.db.count(store.pool) >= len(csp.accounts):
                return True
            if time.monotonic() > asks_again:  # the sync of the start was given up: the emulator did not answer in time
                started[0].admin().act("sync")
            return False

        until(is_filled, "sync has filled the pool", 300, 0.1)
        return started

    return start
