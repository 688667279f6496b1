# SPDX-License-Identifier: Apache-2.0
"""EventBridge Scheduler: one-time schedules that ring. What rings is kept as a list, and put into a queue where the target is one of ours."""

import datetime
import re
import zoneinfo

from aws.front.machine import Machine
from aws.front.names import HUB, REGION


class Scheduler(Machine):
    bad_token = "ValidationException"

    def reset(self):
        self.groups, self.schedules, self.rung = {"default", "isb-billing-separator"}, {}, []

    def show(self):
        return {"schedules": [{"group": g, "name": n, "at": s["at"], "input": s["Target"].get("Input")} for (g, n), s in sorted(self.schedules.items())],
                "rung": self.rung}

    # For the tests.

    def ctl_add_group(self, name):
        self.groups.add(name)

    def ctl_remove(self, name):
        """By somebody else."""
        self.schedules = {key: s for key, s in self.schedules.items() if key[1] != name}

    def ctl_ring(self, name=None, early=False):
        """Those that are due, or with early all or the named one: each rings now, and is deleted if it wanted that."""
        rung = [key for key, s in self.schedules.items() if name in (None, key[1]) and (early or s["at"] <= self.now())]
        for key in rung:
            target = self.schedules[key]["Target"]
            self.rung.append({"name": key[1], "input": target.get("Input"), "at": self.now()})
            queue = target["Arn"].rsplit(":", 1)[-1]
            if ":sqs:" in target["Arn"] and queue in self.world.machines["sqs"].queues:
                self.world.machines["sqs"].put(queue, target.get("Input", ""))
            if self.schedules[key].get("ActionAfterCompletion") == "DELETE":
                del self.schedules[key]
        return [key[1] for key in rung]

    # What is so.

    def moment(self, params):
        found = re.fullmatch(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)", params["ScheduleExpression"])
        if not found:
            self.fail("ValidationException", "Invalid Schedule Expression %s." % params["ScheduleExpression"])
        try:
            zone = zoneinfo.ZoneInfo(params.get("ScheduleExpressionTimezone", "UTC"))
            at = datetime.datetime.strptime(found.group(1), "%Y-%m-%dT%H:%M:%S").replace(tzinfo=zone)
        except (ValueError, zoneinfo.ZoneInfoNotFoundError) as e:
            self.fail("ValidationException", str(e))
        return at.timestamp()

    def key(self, params):
        group = params.get("GroupName", "default")
        if group not in self.groups:
            self.fail("ResourceNotFoundException", "Schedule group %s does not exist." % group, 404)
        return group, params["Name"]

    def find(self, params):
        key = self.key(params)
        if key not in self.schedules:
            self.fail("ResourceNotFoundException", "Schedule %s does not exist." % params["Name"], 404)
        return key

    @staticmethod
    def arn(key):
        return "arn:aws:scheduler:%s:%s:schedule/%s/%s" % (REGION, HUB, *key)

    # Operations.

    def CreateSchedule(self, params, _request):
        key = self.key(params)
        at = self.moment(params)
        window = params["FlexibleTimeWindow"]
        if (window["Mode"] == "FLEXIBLE") != ("MaximumWindowInMinutes" in window):
            self.fail("ValidationException", "MaximumWindowInMinutes belongs to FLEXIBLE alone")
        if key in self.schedules:
            self.fail("ConflictException", "Schedule %s already exists." % key[1], 409)
        self.schedules[key] = {**params, "at": at, "made": self.now()}
        return {"ScheduleArn": self.arn(key)}

    def GetSchedule(self, params, _request):
        key = self.find(params)
        s = self.schedules[key]
        kept = {k: s[k] for k in ("FlexibleTimeWindow", "ScheduleExpression", "ScheduleExpressionTimezone", "Target", "ActionAfterCompletion",
                                  "Description") if k in s}
        return {"Arn": self.arn(key), "GroupName": key[0], "Name": key[1], "State": "ENABLED", "CreationDate": self.time(s["made"]), **kept}

    def DeleteSchedule(self, params, _request):
        del self.schedules[self.find(params)]
        return {}

    def ListSchedules(self, params, _request):
        if params.get("GroupName", "default") not in self.groups:
            self.fail("ResourceNotFoundException", "Schedule group does not exist.", 404)
        found = [{"Arn": self.arn(k), "GroupName": k[0], "Name": k[1], "State": "ENABLED", "CreationDate": self.time(s["made"]),
                  "Target": {"Arn": s["Target"]["Arn"]}} for k, s in sorted(self.schedules.items())
                 if k[0] == params.get("GroupName", k[0]) and k[1].startswith(params.get("NamePrefix", ""))]
        return self.page(found, params, 100, name="Schedules")
