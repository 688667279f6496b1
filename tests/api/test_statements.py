# SPDX-License-Identifier: Apache-2.0
"""What a lease cost: its statement by API and command line, in a world where a day takes a few seconds."""

import csv
import datetime
import io
import json

import pytest

from lib import jwt, leases
from lib import server as process
from lib.leases import Pool
from lib.ops import Ops
from lib.wait import until

SECONDS_A_DAY = 2
HEADING = "Lease,Account,Service,StartDate,EndDate,Cost,Currency,State,CompleteUntil"


@pytest.fixture(scope="module")
def pool(make_for_module):
    env = leases.env(make_for_module.folder, LEASEHOLD_TIME_SCALE=str(86400 // SECONDS_A_DAY))
    return Pool(make_for_module.server(args=["--dev"], **env))


@pytest.fixture(scope="module")
def ended(pool):
    """A lease of three days that has cost something, and whose statement is final."""
    owner = pool.person()
    lease = pool.active(owner, leaseDurationInHours=72, maxSpend=50)
    pool.until_status(lease, "Expired")
    path = "/leases/%s/statement" % lease["leaseId"]
    final = until(lambda: (lambda s: s if s["state"] == "final" else None)(owner.data("GET", path)), "the statement is final",
                  60, 0.1)
    return owner, lease, path, final


def micro(usd):
    return round(usd * 1000000)


def test_a_statement_is_open_from_the_end_on_and_becomes_provisional_then_final(pool):
    owner = pool.person()
    lease = pool.active(owner, leaseDurationInHours=24)
    path = "/leases/%s/statement" % lease["leaseId"]
    assert owner.call("GET", path).status == 404
    pool.manager.data("POST", "/leases/%s/terminate" % lease["leaseId"])
    states = []

    def look():
        state = owner.data("GET", path)["state"]
        if not states or states[-1] != state:
            states.append(state)
        return state == "final"

    until(look, "the statement is final", 60, 0.05)
    assert states == ["pending", "provisional", "final"]


def test_a_running_lease_shows_what_is_not_billed_yet(pool):
    owner = pool.person()
    lease = pool.active(owner, leaseDurationInHours=168, maxSpend=50)

    def shown():
        now = owner.data("GET", "/leases/%s" % lease["leaseId"])
        return now if "projectedSpend" in now else None

    now = until(shown, "there is a forecast", 30, 0.1)
    assert now["totalCostAccrued"] <= now["estimatedSpend"] <= now["projectedSpend"] and now["spendPerHour"] >= 0
    assert "costState" not in now


def test_a_running_lease_shows_what_it_has_spent_by_day_and_service(pool):
    owner, stranger = pool.person(), pool.person()
    lease = pool.active(owner, leaseDurationInHours=168, maxSpend=50)
    path = "/leases/%s/spend" % lease["leaseId"]
    assert pool.pending(owner)["leaseId"] != lease["leaseId"]

    def spent():
        got = owner.data("GET", path)
        return got if len(got["days"]) > 1 else None

    got = until(spent, "two days have costs", 60, 0.1)
    assert got["lease"] == lease["uuid"] and got["account_id"] == lease["awsAccountId"] and got["budget_usd"] == 50
    assert micro(sum(day["usd"] for day in got["days"])) == micro(sum(row["usd"] for row in got["rows"])) == micro(got["total_usd"]) > 0
    assert got["from"][:10] <= got["days"][0]["from"] and got["from"].endswith("T00:00:00Z") and got["complete_until"] <= got["to"]
    assert stranger.call("GET", path).status == 403 and pool.manager.call("GET", path).status == 200
    waits = pool.pending(pool.person())
    assert "has not started" in pool.manager.errors("GET", "/leases/%s/spend" % waits["leaseId"], None, 404)[0]["message"]
    env = {"LEASEHOLD_ADDRESS": pool.server.url, "LEASEHOLD_TOKEN": jwt.token(owner.email, "User"), "TZ": "UTC"}
    shown = process.run("lease", "spend", lease["uuid"], env=env)
    assert shown.returncode == 0 and "DAY (UTC)" in shown.stdout and got["days"][0]["from"] in shown.stdout, shown
    pool.manager.data("POST", "/leases/%s/terminate" % lease["leaseId"])
    assert "statement" in owner.errors("GET", path, None, 404)[0]["message"]


def test_an_ended_lease_shows_what_its_statement_says_and_whether_that_is_final(pool, ended):
    owner, lease, _, final = ended
    shown = owner.data("GET", "/leases/%s" % lease["leaseId"])
    assert (shown["totalCostAccrued"], shown["costState"], shown["costAsOf"]) == (final["total_usd"], "final", final["complete_until"])
    assert "projectedSpend" not in shown and "estimatedSpend" not in shown
    listed = [one for one in owner.data("GET", "/leases?userEmail=%s" % owner.email)["result"] if one["uuid"] == lease["uuid"]]
    assert listed[0]["totalCostAccrued"] == final["total_usd"] and final["budget_usd"] == 50


def test_rows_and_days_add_up_to_the_total(ended):
    _, lease, _, final = ended
    rows, days = [micro(r["usd"]) for r in final["rows"]], [micro(d["usd"]) for d in final["days"]]
    assert sum(rows) == sum(days) == micro(final["total_usd"]) > 0
    assert rows == sorted(rows, reverse=True) and len({r["service"] for r in final["rows"]}) == len(rows) > 1
    assert final["account_id"] == lease["awsAccountId"] and len(final["hash"]) == 64
    assert final["complete_until"] == final["to"]


def test_the_window_is_whole_days_around_the_lease(ended):
    final = ended[3]
    begin, end = (datetime.datetime.fromisoformat(final[k].replace("Z", "+00:00")).timestamp() for k in ("from", "to"))
    assert begin % 86400 == end % 86400 == 0
    assert begin <= final["lease_started_at"] - 8 * 3600 < begin + 86400
    assert end - 2 * 86400 < final["lease_ended_at"] + 8 * 3600 <= end  # the account is cleaned after that: on the next day, sometimes


def test_the_table_says_the_same(ended):
    owner, lease, path, final = ended
    reply = owner.call("GET", path + "?format=csv")
    assert reply.status == 200 and reply.header("content-type").startswith("text/csv")
    assert lease["uuid"] + ".csv" in reply.header("content-disposition")
    text = reply.body.decode()
    assert text.splitlines()[0] == HEADING
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(r["Service"], micro(float(r["Cost"]))) for r in rows] == [(r["service"], micro(r["usd"])) for r in final["rows"]]
    assert {r["State"] for r in rows} == {"final"} and {r["CompleteUntil"] for r in rows} == {final["complete_until"]}


def test_the_owner_and_managers_see_it_others_do_not(pool, ended):
    _, _, path, final = ended
    assert pool.manager.data("GET", path)["hash"] == final["hash"]
    assert pool.admin.data("GET", path)["hash"] == final["hash"]
    assert pool.person().call("GET", path).status == 403
    assert pool.server.client({}).request("GET", "/api" + path).status == 401


def test_the_id_must_name_the_owner(pool, ended):
    _, lease, _, _ = ended
    wrong = leases.lease_id("somebody@example.com", lease["uuid"])
    assert pool.admin.call("GET", "/leases/%s/statement" % wrong).status == 404
    assert pool.admin.call("GET", "/leases/nonsense/statement").status == 400
    assert pool.admin.call("GET", "/leases/%s/statement?format=pdf" % lease["leaseId"]).status == 400


def test_operators_ask_by_uuid_and_the_report_of_the_month_has_it(pool, ended):
    _, lease, _, final = ended
    ops = Ops(pool.server)
    got = ops.get("/v1/ops/leases/%s/statement" % lease["uuid"])
    assert got.status == 200 and got.json["hash"] == final["hash"]
    months = sorted({final["from"][:7], final["to"][:7]})
    reports = [ops.get("/v1/ops/reports/costs?month=" + month).body.decode() for month in months]
    assert sum(float(line.split(",")[3]) for text in reports for line in text.splitlines()[1:]) > 0


def test_the_command_line_shows_it(pool, ended):
    owner, lease, _, final = ended
    env = {"LEASEHOLD_ADDRESS": pool.server.url, "LEASEHOLD_TOKEN": jwt.token(owner.email, "User"),
           "NO_COLOR": "1"}

    def run(*words):
        done = process.run(*words, env=env)
        assert done.returncode == 0, done
        return done.stdout

    shown = run("lease", "statement", lease["uuid"][:8])
    assert "final" in shown and "%.2f" % final["total_usd"] in shown and final["rows"][0]["service"] in shown
    assert shown.index("SERVICE") < shown.index(final["rows"][0]["service"])
    assert json.loads(run("lease", "statement", lease["uuid"], "--json"))["data"]["hash"] == final["hash"]
    assert run("lease", "statement", lease["leaseId"], "--csv").splitlines()[0] == HEADING
    env["LEASEHOLD_TOKEN"] = process.ADMIN_TOKEN
    assert "final" in run("report", "statement", lease["uuid"])
    assert run("report", "statement", lease["uuid"], "--csv").splitlines()[0] == HEADING
    assert json.loads(run("report", "statement", lease["uuid"], "--json"))["hash"] == final["hash"]


def test_an_admin_can_wait_until_the_account_of_an_ended_lease_is_clean(pool):
    lease = pool.active(pool.person(), leaseDurationInHours=168)
    env = {"LEASEHOLD_ADDRESS": pool.server.url, "LEASEHOLD_TOKEN": jwt.token(leases.ADMIN, "Admin"),
           "NO_COLOR": "1"}
    done = process.run("lease", "terminate", lease["uuid"], "--wait", "60", env=env, timeout=90)
    assert done.returncode == 0 and "ManuallyTerminated" in done.stdout, done
    assert "the account is being emptied" in done.stderr, done
    account = pool.admin.data("GET", "/accounts/" + lease["awsAccountId"])
    assert account.get("leaseUuid") != lease["uuid"] and account["status"] != "CleanUp"
