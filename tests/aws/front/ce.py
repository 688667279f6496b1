# SPDX-License-Identifier: Apache-2.0
"""Cost Explorer: exact amounts by account, day, service and record type; pages of groups; money for every page."""

import datetime
from decimal import Decimal

from aws.front.machine import Machine

DIMENSIONS = {"LINKED_ACCOUNT": "account", "SERVICE": "service", "RECORD_TYPE": "record"}


def days(start, end):
    at, last = (datetime.date.fromisoformat(text[:10]) for text in (start, end))
    while at < last:
        yield at.isoformat()
        at += datetime.timedelta(1)


def matches(expression, item):
    if "And" in expression:
        return all(matches(e, item) for e in expression["And"])
    if "Or" in expression:
        return any(matches(e, item) for e in expression["Or"])
    if "Not" in expression:
        return not matches(expression["Not"], item)
    rule = expression["Dimensions"]
    return item[DIMENSIONS[rule["Key"]]] in rule["Values"]


class CostExplorer(Machine):
    bad_token = "InvalidNextTokenException"

    def reset(self):
        self.items, self.unit, self.page_size, self.pages, self.busy = [], "USD", 5000, 0, 0

    def show(self):
        return {"pages": self.pages, "items": len(self.items)}

    # For the tests.

    def ctl_add(self, account, day, amount, service="Amazon Elastic Compute Cloud - Compute", record="Usage"):
        """amount: a text, as exact as it shall be."""
        self.items.append({"account": account, "day": day, "service": service, "record": record, "amount": Decimal(amount)})

    def ctl_add_many(self, items):
        for item in items:
            self.ctl_add(**item)

    def ctl_revise(self, account, day, amount):
        """The day is billed anew."""
        self.items = [i for i in self.items if (i["account"], i["day"]) != (account, day)]
        self.ctl_add(account, day, amount)

    def ctl_set(self, unit="USD", page_size=5000):
        self.unit, self.page_size = unit, page_size

    # The operation.

    def check(self, params):
        start, end = params["TimePeriod"]["Start"], params["TimePeriod"]["End"]
        groups = params.get("GroupBy", [])
        if end <= start:
            self.fail("ValidationException", "Start time should be before end time")
        if len(groups) > 2 or any(g.get("Type") != "DIMENSION" or g.get("Key") not in DIMENSIONS for g in groups):
            self.fail("ValidationException", "at most two groups, by dimensions that are here")
        if params["Granularity"] != "DAILY" or params["Metrics"] != ["UnblendedCost"]:
            self.fail("ValidationException", "only DAILY UnblendedCost is here")
        if self.time(self.now()).date() - datetime.date.fromisoformat(start[:10]) > datetime.timedelta(430):
            self.fail("BillExpirationException", "the requested report expired")
        self.check_filter(params.get("Filter"))

    def check_filter(self, expression):
        if expression is None:
            return
        if len(expression) != 1:
            self.fail("ValidationException", "an expression has exactly one root")
        for name, inner in expression.items():
            if name in ("And", "Or"):
                if len(inner) < 2:
                    self.fail("ValidationException", "And and Or take at least two expressions")
                for each in inner:
                    self.check_filter(each)
            elif name == "Not":
                self.check_filter(inner)
            elif inner.get("Key") not in DIMENSIONS or not inner.get("Values") or len(inner["Values"]) > 200:
                self.fail("ValidationException", "a dimension has a key and 1 to 200 values")

    def GetCostAndUsage(self, params, _request):
        self.check(params)
        self.pages += 1
        rows = self.rows(params)
        got = self.page(rows, {**params, "MaxResults": self.page_size}, self.page_size, token="NextPageToken", name="rows")
        results = []
        for day in days(params["TimePeriod"]["Start"], params["TimePeriod"]["End"]):
            groups = [g for d, g in got["rows"] if d == day]
            results.append({"TimePeriod": {"Start": day, "End": next_day(day)}, "Total": {}, "Groups": groups, "Estimated": True})
        answer = {"ResultsByTime": results, "GroupDefinitions": params.get("GroupBy", [])}
        if "NextPageToken" in got:
            answer["NextPageToken"] = got["NextPageToken"]
        return answer

    def rows(self, params):
        sums = {}
        wanted = set(days(params["TimePeriod"]["Start"], params["TimePeriod"]["End"]))
        for item in self.items:
            if item["day"] in wanted and ("Filter" not in params or matches(params["Filter"], item)):
                key = (item["day"], *(item[DIMENSIONS[g["Key"]]] for g in params.get("GroupBy", [])))
                sums[key] = sums.get(key, Decimal(0)) + item["amount"]
        return [(key[0], {"Keys": list(key[1:]), "Metrics": {"UnblendedCost": {"Amount": "{:f}".format(amount), "Unit": self.unit}}})
                for key, amount in sorted(sums.items())]


def next_day(day):
    return (datetime.date.fromisoformat(day) + datetime.timedelta(1)).isoformat()
