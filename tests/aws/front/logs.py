# SPDX-License-Identifier: Apache-2.0
"""CloudWatch Logs, as far as tenants' tasks write there; and the tagging API, which looks at all machines, and at what is gone for a while longer."""

import re

from aws.front.machine import Machine
from aws.front.names import HUB, REGION

RETENTION = {1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1827, 2192, 2557, 2922, 3288, 3653}


class Logs(Machine):
    bad_token = "InvalidParameterException"

    def reset(self):
        self.groups, self.limit, self.page_lines = {}, 1000000, 10000

    def show(self):
        return {"groups": {name: {"tags": g["tags"], "days": g["days"], "lines": len(g["lines"])} for name, g in self.groups.items()}}

    # For the tests.

    def ctl_limit(self, count):
        self.limit = count

    def ctl_add(self, name, tags=None):
        self.groups[name] = {"tags": tags or {}, "days": None, "lines": [], "made": self.now()}

    def ctl_write(self, group, stream, text, at=None):
        self.write(group, stream, text, at)

    def ctl_fill(self, group, stream, word, start, step, count):
        """Lines "word 0", "word 1" and so on, the first at start, in milliseconds."""
        for i in range(count):
            self.write(group, stream, "%s %d" % (word, i), start + i * step)

    def ctl_page(self, lines):
        """How many lines a page has at most."""
        self.page_lines = lines

    # What is so.

    def write(self, group, stream, text, at=None):
        """By a task. A group that is not there loses it."""
        if group in self.groups:
            lines = self.groups[group]["lines"]
            lines.append({"stream": stream, "text": text, "at": int(self.now() * 1000) if at is None else at, "id": "%032d" % len(lines)})

    @staticmethod
    def arn(name):
        return "arn:aws:logs:%s:%s:log-group:%s" % (REGION, HUB, name)

    def find(self, name):
        name = name.split(":log-group:")[-1]
        if name.endswith(":*"):
            name = name[:-2]
        if name not in self.groups:
            self.fail("ResourceNotFoundException", "The specified log group does not exist.")
        return self.groups[name]

    def all_tags(self):
        return [(self.arn(name), g["tags"]) for name, g in self.groups.items()]

    # Operations.

    def CreateLogGroup(self, params, _request):
        name = params["logGroupName"]
        if name in self.groups:
            self.fail("ResourceAlreadyExistsException", "The specified log group already exists")
        if len(self.groups) >= self.limit:
            self.fail("LimitExceededException", "Resource limit exceeded.")
        self.ctl_add(name, params.get("tags"))
        return {}

    def DeleteLogGroup(self, params, _request):
        self.find(params["logGroupName"])
        del self.groups[params["logGroupName"]]
        return {}

    def DescribeLogGroups(self, params, _request):
        found = [{"logGroupName": n, "arn": self.arn(n) + ":*", "creationTime": int(g["made"] * 1000), "storedBytes": 0, "metricFilterCount": 0,
                  **({"retentionInDays": g["days"]} if g["days"] else {})}
                 for n, g in sorted(self.groups.items()) if n.startswith(params.get("logGroupNamePrefix", ""))]
        return self.page(found, params, 50, "limit", "nextToken", "logGroups")

    def PutRetentionPolicy(self, params, _request):
        if params["retentionInDays"] not in RETENTION:
            self.fail("InvalidParameterException", "1 validation error detected: not a number of days: %s" % params["retentionInDays"])
        self.find(params["logGroupName"])["days"] = params["retentionInDays"]
        return {}

    def ListTagsForResource(self, params, _request):
        if params["resourceArn"].endswith(":*"):
            self.fail("InvalidParameterException", "the ARN of a log group must not end in :*")
        return {"tags": self.find(params["resourceArn"])["tags"]}

    def TagResource(self, params, _request):
        self.find(params["resourceArn"])["tags"].update(params["tags"])
        return {}

    def FilterLogEvents(self, params, _request):
        lines = [e for e in self.find(params["logGroupName"])["lines"] if params.get("startTime", 0) <= e["at"] < params.get("endTime", 1 << 62) and
                 e["stream"].startswith(params.get("logStreamNamePrefix", "")) and e["stream"] in params.get("logStreamNames", [e["stream"]])]
        if not re.fullmatch(r'("[^"]*")?', params.get("filterPattern", "")):
            self.fail("InvalidParameterException", "the front knows no filter but a quoted text")
        found = [{"logStreamName": e["stream"], "timestamp": e["at"], "message": e["text"], "ingestionTime": e["at"], "eventId": e["id"]}
                 for e in sorted(lines, key=lambda e: (e["at"], e["id"])) if params.get("filterPattern", "").strip('"') in e["text"]]
        return self.page(found, params, self.page_lines, "limit", "nextToken", "events")


class Tagging(Machine):
    bad_token = "PaginationTokenExpiredException"

    def reset(self):
        self.ghosts, self.last, self.lag = {}, {}, 0

    def ctl_lag(self, looks):
        """What is gone is still listed for so many looks."""
        self.lag = looks

    def GetResources(self, params, _request):
        have = {arn: tags for machine in self.world.machines.values() for arn, tags in machine.all_tags()}
        for arn in set(self.last) - set(have):
            self.ghosts.setdefault(arn, [self.last[arn], self.lag])
        self.last = {**have}
        found = {arn: tags for arn, (tags, left) in self.ghosts.items() if left > 0}
        for ghost in self.ghosts.values():
            ghost[1] -= 1
        found.update(have)
        rows = [{"ResourceARN": arn, "Tags": self.tag_list(tags)} for arn, tags in sorted(found.items()) if tags and all(
            f["Key"] in tags and tags[f["Key"]] in f.get("Values", [tags[f["Key"]]]) for f in params.get("TagFilters", [])) and any(
                self.is_of(arn, kind) for kind in params.get("ResourceTypeFilters", [""]))]
        asked = {k: v for k, v in params.items() if k != "PaginationToken" or v}  # "" begins
        got = self.page(rows, asked, 100, "ResourcesPerPage", "PaginationToken", "ResourceTagMappingList")
        return {"PaginationToken": "", **got}

    @staticmethod
    def is_of(arn, kind):
        """kind: service, or service:resource, as ecs:service; elasticloadbalancing:targetgroup."""
        service, _, resource = kind.partition(":")
        return not kind or arn.split(":")[2] == service and re.match(re.escape(resource) + r"(\b|$)", arn.split(":", 5)[5]) is not None
