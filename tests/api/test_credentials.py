# SPDX-License-Identifier: Apache-2.0
"""Temporary credentials, where the operator wants them: a lease tells the name of a secret, and nobody here knows the secret."""

import sqlite3

import pytest

from lib import leases
from lib.leases import Pool
from lib.ops import Ops
from lib.wait import until


@pytest.fixture
def pool(make):
    return Pool(make.server(args=["--dev"], LEASEHOLD_CREDENTIALS="true", **leases.env(make.folder)))


def secrets(pool):
    """What the simulated secret manager keeps: name and value by account."""
    db = sqlite3.connect(pool.server.data / "sim.db", timeout=10)
    found = {account: (name, value) for account, name, value in db.execute("SELECT account_id, name, value FROM sim_secret")}
    db.close()
    return found


def test_an_active_lease_tells_where_its_credentials_are_and_nobody_else_knows_them(pool):
    person = pool.person()
    lease = pool.active(person)
    path = "/leases/" + lease["leaseId"]
    account = lease["awsAccountId"]
    name, value = secrets(pool)[account]
    assert person.data("GET", path)["credentialsSecret"] == name == "leasehold/" + account
    pool.manager.data("POST", path + "/freeze")
    until(lambda: account not in secrets(pool), "the secret is gone while the lease is frozen", 30, 0.1)
    assert "credentialsSecret" not in person.data("GET", path)
    pool.manager.data("POST", path + "/unfreeze")
    until(lambda: account in secrets(pool), "a new secret is there", 30, 0.1)
    values = [value, secrets(pool)[account][1]]
    assert values[0] != values[1]
    pool.manager.data("POST", path + "/terminate")
    until(lambda: account not in secrets(pool), "the secret is gone with the lease", 30, 0.1)
    exported = Ops(pool.server).get("/v1/ops/events/export").body.decode()
    assert lease["uuid"] in exported
    pool.server.stop()
    kept = b"".join(p.read_bytes() for p in pool.server.data.glob("leasehold.db*"))
    logged = "".join(pool.server.lines + pool.server.said)
    for secret in values:
        assert secret not in exported and secret not in logged and secret.encode() not in kept
    assert account.encode() in kept


def test_without_the_setting_access_is_by_sign_in_alone(make):
    pool = Pool(make.server(args=["--dev"], **leases.env(make.folder)))
    lease = pool.active(pool.person())
    assert "credentialsSecret" not in pool.show(lease) and secrets(pool) == {}
