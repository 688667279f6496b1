# SPDX-License-Identifier: Apache-2.0
"""Elastic Load Balancing: one listener, its rules by priority, target groups whose targets are the tasks of ECS; and what a visitor of the listener gets."""

import fnmatch
import re

from aws.front.machine import Machine
from aws.front.names import HUB, LISTENER, LOAD_BALANCER, REGION, VPC

RULE = LISTENER.replace(":listener/", ":listener-rule/") + "/"


class Elbv2(Machine):
    bad_token = "ValidationError"

    def reset(self):
        self.listeners, self.groups, self.rules, self.count = {LISTENER}, {}, {}, 0
        self.rules_limit, self.groups_limit, self.race, self.health, self.looks, self.in_use = 100, 3000, 0, "healthy", 1, 0
        self.rule(LISTENER, "default", [], [{"Type": "fixed-response", "FixedResponseConfig": {"StatusCode": "404"}}], {})

    def show(self):
        return {"groups": [{k: v for k, v in g.items() if k != "targets"} for g in self.groups.values()],
                "rules": sorted(self.rules.values(), key=lambda r: self.order(r["priority"]))}

    # For the tests.

    def ctl_limit(self, rules=None, groups=None):
        self.rules_limit = self.rules_limit if rules is None else rules
        self.groups_limit = self.groups_limit if groups is None else groups

    def ctl_take(self, priority):
        """A rule of somebody else."""
        return self.rule(LISTENER, str(priority), [{"Field": "path-pattern", "Values": ["/foreign-%s" % priority]}],
                         [{"Type": "fixed-response", "FixedResponseConfig": {"StatusCode": "200"}}], {})

    def ctl_race(self, count):
        """The next so many priorities that are asked for have just been taken by somebody else."""
        self.race = count

    def ctl_health(self, state="healthy", looks=1):
        """What targets get to be, after so many looks."""
        self.health, self.looks = state, looks

    def ctl_in_use(self, looks):
        """So many deletes of a target group are refused although no rule uses it any more."""
        self.in_use = looks

    def ctl_visit(self, path, headers=None):
        return self.visit(path, headers or {})

    # What is so.

    @staticmethod
    def order(priority):
        return 1e9 if priority == "default" else int(priority)

    def rule(self, listener, priority, conditions, actions, tags):
        self.count += 1
        arn = RULE + "%016x" % self.count
        self.rules[arn] = {"arn": arn, "listener": listener, "priority": priority, "conditions": conditions, "actions": actions, "tags": tags}
        return arn

    def told(self, arn):
        r = self.rules[arn]
        return {"RuleArn": arn, "Priority": r["priority"], "Conditions": r["conditions"], "Actions": r["actions"], "IsDefault": r["priority"] == "default"}

    def told_group(self, arn):
        g = self.groups[arn]
        used = any(a.get("TargetGroupArn") == arn for r in self.rules.values() for a in r["actions"])
        return {"TargetGroupArn": arn, "TargetGroupName": g["name"], **g["asked"], "LoadBalancerArns": [LOAD_BALANCER] if used else []}

    def is_used(self, group):
        return bool(self.told_group(group)["LoadBalancerArns"])

    def find_group(self, arn):
        if arn not in self.groups:
            self.fail("TargetGroupNotFound", "Target groups '%s' not found" % arn)
        return self.groups[arn]

    def find_rule(self, arn):
        if arn not in self.rules:
            self.fail("RuleNotFound", "One or more rules not found")
        return self.rules[arn]

    def check_actions(self, actions):
        for action in actions:
            if action["Type"] == "forward":
                for arn in [action["TargetGroupArn"]] if "TargetGroupArn" in action else [
                        g["TargetGroupArn"] for g in action["ForwardConfig"]["TargetGroups"]]:
                    self.find_group(arn)
            elif action["Type"] == "fixed-response" and not re.fullmatch("[245][0-9][0-9]", action["FixedResponseConfig"]["StatusCode"]):
                self.fail("ValidationError", "a status code is 2XX, 4XX or 5XX")

    def check_conditions(self, conditions):
        values = 0
        for c in conditions:
            found = c.get("Values") or next((v.get("Values", []) for k, v in c.items() if k.endswith("Config")), [])
            values += len(found)
            if not found or "Values" in c and c["Field"] not in ("host-header", "path-pattern"):
                self.fail("ValidationError", "A condition value must be specified for " + c.get("Field", "none"))
            if c["Field"] == "path-pattern" and any(not 1 <= len(v) <= 128 or re.search(r"[^A-Za-z0-9_.$/~\"'@:+&*?-]", v) for v in found):
                self.fail("ValidationError", "not a path pattern: %s" % found)
        if not conditions or values > 5:
            self.fail("ValidationError", "A rule can have 1 to 5 condition values")

    def register(self, group, ip, port):
        """By ECS, for a task that runs."""
        if group in self.groups:
            self.groups[group]["targets"].setdefault((ip, port), self.wait(self.looks, 600))

    def deregister(self, group, ip, port):
        if group in self.groups:
            self.groups[group]["targets"].pop((ip, port), None)

    def state(self, group, target, looked=True):
        if not self.is_used(group):
            return "unused", "Target.NotInUse"
        if not self.groups[group]["targets"][target].is_over(looked):
            return "initial", "Elb.InitialHealthChecking"
        return self.health, None if self.health == "healthy" else "Target.ResponseCodeMismatch"

    def is_healthy(self, group, ip, port):
        """For ECS, which waits for it."""
        return group not in self.groups or self.state(group, (ip, port))[0] == "healthy"

    def visit(self, path, headers):
        """status, text of what a visitor gets, who sees the rules in their order."""
        headers = {k.lower(): v for k, v in headers.items()}
        for rule in sorted(self.rules.values(), key=lambda r: self.order(r["priority"])):
            if all(self.holds(c, path, headers) for c in rule["conditions"]):
                action = rule["actions"][-1]
                if action["Type"] == "fixed-response":
                    fixed = action["FixedResponseConfig"]
                    return int(fixed["StatusCode"]), fixed.get("MessageBody", "")
                group = self.groups.get(action.get("TargetGroupArn"))
                if group is None or not any(self.state(action["TargetGroupArn"], t, False)[0] == "healthy" for t in group["targets"]):
                    return 503, "Service Temporarily Unavailable"
                return self.world.machines["ecs"].answer(action["TargetGroupArn"], path)
        return 404, ""

    @staticmethod
    def holds(condition, path, headers):
        if condition["Field"] == "path-pattern":
            values = condition.get("Values") or condition["PathPatternConfig"]["Values"]
            return any(fnmatch.fnmatchcase(path.split("?")[0], v) for v in values)
        if condition["Field"] == "http-header":
            asked = condition["HttpHeaderConfig"]
            got = headers.get(asked["HttpHeaderName"].lower())
            return got is not None and any(fnmatch.fnmatch(got, v) for v in asked["Values"])
        return False

    def all_tags(self):
        return [(arn, one["tags"]) for arn, one in {**self.groups, **self.rules}.items()]

    # Operations.

    def CreateTargetGroup(self, params, _request):
        name, asked = params["Name"], {k: v for k, v in params.items() if k not in ("Name", "Tags")}
        if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?", name):
            self.fail("ValidationError", "Target group name '%s' is not valid" % name)
        if asked.get("TargetType") != "lambda" and not {"Protocol", "Port", "VpcId"} <= set(asked):
            self.fail("ValidationError", "A protocol, a port and a VPC must be specified")
        if asked.get("VpcId", VPC) != VPC:
            self.fail("ValidationError", "The VPC ID '%s' is not found" % asked["VpcId"])
        for arn, group in self.groups.items():
            if group["name"] == name:
                if group["asked"] != asked:
                    self.fail("DuplicateTargetGroupName", "A target group with the same name '%s' exists, but with different settings" % name)
                return {"TargetGroups": [self.told_group(arn)]}
        if len(self.groups) >= self.groups_limit:
            self.fail("TooManyTargetGroups", "The maximum number of target groups has been reached")
        self.count += 1
        arn = "arn:aws:elasticloadbalancing:%s:%s:targetgroup/%s/%016x" % (REGION, HUB, name, self.count)
        self.groups[arn] = {"arn": arn, "name": name, "asked": asked, "tags": self.tags(params), "targets": {}}
        return {"TargetGroups": [self.told_group(arn)]}

    def DescribeTargetGroups(self, params, _request):
        arns = list(self.groups)
        if "TargetGroupArns" in params:
            arns = [self.find_group(arn)["arn"] for arn in params["TargetGroupArns"]]
        if "Names" in params:
            arns = [arn for arn in arns if self.groups[arn]["name"] in params["Names"]]
            if len(arns) < len(params["Names"]):
                self.fail("TargetGroupNotFound", "One or more target groups not found")
        return self.pages([self.told_group(arn) for arn in arns], params, "TargetGroups")

    def pages(self, items, params, name):
        got = self.page(items, params, 400, "PageSize", "Marker", name)
        if "Marker" in got:
            got["NextMarker"] = got.pop("Marker")
        return got

    def DeleteTargetGroup(self, params, _request):
        arn = params["TargetGroupArn"]
        if arn in self.groups:
            if self.is_used(arn) or self.in_use > 0:
                self.in_use -= not self.is_used(arn)
                self.fail("ResourceInUse", "Target group '%s' is currently in use by a listener or a rule" % arn)
            del self.groups[arn]
        return {}

    def DescribeTargetHealth(self, params, _request):
        group, got = self.find_group(params["TargetGroupArn"]), []
        for ip, port in group["targets"]:
            state, reason = self.state(group["arn"], (ip, port))
            got.append({"Target": {"Id": ip, "Port": port, "AvailabilityZone": REGION + "a"}, "HealthCheckPort": str(port),
                        "TargetHealth": {"State": state, **({"Reason": reason} if reason else {})}})
        return {"TargetHealthDescriptions": got}

    def CreateRule(self, params, _request):
        listener, priority = params["ListenerArn"], str(params["Priority"])
        if listener not in self.listeners:
            self.fail("ListenerNotFound", "One or more listeners not found")
        self.check_conditions(params["Conditions"])
        self.check_actions(params["Actions"])
        if self.race > 0:
            self.race -= 1
            self.ctl_take(priority)
        if any(r["priority"] == priority for r in self.rules.values()):
            self.fail("PriorityInUse", "Priority '%s' is currently in use" % priority)
        if len(self.rules) > self.rules_limit:
            self.fail("TooManyRules", "The maximum number of rules has been reached for load balancer")
        return {"Rules": [self.told(self.rule(listener, priority, params["Conditions"], params["Actions"], self.tags(params)))]}

    def ModifyRule(self, params, _request):
        rule = self.find_rule(params["RuleArn"])
        if rule["priority"] == "default":
            self.fail("OperationNotPermitted", "Default rule '%s' cannot be modified" % rule["arn"])
        if "Conditions" in params:
            self.check_conditions(params["Conditions"])
            rule["conditions"] = params["Conditions"]
        if "Actions" in params:
            self.check_actions(params["Actions"])
            rule["actions"] = params["Actions"]
        return {"Rules": [self.told(rule["arn"])]}

    def DeleteRule(self, params, _request):
        rule = self.find_rule(params["RuleArn"])
        if rule["priority"] == "default":
            self.fail("OperationNotPermitted", "Default rule '%s' cannot be deleted" % rule["arn"])
        del self.rules[rule["arn"]]
        return {}

    def DescribeRules(self, params, _request):
        if "RuleArns" in params:
            return {"Rules": [self.told(self.find_rule(arn)["arn"]) for arn in params["RuleArns"]]}
        if params.get("ListenerArn") not in self.listeners:
            self.fail("ListenerNotFound", "One or more listeners not found")
        rules = sorted(self.rules.values(), key=lambda r: self.order(r["priority"]))
        return self.pages([self.told(r["arn"]) for r in rules], params, "Rules")

    def DescribeTags(self, params, _request):
        got = []
        for arn in params["ResourceArns"]:
            one = {"tags": {"made-by": "hand"}} if arn == LISTENER else self.find_group(arn) if ":targetgroup/" in arn else self.find_rule(arn)
            got.append({"ResourceArn": arn, "Tags": self.tag_list(one["tags"])})
        return {"TagDescriptions": got}

    def AddTags(self, params, _request):
        for arn in params["ResourceArns"]:
            (self.find_group(arn) if ":targetgroup/" in arn else self.find_rule(arn))["tags"].update(self.tags(params))
        return {}

    def DescribeListeners(self, params, _request):
        arns = params.get("ListenerArns", sorted(self.listeners))
        if set(arns) - self.listeners:
            self.fail("ListenerNotFound", "One or more listeners not found")
        return {"Listeners": [{"ListenerArn": arn, "LoadBalancerArn": LOAD_BALANCER, "Port": 443, "Protocol": "HTTPS", "DefaultActions": [
            {"Type": "fixed-response", "FixedResponseConfig": {"StatusCode": "404"}}]} for arn in arns]}
