# SPDX-License-Identifier: Apache-2.0
"""What people get by mail about leases, from a real server by a real mail server."""

import pytest

from lib import leases
from lib.leases import ADMIN, MANAGER, Pool
from lib.ops import Ops
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
    expect(smtp, "A lease is waiting for approval", lease, ADMIN, MANAGER, person.email)
    pool.manager.data("POST", "/leases/%s/review" % lease["leaseId"], {"action": "Approve"})
    expect(smtp, "Your lease is ready", lease, person.email)
    pool.manager.data("POST", "/leases/%s/freeze" % lease["leaseId"])
    expect(smtp, "A lease is frozen", lease, person.email, "ops@example.org")
    pool.manager.data("POST", "/leases/%s/unfreeze" % lease["leaseId"])
    expect(smtp, "Your lease is active again", lease, person.email)
    account = pool.show(lease)["awsAccountId"]
    ready = Ops(pool.server).events("subject=account/%s&type=AccountProvisioned" % account)[-1]
    assert ready["detail"] == {"accountId": account, "leaseId": {"userEmail": pool.show(lease)["userEmail"], "uuid": lease["uuid"]}}
    person.data("POST", "/leases/%s/terminate" % lease["leaseId"])
    expect(smtp, "A lease has ended", lease, person.email)


def test_who_asks_and_withdraws_again_and_again_does_not_flood_the_staff(pool, smtp):
    person, other = pool.person(), pool.person()
    asked = []
    for _ in range(15):
        asked.append(pool.pending(person))
        person.data("POST", "/leases/%s/withdraw" % asked[-1]["leaseId"])
    last = pool.pending(other)
    expect(smtp, "A lease is waiting for approval", asked[0], ADMIN, MANAGER, person.email)
    expect(smtp, "A lease is waiting for approval", asked[9], ADMIN, MANAGER, person.email)
    expect(smtp, "A lease is waiting for approval", last, ADMIN, MANAGER, other.email)  # somebody else's is told
    ops = Ops(pool.server)
    for queue in ("mail", "mail-out"):
        until(lambda: ops.read("queues/%s/lanes" % queue)["count"] == 0, "all events were looked at")
    told = [a for a in asked if MANAGER in recipients(smtp, "A lease is waiting for approval", a)]
    assert told == asked[:10]


def test_an_approval_reaches_the_owner_with_its_reason(pool, smtp):
    person = pool.person()
    lease = pool.pending(person)
    pool.manager.data("POST", "/leases/%s/review" % lease["leaseId"], {"action": "Approve", "reason": "for the course on Friday"})
    expect(smtp, "Your lease is ready", lease, person.email)
    ready = [m for m in list(smtp.mails) if m.message["Subject"] == "[leasehold] Your lease is ready: lease/" + lease["uuid"]]
    assert "reason: for the course on Friday" in ready[0].text
    events = Ops(pool.server).events("subject=lease/" + lease["uuid"])
    told = {e["detail-type"]: e["detail"].get("reason") for e in events}
    assert told["LeaseProvisioningStarted"] == told["LeaseApproved"] == "for the course on Friday"
    why = Ops(pool.server).read("explain/lease/" + lease["uuid"])
    assert any(line.endswith("approved it: for the course on Friday.") for line in why["why"])
    assert pool.show(lease)["approvalReason"] == "for the course on Friday"


def test_a_denial_reaches_the_owner_with_its_reason(pool, smtp):
    person = pool.person()
    lease = pool.pending(person)
    pool.manager.data("POST", "/leases/%s/review" % lease["leaseId"], {"action": "Deny", "reason": "use the shared one"})
    expect(smtp, "Your lease was not approved", lease, person.email)
    assert any("reason: use the shared one" in m.text for m in list(smtp.mails) if lease["uuid"] in m.message["Subject"])
