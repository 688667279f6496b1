# SPDX-License-Identifier: Apache-2.0
"""What accounts cost: Cost Explorer asked rarely, and answers from what is stored, exact and honest about what may be missing."""

import datetime
from decimal import ROUND_HALF_UP, Decimal

import pytest

from lib.aws_lease_tool import CORRUPT, DAY, DENIED, HOUR, INVALID, LIMITED, UNAVAILABLE, LeaseTool

ACCOUNT, OTHER = "200000000001", "200000000002"
EC2, S3 = "Amazon Elastic Compute Cloud - Compute", "Amazon Simple Storage Service"


@pytest.fixture
def tool(front, tmp_path):
    with LeaseTool(front, tmp_path) as tool:
        to_morning(tool)
        yield tool


def to_morning(tool):
    """Away from midnight, so that no test sees it pass."""
    tool.pass_time(DAY - tool.now() % DAY + 10 * HOUR)


def midnight(tool, days_ago=0):
    now = tool.now()
    return now - now % DAY - days_ago * DAY


def text(ms):
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc).strftime("%Y-%m-%d")


def bill(front, tool, amount, days_ago, account=ACCOUNT, **more):
    front.do("ce", "add_many", items=[{"account": account, "day": text(midnight(tool, days_ago)), "amount": amount, **more}])


def spend(tool, days, account=ACCOUNT, **more):
    """Of the last so many days, today included."""
    return tool.do("spend", account=account, **{"from": midnight(tool, days - 1), "to": tool.now(), **more})


def pages(front):
    return front.state("ce")["pages"]


def micro(*amounts):
    """What the contract says: the exact sum, rounded once, half away from zero."""
    return int((sum(map(Decimal, amounts)) * 1_000_000).quantize(Decimal(1), ROUND_HALF_UP))


def test_c27_three_pages_are_one_question(front, tool):
    for i in range(11):
        bill(front, tool, "1.%d" % i, i, service="Service %02d" % i)
    front.do("ce", "set", page_size=4)
    assert spend(tool, 30)["micro"] == micro(*("1.%d" % i for i in range(11)))
    assert pages(front) == 3
    first = front.log(operation="GetCostAndUsage")[0]["params"]
    assert all({**e["params"], "NextPageToken": None} == {**first, "NextPageToken": None} for e in front.log(operation="GetCostAndUsage"))
    assert first["TimePeriod"]["End"] == text(midnight(tool, -1)) and first["Granularity"] == "DAILY"
    assert tool.do("costs_state")["pages"] == 3


def test_c27_200_accounts_are_two_questions(front, tmp_path):
    accounts = ["2%011d" % i for i in range(200)]
    with LeaseTool(front, tmp_path, pool=accounts) as tool:
        to_morning(tool)
        for account in accounts:
            bill(front, tool, "0.5", 2, account=account)
        done = tool.do("refresh_costs")
        assert (done["questions"], done["pages"], done["accounts"]) == (2, 2, 200)
        assert {spend(tool, 10, account=account)["micro"] for account in accounts} == {500_000}
        asked = [len(e["params"]["Filter"]["And"][0]["Dimensions"]["Values"]) for e in front.log(operation="GetCostAndUsage")]
        assert sorted(asked) == [1, 199]
        tool.pass_time(4 * HOUR)
        assert tool.do("refresh_costs")["questions"] == 2


def test_c27_a_monitor_of_1000_accounts_asks_six_questions(front, tmp_path):
    accounts = ["2%011d" % i for i in range(1000)]
    with LeaseTool(front, tmp_path, pool=accounts) as tool:
        to_morning(tool)
        front.do("ce", "add_many", items=[{"account": a, "day": text(midnight(tool, 1)), "amount": "0.25"} for a in accounts])
        assert tool.do("refresh_costs")["questions"] == 6
        asked = [tool.begin("spend", account=a, **{"from": midnight(tool, 3), "to": tool.now()}) for a in accounts]
        assert {tool.end(n)["micro"] for n in asked} == {250_000}
        assert pages(front) == 6


def test_c27_sums_are_exact(front, tool):
    amounts = ["0.0000004999", "0.0000000001", "12.3456789012", "-0.1000000000", "3", "0.0000000000004", "1.5E-7"]
    for i, amount in enumerate(amounts):
        bill(front, tool, amount, i % 3, service="Service %d" % i)
    exact = [str(Decimal(a).quantize(Decimal("1e-10"), ROUND_HALF_UP)) for a in amounts]
    got = spend(tool, 5)
    assert got["micro"] == micro(*exact)
    items = tool.do("itemise", account=ACCOUNT, **{"from": midnight(tool, 4), "to": tool.now()})
    assert sum(int(i.split()[1]) for i in items["items"]) == items["micro"] == got["micro"]
    assert [i.split()[0] for i in items["items"]] == sorted(i.split()[0] for i in items["items"])


@pytest.mark.parametrize("amount, expected", [("0.0000005", 1), ("0.0000004999", 0), ("-0.0000005", -1), ("-0.0000004999", 0), ("2.0000015", 2_000_002)])
def test_c27_half_a_millionth_goes_away_from_zero(front, tool, amount, expected):
    bill(front, tool, amount, 1)
    assert spend(tool, 3)["micro"] == expected


def test_c27_halves_are_not_rounded_one_by_one(front, tool):
    for i in range(4):
        bill(front, tool, "0.0000005", 1, service="Service %d" % i)
    assert spend(tool, 3)["micro"] == 2
    items = tool.do("itemise", account=ACCOUNT, **{"from": midnight(tool, 2), "to": tool.now()})["items"]
    assert sum(int(i.split()[1]) for i in items) == 2


def test_c27_credits_and_refunds_are_no_costs(front, tool):
    bill(front, tool, "10", 1)
    bill(front, tool, "-10", 1, record="Credit")
    bill(front, tool, "-3", 1, record="Refund")
    bill(front, tool, "2", 1, record="Tax")
    assert spend(tool, 3)["micro"] == 12_000_000


def test_c27_another_currency_is_refused_and_stores_nothing(front, tool):
    bill(front, tool, "10", 1)
    front.do("ce", "set", unit="EUR")
    answer = tool.ask("spend", account=ACCOUNT, **{"from": midnight(tool, 2), "to": tool.now()})
    assert answer["rc"] == CORRUPT and "EUR" in answer["error"]
    front.do("ce", "set", unit="USD")
    assert spend(tool, 3)["micro"] == 10_000_000
    assert pages(front) == 2


def test_c27_a_thousand_questions_are_one_page(front, tool):
    bill(front, tool, "7.25", 3)
    assert spend(tool, 10, times=1000)["micro"] == 7_250_000
    assert pages(front) == 1


def test_c27_many_at_once_about_a_new_account_are_one_page(front, tool):
    bill(front, tool, "7.25", 3)
    asked = [tool.begin("spend", account=ACCOUNT, **{"from": midnight(tool, 5), "to": tool.now()}) for _ in range(10)]
    assert {tool.end(n)["micro"] for n in asked} == {7_250_000}
    assert pages(front) == 1


def test_c27_new_accounts_of_the_pool_are_asked_for_together(front, tmp_path):
    accounts = ["2%011d" % i for i in range(40)]
    with LeaseTool(front, tmp_path, pool=accounts) as tool:
        to_morning(tool)
        for i, account in enumerate(accounts):
            bill(front, tool, str(i), 1, account=account)
        assert [spend(tool, 5, account=account)["micro"] for account in accounts] == [i * 1_000_000 for i in range(40)]
        assert pages(front) == 1


def test_a_day_counts_when_it_overlaps(front, tool):
    for i in range(4):
        bill(front, tool, str(10 ** i), i)
    day = midnight(tool, 2)
    for begin, end, expected in ((day, day + DAY, 100), (day + HOUR, day + 2 * HOUR, 100), (day - 1, day, 1000), (day - 1, day + 1, 1100),
                                 (day, day, 0), (day + DAY - 1, day + DAY + 1, 110)):
        assert tool.do("spend", account=ACCOUNT, **{"from": begin, "to": end})["micro"] == expected * 1_000_000, (begin, end)


def test_an_account_that_nothing_is_known_of_has_spent_nothing(front, tool):
    assert spend(tool, 30)["micro"] == 0
    assert spend(tool, 30)["micro"] == 0
    assert pages(front) == 1
    assert tool.do("itemise", account=ACCOUNT, **{"from": midnight(tool, 9), "to": tool.now()})["items"] == []


def test_days_before_those_that_are_stored_are_asked_for_once(front, tool):
    bill(front, tool, "1", 3)
    bill(front, tool, "100", 200)
    assert spend(tool, 10)["micro"] == 1_000_000
    assert spend(tool, 300)["micro"] == 101_000_000
    assert spend(tool, 250)["micro"] == 101_000_000
    assert pages(front) == 2
    assert front.log(operation="GetCostAndUsage")[1]["params"]["TimePeriod"]["End"] == text(midnight(tool, 45))


def test_what_makes_no_sense_is_refused(front, tool):
    now = tool.now()
    for arguments in ({"from": now, "to": now - 1}, {"from": now - 401 * DAY, "to": now}, {"from": -1, "to": now}):
        assert tool.ask("spend", account=ACCOUNT, **arguments)["rc"] == INVALID
    assert tool.ask("spend", account="12", **{"from": now, "to": now})["rc"] == INVALID
    assert pages(front) == 0


def test_c28_figures_that_change_between_pages_are_read_from_the_first_again(front, tool):
    for i in range(6):
        bill(front, tool, "1", 1, service="Service %d" % i)
    front.do("ce", "set", page_size=4)
    front.fault("error", "ce", "GetCostAndUsage", skip=1, code="RequestChangedException", status=400)
    assert spend(tool, 3)["micro"] == 6_000_000  # nothing twice
    assert [bool(e["params"].get("NextPageToken")) for e in front.log(operation="GetCostAndUsage")] == [False, True, False, True]


def test_c28_only_once(front, tool):
    bill(front, tool, "1", 1)
    front.fault("error", "ce", "GetCostAndUsage", code="InvalidNextTokenException", status=400, count=2)
    answer = tool.ask("spend", account=ACCOUNT, **{"from": midnight(tool, 2), "to": tool.now()})
    assert answer["rc"] == UNAVAILABLE
    assert spend(tool, 3)["micro"] == 1_000_000


@pytest.mark.parametrize("code, expected", [("LimitExceededException", LIMITED), ("DataUnavailableException", UNAVAILABLE),
                                            ("BillExpirationException", INVALID), ("BillingViewHealthStatusException", DENIED)])
def test_errors_mean_what_the_contract_says(front, tool, code, expected):
    front.fault("error", "ce", "GetCostAndUsage", code=code, status=400, count=-1)
    answer = tool.ask("spend", account=ACCOUNT, **{"from": midnight(tool, 2), "to": tool.now()})
    assert answer["rc"] == expected, answer
    front.clear()
    assert spend(tool, 3)["micro"] == 0


def settle(tool, hours=9):
    tool.pass_time(hours * HOUR)
    tool.do("refresh_costs")


def test_nothing_is_complete_until_two_refreshes_agree(front, tool):
    bill(front, tool, "5", 3)
    first = midnight(tool, 4)
    got = spend(tool, 5)
    assert got["micro"] == 5_000_000 and got["until"] == first  # asked once
    settle(tool, 7)
    assert spend(tool, 5, **{"from": first})["until"] == first  # too soon
    settle(tool, 2)
    assert spend(tool, 5, **{"from": first})["until"] == midnight(tool, 1)  # yesterday ended less than a day ago


def test_a_day_that_ended_less_than_24_hours_ago_is_not_complete(front, tool):
    first = midnight(tool, 3)
    spend(tool, 4)
    settle(tool)
    settle(tool)  # 28 hours into the first day: the one before it has ended 28 hours ago
    until = spend(tool, 4, **{"from": first})["until"]
    assert tool.now() - DAY - DAY < until <= tool.now() - DAY


def test_all_days_complete_is_the_end_that_was_asked_for(front, tool):
    begin, end = midnight(tool, 8), midnight(tool, 6) + HOUR
    tool.do("spend", account=ACCOUNT, **{"from": begin, "to": end})
    settle(tool)
    tool.pass_time(DAY)
    tool.do("refresh_costs")
    assert tool.do("spend", account=ACCOUNT, **{"from": begin, "to": end})["until"] == end


def test_c29_a_revised_day_moves_complete_until_back(front, tool):
    for i in range(1, 6):
        bill(front, tool, "2", i)
    first, revised = midnight(tool, 5), midnight(tool, 3)
    spend(tool, 6)
    settle(tool)
    before = spend(tool, 6, **{"from": first})
    assert before["until"] > revised and before["micro"] == 10_000_000
    front.do("ce", "revise", account=ACCOUNT, day=text(revised), amount="3.5")
    tool.pass_time(4 * HOUR)
    assert tool.do("refresh_costs")["changed"] == 1
    after = spend(tool, 6, **{"from": first})
    assert after["until"] == revised and after["micro"] == 11_500_000
    settle(tool)
    assert spend(tool, 6, **{"from": first})["until"] >= before["until"]


def test_c29_a_bill_for_a_day_that_was_empty_moves_it_back_too(front, tool):
    first, late = midnight(tool, 5), midnight(tool, 2)
    spend(tool, 6)
    settle(tool)
    settle(tool)
    before = spend(tool, 6, **{"from": first})
    assert before["until"] > late and before["micro"] == 0
    front.do("ce", "add", account=ACCOUNT, day=text(late), amount="1")
    tool.do("refresh_costs")
    after = spend(tool, 6, **{"from": first})
    assert after["until"] == late and after["micro"] == 1_000_000


def test_a_refresh_asks_for_a_week_and_once_a_day_for_more(front, tool):
    spend(tool, 3)
    tool.do("refresh_costs")  # the weeks are known already
    tool.pass_time(DAY)
    tool.do("refresh_costs")  # the first of the day
    tool.pass_time(4 * HOUR)
    tool.do("refresh_costs")
    starts = [e["params"]["TimePeriod"]["Start"] for e in front.log(operation="GetCostAndUsage")]
    assert starts == [text(midnight(tool, days)) for days in (46, 8, 45, 7)]


def test_a_refresh_asks_only_for_what_is_due(front, tmp_path):
    with LeaseTool(front, tmp_path, refresh=4 * HOUR) as tool:
        to_morning(tool)
        spend(tool, 3)
        assert tool.do("refresh_costs")["accounts"] == 0
        tool.pass_time(2 * HOUR)
        spend(tool, 3, account=OTHER)
        tool.pass_time(2 * HOUR)
        assert tool.do("refresh_costs")["accounts"] == 1
        assert front.log(operation="GetCostAndUsage")[-1]["params"]["Filter"]["And"][0]["Dimensions"]["Values"] == [ACCOUNT]


HOURLY = 10  # pages for a thousand accounts


def bill_many(front, tool, accounts, days):
    front.do("ce", "add_many", items=[{"account": a, "day": text(midnight(tool, i)), "amount": "0.25"} for a in accounts for i in range(days)])


def an_hour(front, tool):
    """What is asked for in it, by the job that looks every ten minutes. Its clock goes on by itself, too: an hour is over when the job looks behind it."""
    before, waiting = pages(front), []
    for _ in range(6):
        waiting.append(tool.do("refresh_costs")["waiting"])
        tool.pass_time(HOUR // 6)
    assert pages(front) - before <= HOURLY
    return waiting[-1]


def test_many_pages_are_read_over_hours_and_at_most_ten_in_each(front, tmp_path):
    accounts = ["2%011d" % i for i in range(1000)]
    with LeaseTool(front, tmp_path, pool=accounts, refresh=24 * HOUR) as tool:
        to_morning(tool)
        bill_many(front, tool, accounts, 3)
        front.do("ce", "set", page_size=100)  # 30 pages, at the least
        waiting = [tool.do("refresh_costs")["waiting"]]
        assert 0 < waiting[0] <= 1000 and pages(front) <= HOURLY
        unknown = spend(tool, 4, account=accounts[-1])
        assert unknown["micro"] == 0 and unknown["until"] == midnight(tool, 3)  # nothing is known: not an error, and not zero for certain
        assert tool.do("costs_state")["refreshed"] == 0
        tool.pass_time(HOUR)
        while waiting[-1]:
            waiting.append(an_hour(front, tool))
            assert len(waiting) < 10 and waiting[-1] < waiting[-2]
        assert tool.do("costs_state")["refreshed"] > 0
        assert {spend(tool, 4, account=a)["micro"] for a in accounts[::50]} == {750_000}
        assert pages(front) <= 30 + 10 + 10 + len(waiting)  # one answer was cut off; a question ends in a part of a page


def test_an_answer_that_is_cut_off_is_asked_for_in_smaller_parts(front, tmp_path):
    accounts = ["2%011d" % i for i in range(60)]
    with LeaseTool(front, tmp_path, pool=accounts, refresh=8 * HOUR) as tool:
        to_morning(tool)
        bill_many(front, tool, accounts, 2)
        front.do("ce", "set", page_size=8)  # 15 pages
        done = tool.do("refresh_costs")
        assert (done["pages"], done["accounts"], done["waiting"]) == (HOURLY, 0, 60)
        assert spend(tool, 3, account=accounts[5])["micro"] == 0  # nothing of it was stored
        tool.pass_time(HOUR)
        done = tool.do("refresh_costs")
        assert 0 < done["pages"] <= HOURLY and 20 <= done["accounts"] < 60 and done["waiting"] == 60 - done["accounts"]
        tool.pass_time(HOUR)
        assert tool.do("refresh_costs")["waiting"] < done["waiting"]


def test_the_pages_of_an_hour_are_those_of_all_nodes(front, tmp_path):
    accounts = ["2%011d" % i for i in range(60)]
    with LeaseTool(front, tmp_path, pool=accounts) as tool:
        to_morning(tool)
        bill_many(front, tool, accounts, 2)
        front.do("ce", "set", page_size=8)
        tool.do("refresh_costs")
        assert tool.do("refresh_costs", node=1)["pages"] == 0
        tool.pass_time(HOUR)
        assert tool.do("refresh_costs", node=1)["pages"] > 0


def test_while_cost_explorer_is_away_for_weeks_older_figures_are_given(front, tool):
    for i in range(5):
        bill(front, tool, "2", i)
    first = midnight(tool, 6)
    spend(tool, 7)
    settle(tool)
    known = spend(tool, 7, **{"from": first})
    assert known["micro"] == 10_000_000 and first < known["until"] <= midnight(tool, 1)
    front.fault("error", "ce", "GetCostAndUsage", status=500, count=-1)
    for days in (8, 20, 50):  # more than a refresh looks back, and more than is ever confirmed
        tool.pass_time(days * DAY)
        asked = front.count()
        for _ in range(3):
            away = spend(tool, 7, **{"from": first})
            assert away["micro"] == known["micro"] and known["until"] <= away["until"] <= tool.now() - days * DAY
        assert tool.do("itemise", account=ACCOUNT, **{"from": first, "to": tool.now()})["micro"] == known["micro"]
        assert len(front.log("ce", since=asked)) <= 5  # the attempts of one question: it is not asked again for each answer
        assert spend(tool, 5)["until"] == midnight(tool, 4)  # of these days nothing is known
    front.clear()
    bill(front, tool, "3", 60)
    tool.pass_time(HOUR)
    back = spend(tool, 7, **{"from": first})
    assert back["micro"] == 13_000_000


def test_older_days_that_cannot_be_asked_for_are_left_out_and_nothing_is_called_complete(front, tool):
    bill(front, tool, "1", 3)
    bill(front, tool, "100", 200)
    spend(tool, 10)
    front.fault("error", "ce", "GetCostAndUsage", code="AccessDeniedException", status=400, count=-1)
    got = spend(tool, 300)
    assert got["micro"] == 1_000_000 and got["until"] == midnight(tool, 299)


def test_an_account_that_nobody_asks_for_is_no_longer_refreshed(front, tool):
    spend(tool, 3)
    spend(tool, 3, account=OTHER)
    tool.pass_time(35 * DAY)
    spend(tool, 3)
    tool.pass_time(6 * DAY)
    assert tool.do("refresh_costs")["accounts"] == 1
    values = front.log(operation="GetCostAndUsage")[-1]["params"]["Filter"]["And"][0]["Dimensions"]["Values"]
    assert values == [ACCOUNT]


def test_what_nobody_asked_for_is_made_up_for_when_somebody_does(front, tool):
    spend(tool, 3)
    tool.pass_time(100 * DAY)
    bill(front, tool, "7", 70)  # when nobody looked
    bill(front, tool, "5", 3)
    assert tool.do("refresh_costs")["accounts"] == 0
    assert spend(tool, 90)["micro"] == 12_000_000
    assert pages(front) == 2
    assert spend(tool, 90)["micro"] == 12_000_000 and pages(front) == 2


def test_a_refresh_after_weeks_of_silence_leaves_no_day_out(front, tool):
    spend(tool, 3)
    tool.pass_time(30 * DAY)
    spend(tool, 3)  # somebody still wants to know
    tool.pass_time(8 * DAY)
    bill(front, tool, "5", 12)
    tool.do("refresh_costs")
    assert spend(tool, 20)["micro"] == 5_000_000


def test_a_refresh_that_fails_leaves_what_was_known(front, tool):
    bill(front, tool, "5", 3)
    spend(tool, 5)
    front.fault("error", "ce", "GetCostAndUsage", status=500, count=-1)
    assert tool.ask("refresh_costs")["rc"] == UNAVAILABLE
    assert spend(tool, 5)["micro"] == 5_000_000
    assert tool.do("costs_state")["refreshed"] == 0


def test_pages_are_counted_by_month(front, tool):
    spend(tool, 3)
    assert tool.do("costs_state")["pages"] == 1
    tool.pass_time(32 * DAY)
    assert tool.do("costs_state")["pages"] == 0
    tool.do("refresh_costs")
    assert tool.do("costs_state")["pages"] == 1


def test_the_other_node_answers_from_the_same_store(front, tool):
    bill(front, tool, "5", 3)
    spend(tool, 5)
    assert spend(tool, 5, node=1)["micro"] == 5_000_000
    assert pages(front) == 1


def test_names_of_services_that_are_too_long_are_cut_and_too_many_are_summed_up(front, tool):
    items = [{"account": ACCOUNT, "day": text(midnight(tool, 1)), "amount": "0.01", "service": "Service %04d %s" % (i, "ä" * 40)} for i in range(900)]
    front.do("ce", "add_many", items=items)
    got = tool.do("itemise", account=ACCOUNT, **{"from": midnight(tool, 2), "to": tool.now()})
    assert got["micro"] == 9_000_000 == sum(int(i.split()[1]) for i in got["items"])
    assert max(len(i.split(" ", 2)[2].encode()) for i in got["items"]) <= 64
    assert any(i.endswith("Other services") for i in got["items"])
