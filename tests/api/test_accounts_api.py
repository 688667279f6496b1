# SPDX-License-Identifier: Apache-2.0
"""Accounts, configurations and blueprints under /api."""

import uuid

import pytest

from lib import leases
from lib.leases import ADMIN, Pool
from lib.server import ADMIN_TOKEN
from lib.wait import until


@pytest.fixture(scope="module")
def pool(make_for_module):
    return Pool(make_for_module.server(args=["--dev"], **leases.env(make_for_module.folder)))


def unregistered(pool):
    return pool.admin.data("GET", "/accounts/unregistered")["result"]


def account(pool, account_id):
    return pool.admin.data("GET", "/accounts/" + account_id)


# The list, and those in Entry.


def test_the_list_ends_with_an_explicit_null_and_its_tokens_are_safe_in_a_url(pool):
    first = pool.admin.data("GET", "/accounts?pageSize=2")
    assert len(first["result"]) == 2
    token = first["nextPageIdentifier"]
    assert token.replace("-", "").replace("_", "").isalnum()
    ids = [a["awsAccountId"] for a in pool.admin.everything("/accounts", 3)]
    assert len(ids) == len(set(ids)) >= 4
    assert all(a["status"] in ("Available", "Active", "CleanUp", "Quarantine", "Frozen") for a in pool.admin.everything("/accounts", 7))


def test_a_token_of_another_list_is_refused(pool):
    token = pool.admin.data("GET", "/accounts?pageSize=1")["nextPageIdentifier"]
    assert pool.admin.fields("GET", "/leases?pageIdentifier=" + token) == ["pageIdentifier"]
    assert pool.admin.fields("GET", "/accounts?pageIdentifier=%41x") == ["pageIdentifier"]


def test_the_token_is_taken_under_both_names(pool):
    token = pool.admin.data("GET", "/accounts?pageSize=1")["nextPageIdentifier"]
    one = pool.admin.data("GET", "/accounts?pageSize=1&pageIdentifier=" + token)
    other = pool.admin.data("GET", "/accounts?pageSize=1&nextPageIdentifier=" + token)
    assert one == other
    assert pool.admin.fields("GET", "/accounts?pageIdentifier=%s&nextPageIdentifier=%sx" % (token, token)) == ["pageIdentifier"]


@pytest.mark.parametrize("path,most", [("/accounts", 2000), ("/accounts/unregistered", 20), ("/leases", 2000),
                                       ("/leaseTemplates", 2000), ("/blueprints", 100), ("/blueprints/stacksets", 100)])
def test_page_sizes_have_their_limits(pool, path, most):
    assert pool.admin.call("GET", "%s?pageSize=%d" % (path, most)).status == 200
    for size in (0, most + 1, "x", "1.5", "-1"):
        assert pool.admin.fields("GET", "%s?pageSize=%s" % (path, size)) == ["pageSize"]
    assert pool.admin.call("GET", path + "?unheard=of").status == 200


def test_accounts_in_entry_have_capitals_and_no_last_token(pool):
    page = pool.admin.data("GET", "/accounts/unregistered?pageSize=2")
    items, sizes = page["result"], [len(page["result"])]
    while "nextPageIdentifier" in page:
        page = pool.admin.data("GET", "/accounts/unregistered?pageSize=2&pageIdentifier=" + page["nextPageIdentifier"])
        items, sizes = items + page["result"], sizes + [len(page["result"])]
    assert all(set(a) == {"Id", "Email", "Name"} for a in items)
    assert len({a["Id"] for a in items}) == len(items) > 2 and max(sizes) == 2
    assert items[:4] == unregistered(pool)[:4]


# Registering.


def test_registering_takes_name_and_email_from_the_organisation(pool):
    entry = unregistered(pool)[0]
    got = pool.admin.data("POST", "/accounts", {"awsAccountId": entry["Id"], "name": "mine", "email": "x@example.com", "meta": {}}, 201)
    assert got["awsAccountId"] == entry["Id"] and got["status"] == "CleanUp"
    assert (got["name"], got["email"]) == (entry["Name"], entry["Email"])
    assert got["meta"]["schemaVersion"] == 1 and got["meta"]["createdTime"].endswith("Z")
    assert entry["Id"] not in [a["Id"] for a in unregistered(pool)], "offered again before it was moved"
    assert pool.admin.errors("POST", "/accounts", {"awsAccountId": entry["Id"]}, 409)


@pytest.mark.parametrize(
    "body,fields",
    [
        ({}, ["awsAccountId"]),
        ({"awsAccountId": 111122223333}, ["awsAccountId"]),
        ({"awsAccountId": "11112222333"}, ["awsAccountId"]),
        ({"awsAccountId": "111122223333", "email": "nobody", "other": 1}, ["email", "input"]),
        ({"awsAccountId": None, "name": "x" * 51, "meta": 1}, ["awsAccountId", "meta", "name"]),
    ],
)
def test_bad_registrations(pool, body, fields):
    assert pool.admin.fields("POST", "/accounts", body) == fields


def test_an_account_outside_entry_is_a_conflict(pool):
    known = pool.admin.data("GET", "/accounts?pageSize=1")["result"][0]["awsAccountId"]
    assert pool.admin.errors("POST", "/accounts", {"awsAccountId": known}, 409)
    assert pool.admin.errors("POST", "/accounts", {"awsAccountId": "000000000000"}, 409)


def test_an_account_that_the_organisation_is_run_from_is_not_lent(pool):
    for account_id in pool.administration:
        errors = pool.admin.errors("POST", "/accounts", {"awsAccountId": account_id})
        assert [e["field"] for e in errors] == ["awsAccountId"] and "is run from" in errors[0]["message"]


def test_which_accounts_it_is_run_from_can_be_set(make):
    settings = leases.env(make.folder, LEASEHOLD_ADMIN_ACCOUNTS="111122223333, 111122224444")
    other = Pool(make.server(args=["--dev"], **settings))
    assert other.admin.fields("POST", "/accounts", {"awsAccountId": "111122224444"}) == ["awsAccountId"]
    assert other.admin.errors("POST", "/accounts", {"awsAccountId": "999988887777"}, 409)


# One account.


def test_an_account_id_is_twelve_digits(pool):
    assert pool.admin.fields("GET", "/accounts/12") == ["awsAccountId"]
    assert pool.admin.fields("POST", "/accounts/abcdefabcdef/eject") == ["awsAccountId"]
    assert pool.admin.errors("GET", "/accounts/111122223333", status=404)


def test_a_lent_account_names_its_lease(pool):
    lease = pool.active(pool.person())
    assert account(pool, lease["awsAccountId"])["leaseUuid"] == lease["uuid"]
    assert account(pool, lease["awsAccountId"])["status"] == "Active"
    assert pool.admin.errors("POST", "/accounts/%s/retryCleanup" % lease["awsAccountId"], status=409)


def test_eject_ends_the_lease_and_answers_without_data(pool):
    lease = pool.active(pool.person())
    path = "/accounts/%s/eject" % lease["awsAccountId"]
    reply = pool.admin.call("POST", path)
    assert reply.status == 200 and reply.json == {"status": "success"}, reply
    assert pool.show(lease)["status"] == "Ejected"
    assert pool.admin.errors("GET", "/accounts/" + lease["awsAccountId"], status=404)
    assert lease["awsAccountId"] not in [a["awsAccountId"] for a in pool.admin.everything("/accounts", 100)]


def test_retry_cleanup_answers_without_data_and_eject_waits_for_it(pool):
    entry = unregistered(pool)[0]["Id"]
    with pool.unmoved():  # a cleanup that has begun is not begun again
        pool.admin.data("POST", "/accounts", {"awsAccountId": entry}, 201)
        reply = pool.admin.call("POST", "/accounts/%s/retryCleanup" % entry)
        assert reply.status == 200 and reply.json == {"status": "success"}, reply
        assert pool.admin.errors("POST", "/accounts/%s/eject" % entry, status=409)


def test_a_quarantine_by_hand_ends_the_lease_says_why_and_can_be_undone(pool):
    lease = pool.active(pool.person())
    path = "/accounts/" + lease["awsAccountId"]
    reply = pool.admin.call("POST", path + "/quarantine", {"reason": "a bill that nobody can explain"})
    assert reply.status == 200 and reply.json == {"status": "success"}, reply
    got = account(pool, lease["awsAccountId"])
    assert got["status"] == "Quarantine" and got["reason"] == "a bill that nobody can explain" and "leaseUuid" not in got
    assert pool.show(lease)["status"] == "AccountQuarantined"
    assert pool.admin.call("POST", path + "/retryCleanup").status == 200
    assert account(pool, lease["awsAccountId"])["status"] == "CleanUp"


def test_an_operator_is_told_of_a_quarantine_and_of_a_low_pool(make):
    settings = leases.env(make.folder, LEASEHOLD_SIM_ACCOUNTS="2", LEASEHOLD_ALARM_INTERVAL_SEC="1")
    pool = Pool(make.server(args=["--dev"], **settings))
    operator = pool.server.client({"Authorization": "Bearer " + ADMIN_TOKEN})

    def alarms():
        return {a["name"]: a for a in operator.get("/v1/ops/alarms").json["alarms"]}

    locked = pool.admin.everything("/accounts", 10)[0]["awsAccountId"]
    assert "accounts-low" not in alarms()
    assert pool.admin.call("POST", "/accounts/%s/quarantine" % locked, {"reason": "for the test"}).status == 200
    found = until(lambda: (lambda a: a if "account-quarantined#" + locked in a and "accounts-low" in a else None)(alarms()),
                  "both alarms are there")
    assert "for the test" in found["account-quarantined#" + locked]["evidence"]
    assert "1 accounts are free" in found["accounts-low"]["evidence"]


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": "  "}, {"reason": 7}, {"reason": "x" * 1001}])
def test_a_quarantine_needs_a_reason(pool, body):
    assert pool.admin.fields("POST", "/accounts/111122223333/quarantine", body) == ["reason"]


def test_only_accounts_of_the_pool_are_locked_away_by_hand(pool):
    for account_id in ("111122223333", unregistered(pool)[-1]["Id"], "999988887777"):
        assert pool.admin.errors("POST", "/accounts/%s/quarantine" % account_id, {"reason": "x"}, 404)


def test_an_organisation_that_throttles_is_told_as_such(pool):
    pool.set_faults({"fault": "throttle"})
    try:
        assert pool.admin.errors("GET", "/accounts/unregistered", status=429)
    finally:
        pool.set_faults()
    assert pool.admin.call("GET", "/accounts/unregistered").status == 200


# Configurations.


def test_the_configuration_has_exactly_what_the_pages_need(pool):
    got = pool.user.data("GET", "/configurations")
    assert set(got) == {"termsOfService", "maintenanceMode", "leases", "cleanup", "auth", "isbManagedRegions",
                        "costReportGroups", "requireCostReportGroup"}
    assert got["maintenanceMode"] is False
    assert set(got["leases"]) == {"requireMaxBudget", "maxBudget", "requireMaxDuration", "maxDurationHours", "maxLeasesPerUser", "ttl"}
    assert set(got["cleanup"]) == {"numberOfFailedAttemptsToCancelCleanup", "waitBeforeRetryFailedAttemptSeconds",
                                   "numberOfSuccessfulAttemptsToFinishCleanup", "waitBeforeRerunSuccessfulAttemptSeconds"}
    assert set(got["auth"]) == {"awsAccessPortalUrl", "webAppUrl"}
    assert len(got["isbManagedRegions"]) >= 1 and isinstance(got["costReportGroups"], list)


# Blueprints.


def blueprint(pool, **fields):
    body = {"name": "bp", "stackSetId": "set:1", "regions": ["us-east-1", "eu-west-1"], **fields}
    return pool.admin.data("POST", "/blueprints", body, 201)


def test_no_stack_sets_are_offered(pool):
    assert pool.manager.data("GET", "/blueprints/stacksets")["result"] == []


def test_a_blueprint_is_made_shown_changed_and_removed(pool):
    made = blueprint(pool, tags={"team": "a b"})
    assert made["createdBy"] == ADMIN and made["deploymentTimeoutMinutes"] == 30
    assert made["regionConcurrencyType"] == "SEQUENTIAL" and made["tags"] == {"team": "a b"}
    path = "/blueprints/" + made["blueprintId"]
    whole = pool.manager.data("GET", path)
    assert whole["blueprint"] == made and whole["recentDeployments"] == []
    assert whole["stackSets"][0]["regions"] == ["us-east-1", "eu-west-1"]
    assert whole["stackSets"][0]["concurrencyMode"] == "STRICT_FAILURE_TOLERANCE"
    assert whole["stackSets"][0]["maxConcurrentPercentage"] == 100
    changed = pool.admin.data("PUT", path, {"name": "other", "failureTolerancePercentage": 5})
    assert changed["blueprint"]["name"] == "other" and changed["blueprint"]["tags"] == {"team": "a b"}
    assert changed["stackSets"][0]["failureTolerancePercentage"] == 5
    listed = pool.manager.data("GET", "/blueprints")
    assert made["blueprintId"] in [b["blueprint"]["blueprintId"] for b in listed["blueprints"]]
    assert listed["nextPageIdentifier"] is None
    assert pool.admin.data("DELETE", path)["blueprintId"] == made["blueprintId"]
    assert pool.admin.errors("DELETE", path, status=404)
    assert pool.admin.errors("GET", path, status=404)


@pytest.mark.parametrize(
    "body,fields",
    [
        ({}, ["name", "regions", "stackSetId"]),
        ({"name": "1st", "stackSetId": "", "regions": []}, ["name", "regions", "stackSetId"]),
        ({"name": "a", "stackSetId": "s", "regions": ["us-east-1", "us-east-1", 3]}, ["regions.1", "regions.2"]),
        ({"name": "a", "stackSetId": "s", "regions": ["us-east-1"], "tags": {"aws:x": "1"}}, ["tags"]),
        ({"name": "a", "stackSetId": "s", "regions": ["us-east-1"], "deploymentTimeoutMinutes": 4, "x": 1},
         ["deploymentTimeoutMinutes", "input"]),
        ({"name": "a", "stackSetId": "s", "regions": ["us-east-1"], "regionConcurrencyType": "RANDOM",
          "maxConcurrentPercentage": 0, "failureTolerancePercentage": 101, "concurrencyMode": 1},
         ["concurrencyMode", "failureTolerancePercentage", "maxConcurrentPercentage", "regionConcurrencyType"]),
    ],
)
def test_bad_blueprints(pool, body, fields):
    assert pool.admin.fields("POST", "/blueprints", body) == fields


def test_stack_set_and_regions_stay(pool):
    made = blueprint(pool)
    path = "/blueprints/" + made["blueprintId"]
    assert pool.admin.fields("PUT", path, {"stackSetId": "other", "regions": ["x"]}) == ["input", "input"]
    assert pool.admin.fields("PUT", "/blueprints/x", {}) == ["blueprintId"]


def test_a_blueprint_that_is_not_deployed_cannot_be_attached(pool):
    body = {"name": "t", "requiresApproval": True, "maxSpend": 1, "leaseDurationInHours": 1, "blueprintId": blueprint(pool)["blueprintId"]}
    assert pool.manager.fields("POST", "/leaseTemplates", body) == ["blueprintId"]
    assert pool.manager.data("POST", "/leaseTemplates", {**body, "blueprintId": None}, 201)["blueprintId"] is None
