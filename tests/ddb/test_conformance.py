# SPDX-License-Identifier: Apache-2.0
"""The store's conformance suite, unchanged, on DynamoDB."""

import os
import pathlib
import subprocess

import pytest

from lib.ddb_proxy import Proxy

ADDED = 10  # transactions of the test that only adds


def run_suite(endpoint, *only):
    build = pathlib.Path(os.environ.get("LEASEHOLD_BIN", "build/leasehold")).resolve().parent
    env = dict(os.environ, LEASEHOLD_TEST_DDB=endpoint)
    done = subprocess.run(
        [build / "tests/unit/test_store", *only], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "[  PASSED  ]" in done.stdout + done.stderr


def test_the_conformance_suite_passes_on_dynamodb(emulator):
    run_suite(emulator.endpoint)


@pytest.fixture
def way(emulator):
    """A proxy that knows the suite's own credentials."""
    proxy = Proxy(emulator.endpoint, {"local": "local"})
    yield proxy
    proxy.clear()
    proxy.stop()
    assert proxy.unsigned == []


def test_a_record_that_is_certainly_new_costs_one_write_and_no_read(way):
    run_suite(way.endpoint, "a_record_that_is_certainly_new_is_added")
    counts = way.counts()
    assert counts["TransactWriteItems"] == ADDED
    assert not {"GetItem", "Query", "Scan", "PutItem"} & set(counts), counts


@pytest.mark.parametrize("kind", ["lose", "lose-500"])
def test_a_claim_of_one_record_whose_answer_was_lost_is_not_taken_for_anothers(way, kind):
    writes = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")
    fault = way.fault(kind, operations=writes, share=0.3, seed=3)
    run_suite(way.endpoint, "what_changes_one_record_happens_once")
    assert fault.hits >= 3


@pytest.mark.parametrize("kind", ["lose", "lose-500"])
def test_a_new_record_whose_answer_was_lost_is_not_taken_for_anothers(way, kind):
    fault = way.fault(kind, operations=("TransactWriteItems",), count=3)
    run_suite(way.endpoint, "a_record_that_is_certainly_new_is_added")
    assert fault.hits == 3
