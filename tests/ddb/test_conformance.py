# SPDX-License-Identifier: Apache-2.0
"""The store's conformance suite, unchanged, on DynamoDB."""

import os
import pathlib
import subprocess


def test_the_conformance_suite_passes_on_dynamodb(emulator):
    build = pathlib.Path(os.environ.get("LEASEHOLD_BIN", "build/leasehold")).resolve().parent
    env = dict(os.environ, LEASEHOLD_TEST_DDB=emulator.endpoint)
    done = subprocess.run([build / "tests/unit/test_store"], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "[  PASSED  ]" in done.stdout + done.stderr
