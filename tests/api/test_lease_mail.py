# SPDX-License-Identifier: Apache-2.0
"""What people get by mail about leases, from a real server by a real mail server."""

import pytest

from lib import leases
from lib.leases import ADMIN, MANAGER, Pool
from lib.wait import until

pytest.importorskip("aiosmtpd")
from lib.smtp import SmtpServer  # noqa: E402


@pytest.fixture(scope="module")
def smtp():
    with SmtpServer() as server:
        yield server


@pytest.fixture(scope="module")
def pool(make_for_module, smtp):
    env = leases.env(make_for_module.folder, LEASEHOLD_SMTP_URL=smtp.url, LEASEHOLD_SMTP_REQUIRE_TLS="false",
                     LEASEHOLD_MAIL_FROM="leasehold@example.org", LEASEHOLD_MAIL_TO="ops@example.org",
                     LEASEHOLD_MAIL_EVENTS="Alarm*,LeaseFrozen")
    return Pool(make_for_module.server(args=["--dev"], **env))


def recipients(smtp, title, lease):
    """Who got a mail with this title about the lease; one entry for each mail."""
    subject = "[leasehold] %s: lease/%s" % (title, lease["uuid"])
    return sorted(to.lower() for m in list(smtp.mails) if m.message["Subject"] == subject for to in m.recipients)


def expect(smtp, title, lease, *who):
    until(lambda: len(recipients(smtp, title, lease)) >= len(who), "mails: " + title, 20, 0.05)
    assert recipients(smtp, title, lease) == sorted(who)


def test_each_step_of_a_lease_is_told_to_whom_it_concerns(pool, smtp):
    person = pool.person()
    lease = pool.pending(person)
    expect(smtp, "A lease is waiting for approval", lease, ADMIN, MANAGER)
    pool.manager.data("POST", "/leases/%s/review" % lease["leaseId"], {"action": "Approve"})
    expect(smtp, "Your lease is ready", lease, person.email)
    pool.manager.data("POST", "/leases/%s/freeze" % lease["leaseId"])
    expect(smtp, "A lease is frozen", lease, person.email, "ops@example.org")
    pool.manager.data("POST", "/leases/%s/unfreeze" % lease["leaseId"])
    expect(smtp, "Your lease goes on", lease, person.email)
    person.data("POST", "/leases/%s/terminate" % lease["leaseId"])
    expect(smtp, "A lease has ended", lease, person.email)


def test_a_denial_reaches_the_owner_with_its_reason(pool, smtp):
    person = pool.person()
    lease = pool.pending(person)
    pool.manager.data("POST", "/leases/%s/review" % lease["leaseId"], {"action": "Deny", "reason": "use the shared one"})
    expect(smtp, "Your lease was not approved", lease, person.email)
    assert any("reason: use the shared one" in m.text for m in list(smtp.mails) if lease["uuid"] in m.message["Subject"])
